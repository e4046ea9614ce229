//! The Heisenberg model on the infinite square lattice: an iPEPS of two states per bond. The energy is one operation on
//! Burn's tape, whose gradient solves the fixed-point equation of CTMRG; Adam takes the first steps, L-BFGS the others.
//! Published for D = 2: −0.6602 per site (J. Hasik, D. Poilblanc, F. Becca, SciPost Phys. 10, 012 (2021)). The picture
//! has the energy after each step.
//!
//! `cargo run --release --example ipeps`

use std::ops::ControlFlow;

use burn::backend::Autodiff;
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::{Tensor, backend::Backend};
use burn_t4a::ext::networks::peps::{
    CtmOptions, PepsOptions, PepsSearch, SymmetricEnergy, energy, layers, random_state,
};
use burn_t4a::ext::networks::sector::Trivial;
use burn_t4a::ext::networks::sites::spin_half;
use burn_t4a::ext::structured::{Direction, GradedTensor, Leg, Spec, Structured, Weights};
use burn_t4a::{BurnT4a, T4aDevice};

#[path = "picture/lines.rs"]
mod picture;

type B = Autodiff<BurnT4a>;

/// The tensor `[site, left, up, right, down]`.
#[derive(Module, Debug)]
struct Ipeps<B: Backend> {
    tensor: Weights<B, Spec<Trivial>>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // S·S on each bond, one sublattice rotated: S± → −S∓, Sz → −Sz.
    let site = spin_half().conserve(|_| Trivial)?;
    let terms = [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")];
    let options = CtmOptions::new().max_dim(8).tolerance(1e-8).steps(200);
    let h = SymmetricEnergy::new(layers::pair_operator(&site, terms)?, options)?;
    let start = random_state(site.leg(), &Leg::new([(Trivial, 2)], Direction::Out)?, 2)?;
    let start = GradedTensor::<B, Trivial>::from_engine(&start, &T4aDevice)?;
    let mut state = Ipeps { tensor: Weights::new(&start) };
    let (mut adam, mut energies) = (AdamConfig::new().init(), Vec::new());
    for step in 0..10 {
        let per_site: Tensor<B, 1> = energy(&h, &state.tensor.tensor()?)?.tensor()?;
        let value: f64 = per_site.clone().into_data().iter::<f64>().sum();
        println!("Adam   {step:>4} {value:>11.7}");
        energies.push((f64::from(step), value));
        let gradients = GradientsParams::from_grads(per_site.backward(), &state);
        state = adam.step(0.05, state, gradients);
    }
    let start = state.tensor.tensor()?.to_engine()?;
    let mut search = PepsSearch::new(&h, start, PepsOptions::new().steps(20).tolerance(1e-4))?;
    let last = search.run(|step| {
        println!("L-BFGS {:>4} {:>11.7}", step.step, step.energy);
        energies.push((10.0 + step.step as f64, step.energy));
        Ok(ControlFlow::Continue(()))
    })?;
    assert!((last.energy + 0.6602).abs() < 3e-4, "{}", last.energy);
    picture::lines("ipeps", "step", &[energies])
}
