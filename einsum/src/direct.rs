//! Contractions of two row-major operands that are one batched matrix product up to reshapes: shapes of the matrices, found
//! once per plan, so that small contractions do not sort and group labels at every call (bench `einsum`, Python's
//! `benches/compare.py 4x4`).

use smallvec::SmallVec;
use t4a_algebra::Scalar;
use t4a_tensor::Tensor;

use crate::error::Result;
use crate::network::{Ids, LabelId};
use crate::plan::{PairLabels, Plan};
use crate::table::RingTable;

/// A batch of matrices `[β, rows, columns]` as a view of a row-major operand.
#[derive(Clone, Debug, PartialEq)]
struct ReshapedOperand {
    /// The shape before a transposition.
    shape: SmallVec<[usize; 4]>,
    /// True if rows and columns are exchanged.
    transposed: bool,
}

impl ReshapedOperand {
    fn read<T: Scalar>(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let matrices = x.reshape(&self.shape)?;
        let rank = self.shape.len();
        Ok(if self.transposed { matrices.swap_axes(rank - 2, rank - 1)? } else { matrices })
    }
}

/// `C[β, μ, ν] = ⊕_κ A[β, μ, κ] ⊗ B[β, κ, ν]` of row-major operands, with C in the axis order of the result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DirectProduct {
    left: ReshapedOperand,
    right: ReshapedOperand,
    shape: Vec<usize>,
}

impl DirectProduct {
    /// `None` if the contraction needs more than reshapes and transposed matrices.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let (network, [step]) = (&plan.network, plan.steps.as_slice()) else { return None };
        let PairLabels { lhs: 0, rhs: 1, batch, left, right, sum, lone_left, lone_right } = step
        else {
            return None;
        };
        let lone = [lone_left, lone_right, &plan.lone].iter().any(|ids| !ids.is_empty());
        if lone || sum.is_empty() || network.is_empty {
            return None;
        }
        let [a, b] = [0, 1].map(|i| network.axes[i].iter().flatten().copied().collect::<Ids>());
        if [&a, &b].iter().zip(&network.inputs).any(|(axes, ids)| axes.len() != ids.len()) {
            // A repeated label of an operand is a diagonal.
            return None;
        }
        let in_order = |of: &Ids, among: &Ids| -> Ids {
            among.iter().copied().filter(|id| of.contains(id)).collect()
        };
        // Groups in the order of their axes.
        let (batch, sum) = (in_order(batch, &a), in_order(sum, &a));
        let (left, right) = (in_order(left, &a), in_order(right, &b));
        let view = |own: &Ids, rows: &Ids, columns: &Ids| {
            let is = |parts: [&Ids; 3]| own.iter().eq(parts.into_iter().flatten());
            let transposed = match (is([&batch, rows, columns]), is([&batch, columns, rows])) {
                (true, _) => false,
                (_, true) => true,
                _ => return None,
            };
            let size = |id: &LabelId| network.sizes[*id as usize];
            let mut shape: SmallVec<[usize; 4]> = batch.iter().map(size).collect();
            let sizes = [rows, columns].map(|ids| ids.iter().map(size).product());
            shape.extend(if transposed { [sizes[1], sizes[0]] } else { sizes });
            Some(ReshapedOperand { shape, transposed })
        };
        let result = batch.iter().chain(&left).chain(&right);
        if !network.result.iter().flatten().eq(result) {
            return None;
        }
        let (left, right) = (view(&a, &left, &sum)?, view(&b, &sum, &right)?);
        Some(Self { left, right, shape: network.result_shape() })
    }

    /// The contraction of row-major operands.
    pub(crate) fn contract<T: Scalar>(
        &self,
        ring: &RingTable<T>,
        a: &Tensor<T>,
        b: &Tensor<T>,
    ) -> Result<Tensor<T>> {
        let product = (ring.matmul)(&self.left.read(a)?, &self.right.read(b)?)?;
        Ok(if product.shape() == self.shape { product } else { product.reshape(&self.shape)? })
    }
}
