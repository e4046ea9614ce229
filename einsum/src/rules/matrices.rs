//! One pairwise contraction as the rules see it.

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
    /// The products; empty where the rule of a cotangent has the argmax instead or does not
    /// [read](crate::Differentiable::READS_SUMS) them.
    pub c: Cow<'a, [T]>,
    /// The first k whose term is the sum, for every element of C, if
    /// [`Differentiable::matmul`](crate::Differentiable::matmul) has told; else it is searched.
    pub argmax: Option<Cow<'a, [u32]>>,
}

/// The elements in row-major order, borrowed if they lie so.
pub(crate) fn elements<T: Scalar>(x: &Tensor<T>) -> crate::Result<Cow<'_, [T]>> {
    Ok(match x.as_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(x.to_vec()?),
    })
}

impl<T: Scalar> MatrixProduct<'_, T> {
    /// Calls `body(i, row of A, element of C, column of B)` for every element of C: the number of
    /// the element, where its row of A starts, and where its column of B starts.
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
