//! Finite grids, contracted row by row from below.
//!
//! The rows so far are a matrix product state whose sites are the upper legs of the last row. A row above it acts as an
//! operator, and the product is truncated.

use t4a_diff::{Array, Eager};
use t4a_linalg::svd::Truncation;
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, einsum};

use super::layers::{double, rank};
use super::symmetric::divided;
use crate::error::{NetworksError, Result};
use crate::mps::{Method, Mps};
use crate::scalar::number;

const OP: &str = "grid";

/// A finite grid of tensors `[left, up, right, down]` with legs that point out, out, in and in. Legs at the border have one
/// neutral state.
#[derive(Clone, Debug)]
pub struct Grid<S, A = Eager> {
    rows: Vec<Vec<GradedTensor<S, A>>>,
}

/// The number that a grid is contracted to: `value · exp(ln_scale)`.
#[derive(Clone, Debug)]
pub struct Contracted<A = Eager> {
    /// Real part, and imaginary part of a complex grid: arrays of one element.
    pub value: (A, Option<A>),
    /// The logarithm of a positive factor, an array of one element.
    pub ln_scale: A,
    /// The largest sum of squares of singular values that one truncation dropped, relative to that of all.
    pub truncation: f64,
}

impl<A: Array> Contracted<A> {
    /// `ln |value| + ln_scale` of a real grid, an array of one element.
    pub fn ln(&self) -> A {
        self.value.0.abs().ln().add(&self.ln_scale)
    }
}

impl<S: Sector, A: Array> Grid<S, A> {
    /// A grid of rows from above to below.
    ///
    /// # Errors
    /// `Length` for rows of different lengths and other numbers of legs; `Chain` with the number of the site, row by row,
    /// for legs that do not fit; `FermionicSector`.
    pub fn new(rows: Vec<Vec<GradedTensor<S, A>>>) -> Result<Self> {
        if S::FERMIONIC {
            return Err(NetworksError::FermionicSector { op: OP, what: "a grid".into() });
        }
        let width = rows.first().map_or(0, Vec::len);
        if width == 0 || rows.iter().any(|row| row.len() != width) {
            let given = rows.iter().map(Vec::len).find(|&n| n != width || n == 0).unwrap_or(0);
            let (what, required) = ("tensors in each row", width.max(1));
            return Err(NetworksError::Length { op: OP, what, required, given });
        }
        rows.iter().flatten().try_for_each(|x| rank(OP, x, 4))?;
        let grid = Self { rows };
        grid.check_legs(width)?;
        Ok(grid)
    }

    fn check_legs(&self, width: usize) -> Result<()> {
        use Direction::{In, Out};
        let border = |leg: &Leg<S>| leg.sectors() == [(S::TRIVIAL, 1)];
        for (y, row) in self.rows.iter().enumerate() {
            for (x, tensor) in row.iter().enumerate() {
                let (legs, site) = (tensor.spec().legs(), y * width + x);
                let fail = |message: String| Err(NetworksError::Chain { op: OP, site, message });
                for (k, direction) in [Out, Out, In, In].into_iter().enumerate() {
                    if legs[k].direction() != direction {
                        return fail(format!(
                            "leg {k} is {}; the other direction is required",
                            legs[k]
                        ));
                    }
                }
                if tensor.spec().flux() != S::TRIVIAL {
                    return fail(format!(
                        "charge {} is given, 0 is required",
                        tensor.spec().flux()
                    ));
                }
                let right = row.get(x + 1).map(|next| &next.spec().legs()[0]);
                let below = self.rows.get(y + 1).map(|next| &next[x].spec().legs()[1]);
                for (leg, next) in [(&legs[2], right), (&legs[3], below)] {
                    if !next.map_or(border(leg), |next| leg.contracts_with(next)) {
                        let next = next.map_or("the border".into(), |next| next.to_string());
                        return fail(format!("leg {leg} beside {next}"));
                    }
                }
                if (x == 0 && !border(&legs[0])) || (y == 0 && !border(&legs[1])) {
                    return fail("a leg at the border has one neutral state".into());
                }
            }
        }
        Ok(())
    }

    /// The norm network `⟨ψ|ψ⟩` of rows of tensors `[site, left, up, right, down]`.
    ///
    /// # Errors
    /// As [`Grid::new`], [`layers::double`](super::layers::double).
    pub fn of_state(rows: &[Vec<GradedTensor<S, A>>]) -> Result<Self> {
        let row = |row: &Vec<_>| row.iter().map(double).collect::<Result<Vec<_>>>();
        Self::new(rows.iter().map(row).collect::<Result<_>>()?)
    }

    /// The grid with another tensor in one place, such as one with an operator
    /// ([`layers::double_with`](super::layers::double_with)).
    ///
    /// # Errors
    /// `SiteOutOfRange`; as [`Grid::new`].
    pub fn with(&self, row: usize, column: usize, tensor: GradedTensor<S, A>) -> Result<Self> {
        let (mut rows, width) = (self.rows.clone(), self.rows[0].len());
        let (site, sites) = (row.saturating_mul(width).saturating_add(column), width * rows.len());
        let place = rows.get_mut(row).and_then(|row| row.get_mut(column));
        *place.ok_or(NetworksError::SiteOutOfRange { op: OP, site, sites })? = tensor;
        Self::new(rows)
    }

    /// The contraction with at most `max_dim` states per bond of the boundary; exact where that is enough. `Method::ZipUp`
    /// truncates while it multiplies, other methods afterwards. Differentiable over arrays that are, where singular
    /// values differ.
    ///
    /// Cost: `O(w h D⁴ χ³)` with zip-up, `O(w h D⁶ χ³)` otherwise, for bonds D of the grid.
    ///
    /// # Errors
    /// `Argument` for `max_dim` 0; those of the factorisations; `Norm` for a boundary that vanishes.
    pub fn contract(&self, max_dim: usize, cutoff: f64, method: Method) -> Result<Contracted<A>> {
        let policy = Truncation::new().max_dim(max_dim).relative_discarded_weight(cutoff);
        policy.validate()?;
        let mut state = self.bottom()?;
        let like = state.tensors()[0].re();
        let (mut ln_scale, mut truncation) = (like.full(&[1], 0.0), 0.0f64);
        for row in self.rows.iter().rev().skip(1) {
            let row: Vec<_> =
                row.iter().map(|x| Ok(x.permute(&[0, 1, 3, 2], 2)?)).collect::<Result<_>>()?;
            state = match method {
                Method::ZipUp => {
                    state.orthogonalise(0)?;
                    state.zip(&row, Some(policy.into()))?
                }
                _ => state.zip(&row, None)?,
            };
            let dropped = state.truncate(policy)?;
            let norm = state.tensors()[0].norm()?;
            let size = number(&norm)?;
            if !size.is_finite() {
                return Err(NetworksError::Norm { op: OP, norm: size });
            }
            if size == 0.0 {
                break;
            }
            truncation = truncation.max(dropped / (size * size + dropped));
            let first = divided(&state.tensors()[0], &norm)?;
            state.replace(0, [first], 0);
            ln_scale = ln_scale.add(&norm.reshape(&[1]).ln());
        }
        Ok(Contracted { value: Self::closed(&state)?, ln_scale, truncation })
    }

    /// The last row as a state of its upper legs.
    fn bottom(&self) -> Result<Mps<S, A>> {
        let Some(row) = self.rows.last() else { unreachable!("a grid has a row") };
        let close = |x: &GradedTensor<S, A>| -> Result<GradedTensor<S, A>> {
            let end = border(x, x.spec().legs()[3].dual())?;
            Ok(einsum("lurd,d->lur", &[x, &end])?.repartition(2)?)
        };
        Mps::new(row.iter().map(close).collect::<Result<_>>()?)
    }

    /// The number of a state whose sites have one state each.
    fn closed(state: &Mps<S, A>) -> Result<(A, Option<A>)> {
        let mut rest: Option<GradedTensor<S, A>> = None;
        for x in state.tensors() {
            let end = border(x, x.spec().legs()[1].dual())?;
            let x = einsum("lur,u->lr", &[x, &end])?;
            rest = Some(match rest {
                None => x,
                Some(rest) => rest.contract(&x, &[1], &[0])?,
            });
        }
        match rest {
            Some(rest) => Ok(crate::scalar::entry(&rest)),
            None => unreachable!("a state has a site"),
        }
    }
}

/// The vector of one entry 1 on a leg of one state.
fn border<S: Sector, A: Array>(
    like: &GradedTensor<S, A>,
    leg: Leg<S>,
) -> Result<GradedTensor<S, A>> {
    let spec = Spec::new(vec![leg], S::TRIVIAL, 1)?;
    let ones = like.re().full(&[spec.len()], 1.0);
    Ok(GradedTensor::new(spec, ones, None)?)
}
