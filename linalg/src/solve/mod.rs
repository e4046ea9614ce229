//! Linear systems `A X = B` with a square matrix, by LU factorisation.

mod op;
mod rule;
#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::batch::{
    BatchShape, MatrixStatus, ResultBuffer, Views, filled, flops, is_finite, load_rows, run,
};
use crate::error::{Result, SINGULAR, check};
use crate::lu::{PackedLu, lu_factor_ex};
use crate::scalar::LinalgScalar;
use crate::systems::{broadcast, tensor_system};
use crate::threads::Work;
use crate::triangular::{Triangle, TriangleOp, check_system, solve_within_range};

pub use op::SolveOp;
pub(crate) use rule::{apply_inverse, apply_inverse_adjoint};
pub use rule::{jvp, vjp};

/// Solution of `A X = B`.
///
/// Shapes `[…, n, n]`, `[…, n, r]` → `[…, n, r]`; `b` may be a vector `[n]`. Batches broadcast; a matrix with several
/// right-hand sides is factored once ([`systems`](crate::systems)). Cost ⅔·n³ + 2·n²·r flops. The solution for a
/// matrix that is singular up to rounding has no correct digits: its reciprocal condition number
/// ([`cond`](crate::norm::cond)) is about the machine epsilon.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `BatchMismatch` and `Tensor` if the shapes do not match; `NonFinite`, `Singular`, and
/// `Overflow` for a solution beyond the range of the type, with the batch index among the matrices factored.
///
/// ```
/// use t4a_linalg::solve::{solve, solve_right};
/// use t4a_tensor::Tensor;
///
/// let a = Tensor::from_vec(vec![2.0, 0.0, 0.0, 4.0], &[2, 2])?;
/// let b = Tensor::from_vec(vec![2.0, 2.0], &[2, 1])?;
/// assert_eq!(solve(&a, &b)?.to_vec()?, [1.0, 0.5]);
/// let x = solve_right(&a, &b.permute(&[1, 0])?)?;
/// assert_eq!((x.shape(), x.to_vec()?), (&[1, 2][..], vec![1.0, 0.5]));
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn solve<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    broadcast("solve", a, b, |a, b, _| {
        let (x, _, info) = solve_ex(a, b)?;
        check("solve", &info, SINGULAR)?;
        Ok(x)
    })
}

/// [`solve`] with the factors, which the derivative rules use, and an info tensor of the batch's shape instead of an
/// error: 0, or `i + 1` if pivot `i` is zero, or [`NON_FINITE`](crate::error::NON_FINITE),
/// [`OVERFLOW`](crate::error::OVERFLOW). The solution of a failed system is NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn solve_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<(Tensor<T>, PackedLu<T>, Tensor<i32>)> {
    check_system("solve", a, b)?;
    let (factors, mut info) = lu_factor_ex(a)?;
    let (x, solved) = lu_solve_ex(&factors, b, TriangleOp::None)?;
    // A failure of the factorisation takes precedence over one of the substitution.
    for (code, &later) in info.as_mut_slice()?.iter_mut().zip(solved.as_slice().unwrap_or_default())
    {
        *code = if *code == 0 { later } else { *code };
    }
    Ok((x, factors, info))
}

/// The solution of `op(A) X = B` from the factors of `A`.
///
/// Shapes `[…, n, n]`, `[…, n, r]` → `[…, n, r]`, vectors and batches as in [`solve`]. Cost 2·n²·r
/// flops.
///
/// # Errors
/// As [`solve`].
pub fn lu_solve<T: LinalgScalar>(
    factors: &PackedLu<T>,
    b: &Tensor<T>,
    op: TriangleOp,
) -> Result<Tensor<T>> {
    broadcast("lu_solve", &factors.packed, b, |packed, b, systems| {
        let rows = match systems {
            Some(systems) => factors.rows.expanded(&systems.factored())?,
            None => factors.rows.clone(),
        };
        let factors = PackedLu { packed: packed.clone(), rows };
        let (x, info) = lu_solve_ex(&factors, b, op)?;
        check("lu_solve", &info, SINGULAR)?;
        Ok(x)
    })
}

/// As [`lu_solve`], with an info tensor as in [`solve_ex`].
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn lu_solve_ex<T: LinalgScalar>(
    factors: &PackedLu<T>,
    b: &Tensor<T>,
    op: TriangleOp,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let shape = check_system("lu_solve", &factors.packed, b)?;
    let (n, r) = (shape.n, BatchShape::of("lu_solve", b)?.n);
    let mut out = ResultBuffer::<T>::new(shape.batch, n, r)?;
    let slots = out.slices()?;
    let packed = Views::spread("lu_solve", &factors.packed)?;
    let rhs = Views::of("lu_solve", b)?;
    let rows = factors.rows.of_rows("lu_solve", shape.batch, n)?;
    let info = run(
        shape.batch,
        slots,
        Work::columns(r, flops(&[2, n, n, r])),
        |_| Ok((filled(T::ZERO, n)?, filled(0, n)?)),
        |(column, order), index, x, par| {
            let (lu, b) = (packed.get(index), rhs.get(index));
            let p = &rows[index * n..(index + 1) * n];
            order.iter_mut().zip(p).for_each(|(to, &row)| *to = row as usize);
            let order = (op == TriangleOp::None).then_some(order.as_slice());
            let rhs = |x: &mut [T]| load_rows(b, order, x);
            if !rhs(x) || !is_finite(lu) {
                return MatrixStatus::NonFinite;
            }
            if let Some(i) = (0..n).find(|&i| lu[(i, i)] == T::ZERO) {
                return MatrixStatus::Pivot(i);
            }
            let (lower, upper) = (Triangle::LOWER.unit(), Triangle::UPPER);
            // op(A) = op(U) op(L) op(P): the order of the factors depends on op.
            let stages = match op {
                TriangleOp::None => [lower, upper],
                _ => [upper, lower],
            };
            let stages = stages.map(|triangle| Triangle { op, ..triangle });
            if !solve_within_range(lu, x, rhs, &stages, par) {
                return MatrixStatus::Overflow;
            }
            if op != TriangleOp::None {
                for x in x.chunks_exact_mut(n.max(1)) {
                    x.iter().zip(p).for_each(|(&x, &row)| column[row as usize] = x);
                    x.copy_from_slice(column);
                }
            }
            MatrixStatus::Done
        },
    )?;
    Ok((out.matrices(info.route())?, info))
}

/// The solution of `X A = B`, batches broadcast.
///
/// Shapes `[…, n, n]`, `[…, r, n]` → `[…, r, n]`, or a vector `[n]` for `x A = b`. Cost that of [`solve`] with `Aᵀ`,
/// which is a view.
///
/// # Errors
/// As [`solve`].
pub fn solve_right<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    const NAME: &str = "solve_right";
    let swapped = |t: &Tensor<T>| -> Result<Tensor<T>> {
        match t.rank() {
            0 | 1 => Ok(t.clone()),
            rank => Ok(t.swap_axes(rank - 2, rank - 1)?),
        }
    };
    let x = solve(&swapped(a)?, &swapped(b)?).map_err(|error| error.of(NAME))?;
    if b.rank() == 1 { Ok(x) } else { swapped(&x) }
}

/// `X` with `Σ A[i…, j…] X[j…] = B[i…]` over all axes `j…`.
///
/// Shapes `[i…, j…]`, `[i…]` → `[j…]` with as many elements in `i…` as in `j…`. Cost that of
/// [`solve`].
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `Singular`.
pub fn tensorsolve<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (n, right) = tensor_system(a.shape(), b.shape())?;
    let x = solve(&a.reshape(&[n, n])?, &b.reshape(&[n, 1])?);
    Ok(x.map_err(|error| error.of("tensorsolve"))?.reshape(right)?)
}
