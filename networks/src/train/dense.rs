//! Trains from and to dense arrays.

use t4a_algebra::Real;
use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;
use t4a_tensor::copy::row_major;

use super::compress::{Compression, Factorisation};
use super::matrix::{product, wide};
use super::{Result, TensorTrain, TrainError};

impl<T: LinalgScalar> TensorTrain<T> {
    /// The train of a dense array of rank `n ≥ 1`, and the error as that of [`TensorTrain::compress`].
    ///
    /// Cost about `numel · Σ min(l·d, rest)` multiply-adds. Reference: Oseledets (2011), algorithm 1, from the last axis
    /// to the first.
    ///
    /// # Errors
    /// `Sites` for rank 0; `Core` for an axis of size 0; `Value` as for compression; `Linalg`, `NonFinite`.
    pub fn from_dense(a: &Tensor<T>, compression: &Compression) -> Result<(Self, f64)> {
        let op = "from_dense";
        compression.validate(op)?;
        let (shape, n) = (a.shape(), a.rank());
        if n == 0 {
            return Err(TrainError::Sites { op, required: 1, given: 0 });
        }
        if let Some(site) = shape.iter().position(|&d| d == 0) {
            let required = "axes of size ≥ 1".to_string();
            return Err(TrainError::Core { op, site, shape: shape.to_vec(), required });
        }
        let flat = row_major(a)?.reshape(&[1, a.numel(), 1])?;
        let norm = Self { cores: vec![flat.clone()] }.norm()?.to_f64();
        let weight = compression.tolerance * norm / ((n - 1).max(1) as f64).sqrt();
        let (mut cores, mut error, mut rest) = (Vec::with_capacity(n), 0.0f64, flat);
        let mut right = 1;
        for k in (1..n).rev() {
            let cols = shape[k] * right;
            let matrix = rest.reshape(&[rest.numel() / cols, cols])?;
            let (left, core, cut) = compression.split(&matrix, weight)?;
            let bond = core.shape()[0];
            cores.push(core.reshape(&[bond, shape[k], right])?);
            (rest, right) = (left, bond);
            error = match compression.is_svd() {
                true => error.hypot(cut),
                false => error.max(cut),
            };
        }
        cores.push(rest.reshape(&[1, shape[0], right])?);
        cores.reverse();
        Ok((Self::checked(op, cores)?, error))
    }

    /// The dense array of all values, `[d₁, …, d_n]`.
    ///
    /// # Errors
    /// `Tensor`: more elements than memory has.
    pub fn to_dense(&self) -> Result<Tensor<T>> {
        let mut out = Tensor::ones(&[1, 1])?;
        for core in &self.cores {
            let next = product(&out, &wide(core)?)?;
            let bond = core.shape()[2];
            out = next.reshape(&[next.numel() / bond, bond])?;
        }
        Ok(out.reshape(&self.sizes())?)
    }
}

impl Compression {
    fn is_svd(&self) -> bool {
        *self == self.factorisation(Factorisation::Svd)
    }
}
