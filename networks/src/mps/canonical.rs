//! Canonical forms and truncation.

use t4a_diff::Array;
use t4a_structured::{Bond, BondTruncation, FluxOn, GradedTensor, Qr, Sector, Svd, Truncated};

use super::Mps;
use crate::error::{NetworksError, Result};
use crate::scalar::norm;

/// `A = L Q` with the first `rows` legs as rows and orthonormal rows of Q: bonds as those of an svd.
pub(crate) fn lq<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    rows: usize,
) -> Result<[GradedTensor<S, A>; 2]> {
    let rank = x.spec().legs().len();
    let Qr { q, r } = x.dagger()?.qr(rank - rows, FluxOn::Right)?;
    Ok([r.dagger()?, q.dagger()?])
}

impl<S: Sector, A: Array> Mps<S, A> {
    /// Moves the orthogonality centre to a site: tensors before it become left isometries, those behind it right
    /// isometries.
    ///
    /// Cost: a QR decomposition per site between the old centre and the new one, of all sites without an old one.
    ///
    /// # Errors
    /// `SiteOutOfRange`; those of the factorisation.
    pub fn orthogonalise(&mut self, center: usize) -> Result<()> {
        self.check_site("orthogonalise", center)?;
        let (first, last) = match self.center {
            Some(old) => (old, old),
            None => (0, self.len() - 1),
        };
        for i in first..center {
            self.step_right(i)?;
        }
        for i in (center + 1..=last).rev() {
            self.step_left(i)?;
        }
        self.center = Some(center);
        Ok(())
    }

    /// Makes tensor i a left isometry.
    fn step_right(&mut self, i: usize) -> Result<()> {
        let Qr { q, r } = self.tensors[i].qr(2, FluxOn::Right)?;
        self.tensors[i + 1] = r.contract(&self.tensors[i + 1], &[1], &[0])?.repartition(2)?;
        self.tensors[i] = q;
        Ok(())
    }

    /// Makes tensor i a right isometry.
    fn step_left(&mut self, i: usize) -> Result<()> {
        let [l, q] = lq(&self.tensors[i], 1)?;
        self.tensors[i - 1] = self.tensors[i - 1].contract(&l, &[2], &[0])?.repartition(2)?;
        self.tensors[i] = q.repartition(2)?;
        Ok(())
    }

    /// Moves the centre from the last site to `center` and scales each centre to norm 1.
    pub(crate) fn normalise_to(&mut self, center: usize) -> Result<()> {
        for i in (center + 1..self.len()).rev() {
            self.step_left(i)?;
            self.scale_to_one(i - 1)?;
        }
        self.orthogonalise(center)?;
        self.scale_to_one(center)
    }

    fn scale_to_one(&mut self, i: usize) -> Result<()> {
        let size = norm(&self.tensors[i])?;
        if !(size.is_finite() && size > 0.0) {
            return Err(NetworksError::Norm { op: "normalise", norm: size });
        }
        self.tensors[i] = self.tensors[i].scale(1.0 / size);
        Ok(())
    }

    /// Scales the state to norm 1 and returns the norm that it had. The centre is moved to site 0 if there is none.
    ///
    /// # Errors
    /// `Norm` for a norm that is 0 or not finite.
    pub fn normalise(&mut self) -> Result<f64> {
        let center = self.center.unwrap_or(0);
        self.orthogonalise(center)?;
        let size = norm(&self.tensors[center])?;
        self.scale_to_one(center)?;
        Ok(size)
    }

    /// Truncates every bond by its singular values, and leaves the centre at site 0. The sum of the squares of what
    /// was dropped is returned; relative to `norm²` it is the infidelity.
    ///
    /// Cost: a QR and a singular value decomposition per site, `O(n d D³)`.
    ///
    /// # Errors
    /// Those of the policy and of the factorisations.
    pub fn truncate(&mut self, truncation: impl Into<BondTruncation>) -> Result<f64> {
        let truncation = truncation.into();
        truncation.validate()?;
        self.orthogonalise(self.len() - 1)?;
        let mut dropped = 0.0;
        for i in (1..self.len()).rev() {
            let Truncated { kept: Svd { u, s, vh }, error } =
                self.tensors[i].svd_truncated(1, FluxOn::Right, truncation)?;
            let left = u.scale_columns(&s)?;
            let before = self.tensors[i - 1].contract(&left, &[2], &[0])?;
            self.tensors[i - 1] = before.repartition(2)?;
            self.tensors[i] = vh.repartition(2)?;
            dropped += error * error;
        }
        self.center = Some(0);
        Ok(dropped)
    }

    /// Singular values of the bond between sites `bond` and `bond + 1`; the centre is moved to `bond`.
    ///
    /// # Errors
    /// `SiteOutOfRange` for a bond behind the last but one site.
    pub fn singular_values(&mut self, bond: usize) -> Result<Bond<S, A>> {
        self.check_site("singular_values", bond + 1)?;
        self.orthogonalise(bond)?;
        Ok(self.tensors[bond].svd(2, FluxOn::Right)?.s)
    }
}
