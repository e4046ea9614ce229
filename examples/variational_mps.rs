//! The ground state of the Heisenberg chain by gradient descent: a graded matrix product state is a Burn module, its
//! energy is differentiated by Burn's tape, and Adam minimises it.
//!
//! ```text
//! cargo run --release --example variational_mps
//! ```
//!
//! The energy is an upper bound at every step, and is asserted against exact diagonalisation.

#[allow(dead_code)]
#[path = "chain/model.rs"]
mod model;

use burn::backend::Autodiff;
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::structured::{
    Direction, GradedTensor, Leg, Result, Spec, Structured, U1, Weights, einsum,
};
use indicatif::ProgressBar;

use model::{Model, xxz};

const SITES: usize = 8;
const STEPS: usize = 4000;
const EXACT: f64 = -3.374932598688;

/// Sites `[left, site, right]`; the bonds contain all charges that can occur.
#[derive(Module, Debug)]
struct State<B: Backend> {
    sites: Vec<Weights<B, Spec<U1>>>,
}

/// Binomial coefficient: number of subsets of k elements of n.
fn binomial(n: usize, k: usize) -> usize {
    (0..k).fold(1, |all, i| all * (n - i) / (i + 1))
}

/// The bond after the first i sites: for each charge, the smaller of the numbers of states on both sides, at most
/// `most`.
fn bond(i: usize, most: usize, direction: Direction) -> Result<Leg<U1>> {
    let ups = (0..=i).filter(|&up| up <= SITES / 2 && SITES / 2 - up <= SITES - i);
    let states = |up: usize| binomial(i, up).min(binomial(SITES - i, SITES / 2 - up)).min(most);
    Leg::new(ups.map(|up| (U1(2 * up as i32 - i as i32), states(up))), direction)
}

impl<B: Operations> State<B> {
    fn new(most: usize) -> Result<Self> {
        let device = B::Device::default();
        let site = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
        let weights = |i| {
            let (left, right) = (bond(i, most, Direction::Out)?, bond(i + 1, most, Direction::In)?);
            let spec = Spec::new(vec![left, site.clone(), right], U1(0), 2)?;
            Weights::normal(&spec, (&device, DType::F64))
        };
        Ok(Self { sites: (0..SITES).map(weights).collect::<Result<_>>()? })
    }

    /// `⟨ψ|H|ψ⟩ / ⟨ψ|ψ⟩`.
    fn energy(&self, model: &Model<U1>) -> Result<Tensor<B, 1>> {
        let operator = model.operator::<B>(SITES)?;
        let device = B::Device::default();
        let edge = |legs: Vec<Leg<U1>>| {
            GradedTensor::<B, U1>::from_flat(
                &Spec::new(legs, U1(0), 1)?,
                Tensor::ones([1], (&device, DType::F64)),
            )
        };
        let ket = bond(0, 1, Direction::In)?;
        let mut norm = edge(vec![ket.clone(), ket.dual()])?;
        let mut energy = edge(vec![ket.clone(), operator[0].spec().legs()[0].dual(), ket.dual()])?;
        for (site, w) in self.sites.iter().zip(&operator) {
            let a = site.tensor()?;
            let bra = a.conj()?;
            norm = einsum("kb,kpm,bpn->mn", &[&norm, &a, &bra])?;
            energy = einsum("kwb,kpm,wqpv,bqn->mvn", &[&energy, &a, w, &bra])?;
        }
        Ok(energy.flat() / norm.flat())
    }
}

fn main() -> Result<()> {
    type B = Autodiff<BurnT4a>;
    B::seed(&Default::default(), 1);
    let model = xxz(1.0);
    let mut state = State::<B>::new(16)?;
    println!("{SITES} spins, {} parameters in {} tensors", state.num_params(), SITES);
    println!("{}\n", state.sites[SITES / 2].tensor()?);
    let mut optimizer = AdamConfig::new().init();
    let bar = ProgressBar::new(STEPS as u64);
    println!("   step           energy     error");
    let mut last = 0.0;
    for step in 0..=STEPS {
        let energy = state.energy(&model)?;
        last = energy.clone().into_data().iter::<f64>().sum();
        assert!(last > EXACT - 1e-10, "an upper bound: {last}");
        if step % 500 == 0 {
            bar.suspend(|| println!("  {step:>5} {last:>16.12} {:>9.1e}", last - EXACT));
        }
        // The learning rate decreases to zero along half a cosine.
        let done = step as f64 / STEPS as f64;
        let rate = 0.025 * (1.0 + (std::f64::consts::PI * done).cos());
        let gradients = GradientsParams::from_grads(energy.backward(), &state);
        state = optimizer.step(rate, state, gradients);
        bar.inc(1);
    }
    bar.finish_and_clear();
    assert!((last - EXACT).abs() < 1e-5, "{last}, exact {EXACT}");
    Ok(())
}
