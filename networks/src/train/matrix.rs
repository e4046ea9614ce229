//! Cores as matrices: products, and the two ways to group the axes.

use t4a_algebra::{Field, Numeric, Real, Standard};
use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;
use t4a_tensor::matmul::matmul;

use super::Result;

/// `A B` of two matrices.
pub(crate) fn product<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    Ok(matmul::<Standard, T>(a, b)?)
}

/// `[l, d, r]` as `[l·d, r]`.
pub(crate) fn tall<T: LinalgScalar>(core: &Tensor<T>) -> Result<Tensor<T>> {
    let shape = core.shape();
    Ok(core.reshape(&[shape[0] * shape[1], shape[2]])?)
}

/// `[l, d, r]` as `[l, d·r]`.
pub(crate) fn wide<T: LinalgScalar>(core: &Tensor<T>) -> Result<Tensor<T>> {
    let shape = core.shape();
    Ok(core.reshape(&[shape[0], shape[1] * shape[2]])?)
}

/// `M A(s)`: a matrix `[m, l]` into the left bond.
pub(crate) fn absorb_left<T: LinalgScalar>(m: &Tensor<T>, core: &Tensor<T>) -> Result<Tensor<T>> {
    let shape = core.shape();
    Ok(product(m, &wide(core)?)?.reshape(&[m.shape()[0], shape[1], shape[2]])?)
}

/// `A(s) M`: a matrix `[r, m]` into the right bond.
pub(crate) fn absorb_right<T: LinalgScalar>(core: &Tensor<T>, m: &Tensor<T>) -> Result<Tensor<T>> {
    let shape = core.shape();
    Ok(product(&tall(core)?, m)?.reshape(&[shape[0], shape[1], m.shape()[1]])?)
}

/// The conjugate of a matrix.
pub(crate) fn conj<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    if !T::IS_COMPLEX {
        return Ok(a.clone());
    }
    let data = a.to_vec()?.into_iter().map(Field::conj).collect();
    Ok(Tensor::from_vec(data, a.shape())?)
}

/// Rows of `m` multiplied by real numbers.
pub(crate) fn scale_rows<T: LinalgScalar>(s: &[T::R], m: &Tensor<T>) -> Result<Tensor<T>> {
    let cols = m.shape()[1];
    let zero = <T::R as Numeric>::ZERO;
    let data = m.to_vec()?.into_iter().enumerate();
    let data = data.map(|(i, x)| Numeric::mul(x, T::from_parts(s[i / cols], zero)));
    Ok(Tensor::from_vec(data.collect(), m.shape())?)
}

/// `|x|` in double precision.
pub(crate) fn magnitude<T: LinalgScalar>(x: T) -> f64 {
    Field::modulus(x).to_f64()
}
