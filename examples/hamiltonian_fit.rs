//! Parameters of a Hamiltonian from measurements in its ground state: the anisotropy and a staggered field of a spin
//! chain. DMRG finds the state, the derivative of an expectation value in the parameters is one linear system, and
//! Newton's method fits the parameters. The picture has both parameters after each step.
//!
//! `cargo run --release --example hamiltonian_fit`

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::networks::sector::U1;
use burn_t4a::ext::networks::sites::{Sites, spin_half};
use burn_t4a::ext::networks::{DmrgOptions, GroundState, Mpo, Mps, ResponseOptions, Sum, weighted};
use burn_t4a::{BurnT4a, T4aDevice};
use indicatif::ProgressBar;

#[path = "picture/lines.rs"]
mod picture;

type Line = Tensor<Autodiff<BurnT4a>, 1>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const SITES: usize = 10;
const TRUTH: [f64; 2] = [1.4, 0.3];

fn tensor(x: &[f64]) -> Line {
    Tensor::from_data(TensorData::from(x), (&T4aDevice, DType::F64))
}

/// `Σ SᶻSᶻ` or the staggered magnetisation in the ground state.
fn measure(parts: &[Mpo<U1>; 3], k: usize, theta: &Line, start: &Mps<U1>) -> Result<Line> {
    let h = weighted(parts, Tensor::cat(vec![tensor(&[1.0]), theta.clone()], 0))?;
    let ground = GroundState::find(&h, start.clone(), DmrgOptions::new().tolerance(1e-13))?;
    let operator = parts[k].over(h.tensors()[0].re())?;
    Ok(ground.expectation(&operator, &ResponseOptions::new())?.tensor()?)
}

fn main() -> Result<()> {
    let sites = Sites::uniform(spin_half(), SITES);
    let mut sums = [Sum::new(&sites), Sum::new(&sites), Sum::new(&sites)];
    (0..SITES - 1).for_each(|i| _ = sums[0].add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]));
    (0..SITES - 1).for_each(|i| _ = sums[1].add(1.0, [("Sz", i), ("Sz", i + 1)]));
    (0..SITES).for_each(|i| _ = sums[2].add([-1.0, 1.0][i % 2], [("Sz", i)]));
    let parts = [sums[0].mpo()?, sums[1].mpo()?, sums[2].mpo()?];
    let start = Mps::product(&sites, ["Up", "Dn"].into_iter().cycle().take(SITES))?;
    let (mut theta, mut curves, bar) = ([1.0, 0.6], [vec![], vec![]], ProgressBar::new(8));
    for step in 0..8 {
        bar.suspend(|| println!("{step}   Δ = {:.8}   field {:.8}", theta[0], theta[1]));
        (0..2).for_each(|k| curves[k].push((f64::from(step), theta[k])));
        let mut rows = [[0.0; 3]; 2];
        for (row, k) in rows.iter_mut().zip([1, 2]) {
            let leaf = tensor(&theta).require_grad();
            let mean = measure(&parts, k, &leaf, &start)?;
            let missing = measure(&parts, k, &tensor(&TRUTH), &start)? - mean.clone();
            row[2] = missing.into_data().iter::<f64>().sum();
            let gradient = leaf.grad(&mean.backward()).ok_or("no gradient")?.into_data();
            gradient.iter::<f64>().zip(row).for_each(|(x, row)| *row = x);
        }
        // Newton's step for two equations.
        let [[a, b, e], [c, d, f]] = rows;
        theta[0] += (e * d - b * f) / (a * d - b * c);
        theta[1] += (a * f - e * c) / (a * d - b * c);
        bar.inc(1);
    }
    bar.finish_and_clear();
    assert!(theta.iter().zip(TRUTH).all(|(a, b)| (a - b).abs() < 1e-4), "{theta:?}");
    picture::lines("hamiltonian_fit", "step", &curves)
}
