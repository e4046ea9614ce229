//! Operations of burn-t4a on a GPU backend, against naive loops and the engine: on `Wgpu`, or `Cuda` with the feature
//! `cuda`, without fusion; a module tests the fused backends.
//!
//! Without a GPU they run on Mesa's software Vulkan: `CUBECL_WGPU_DEFAULT_DEVICE=Cpu`. Features that it lacks or
//! computes incorrectly are tested on CUDA only: functions of `f64`, `bf16`.

mod arrays;
mod blocks;
mod complex;
mod contractions;
mod elements;
mod examples;
mod factorisations;
mod fused;
mod kernels;
mod programs;
mod scans;
mod settings;
#[cfg(feature = "cuda")]
mod solver;
mod user;

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use burn_t4a::ext::einsum::einsum;
use burn_t4a::ext::operation::Operations;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_gpu_tests::{Card, CardDevice, Fused};

/// Backends under test, and the engine, with tapes.
type Gpu = Autodiff<Card>;
type Engine = Autodiff<BurnT4a>;

/// A backend of the tests.
trait Tested: Operations {
    fn place() -> Self::Device;
}

impl Tested for Card {
    fn place() -> CardDevice {
        CardDevice::default()
    }
}
impl Tested for Fused {
    fn place() -> CardDevice {
        CardDevice::default()
    }
}
impl Tested for BurnT4a {
    fn place() -> T4aDevice {
        T4aDevice
    }
}
impl<B: Tested> Tested for Autodiff<B> {
    fn place() -> B::Device {
        B::place()
    }
}

/// Pseudo-random numbers in [−1, 1].
fn noise(n: usize, seed: usize) -> Vec<f32> {
    let mut state = seed as u64 * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Small integers, so that ties occur.
fn steps(n: usize, seed: usize) -> Vec<f32> {
    noise(n, seed).into_iter().map(|x| (x * 4.0).round()).collect()
}

fn tensor<B: Tested, const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &B::place())
}

/// Product of matrices, or of batches of them, in full precision: Burn's own on CUDA rounds `f32` and lacks `f64`.
fn times<B: Operations, const D: usize>(a: Tensor<B, D>, b: Tensor<B, D>) -> Tensor<B, D> {
    let text = if D == 3 { "bij,bjk->bik" } else { "ij,jk->ik" };
    einsum(text, [&a, &b]).unwrap()
}

fn numbers<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f32> {
    if x.shape().num_elements() == 0 {
        // CubeCL for CUDA has no memory to read.
        return Vec::new();
    }
    x.into_data().convert::<f32>().to_vec().unwrap()
}

/// Asserts equal elements, including infinities and NaN, up to `tolerance` times the largest finite element.
fn assert_close(given: &[f32], expected: &[f32], tolerance: f32, of: &str) {
    assert_eq!(given.len(), expected.len(), "{of}");
    let finite = |x: &&f32| x.is_finite();
    let scale = expected.iter().filter(finite).fold(0.0f32, |m, x| m.max(x.abs()));
    for (i, (g, e)) in given.iter().zip(expected).enumerate() {
        let same = g == e || (g.is_nan() && e.is_nan()) || (g - e).abs() <= tolerance * scale;
        assert!(same, "{of}: {g} at {i}, expected {e}");
    }
}
