//! Eigendecomposition of Hermitian matrices `A = V diag(E) Vᴴ`, eigenvalues in nondecreasing order.
//!
//! The operation uses `(A + Aᴴ)/2`, so every entry contributes and the gradient is Hermitian. Each eigenvector is
//! unique up to a phase, which is that of faer.

mod op;
mod rule;
#[cfg(test)]
pub(crate) mod tests;

use faer::MatRef;
use t4a_tensor::Tensor;

use crate::batch::{
    BatchShape, MatrixStatus, PerMatrix, ResultBuffer, Views, filled, flops, load_hermitian, run,
};
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::scale::{PowerOfTwo, largest};
use crate::threads::Work;

pub use op::{EighOp, EigvalshOp};
pub(crate) use op::{factors, parts};
pub use rule::{jvp, vjp};

/// Eigendecomposition `A = V diag(E) Vᴴ` of a batch of Hermitian matrices.
#[derive(Clone, Debug)]
pub struct Eigh<T: LinalgScalar> {
    /// Eigenvalues in nondecreasing order, `[…, n]`.
    pub values: Tensor<T::R>,
    /// Orthonormal eigenvectors as columns, `[…, n, n]`.
    pub vectors: Tensor<T>,
}

/// Eigendecomposition `(A + Aᴴ)/2 = V diag(E) Vᴴ`.
///
/// Shapes `[…, n, n]` → `[…, n]`, `[…, n, n]`. Cost about 9·n³ flops.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `NoConvergence`, `Overflow` with the batch index.
///
/// ```
/// use t4a_linalg::eigh::{Eigh, eigh, eigvalsh};
/// use t4a_tensor::Tensor;
///
/// let a = Tensor::from_vec(vec![2.0f64, 1.0, 1.0, 2.0], &[2, 2])?;
/// let Eigh { values, vectors } = eigh(&a)?;
/// assert!((values.get(&[0]).unwrap() - 1.0).abs() < 1e-14 && (values.get(&[1]).unwrap() - 3.0).abs() < 1e-14);
/// // The vector of 3 is (1, 1)/√2, up to its sign.
/// assert!((vectors.get(&[0, 1]).unwrap() * vectors.get(&[1, 1]).unwrap() - 0.5).abs() < 1e-14);
/// assert!((eigvalsh(&a)?.get(&[1]).unwrap() - 3.0).abs() < 1e-14);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn eigh<T: LinalgScalar>(a: &Tensor<T>) -> Result<Eigh<T>> {
    let (out, info) = eigh_ex(a)?;
    check("eigh", &info, SINGULAR)?;
    Ok(out)
}

/// As [`eigh`], with an info tensor of the batch's shape instead of an error; the results of a
/// matrix that failed are NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn eigh_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Eigh<T>, Tensor<i32>)> {
    let shape = BatchShape::square("eigh", a)?;
    let mut vectors = ResultBuffer::<T>::new(shape.batch, shape.n, shape.n)?;
    let mut values = ResultBuffer::<T::R>::new(shape.batch, shape.n, 1)?;
    let slots = vectors.mats()?.into_iter().map(Some).zip(values.slices()?).collect();
    let info = decompose("eigh", a, slots)?;
    let route = info.route();
    Ok((Eigh { values: values.vectors(route)?, vectors: vectors.matrices(route)? }, info))
}

/// Eigenvalues of `(A + Aᴴ)/2` in nondecreasing order, without vectors.
///
/// Shapes `[…, n, n]` → `[…, n]`. Cost about 4/3·n³ flops.
///
/// # Errors
/// As [`eigh`].
pub fn eigvalsh<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T::R>> {
    let (values, info) = eigvalsh_ex(a)?;
    check("eigvalsh", &info, SINGULAR)?;
    Ok(values)
}

/// [`eigvalsh`] with an info tensor as in [`eigh_ex`].
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn eigvalsh_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T::R>, Tensor<i32>)> {
    let shape = BatchShape::square("eigvalsh", a)?;
    let mut values = ResultBuffer::<T::R>::new(shape.batch, shape.n, 1)?;
    let slots = values.slices()?.into_iter().map(|values| (None, values)).collect();
    let info = decompose("eigvalsh", a, slots)?;
    Ok((values.vectors(info.route())?, info))
}

type EighSlot<'a, T> = (Option<faer::MatMut<'a, T>>, &'a mut [<T as LinalgScalar>::R]);

fn decompose<T: LinalgScalar>(
    op: &'static str,
    a: &Tensor<T>,
    slots: PerMatrix<EighSlot<'_, T>>,
) -> Result<Tensor<i32>> {
    let shape = BatchShape::square(op, a)?;
    let n = shape.n;
    let views = Views::of(op, a)?;
    let with_vectors = matches!(slots.first(), Some((Some(_), _)));
    run(
        shape.batch,
        slots,
        Work::sums(flops(&[9, n, n, n])),
        |par| {
            let copy = filled(T::ZERO, n * n)?;
            Ok((T::eigh_scratch(n, with_vectors, par), copy, vec![T::ZERO; n]))
        },
        |(memory, copy, diagonal), index, (vectors, values), par| {
            if !load_hermitian(views.get(index), copy) {
                return MatrixStatus::NonFinite;
            }
            let lower =
                |a: &[T]| (0..n).map(|j| largest(&a[j * n + j..(j + 1) * n])).fold(0.0, f64::max);
            let scale = PowerOfTwo::apply(copy, lower);
            let vectors = vectors.as_mut().map(|v| v.as_mut());
            let a = MatRef::from_column_major_slice(copy, n, n);
            if !T::eigh(a, diagonal, vectors, par, memory) {
                return MatrixStatus::NoConvergence;
            }
            values.iter_mut().zip(diagonal).for_each(|(e, d)| *e = d.re());
            if scale.restore(values) { MatrixStatus::Done } else { MatrixStatus::Overflow }
        },
    )
}
