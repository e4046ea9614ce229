//! Triangular systems `op(T) X = B`.

mod op;
mod rule;
#[cfg(test)]
mod tests;

use faer::{MatMut, MatRef, Par};
use t4a_tensor::{Tensor, TensorError};

use crate::batch::{
    BatchShape, MatrixStatus, ResultBuffer, Views, all_finite, flops, is_finite, load, run,
};
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::scale::{PowerOfTwo, largest};
use crate::systems::broadcast;
use crate::threads::Work;

pub use crate::vocabulary::{Triangle, TriangleOp};
pub use op::SolveTriangularOp;
pub use rule::{jvp, vjp};

/// Solution of `op(T) X = B`. Only the selected triangle is read.
///
/// Shapes `[…, n, n]`, `[…, n, r]` → `[…, n, r]`, vectors and batches as in
/// [`solve`](crate::solve::solve). Cost n²·r flops.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular`, and `Overflow` for a
/// solution beyond the range of the type, with the batch index.
///
/// ```
/// use t4a_linalg::triangular::{Triangle, solve_triangular};
/// use t4a_tensor::Tensor;
///
/// // 2 x = 2 and x + 4 y = 9.
/// let l = Tensor::from_vec(vec![2.0, 0.0, 1.0, 4.0], &[2, 2])?;
/// let b = Tensor::from_vec(vec![2.0, 9.0], &[2, 1])?;
/// assert_eq!(solve_triangular(&l, &b, Triangle::LOWER)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn solve_triangular<T: LinalgScalar>(
    t: &Tensor<T>,
    b: &Tensor<T>,
    triangle: Triangle,
) -> Result<Tensor<T>> {
    broadcast("solve_triangular", t, b, |t, b, _| {
        let (x, info) = solve_triangular_ex(t, b, triangle)?;
        check("solve_triangular", &info, SINGULAR)?;
        Ok(x)
    })
}

/// As [`solve_triangular`], with an info tensor of the batch's shape instead of an error: 0, or
/// `i + 1` if diagonal entry `i` is zero, or [`NON_FINITE`](crate::error::NON_FINITE),
/// [`OVERFLOW`](crate::error::OVERFLOW).
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn solve_triangular_ex<T: LinalgScalar>(
    t: &Tensor<T>,
    b: &Tensor<T>,
    triangle: Triangle,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let op = "solve_triangular";
    let shape = check_system(op, t, b)?;
    let r = BatchShape::of(op, b)?.n;
    let n = shape.n;
    let mut out = ResultBuffer::<T>::new(shape.batch, n, r)?;
    let slots = out.slices()?;
    let (lhs, rhs) = (Views::spread(op, t)?, Views::of(op, b)?);
    let info = run(
        shape.batch,
        slots,
        Work::columns(r, flops(&[n, n, r])),
        |_| Ok(()),
        |(), index, x, par| {
            let t = lhs.get(index);
            let rhs = |x: &mut [T]| load(rhs.get(index), x);
            if !rhs(x) || !is_finite_triangle(t, triangle) {
                return MatrixStatus::NonFinite;
            }
            if !triangle.unit
                && let Some(i) = (0..n).find(|&i| t[(i, i)] == T::ZERO)
            {
                return MatrixStatus::Pivot(i);
            }
            match solve_within_range(t, x, rhs, &[triangle], par) {
                true => MatrixStatus::Done,
                false => MatrixStatus::Overflow,
            }
        },
    )?;
    Ok((out.matrices(info.route())?, info))
}

/// Checks the shapes of `A X = B` and returns that of `A`.
pub(crate) fn check_system<'a, T: LinalgScalar>(
    op: &'static str,
    a: &'a Tensor<T>,
    b: &Tensor<T>,
) -> Result<BatchShape<'a>> {
    let shape = BatchShape::square(op, a)?;
    let rhs = BatchShape::of(op, b)?;
    shape.same_batch(op, &rhs)?;
    if rhs.m != shape.n {
        return Err(TensorError::shapes(op, a.shape(), b.shape(), "[…, n, n] and […, n, r]").into());
    }
    Ok(shape)
}

fn is_finite_triangle<T: LinalgScalar>(t: MatRef<'_, T>, triangle: Triangle) -> bool {
    let n = t.nrows();
    // Iterates along the contiguous axis.
    let (t, upper) = match t.row_stride() {
        1 => (t, triangle.upper),
        _ => (t.transpose(), !triangle.upper),
    };
    (0..n).all(|j| {
        let (start, len) = if upper { (0, j + 1) } else { (j, n - j) };
        is_finite(t.col(j).subrows(start, len).as_mat())
    })
}

/// `X ← op(T)⁻¹ X` for each of these triangles of `t`, in order; `rhs` restores `X`. Returns true if the solution is
/// within the range of the type.
///
/// Quotients by subnormal elements may overflow although the solution does not: if one is not finite, the systems are
/// solved again with scaled elements.
pub(crate) fn solve_within_range<T: LinalgScalar>(
    t: MatRef<'_, T>,
    x: &mut [T],
    rhs: impl Fn(&mut [T]) -> bool,
    triangles: &[Triangle],
    par: Par,
) -> bool {
    let n = t.nrows();
    let columns = x.len() / n.max(1);
    let solve = |t: MatRef<'_, T>, x: &mut [T]| {
        for &triangle in triangles {
            let x = MatMut::from_column_major_slice_mut(x, n, columns);
            solve_in_place(t, x, triangle, par);
        }
        all_finite(x)
    };
    if n == 0 || solve(t, x) {
        return true;
    }
    // Triangles without unit diagonal are scaled; packed factors contain one such triangle.
    let mut scaled: Vec<T> = (0..n * n).map(|at| t[(at % n, at / n)]).collect();
    let mut of_t = PowerOfTwo::of(1.0);
    if let Some(triangle) = triangles.iter().find(|triangle| !triangle.unit) {
        let part =
            |j: usize| if triangle.upper { j * n..j * n + j + 1 } else { j * n + j..(j + 1) * n };
        of_t = PowerOfTwo::of((0..n).map(|j| largest(&scaled[part(j)])).fold(0.0, f64::max));
        (0..n).for_each(|j| of_t.divide(&mut scaled[part(j)]));
    }
    rhs(x);
    let of_x = PowerOfTwo::to_exponent(x, 0);
    let finite = solve(MatRef::from_column_major_slice(&scaled, n, n), x);
    finite && of_x.over(of_t).restore(x)
}

/// `X ← op(T)⁻¹ X` for one matrix.
pub(crate) fn solve_in_place<T: LinalgScalar>(
    t: MatRef<'_, T>,
    x: MatMut<'_, T>,
    triangle: Triangle,
    par: Par,
) {
    if x.nrows() == 0 {
        // faer's kernel iterates over the columns.
        return;
    }
    let conj = triangle.op == TriangleOp::Adjoint;
    let (t, upper) = match triangle.op {
        TriangleOp::None => (t, triangle.upper),
        TriangleOp::Transpose | TriangleOp::Adjoint => (t.transpose(), !triangle.upper),
    };
    T::solve_triangular(t, conj, upper, triangle.unit, x, par);
}
