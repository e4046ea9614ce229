//! Matrices with a large aspect ratio: `A = Q R`, `R = U' S Vᴴ`, `U = Q U'`, or the adjoint for wide matrices.

use faer::{Mat, MatMut, MatRef, Par};
use t4a_algebra::Field;
use t4a_linalg_kernels::ComputeVectors;

use crate::scalar::LinalgScalar;

/// True if a preceding QR factorisation saves time: a quarter for 1024 × 256, a third for 2048 × 64; for 512 × 64 it
/// costs an eighth (bench `linalg`, svd with vectors).
pub(super) fn pays(m: usize, n: usize) -> bool {
    let (long, short) = (m.max(n), m.min(n));
    (short >= 128 && 6 * long > 11 * short) || (short > 0 && long >= 16 * short)
}

/// Singular values, `U` and `V`; `false` without convergence.
pub(super) fn svd<T: LinalgScalar>(
    a: MatRef<'_, T>,
    values: &mut [T],
    uv: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
    extent: ComputeVectors,
    par: Par,
) -> bool {
    if a.nrows() < a.ncols() {
        let vu = uv.map(|(u, v)| (v, u));
        return svd(adjoint(a).as_ref(), values, vu, extent, par);
    }
    let (m, n) = a.shape();
    let block = T::qr_block(m, n);
    let width = if extent == ComputeVectors::Full { m } else { n };
    let mut memory = T::qr_scratch(m, n, block, width, par);
    let (mut qr, mut coefficients) = (a.to_owned(), Mat::zeros(block, n));
    if !T::qr(qr.as_mut(), coefficients.as_mut(), None, par, &mut memory) {
        qr.copy_from(a);
        T::qr_every_column(qr.as_mut(), coefficients.as_mut(), par);
    }
    let r = Mat::from_fn(n, n, |i, j| if i <= j { qr[(i, j)] } else { T::ZERO });
    let square = if uv.is_some() { ComputeVectors::Thin } else { ComputeVectors::Values };
    let mut scratch = T::svd_scratch(n, n, square, par);
    let Some((mut u, v)) = uv else {
        return T::svd(r.as_ref(), values, None, par, &mut scratch);
    };
    // The columns of a full U beyond n are those of Q.
    u.fill(T::ZERO);
    u.as_mut().diagonal_mut().fill(T::ONE);
    let top = u.as_mut().submatrix_mut(0, 0, n, n);
    if !T::svd(r.as_ref(), values, Some((top, v)), par, &mut scratch) {
        return false;
    }
    T::apply_q(qr.as_ref(), coefficients.as_ref(), u, par, &mut memory);
    true
}

/// `Aᴴ`.
pub(super) fn adjoint<T: LinalgScalar>(a: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(a.ncols(), a.nrows(), |i, j| Field::conj(a[(j, i)]))
}
