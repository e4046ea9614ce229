//! Complex tensors: Burn 0.22 has no complex dtype, so they are pairs of real ones.
//!
//! Gradients are those of the parts. For a real loss L the pair of gradients is
//! ∂L/∂Re + i ∂L/∂Im: 2z for |z|².

use std::ops::{Add, Div, Mul, Neg, Sub};

use burn_backend::Shape;
use burn_tensor::Tensor;
use t4a_einsum::agree;

use crate::error::{ExtError, Result};

/// `re + i im`. Both parts have one shape, dtype and device.
#[derive(Clone, Debug)]
pub struct Complex<const D: usize> {
    re: Tensor<D>,
    im: Tensor<D>,
}

impl<const D: usize> Complex<D> {
    /// `re + i im`.
    ///
    /// # Errors
    /// [`ExtError::ComplexShape`]; [`ExtError::Mismatch`] for dtypes and devices.
    pub fn new(re: Tensor<D>, im: Tensor<D>) -> Result<Self> {
        const OP: &str = "complex";
        if re.shape() != im.shape() {
            return Err(ExtError::ComplexShape { op: OP, re: re.shape(), im: im.shape() });
        }
        let described = |x: &Tensor<D>| (x.dtype(), x.device(), ());
        agree(OP, &[described(&re), described(&im)])?;
        Ok(Self { re, im })
    }

    /// A real tensor.
    pub fn from_real(re: Tensor<D>) -> Self {
        let im = re.zeros_like();
        Self { re, im }
    }

    /// `r e^{iφ}`.
    ///
    /// # Errors
    /// As [`Complex::new`].
    pub fn from_polar(r: Tensor<D>, phi: Tensor<D>) -> Result<Self> {
        let Self { re: r, im: phi } = Self::new(r, phi)?;
        Ok(Self { re: r.clone() * phi.clone().cos(), im: r * phi.sin() })
    }

    /// The real part.
    pub fn re(&self) -> Tensor<D> {
        self.re.clone()
    }

    /// The imaginary part.
    pub fn im(&self) -> Tensor<D> {
        self.im.clone()
    }

    /// Both parts.
    pub fn into_parts(self) -> (Tensor<D>, Tensor<D>) {
        (self.re, self.im)
    }

    /// Shape of both parts.
    pub fn shape(&self) -> Shape {
        self.re.shape()
    }

    /// Both parts through one real-linear map that treats them alike: a reshape, a permutation,
    /// a slice, a sum.
    pub fn map<const D2: usize>(self, f: impl Fn(Tensor<D>) -> Tensor<D2>) -> Complex<D2> {
        Complex { re: f(self.re), im: f(self.im) }
    }

    /// `z̄`.
    pub fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    /// `x z` for a real number x.
    pub fn scale(self, x: f64) -> Self {
        self.map(|part| part * x)
    }

    /// `|z|²`.
    pub fn abs_squared(self) -> Tensor<D> {
        self.re.clone() * self.re + self.im.clone() * self.im
    }

    /// `|z|`, without overflow or underflow in between; the gradient at 0 is 0.
    pub fn abs(self) -> Tensor<D> {
        // r = m √((re/m)² + (im/m)²) does not depend on m, so m may be a constant of the tape.
        let m = self.re.clone().detach().abs().max_pair(self.im.clone().detach().abs());
        let zero = m.clone().equal_elem(0.0);
        let m = m.clone().mask_fill(zero.clone().bool_or(m.is_inf()), 1.0);
        let (x, y) = (self.re / m.clone(), self.im / m.clone());
        let square = x.clone() * x + y.clone() * y;
        (square.mask_fill(zero.clone(), 1.0).sqrt() * m).mask_fill(zero, 0.0)
    }

    /// `zᵀ` of the last two axes.
    pub fn transpose(self) -> Self {
        self.map(Tensor::transpose)
    }

    /// `zᴴ = z̄ᵀ` of the last two axes.
    pub fn adjoint(self) -> Self {
        self.conj().transpose()
    }

    /// Matrix product over the last two axes: four real products.
    pub fn matmul(self, other: Self) -> Self {
        let re =
            self.re.clone().matmul(other.re.clone()) - self.im.clone().matmul(other.im.clone());
        Self { re, im: self.re.matmul(other.im) + self.im.matmul(other.re) }
    }
}

impl<const D: usize> Neg for Complex<D> {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(Neg::neg)
    }
}

impl<const D: usize> Add for Complex<D> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl<const D: usize> Sub for Complex<D> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}

/// Element by element.
impl<const D: usize> Mul for Complex<D> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let re = self.re.clone() * other.re.clone() - self.im.clone() * other.im.clone();
        Self { re, im: self.re * other.im + self.im * other.re }
    }
}

/// Element by element.
impl<const D: usize> Div for Complex<D> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        // z / w = z w̄ / |w|², with w scaled to about 1 first: |w|² alone would overflow.
        let m = other.re.clone().detach().abs().max_pair(other.im.clone().detach().abs());
        let m = m.clone().mask_fill(m.equal_elem(0.0), 1.0);
        let other = other.map(|part| part / m.clone());
        let norm = other.clone().abs_squared() * m;
        (self * other.conj()).map(|part| part / norm.clone())
    }
}
