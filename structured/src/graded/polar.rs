//! Polar decompositions: an isometry and a positive factor.

use t4a_diff::Array;
use t4a_linalg::polar::{PolarOp, Side};

use super::GradedTensor;
use crate::error::Result;
use crate::operation::one;
use crate::sector::Sector;
use crate::spec::Spec;

/// `A = U P` or `A = P U`.
#[derive(Clone, Debug)]
pub struct Polar<S, A> {
    /// The legs and the charge of A; an isometry or the adjoint of one in each charge.
    pub u: GradedTensor<S, A>,
    /// A positive semidefinite map: of the duals of the column legs (right), or of the row legs (left).
    pub p: GradedTensor<S, A>,
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// The polar decomposition with the first `rows` legs as rows. `A = U P` is the contraction over the column legs of
    /// U ([`Side::Right`]), `A = P U` that over the row legs of U ([`Side::Left`]).
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
        // Charges that A has no matrix of are those of its zeros.
        let plan = spec.embed(&charges);
        let p = results[n..].iter().map(|p| one(&plan, &[p])).collect::<Result<Vec<_>>>()?;
        let u = Self::of_results(x.spec.clone(), results[..n].to_vec())?.signed()?;
        Ok(Polar { u, p: Self::of_results(spec, p)?.signed()? })
    }
}
