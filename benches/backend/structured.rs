//! Graded tensors: ratios of times of the engine to each other. The row has the slower form in the place of BurnT4a, and
//! the faster one in the place of Flex.
//!
//! The computation is that of the bench `graded` of t4a-structured, the effective Hamiltonian of two sites, in `f64`.
//! Burn's tape releases results without owners at the next backward pass, so a forward pass without one takes new memory
//! for all that it keeps. Backward passes of the engine take 2.0 to 2.2 times the forward pass in each contraction; the
//! nodes of the tape take about 10 µs per contraction more.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor};
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::structured::{
    Direction, GradedTensor, Leg, Product, Sector, Spec, Structured, U1, clear_plans,
};

use crate::rows::{Row, floats, row};

/// Degeneracies of `d` states over the charges `step · k`, distributed as a Gaussian of this width.
fn gauss(d: f64, width: f64, reach: i32, step: i32) -> Vec<(i32, f64)> {
    let weight = |k: i32| (-f64::from(k * k) / (2.0 * width * width)).exp();
    let sum: f64 = (-reach..=reach).map(weight).sum();
    (-reach..=reach).map(|k| (step * k, d * weight(k) / sum)).collect()
}

fn leg<S: Sector>(states: &[(S, usize)]) -> Leg<S> {
    let states = states.iter().copied().filter(|&(_, n)| n > 0);
    Leg::new(states, Direction::Out).expect("distinct sectors")
}

/// LP `[l*, w, l]`, θ `[l, s, s, r]`, twice W `[w*, w, s, s*]`, RP `[r*, w*, r]`.
fn specs<S: Sector>(bond: &Leg<S>, site: &Leg<S>, wire: &Leg<S>) -> Vec<Spec<S>> {
    let spec = |legs: Vec<Leg<S>>, rows| Spec::new(legs, S::TRIVIAL, rows).expect("legs");
    let (l, r) = (bond.clone(), bond.dual());
    let w = spec(vec![wire.dual(), wire.clone(), site.clone(), site.dual()], 2);
    vec![
        spec(vec![l.clone(), wire.clone(), l.dual()], 2),
        spec(vec![l, site.clone(), site.clone(), r.clone()], 1),
        w.clone(),
        w,
        spec(vec![r.dual(), wire.dual(), r], 2),
    ]
}

/// Spin ½ with U(1), bond dimension about `d`.
fn spins(d: usize) -> Vec<Spec<U1>> {
    let bond: Vec<_> = gauss(d as f64, 1.5, 4, 2)
        .iter()
        .map(|&(charge, n)| (U1(charge), n.round() as usize))
        .collect();
    let wire = leg(&[(U1(-2), 1), (U1(0), 3), (U1(2), 1)]);
    specs(&leg(&bond), &leg(&[(U1(-1), 1), (U1(1), 1)]), &wire)
}

/// Electrons with two charges.
fn electrons(d: usize) -> Vec<Spec<Product<U1, U1>>> {
    let at = |a: i32, b: i32| Product(U1(a), U1(b));
    let site = leg(&[(at(0, 0), 1), (at(1, 0), 1), (at(0, 1), 1), (at(1, 1), 1)]);
    let wire = leg(&[(at(0, 0), 2), (at(1, 0), 1), (at(-1, 0), 1), (at(0, 1), 1), (at(0, -1), 1)]);
    let profile = gauss(1.0, 1.0, 3, 1);
    let mut bond = Vec::new();
    for &(a, p) in &profile {
        for &(b, q) in &profile {
            bond.push((at(a, b), (d as f64 * p * q).round() as usize));
        }
    }
    specs(&leg(&bond), &site, &wire)
}

fn tensors<B: Operations, S: Sector>(
    specs: &[Spec<S>],
    device: &B::Device,
) -> Vec<GradedTensor<B, S>> {
    let tensor = |spec: &Spec<S>| {
        let data = floats::<B, 1>([spec.len()], device).cast(DType::F64);
        GradedTensor::from_flat(spec, data).expect("the length of the structure")
    };
    specs.iter().map(tensor).collect()
}

/// Contracted axes of the four contractions.
const STEPS: [(&[usize], &[usize]); 4] =
    [(&[2], &[0]), (&[1, 2], &[0, 3]), (&[3, 1], &[0, 3]), (&[1, 3], &[0, 1])];

/// LP · θ · W · W · RP.
fn contract<B: Operations, S: Sector>(operands: &[GradedTensor<B, S>]) -> Tensor<B, 1> {
    let mut x = operands[0].clone();
    for (other, (i, j)) in operands[1..].iter().zip(STEPS) {
        x = x.contract(other, i, j).expect("dual legs");
    }
    x.flat()
}

fn leaves<B: AutodiffBackend + Operations, S: Sector>(
    specs: &[Spec<S>],
    device: &B::Device,
) -> Vec<GradedTensor<B, S>> {
    tensors::<B, S>(specs, device).into_iter().map(|x| x.require_grad()).collect()
}

pub(crate) fn graded(rows: &mut Vec<Row>) {
    for d in [64, 256] {
        row!(against rows, format!("graded U(1)² {d}: cold plans"), 0.0, BurnT4a, |device| {
            let x = tensors::<B, _>(&electrons(d), &device);
            move || {
                clear_plans();
                contract(&x)
            }
        }, {
            let x = tensors::<B, _>(&electrons(d), &device);
            move || contract(&x)
        });
    }
    row!(against rows, "graded U(1) 64: forward on a tape, kept", 0.0, BurnT4a, |device| {
        let x = leaves::<Autodiff<B>, _>(&spins(64), &device);
        move || contract(&x)
    }, {
        let x = tensors::<B, _>(&spins(64), &device);
        move || contract(&x)
    });
    row!(against rows, "graded U(1) 64: forward, backward", 0.0, BurnT4a, |device| {
        let x = leaves::<Autodiff<B>, _>(&spins(64), &device);
        move || {
            let y = contract(&x);
            let gradients = y.clone().sum().backward();
            std::hint::black_box(x.iter().map(|x| x.grad(&gradients)).collect::<Vec<_>>());
            y.inner()
        }
    }, {
        let x = tensors::<B, _>(&spins(64), &device);
        move || contract(&x)
    });
}
