//! Tensors with labelled axes: conversion of operands to network tensors and of network tensors to results.
//!
//! ```text
//! repeated label in an operand   diagonal view
//! axis of size 1                 dropped
//! repeated label in the output   written to the diagonal of zeros
//! label in the output only       expanded view
//! ```

use smallvec::SmallVec;
use t4a_algebra::{Numeric, Scalar};
use t4a_tensor::Tensor;

use crate::error::Result;
use crate::network::{AxisLabels, Ids, LabelId, Network};

/// A tensor with a label for each axis.
#[derive(Clone)]
pub(crate) struct LabelledArray<T> {
    pub(crate) tensor: Tensor<T>,
    pub(crate) ids: Ids,
}

impl Network {
    /// Operand `i` as a view with distinct labels. No copy.
    pub(crate) fn enter<T: Scalar>(
        &self,
        i: usize,
        tensor: &Tensor<T>,
    ) -> Result<LabelledArray<T>> {
        enter(&self.axes[i], tensor)
    }

    /// The cotangent of operand `i`, given that of its view from [`Network::enter`].
    pub(crate) fn leave_operand<T: Numeric>(
        &self,
        i: usize,
        x: &LabelledArray<T>,
    ) -> Result<Tensor<T>> {
        let aligned = align(x, &self.inputs[i])?;
        if self.inputs[i].len() == self.axes[i].len() {
            return Ok(aligned);
        }
        embed(T::ZERO, &self.axes[i], &self.shapes[i], &aligned, &self.inputs[i])
    }

    /// The result in the axis order and shape of the output; elements off the diagonals are `zero`.
    pub(crate) fn leave<T: Scalar>(&self, zero: T, x: LabelledArray<T>) -> Result<Tensor<T>> {
        let route = x.tensor.route();
        let mut distinct = Ids::new();
        for &id in self.result.iter().flatten() {
            if !distinct.contains(&id) {
                distinct.push(id);
            }
        }
        let mut tensor = align(&x, &distinct)?;
        if distinct.len() != x.ids.len() {
            let shape: SmallVec<[usize; 8]> =
                distinct.iter().map(|&id| self.sizes[id as usize]).collect();
            tensor = tensor.expand(&shape)?;
        }
        if distinct.len() < self.result.iter().flatten().count() {
            let shape = self.result_shape();
            return Ok(embed(zero, &self.result, &shape, &tensor, &distinct)?.with_route(route));
        }
        for (axis, id) in self.result.iter().enumerate() {
            if id.is_none() {
                tensor = tensor.unsqueeze(axis)?;
            }
        }
        Ok(tensor)
    }
}

/// A tensor with the given axes as a view with distinct labels. No copy.
pub(crate) fn enter<T: Scalar>(axes: &AxisLabels, tensor: &Tensor<T>) -> Result<LabelledArray<T>> {
    let mut view = tensor.clone();
    let mut ids = Ids::new();
    for &axis in axes {
        // Processed axes are at the front, the remaining ones follow.
        match axis {
            None => view = view.select(ids.len(), 0)?,
            Some(id) => match ids.iter().position(|&known| known == id) {
                None => ids.push(id),
                Some(at) => {
                    view = view.diagonal(at, ids.len(), 0)?;
                    // The diagonal is the last axis; move it back to position `at`.
                    let last = view.rank() - 1;
                    let order: SmallVec<[usize; 8]> =
                        (0..at).chain([last]).chain(at..last).collect();
                    view = view.permute(&order)?;
                }
            },
        }
    }
    Ok(LabelledArray { tensor: view, ids })
}

/// Writes a tensor with labels `ids` to the diagonals of a tensor of zeros, for repeated output labels.
fn embed<T: Scalar>(
    zero: T,
    axes: &AxisLabels,
    shape: &[usize],
    x: &Tensor<T>,
    ids: &Ids,
) -> Result<Tensor<T>> {
    let mut out = Tensor::full(shape, zero)?;
    let strides: Vec<usize> = out.layout().strides().iter().map(|&s| s as usize).collect();
    let along = |id: &LabelId| -> usize {
        axes.iter().zip(&strides).filter(|(axis, _)| **axis == Some(*id)).map(|(_, s)| s).sum()
    };
    let along: Vec<usize> = ids.iter().map(along).collect();
    scatter(out.as_mut_slice()?, &along, x, |_, new| new)?;
    Ok(out)
}

/// `out[Σ iₖ·strides[k]] ← combine(out[…], x[i])` for every index of x.
pub(crate) fn scatter<T: Scalar>(
    out: &mut [T],
    strides: &[usize],
    x: &Tensor<T>,
    combine: fn(T, T) -> T,
) -> Result<()> {
    let values = x.to_vec()?;
    let shape = x.shape();
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    for value in values {
        out[at] = combine(out[at], value);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Ok(())
}

/// The axes of `x` in the order of `ids`, with size 1 for missing labels. Every label of `x` must be in `ids`. No copy.
pub(crate) fn align<T: Scalar>(x: &LabelledArray<T>, ids: &[LabelId]) -> Result<Tensor<T>> {
    if x.ids.as_slice() == ids {
        return Ok(x.tensor.clone());
    }
    let order: SmallVec<[usize; 8]> =
        ids.iter().filter_map(|id| x.ids.iter().position(|known| known == id)).collect();
    let mut tensor = x.tensor.permute(&order)?;
    if order.len() < ids.len() {
        for (axis, id) in ids.iter().enumerate() {
            if !x.ids.contains(id) {
                tensor = tensor.unsqueeze(axis)?;
            }
        }
    }
    Ok(tensor)
}
