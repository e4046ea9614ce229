//! Operators on states.
//!
//! Reference: E. Stoudenmire, S. White, *Minimally entangled typical thermal state algorithms* (2010), for the zip-up.

use t4a_diff::Array;
use t4a_structured::{BondTruncation, Direction, FluxOn, GradedTensor, Qr, Sector, Svd, einsum};

use super::Mps;
use crate::error::Result;
use crate::mpo::Mpo;
use crate::scalar::{edge, unfused};

/// Algorithm that truncates the product of an operator and a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The product with orthogonal bonds, then a truncation: the best truncation of each bond, `O(n d w³ D³)`.
    #[default]
    Exact,
    /// One sweep that truncates while it multiplies, and one that truncates again: `O(n d w D³)`. Close to the best
    /// truncation for operators near the identity.
    ZipUp,
    /// One sweep along the leading eigenvectors of density matrices: the best truncation of each bond,
    /// `O(n d w² D³ + n d³ D³)`. Cheaper than the exact product for operators of large bonds; singular values below
    /// 10⁻⁸ of the largest, whose squares are rounding errors, are not resolved.
    DensityMatrix,
    /// The zip-up, and two sweeps that bring it closer to the product: `O(n d² w D³)` each.
    Variational,
}

impl<S: Sector, A: Array> Mps<S, A> {
    /// `operator |self⟩` with bonds truncated. The centre of the result is site 0. An operator of charge q adds
    /// q to the charge of the state.
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites; those of the policy.
    pub fn apply(
        &self,
        operator: &Mpo<S, A>,
        method: Method,
        truncation: impl Into<BondTruncation>,
    ) -> Result<Self> {
        let truncation = truncation.into();
        truncation.validate()?;
        self.check_legs("apply", (0..operator.len()).map(|i| operator.physical(i)))?;
        let mut out = match method {
            Method::DensityMatrix => return self.by_densities(operator, truncation),
            Method::Exact => self.zip(operator.tensors(), None)?,
            Method::ZipUp | Method::Variational => {
                let mut state = self.clone();
                state.orthogonalise(0)?;
                state.zip(operator.tensors(), Some(truncation))?
            }
        };
        out.truncate(truncation)?;
        match method {
            Method::Variational => self.fit(operator, out, truncation),
            _ => Ok(out),
        }
    }

    /// The product from left to right: what is left of the sites so far is a matrix `[new, operator, ket]`.
    pub(crate) fn zip(
        &self,
        w: &[GradedTensor<S, A>],
        truncation: Option<BondTruncation>,
    ) -> Result<Self> {
        let (x, n) = (&self.tensors, self.len());
        let (leg, own) = (x[0].spec().legs()[0].dual(), w[0].spec().legs()[0].dual());
        let mut rest = edge(&x[0], vec![leg.dual(), own, leg])?;
        let mut tensors: Vec<GradedTensor<S, A>> = Vec::with_capacity(n);
        for i in 0..n {
            let next = einsum("bwk,kpm,wqpv->bqvm", &[&rest, &x[i], &w[i]])?.repartition(2)?;
            if i + 1 == n {
                let joined = next.fuse(2..4, Direction::In)?;
                tensors.push(unfused(joined)?.repartition(2)?);
                break;
            }
            let (left, right) = match truncation {
                None => {
                    let Qr { q, r } = next.qr(2, FluxOn::Right)?;
                    (q, r)
                }
                Some(truncation) => {
                    let cut = next.svd_truncated(2, FluxOn::Right, truncation)?;
                    let Svd { u, s, vh } = cut.kept;
                    (u, vh.scale_rows(&s)?)
                }
            };
            tensors.push(left);
            rest = right;
        }
        Ok(Self { tensors, center: Some(n - 1) })
    }
}
