//! The element types of linear algebra: f32, f64, c32, c64.

use faer::traits::{ComplexField, RealField};
use t4a_algebra::{Field, Float, Numeric, Real, c32, c64};
use t4a_linalg_kernels::{Eigen, Kernels};
use t4a_tensor::Element;

/// Element type of linear algebra: `f32`, `f64`, `c32`, `c64`.
pub trait LinalgScalar:
    Element
    + Field<Real = <Self as LinalgScalar>::R>
    + ComplexField<Real = <Self as LinalgScalar>::R>
    + Kernels
    + Eigen<Value = <Self as LinalgScalar>::Complex>
{
    /// Real type, of singular values, norms and tolerances.
    type R: LinalgScalar<R = Self::R, Complex = Self::Complex> + Float + RealField;
    /// Complex type, of eigenvalues.
    type Complex: LinalgScalar<R = Self::R, Complex = Self::Complex>;
}

macro_rules! scalars {
    ($($t:ident $r:ident $c:ident),*) => {$(
        impl LinalgScalar for $t {
            type R = $r;
            type Complex = $c;
        }
    )*};
}

scalars!(f32 f32 c32, f64 f64 c64, c32 f32 c32, c64 f64 c64);

/// NaN in the real and imaginary part.
pub(crate) fn nan<T: LinalgScalar>() -> T {
    T::from_parts(<T::R as Float>::NAN, <T::R as Float>::NAN)
}

/// `r + 0i`.
#[inline(always)]
pub(crate) fn real<T: LinalgScalar>(r: T::R) -> T {
    T::from_parts(r, <T::R as Numeric>::ZERO)
}

/// Machine epsilon of the real type.
pub(crate) fn epsilon<T: LinalgScalar>() -> f64 {
    <T::R as Float>::EPSILON.to_f64()
}

/// Smallest normal number of the real type; its reciprocal is finite.
pub(crate) fn min_positive<T: LinalgScalar>() -> T::R {
    <T::R as RealField>::min_positive_impl()
}
