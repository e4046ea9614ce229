//! Selection by masks, and scattering to multi-dimensional indices.

use burn_backend::tensor::{BoolTensor, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{Backend, Scalar, Shape, TensorMetadata};

use crate::primitive::{JvpTensor, expanded, sum, zeros_like};
use crate::real::InnerFloat;

/// A mask, broadcast to this shape.
pub(crate) fn expanded_flags<B: Backend>(flags: BoolTensor<B>, shape: Shape) -> BoolTensor<B> {
    if flags.shape() == shape { flags } else { B::bool_expand(flags, shape) }
}

/// y where `mask` is true, else x.
pub(crate) fn mask_where<B: Backend>(
    x: JvpTensor<B>,
    mask: BoolTensor<B>,
    y: JvpTensor<B>,
) -> JvpTensor<B> {
    let primal = B::float_mask_where(x.primal, mask.clone(), y.primal);
    if x.tangent.is_none() && y.tangent.is_none() {
        return JvpTensor::constant(primal);
    }
    let full = |t| expanded::<B>(t, primal.shape());
    let mask = expanded_flags::<B>(mask, primal.shape());
    let tangent = match (x.tangent.map(full), y.tangent.map(full)) {
        (Some(a), None) => InnerFloat::<B>(a).without(mask).0,
        (a, b) => {
            let [a, b] = [a, b].map(|t| t.unwrap_or_else(|| zeros_like::<B>(&primal)));
            B::float_mask_where(a, mask, b)
        }
    };
    JvpTensor { primal, tangent: Some(tangent) }
}

/// c where `mask` is true, else x.
pub(crate) fn mask_fill<B: Backend>(
    x: JvpTensor<B>,
    mask: BoolTensor<B>,
    c: Scalar,
) -> JvpTensor<B> {
    x.chain(
        |x| B::float_mask_fill(x, mask.clone(), c),
        |t, _, y| {
            let flags = expanded_flags::<B>(mask.clone(), y.0.shape());
            t.like(&y.0).without(flags)
        },
    )
}

/// Indices must be unique except for sums, as Burn's rules also require.
///
/// For an extremum, the tangent of the operand that attains it is used. In a tie both operands attain it and the
/// tangent is their sum, which is the transpose of the rule of Burn's `Autodiff`.
pub(crate) fn scatter_nd<B: Backend>(
    x: JvpTensor<B>,
    indices: IntTensor<B>,
    y: JvpTensor<B>,
    reduction: IndexingUpdateOp,
) -> JvpTensor<B> {
    let put = |x, y, how| B::float_scatter_nd(x, indices.clone(), y, how);
    let at = |x: &FloatTensor<B>| B::float_gather_nd(x.clone(), indices.clone());
    if !x.moves() && !y.moves() {
        return JvpTensor::constant(put(x.primal, y.primal, reduction));
    }
    match reduction {
        IndexingUpdateOp::Add => x.accumulated(y, |x, y| put(x, y, IndexingUpdateOp::Add)),
        IndexingUpdateOp::Assign => x.together(y, |x, y| put(x, y, IndexingUpdateOp::Assign)),
        IndexingUpdateOp::Mul => {
            let left = x.tangent.map(|t| put(t, y.primal.clone(), IndexingUpdateOp::Mul));
            let right = y.tangent.map(|t| {
                let moved = (InnerFloat::<B>(at(&x.primal)) * InnerFloat(t)).0;
                put(zeros_like::<B>(&x.primal), moved, IndexingUpdateOp::Assign)
            });
            JvpTensor { primal: put(x.primal, y.primal, reduction), tangent: sum::<B>(left, right) }
        }
        IndexingUpdateOp::Min | IndexingUpdateOp::Max => {
            let primal = put(x.primal.clone(), y.primal.clone(), reduction);
            let (here, result) = (at(&x.primal), at(&primal));
            let passed = |t: FloatTensor<B>, value: FloatTensor<B>| {
                let bools = InnerFloat::<B>(value.clone()).bools();
                let other = B::float_not_equal(value, result.clone(), bools);
                InnerFloat::<B>(t).without(other).0
            };
            let left = x.tangent.map(|t| {
                let kept = passed(at(&t), here);
                put(t, kept, IndexingUpdateOp::Assign)
            });
            let right = y.tangent.map(|t| {
                let kept = passed(t, y.primal);
                put(zeros_like::<B>(&x.primal), kept, IndexingUpdateOp::Assign)
            });
            JvpTensor { primal, tangent: sum::<B>(left, right) }
        }
    }
}
