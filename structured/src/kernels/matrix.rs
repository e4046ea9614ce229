//! One matrix product on the memory of blocks.

use t4a_algebra::gemm::{MatMut, MatRef, Parallelism, Product};
use t4a_algebra::{Numeric, Semiring, Standard};

use super::short;
use crate::plan::MatrixView;

/// Row and column stride.
pub(super) fn strides(view: MatrixView) -> (isize, isize) {
    match view.transposed {
        false => (view.cols as isize, 1),
        true => (1, view.rows as isize),
    }
}

/// `C = A B` or `C += A B`; short products run on this thread.
pub(super) fn multiply<T: Numeric>(
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    c: MatMut<'_, T>,
    accumulate: bool,
    parallelism: Parallelism,
) where
    Standard: Semiring<T>,
{
    if short::multiply(&a, &b, &c, accumulate) {
        return;
    }
    if let Ok(product) = Product::new(a, b, c) {
        product.accumulate(accumulate).parallelism(parallelism).run::<Standard>();
    }
}
