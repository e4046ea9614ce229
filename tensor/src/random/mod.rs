//! Random tensors: seeded, reproducible, and the same on any number of threads.
//!
//! ```text
//! philox    128 random bits from (seed, stream, block)
//! draw      words → elements: uniform, normal, Bernoulli, integers
//! ```
//!
//! A [`Generator`] has a seed and counts the tensors drawn from it: each tensor is a separate stream. [`global`] is the
//! default generator of the process.

mod draw;
mod philox;

use std::hash::{BuildHasher, Hasher};
use std::sync::Mutex;

use t4a_algebra::{Float, Int, Numeric, Scalar};

use self::draw::{Bernoulli, Normal, TruncatedDraw, Uniform, UniformInt, UniformWide, fill};
use self::philox::PhiloxStream;
use crate::error::{Result, TensorError};
use crate::number::Number;
use crate::tensor::Tensor;

pub use draw::Sample;

/// A source of random tensors.
#[derive(Debug)]
pub struct Generator(Mutex<Option<PhiloxStream>>);

impl Generator {
    /// A generator with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(Mutex::new(Some(PhiloxStream { seed, number: 0 })))
    }

    /// Starts over with a seed.
    pub fn seed(&self, seed: u64) {
        *self.lock() = Some(PhiloxStream { seed, number: 0 });
    }

    /// A stream that no one else gets.
    fn stream(&self) -> PhiloxStream {
        let mut state = self.lock();
        let stream = state.unwrap_or_else(|| PhiloxStream { seed: entropy(), number: 0 });
        *state = Some(PhiloxStream { number: stream.number.wrapping_add(1), ..stream });
        stream
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PhiloxStream>> {
        // A panic while holding the lock leaves the state valid.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

static GLOBAL: Generator = Generator(Mutex::new(None));

/// The process-wide generator; seeded by the system until [`seed`] is called.
pub fn global() -> &'static Generator {
    &GLOBAL
}

/// Starts the process-wide generator over with a seed.
pub fn seed(seed: u64) {
    GLOBAL.seed(seed);
}

/// A seed that differs from run to run: the standard library seeds its hash maps from the system.
fn entropy() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// A distribution of elements.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Distribution {
    /// Uniform on [0, 1) for floats, over all values for integers, 0 or 1 for `bool`.
    #[default]
    Standard,
    /// Uniform on [low, high).
    Uniform(Number, Number),
    /// 1 with this probability, else 0.
    Bernoulli(f64),
    /// Normal with this mean and standard deviation; integers truncate it.
    Normal(f64, f64),
}

fn reject<T>(op: &'static str, message: String) -> Result<T> {
    Err(TensorError::value(op, message))
}

/// Uniform floats on [low, high); equal bounds give that number.
///
/// ```
/// use t4a_tensor::random::{Generator, uniform};
/// let (a, b) = (Generator::new(7), Generator::new(7));
/// let x = uniform::<f32>(&a, &[1000], -1.0, 1.0)?;
/// assert_eq!(x.to_vec()?, uniform::<f32>(&b, &[1000], -1.0, 1.0)?.to_vec()?);
/// assert!(x.to_vec()?.iter().all(|v| (-1.0..1.0).contains(v)));
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Value`] unless both bounds and their difference are finite and `low ≤ high`.
pub fn uniform<T: Sample>(
    generator: &Generator,
    shape: &[usize],
    low: f64,
    high: f64,
) -> Result<Tensor<T>> {
    let op = "uniform";
    let (first, end) = (T::from_f64(low), T::from_f64(high));
    let span = end.widen().sub(first.widen());
    if !(low <= high && first.is_finite() && end.is_finite() && span.is_finite()) {
        return reject(op, format!("bounds must be finite and in order, given [{low}, {high})"));
    }
    let last = if first < end { end.next_down() } else { first };
    fill(op, shape, generator.stream(), Uniform { low: first.widen(), span, high: end, last })
}

/// Normal floats with the given mean and standard deviation.
///
/// # Errors
/// [`TensorError::Value`] unless both are finite and the deviation is not negative.
pub fn normal<T: Sample>(
    generator: &Generator,
    shape: &[usize],
    mean: f64,
    deviation: f64,
) -> Result<Tensor<T>> {
    let draw = normal_draw("normal", mean, deviation)?;
    fill("normal", shape, generator.stream(), draw)
}

fn normal_draw<T: Sample>(op: &'static str, mean: f64, deviation: f64) -> Result<Normal<T>> {
    if !(mean.is_finite() && deviation.is_finite() && deviation >= 0.0) {
        return reject(
            op,
            format!(
                "mean and deviation must be finite, deviation ≥ 0, given ({mean}, {deviation})"
            ),
        );
    }
    Ok(Normal { mean: T::Acc::from_f64(mean), deviation: T::Acc::from_f64(deviation) })
}

/// Normal numbers truncated to integers, saturating.
///
/// # Errors
/// As [`normal`].
pub fn normal_int<I: Int>(
    generator: &Generator,
    shape: &[usize],
    mean: f64,
    deviation: f64,
) -> Result<Tensor<I>> {
    let draw: Normal<f64> = normal_draw("normal", mean, deviation)?;
    fill("normal", shape, generator.stream(), TruncatedDraw(draw))
}

/// `values[1]` with the given probability, to 2⁻³², else `values[0]`.
///
/// # Errors
/// [`TensorError::Value`] for a probability outside of [0, 1].
pub fn bernoulli<T: Scalar>(
    generator: &Generator,
    shape: &[usize],
    probability: f64,
    values: [T; 2],
) -> Result<Tensor<T>> {
    let op = "bernoulli";
    if !(0.0..=1.0).contains(&probability) {
        return reject(op, format!("the probability must be in [0, 1], given {probability}"));
    }
    let threshold = (probability * (1u64 << 32) as f64).round() as u64;
    fill(op, shape, generator.stream(), Bernoulli { threshold, values })
}

/// Uniform integers in [low, high).
///
/// # Errors
/// [`TensorError::Value`] unless `low < high`.
pub fn uniform_int<I: Int>(
    generator: &Generator,
    shape: &[usize],
    low: I,
    high: I,
) -> Result<Tensor<I>> {
    if low >= high {
        return reject("uniform", format!("the range [{low:?}, {high:?}) is empty"));
    }
    // The difference as an unsigned number, independent of the sign of its wrapped value.
    let wrapped = high.sub(low);
    let span = wrapped.to_usize().map_or_else(|| wrapped.to_i64() as u64, |span| span as u64);
    uniform_span(generator, shape, low, span & (u64::MAX >> (64 - I::BITS)))
}

/// Uniform integers `low + k` with `k < span`; a span of 0 means 2⁶⁴.
pub(crate) fn uniform_span<I: Int>(
    generator: &Generator,
    shape: &[usize],
    low: I,
    span: u64,
) -> Result<Tensor<I>> {
    let stream = generator.stream();
    if span != 0 && span <= 1 << 32 {
        return fill("uniform", shape, stream, UniformInt { low, span });
    }
    fill("uniform", shape, stream, UniformWide { low, span })
}

#[cfg(test)]
mod tests;
