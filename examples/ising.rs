//! Statistical mechanics by differentiation: the Ising model on a 4 × 4 torus.
//!
//! ```text
//! cargo run --release --example ising
//! ```
//!
//! ln Z = ln Σ exp(K Σ sᵢsⱼ) is one contraction over (log-sum-exp, +) in which every spin is a label shared by four
//! bonds. Its first derivative with respect to the coupling K is the mean of Σ sᵢsⱼ, the second its variance, which is
//! proportional to the heat capacity: two levels of `Autodiff`. Everything is compared with the sum over all 65,536
//! configurations. The program is generic over the backend; the tests in `gpu` run it on `Wgpu`.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{LogSumExp, Operand, Subscripts, semiring_einsum};
use burn_t4a::ext::operation::Operations;

type Once<B> = Autodiff<B>;
type Twice<B> = Autodiff<Once<B>>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const L: usize = 4;

fn bonds() -> Vec<[usize; 2]> {
    let site = |x: usize, y: usize| (x % L) * L + y % L;
    let sites = (0..L).flat_map(|x| (0..L).map(move |y| (x, y)));
    sites.flat_map(|(x, y)| [[site(x, y), site(x + 1, y)], [site(x, y), site(x, y + 1)]]).collect()
}

/// ln Z and its first two derivatives with respect to K.
fn contracted<B: Operations>(coupling: f64, dtype: DType) -> Result<[f64; 3]> {
    let device = B::Device::default();
    let data =
        |values: Vec<f64>, shape: [usize; 2]| TensorData::new(values, shape).convert_dtype(dtype);
    let k = Tensor::<Once<B>, 2>::from_data(data(vec![coupling], [1, 1]), (&device, dtype));
    let k = k.require_grad();
    let k2 = Tensor::<Twice<B>, 2>::from_inner(k.clone()).require_grad();
    let spins = data(vec![1.0, -1.0, -1.0, 1.0], [2, 2]);
    let bond = k2.clone() * Tensor::<Twice<B>, 2>::from_data(spins, (&device, dtype));

    let bonds = bonds();
    let operands: Vec<Operand<Twice<B>>> = bonds.iter().map(|_| (&bond).into()).collect();
    let ln_z: Tensor<Twice<B>, 1> =
        semiring_einsum::<LogSumExp, _, _>(Subscripts::new(bonds, []), operands)?;
    let value = ln_z.clone().into_data().iter::<f64>().sum();
    let first = k2.grad(&ln_z.backward()).ok_or("no first derivative")?;
    let mean = first.clone().into_data().iter::<f64>().sum();
    let second = k.grad(&first.backward()).ok_or("no second derivative")?;
    Ok([value, mean, second.into_data().iter::<f64>().sum()])
}

/// The same by enumeration.
fn enumerated(coupling: f64) -> [f64; 3] {
    let bonds = bonds();
    let energy = |spins: u32| -> f64 {
        bonds
            .iter()
            .map(|[i, j]| if ((spins >> i) ^ (spins >> j)) & 1 == 0 { 1.0 } else { -1.0 })
            .sum()
    };
    let (mut z, mut mean, mut square) = (0.0, 0.0, 0.0);
    for spins in 0..1u32 << (L * L) {
        let e = energy(spins);
        let weight = f64::exp(coupling * e);
        (z, mean, square) = (z + weight, mean + weight * e, square + weight * e * e);
    }
    let mean = mean / z;
    [f64::ln(z), mean, square / z - mean * mean]
}

/// The example on a backend, in a dtype with relative errors of at most `tolerance`.
pub(crate) fn run<B: Operations>(dtype: DType, tolerance: f64) -> Result<()> {
    println!("    K           ln Z       d ln Z/dK     d² ln Z/dK²   heat capacity K²·d²/N");
    for step in 1..=7 {
        let k = 0.1 * f64::from(step);
        let ours = contracted::<B>(k, dtype)?;
        for (ours, exact) in ours.iter().zip(enumerated(k)) {
            assert!(
                (ours - exact).abs() < tolerance * exact.abs(),
                "K = {k}: {ours}, exactly {exact}"
            );
        }
        let heat = k * k * ours[2] / (L * L) as f64;
        let bar = "▇".repeat((30.0 * heat).round() as usize);
        println!(
            "{k:>5.1} {:>14.9} {:>15.9} {:>15.9}   {heat:.3} {bar}",
            ours[0], ours[1], ours[2]
        );
        if step == 4 {
            assert!((ours[0] - 14.561093023844).abs() < 20.0 * tolerance);
            assert!((ours[1] - 22.065863716150).abs() < 30.0 * tolerance);
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    run::<BurnT4a>(DType::F64, 1e-9)
}
