//! Vectors of Krylov methods.

use std::slice;

use t4a_algebra::{Field, Numeric, Real, c64};
use t4a_diff::Array;
use t4a_tensor::random::{Generator, normal};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::error::KrylovError;
use crate::error::LinalgError;
use crate::scalar::{LinalgScalar, epsilon, real};

/// Element of a vector space with an inner product. Scalars are `c64` for real vectors too, with an imaginary part of
/// exactly
/// 0. The product of a real vector and another scalar is complex, or an error for types without imaginary part.
pub trait Vector: Clone {
    /// Error of the operations, which also wraps errors of the Krylov methods.
    type Error: From<LinalgError>;

    /// Inner product `Σ x* y`, antilinear in `self`.
    ///
    /// # Errors
    /// Errors for vectors of different structure.
    fn inner(&self, other: &Self) -> Result<c64, Self::Error>;

    /// `c x`.
    ///
    /// # Errors
    /// [`KrylovError::ComplexNumber`] for a complex c and a type that is always real.
    fn scale(&self, c: c64) -> Result<Self, Self::Error>;

    /// `y + c x`, where `self` is y.
    ///
    /// # Errors
    /// As [`Vector::inner`] and [`Vector::scale`].
    fn axpy(self, c: c64, x: &Self) -> Result<Self, Self::Error>;

    /// Inner products `Σ v* x` with several vectors v, where `self` is x; one pass over x if the type can.
    ///
    /// # Errors
    /// As [`Vector::inner`].
    fn inners(&self, vectors: &[Self]) -> Result<Vec<c64>, Self::Error> {
        vectors.iter().map(|v| v.inner(self)).collect()
    }

    /// `y + Σ cᵢ xᵢ`, where `self` is y; one pass over y if the type can.
    ///
    /// # Errors
    /// As [`Vector::axpy`].
    fn add_terms(self, c: &[c64], x: &[Self]) -> Result<Self, Self::Error> {
        x.iter().zip(c).try_fold(self, |sum, (x, &c)| sum.axpy(c, x))
    }

    /// Vector of the same space with independent standard normal entries; equal seeds give equal vectors.
    ///
    /// # Errors
    /// Errors of the allocation.
    fn random(&self, seed: u64) -> Result<Self, Self::Error>;

    /// Machine epsilon of the entries.
    fn epsilon(&self) -> f64;

    /// `√Σ |x|²`.
    ///
    /// # Errors
    /// As [`Vector::inner`].
    fn norm(&self) -> Result<f64, Self::Error> {
        let square = self.inner(self)?.re;
        // NaN is preserved.
        Ok(if square < 0.0 { 0.0 } else { square.sqrt() })
    }
}

/// Vectors with elementwise division, for diagonal preconditioners.
pub trait Diagonal: Vector {
    /// `xᵢ / (dᵢ − shift)`, where `self` is x and d is real; denominators of modulus below `least` are `±least`.
    ///
    /// # Errors
    /// As [`Vector::inner`].
    fn divided(&self, d: &Self, shift: f64, least: f64) -> Result<Self, Self::Error>;
}

/// Elements of a dense tensor in row-major order.
fn elements<T: LinalgScalar>(x: &Tensor<T>) -> Result<Tensor<T>, LinalgError> {
    Ok(t4a_tensor::copy::to_contiguous(x)?)
}

fn same_shape<T: LinalgScalar>(
    op: &'static str,
    x: &Tensor<T>,
    y: &Tensor<T>,
) -> Result<(), LinalgError> {
    if x.shape() == y.shape() {
        return Ok(());
    }
    let (lhs, rhs) = (x.shape().to_vec(), y.shape().to_vec());
    Err(KrylovError::ShapeMismatch { op, lhs, rhs }.into())
}

/// Converts a scalar to the element type.
fn element<T: LinalgScalar>(op: &'static str, c: c64) -> Result<T, LinalgError> {
    if !T::IS_COMPLEX && c.im != 0.0 {
        return Err(KrylovError::ComplexNumber { op, number: c }.into());
    }
    Ok(T::from_parts(<T::R as Numeric>::from_f64(c.re), <T::R as Numeric>::from_f64(c.im)))
}

/// Combines two tensors of equal shape elementwise.
fn zip<T: LinalgScalar>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    f: impl Fn(T, T) -> T,
) -> Result<Tensor<T>, LinalgError> {
    let (x, y) = (elements(x)?, elements(y)?);
    let pairs = x.as_slice().unwrap_or_default().iter().zip(y.as_slice().unwrap_or_default());
    let data = pairs.map(|(&x, &y)| f(x, y)).collect();
    Ok(Tensor::from_vec(data, x.shape())?)
}

/// Number of partial sums of an inner product, which the compiler keeps in vector registers.
const LANES: usize = 8;

impl<T: LinalgScalar> Vector for Tensor<T> {
    type Error = LinalgError;

    fn inner(&self, other: &Self) -> Result<c64, LinalgError> {
        same_shape("inner", self, other)?;
        let (x, y) = (elements(self)?, elements(other)?);
        let (x, y) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
        let mut sums = [<T as Numeric>::ZERO; LANES];
        for (x, y) in x.chunks(LANES).zip(y.chunks(LANES)) {
            for ((sum, &x), &y) in sums.iter_mut().zip(x).zip(y) {
                *sum = Numeric::add(*sum, Numeric::mul(Field::conj(x), y));
            }
        }
        let sum = sums.into_iter().fold(<T as Numeric>::ZERO, |sum, x| Numeric::add(sum, x));
        Ok(c64::new(Field::re(sum).to_f64(), Field::im(sum).to_f64()))
    }

    fn scale(&self, c: c64) -> Result<Self, LinalgError> {
        let c = element::<T>("scale", c)?;
        zip(self, self, |x, _| Numeric::mul(c, x))
    }

    fn axpy(self, c: c64, x: &Self) -> Result<Self, LinalgError> {
        same_shape("axpy", &self, x)?;
        let c = element::<T>("axpy", c)?;
        zip(&self, x, |y, x| Numeric::add(y, Numeric::mul(c, x)))
    }

    fn random(&self, seed: u64) -> Result<Self, LinalgError> {
        let generator = Generator::new(seed);
        let draw = || normal::<f64>(&generator, self.shape(), 0.0, 1.0);
        let (re, im) = (draw()?, draw()?);
        let pairs = re.as_slice().unwrap_or_default().iter().zip(im.as_slice().unwrap_or_default());
        let number = |(&re, &im): (&f64, &f64)| {
            T::from_parts(<T::R as Numeric>::from_f64(re), <T::R as Numeric>::from_f64(im))
        };
        Ok(Tensor::from_vec(pairs.map(number).collect(), self.shape())?)
    }

    fn epsilon(&self) -> f64 {
        epsilon::<T>()
    }
}

impl<T: LinalgScalar> Diagonal for Tensor<T> {
    fn divided(&self, d: &Self, shift: f64, least: f64) -> Result<Self, LinalgError> {
        same_shape("divided", self, d)?;
        zip(self, d, |x, d| {
            let d = bounded(Field::re(d).to_f64() - shift, least);
            Numeric::mul(x, real::<T>(<T::R as Numeric>::from_f64(1.0 / d)))
        })
    }
}

/// `d`, or `±least` with the sign of `d` if its modulus is smaller.
fn bounded(d: f64, least: f64) -> f64 {
    if d.abs() < least { least.copysign(d) } else { d }
}

/// Vector with entries in any arrays: real parts, and imaginary parts of a complex vector. The product of a real
/// vector and a complex number is complex.
#[derive(Clone, Debug)]
pub struct ArrayVector<A> {
    /// Real parts.
    pub re: A,
    /// Imaginary parts, `None` for a real vector.
    pub im: Option<A>,
}

impl<A: Array> ArrayVector<A> {
    /// A real vector.
    pub fn real(re: A) -> Self {
        Self { re, im: None }
    }

    fn check(&self, op: &'static str, other: &Self) -> Result<(), LinalgError> {
        let (lhs, rhs) = (self.re.shape(), other.re.shape());
        if lhs == rhs {
            return Ok(());
        }
        // Arrays that carry an error have no shape, so the error is returned first.
        self.re.elements()?;
        other.re.elements()?;
        Err(KrylovError::ShapeMismatch { op, lhs, rhs }.into())
    }
}

/// `a + b`; absent parts are zero.
fn plus<A: Array>(a: Option<A>, b: Option<A>) -> Option<A> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.plus(&b)),
        (a, b) => a.or(b),
    }
}

/// `c x`; absent if c is 0.
fn times<A: Array>(c: f64, x: Option<&A>) -> Option<A> {
    match c {
        0.0 => None,
        1.0 => x.cloned(),
        c => x.map(|x| x.scale(c)),
    }
}

impl<A: Array> Vector for ArrayVector<A> {
    type Error = LinalgError;

    fn inner(&self, other: &Self) -> Result<c64, LinalgError> {
        Ok(other.inners(slice::from_ref(self))?[0])
    }

    fn scale(&self, c: c64) -> Result<Self, LinalgError> {
        let (re, im) = (&self.re, self.im.as_ref());
        if c.im == 0.0 {
            return Ok(Self { re: re.scale(c.re), im: im.map(|im| im.scale(c.re)) });
        }
        let product = re.scale(c.re);
        Ok(Self {
            re: match times(-c.im, im) {
                Some(x) => product.plus(&x),
                None => product,
            },
            im: plus(Some(re.scale(c.im)), times(c.re, im)),
        })
    }

    fn axpy(self, c: c64, x: &Self) -> Result<Self, LinalgError> {
        self.add_terms(&[c], slice::from_ref(x))
    }

    fn inners(&self, vectors: &[Self]) -> Result<Vec<c64>, LinalgError> {
        vectors.iter().try_for_each(|v| v.check("inner", self))?;
        let parts = vectors.iter().flat_map(|v| [Some(&v.re), v.im.as_ref()]).flatten();
        let parts: Vec<&A> = parts.collect();
        let mut re = self.re.dots(&parts)?.into_iter();
        let im = self.im.as_ref().map_or(Ok(vec![0.0; parts.len()]), |im| im.dots(&parts))?;
        let mut im = im.into_iter();
        // For one part of v, its products with both parts of x.
        let mut both = || c64::new(re.next().unwrap_or(0.0), im.next().unwrap_or(0.0));
        let inner = |v: &Self| match (both(), &v.im) {
            (product, None) => product,
            (product, Some(_)) => {
                let of_im = both();
                c64::new(product.re + of_im.im, product.im - of_im.re)
            }
        };
        Ok(vectors.iter().map(inner).collect())
    }

    fn add_terms(self, c: &[c64], x: &[Self]) -> Result<Self, LinalgError> {
        x.iter().try_for_each(|x| self.check("axpy", x))?;
        let (mut re, mut im) = (Vec::new(), Vec::new());
        for (x, c) in x.iter().zip(c) {
            let parts = [Some(&x.re), x.im.as_ref()];
            let own = [(c.re, parts[0]), (-c.im, parts[1])];
            let other = [(c.im, parts[0]), (c.re, parts[1])];
            for (terms, all) in [(&mut re, own), (&mut im, other)] {
                terms.extend(
                    all.into_iter().filter_map(|(c, x)| Some((c, x?))).filter(|x| x.0 != 0.0),
                );
            }
        }
        let im = match (self.im, &im[..]) {
            (Some(sum), terms) => Some(sum.plus_terms(terms)),
            (None, []) => None,
            (None, [(c, x), rest @ ..]) => Some(x.scale(*c).plus_terms(rest)),
        };
        Ok(Self { re: self.re.plus_terms(&re), im })
    }

    fn random(&self, seed: u64) -> Result<Self, LinalgError> {
        let generator = Generator::new(seed);
        let draw = |x: &A| -> Result<A, LinalgError> {
            let drawn: Tensor<f64> = normal(&generator, &x.shape(), 0.0, 1.0)?;
            Ok(x.constant(AnyTensor::from(drawn).cast(x.dtype())?))
        };
        Ok(Self { re: draw(&self.re)?, im: self.im.as_ref().map(draw).transpose()? })
    }

    fn epsilon(&self) -> f64 {
        match self.re.dtype() {
            DType::F64 => f64::EPSILON,
            DType::F16 => 2f64.powi(-10),
            DType::BF16 => 2f64.powi(-7),
            _ => f64::from(f32::EPSILON),
        }
    }
}

impl<A: Array> Diagonal for ArrayVector<A> {
    fn divided(&self, d: &Self, shift: f64, least: f64) -> Result<Self, LinalgError> {
        self.check("divided", d)?;
        let x = d.re.detach().elements()?.cast(DType::F64)?;
        let x = x.typed::<f64>()?.to_vec()?;
        let factors = x.into_iter().map(|d| 1.0 / bounded(d - shift, least)).collect();
        let factors = AnyTensor::from(Tensor::<f64>::from_vec(factors, &d.re.shape())?);
        let factors = self.re.constant(factors.cast(self.re.dtype())?);
        Ok(Self { re: self.re.mul(&factors), im: self.im.as_ref().map(|im| im.mul(&factors)) })
    }
}
