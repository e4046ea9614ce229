//! The ground state of the Heisenberg chain by gradient descent: a graded matrix product state is a Burn module, its
//! energy is differentiated by Burn's tape, and Adam minimises it. The energy is an upper bound at every step. The
//! picture has the decimal logarithm of its error.
//!
//! `cargo run --release --example variational_mps`

use burn::backend::Autodiff;
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::{Tensor, backend::Backend};
use burn_t4a::ext::networks::sector::U1;
use burn_t4a::ext::networks::sites::{Sites, spin_half};
use burn_t4a::ext::networks::{BurnChain, BurnMps, Generator, Mps, Sum};
use burn_t4a::ext::structured::{Spec, Weights};
use burn_t4a::{BurnT4a, T4aDevice};
use indicatif::ProgressBar;

#[path = "picture/lines.rs"]
mod picture;

type B = Autodiff<BurnT4a>;

const SITES: usize = 8;
const STEPS: usize = 4000;
const EXACT: f64 = -3.374932598688;

/// The tensors of the state.
#[derive(Module, Debug)]
struct State<B: Backend> {
    sites: Vec<Weights<B, Spec<U1>>>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sites = Sites::uniform(spin_half(), SITES);
    let mut h = Sum::new(&sites);
    for i in 0..SITES - 1 {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]).add(1.0, [("Sz", i), ("Sz", i + 1)]);
    }
    let start = Mps::random(&sites, U1(0), 16, false, &Generator::new(1))?;
    let start = BurnMps::<B, U1>::from_engine(&start, &T4aDevice)?;
    let h = h.mpo()?.over(start.tensors()[0].re())?;
    let mut state = State { sites: start.to_weights() };
    println!(
        "{SITES} spins, {} parameters\n   step           energy     error",
        state.num_params()
    );
    let (mut adam, bar) = (AdamConfig::new().init(), ProgressBar::new(STEPS as u64));
    let (mut last, mut errors) = (0.0f64, Vec::new());
    for step in 0..=STEPS {
        let energy: Tensor<B, 1> =
            BurnMps::<B, U1>::from_weights(&state.sites)?.energy(&h)?.tensor()?;
        last = energy.clone().into_data().iter::<f64>().sum();
        assert!(last > EXACT - 1e-10, "an upper bound: {last}");
        errors.push((step as f64, (last - EXACT).max(1e-13).log10()));
        if step % 500 == 0 {
            bar.suspend(|| println!("  {step:>5} {last:>16.12} {:>9.1e}", last - EXACT));
        }
        // The learning rate decreases to zero along half a cosine.
        let rate = 0.025 * (1.0 + (std::f64::consts::PI * step as f64 / STEPS as f64).cos());
        let gradients = GradientsParams::from_grads(energy.backward(), &state);
        state = adam.step(rate, state, gradients);
        bar.inc(1);
    }
    bar.finish_and_clear();
    assert!((last - EXACT).abs() < 1e-5, "{last}, exact {EXACT}");
    picture::lines("variational_mps", "step", &[errors])
}
