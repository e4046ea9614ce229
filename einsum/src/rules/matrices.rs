//! Arguments of the rules: one pairwise contraction as matrices.

use std::borrow::Cow;

use t4a_algebra::Scalar;
use t4a_tensor::Tensor;

use crate::backend::BgemmShape;

/// `C[β] = A[β] ⊗ B[β]` on row-major `[batch, m, k]`, `[batch, k, n]`, `[batch, m, n]`.
#[derive(Clone, Debug)]
pub struct MatrixProduct<'a, T: Scalar> {
    /// Sizes.
    pub shape: BgemmShape,
    /// Left factors.
    pub a: Cow<'a, [T]>,
    /// Right factors.
    pub b: Cow<'a, [T]>,
    /// The products; empty if the rule uses the argmax or does not [read](crate::Differentiable::READS_SUMS) the sums.
    pub c: Cow<'a, [T]>,
    /// The first k whose term equals the sum, for every element of C, if
    /// [`Differentiable::matmul`](crate::Differentiable::matmul) returned it; otherwise it is computed by a search.
    pub argmax: Option<Cow<'a, [u32]>>,
}

/// The elements in row-major order, borrowed if the tensor is contiguous.
pub(crate) fn elements<T: Scalar>(x: &Tensor<T>) -> crate::Result<Cow<'_, [T]>> {
    Ok(match x.as_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(x.to_vec()?),
    })
}

impl<T: Scalar> MatrixProduct<'_, T> {
    /// Calls `body(i, row of A, element of C, column of B)` for every element of C, with the index of the element, the
    /// offset of its row of A, and the offset of its column of B.
    #[inline]
    pub(crate) fn elements(&self, mut body: impl FnMut(usize, usize, usize)) {
        let BgemmShape { batch, m, k, n } = self.shape;
        for row in 0..batch * m {
            let column = row / m * k * n;
            for j in 0..n {
                body(row * n + j, row * k, column + j);
            }
        }
    }
}
