//! Discrete Fourier transforms along an axis, of complex tensors as a real and an imaginary part.
//!
//! ```text
//! fft    Xₖ = Σⱼ xⱼ·e^(−2πi·jk/n)            ifft   xⱼ = 1/n·Σₖ Xₖ·e^(2πi·jk/n)
//! rfft   of real x: the elements 0 … ⌊n/2⌋    irfft  x from those, the others being their conjugates
//! ```
//!
//! The length n ≥ 1 is arbitrary: mixed radices, and convolutions if n has large prime factors (crate `t4a-fft`). Lanes
//! along the axis are transformed one by one, multithreaded; for an axis other than the last they are copied to
//! contiguous rows first, and the result is a strided view.

#[cfg(test)]
mod tests;

use smallvec::SmallVec;
use t4a_algebra::Numeric;
pub use t4a_fft::Transform;
use t4a_fft::{Complex, FftDirection, FftError};

use crate::copy::row_major;
use crate::error::{Result, TensorError, check_axis};
use crate::layout::{Dims, numel_of};
use crate::loops::parallel;
use crate::output::{Filled, Fresh, Full, Output, share_with};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Minimum number of elements of a task.
const CHUNK: usize = 1 << 12;

/// Real and imaginary part of a tensor.
pub type Parts<T> = (Tensor<T>, Tensor<T>);

/// Elements 0 … ⌊n/2⌋ of the transform of a real tensor along an axis, real and imaginary part.
///
/// Lanes are truncated to `n` elements or padded with zeros; `None` keeps their length. Cost: O(n·log n) per lane.
///
/// # Errors
/// [`TensorError::Axis`], [`TensorError::Value`] for a length of 0, `SizeOverflow`, `OutOfMemory`.
pub fn rfft<T: Transform>(x: &Tensor<T>, axis: usize, n: Option<usize>) -> Result<Parts<T>> {
    let op = "rfft";
    let n = length(op, x.shape(), axis, n)?;
    let lanes = FftLanes::new(op, x.shape(), axis, n / 2 + 1)?;
    let x = lanes.rows(x)?;
    lanes.write_both(op, |re, im| {
        let plan = T::forward(n);
        let (len, xs) = (lanes.len, x.as_slice().unwrap_or_default());
        let scratch = || {
            let zero = Complex::new(T::ZERO, T::ZERO);
            let line = Filled::new(n, T::ZERO)?;
            let out = Filled::new(n / 2 + 1, zero)?;
            Ok((line, out, Filled::new(plan.get_scratch_len(), zero)?))
        };
        let rows = (re.parts(n / 2 + 1), im.parts(n / 2 + 1));
        let parallel = lanes.worthwhile(n);
        share_with(rows, grain(n), parallel, scratch, |(line, out, scratch), lane, (re, im)| {
            fill(line, &xs[lane * len..][..len], |x| x, T::ZERO);
            plan.process_with_scratch(line, out, scratch).map_err(|e| refused(op, e))?;
            Ok((re.map(out, |z| z.re), im.map(out, |z| z.im)))
        })
    })
}

/// The real tensor with `n` elements along an axis from elements 0 … ⌊n/2⌋ of its transform; `None` means
/// `n = 2·(size − 1)`, which is even.
///
/// Lanes are truncated to ⌊n/2⌋ + 1 elements or padded with zeros. Imaginary parts of element 0, and of element n/2 for
/// even n, are ignored: they are 0 in transforms of real tensors. Cost: as [`rfft`].
///
/// # Errors
/// As [`rfft`]; [`TensorError::ShapeMismatch`].
pub fn irfft<T: Transform>(
    re: &Tensor<T>,
    im: &Tensor<T>,
    axis: usize,
    n: Option<usize>,
) -> Result<Tensor<T>> {
    let op = "irfft";
    same_shape(op, re, im)?;
    check_axis(op, axis, re.rank())?;
    let n = n.unwrap_or((re.shape()[axis].max(1) - 1).saturating_mul(2));
    let n = length(op, re.shape(), axis, Some(n))?;
    let lanes = FftLanes::new(op, re.shape(), axis, n)?;
    let (re, im) = (lanes.rows(re)?, lanes.rows(im)?);
    lanes.write(op, |out| {
        let plan = T::inverse(n);
        let (len, parts) = (lanes.len, slices(&re, &im));
        let zero = Complex::new(T::ZERO, T::ZERO);
        let scale = <T as Numeric>::from_f64(1.0 / n as f64);
        let scratch = || {
            let line = Filled::new(n / 2 + 1, zero)?;
            let out = Filled::new(n, T::ZERO)?;
            Ok((line, out, Filled::new(plan.get_scratch_len(), zero)?))
        };
        let parallel = lanes.worthwhile(n);
        share_with(out.parts(n), grain(n), parallel, scratch, |(line, out, scratch), lane, y| {
            fill_complex(line, parts, lane * len, len);
            line[0].im = T::ZERO;
            if n.is_multiple_of(2) {
                line[n / 2].im = T::ZERO;
            }
            plan.process_with_scratch(line, out, scratch).map_err(|e| refused(op, e))?;
            Ok(y.map(out, |x| Numeric::mul(x, scale)))
        })
    })
}

/// The transform along an axis. Lanes are cut off after `n` elements or filled up with zeros.
///
/// # Errors
/// As [`irfft`].
pub fn fft<T: Transform>(
    re: &Tensor<T>,
    im: &Tensor<T>,
    axis: usize,
    n: Option<usize>,
) -> Result<Parts<T>> {
    complex("fft", [re, im], axis, n, FftDirection::Forward)
}

/// The inverse of [`fft`]. FftLanes are cut off after `n` elements or filled up with zeros.
///
/// # Errors
/// As [`irfft`].
pub fn ifft<T: Transform>(
    re: &Tensor<T>,
    im: &Tensor<T>,
    axis: usize,
    n: Option<usize>,
) -> Result<Parts<T>> {
    complex("ifft", [re, im], axis, n, FftDirection::Inverse)
}

fn complex<T: Transform>(
    op: &'static str,
    [re, im]: [&Tensor<T>; 2],
    axis: usize,
    n: Option<usize>,
    direction: FftDirection,
) -> Result<Parts<T>> {
    same_shape(op, re, im)?;
    let n = length(op, re.shape(), axis, n)?;
    let lanes = FftLanes::new(op, re.shape(), axis, n)?;
    let (re, im) = (lanes.rows(re)?, lanes.rows(im)?);
    lanes.write_both(op, |out_re, out_im| {
        let plan = T::complex(n, direction);
        let (len, parts) = (lanes.len, slices(&re, &im));
        let zero = Complex::new(T::ZERO, T::ZERO);
        let scale = match direction {
            FftDirection::Forward => T::ONE,
            FftDirection::Inverse => <T as Numeric>::from_f64(1.0 / n as f64),
        };
        let scratch =
            || Ok((Filled::new(n, zero)?, Filled::new(plan.get_inplace_scratch_len(), zero)?));
        let rows = (out_re.parts(n), out_im.parts(n));
        let parallel = lanes.worthwhile(n);
        share_with(rows, grain(n), parallel, scratch, |(line, scratch), lane, (re, im)| {
            fill_complex(line, parts, lane * len, len);
            plan.process_with_scratch(line, scratch);
            let re = re.map(line, |z| Numeric::mul(z.re, scale));
            Ok((re, im.map(line, |z| Numeric::mul(z.im, scale))))
        })
    })
}

/// The lanes of a tensor along an axis.
struct FftLanes {
    /// Permutation that moves the axis to the end, and its inverse.
    order: SmallVec<[usize; 6]>,
    back: SmallVec<[usize; 6]>,
    /// Elements of a lane.
    len: usize,
    /// The result with the axis last.
    shape: Dims,
}

impl FftLanes {
    fn new(op: &'static str, x: &[usize], axis: usize, result: usize) -> Result<Self> {
        let mut order: SmallVec<[usize; 6]> = (0..x.len()).filter(|&a| a != axis).collect();
        let mut shape: Dims = order.iter().map(|&a| x[a]).collect();
        order.push(axis);
        shape.push(result);
        numel_of(op, &shape)?;
        let mut back = order.clone();
        for (position, &axis) in order.iter().enumerate() {
            back[axis] = position;
        }
        Ok(Self { order, back, len: x[axis], shape })
    }

    /// The lanes as contiguous rows.
    fn rows<T: Transform>(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        row_major(&x.permute(&self.order)?)
    }

    fn worthwhile(&self, n: usize) -> bool {
        let lanes: usize = self.shape[..self.shape.len() - 1].iter().product();
        parallel::worthwhile(lanes.saturating_mul(n), 2 * (n.ilog2() as usize + 1))
    }

    fn write<T: Transform>(
        &self,
        op: &'static str,
        f: impl FnOnce(Fresh<'_, T>) -> Result<Full<'_, T>>,
    ) -> Result<Tensor<T>> {
        let out = Output::<T>::new(op, &self.shape)?.try_write(|out| match out.len() {
            0 => Ok(out.copy_from(&[])),
            _ => f(out),
        })?;
        out.with_route(Route::native(Path::Fused)).permute(&self.back)
    }

    fn write_both<T: Transform>(
        &self,
        op: &'static str,
        f: impl for<'a> FnOnce(Fresh<'a, T>, Fresh<'a, T>) -> Result<(Full<'a, T>, Full<'a, T>)>,
    ) -> Result<Parts<T>> {
        let (re, im) = (Output::<T>::new(op, &self.shape)?, Output::<T>::new(op, &self.shape)?);
        let (re, im) = re.try_write_both(im, |re, im| match re.len() {
            0 => Ok((re.copy_from(&[]), im.copy_from(&[]))),
            _ => f(re, im),
        })?;
        let route = Route::native(Path::Fused);
        Ok((re.with_route(route).permute(&self.back)?, im.with_route(route).permute(&self.back)?))
    }
}

/// Lanes of a task.
fn grain(n: usize) -> usize {
    (CHUNK / n).max(1)
}

/// The length of a transform.
fn length(op: &'static str, x: &[usize], axis: usize, n: Option<usize>) -> Result<usize> {
    check_axis(op, axis, x.len())?;
    match n.unwrap_or(x[axis]) {
        0 => Err(TensorError::value(op, "a transform of length 0 is not defined")),
        n => Ok(n),
    }
}

fn same_shape<T>(op: &'static str, re: &Tensor<T>, im: &Tensor<T>) -> Result<()> {
    if re.shape() == im.shape() {
        return Ok(());
    }
    Err(TensorError::shapes(op, re.shape(), im.shape(), "parts of one shape"))
}

fn slices<'a, T: Transform>(re: &'a Tensor<T>, im: &'a Tensor<T>) -> [&'a [T]; 2] {
    [re, im].map(|part| part.as_slice().unwrap_or_default())
}

/// The first elements of `x`, and zeros.
fn fill<T: Copy, U>(line: &mut [U], x: &[T], f: impl Fn(T) -> U, zero: U)
where
    U: Copy,
{
    let count = line.len().min(x.len());
    for (line, &x) in line.iter_mut().zip(x) {
        *line = f(x);
    }
    line[count..].fill(zero);
}

fn fill_complex<T: Transform>(
    line: &mut [Complex<T>],
    [re, im]: [&[T]; 2],
    from: usize,
    len: usize,
) {
    fill(line, &re[from..][..len], |re| Complex::new(re, T::ZERO), Complex::new(T::ZERO, T::ZERO));
    for (line, &im) in line.iter_mut().zip(&im[from..][..len]) {
        line.im = im;
    }
}

/// Rejected lengths, which would be an internal error.
fn refused(op: &'static str, error: FftError) -> TensorError {
    TensorError::value(op, error.to_string())
}
