//! Environments of a uniform state: sums over all cells on one side.
//!
//! States of the operator's bond between the two ends have finitely many terms, or converge geometrically; that of complete
//! terms grows by the energy e of a cell with each cell, which is left out:
//!
//! ```text
//!  (1 − T + |1)(r|) L_end = Y − e·1,     e = (Y|r),     Y the terms that end in the last cell
//! ```

use t4a_algebra::c64;
use t4a_linalg::krylov::{KrylovOptions, gmres};
use t4a_structured::{GradedTensor, Sector, Spec, einsum};
use t4a_tensor::DType;

use super::operator::{END, InfiniteMpo, START};
use super::uniform::UniformMps;
use crate::environment::{grow_left, grow_right};
use crate::error::{NetworksError, Result};
use crate::fill::Filler;
use crate::scalar::{complex, norm};

/// Environments of the sites of a cell, on the left and on the right, and the energy of a cell.
#[derive(Clone, Debug)]
pub(super) struct Sides<S> {
    pub(super) left: Vec<GradedTensor<S>>,
    pub(super) right: Vec<GradedTensor<S>>,
    pub(super) energy: f64,
    /// Sums of complete terms, guesses for the next ones.
    complete: [GradedTensor<S>; 2],
}

/// One side of a state: its tensors, and how a cell is added.
struct Side<'a, S> {
    state: &'a UniformMps<S>,
    operator: &'a InfiniteMpo<S>,
    left: bool,
}

impl<S: Sector> Side<'_, S> {
    /// One cell more.
    fn cell(&self, x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
        let (w, mut x) = (self.operator.tensors(), x.clone());
        if self.left {
            for (a, w) in self.state.left.iter().zip(w) {
                x = grow_left(&x, a, w, &a.conj()?)?;
            }
        } else {
            for (a, w) in self.state.right.iter().zip(w).rev() {
                x = grow_right(&x, a, w, &a.conj()?)?;
            }
        }
        Ok(x.repartition(1)?)
    }

    /// One cell more of complete terms, without the operator.
    fn plain(&self, x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
        let mut x = x.clone();
        if self.left {
            for a in &self.state.left {
                x = einsum("kb,kpm,bpn->mn", &[&x, a, &a.conj()?])?;
            }
        } else {
            for a in self.state.right.iter().rev() {
                x = einsum("mn,kpm,bpn->kb", &[&x, a, &a.conj()?])?;
            }
        }
        Ok(x.repartition(1)?)
    }

    /// The overlap with the fixed point on the other side.
    fn overlap(&self, x: &GradedTensor<S>) -> Result<c64> {
        let c = &self.state.bonds[self.state.len() - 1];
        let subscripts = if self.left { "kb,km,bm->" } else { "mn,km,kn->" };
        let value = einsum(subscripts, &[x, c, &c.conj()?])?;
        complex(&crate::scalar::entry(&value))
    }

    /// The identity of the bond `[ket, bra]`.
    fn identity(&self) -> Result<GradedTensor<S>> {
        let n = self.state.len();
        let leg = match self.left {
            true => self.state.left[0].spec().legs()[0].dual(),
            false => self.state.right[n - 1].spec().legs()[2].dual(),
        };
        Ok(GradedTensor::identity(&[leg], DType::F64)?)
    }

    /// A state of the operator's bond between cells as a vector, that contracts with environments or is part of them.
    fn unit(&self, state: usize, part: bool) -> Result<GradedTensor<S>> {
        let w = self.operator.tensors();
        let leg = match self.left {
            true => w[0].spec().legs()[0].dual(),
            false => w[w.len() - 1].spec().legs()[3].dual(),
        };
        let leg = if part { leg } else { leg.dual() };
        let mut filler = Filler::new(Spec::new(vec![leg], S::TRIVIAL, 1)?);
        filler.add(&[self.operator.place(state)], c64::ONE);
        filler.finish()
    }

    /// The part of an environment in a state of the operator.
    fn part(&self, x: &GradedTensor<S>, state: usize) -> Result<GradedTensor<S>> {
        Ok(einsum("kwb,w->kb", &[x, &self.unit(state, false)?])?.repartition(1)?)
    }

    /// An environment with one part.
    fn with_part(&self, x: &GradedTensor<S>, state: usize) -> Result<GradedTensor<S>> {
        Ok(einsum("kb,w->kwb", &[x, &self.unit(state, true)?])?.repartition(1)?)
    }

    /// The environment of the cell, the energy of a cell, and the sum of complete terms.
    fn solve(
        &self,
        guess: Option<&GradedTensor<S>>,
        tolerance: f64,
    ) -> Result<(GradedTensor<S>, c64, GradedTensor<S>)> {
        let (begin, end) = if self.left { (START, END) } else { (END, START) };
        let one = self.identity()?;
        let mut open = self.with_part(&one, begin)?;
        let mut ended = None;
        for _ in 0..MOST {
            let next = self.cell(&open)?;
            let complete = self.part(&next, end)?;
            let next = next.sub(&self.with_part(&complete, end)?)?;
            let change = norm(&next.sub(&open)?)?;
            (open, ended) = (next, Some(complete));
            if change <= 1e-14 * norm(&open)? {
                break;
            }
        }
        let Some(y) = ended else { unreachable!("at least one cell") };
        let energy = self.overlap(&y)?;
        let rhs = y.sub(&one.scale_complex(energy))?;
        let map = |x: &GradedTensor<S>| -> Result<GradedTensor<S>> {
            let image = self.plain(x)?;
            Ok(x.sub(&image)?.add(&one.scale_complex(self.overlap(x)?))?)
        };
        let guess = guess.filter(|guess| guess.spec() == rhs.spec());
        let options = KrylovOptions::new().tolerance(tolerance).max_applications(2000);
        let complete = match norm(&rhs)? {
            0.0 => rhs,
            _ => gmres(map, &rhs, guess, &options)?.vector,
        };
        Ok((open.add(&self.with_part(&complete, end)?)?, energy, complete))
    }
}

/// Most cells of terms that converge geometrically.
const MOST: usize = 2000;

impl<S: Sector> Sides<S> {
    /// The environments of a state; `before` has guesses.
    pub(super) fn new(
        state: &UniformMps<S>,
        operator: &InfiniteMpo<S>,
        before: Option<&Self>,
        tolerance: f64,
    ) -> Result<Self> {
        let (w, n) = (operator.tensors(), state.len());
        let guess = |k: usize| before.map(|before| &before.complete[k]);
        let side = |left| Side { state, operator, left };
        let (first, e0, c0) = side(true).solve(guess(0), tolerance)?;
        let (last, e1, c1) = side(false).solve(guess(1), tolerance)?;
        let (mut left, mut right) = (vec![first], vec![last]);
        for i in 0..n - 1 {
            let a = &state.left[i];
            left.push(grow_left(&left[i], a, &w[i], &a.conj()?)?);
            let (k, a) = (n - 1 - i, &state.right[n - 1 - i]);
            right.push(grow_right(&right[i], a, &w[k], &a.conj()?)?);
        }
        right.reverse();
        let energy = (e0.re + e1.re) / 2.0;
        if !energy.is_finite() {
            return Err(NetworksError::Norm { op: super::vumps::OP, norm: energy });
        }
        Ok(Self { left, right, energy, complete: [c0, c1] })
    }
}
