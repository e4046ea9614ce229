//! Singular value decomposition `A = U diag(S) Vᴴ`: thin, full, truncated, values only.
//!
//! Singular values are nonincreasing and ≥ 0. Each pair of singular vectors is unique up to a common phase, which is
//! that of faer.

mod function;
mod low_rank;
mod op;
mod rule;
pub(crate) mod second;
mod tall;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod ties;
mod truncate;

use faer::{MatMut, MatRef};
use t4a_algebra::Field;
use t4a_linalg_kernels::ComputeVectors;
use t4a_tensor::Tensor;

use crate::batch::{
    BatchShape, MatrixStatus, PerMatrix, ResultBuffer, Views, filled, flops, load, run,
};
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::scale::{PowerOfTwo, largest};
use crate::threads::Work;

pub use function::{svd_function, svd_function_ex, vjp_function};
pub use low_rank::LowRankOp;
pub(crate) use low_rank::low_rank_slope;
pub use op::{SvdFunctionOp, SvdOp, SvdvalsOp};
pub use rule::{SvdRule, jvp, vjp};
pub use truncate::{TruncatedSvd, Truncation, svd_truncated, svd_truncated_ex};

/// Singular value decomposition `A = U diag(S) Vᴴ` of a batch of `m × n` matrices, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Svd<T: LinalgScalar> {
    /// Left singular vectors, `[…, m, k]`, or `[…, m, m]` if full.
    pub u: Tensor<T>,
    /// Singular values in nonincreasing order, `[…, k]`.
    pub s: Tensor<T::R>,
    /// Right singular vectors as rows, `[…, k, n]`, or `[…, n, n]` if full.
    pub vh: Tensor<T>,
}

/// Number of singular vectors to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Vectors {
    /// `min(m, n)` on each side.
    Thin,
    /// A complete basis on each side.
    Full,
}

/// Singular value decomposition `A = U diag(S) Vᴴ`.
///
/// Shapes `[…, m, n]` → `[…, m, k]`, `[…, k]`, `[…, k, n]`; with [`Vectors::Full`] both factors
/// are square. Cost about 20·m·n·k flops (Golub, Van Loan, *Matrix Computations*, 8.6.3).
///
/// ```
/// use t4a_linalg::svd::{Vectors, svd};
/// use t4a_tensor::Tensor;
/// let a = Tensor::from_vec(vec![3.0, 0.0, 0.0, -4.0, 0.0, 0.0], &[3, 2])?;
/// assert_eq!(svd(&a, Vectors::Thin)?.s.to_vec()?, [4.0, 3.0]);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// `NotMatrix`; `NonFinite`, `NoConvergence`, `Overflow` with the batch index.
pub fn svd<T: LinalgScalar>(a: &Tensor<T>, vectors: Vectors) -> Result<Svd<T>> {
    let (out, info) = svd_ex(a, vectors)?;
    check("svd", &info, SINGULAR)?;
    Ok(out)
}

/// As [`svd`], with an info tensor of the batch's shape instead of an error: 0, or
/// [`NON_FINITE`](crate::error::NON_FINITE), [`NO_CONVERGENCE`](crate::error::NO_CONVERGENCE),
/// [`OVERFLOW`](crate::error::OVERFLOW) if a value exceeds the range of the type. The factors of a failed matrix are NaN.
///
/// # Errors
/// `NotMatrix`.
pub fn svd_ex<T: LinalgScalar>(a: &Tensor<T>, vectors: Vectors) -> Result<(Svd<T>, Tensor<i32>)> {
    let shape = BatchShape::of("svd", a)?;
    let (m, n, k) = (shape.m, shape.n, shape.k());
    let (left, right) = match vectors {
        Vectors::Thin => (k, k),
        Vectors::Full => (m, n),
    };
    let mut u = ResultBuffer::<T>::new(shape.batch, m, left)?;
    let mut v = ResultBuffer::<T>::new(shape.batch, n, right)?;
    let mut s = ResultBuffer::<T::R>::new(shape.batch, k, 1)?;
    let slots = u.mats()?.into_iter().zip(v.mats()?).zip(s.slices()?);
    let slots = slots.map(|((u, v), s)| (Some((u, v)), s)).collect();
    let extent = match vectors {
        Vectors::Thin => ComputeVectors::Thin,
        Vectors::Full => ComputeVectors::Full,
    };
    let info = decompose("svd", a, slots, extent)?;
    // The columns of V̄ are the rows of Vᴴ.
    let route = info.route();
    Ok((Svd { u: u.matrices(route)?, s: s.vectors(route)?, vh: v.transposed(route) }, info))
}

/// Singular values in nonincreasing order, without vectors.
///
/// Shapes `[…, m, n]` → `[…, k]`. Cost about 4·m·n·k flops. The gradient is `U diag(S̄) Vᴴ` with the computed basis:
/// at ties with different `S̄ᵢ`, and at zeros with `S̄ᵢ ≠ 0`, it is one of the generalised gradients (Clarke).
///
/// # Errors
/// As [`svd`].
pub fn svdvals<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T::R>> {
    let (s, info) = svdvals_ex(a)?;
    check("svdvals", &info, SINGULAR)?;
    Ok(s)
}

/// As [`svdvals`], with an info tensor as in [`svd_ex`].
///
/// # Errors
/// `NotMatrix`.
pub fn svdvals_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T::R>, Tensor<i32>)> {
    let shape = BatchShape::of("svdvals", a)?;
    let k = shape.k();
    let mut s = ResultBuffer::<T::R>::new(shape.batch, k, 1)?;
    let slots = s.slices()?.into_iter().map(|s| (None, s)).collect();
    let info = decompose("svdvals", a, slots, ComputeVectors::Values)?;
    Ok((s.vectors(info.route())?, info))
}

/// Output memory of one matrix: optional `U` and `V`, and `S`.
type SvdSlot<'a, T> = (Option<(MatMut<'a, T>, MatMut<'a, T>)>, &'a mut [<T as LinalgScalar>::R]);

fn decompose<T: LinalgScalar>(
    op: &'static str,
    a: &Tensor<T>,
    slots: PerMatrix<SvdSlot<'_, T>>,
    extent: ComputeVectors,
) -> Result<Tensor<i32>> {
    let shape = BatchShape::of(op, a)?;
    let (m, n, k) = (shape.m, shape.n, shape.k());
    let views = Views::of(op, a)?;
    let passes = if extent == ComputeVectors::Values { 4 } else { 20 };
    run(
        shape.batch,
        slots,
        Work::sums(flops(&[passes, m, n, k])),
        |par| {
            let copy = filled(T::ZERO, m * n)?;
            Ok((T::svd_scratch(m, n, extent, par), copy, vec![T::ZERO; k]))
        },
        |(memory, copy, values), index, (vectors, s), par| {
            if !load(views.get(index), copy) {
                return MatrixStatus::NonFinite;
            }
            let scale = PowerOfTwo::apply(copy, largest);
            let a = MatRef::from_column_major_slice(copy, m, n);
            let mut target = vectors.as_mut().map(|(u, v)| (u.as_mut(), v.as_mut()));
            let uv = target.as_mut().map(|(u, v)| (u.as_mut(), v.as_mut()));
            let converged = match tall::pays(m, n) {
                true => tall::svd(a, values, uv, extent, par),
                false => T::svd(a, values, uv, par, memory),
            };
            if !converged {
                // faer's iteration stagnates for one in 10⁵ matrices with ties; their adjoints have another
                // bidiagonal form.
                let adjoint = tall::adjoint(a);
                let mut memory = T::svd_scratch(n, m, extent, par);
                let vu = target.as_mut().map(|(u, v)| (v.as_mut(), u.as_mut()));
                if !T::svd(adjoint.as_ref(), values, vu, par, &mut memory) {
                    return MatrixStatus::NoConvergence;
                }
            }
            s.iter_mut().zip(values).for_each(|(s, value)| *s = value.re());
            if let Some((_, mut v)) = target.filter(|_| T::IS_COMPLEX) {
                for j in 0..v.ncols() {
                    v.as_mut().col_mut(j).iter_mut().for_each(|x| *x = Field::conj(*x));
                }
            }
            if scale.restore(s) { MatrixStatus::Done } else { MatrixStatus::Overflow }
        },
    )
}
