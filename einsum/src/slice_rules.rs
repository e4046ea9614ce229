//! Derivatives of contractions in slices: each slice keeps its own intermediates, and only while
//! it runs.
//!
//! The result is `c = ⊕ₛ cₛ` over the slices of summed labels, so ⊕ passes on to slice s what the
//! [`rules`](crate::rules) pass on to a term: everything if the semiring is linear, the whole
//! cotangent to the first slice that is c if one wins, and `∂c/∂cₛ` if all share.

use t4a_algebra::{Numeric, Standard};
use t4a_tensor::Tensor;

use crate::backend::Backend;
use crate::error::{EinsumError, Result};
use crate::labelled::{Labelled, align};
use crate::plan::Plan;
use crate::rules::{Differentiable, Share};

/// `∂(cₛ ⊕ …)/∂cₛ` times `g`, for semirings in which several terms share.
fn shared<S: Differentiable<T>, T: Numeric>(g: T, part: T, sum: T) -> T {
    if part == S::ZERO { T::ZERO } else { g.mul(S::marginal(part, sum)) }
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
        let zeros = |x: &Labelled<T>| Ok(Tensor::full(x.tensor.shape(), T::ZERO)?);
        let mut grads: Vec<Tensor<T>> = inputs.iter().map(zeros).collect::<Result<_>>()?;
        let (outer, inner) = self.slice_counts();
        for o in 0..outer {
            let block = self.slice_at(o * inner);
            let part_of = |x: &Labelled<T>| align(&block.of(x)?, output);
            // What no slice has claimed yet.
            let mut open = part_of(cotangent)?.to_vec()?;
            let sum = sum
                .as_ref()
                .map(|sum| Ok::<_, EinsumError>(part_of(sum)?.to_vec()?))
                .transpose()?;
            for i in 0..inner {
                let slice = self.slice_at(o * inner + i);
                let views = inputs.iter().map(|x| slice.of(x)).collect::<Result<Vec<_>>>()?;
                let share = |part: &Labelled<T>| {
                    let part = align(part, output)?;
                    let mut g = open.clone();
                    if let Some(sum) = &sum {
                        for (j, (&part, &sum)) in part.to_vec()?.iter().zip(sum).enumerate() {
                            g[j] = match S::SHARE {
                                Share::Winner if part == sum && part != S::ZERO => {
                                    std::mem::replace(&mut open[j], T::ZERO)
                                }
                                Share::Winner => T::ZERO,
                                _ => shared::<S, T>(open[j], part, sum),
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

    /// The contraction over the output labels and its tangent, given views of the operands and of
    /// their tangents.
    pub(crate) fn jvp_slices<S: Differentiable<T>, T: Numeric>(
        &self,
        inputs: &[(Labelled<T>, Labelled<T>)],
    ) -> Result<(Labelled<T>, Labelled<T>)> {
        let output = &self.network.output;
        let sizes = self.slice_sizes();
        let (mut whole, mut tangents) = (self.zeros::<S, T>()?, self.zeros::<Standard, T>()?);
        let (outer, inner) = self.slice_counts();
        for o in 0..outer {
            let mut shape = Vec::new();
            let (mut sum, mut tangent) = (Vec::new(), Vec::new());
            for i in 0..inner {
                let slice = self.slice_at(o * inner + i);
                let view = |(x, dx): &(Labelled<T>, Labelled<T>)| Ok((slice.of(x)?, slice.of(dx)?));
                let views = inputs.iter().map(view).collect::<Result<Vec<_>>>()?;
                let (part, d) = self.jvp_of::<S, T>(views, &sizes)?;
                let (part, d) = (align(&part, output)?, align(&d, output)?);
                if i == 0 {
                    shape = part.shape().to_vec();
                    (sum, tangent) = (part.to_vec()?, d.to_vec()?);
                    continue;
                }
                for (j, (part, d)) in part.to_vec()?.into_iter().zip(d.to_vec()?).enumerate() {
                    let before = sum[j];
                    sum[j] = S::add(before, part);
                    tangent[j] = match S::SHARE {
                        Share::Linear => tangent[j].add(d),
                        Share::Winner if sum[j] == before => tangent[j],
                        Share::Winner => d,
                        Share::Marginal => shared::<S, T>(tangent[j], before, sum[j])
                            .add(shared::<S, T>(d, part, sum[j])),
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
