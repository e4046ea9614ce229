//! Copies matrices to column-major memory, as faer requires, and checks that all elements are finite.

use faer::MatRef;
use t4a_algebra::{Field, Numeric};
use t4a_tensor::loops::transpose::{Even, transpose};

use crate::scalar::{LinalgScalar, real};

/// Number of lanes of the check.
const LANES: usize = 8;

/// Number of columns transposed at once; the panel stays in cache until it has been checked.
const PANEL: usize = 16;

/// Largest number of elements of a matrix that is copied element by element: the calls of the transposition cost more
/// (bench `linalg`, rows of 2 × 2).
const SMALL: usize = 8;

/// Check for finite numbers: `x − x` is 0 for finite x and NaN otherwise. The sums vectorise, unlike one test per
/// element.
struct Finite<T>([T; LANES]);

impl<T: LinalgScalar> Finite<T> {
    fn new() -> Self {
        Self([T::ZERO; LANES])
    }

    #[inline(always)]
    fn see(&mut self, values: &[T]) {
        let (blocks, rest) = values.as_chunks::<LANES>();
        for block in blocks {
            for (s, &x) in self.0.iter_mut().zip(block) {
                *s = Numeric::add(*s, Numeric::sub(x, x));
            }
        }
        // One lane each: sums in one lane would wait for each other.
        for (s, &x) in self.0.iter_mut().zip(rest) {
            *s = Numeric::add(*s, Numeric::sub(x, x));
        }
    }

    fn all(&self) -> bool {
        self.0.iter().all(|&s| s == T::ZERO)
    }
}

/// A column as a slice, if it is contiguous.
#[inline(always)]
fn column<'a, T>(a: MatRef<'a, T>, j: usize) -> Option<&'a [T]> {
    a.col(j).try_as_col_major().map(|column| column.as_slice())
}

/// Copies rows `top..` of columns `left..left + width` of a row-major matrix to columns of `m` elements in `dst`. If
/// `order` is given, row `i` of the copy is row `order[i]`.
#[allow(unsafe_code)]
fn transpose_panel<T: LinalgScalar>(
    src: MatRef<'_, T>,
    order: Option<&[isize]>,
    (top, left, width): (usize, usize, usize),
    dst: &mut [T],
) {
    let (m, n) = src.shape();
    assert!(src.col_stride() == 1 && top <= m && left + width <= n && dst.len() >= n * m);
    let (height, rows, pitch) = (m - top, src.row_stride(), Even::new(m as isize));
    let to = dst.as_mut_ptr().wrapping_add(left * m + top);
    // SAFETY: the panel is inside of both buffers, a shared and a unique borrow; an order is a permutation of the
    // rows, in elements.
    unsafe {
        match order {
            None => {
                let from = src.as_ptr().offset(top as isize * rows).add(left);
                transpose(from, Even::new(rows), to, pitch, width, height);
            }
            Some(order) => {
                transpose(src.as_ptr().add(left), &order[top..], to, pitch, width, height);
            }
        }
    }
}

/// Copies a matrix to column-major `dst`; returns true if all elements are finite. Cost: one read and one write per
/// element.
pub(crate) fn load<T: LinalgScalar>(src: MatRef<'_, T>, dst: &mut [T]) -> bool {
    load_rows(src, None, dst)
}

/// [`load`] with permuted rows: row `i` of the copy is row `order[i]`.
pub(crate) fn load_rows<T: LinalgScalar>(
    src: MatRef<'_, T>,
    order: Option<&[usize]>,
    dst: &mut [T],
) -> bool {
    let (m, n) = src.shape();
    let mut finite = Finite::new();
    if m * n == 0 {
        return true;
    }
    let row = |i: usize| order.map_or(i, |order| order[i]);
    if src.col_stride() == 1 && src.row_stride() != 1 && m * n > SMALL {
        let places: Option<Vec<isize>> =
            order.map(|order| order.iter().map(|&i| i as isize * src.row_stride()).collect());
        for left in (0..n).step_by(PANEL) {
            let width = PANEL.min(n - left);
            transpose_panel(src, places.as_deref(), (0, left, width), dst);
            finite.see(&dst[left * m..(left + width) * m]);
        }
        return finite.all();
    }
    for (j, dst) in dst.chunks_exact_mut(m).enumerate() {
        match (column(src, j), order) {
            (Some(src), None) => dst.copy_from_slice(src),
            (Some(src), _) => dst.iter_mut().enumerate().for_each(|(i, x)| *x = src[row(i)]),
            _ => dst.iter_mut().enumerate().for_each(|(i, x)| *x = src[(row(i), j)]),
        }
        finite.see(dst);
    }
    finite.all()
}

/// Copies the lower triangle of `(A + Aᴴ)/2` to column-major `dst`, `n²` elements; returns true if all elements are
/// finite. The strict upper triangle of `dst` is unspecified.
pub(crate) fn load_hermitian<T: LinalgScalar>(src: MatRef<'_, T>, dst: &mut [T]) -> bool {
    let n = src.ncols();
    let half = real::<T>(<T::R as Numeric>::from_f64(0.5));
    // Halves are added, since the sum could overflow.
    let mean = |x: T, y: T| Numeric::add(Numeric::mul(x, half), Numeric::mul(Field::conj(y), half));
    let mut finite = Finite::new();
    let (by_rows, by_columns) = (src.col_stride() == 1, src.row_stride() == 1);
    if n * n <= SMALL || (!by_rows && !by_columns) {
        for j in 0..n {
            for i in j..n {
                dst[j * n + i] = mean(src[(i, j)], src[(j, i)]);
            }
            finite.see(&dst[j * n + j..(j + 1) * n]);
        }
        return finite.all();
    }
    // Of (i, j) and (j, i), one is read contiguously, the other from a transposed panel.
    let view = if by_rows { src } else { src.transpose() };
    for left in (0..n).step_by(PANEL) {
        let width = PANEL.min(n - left);
        transpose_panel(view, None, (left, left, width), dst);
        if left == 0 {
            // Whole columns: their means with the rows are finite if both triangles are.
            finite.see(&dst[..width * n]);
        }
        for j in left..left + width {
            let Some(across) = column(view.transpose(), j) else { unreachable!("contiguous rows") };
            let (dst, across) = (&mut dst[j * n + j..(j + 1) * n], &across[j..n]);
            for (x, &y) in dst.iter_mut().zip(across) {
                *x = if by_rows { mean(*x, y) } else { mean(y, *x) };
            }
            if left > 0 {
                finite.see(dst);
            }
        }
    }
    finite.all()
}

/// True if no number is NaN or infinite.
pub(crate) fn all_finite<T: LinalgScalar>(values: &[T]) -> bool {
    let mut finite = Finite::new();
    finite.see(values);
    finite.all()
}

/// True if no element is NaN or infinite.
pub(crate) fn is_finite<T: LinalgScalar>(a: MatRef<'_, T>) -> bool {
    let mut finite = Finite::new();
    // Iterates along the contiguous axis.
    let a = if a.row_stride() == 1 { a } else { a.transpose() };
    for j in 0..a.ncols() {
        match column(a, j) {
            Some(column) => finite.see(column),
            None => (0..a.nrows()).for_each(|i| finite.see(&[a[(i, j)]])),
        }
    }
    finite.all()
}
