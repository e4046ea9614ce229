//! The two-dimensional Ising model by the tensor renormalisation group, and its energy as the derivative of the free
//! energy through all singular value decompositions.
//!
//! The partition function of a square lattice is a network of equal tensors `T[r, u, l, d]`. Each step splits `T` in
//! two ways along its diagonals by a truncated decomposition and contracts the four halves around a plaquette, which
//! halves the number of tensors (Levin, Nave 2007). The results are compared with Onsager's (1944), and the derivative
//! also with differences of the computed free energy, which include the effect of the truncation. The picture has the
//! energy per spin, computed and exact.
//!
//! `cargo run --example trg`

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::linalg::{Degeneracy, LinalgError, Svd, Truncation, svd_truncated_with};
use burn_t4a::{BurnT4a, T4aDevice};

#[path = "picture/lines.rs"]
mod picture;

type B = Autodiff<BurnT4a>;

const BOND: usize = 8;
const STEPS: usize = 14;

fn values<const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn tensor<const D: usize>(values: Vec<f64>, shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, DType::F64))
}

/// `T[r, u, l, d] = Σₐ W[a, r] W[a, u] W[a, l] W[a, d]` with `W Wᵀ` the Boltzmann weights of a bond.
fn start(beta: Tensor<B, 1>) -> Tensor<B, 4> {
    let (up, down) = (beta.clone().exp(), beta.neg().exp());
    let even = ((up.clone() + down.clone()) * 0.5).sqrt();
    let odd = ((up - down) * 0.5).sqrt();
    // W = [√cosh β, ±√sinh β]: spin up, then spin down.
    let spin = |sign: f64| Tensor::cat(vec![even.clone(), odd.clone() * sign], 0);
    let product = |w: Tensor<B, 1>| {
        let pair = w.clone().unsqueeze_dim::<2>(1).matmul(w.unsqueeze_dim(0)).reshape([4, 1]);
        pair.clone().matmul(pair.transpose()).reshape([2, 2, 2, 2])
    };
    product(spin(1.0)) + product(spin(-1.0))
}

/// `M ≈ X Yᵀ` with at most `BOND` columns each, as tensors `[d, d, k]`.
fn split(m: Tensor<B, 2>, d: usize) -> Result<(Tensor<B, 3>, Tensor<B, 3>), LinalgError> {
    // The square root of a zero value has no derivative.
    let truncation = Truncation::new().max_dim(BOND).relative_cutoff(1e-12);
    // Lattice symmetry makes values degenerate; rounding splits them by more than an epsilon.
    let ties = Degeneracy { tolerance: Some(1e-10), ..Degeneracy::SEPARABLE };
    let Svd { u, s, vh } = svd_truncated_with(m, &truncation, ties)?.kept;
    let root = s.sqrt().unsqueeze_dim::<2>(0);
    let half = |x: Tensor<B, 2>| {
        let k = x.dims()[1];
        (x * root.clone()).reshape([d, d, k])
    };
    Ok((half(u), half(vh.transpose())))
}

/// One step: `(T', ln‖T‖)` of the normalised tensor.
fn coarsen(t: Tensor<B, 4>) -> Result<(Tensor<B, 4>, Tensor<B, 1>), LinalgError> {
    let d = t.dims()[0];
    let norm = (t.clone() * t.clone()).sum().sqrt();
    let t = t / norm.clone().reshape([1, 1, 1, 1]);
    let matrix = |t: Tensor<B, 4>| t.reshape([d * d, d * d]);
    let (ru, ld) = split(matrix(t.clone()), d)?;
    let (lu, rd) = split(matrix(t.permute([2, 1, 0, 3])), d)?;
    // Around the plaquette with bonds w (left), x (bottom), y (top), z (right):
    // T'[c, b, a, d] = Σ ru[x, w, a] rd[y, w, b] ld[y, z, c] lu[x, z, d].
    let join = |p: Tensor<B, 3>, q: Tensor<B, 3>| {
        // Σ_w p[x, w, a] q[y, w, b] as a matrix (x y) × (a b).
        let [x, w, a] = p.dims();
        let [y, _, b] = q.dims();
        let p = p.permute([0, 2, 1]).reshape([x * a, w]);
        let q = q.permute([1, 0, 2]).reshape([w, y * b]);
        p.matmul(q).reshape([x, a, y, b]).permute([0, 2, 1, 3]).reshape([x * y, a * b])
    };
    let (a, b) = (ru.dims()[2], rd.dims()[2]);
    let left = join(ru, rd);
    // (x y) × (d c): z is the bond summed here.
    let right = join(lu, ld);
    let t = left.transpose().matmul(right).reshape([a, b, b, a]);
    Ok((t.permute([3, 1, 0, 2]), norm.log()))
}

/// `ln Z` per spin.
fn free_energy(beta: Tensor<B, 1>) -> Result<Tensor<B, 1>, LinalgError> {
    let mut t = start(beta);
    let mut total = tensor(vec![0.0], [1]);
    let mut share = 1.0;
    for _ in 0..STEPS {
        let (next, log) = coarsen(t)?;
        t = next;
        total = total + log * share;
        share /= 2.0;
    }
    // Periodic: Σ T[r, u, r, u].
    let d = t.dims()[0];
    let unit = Tensor::<B, 2>::eye(d * d, &T4aDevice).cast(DType::F64);
    let closed = (t.reshape([d * d, d * d]) * unit).sum();
    Ok(total + closed.log() * share)
}

/// Onsager's `ln Z` per spin, `ln(√2 cosh 2β) + 1/π ∫₀^{π/2} ln(1 + √(1 − κ² sin²θ)) dθ`.
fn onsager(beta: f64) -> f64 {
    let kappa = 2.0 * (2.0 * beta).sinh() / (2.0 * beta).cosh().powi(2);
    let points = 20_000;
    let integrand = |i: usize| {
        let theta = std::f64::consts::FRAC_PI_2 * (i as f64 + 0.5) / points as f64;
        (1.0 + (1.0 - (kappa * theta.sin()).powi(2)).max(0.0).sqrt()).ln()
    };
    let mean = (0..points).map(integrand).sum::<f64>() / points as f64;
    (2f64.sqrt() * (2.0 * beta).cosh()).ln() + mean / 2.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut computed, mut known) = (Vec::new(), Vec::new());
    println!("bond dimension {BOND}, {} spins", 1u64 << STEPS);
    println!(
        "  β      ln Z / N     Onsager       off      energy    Onsager       off   difference off"
    );
    for beta in [0.30, 0.36, 0.40, 0.43, 0.46, 0.50] {
        let leaf = tensor(vec![beta], [1]).require_grad();
        let value = free_energy(leaf.clone())?;
        let gradients = value.clone().backward();
        let energy =
            leaf.grad(&gradients).map(Tensor::from_inner).map_or(f64::NAN, |g| -values(g)[0]);
        let (value, exact) = (values(value)[0], onsager(beta));

        let h = 1e-4;
        let exact_energy = (onsager(beta - h) - onsager(beta + h)) / (2.0 * h);
        // A small step: the free energy is discontinuous where kept and discarded values cross.
        let h = 1e-5;
        let at = |beta| free_energy(tensor(vec![beta], [1])).map(|x| values(x)[0]);
        let difference = (at(beta - h)? - at(beta + h)?) / (2.0 * h);
        let off = |got: f64, want: f64| (got / want - 1.0).abs();
        let [f, e, d] = [off(value, exact), off(energy, exact_energy), off(energy, difference)];
        println!(
            "{beta:.2}   {value:.8}  {exact:.8}   {f:.1e}   {energy:.6}  {exact_energy:.6}   {e:.1e}   {d:.1e}"
        );
        assert!(f < 2e-4 && e < 1e-3 && d < 1e-7, "β = {beta}");
        computed.push((beta, energy));
        known.push((beta, exact_energy));
    }
    picture::lines("trg", "β", &[computed, known])
}
