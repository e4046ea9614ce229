//! Elements of semirings without derivatives as primitives of any backend: integers, values with counts, lists of the
//! best values.

use burn_backend::Backend;
use t4a_diff::{Array, Integers};
use t4a_einsum::{DeviceElements, EinsumError, FloatSemiring, MovableAxes, Tag};
use t4a_tensor::DType;

use super::{Floats, Indices, along};
use crate::ext::operation::Operations;

/// Elements of a semiring.
#[derive(Clone, Debug)]
pub struct SemiringArray<B: Backend> {
    /// The semiring of the values.
    pub semiring: FloatSemiring,
    /// The elements.
    pub parts: ElementParts<B>,
}

/// Primitives of the elements of a semiring.
#[derive(Clone, Debug)]
pub enum ElementParts<B: Backend> {
    /// Signed integers; their extreme values are ∞ and −∞.
    Integers(Indices<B>),
    /// Values with the number of terms that attain each. Counts are `i32` with the bits of a `u32`, whose maximum
    /// marks an overflow or an unknown count; before the first product there are none, which means 1.
    Counted(Floats<B>, Option<Indices<B>>),
    /// The best values.
    Best {
        /// The values; a list has a last axis of `k`.
        values: Floats<B>,
        /// Number of values per element.
        k: usize,
        /// False before the first product: `values` has no last axis, and contains one value per element.
        listed: bool,
    },
}

impl<B: Backend> SemiringArray<B> {
    /// The same elements on another backend.
    pub(crate) fn on<C: Backend>(
        &self,
        float: impl Fn(&Floats<B>) -> Floats<C>,
        int: impl Fn(&Indices<B>) -> Indices<C>,
    ) -> SemiringArray<C> {
        let parts = match &self.parts {
            ElementParts::Integers(x) => ElementParts::Integers(int(x)),
            ElementParts::Counted(x, counts) => {
                ElementParts::Counted(float(x), counts.as_ref().map(int))
            }
            &ElementParts::Best { ref values, k, listed } => {
                ElementParts::Best { values: float(values), k, listed }
            }
        };
        SemiringArray { semiring: self.semiring, parts }
    }

    /// The last axis of lists.
    fn list(&self) -> Option<usize> {
        match self.parts {
            ElementParts::Best { k, listed: true, .. } => Some(k),
            _ => None,
        }
    }

    /// Sizes of the primitives of elements of this shape.
    fn sizes(&self, shape: &[usize]) -> Vec<usize> {
        shape.iter().copied().chain(self.list()).collect()
    }
}

/// An integer for a number, with the extreme values for infinities.
fn integer(x: f64, dtype: DType) -> i64 {
    if dtype == DType::I64 { x as i64 } else { i64::from(x as i32) }
}

impl<B: Operations> SemiringArray<B> {
    fn full(&self, shape: &[usize], c: f64) -> Self {
        let sizes = self.sizes(shape);
        self.on(|x| x.full(&sizes, c), |i| i.full(&sizes, integer(c, i.dtype())))
    }
}

impl<B: Operations> MovableAxes for SemiringArray<B> {
    fn shape(&self) -> Vec<usize> {
        let mut sizes = match &self.parts {
            ElementParts::Integers(x) => x.shape(),
            ElementParts::Counted(values, _) | ElementParts::Best { values, .. } => {
                Array::shape(values)
            }
        };
        sizes.truncate(sizes.len() - self.list().map_or(0, |_| 1));
        sizes
    }
    fn reshape(&self, shape: &[usize]) -> Self {
        let sizes = self.sizes(shape);
        self.on(|x| Array::reshape(x, &sizes), |i| i.reshape(&sizes))
    }
    fn permute(&self, axes: &[usize]) -> Self {
        let axes: Vec<usize> =
            axes.iter().copied().chain(self.list().map(|_| axes.len())).collect();
        self.on(|x| Array::permute(x, &axes), |i| Indices(B::int_permute(i.0.clone(), &axes)))
    }
    fn expand(&self, shape: &[usize]) -> Self {
        let sizes = self.sizes(shape);
        self.on(|x| Array::expand(x, &sizes), |i| i.expand(&sizes))
    }
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self {
        let at = along(axis, start, len, step);
        self.on(
            |x| Array::slice(x, axis, start, len, step),
            |i| Indices(B::int_slice(i.0.clone(), &at)),
        )
    }
    fn embed_in(&self, axis: usize, step: usize, size: usize, zero: f64) -> Self {
        let mut sizes = MovableAxes::shape(self);
        let at = along(axis, 0, std::mem::replace(&mut sizes[axis], size), step);
        let sizes = self.sizes(&sizes);
        // Zeros of the semiring are attained by no term.
        let count = |zero| if matches!(self.parts, ElementParts::Integers(_)) { zero } else { 0 };
        self.on(
            |x| Floats(B::float_slice_assign(x.full(&sizes, zero).0, &at, x.0.clone())),
            |i| {
                let zeros = i.full(&sizes, count(integer(zero, i.dtype())));
                Indices(B::int_slice_assign(zeros.0, &at, i.0.clone()))
            },
        )
    }
}

impl<B: Operations> DeviceElements for SemiringArray<B> {
    fn product(&self, b: &Self) -> Result<Self, EinsumError> {
        B::element_product(self, b)
    }
    fn zeros(&self, shape: &[usize]) -> Self {
        let parts = match &self.parts {
            ElementParts::Integers(x) => ElementParts::Integers(x.clone()),
            ElementParts::Counted(x, _) => {
                let values = Array::full(x, shape, self.zero());
                let zeros = x.counting(1).full(shape, 0);
                return Self { parts: ElementParts::Counted(values, Some(zeros)), ..self.clone() };
            }
            &ElementParts::Best { ref values, k, .. } => {
                ElementParts::Best { values: values.clone(), k, listed: true }
            }
        };
        Self { parts, ..self.clone() }.full(shape, self.zero())
    }
    fn ones(&self, shape: &[usize]) -> Self {
        let parts = match &self.parts {
            ElementParts::Integers(x) => ElementParts::Integers(x.clone()),
            ElementParts::Counted(values, _) => ElementParts::Counted(values.clone(), None),
            &ElementParts::Best { ref values, k, .. } => {
                ElementParts::Best { values: values.clone(), k, listed: false }
            }
        };
        Self { parts, ..self.clone() }.full(shape, self.semiring.one())
    }
    fn zero(&self) -> f64 {
        self.semiring.zero()
    }
}
