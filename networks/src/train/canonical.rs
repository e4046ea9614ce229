//! Canonical form: orthonormal cores on both sides of a centre.

use t4a_linalg::LinalgScalar;
use t4a_linalg::qr::{Columns, lq, qr};
use t4a_tensor::copy::row_major;

use super::matrix::{absorb_left, absorb_right, tall, wide};
use super::{Result, TensorTrain, TrainError};

impl<T: LinalgScalar> TensorTrain<T> {
    /// The same tensor with orthonormal columns `Σ Aᴴ A = 1` left of the site `centre` and orthonormal
    /// rows `Σ A Aᴴ = 1` right of it. Bonds are cut to the number of elements on either side.
    ///
    /// Cost `Σ d·l·r·min(l, r)` multiply-adds.
    ///
    /// # Errors
    /// `Index` for a centre that is no site; `Linalg`: elements that are NaN or infinite.
    pub fn canonical(&self, centre: usize) -> Result<Self> {
        if centre >= self.len() {
            let (site, size) = (0, self.len());
            return Err(TrainError::Index { op: "canonical", site, index: centre, size });
        }
        let mut cores = self.cores.clone();
        for k in 0..centre {
            let [l, d, _] = dims(&cores[k]);
            let factors = qr(&tall(&cores[k])?, Columns::Thin)?;
            let bond = factors.q.shape()[1];
            cores[k] = row_major(&factors.q)?.reshape(&[l, d, bond])?;
            cores[k + 1] = absorb_left(&factors.r, &cores[k + 1])?;
        }
        for k in (centre + 1..self.len()).rev() {
            let [_, d, r] = dims(&cores[k]);
            let factors = lq(&wide(&cores[k])?)?;
            let bond = factors.q.shape()[0];
            cores[k] = row_major(&factors.q)?.reshape(&[bond, d, r])?;
            cores[k - 1] = absorb_right(&cores[k - 1], &factors.l)?;
        }
        Ok(Self { cores })
    }
}

pub(super) fn dims<T: LinalgScalar>(core: &t4a_tensor::Tensor<T>) -> [usize; 3] {
    let shape = core.shape();
    [shape[0], shape[1], shape[2]]
}
