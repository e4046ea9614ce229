//! Contraction in slices: some labels are fixed in outer loops, so that intermediates fit into the
//! memory budget.
//!
//! ```text
//! before the loops         steps that are independent of the sliced labels
//! labels of the output     outer loops; each writes a separate part of the result
//! labels that are summed   inner loops; their results are accumulated, in ascending order
//! ```

use t4a_algebra::Scalar;
use t4a_tensor::{Layout, Tensor};

use crate::backend::ProductBackends;
use crate::contract::Slots;
use crate::error::Result;
use crate::labelled::{LabelledArray, align, scatter};
use crate::network::LabelId;
use crate::plan::Plan;
use crate::table::RingTable;

/// The value of each sliced label.
pub(crate) struct SliceIndex<'a> {
    labels: &'a [LabelId],
    values: Vec<usize>,
}

impl SliceIndex<'_> {
    /// The value of a label, if it is sliced.
    pub(crate) fn value(&self, id: LabelId) -> Option<usize> {
        self.labels.iter().position(|&label| label == id).map(|i| self.values[i])
    }

    /// The view of a tensor in the slice: sliced axes keep one index.
    pub(crate) fn of<T: Scalar>(&self, x: &LabelledArray<T>) -> Result<LabelledArray<T>> {
        let mut x = x.clone();
        for (axis, &id) in x.ids.iter().enumerate() {
            if let Some(value) = self.value(id) {
                x.tensor = x.tensor.slice_axis(axis, value, 1, 1)?;
            }
        }
        Ok(x)
    }

    /// The elements that the slice reads, with the axes in the order of `ids`.
    pub(crate) fn values<T: Scalar>(
        &self,
        x: &LabelledArray<T>,
        ids: &[LabelId],
    ) -> Result<Vec<T>> {
        Ok(align(&self.of(x)?, ids)?.to_vec()?)
    }

    /// Combines a part into its position in the whole, whose axes are `ids`.
    pub(crate) fn place<T: Scalar>(
        &self,
        whole: &mut Tensor<T>,
        ids: &[LabelId],
        part: &Tensor<T>,
        combine: fn(T, T) -> T,
    ) -> Result<()> {
        if part.numel() == 0 {
            return Ok(());
        }
        let layout = Layout::contiguous("einsum", whole.shape(), size_of::<T>())?;
        let strides: Vec<usize> = layout.strides().iter().map(|&stride| stride as usize).collect();
        let along = ids.iter().zip(&strides);
        let start: usize = along.filter_map(|(&id, stride)| Some(self.value(id)? * stride)).sum();
        scatter(&mut whole.as_mut_slice()?[start..], &strides, part, combine)
    }
}

impl Plan {
    /// Sizes of the labels within a slice.
    pub(crate) fn slice_sizes(&self) -> Vec<usize> {
        let mut sizes = self.network.sizes.clone();
        self.sliced.iter().for_each(|&id| sizes[id as usize] = 1);
        sizes
    }

    /// The slice of an index, row-major over [`Plan::sliced`].
    pub(crate) fn slice_at(&self, number: usize) -> SliceIndex<'_> {
        let mut rest = number;
        let mut values = vec![0; self.sliced.len()];
        for (value, &id) in values.iter_mut().zip(&self.sliced).rev() {
            let size = self.network.sizes[id as usize];
            *value = rest % size;
            rest /= size;
        }
        SliceIndex { labels: &self.sliced, values }
    }

    /// Number of slices over output labels, and over summed labels.
    pub(crate) fn slice_counts(&self) -> (usize, usize) {
        let count = |of_output: bool| -> usize {
            let fits = |id: &&LabelId| self.network.output.contains(id) == of_output;
            self.sliced.iter().filter(fits).map(|&id| self.network.sizes[id as usize]).product()
        };
        (count(true), count(false))
    }

    /// One contraction for every value of the sliced labels.
    pub(crate) fn run_slices<T: Scalar>(
        &self,
        ring: &RingTable<T>,
        slots: Slots<T>,
        backend: &ProductBackends<'_, T>,
    ) -> Result<LabelledArray<T>> {
        self.fold_slices(ring, slots, backend, ring.zero, |total, part| match total {
            None => Ok(part),
            Some(total) => Ok((ring.plus)(total, part)?),
        })
    }

    /// Folds the contractions of the slices over summed labels in ascending order and writes each result to its part of
    /// the output, which is initialised with `fill`.
    pub(crate) fn fold_slices<T: Scalar, U: Scalar>(
        &self,
        ring: &RingTable<T>,
        mut slots: Slots<T>,
        backend: &ProductBackends<'_, T>,
        fill: U,
        fold: impl Fn(Option<Tensor<U>>, Tensor<T>) -> Result<Tensor<U>>,
    ) -> Result<LabelledArray<U>> {
        let network = &self.network;
        let ids = &network.output;
        let (sizes, varies) = (self.slice_sizes(), self.varies(&self.sliced));
        self.run(ring, &mut slots, &|slot| !varies[slot], &sizes, backend)?;
        let (outer, inner) = self.slice_counts();
        let mut whole = None;
        for o in 0..outer {
            let mut total: Option<Tensor<U>> = None;
            for i in 0..inner {
                let slice = self.slice_at(o * inner + i);
                let part = slots.iter().map(|x| x.as_ref().map(|x| slice.of(x)).transpose());
                let mut part: Slots<T> = part.collect::<Result<_>>()?;
                self.run(ring, &mut part, &|slot| varies[slot], &sizes, backend)?;
                let part = align(&self.last(ring, part, &sizes)?, ids)?;
                total = Some(fold(total.take(), part)?);
            }
            let Some(total) = total else { continue };
            if outer == 1 {
                return Ok(LabelledArray { tensor: total, ids: ids.clone() });
            }
            if whole.is_none() {
                whole = Some(self.output_of(fill)?);
            }
            if let Some(whole) = &mut whole {
                let block = self.slice_at(o * inner);
                block.place(whole, ids, &total, |_, new| new)?;
            }
        }
        let tensor = whole.map_or_else(|| self.output_of(fill), Ok)?;
        Ok(LabelledArray { tensor, ids: ids.clone() })
    }

    /// A tensor over the output labels.
    pub(crate) fn output_of<T: Scalar>(&self, fill: T) -> Result<Tensor<T>> {
        let network = &self.network;
        let shape: Vec<usize> =
            network.output.iter().map(|&id| network.sizes[id as usize]).collect();
        Ok(Tensor::full(&shape, fill)?)
    }
}
