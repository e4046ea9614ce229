//! Loops over the terms of one pairwise contraction, for derivatives that look at each term.

use std::ops::ControlFlow;

use t4a_algebra::Scalar;

use crate::error::Result;
use crate::network::{Id, Ids, Labelled, align};

/// Two operands as flat vectors, and where the terms of each element of the result lie in them.
pub(crate) struct Sweep<T> {
    pub(crate) a: Vec<T>,
    pub(crate) b: Vec<T>,
    outer: Vec<Axis>,
    /// Offsets of the summed indices in (a, b), in row-major order.
    terms: Vec<(usize, usize)>,
}

struct Axis {
    size: usize,
    a: usize,
    b: usize,
}

/// Row-major stride of every label of `ids`; 0 for others.
fn stride_of(ids: &Ids, sizes: &[usize]) -> impl Fn(Id) -> usize {
    let mut stride = 1;
    let mut strides: Vec<(Id, usize)> = Vec::with_capacity(ids.len());
    for &id in ids.iter().rev() {
        strides.push((id, stride));
        stride *= sizes[id as usize];
    }
    move |id| strides.iter().find(|(known, _)| *known == id).map_or(0, |(_, stride)| *stride)
}

impl<T: Scalar> Sweep<T> {
    /// Elements of the result are counted in the order of `outer`.
    pub(crate) fn new(
        a: &Labelled<T>,
        b: &Labelled<T>,
        outer: &Ids,
        sum: &Ids,
        sizes: &[usize],
    ) -> Result<Self> {
        let (of_a, of_b) = (stride_of(&a.ids, sizes), stride_of(&b.ids, sizes));
        let axis = |&id: &Id| Axis { size: sizes[id as usize], a: of_a(id), b: of_b(id) };
        let mut terms = vec![(0, 0)];
        for Axis { size, a, b } in sum.iter().map(axis) {
            let along = |&(i, j): &(usize, usize)| (0..size).map(move |k| (i + k * a, j + k * b));
            terms = terms.iter().flat_map(along).collect();
        }
        let outer = outer.iter().map(axis).collect();
        Ok(Self { a: a.tensor.to_vec()?, b: b.tensor.to_vec()?, outer, terms })
    }

    /// Calls `body(element, start in a, start in b)` for every element of the result.
    pub(crate) fn elements(&self, mut body: impl FnMut(usize, usize, usize)) {
        let total: usize = self.outer.iter().map(|axis| axis.size).product();
        let mut index = vec![0; self.outer.len()];
        let (mut at_a, mut at_b) = (0, 0);
        for element in 0..total {
            body(element, at_a, at_b);
            for (i, axis) in index.iter_mut().zip(&self.outer).rev() {
                *i += 1;
                at_a += axis.a;
                at_b += axis.b;
                if *i < axis.size {
                    break;
                }
                at_a -= axis.a * axis.size;
                at_b -= axis.b * axis.size;
                *i = 0;
            }
        }
    }

    /// Calls `body(position in a, position in b)` for the terms of one element, in order, until it
    /// breaks.
    #[inline]
    pub(crate) fn terms(
        &self,
        (at_a, at_b): (usize, usize),
        mut body: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) {
        for &(i, j) in &self.terms {
            if body(at_a + i, at_b + j).is_break() {
                return;
            }
        }
    }
}

/// The elements of `x` in the order of `ids`.
pub(crate) fn elements_of<T: Scalar>(x: &Labelled<T>, ids: &Ids) -> Result<Vec<T>> {
    Ok(align(x, ids)?.to_vec()?)
}
