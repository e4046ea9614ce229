//! Derivatives of sliced contractions: the intermediates of a slice are stored only while the slice is processed.
//!
//! The result is `c = ⊕ₛ cₛ` over the slices of summed labels, so the derivative of ⊕ with respect to slice s follows
//! the [`rules`](crate::rules) for a term: the full cotangent for linear semirings, the full cotangent for the first
//! slice that equals c for selective ones, and `∂c/∂cₛ` otherwise; if c is absorbing, the slices equal to c have equal
//! weights.

use t4a_algebra::Numeric;
use t4a_tensor::Tensor;
use t4a_tensor::kernels::arithmetic::Add;
use t4a_tensor::map::zip;

use crate::backend::ProductBackends;
use crate::error::Result;
use crate::labelled::{LabelledArray, align};
use crate::plan::Plan;
use crate::rules::{Share, Slices};
use crate::table::Rules;

impl Plan {
    /// Cotangents of the operands' views, given that of the output labels.
    ///
    /// Cost: for linear semirings that of [`Plan::vjp`] in every slice; for others one additional contraction, which
    /// computes c.
    pub(crate) fn vjp_slices<T: Numeric>(
        &self,
        rules: &Rules<T>,
        inputs: &[LabelledArray<T>],
        cotangent: &LabelledArray<T>,
    ) -> Result<Vec<LabelledArray<T>>> {
        let output = &self.network.output;
        let sizes = self.slice_sizes();
        let own = ProductBackends::default();
        let sum = match rules.share {
            Share::Linear => None,
            _ => Some(self.run_slices(
                &rules.ring,
                inputs.iter().cloned().map(Some).collect(),
                &own,
            )?),
        };
        let absorbing = match &sum {
            Some(sum) if absorbs(rules, sum)? => {
                let slots = inputs.iter().cloned().map(Some).collect();
                let count = |total, part| {
                    let these = (rules.absorbing)(part)?;
                    match total {
                        None => Ok(these),
                        Some(total) => Ok(zip(Add, total, these)?),
                    }
                };
                Some(self.fold_slices(&rules.ring, slots, &own, 0, count)?)
            }
            _ => None,
        };
        let zeros = |x: &LabelledArray<T>| Ok(Tensor::full(x.tensor.shape(), T::ZERO)?);
        let mut grads: Vec<Tensor<T>> = inputs.iter().map(zeros).collect::<Result<_>>()?;
        let (outer, inner) = self.slice_counts();
        for o in 0..outer {
            let block = self.slice_at(o * inner);
            // Cotangents not yet assigned to a slice.
            let mut open = block.values(cotangent, output)?;
            let sum = sum.as_ref().map(|sum| block.values(sum, output)).transpose()?;
            let absorbing = absorbing.as_ref().map(|n| block.values(n, output)).transpose()?;
            for i in 0..inner {
                let slice = self.slice_at(o * inner + i);
                let views = inputs.iter().map(|x| slice.of(x)).collect::<Result<Vec<_>>>()?;
                let mut share = |part: &LabelledArray<T>| {
                    let part = align(part, output)?;
                    let g = match &sum {
                        None => open.clone(),
                        Some(sum) => {
                            (rules.open_to)(&mut open, &part.to_vec()?, sum, absorbing.as_deref())?
                        }
                    };
                    let tensor = Tensor::from_vec(g, part.shape())?;
                    Ok(LabelledArray { tensor, ids: output.clone() })
                };
                let parts = self.vjp_of(rules, &views, &mut share, &sizes)?;
                for (i, part) in parts.iter().enumerate() {
                    let ids = &inputs[i].ids;
                    slice.place(&mut grads[i], ids, &align(part, ids)?, T::add)?;
                }
            }
        }
        let label = |(tensor, x): (Tensor<T>, &LabelledArray<T>)| LabelledArray {
            tensor,
            ids: x.ids.clone(),
        };
        Ok(grads.into_iter().zip(inputs).map(label).collect())
    }

    /// The contraction over the output labels and its tangent, given views of the operands and of
    /// their tangents.
    pub(crate) fn jvp_slices<T: Numeric>(
        &self,
        rules: &Rules<T>,
        inputs: &[(LabelledArray<T>, LabelledArray<T>)],
    ) -> Result<(LabelledArray<T>, LabelledArray<T>)> {
        let output = &self.network.output;
        let sizes = self.slice_sizes();
        let (mut whole, mut tangents) =
            (self.output_of(rules.ring.zero)?, self.output_of(T::ZERO)?);
        let (outer, inner) = self.slice_counts();
        for o in 0..outer {
            let mut shape = Vec::new();
            let mut total = Slices { sum: Vec::new(), tangent: Vec::new(), absorbing: Vec::new() };
            for i in 0..inner {
                let slice = self.slice_at(o * inner + i);
                let view = |(x, dx): &(LabelledArray<T>, LabelledArray<T>)| {
                    Ok((slice.of(x)?, slice.of(dx)?))
                };
                let views = inputs.iter().map(view).collect::<Result<Vec<_>>>()?;
                let (part, d) = self.jvp_of(rules, views, &sizes)?;
                let (part, d) = (align(&part, output)?, align(&d, output)?);
                if i > 0 {
                    (rules.add_slice)(&mut total, &part.to_vec()?, &d.to_vec()?);
                    continue;
                }
                shape = part.shape().to_vec();
                (total.sum, total.tangent) = (part.to_vec()?, d.to_vec()?);
                total.absorbing = (rules.absorbing)(part)?.to_vec()?;
            }
            let Slices { sum, tangent, .. } = total;
            let block = self.slice_at(o * inner);
            block.place(&mut whole, output, &Tensor::from_vec(sum, &shape)?, |_, new| new)?;
            block
                .place(&mut tangents, output, &Tensor::from_vec(tangent, &shape)?, |_, new| new)?;
        }
        let label = |tensor| LabelledArray { tensor, ids: output.clone() };
        Ok((label(whole), label(tangents)))
    }
}

/// True if an element of a result is absorbing.
fn absorbs<T: Numeric>(rules: &Rules<T>, sum: &LabelledArray<T>) -> Result<bool> {
    if rules.share != Share::Marginal {
        return Ok(false);
    }
    Ok((rules.absorbing)(sum.tensor.clone())?.to_vec()?.contains(&1))
}
