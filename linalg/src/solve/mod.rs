//! Linear systems `A X = B` with a square matrix, by LU factorisation.

mod rule;
#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::batch::{Output, Shape, Status, Views, is_finite, run};
use crate::error::{Result, SINGULAR, check};
use crate::lu::{LuFactors, lu_factor_ex};
use crate::scalar::LinalgScalar;
use crate::triangular::{Op, Triangle, check_system, solve_in_place};

pub(crate) use rule::{apply_inverse, apply_inverse_adjoint};
pub use rule::{jvp, solve_jvp, solve_vjp, vjp};

/// The solution of `A X = B`.
///
/// Shapes `[…, n, n]`, `[…, n, r]` → `[…, n, r]`. Cost ⅔·n³ + 2·n²·r flops.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular` with the
/// batch index.
pub fn solve<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (x, _, info) = solve_ex(a, b)?;
    check("solve", &info, SINGULAR)?;
    Ok(x)
}

/// As [`solve`], with the factors, which the derivative rules take, and an info tensor of the
/// batch's shape instead of an error: 0, or `i + 1` if pivot `i` is zero, or
/// [`NON_FINITE`](crate::error::NON_FINITE). The solution of a system that failed is NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn solve_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<(Tensor<T>, LuFactors<T>, Tensor<i32>)> {
    check_system("solve", a, b)?;
    let (factors, mut info) = lu_factor_ex(a)?;
    let (x, solved) = lu_solve_ex(&factors, b, Op::None)?;
    // What the factorisation found first is what counts.
    for (code, &later) in info.as_mut_slice()?.iter_mut().zip(solved.as_slice().unwrap_or_default())
    {
        *code = if *code == 0 { later } else { *code };
    }
    Ok((x, factors, info))
}

/// The solution of `op(A) X = B` from the factors of `A`.
///
/// Shapes `[…, n, n]`, `[…, n, r]` → `[…, n, r]`. Cost 2·n²·r flops.
///
/// # Errors
/// As [`solve`].
pub fn lu_solve<T: LinalgScalar>(
    factors: &LuFactors<T>,
    b: &Tensor<T>,
    op: Op,
) -> Result<Tensor<T>> {
    let (x, info) = lu_solve_ex(factors, b, op)?;
    check("lu_solve", &info, SINGULAR)?;
    Ok(x)
}

/// As [`lu_solve`], with an info tensor as in [`solve_ex`].
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn lu_solve_ex<T: LinalgScalar>(
    factors: &LuFactors<T>,
    b: &Tensor<T>,
    op: Op,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let shape = check_system("lu_solve", &factors.packed, b)?;
    let (n, r) = (shape.n, Shape::of("lu_solve", b)?.n);
    let mut out = Output::<T>::new(shape.batch, n, r)?;
    let slots = out.mats()?;
    let (packed, rhs) = (Views::of("lu_solve", &factors.packed)?, Views::of("lu_solve", b)?);
    let rows = factors.rows.index().to_vec()?;
    let info = run(
        shape.batch,
        slots,
        2 * n * n * r,
        |_| vec![T::ZERO; n],
        |column, index, x, par| {
            let (lu, b) = (packed.get(index), rhs.get(index));
            let p = &rows[index * n..(index + 1) * n];
            if !is_finite(lu) || !is_finite(b) {
                return Status::NonFinite;
            }
            if let Some(i) = (0..n).find(|&i| lu[(i, i)] == T::ZERO) {
                return Status::Pivot(i);
            }
            let (lower, upper) = (Triangle::LOWER.unit(), Triangle::UPPER);
            match op {
                Op::None => {
                    for j in 0..r {
                        for i in 0..n {
                            x[(i, j)] = b[(p[i] as usize, j)];
                        }
                    }
                    solve_in_place(lu, x.as_mut(), lower, par);
                    solve_in_place(lu, x.as_mut(), upper, par);
                }
                _ => {
                    // op(A) = op(U) op(L) op(P), so the permutation comes last.
                    x.copy_from(b);
                    solve_in_place(lu, x.as_mut(), Triangle { op, ..upper }, par);
                    solve_in_place(lu, x.as_mut(), Triangle { op, ..lower }, par);
                    for j in 0..r {
                        for i in 0..n {
                            column[p[i] as usize] = x[(i, j)];
                        }
                        column.iter().enumerate().for_each(|(i, &value)| x[(i, j)] = value);
                    }
                }
            }
            Status::Done
        },
    )?;
    Ok((out.matrices()?, info))
}
