//! Structure of the recorded tape: one node per operation, operands used twice, constants, empty tensors.

use burn_autodiff::Autodiff;
use burn_backend::{DType, Distribution};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::structured::*;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::Tensor;

use super::cases::{Operands, Rng, close, numbers, on, run};

type AD = Autodiff<BurnT4a>;
type G = GradedTensor<AD, FermionNumber>;

/// Depth of a node: the longest path from a leaf; leaves have depth 1.
fn depth(x: &Floats<AD>) -> usize {
    x.0.node.order
}

#[test]
fn an_operation_is_one_node() {
    let one = [
        "permute",
        "repartition",
        "fuse",
        "split",
        "trace",
        "conj",
        "dagger",
        "flip",
        "twist",
        "contract",
        "outer",
        "alias",
        "einsum",
        "inner",
        "norm",
    ];
    for name in one {
        let of = Operands::new(name, false, 4);
        let x: Vec<G> =
            on::<AD>(&of, &Rng::new(2).numbers(of.len())).iter().map(G::require_grad).collect();
        let leaf = depth(x[0].re());
        let y = run(name, &x).unwrap();
        assert_eq!(depth(&y[0]) - leaf, 1, "{name}");
    }
}

fn matrix(seed: u64) -> G {
    let mut rng = Rng::new(seed);
    let leg = rng.leg();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], FermionNumber(0), 1).unwrap();
    let device = T4aDevice;
    G::random(&spec, Distribution::Normal(0.0, 1.0), (&device, DType::F64)).unwrap()
}

#[test]
fn an_operand_used_twice_gets_both_cotangents() {
    let x = matrix(3).require_grad();
    let square = |x: &G, y: &G| x.contract(y, &[1], &[0]).unwrap().flat().sum();
    let both = x.grad(&square(&x, &x).backward()).unwrap();
    let constant = G::from_inner(&x.valid());
    let left = x.grad(&square(&x, &constant).backward()).unwrap();
    let right = x.grad(&square(&constant, &x).backward()).unwrap();
    let sum = numbers(left.flat() + right.flat());
    close("both sides", &numbers(both.flat()), &sum, 1e-13);
    assert!(constant.grad(&square(&x, &constant).backward()).is_none());
    // A result used twice.
    let y = x.contract(&x, &[1], &[0]).unwrap().flat();
    let twice = x.grad(&(y.clone() + y).sum().backward()).unwrap();
    close("consumed twice", &numbers(twice.flat()), &numbers(both.flat() * 2.0), 1e-13);
}

#[test]
fn the_norm_of_zeros_has_a_finite_gradient() {
    let x = matrix(3).scale(0.0).detach().require_grad();
    let norm: Tensor<AD, 1> = x.norm().unwrap().tensor().unwrap();
    let grad = x.grad(&norm.backward()).unwrap();
    assert!(numbers(grad.flat()).iter().all(|&g| g == 0.0));
}

#[test]
fn empty_structures_have_empty_gradients() {
    let up = Leg::new([(U1(1), 2)], Direction::Out).unwrap();
    let none = Leg::<U1>::new([], Direction::Out).unwrap();
    let device = T4aDevice;
    let zeros = |legs: &[&Leg<U1>]| {
        let legs = legs.iter().map(|&leg| leg.clone()).collect();
        let spec = Spec::new(legs, U1(0), 1).unwrap();
        GradedTensor::<AD, U1>::zeros(&spec, (&device, DType::F64)).unwrap().require_grad()
    };
    // No allowed block, a leg without sectors, no common charge.
    for (x, y) in [
        (zeros(&[&up, &up]), zeros(&[&up.dual(), &up])),
        (zeros(&[&up, &none]), zeros(&[&none.dual(), &up.dual()])),
    ] {
        let z = x.contract(&y, &[1], &[0]).unwrap();
        let dims: usize = z.flat().dims()[0];
        assert_eq!(dims, z.spec().len());
        assert!(numbers(z.flat()).iter().all(|&z| z == 0.0));
        let gradients = z.flat().sum().backward();
        for t in [&x, &y] {
            if let Some(grad) = t.grad(&gradients) {
                assert_eq!(grad.flat().dims()[0], t.spec().len());
                assert!(numbers(grad.flat()).iter().all(|&g| g == 0.0));
            }
        }
    }
}
