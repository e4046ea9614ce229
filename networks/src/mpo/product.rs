//! Products and truncations of operators.

use t4a_diff::Array;
use t4a_structured::{BondTruncation, Direction, GradedTensor, Sector, einsum};

use super::Mpo;
use crate::error::Result;
use crate::mps::Mps;
use crate::scalar::unfused;

impl<S: Sector, A: Array> Mpo<S, A> {
    /// The product `self other`, which applies `other` first. Bond dimensions multiply; [`Mpo::truncate`] makes them
    /// smaller. Differentiable.
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites.
    pub fn mul(&self, other: &Self) -> Result<Self> {
        self.check_sites("mul", other)?;
        let product = |(a, b): (&GradedTensor<S, A>, &GradedTensor<S, A>)| {
            let both = einsum("aqsb,cspd->acqpbd", &[a, b])?;
            let joined = both.fuse(4..6, Direction::In)?.fuse(0..2, Direction::Out)?;
            unfused(joined.repartition(2)?)
        };
        let tensors = self.tensors.iter().zip(&other.tensors).map(product);
        Self::new(tensors.collect::<Result<_>>()?)
    }

    /// Truncates every bond by the singular values of the operator as a vector of its entries. The sum of the squares
    /// of the values that were dropped is returned: the square of the Frobenius norm of the difference.
    ///
    /// # Errors
    /// Those of the policy and of the factorisations.
    pub fn truncate(&mut self, truncation: impl Into<BondTruncation>) -> Result<f64> {
        let fused = |x: &GradedTensor<S, A>| Ok(x.fuse(1..3, Direction::Out)?.repartition(2)?);
        let mut state = Mps::new(self.tensors.iter().map(fused).collect::<Result<_>>()?)?;
        let dropped = state.truncate(truncation)?;
        let split = |x: &GradedTensor<S, A>| Ok(x.split(1)?.repartition(2)?);
        *self = Self::new(state.tensors().iter().map(split).collect::<Result<_>>()?)?;
        Ok(dropped)
    }
}
