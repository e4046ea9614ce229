//! Scans: table of the behaviour documented for `jax.lax.scan` and related functions, against plain loops.

use burn_backend::FloatDType;

use super::arrays::{close, floats, random};
use super::ext::scan::{self as scans, Memory, Options, Policy, scan};
use super::{Tensor, device, ext, numbers};

mod associative;
mod checkpoints;
mod errors;
mod fixed;
mod forwarding;
mod gradients;
mod jax;
#[rustfmt::skip]
mod jax_numbers;
mod kinds;
mod loops;
mod routines;
mod steps;

const POLICIES: [Memory; 7] = [
    Memory::StoreAll,
    Memory::Bounded(Policy::Sqrt),
    Memory::Bounded(Policy::Carries),
    Memory::Bounded(Policy::Segment(1)),
    Memory::Bounded(Policy::Segment(4)),
    Memory::Bounded(Policy::Revolve(1)),
    Memory::Bounded(Policy::Revolve(3)),
];

/// The final carry and the ys.
type Scanned<S, YS = ()> = scans::Result<(S, YS)>;
type Sum = (Tensor<1>, Tensor<2>);

/// Running sums.
fn sums(xs: Tensor<2>, options: &Options) -> Sum {
    let init = Tensor::<1>::zeros([xs.dims()[1]], &device()).cast(FloatDType::F64);
    let step = |(): (), c: Tensor<1>, x: Tensor<1>| {
        let c = c + x;
        (c.clone(), c)
    };
    scan(step, (), init, xs, options).unwrap()
}

/// `c ← tanh(W c + x)`, y = c x, which depends on every operand.
type Rnn = (Tensor<2>, Tensor<2>, Tensor<3>);

fn rnn(w: Tensor<2>, c: Tensor<2>, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let next = (c.matmul(w) + x.clone()).tanh();
    (next.clone(), next * x)
}
