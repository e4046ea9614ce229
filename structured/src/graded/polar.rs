//! Polar decompositions: an isometry times a positive semidefinite factor.

use t4a_diff::Array;
use t4a_linalg::polar::{PolarOp, Side};

use super::GradedTensor;
use crate::error::Result;
use crate::operation::one;
use crate::sector::Sector;
use crate::spec::Spec;

/// Polar decomposition `A = U P` or `A = P U`.
#[derive(Clone, Debug)]
pub struct Polar<S, A> {
    /// Isometry, or adjoint of one, in each coupled sector; legs and flux of A.
    pub u: GradedTensor<S, A>,
    /// Positive semidefinite map on the duals of the column legs (right) or on the row legs (left).
    pub p: GradedTensor<S, A>,
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Polar decomposition with the first `rows` legs as rows. `A = U P` contracts the column legs of U
    /// ([`Side::Right`]), `A = P U` the row legs of U ([`Side::Left`]).
    ///
    /// # Errors
    /// `Rows`; `Linalg` of the factorisation.
    pub fn polar(&self, rows: usize, side: Side) -> Result<Polar<S, A>> {
        let x = self.repartition(rows)?.signed()?;
        let (above, below) = x.spec.legs().split_at(rows);
        let dual = |legs: &[crate::Leg<S>]| legs.iter().map(|leg| leg.dual()).collect::<Vec<_>>();
        let (legs, order) = match side {
            Side::Left => ([above.to_vec(), dual(above)], x.in_order()),
            Side::Right => ([dual(below), below.to_vec()], x.spec.reversed()?.1),
        };
        let mut charges = Vec::with_capacity(order.len());
        for &k in &order {
            let charge = x.spec.matrices()[k as usize].charge;
            charges.push(match side {
                Side::Left => charge,
                Side::Right => crate::leg::product(
                    charge,
                    crate::leg::inverse(x.spec.flux(), "polar")?,
                    "polar",
                )?,
            });
        }
        let own = legs[0].len();
        let spec = Spec::new(legs.concat(), S::TRIVIAL, own)?;
        let results = x.by_matrix(PolarOp { side }.into(), vec![x.in_order(), order])?;
        let n = 1 + usize::from(x.im.is_some());
        // Coupled sectors in which A has no matrix: P is zero there.
        let plan = spec.embed(&charges);
        let p = results[n..].iter().map(|p| one(&plan, &[p])).collect::<Result<Vec<_>>>()?;
        let u = Self::of_results(x.spec.clone(), results[..n].to_vec())?.signed()?;
        Ok(Polar { u, p: Self::of_results(spec, p)?.signed()? })
    }
}
