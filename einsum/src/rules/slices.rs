//! Derivative of ⊕ over slices with respect to one slice, by the same rules as for a term.

use t4a_algebra::Numeric;

use super::{Differentiable, Share, nth, same};
use crate::error::Result;
use crate::memory::filled;

/// `∂(cₛ ⊕ …)/∂cₛ` times `g` for [`Share::Marginal`]; `equal` is the number of terms equal to an absorbing sum.
fn shared<S: Differentiable<T>, T: Numeric>(g: T, part: T, sum: T, equal: u32) -> T {
    // A sum that is NaN makes the weight of every term NaN.
    #[allow(clippy::eq_op)]
    let defined = sum == sum;
    if part == S::ZERO && defined {
        T::ZERO
    } else if !S::absorbs(sum) {
        g.mul(S::marginal(part, sum))
    } else if S::absorbs(part) {
        g.mul(nth(equal as usize))
    } else {
        T::ZERO
    }
}

/// Cotangent of one slice with elements `part`, given the unassigned cotangents `open`, the sum of all slices and the
/// number of absorbing slices. For [`Share::Argmax`] the assigned cotangents are removed from `open`.
pub(crate) fn open_to<S: Differentiable<T>, T: Numeric>(
    open: &mut [T],
    part: &[T],
    sum: &[T],
    absorbing: Option<&[u32]>,
) -> Result<Vec<T>> {
    let mut g = filled(open.len(), T::ZERO)?;
    for (j, (&part, &sum)) in part.iter().zip(sum).enumerate() {
        g[j] = match S::SHARE {
            Share::Argmax if same(part, sum) && part != S::ZERO => {
                std::mem::replace(&mut open[j], T::ZERO)
            }
            Share::Argmax => T::ZERO,
            _ => shared::<S, T>(open[j], part, sum, absorbing.map_or(0, |n| n[j])),
        };
    }
    Ok(g)
}

/// The accumulated slices and their tangent.
pub(crate) struct Slices<T> {
    pub(crate) sum: Vec<T>,
    pub(crate) tangent: Vec<T>,
    /// Number of absorbing slices of each element.
    pub(crate) absorbing: Vec<u32>,
}

/// Adds a slice and its tangent.
pub(crate) fn add_slice<S: Differentiable<T>, T: Numeric>(
    Slices { sum, tangent, absorbing }: &mut Slices<T>,
    part: &[T],
    d: &[T],
) {
    for (j, (&part, &d)) in part.iter().zip(d).enumerate() {
        let before = sum[j];
        sum[j] = S::add(before, part);
        tangent[j] = match S::SHARE {
            Share::Linear => tangent[j].add(d),
            Share::Argmax if same(sum[j], before) => tangent[j],
            Share::Argmax => d,
            Share::Marginal => {
                let known = absorbing[j];
                absorbing[j] += u32::from(S::absorbs(part));
                let old = shared::<S, T>(tangent[j], before, sum[j], absorbing[j]);
                let new = shared::<S, T>(d, part, sum[j], absorbing[j]);
                // For absorbing sums, the tangent is the mean over the absorbing slices.
                old.mul(T::from_i64(known.max(1).into())).add(new)
            }
        };
    }
}
