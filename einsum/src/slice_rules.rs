//! Derivatives of contractions in slices: each slice keeps its own intermediates, and only while
//! it runs.
//!
//! The result is `c = ⊕ₛ cₛ` over the slices of summed labels, so ⊕ passes on to slice s what the
//! [`rules`](crate::rules) pass on to a term: everything if the semiring is linear, the whole
//! cotangent to the first slice that is c if one wins, and `∂c/∂cₛ` if all share; a c that absorbs
//! its terms is shared equally by the slices that are c.

use t4a_algebra::Numeric;
use t4a_tensor::Tensor;
use t4a_tensor::kernels::arithmetic::Add;
use t4a_tensor::loops::kernel::Unary;
use t4a_tensor::map::{map, zip};

use crate::backend::Backend;
use crate::error::Result;
use crate::labelled::{Labelled, align};
use crate::memory::mapped;
use crate::plan::Plan;
use crate::rules::{Differentiable, Share, elements, nth, same};

/// `∂(cₛ ⊕ …)/∂cₛ` times `g`, for semirings in which several terms share; `equal` terms absorb the
/// others if the sum does.
fn shared<S: Differentiable<T>, T: Numeric>(g: T, part: T, sum: T, equal: u32) -> T {
    if part == S::ZERO {
        T::ZERO
    } else if !S::absorbs(sum) {
        g.mul(S::marginal(part, sum))
    } else if S::absorbs(part) {
        g.mul(nth(equal as usize))
    } else {
        T::ZERO
    }
}

/// How many slices absorb the others, where the sum does.
#[derive(Clone, Copy)]
struct Absorbing<S>(std::marker::PhantomData<S>);
impl<T: Numeric, S: Differentiable<T>> Unary<T> for Absorbing<S> {
    type Out = u32;
    const NAME: &'static str = "einsum derivative";
    #[inline(always)]
    fn apply(self, x: T) -> u32 {
        u32::from(S::absorbs(x))
    }
}

impl Plan {
    /// Cotangents of the operands' views, given that of the output labels.
    ///
    /// Cost: for linear semirings that of [`Plan::vjp`] in every slice; for others a contraction
    /// more, which finds c.
    pub(crate) fn vjp_slices<S: Differentiable<T>, T: Numeric>(
        &self,
        inputs: &[Labelled<T>],
        cotangent: &Labelled<T>,
    ) -> Result<Vec<Labelled<T>>> {
        let output = &self.network.output;
        let sizes = self.slice_sizes();
        let own = Backend::default();
        let sum = match S::SHARE {
            Share::Linear => None,
            _ => Some(self.run_slices::<S, T>(inputs.iter().cloned().map(Some).collect(), &own)?),
        };
        let absorbing = match &sum {
            Some(sum) if self.absorbs::<S, T>(sum)? => {
                let slots = inputs.iter().cloned().map(Some).collect();
                let count = |total, part| {
                    let these = map(Absorbing::<S>(std::marker::PhantomData), part)?;
                    match total {
                        None => Ok(these),
                        Some(total) => Ok(zip(Add, total, these)?),
                    }
                };
                Some(self.fold_slices::<S, T, u32>(slots, &own, 0, count)?)
            }
            _ => None,
        };
        let zeros = |x: &Labelled<T>| Ok(Tensor::full(x.tensor.shape(), T::ZERO)?);
        let mut grads: Vec<Tensor<T>> = inputs.iter().map(zeros).collect::<Result<_>>()?;
        let (outer, inner) = self.slice_counts();
        for o in 0..outer {
            let block = self.slice_at(o * inner);
            // What no slice has claimed yet.
            let mut open = block.values(cotangent, output)?;
            let sum = sum.as_ref().map(|sum| block.values(sum, output)).transpose()?;
            let absorbing = absorbing.as_ref().map(|n| block.values(n, output)).transpose()?;
            for i in 0..inner {
                let slice = self.slice_at(o * inner + i);
                let views = inputs.iter().map(|x| slice.of(x)).collect::<Result<Vec<_>>>()?;
                let share = |part: &Labelled<T>| {
                    let part = align(part, output)?;
                    let mut g = open.clone();
                    if let Some(sum) = &sum {
                        for (j, (&part, &sum)) in part.to_vec()?.iter().zip(sum).enumerate() {
                            g[j] = match S::SHARE {
                                Share::Argmax if same(part, sum) && part != S::ZERO => {
                                    std::mem::replace(&mut open[j], T::ZERO)
                                }
                                Share::Argmax => T::ZERO,
                                _ => {
                                    let equal = absorbing.as_ref().map_or(0, |n| n[j]);
                                    shared::<S, T>(open[j], part, sum, equal)
                                }
                            };
                        }
                    }
                    let tensor = Tensor::from_vec(g, part.shape())?;
                    Ok(Labelled { tensor, ids: output.clone() })
                };
                let parts = self.vjp_of::<S, T>(&views, share, &sizes)?;
                for (i, part) in parts.iter().enumerate() {
                    let ids = &inputs[i].ids;
                    slice.place(&mut grads[i], ids, &align(part, ids)?, T::add)?;
                }
            }
        }
        let label =
            |(tensor, x): (Tensor<T>, &Labelled<T>)| Labelled { tensor, ids: x.ids.clone() };
        Ok(grads.into_iter().zip(inputs).map(label).collect())
    }

    /// Whether an element of a result absorbs its terms.
    fn absorbs<S: Differentiable<T>, T: Numeric>(&self, sum: &Labelled<T>) -> Result<bool> {
        let marginal = S::SHARE == Share::Marginal;
        Ok(marginal && elements(&sum.tensor)?.iter().any(|&x| S::absorbs(x)))
    }

    /// The contraction over the output labels and its tangent, given views of the operands and of
    /// their tangents.
    pub(crate) fn jvp_slices<S: Differentiable<T>, T: Numeric>(
        &self,
        inputs: &[(Labelled<T>, Labelled<T>)],
    ) -> Result<(Labelled<T>, Labelled<T>)> {
        let output = &self.network.output;
        let sizes = self.slice_sizes();
        let (mut whole, mut tangents) = (self.output_of(S::ZERO)?, self.output_of(T::ZERO)?);
        let (outer, inner) = self.slice_counts();
        for o in 0..outer {
            let mut shape = Vec::new();
            let (mut sum, mut tangent) = (Vec::new(), Vec::new());
            // How many slices absorbed the others so far, by element.
            let mut absorbing: Vec<u32> = Vec::new();
            for i in 0..inner {
                let slice = self.slice_at(o * inner + i);
                let view = |(x, dx): &(Labelled<T>, Labelled<T>)| Ok((slice.of(x)?, slice.of(dx)?));
                let views = inputs.iter().map(view).collect::<Result<Vec<_>>>()?;
                let (part, d) = self.jvp_of::<S, T>(views, &sizes)?;
                let (part, d) = (align(&part, output)?, align(&d, output)?);
                if i == 0 {
                    shape = part.shape().to_vec();
                    (sum, tangent) = (part.to_vec()?, d.to_vec()?);
                    absorbing = mapped(&sum, |x| u32::from(S::absorbs(x)))?;
                    continue;
                }
                for (j, (part, d)) in part.to_vec()?.into_iter().zip(d.to_vec()?).enumerate() {
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
                            // The tangent so far is the mean of those before.
                            old.mul(T::from_i64(known.max(1).into())).add(new)
                        }
                    };
                }
            }
            let block = self.slice_at(o * inner);
            block.place(&mut whole, output, &Tensor::from_vec(sum, &shape)?, |_, new| new)?;
            block
                .place(&mut tangents, output, &Tensor::from_vec(tangent, &shape)?, |_, new| new)?;
        }
        let label = |tensor| Labelled { tensor, ids: output.clone() };
        Ok((label(whole), label(tangents)))
    }
}
