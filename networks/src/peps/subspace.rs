//! Subspaces of the largest singular values of matrices near one, to second order.
//!
//! With `M = U S Vᴴ` and `E = Uᴴ dM V` the subspaces of columns and rows of M + dM are spanned by `U_k + U_d X` and
//! `V_k + V_d Y`, k: kept, d: dropped, where
//!
//! ```text
//! X Z = E_dk + (S_d + E_dd) Y,   Z = S_k + E_kk + E_kd Y,   and the adjoint with X and Y exchanged;
//! X = (S_k E_dk + S_d E_kdᴴ) / (s_k² − s_d²) in first order.
//! ```
//!
//! One iteration from there is exact in second order. The rotation among kept columns, which is not unique at degenerate
//! singular values, is a gauge and left out.

use t4a_algebra::c64;
use t4a_diff::{Array, Eager};
use t4a_structured::{Bond, FluxOn, GradedTensor, Sector, Spec, Svd, einsum};

use crate::error::Result;
use crate::fill::Filler;

/// Constants of the kept subspaces of a matrix `[row, row, column, column]`.
#[derive(Clone, Debug)]
pub(super) struct Subspace<S> {
    matrix: GradedTensor<S>,
    u: GradedTensor<S>,
    vh: GradedTensor<S>,
    kept: [GradedTensor<S>; 2],
    /// `s_k / (s_k² − s_d²)` and `s_d / (s_k² − s_d²)`, 0 for kept pairs: `[all, kept]`.
    weights: [GradedTensor<S>; 2],
    has_second_order: bool,
}

/// X and Y, of value 0, `[all, kept]`, and half of `Xᴴ X` if it is of the order of the expansion.
pub(super) struct Turn<S, A> {
    pub(super) x: GradedTensor<S, A>,
    pub(super) y: GradedTensor<S, A>,
    pub(super) half_gram: Option<GradedTensor<S, A>>,
}

/// The constant tensor over arrays like one.
pub(super) fn lifted<S: Sector, A: Array>(
    x: &GradedTensor<S>,
    like: &A,
) -> Result<GradedTensor<S, A>> {
    let part = |x: &Eager| -> Result<A> { Ok(like.constant(x.tensor()?.clone())) };
    let (re, im) = (part(x.re())?, x.im().map(part).transpose()?);
    Ok(GradedTensor::new(x.spec().clone(), re, im)?)
}

/// Entries of two tensors of one structure multiplied.
pub(super) fn weighted<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    weights: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    let x = x.repartition(weights.spec().rows())?;
    Ok(GradedTensor::new(x.spec().clone(), x.re().mul(weights.re()), None)?)
}

impl<S: Sector> Subspace<S> {
    /// The subspaces of the kept factors of a matrix. Without terms of second order the expansion costs half as much.
    ///
    /// # Errors
    /// Those of the factorisation.
    pub(super) fn new(
        matrix: GradedTensor<S>,
        kept: Svd<S, Eager>,
        has_second_order: bool,
    ) -> Result<Self> {
        let Svd { u, s, vh } = matrix.svd(2, FluxOn::Right)?;
        let weights = weights(&u, &s, &kept.s, &kept.u)?;
        let kept = [kept.u, kept.vh];
        Ok(Self { matrix, u, vh, kept, weights, has_second_order })
    }

    /// The kept columns `[row, row, kept]` with their change, and the conjugate of the kept rows `[kept, column, column]`
    /// with theirs. Neither is normalised.
    pub(super) fn bases<A: Array>(
        &self,
        matrix: &GradedTensor<S, A>,
    ) -> Result<[GradedTensor<S, A>; 2]> {
        let Turn { x, y, .. } = self.turn(matrix)?;
        self.turned(&x, &y)
    }

    fn turned<A: Array>(
        &self,
        x: &GradedTensor<S, A>,
        y: &GradedTensor<S, A>,
    ) -> Result<[GradedTensor<S, A>; 2]> {
        let lift = |constant: &GradedTensor<S>| lifted(constant, x.re());
        let [uk, vk] = [lift(&self.kept[0])?, lift(&self.kept[1])?.conj()?];
        let columns = einsum("fda,ab->fdb", &[&lift(&self.u)?, x])?;
        let rows = einsum("avr,ab->bvr", &[&lift(&self.vh)?.conj()?, y])?;
        let columns = uk.add(&columns.repartition(uk.spec().rows())?)?;
        Ok([columns, vk.add(&rows.repartition(vk.spec().rows())?)?])
    }

    /// The change of orthonormal columns `(U_k + U_d X)(1 − ½ Xᴴ X)`, of value 0.
    pub(super) fn change<A: Array>(
        &self,
        matrix: &GradedTensor<S, A>,
    ) -> Result<GradedTensor<S, A>> {
        let lift = |x: &GradedTensor<S>| lifted(x, matrix.re());
        let Turn { x, half_gram, .. } = self.turn(matrix)?;
        let columns = einsum("fda,ab->fdb", &[&lift(&self.u)?, &x])?;
        let Some(gram) = half_gram else { return Ok(columns) };
        let norm = einsum("fdc,cb->fdb", &[&lift(&self.kept[0])?, &gram])?;
        Ok(columns.sub(&norm.repartition(columns.spec().rows())?)?)
    }

    fn turn<A: Array>(&self, matrix: &GradedTensor<S, A>) -> Result<Turn<S, A>> {
        let lift = |x: &GradedTensor<S>| lifted(x, matrix.re());
        let change = matrix.sub(&lift(&self.matrix)?)?;
        let (adjoint, u, vh) = (change.conj()?, lift(&self.u)?, lift(&self.vh)?);
        let [uk, vk] = [lift(&self.kept[0])?, lift(&self.kept[1])?];
        let weights = [lift(&self.weights[0])?, lift(&self.weights[1])?];
        let solved = |own: &GradedTensor<S, A>, other: &GradedTensor<S, A>| -> Result<_> {
            Ok(weighted(own, &weights[0])?.add(&weighted(other, &weights[1])?)?)
        };
        // Uᴴ dM of rows, and Vᴴ dMᴴ of columns.
        let left = |u: &GradedTensor<S, A>, rows: &GradedTensor<S, A>| -> Result<_> {
            Ok(einsum("fda,fdvr,bvr->ab", &[&u.conj()?, &change, rows])?)
        };
        let right = |vh: &GradedTensor<S, A>, columns: &GradedTensor<S, A>| -> Result<_> {
            Ok(einsum("avr,fdvr,fdb->ab", &[vh, &adjoint, columns])?)
        };
        let (a, b) = (left(&u, &vk.conj()?)?, right(&vh, &uk)?);
        let (x, y): (GradedTensor<S, A>, GradedTensor<S, A>) = (solved(&a, &b)?, solved(&b, &a)?);
        if !self.has_second_order {
            return Ok(Turn { x, y, half_gram: None });
        }
        let [columns, rows] = self.turned(&x, &y)?;
        let less = |whole: GradedTensor<S, A>,
                    x: &GradedTensor<S, A>,
                    kept: GradedTensor<S, A>|
         -> Result<GradedTensor<S, A>> {
            let part = einsum("ac,cb->ab", &[x, &kept])?;
            Ok(whole.sub(&part.repartition(whole.spec().rows())?)?)
        };
        let a = less(left(&u, &rows)?, &x, left(&uk, &rows)?)?;
        let b = less(right(&vh, &columns)?, &y, right(&vk, &columns)?)?;
        let half_gram = Some(einsum("ac,ab->cb", &[&x.conj()?, &x])?.scale(0.5));
        Ok(Turn { x: solved(&a, &b)?, y: solved(&b, &a)?, half_gram })
    }
}

/// The weights of pairs of columns `[all, kept]`, both parts.
fn weights<S: Sector>(
    u: &GradedTensor<S>,
    s: &Bond<S, Eager>,
    kept: &Bond<S, Eager>,
    uk: &GradedTensor<S>,
) -> Result<[GradedTensor<S>; 2]> {
    let legs = vec![u.spec().legs()[2].dual(), uk.spec().legs()[2].clone()];
    let spec = Spec::new(legs, S::TRIVIAL, 1)?;
    let (all, kept) = (s.numbers()?, kept.numbers()?);
    let mut fillers = [Filler::new(spec.clone()), Filler::new(spec)];
    let mut first = 0;
    for (sector, values) in &all {
        let mut second = 0;
        for (other, few) in &kept {
            if other == sector {
                for (b, sk) in few.iter().enumerate() {
                    for (a, sd) in values.iter().enumerate().skip(few.len()) {
                        let gap = (sk - sd) * (sk + sd);
                        if gap <= 0.0 {
                            // A tie across the cut has no derivative; its part is left out.
                            continue;
                        }
                        fillers[0].add(&[first + a, second + b], c64::new(sk / gap, 0.0));
                        fillers[1].add(&[first + a, second + b], c64::new(sd / gap, 0.0));
                    }
                }
            }
            second += few.len();
        }
        first += values.len();
    }
    let [left, right] = fillers;
    Ok([left.finish()?, right.finish()?])
}
