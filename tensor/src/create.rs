//! Tensors of given values and of regular sequences: `full`, `from_fn`, `arange`, `linspace`, `eye`.

use t4a_algebra::{Float, Numeric, Scalar};

use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::number::{FromNumber, Number};
use crate::output::Output;
use crate::tensor::Tensor;

impl<T: Scalar> Tensor<T> {
    /// Copies elements in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::from_vec`].
    pub fn from_slice(data: &[T], shape: &[usize]) -> Result<Self> {
        Self::layout_for("from_slice", data.len(), shape)?;
        Ok(Output::new("from_slice", shape)?.write(|out| out.copy_from(data)))
    }

    /// A tensor of equal elements.
    ///
    /// # Errors
    /// [`TensorError::SizeOverflow`], [`TensorError::OutOfMemory`].
    pub fn full(shape: &[usize], value: T) -> Result<Self> {
        Ok(Output::new("full", shape)?.write(|out| out.fill(value)))
    }

    /// A tensor whose element at row-major position `i` is `f(i)`.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    pub fn from_fn(shape: &[usize], f: impl FnMut(usize) -> T) -> Result<Self> {
        Ok(Output::new("from_fn", shape)?.write(|out| out.each(f)))
    }
}

impl<T: Numeric> Tensor<T> {
    /// A tensor of zeros.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    pub fn zeros(shape: &[usize]) -> Result<Self> {
        Self::full(shape, T::ZERO)
    }

    /// A tensor of ones.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    pub fn ones(shape: &[usize]) -> Result<Self> {
        Self::full(shape, T::ONE)
    }
}

/// Number of elements of `start, start + step, …` before `end`.
fn steps(op: &'static str, start: Number, end: Number, step: Number) -> Result<usize> {
    let reject = |message: &str| Err(TensorError::value(op, message));
    let count = match (start.as_integer(), end.as_integer(), step.as_integer()) {
        (_, _, Some(0)) => return reject("the step must not be 0"),
        (Some(start), Some(end), Some(step)) => {
            // Rounded up; at most 2⁶⁵ apart.
            let distance = end - start;
            let towards = (distance > 0) == (step > 0) && distance != 0;
            if towards { distance.unsigned_abs().div_ceil(step.unsigned_abs()) } else { 0 }
        }
        _ => {
            let (start, end, step) = (start.to_f64(), end.to_f64(), step.to_f64());
            let finite = start.is_finite() && end.is_finite() && step.is_finite();
            if !finite || step == 0.0 {
                return reject("bounds and step must be finite, and the step not 0");
            }
            // Negative counts saturate to 0.
            ((end - start) / step).ceil() as u128
        }
    };
    let overflow = || TensorError::SizeOverflow { op, shape: vec![usize::MAX] };
    usize::try_from(count).map_err(|_| overflow())
}

/// `start, start + step, …`, with `end` excluded; the step may be negative.
///
/// If all three are integers, elements are exact or wrap, as in [`Number::to`]; otherwise they are
/// `start + i·step` in `f64`, rounded once more.
///
/// ```
/// use t4a_tensor::{Number, create::arange};
/// let x = arange::<i32>(Number::Int(5), Number::Int(0), Number::Int(-2))?;
/// assert_eq!(x.to_vec()?, [5, 3, 1]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Value`] for a step of 0 or bounds that are not finite; `SizeOverflow`.
pub fn arange<T: FromNumber>(start: Number, end: Number, step: Number) -> Result<Tensor<T>> {
    let count = steps("arange", start, end, step)?;
    // An error before work if the elements could not be addressed.
    Layout::contiguous("arange", &[count], size_of::<T>())?;
    match (start.as_integer(), step.as_integer()) {
        (Some(start), Some(step)) if end.as_integer().is_some() => {
            Tensor::from_fn(&[count], |i| integer(start + i as i128 * step).to())
        }
        _ => {
            let (start, step) = (start.to_f64(), step.to_f64());
            Tensor::from_fn(&[count], |i| Number::Float((i as f64).mul_add(step, start)).to())
        }
    }
}

/// The first and the last element of an integer [`arange`], if there is one.
pub(crate) fn ends(start: Number, end: Number, step: Number) -> Result<Option<(i128, i128)>> {
    let count = steps("arange", start, end, step)? as i128;
    Ok(match (start.as_integer(), step.as_integer()) {
        (Some(start), Some(step)) if count > 0 => Some((start, start + (count - 1) * step)),
        _ => None,
    })
}

/// An integer between −2⁶³ and 2⁶⁴.
fn integer(v: i128) -> Number {
    if v < 0 { Number::Int(v as i64) } else { Number::UInt(v as u64) }
}

/// `n` equidistant numbers from `start` to `end`, both included.
///
/// Computed from the nearer end, in `f64`, and rounded to `T`: both ends are exact. A single number is `start`.
///
/// # Errors
/// [`TensorError::OutOfMemory`], `SizeOverflow`.
pub fn linspace<T: Float>(start: f64, end: f64, n: usize) -> Result<Tensor<T>> {
    let last = n.saturating_sub(1);
    let step = (end - start) / last.max(1) as f64;
    Tensor::from_fn(&[n], |i| {
        T::from_f64(match i {
            _ if 2 * i <= last => (i as f64).mul_add(step, start),
            _ => ((last - i) as f64).mul_add(-step, end),
        })
    })
}

/// `outᵢⱼ = 1` if `i = j`, else 0.
///
/// # Errors
/// [`TensorError::OutOfMemory`], `SizeOverflow`.
pub fn eye<T: Numeric>(rows: usize, cols: usize) -> Result<Tensor<T>> {
    let mut out = Tensor::zeros(&[rows, cols])?;
    let diagonal = rows.min(cols);
    out.as_mut_slice()?.iter_mut().step_by(cols + 1).take(diagonal).for_each(|x| *x = T::ONE);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Number::{Float as F, Int, UInt};

    #[test]
    fn ranges_of_integers() {
        let range = |a, b, s| arange::<i64>(a, b, s).unwrap().to_vec().unwrap();
        assert_eq!(range(Int(0), Int(5), Int(2)), [0, 2, 4]);
        assert_eq!(range(Int(5), Int(-2), Int(-3)), [5, 2, -1]);
        assert_eq!(range(Int(5), Int(5), Int(1)), []);
        assert_eq!(range(Int(5), Int(0), Int(1)), []);
        assert_eq!(range(Int(i64::MAX - 2), Int(i64::MAX), Int(1)), [i64::MAX - 2, i64::MAX - 1]);
        let big = arange::<u64>(UInt(u64::MAX - 1), UInt(u64::MAX), Int(1)).unwrap();
        assert_eq!(big.to_vec().unwrap(), [u64::MAX - 1]);
        assert_eq!(
            arange::<f32>(Int(-1), Int(2), Int(1)).unwrap().to_vec().unwrap(),
            [-1., 0., 1.]
        );
        assert!(matches!(arange::<i8>(Int(0), Int(1), Int(0)), Err(TensorError::Value { .. })));
        let huge = arange::<i64>(Int(i64::MIN), Int(i64::MAX), Int(1));
        assert!(matches!(huge, Err(TensorError::SizeOverflow { .. })));
    }

    #[test]
    fn ranges_of_floats() {
        let range = |a, b, s| arange::<f64>(F(a), F(b), F(s)).unwrap().to_vec().unwrap();
        assert_eq!(range(0.0, 1.0, 0.25), [0.0, 0.25, 0.5, 0.75]);
        assert_eq!(range(1.0, 0.0, -0.4), [1.0, 0.6, 0.19999999999999996]);
        assert_eq!(range(1.0, 0.0, 0.5), []);
        assert!(arange::<f32>(F(0.0), F(f64::NAN), F(1.0)).is_err());
        assert!(arange::<f32>(F(0.0), F(1.0), F(0.0)).is_err());
        assert!(arange::<f32>(F(0.0), F(1e300), F(1e-300)).is_err());
    }

    #[test]
    fn linspace_hits_both_ends() {
        for n in [2, 3, 10, 1001] {
            let x = linspace::<f64>(-0.1, 0.3, n).unwrap().to_vec().unwrap();
            assert_eq!((x[0], x[n - 1], x.len()), (-0.1, 0.3, n));
            assert!(x.windows(2).all(|w| (w[1] - w[0] - 0.4 / (n - 1) as f64).abs() < 1e-15));
        }
        assert_eq!(linspace::<f32>(2.0, 3.0, 1).unwrap().to_vec().unwrap(), [2.0]);
        assert_eq!(linspace::<f32>(2.0, 3.0, 0).unwrap().numel(), 0);
    }

    #[test]
    fn eye_is_the_identity() {
        for (rows, cols) in [(3, 3), (2, 4), (4, 2), (0, 3), (3, 0), (1, 1)] {
            let x = eye::<i8>(rows, cols).unwrap();
            for at in crate::testing::indices(&[rows, cols]) {
                assert_eq!(x.get(&at), Some(i8::from(at[0] == at[1])));
            }
        }
    }
}
