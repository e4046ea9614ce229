//! Graded tensors from single entries, which are given by the states of the legs in dense order.

use smallvec::SmallVec;
use t4a_algebra::c64;
use t4a_structured::{GradedTensor, Leg, Sector, Spec};
use t4a_tensor::{AnyTensor, Tensor};

use crate::error::Result;

/// Entries below this part of the largest are rounding errors when a tensor is found to be real.
const REAL: f64 = 1e-14;

/// A tensor that is filled entry by entry.
pub(crate) struct Filler<S> {
    spec: Spec<S>,
    /// By leg and state: place of the sector, and the state within.
    states: Vec<Vec<(u32, usize)>>,
    data: Vec<c64>,
}

/// By state in dense order: place of the sector, and the state within.
fn numbered<S: Sector>(leg: &Leg<S>) -> Vec<(u32, usize)> {
    let sectors = leg.sectors().iter().enumerate();
    sectors.flat_map(|(place, &(_, dim))| (0..dim).map(move |k| (place as u32, k))).collect()
}

impl<S: Sector> Filler<S> {
    pub(crate) fn new(spec: Spec<S>) -> Self {
        let states = spec.legs().iter().map(numbered).collect();
        let data = vec![c64::ZERO; spec.len()];
        Self { spec, states, data }
    }

    /// Adds to an entry. One that the symmetry forbids is left out: callers check charges.
    pub(crate) fn add(&mut self, index: &[usize], x: c64) {
        let found = index.iter().zip(&self.states).map(|(&k, leg)| leg[k]);
        let found: SmallVec<[(u32, usize); 6]> = found.collect();
        let places: SmallVec<[u32; 6]> = found.iter().map(|&(place, _)| place).collect();
        let Some(block) = self.spec.block(&places) else {
            debug_assert!(false, "entry {index:?} of {}", self.spec);
            return;
        };
        let steps = found.iter().zip(block.strides()).map(|(&(_, k), stride)| k * stride);
        let at = block.offset() + steps.sum::<usize>();
        self.data[at] += x;
    }

    /// The tensor, real if all entries are.
    pub(crate) fn finish(self) -> Result<GradedTensor<S>> {
        let largest = self.data.iter().map(|x| x.norm()).fold(0.0, f64::max);
        let complex = self.data.iter().any(|x| x.im.abs() > REAL * largest);
        let array = |part: fn(&c64) -> f64| -> Result<AnyTensor> {
            let part: Vec<f64> = self.data.iter().map(part).collect();
            let len = part.len();
            Ok(Tensor::from_vec(part, &[len])?.into())
        };
        let re = array(|x| x.re)?;
        let im = if complex { Some(array(|x| x.im)?) } else { None };
        Ok(GradedTensor::new(self.spec, re.into(), im.map(Into::into))?)
    }
}
