//! Complex tensors as pairs of real tensors, since Burn 0.21 has no complex dtype.
//!
//! Gradients are taken with respect to both parts. For a real loss L the pair of gradients is ∂L/∂Re + i ∂L/∂Im, as
//! in PyTorch: 2z for |z|².

use std::ops::{Add, Div, Mul, Neg, Sub};

use burn_backend::{Backend, Shape};
use burn_tensor::Tensor;
use t4a_einsum::agree;

use super::error::{ExtError, Result};

/// Complex tensor `re + i im`. Both parts have the same shape, dtype and device.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::Complex;
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// let row = |x: [[f32; 2]; 1]| Tensor::<BurnT4a, 2>::from_floats(x, &T4aDevice);
/// // (1 + 2i, 3i)
/// let z = Complex::new(row([[1.0, 0.0]]), row([[2.0, 3.0]]))?;
/// assert_eq!(z.shape().as_slice(), [1, 2]);
/// z.clone().abs_squared().into_data().assert_eq(&[[5.0f32, 9.0]].into(), false);
/// // z zᴴ = |1 + 2i|² + |3i|²
/// let (re, im) = z.clone().matmul(z.clone().adjoint()).into_parts();
/// re.into_data().assert_eq(&[[14.0f32]].into(), false);
/// im.into_data().assert_eq(&[[0.0f32]].into(), false);
/// // (z − z̄)/2 is i times the imaginary part.
/// let half = (z.clone() - z.clone().conj()).scale(0.5).transpose();
/// half.im().into_data().assert_eq(&[[2.0f32], [3.0]].into(), false);
/// half.re().into_data().assert_eq(&[[0.0f32], [0.0]].into(), false);
/// // 1/(1 + 1).
/// let one = Complex::from_real(z.re().ones_like());
/// (one.clone() / (one.clone() + one)).re().into_data().assert_eq(&[[0.5f32, 0.5]].into(), false);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Complex<B: Backend, const D: usize> {
    re: Tensor<B, D>,
    im: Tensor<B, D>,
}

impl<B: Backend, const D: usize> Complex<B, D> {
    /// Creates `re + i im`.
    ///
    /// # Errors
    /// [`ExtError::ComplexShape`] for different shapes; [`ExtError::Mismatch`] for different dtypes or devices.
    pub fn new(re: Tensor<B, D>, im: Tensor<B, D>) -> Result<Self> {
        const OP: &str = "complex";
        if re.shape() != im.shape() {
            return Err(ExtError::ComplexShape { op: OP, re: re.shape(), im: im.shape() });
        }
        let described = |x: &Tensor<B, D>| (x.dtype(), x.device(), ());
        agree(OP, &[described(&re), described(&im)])?;
        Ok(Self { re, im })
    }

    /// Creates a complex tensor with zero imaginary part.
    pub fn from_real(re: Tensor<B, D>) -> Self {
        let im = re.zeros_like();
        Self { re, im }
    }

    /// Creates `r e^{iφ}` from modulus and phase in radians.
    ///
    /// # Errors
    /// As [`Complex::new`].
    ///
    /// ```
    /// use burn::tensor::{Tensor, Tolerance};
    /// use burn_t4a::ext::Complex;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    ///
    /// // Cube roots of one: their sum is 0.
    /// let third = 2.0 * std::f32::consts::PI / 3.0;
    /// let angles = Tensor::<BurnT4a, 1>::from_floats([0.0, third, 2.0 * third], &T4aDevice);
    /// let roots = Complex::from_polar(angles.ones_like(), angles)?;
    /// let sum = roots.map(|part| part.sum());
    /// let zero = [0.0f32].into();
    /// let small = Tolerance::absolute(1e-6);
    /// sum.re().into_data().assert_approx_eq::<f32>(&zero, small);
    /// sum.im().into_data().assert_approx_eq::<f32>(&zero, small);
    /// # Ok::<(), burn_t4a::ext::ExtError>(())
    /// ```
    pub fn from_polar(r: Tensor<B, D>, phi: Tensor<B, D>) -> Result<Self> {
        let Self { re: r, im: phi } = Self::new(r, phi)?;
        Ok(Self { re: r.clone() * phi.clone().cos(), im: r * phi.sin() })
    }

    /// Returns the real part.
    pub fn re(&self) -> Tensor<B, D> {
        self.re.clone()
    }

    /// Returns the imaginary part.
    pub fn im(&self) -> Tensor<B, D> {
        self.im.clone()
    }

    /// Returns real and imaginary part.
    pub fn into_parts(self) -> (Tensor<B, D>, Tensor<B, D>) {
        (self.re, self.im)
    }

    /// Shape of both parts.
    pub fn shape(&self) -> Shape {
        self.re.shape()
    }

    /// Applies a real-linear map to both parts, such as a reshape, a permutation, a slice or a sum.
    pub fn map<const D2: usize>(self, f: impl Fn(Tensor<B, D>) -> Tensor<B, D2>) -> Complex<B, D2> {
        Complex { re: f(self.re), im: f(self.im) }
    }

    /// Complex conjugate `z̄`.
    pub fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    /// Product `x z` with a real number x.
    pub fn scale(self, x: f64) -> Self {
        self.map(|part| part * x)
    }

    /// Squared modulus `|z|²`.
    pub fn abs_squared(self) -> Tensor<B, D> {
        self.re.clone() * self.re + self.im.clone() * self.im
    }

    /// Modulus `|z|`, without overflow or underflow of intermediate values; the gradient at 0 is 0.
    pub fn abs(self) -> Tensor<B, D> {
        // r = m √((re/m)² + (im/m)²) does not depend on m, so m is a constant of the tape.
        let m = self.re.clone().detach().abs().max_pair(self.im.clone().detach().abs());
        let zero = m.clone().equal_elem(0.0);
        let m = m.clone().mask_fill(zero.clone().bool_or(m.is_inf()), 1.0);
        let (x, y) = (self.re / m.clone(), self.im / m.clone());
        let square = x.clone() * x + y.clone() * y;
        (square.mask_fill(zero.clone(), 1.0).sqrt() * m).mask_fill(zero, 0.0)
    }

    /// Transpose `zᵀ` of the last two axes.
    pub fn transpose(self) -> Self {
        self.map(Tensor::transpose)
    }

    /// Conjugate transpose `zᴴ = z̄ᵀ` of the last two axes.
    pub fn adjoint(self) -> Self {
        self.conj().transpose()
    }

    /// Matrix product over the last two axes, by four real products.
    pub fn matmul(self, other: Self) -> Self {
        let re =
            self.re.clone().matmul(other.re.clone()) - self.im.clone().matmul(other.im.clone());
        Self { re, im: self.re.matmul(other.im) + self.im.matmul(other.re) }
    }
}

impl<B: Backend, const D: usize> Neg for Complex<B, D> {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(Neg::neg)
    }
}

impl<B: Backend, const D: usize> Add for Complex<B, D> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl<B: Backend, const D: usize> Sub for Complex<B, D> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }
}

/// Elementwise product.
impl<B: Backend, const D: usize> Mul for Complex<B, D> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let re = self.re.clone() * other.re.clone() - self.im.clone() * other.im.clone();
        Self { re, im: self.re * other.im + self.im * other.re }
    }
}

/// Elementwise quotient.
impl<B: Backend, const D: usize> Div for Complex<B, D> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        // z / w = z w̄ / |w|², with w scaled to modulus about 1 first: |w|² alone could overflow.
        let m = other.re.clone().detach().abs().max_pair(other.im.clone().detach().abs());
        let m = m.clone().mask_fill(m.equal_elem(0.0), 1.0);
        let other = other.map(|part| part / m.clone());
        let norm = other.clone().abs_squared() * m;
        (self * other.conj()).map(|part| part / norm.clone())
    }
}
