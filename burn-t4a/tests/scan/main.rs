//! Scans, Burn 0.21 only: tangents, second derivatives, reverse passes in a body, checkpoints that keep products,
//! user-defined trees.

use burn_autodiff::Autodiff;
use burn_backend::FloatDType;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::{Memory, Options, Policy, ScanBackend, scan};
use burn_tensor::backend::Backend;
use burn_tensor::{Tensor, TensorData};

mod passes;
mod saved;
mod second;
mod tangents;
mod trees;

type AD = Autodiff<BurnT4a>;

/// Fixed pseudo-random numbers between −1 and 1, in f64.
fn random<B: Backend, const D: usize>(shape: [usize; D], seed: u64) -> Tensor<B, D> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let data: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
    let data = TensorData::new(data, shape);
    Tensor::from_data(data, (&Default::default(), burn_backend::DType::F64))
}

fn numbers<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn floats<B: Backend>(x: &[f64]) -> Tensor<B, 1> {
    let data = TensorData::new(x.to_vec(), [x.len()]);
    Tensor::from_data(data, (&Default::default(), burn_backend::DType::F64))
}

#[track_caller]
fn close(x: &[f64], y: &[f64], tolerance: f64) {
    assert_eq!(x.len(), y.len());
    let size = y.iter().fold(1.0f64, |size, y| size.max(y.abs()));
    for (x, y) in x.iter().zip(y) {
        assert!((x - y).abs() <= tolerance * size, "{x} {y}");
    }
}

const POLICIES: [Memory; 7] = [
    Memory::StoreAll,
    Memory::Bounded(Policy::Sqrt),
    Memory::Bounded(Policy::Carries),
    Memory::Bounded(Policy::Segment(1)),
    Memory::Bounded(Policy::Segment(4)),
    Memory::Bounded(Policy::Revolve(1)),
    Memory::Bounded(Policy::Revolve(3)),
];

type Sum<B> = (Tensor<B, 1>, Tensor<B, 2>);

/// Running sums.
fn sums<B: ScanBackend>(xs: Tensor<B, 2>, options: &Options) -> Sum<B> {
    let init = Tensor::<B, 1>::zeros([xs.dims()[1]], &xs.device()).cast(FloatDType::F64);
    let step = |(): (), c: Tensor<B, 1>, x: Tensor<B, 1>| {
        let c = c + x;
        (c.clone(), c)
    };
    scan(step, (), init, xs, options).unwrap()
}

/// `c ← tanh(W c + x)`, y = c x, which depends on every operand.
type Rnn = (Tensor<AD, 2>, Tensor<AD, 2>, Tensor<AD, 3>);

fn rnn(w: Tensor<AD, 2>, c: Tensor<AD, 2>, x: Tensor<AD, 2>) -> (Tensor<AD, 2>, Tensor<AD, 2>) {
    let next = (c.matmul(w) + x.clone()).tanh();
    (next.clone(), next * x)
}
