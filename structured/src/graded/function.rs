//! Functions of maps.

use t4a_diff::Array;
use t4a_linalg::expm::ExpmOp;
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::GradedTensor;
use crate::error::Result;
use crate::leg::Leg;
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// `Σ Aⁿ / n!` of a map: its column legs are the duals of its row legs in the same order, its charge is
    /// neutral, and products are contractions over them.
    ///
    /// # Errors
    /// `Rank`, `LegMismatch`, `Flux`; `Linalg` of the exponential.
    pub fn exp(&self) -> Result<Self> {
        let x = self.as_matrices("exp")?;
        let parts = x.by_matrix(ExpmOp.into())?;
        let order: Vec<usize> = (0..parts.len()).collect();
        let im = x.im.is_some().then(|| x.flat(&parts, 1, &order));
        let exp = Self::new(x.spec.clone(), x.flat(&parts, 0, &order), im)?;
        // The signs of the columns once more: the map of these matrices.
        exp.as_matrices("exp")
    }
}

impl<S: Sector> GradedTensor<S> {
    /// The identity of these legs on the engine: they are rows, their duals in the same order columns.
    ///
    /// # Errors
    /// As [`Spec::new`].
    pub fn identity(legs: &[Leg<S>], dtype: DType) -> Result<Self> {
        let all = legs.iter().cloned().chain(legs.iter().map(|leg| leg.dual())).collect();
        let spec = Spec::new(all, S::TRIVIAL, legs.len())?;
        let mut data = vec![0.0f64; spec.len()];
        for matrix in spec.matrices() {
            (0..matrix.rows).for_each(|i| data[matrix.offset + i * (matrix.cols + 1)] = 1.0);
        }
        let len = data.len();
        let data = AnyTensor::from(Tensor::from_vec(data, &[len])?).cast(dtype)?;
        Self::new(spec, data.into(), None)?.as_matrices("identity")
    }
}
