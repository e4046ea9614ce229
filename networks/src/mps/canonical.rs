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

/// The tensor scaled to norm 1.
pub(crate) fn unit<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
    let size = norm(x)?;
    match size.is_finite() && size > 0.0 {
        true => Ok(x.scale(1.0 / size)),
        false => Err(NetworksError::Norm { op: "normalise", norm: size }),
    }
}

impl<S: Sector, A: Array> Mps<S, A> {
    /// Moves the orthogonality centre to a site: tensors before it become left isometries, those behind it right
    /// isometries.
    ///
    /// Cost: a QR decomposition per site between the old centre and the new one, of all sites without an old one.
    ///
    /// # Errors
    /// `SiteOutOfRange`; those of the factorisation, after which the state is the same one with its centre where the
    /// decompositions ended.
    pub fn orthogonalise(&mut self, center: usize) -> Result<()> {
        self.check_site("orthogonalise", center)?;
        let (first, last) = match self.center {
            Some(old) => (old, old),
            None => (0, self.len() - 1),
        };
        for i in first..center {
            self.step_right(i)?;
            self.center = self.center.map(|_| i + 1);
        }
        for i in (center + 1..=last).rev() {
            self.step_left(i)?;
            self.center = self.center.map(|_| i - 1);
        }
        self.center = Some(center);
        Ok(())
    }

    /// Makes tensor i a left isometry.
    fn step_right(&mut self, i: usize) -> Result<()> {
        let Qr { q, r } = self.tensors[i].qr(2, FluxOn::Right)?;
        // No error after the first assignment: the state stays the same one.
        self.tensors[i + 1] = r.contract(&self.tensors[i + 1], &[1], &[0])?.repartition(2)?;
        self.tensors[i] = q;
        Ok(())
    }

    /// Makes tensor i a right isometry.
    fn step_left(&mut self, i: usize) -> Result<()> {
        let [l, q] = lq(&self.tensors[i], 1)?;
        let q = q.repartition(2)?;
        self.tensors[i - 1] = self.tensors[i - 1].contract(&l, &[2], &[0])?.repartition(2)?;
        self.tensors[i] = q;
        Ok(())
    }

    /// Moves the centre from the last site to `center` and scales each centre to norm 1.
    pub(crate) fn normalise_to(&mut self, center: usize) -> Result<()> {
        for i in (center + 1..self.len()).rev() {
            self.step_left(i)?;
            self.center = self.center.map(|_| i - 1);
            self.scale_to_one(i - 1)?;
        }
        self.orthogonalise(center)?;
        self.scale_to_one(center)
    }

    fn scale_to_one(&mut self, i: usize) -> Result<()> {
        self.tensors[i] = unit(&self.tensors[i])?;
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
    /// Those of the policy and of the factorisations, after which the bonds behind the centre are truncated.
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
            let after = vh.repartition(2)?;
            self.replace(i - 1, [before.repartition(2)?, after], i - 1);
            dropped += error * error;
        }
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

#[cfg(test)]
mod tests {
    use t4a_structured::U1;
    use t4a_tensor::random::Generator;

    use super::*;
    use crate::broken::not_a_number;
    use crate::sites::{Sites, spin_half};

    /// A decomposition that fails on the way leaves the same state, with its centre behind the failure.
    #[test]
    fn centers_after_errors() {
        let sites = Sites::uniform(spin_half(), 6);
        let mut start = Mps::random(&sites, U1(0), 8, false, &Generator::new(1)).unwrap();
        start.orthogonalise(5).unwrap();
        start.tensors[2] = not_a_number(&start.tensors[2]);
        let mut moved = start.clone();
        moved.orthogonalise(0).unwrap_err();
        let mut truncated = start.clone();
        truncated.truncate(crate::truncation(8, 0.0)).unwrap_err();
        for state in [moved, truncated] {
            let center = state.center().unwrap();
            assert!((2..4).contains(&center), "{center}");
            for x in &state.tensors[center + 1..] {
                let gram = x.contract(&x.conj().unwrap(), &[1, 2], &[1, 2]).unwrap();
                let dim = gram.spec().legs()[0].dim() as f64;
                let trace = x.norm_squared().unwrap();
                let [trace, square] =
                    [crate::scalar::number(&trace).unwrap(), norm(&gram).unwrap().powi(2)];
                assert!((trace - dim).abs() + (square - dim).abs() < 1e-12, "{trace}, {square}");
            }
        }
    }
}
