//! Fourier transforms of erased dtype, computed in the accumulator of the dtype.

use super::AnyTensor;
use super::elementwise::{same_dtype, unsupported};
use super::promote::{computed_in, narrow, wide};
use crate::error::Result;
use crate::fft;

/// Errors of all of them: `Axis`, `Value` for a length of 0, `ShapeMismatch`, `DTypeMismatch`,
/// `DTypeUnsupported`, `SizeOverflow`, `OutOfMemory`.
impl AnyTensor {
    /// Real and imaginary part; see [`fft::rfft`].
    pub fn rfft(&self, axis: usize, n: Option<usize>) -> Result<(Self, Self)> {
        computed_in!("rfft", self.dtype(), T => {
            let (re, im) = fft::rfft(&wide::<T>(self)?, axis, n)?;
            Ok((narrow(re, self.dtype())?, narrow(im, self.dtype())?))
        })
    }

    /// See [`fft::irfft`]; `self` is the real part.
    pub fn irfft(&self, im: &Self, axis: usize, n: Option<usize>) -> Result<Self> {
        same_dtype("irfft", self, im)?;
        computed_in!("irfft", self.dtype(), T => {
            narrow(fft::irfft(&wide::<T>(self)?, &wide::<T>(im)?, axis, n)?, self.dtype())
        })
    }

    /// Real and imaginary part; see [`fft::fft`]. `self` is the real part.
    pub fn fft(&self, im: &Self, axis: usize, n: Option<usize>) -> Result<(Self, Self)> {
        same_dtype("fft", self, im)?;
        computed_in!("fft", self.dtype(), T => {
            let (re, im) = fft::fft(&wide::<T>(self)?, &wide::<T>(im)?, axis, n)?;
            Ok((narrow(re, self.dtype())?, narrow(im, self.dtype())?))
        })
    }

    /// Real and imaginary part; see [`fft::ifft`]. `self` is the real part.
    pub fn ifft(&self, im: &Self, axis: usize, n: Option<usize>) -> Result<(Self, Self)> {
        same_dtype("ifft", self, im)?;
        computed_in!("ifft", self.dtype(), T => {
            let (re, im) = fft::ifft(&wide::<T>(self)?, &wide::<T>(im)?, axis, n)?;
            Ok((narrow(re, self.dtype())?, narrow(im, self.dtype())?))
        })
    }
}
