//! Reduction to Hessenberg form by Householder reflections, `A = Q H Qᴴ`.
//!
//! Reference: G. Golub, C. Van Loan, *Matrix Computations*, algorithm 7.4.2.

use faer::{MatRef, Par};
use t4a_algebra::c64;
use t4a_linalg_kernels::Kernels;

use super::square::{SquareMatrix, ZERO};

/// Number of reflections applied to `Q` as one block; smaller matrices apply them one by one.
const BLOCK: usize = 32;

/// Overwrites `a` with `H` and returns `Q`. Cost about 14·n³/3 complex products.
pub(super) fn reduce(a: &mut SquareMatrix) -> SquareMatrix {
    let n = a.n();
    let (mut v, mut w) = (vec![ZERO; n], vec![ZERO; n]);
    let mut q = SquareMatrix::identity(n);
    // Householder vectors without their leading zeros.
    let mut vectors: Vec<(usize, Vec<c64>)> = Vec::new();
    for k in 0..n.saturating_sub(2) {
        v[k + 1..].copy_from_slice(&a.col(k)[k + 1..]);
        let Some(head) = reflector(&mut v[k + 1..]) else { continue };
        a.col_mut(k)[k + 1] = head;
        a.col_mut(k)[k + 2..].fill(ZERO);
        for j in k + 1..n {
            let x = &mut a.col_mut(j)[k + 1..];
            let dot: c64 = v[k + 1..].iter().zip(&*x).map(|(v, x)| v.conj() * x).sum();
            x.iter_mut().zip(&v[k + 1..]).for_each(|(x, v)| *x -= 2.0 * dot * v);
        }
        reflect_columns(a, &v, k + 1, &mut w);
        match n < BLOCK {
            true => reflect_columns(&mut q, &v, k + 1, &mut w),
            false => vectors.push((k + 1, v[k + 1..].to_vec())),
        }
    }
    // Last reflections first: they affect the fewest rows and columns.
    vectors.chunks(BLOCK).rev().for_each(|block| reflect(&mut q, block));
    q
}

/// `Q ← (I − V T Vᴴ) Q`, the product of reflections `I − 2 v vᴴ`; rows and columns before the first one are those of
/// the unit matrix.
///
/// Reference: R. Schreiber, C. Van Loan 1989.
fn reflect(q: &mut SquareMatrix, block: &[(usize, Vec<c64>)]) {
    let Some(&(first, _)) = block.first() else { return };
    let (count, rows) = (block.len(), q.n() - first);
    let mut v = vec![ZERO; rows * count];
    for (column, (start, x)) in v.chunks_exact_mut(rows).zip(block) {
        column[start - first..].copy_from_slice(x);
    }
    let column = |j: usize| &v[j * rows..(j + 1) * rows];
    let mut t = SquareMatrix::zeros(count);
    for j in 0..count {
        let dot =
            |i: usize| -> c64 { column(i).iter().zip(column(j)).map(|(x, y)| x.conj() * y).sum() };
        let dots: Vec<c64> = (0..j).map(dot).collect();
        for i in 0..j {
            t[(i, j)] = (i..j).map(|k| t[(i, k)] * dots[k]).sum::<c64>() * -2.0;
        }
        t[(j, j)] = c64::new(2.0, 0.0);
    }
    let adjoint: Vec<c64> =
        (0..rows * count).map(|at| v[(at % count) * rows + at / count].conj()).collect();
    let (v, vh) = (
        MatRef::from_column_major_slice(&v, rows, count),
        MatRef::from_column_major_slice(&adjoint, count, rows),
    );
    let mut products = [vec![ZERO; count * rows], vec![ZERO; count * rows]];
    let [inner, turned] = &mut products;
    let mut update = vec![ZERO; rows * rows];
    let multiply = |out: &mut [c64], m: usize, a: MatRef<'_, c64>, b: MatRef<'_, c64>| {
        let out = faer::MatMut::from_column_major_slice_mut(out, m, rows);
        <c64 as Kernels>::matmul(out, a, b, Par::Seq);
    };
    multiply(inner, count, vh, q.as_ref().submatrix(first, first, rows, rows));
    multiply(turned, count, t.as_ref(), MatRef::from_column_major_slice(inner, count, rows));
    multiply(&mut update, rows, v, MatRef::from_column_major_slice(turned, count, rows));
    for (j, update) in update.chunks_exact(rows).enumerate() {
        let x = &mut q.col_mut(first + j)[first..];
        x.iter_mut().zip(update).for_each(|(x, y)| *x -= y);
    }
}

/// Replaces `x` with the unit vector `v` for which `(I − 2 v vᴴ) x = β e₁`, and returns `β`; `None` if `x` is a
/// multiple of e₁.
pub(super) fn reflector(x: &mut [c64]) -> Option<c64> {
    if x[1..].iter().all(|x| *x == ZERO) {
        return None;
    }
    let size = norm(x);
    x.iter_mut().for_each(|x| *x /= size);
    let phase = match x[0].norm() {
        0.0 => c64::new(1.0, 0.0),
        r => x[0] / r,
    };
    // No cancellation: both summands have the same phase.
    x[0] += phase;
    let length = norm(x);
    x.iter_mut().for_each(|x| *x /= length);
    Some(-phase * size)
}

/// `‖x‖` without overflow and underflow.
fn norm(x: &[c64]) -> f64 {
    let largest = x.iter().map(|x| x.re.abs().max(x.im.abs())).fold(0.0, f64::max);
    match largest.is_normal() {
        true => x.iter().map(|x| (x / largest).norm_sqr()).sum::<f64>().sqrt() * largest,
        false => largest,
    }
}

/// `A ← A (I − 2 v vᴴ)`, `v` zero before `first`.
fn reflect_columns(a: &mut SquareMatrix, v: &[c64], first: usize, w: &mut [c64]) {
    w.fill(ZERO);
    for (j, v) in v.iter().enumerate().skip(first) {
        w.iter_mut().zip(a.col(j)).for_each(|(w, x)| *w += x * v);
    }
    for (j, v) in v.iter().enumerate().skip(first) {
        let c = 2.0 * v.conj();
        a.col_mut(j).iter_mut().zip(&*w).for_each(|(x, w)| *x -= w * c);
    }
}
