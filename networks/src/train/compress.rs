//! Lower bonds: by singular values, or by the pivots of rank-revealing LU factorisations.

use t4a_algebra::Real;
use t4a_linalg::LinalgScalar;
use t4a_linalg::svd::{Truncation, svd_truncated};
use t4a_tensor::Tensor;
use t4a_tensor::copy::row_major;

use super::canonical::dims;
use super::matrix::{absorb_right, scale_rows, wide};
use super::rank_revealing::RankRevealingLu;
use super::{Result, TensorTrain, TrainError};

/// The factorisation that finds the bonds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Factorisation {
    /// Singular values: the smallest error in the Frobenius norm.
    #[default]
    Svd,
    /// Rank-revealing LU: `L` to the left, `U` stays.
    Lu,
    /// Cross interpolation: the same pivots as `Lu`, but cores that interpolate; their elements stay of order 1.
    Cross,
}

/// Limits of the bonds of a compressed train.
///
/// ```
/// use t4a_networks::train::{Compression, TensorTrain};
/// let f = TensorTrain::constant(&[2; 10], 1.0f64)?;
/// let (g, error) = f.add(&f)?.compress(&Compression::new().tolerance(1e-12))?;
/// assert_eq!(g.max_bond(), 1);
/// assert!(error < 1e-12 * 64.0);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression {
    factorisation: Factorisation,
    pub(super) tolerance: f64,
    max_bond: usize,
}

impl Default for Compression {
    fn default() -> Self {
        Self { factorisation: Factorisation::Svd, tolerance: 0.0, max_bond: usize::MAX }
    }
}

impl Compression {
    /// Singular values, tolerance 0, no limit: removes nothing but bonds beyond the number of elements.
    pub fn new() -> Self {
        Self::default()
    }
    /// The factorisation.
    pub fn factorisation(self, factorisation: Factorisation) -> Self {
        Self { factorisation, ..self }
    }
    /// The error allowed. `Svd`: `‖F − G‖ ≤ tolerance · ‖F‖` in the Frobenius norm, divided evenly among the
    /// bonds, unless `max_bond` cuts earlier. `Lu`, `Cross`: pivots of at most `tolerance` times the
    /// largest one of the bond are rejected.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }
    /// The largest bond allowed, 1 or more.
    pub fn max_bond(self, max_bond: usize) -> Self {
        Self { max_bond, ..self }
    }

    pub(super) fn validate(&self, op: &'static str) -> Result<()> {
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            let message = format!("the tolerance must be ≥ 0, given {}", self.tolerance);
            return Err(TrainError::value(op, message));
        }
        match self.max_bond {
            0 => Err(TrainError::value(op, "the bond dimension must be at least 1")),
            _ => Ok(()),
        }
    }

    /// `A ≈ B C` of a matrix `[m, n]`: factors `[m, r]` and `[r, n]`, `C` with orthonormal or interpolating rows, and
    /// the error of this cut. `weight` is the absolute error that singular values may have.
    pub(super) fn split<T: LinalgScalar>(
        &self,
        a: &Tensor<T>,
        weight: f64,
    ) -> Result<(Tensor<T>, Tensor<T>, f64)> {
        if self.factorisation == Factorisation::Svd {
            let truncation = Truncation::new()
                .min_dim(1)
                .max_dim(self.max_bond)
                .discarded_weight(weight * weight);
            let cut = svd_truncated(a, &truncation)?;
            let s = cut.kept.s.to_vec()?;
            let u = row_major(&cut.kept.u.permute(&[1, 0])?)?;
            let left = row_major(&scale_rows(&s, &u)?.permute(&[1, 0])?)?;
            return Ok((left, row_major(&cut.kept.vh)?, cut.error.to_vec()?[0].to_f64()));
        }
        // The transpose, so that the unit triangle or the interpolation is on the right.
        let lu = RankRevealingLu::new(&a.permute(&[1, 0])?, self.tolerance, self.max_bond)?;
        if lu.rank() == 0 {
            let [m, n] = [a.shape()[0], a.shape()[1]];
            return Ok((Tensor::zeros(&[m, 1])?, Tensor::zeros(&[1, n])?, 0.0));
        }
        let (left, right) = match self.factorisation {
            Factorisation::Lu => (lu.upper()?, lu.lower()?),
            _ => {
                let rows: Vec<i64> = lu.rows().iter().map(|&i| i as i64).collect();
                (columns(a, &rows)?, lu.left_interpolation()?)
            }
        };
        let turned = |x: Tensor<T>| row_major(&x.permute(&[1, 0])?);
        let left = if self.factorisation == Factorisation::Lu { turned(left)? } else { left };
        Ok((left, turned(right)?, lu.error()))
    }
}

/// `A[:, columns]`.
fn columns<T: LinalgScalar>(a: &Tensor<T>, columns: &[i64]) -> Result<Tensor<T>> {
    let (m, n) = (a.shape()[0], a.shape()[1]);
    let data = a.to_vec()?;
    let (data, r) = (&data, columns.len());
    let picked = (0..m).flat_map(|i| columns.iter().map(move |&j| data[i * n + j as usize]));
    Ok(Tensor::from_vec(picked.collect(), &[m, r])?)
}

impl<T: LinalgScalar> TensorTrain<T> {
    /// A train with lower bonds, and the error: for `Svd` an upper bound of `‖F − G‖`, the root of the sum of
    /// the squares of all discarded singular values; for `Lu` and `Cross` the largest rejected pivot, an
    /// estimate of `max |F − G|` that neglects the growth of errors along the train.
    ///
    /// The train is brought to canonical form with the last site as the centre, then cut from right to left.
    /// Cost `Σ d·l·r·min(l, r)` multiply-adds, about 20 times that for singular values.
    ///
    /// # Errors
    /// `Value` for a tolerance that is negative or NaN, for bonds of 0; `Linalg`, `NonFinite`: elements that are NaN
    /// or infinite.
    pub fn compress(&self, compression: &Compression) -> Result<(Self, f64)> {
        let op = "compress";
        compression.validate(op)?;
        let mut cores = self.canonical(self.len() - 1)?.cores;
        let bonds = (cores.len() - 1).max(1) as f64;
        let norm = self.norm()?.to_f64();
        let weight = compression.tolerance * norm / bonds.sqrt();
        let mut error: f64 = 0.0;
        for k in (1..cores.len()).rev() {
            let [_, d, r] = dims(&cores[k]);
            let (left, right, cut) = compression.split(&wide(&cores[k])?, weight)?;
            cores[k] = right.reshape(&[right.shape()[0], d, r])?;
            cores[k - 1] = absorb_right(&cores[k - 1], &left)?;
            error = match compression.factorisation {
                Factorisation::Svd => error.hypot(cut),
                _ => error.max(cut),
            };
        }
        Ok((Self::checked(op, cores)?, error))
    }
}
