//! Householder QR that keeps nearly dependent columns.
//!
//! faer's QR estimates the rank: a column whose remainder after i steps is at most 16·(m − i)·ε of its norm counts as
//! dependent, and its remainder is dropped. For a thousand rows in single precision this threshold is 2·10⁻³.
//! Matrices without such columns are not affected; the others are factored here.
//!
//! Recursive (E. Elmroth, F. Gustavson 2000): the two halves of a panel are factored in turn, and `I − V T⁻¹ Vᴴ` of
//! both has the blocks `T₁`, `V₁ᴴ V₂`, `T₂`.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::householder::{
    apply_block_householder_transpose_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_transpose_on_the_left_in_place_with_conj as apply,
    make_householder_in_place,
};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::traits::ComplexField;
use faer::{Accum, Conj, MatMut, Par};

/// Overwrites `a` with `Q` and `R` in faer's compact form; the block size is the number of rows of `coefficients`.
pub fn qr_every_column<T: ComplexField>(a: MatMut<'_, T>, coefficients: MatMut<'_, T>, par: Par) {
    let (m, n) = (a.nrows(), a.ncols());
    let (k, block) = (m.min(n), coefficients.nrows());
    let mut memory = MemBuffer::new(apply_scratch::<T>(m, block, n));
    let stack = MemStack::new(&mut memory);
    let (mut a, mut coefficients) = (a, coefficients);
    for start in (0..k).step_by(block) {
        let width = block.min(k - start);
        let (panel, rest) =
            a.as_mut().submatrix_mut(start, start, m - start, n - start).split_at_col_mut(width);
        let t = coefficients.as_mut().submatrix_mut(0, start, width, width);
        factor(panel, t, rest, par, stack);
    }
}

/// Factors the columns of `v` into reflectors with the factor `t`, and applies them to `rest`.
fn factor<T: ComplexField>(
    mut v: MatMut<'_, T>,
    mut t: MatMut<'_, T>,
    rest: MatMut<'_, T>,
    par: Par,
    stack: &mut MemStack,
) {
    let (m, width) = (v.nrows(), v.ncols());
    if width == 1 {
        let (head, tail) = v.as_mut().col_mut(0).split_at_row_mut(1);
        let Some(head) = head.iter_mut().next() else { return };
        t[(0, 0)] = T::from_real_impl(&make_householder_in_place(head, tail).tau);
    } else {
        let half = width / 2;
        let (left, mut right) = v.as_mut().split_at_col_mut(half);
        let (t_1, t_12, _, t_2) = t.as_mut().split_at_mut(half, half);
        factor(left, t_1, right.as_mut(), par, stack);
        let none = faer::Mat::<T>::zeros(m - half, 0);
        let mut none = none;
        factor(right.subrows_mut(half, m - half), t_2, none.as_mut(), par, stack);
        let rest = width - half;
        let v = v.as_ref();
        let (v_1, v_2) =
            (v.submatrix(half, 0, m - half, half), v.submatrix(half, half, m - half, rest));
        let (above, below) = (v_1.split_at_row(rest), v_2.split_at_row(rest));
        let mut t_12 = t_12;
        triangular_matmul(
            t_12.as_mut(),
            BlockStructure::Rectangular,
            Accum::Replace,
            above.0.adjoint(),
            BlockStructure::Rectangular,
            below.0,
            BlockStructure::UnitTriangularLower,
            T::one_impl(),
            par,
        );
        matmul(t_12, Accum::Add, above.1.adjoint(), below.1, T::one_impl(), par);
    }
    if rest.ncols() > 0 {
        apply(v.as_ref(), t.as_ref(), Conj::Yes, rest, par, stack);
    }
}
