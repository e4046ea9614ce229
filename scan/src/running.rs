//! Cumulative sums, products, extrema and log-sum-exp of engine tensors.

use t4a_algebra::{Float, Numeric, Real};
use t4a_tensor::route::{Path, Route};
use t4a_tensor::{AnyTensor, DType, Element, Result, Tensor, TensorError};

use crate::affine;
use crate::lanes::{ComposedMap, Extent, LaneOperand, LaneStep, PerLane, Walk, Walked, walk};
use crate::operand::{self, computed_in, elements};

/// The cumulative operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Running {
    /// `Σ x`.
    Sum,
    /// `Π x`.
    Product,
    /// `max x`; NaN from the first NaN on.
    Max,
    /// `min x`; NaN from the first NaN on.
    Min,
    /// `ln Σ eˣ`, exact at ±∞.
    LogSumExp,
}

impl Running {
    /// All operations.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Product, Self::Max, Self::Min, Self::LogSumExp];

    /// Name in error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "cumsum",
            Self::Product => "cumprod",
            Self::Max => "cummax",
            Self::Min => "cummin",
            Self::LogSumExp => "logcumsumexp",
        }
    }
}

/// Accumulates along an axis, from its end with `reverse`: `yᵢ = x₀ ⊕ … ⊕ xᵢ`.
///
/// Dtypes: sums and products of all numbers, where integers wrap and 16-bit floats are accumulated in
/// `f32`; extrema of real numbers; extrema of `bool`, which are *any* and *all*; log-sum-exp of floats.
///
/// Errors do not grow along the axis, relative to the magnitude of the terms. Sums are added in runs of 32 elements, and the
/// rounding errors of the sum of runs are kept: |error of yᵢ| ≤ 36·ε·Σ|xⱼ| for up to 1/ε floats, usually below 2·ε·Σ|xⱼ|.
/// The sum in log-sum-exp has a relative error of at most (36 + 3k)·ε if the maximum has changed k times. Products of i
/// factors have i roundings.
///
/// Cost: one read and one write per element, two reads for a few long lanes of floats; views are copied first. A sum
/// that overflows or has terms that are not finite is computed twice. Sums in runs take at most 5 % more time than sums one
/// by one (bench `scan`, one thread, AMD EPYC, AVX-512).
///
/// ```
/// use t4a_scan::{Running, running};
/// use t4a_tensor::{AnyTensor, Tensor};
/// let x = AnyTensor::from(Tensor::from_vec(vec![1i32, 2, 3], &[3])?);
/// let y = running(Running::Sum, &x, 0, true)?;
/// assert_eq!(y.typed::<i32>()?.to_vec()?, [6, 5, 3]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Axis`], [`TensorError::DTypeUnsupported`], `OutOfMemory`.
pub fn running(kind: Running, x: &AnyTensor, axis: usize, reverse: bool) -> Result<AnyTensor> {
    let (op, dtype) = (kind.name(), x.dtype());
    operand::axis(op, axis, x.shape())?;
    if !dtype.is_float() {
        return exact(kind, x, axis, reverse);
    }
    let wide = x.clone().cast(dtype.accumulator())?.to_contiguous()?;
    let place = ScanAxis { shape: x.shape(), axis, reverse };
    let y = computed_in!(op, dtype, T => match kind {
        Running::Sum => place.sum::<T>(&wide),
        Running::Product => place.run::<T, _, 1, 3>(affine::ProductStep, &wide, [T::ONE]),
        Running::Max => place.run::<T, _, 1, 1>(RunningMaximum, &wide, [T::LOWEST]),
        Running::Min => place.run::<T, _, 1, 1>(RunningMinimum, &wide, [T::HIGHEST]),
        Running::LogSumExp => place.run::<T, _, 3, 3>(RunningLogSumExp, &wide, [T::LOWEST, T::ZERO, T::ZERO]),
    })?;
    let route = Route::promoted(Path::Fused, dtype.accumulator() != dtype);
    Ok(y.cast(dtype)?.with_route(route))
}

/// Dtypes that are not floats, with the loops of the engine; `bool` as bytes.
fn exact(kind: Running, x: &AnyTensor, axis: usize, reverse: bool) -> Result<AnyTensor> {
    let (op, dtype) = (kind.name(), x.dtype());
    let flip = |x: AnyTensor| if reverse { x.flip(&[axis]) } else { Ok(x) };
    let extremum = matches!(kind, Running::Max | Running::Min);
    let x = match (dtype, extremum) {
        (DType::Bool, true) => x.clone().cast(DType::U8)?,
        _ => x.clone(),
    };
    let x = flip(x)?;
    flip(match kind {
        Running::Sum => x.cumsum(axis),
        Running::Product => x.cumprod(axis),
        Running::Max => x.cummax(axis),
        Running::Min => x.cummin(axis),
        Running::LogSumExp => Err(TensorError::DTypeUnsupported { op, dtype, expected: "a float" }),
    }?)?
    .cast(dtype)
}

/// Shape, axis and direction of a scan.
struct ScanAxis<'a> {
    shape: &'a [usize],
    axis: usize,
    reverse: bool,
}

impl ScanAxis<'_> {
    fn run<T, K, const S: usize, const R: usize>(
        &self,
        kernel: K,
        x: &AnyTensor,
        start: [T; S],
    ) -> Result<AnyTensor>
    where
        T: Element,
        AnyTensor: From<Tensor<T>>,
        K: LaneStep<T, 1, S, 1> + ComposedMap<T, 1, S, R>,
    {
        let [y] = self.walked(kernel, x, start)?.outputs;
        AnyTensor::from(y).reshape(self.shape)
    }

    /// The running sum; if a lane ends with a sum that is not finite, once more in runs of one element.
    fn sum<T>(&self, x: &AnyTensor) -> Result<AnyTensor>
    where
        T: Element + Float,
        AnyTensor: From<Tensor<T>>,
    {
        let Walked { outputs: [y], last } = self.walked(RunningSum::<false>, x, [T::ZERO; 2])?;
        if last.iter().all(|last| elements(last).iter().all(|x| x.is_finite())) {
            return AnyTensor::from(y).reshape(self.shape);
        }
        drop(y);
        self.run(RunningSum::<true>, x, [T::ZERO; 2])
    }

    fn walked<T, K, const S: usize, const R: usize>(
        &self,
        kernel: K,
        x: &AnyTensor,
        start: [T; S],
    ) -> Result<Walked<T, S, 1>>
    where
        T: Element,
        AnyTensor: From<Tensor<T>>,
        K: LaneStep<T, 1, S, 1> + ComposedMap<T, 1, S, R>,
    {
        let over = Walk {
            extent: Extent::new(self.shape, self.axis),
            reverse: self.reverse,
            sources: [LaneOperand::now(elements(x.typed::<T>()?))],
            start: start.map(PerLane::Same),
        };
        walk(kernel, &over)
    }
}

/// State: the sum of all earlier runs, and that of the current run with the rounding error of the former; output: their sum.
/// With `EACH` a run has one element, because a sum of more may overflow although no result does.
#[derive(Clone, Copy)]
struct RunningSum<const EACH: bool>;

/// `m ← max(m, x)`.
#[derive(Clone, Copy)]
struct RunningMaximum;

/// `m ← min(m, x)`.
#[derive(Clone, Copy)]
struct RunningMinimum;

/// `m ← max(m, x)`, `s = Σ e^(x − m)` in runs as [`RunningSum`]; output `m + ln s`.
#[derive(Clone, Copy)]
struct RunningLogSumExp;

/// `[x + y, rounding error]`, exact (Knuth); a sum that is not finite has error 0.
#[inline(always)]
fn sum_and_error<T: Float>(x: T, y: T) -> [T; 2] {
    let sum = x.add(y);
    let added = sum.sub(x);
    let error = x.sub(sum.sub(added)).add(y.sub(added));
    [sum, if error.is_finite() { error } else { T::ZERO }]
}

impl<T: Float, const EACH: bool> LaneStep<T, 1, 2, 1> for RunningSum<EACH> {
    const COST: usize = if EACH { 7 } else { 2 };
    const RESTARTS: bool = !EACH;
    #[inline(always)]
    fn step(self, [before, run]: [T; 2], [x]: [T; 1]) -> ([T; 2], [T; 1]) {
        let run = run.add(x);
        let state = if EACH { sum_and_error(before, run) } else { [before, run] };
        (state, [state[0].add(state[1])])
    }
    #[inline(always)]
    fn restart(self, [before, run]: [T; 2]) -> [T; 2] {
        sum_and_error(before, run)
    }
}

impl<T: Float, const EACH: bool> LaneStep<T, 1, 2, 0> for RunningSum<EACH> {
    const COST: usize = <Self as LaneStep<T, 1, 2, 1>>::COST;
    const RESTARTS: bool = !EACH;
    #[inline(always)]
    fn step(self, state: [T; 2], x: [T; 1]) -> ([T; 2], [T; 0]) {
        (LaneStep::<T, 1, 2, 1>::step(self, state, x).0, [])
    }
    #[inline(always)]
    fn restart(self, state: [T; 2]) -> [T; 2] {
        LaneStep::<T, 1, 2, 1>::restart(self, state)
    }
}

/// The sum of two sums of runs before and the current run.
#[inline(always)]
fn both<T: Float>([x, run]: [T; 2], [y, further]: [T; 2]) -> [T; 2] {
    let [sum, error] = sum_and_error(x, y);
    sum_and_error(sum, error.add(run).add(further))
}

impl<T: Float, const EACH: bool> ComposedMap<T, 1, 2, 2> for RunningSum<EACH> {
    fn identity(self) -> [T; 2] {
        [T::ZERO; 2]
    }
    fn enter(self, total: [T; 2], state: [T; 2]) -> Option<[T; 2]> {
        // The sum of a chunk may overflow although the whole sum does not.
        total[0].add(total[1]).is_finite().then(|| both(state, total))
    }
}

/// Kernels whose state is also the output, so chunk totals are states.
macro_rules! selfsame {
    ($($kernel:ident |$s:ident, $x:ident| $e:expr, $identity:expr;)*) => {$(
        impl<T: Float> LaneStep<T, 1, 1, 1> for $kernel {
            #[inline(always)]
            fn step(self, [$s]: [T; 1], [$x]: [T; 1]) -> ([T; 1], [T; 1]) {
                let y = $e;
                ([y], [y])
            }
        }
        impl<T: Float> LaneStep<T, 1, 1, 0> for $kernel {
            #[inline(always)]
            fn step(self, state: [T; 1], x: [T; 1]) -> ([T; 1], [T; 0]) {
                (LaneStep::<T, 1, 1, 1>::step(self, state, x).0, [])
            }
        }
        impl<T: Float> ComposedMap<T, 1, 1, 1> for $kernel {
            fn identity(self) -> [T; 1] {
                [$identity]
            }
            fn enter(self, total: [T; 1], state: [T; 1]) -> Option<[T; 1]> {
                Some(LaneStep::<T, 1, 1, 1>::step(self, state, total).0)
            }
        }
    )*};
}

selfsame! {
    RunningMaximum |s, x| s.max(x), T::LOWEST;
    RunningMinimum |s, x| s.min(x), T::HIGHEST;
}

/// Factors of the sums relative to the maxima `m` and `n` that make them relative to the larger one.
#[inline(always)]
fn factors<T: Float>(m: T, n: T) -> (T, [T; 2]) {
    // The distance of equal infinities is 0.
    let distance = if m == n { T::ZERO } else { m.sub(n).abs() };
    let e = distance.neg().exp();
    // NaN is not larger; its factor makes the sum NaN.
    if n > m { (n, [e, T::ONE]) } else { (m, [T::ONE, e]) }
}

impl<T: Float> LaneStep<T, 1, 3, 1> for RunningLogSumExp {
    const COST: usize = 30;
    const RESTARTS: bool = true;
    #[inline(always)]
    fn step(self, state: [T; 3], x: [T; 1]) -> ([T; 3], [T; 1]) {
        let (state, []) = LaneStep::<T, 1, 3, 0>::step(self, state, x);
        let [m, before, run] = state;
        (state, [m.add(before.add(run).ln())])
    }
    #[inline(always)]
    fn restart(self, state: [T; 3]) -> [T; 3] {
        LaneStep::<T, 1, 3, 0>::restart(self, state)
    }
}

impl<T: Float> LaneStep<T, 1, 3, 0> for RunningLogSumExp {
    const COST: usize = 15;
    const RESTARTS: bool = true;
    #[inline(always)]
    fn step(self, [m, before, run]: [T; 3], [x]: [T; 1]) -> ([T; 3], [T; 0]) {
        let (top, [old, new]) = factors(m, x);
        ([top, before.mul(old), run.mul_add(old, new)], [])
    }
    #[inline(always)]
    fn restart(self, [m, before, run]: [T; 3]) -> [T; 3] {
        let [before, run] = sum_and_error(before, run);
        [m, before, run]
    }
}

impl<T: Float> ComposedMap<T, 1, 3, 3> for RunningLogSumExp {
    fn identity(self) -> [T; 3] {
        [T::NEG_INFINITY, T::ZERO, T::ZERO]
    }
    fn enter(self, [n, y, further]: [T; 3], [m, x, run]: [T; 3]) -> Option<[T; 3]> {
        let (top, [old, new]) = factors(m, n);
        let [before, run] = both([x, run].map(|x| x.mul(old)), [y, further].map(|y| y.mul(new)));
        Some([top, before, run])
    }
}
