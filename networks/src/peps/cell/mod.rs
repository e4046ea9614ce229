//! CTMRG of a unit cell by moves in four directions.
//!
//! ```text
//! mod      cells, environments, the iteration
//! moves    projectors, and the absorption of a column
//! measure  partition functions, ratios, density matrices
//! step     four moves about a fixed point, with their derivatives
//! energy   energy of a state and its gradient by the fixed point
//! ```
//!
//! Sites are numbered row by row, rows run down, and the cell repeats in both directions. Directions are 0 left, 1 up,
//! 2 right, 3 down; a move to direction d absorbs a column into the environments on that side. Its projectors reduce the
//! bonds that a cut between two rows crosses:
//!
//! ```text
//!   A  upper half of a plaquette        A B = U S Vᴴ,   P = B V S^(−½),   Q = S^(−½) Uᴴ A,   A P Q B ≈ A B
//!   ──────── cut ────────
//!   B  lower half
//! ```
//!
//! Tensors of the environment of a site, clockwise, `d + 1` after d:
//!
//! ```text
//!   edge d    [to corner d − 1, bulk, to corner d]         corner d    [to edge d, to edge d + 1]
//! ```

mod energy;
mod measure;
mod moves;
mod step;

use std::ops::ControlFlow;
use std::time::Instant;

use t4a_diff::{Array, Eager};
use t4a_structured::{Direction, FluxOn, GradedTensor, Leg, Sector, Spec};

pub use energy::{CellEnergy, CellEvaluated};
pub use step::CellStep;

use super::layers::{closed, double, rank};
use super::options::{CtmOptions, CtmReport, change, spectrum};
use super::symmetric::normalised;
use crate::error::{NetworksError, Result};
use crate::report::Flow;
use crate::scalar::norm;

const OP: &str = "CTMRG";

/// Rejects numbers of tensors that are no multiple of the width.
fn check_number(width: usize, given: usize) -> Result<()> {
    if width == 0 || given == 0 || !given.is_multiple_of(width) {
        let what = "tensors of a cell";
        let required = width.max(1) * given.div_ceil(width.max(1)).max(1);
        return Err(NetworksError::Length { op: OP, what, required, given });
    }
    Ok(())
}

/// The next site in a direction, of a cell of `len` tensors in rows of `width`.
fn neighbor(width: usize, len: usize, site: usize, direction: usize) -> usize {
    let (w, h) = (width, len / width);
    let (x, y) = (site % w, site / w);
    let (x, y) = match direction % 4 {
        0 => ((x + w - 1) % w, y),
        1 => (x, (y + h - 1) % h),
        2 => ((x + 1) % w, y),
        _ => (x, (y + 1) % h),
    };
    y * w + x
}

/// Rejects tensors `[…, left, up, right, down]` with `first` other legs whose bonds do not contract with those of their
/// neighbours.
fn check_bonds<S: Sector, A: Array>(
    op: &'static str,
    width: usize,
    tensors: &[GradedTensor<S, A>],
    first: usize,
) -> Result<()> {
    for site in 0..tensors.len() {
        for (direction, side, opposite) in [(2, "right", "left"), (3, "down", "up")] {
            let next = neighbor(width, tensors.len(), site, direction);
            let own = &tensors[site].spec().legs()[first + direction];
            let other = &tensors[next].spec().legs()[first + direction - 2];
            if !own.contracts_with(other) {
                let message = format!(
                    "the leg {side} is {own}, the leg {opposite} of tensor {next} is {other}"
                );
                return Err(NetworksError::Chain { op, site, message });
            }
        }
    }
    Ok(())
}

/// A cell of bulk tensors `[left, up, right, down]` on the square lattice, row by row.
#[derive(Clone, Debug)]
pub struct Cell<S, A = Eager> {
    width: usize,
    bulk: Vec<GradedTensor<S, A>>,
}

impl<S: Sector, A: Array> Cell<S, A> {
    /// A cell of rows of `width` tensors, whose legs contract with those of their neighbours.
    ///
    /// # Errors
    /// `Length` for a number of tensors that is no multiple of the width, and other numbers of legs; `Chain` for bonds
    /// that do not fit, with the site; `FermionicSector`.
    pub fn new(width: usize, bulk: Vec<GradedTensor<S, A>>) -> Result<Self> {
        if S::FERMIONIC {
            return Err(NetworksError::FermionicSector { op: OP, what: "a cell".into() });
        }
        check_number(width, bulk.len())?;
        bulk.iter().try_for_each(|x| rank(OP, x, 4))?;
        check_bonds(OP, width, &bulk, 0)?;
        Ok(Self { width, bulk })
    }

    /// The cell of a state of tensors `[site, left, up, right, down]`: two layers. Bonds of one layer have to fit, which is
    /// tested before the layers are contracted.
    ///
    /// # Errors
    /// As [`Cell::new`], [`layers::double`](super::layers::double).
    pub fn of_state(width: usize, state: &[GradedTensor<S, A>]) -> Result<Self> {
        check_number(width, state.len())?;
        state.iter().try_for_each(|x| rank(OP, x, 5))?;
        check_bonds(OP, width, state, 1)?;
        Self::new(width, state.iter().map(double).collect::<Result<_>>()?)
    }

    /// The bulk tensors, row by row.
    pub fn bulk(&self) -> &[GradedTensor<S, A>] {
        &self.bulk
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.bulk.len()
    }

    /// Never: a cell has a site.
    pub fn is_empty(&self) -> bool {
        self.bulk.is_empty()
    }

    fn leg(&self, site: usize, direction: usize) -> &Leg<S> {
        &self.bulk[site].spec().legs()[direction % 4]
    }

    /// The next site in a direction.
    pub fn neighbor(&self, site: usize, direction: usize) -> usize {
        neighbor(self.width, self.bulk.len(), site, direction)
    }
}

/// The environments of all sites of a cell.
#[derive(Clone, Debug)]
pub struct CellEnvironment<S, A = Eager> {
    corners: [Vec<GradedTensor<S, A>>; 4],
    edges: [Vec<GradedTensor<S, A>>; 4],
}

impl<S: Sector, A: Array> CellEnvironment<S, A> {
    /// The environment of a boundary whose bonds are in the states of vectors on the duals of the legs of each site.
    fn boundary(
        cell: &Cell<S, A>,
        vector: impl Fn(usize, usize) -> Result<GradedTensor<S, A>>,
    ) -> Result<Self> {
        use Direction::{In, Out};
        let single = |direction| Leg::new([(S::TRIVIAL, 1)], direction);
        let corner = |site: usize| -> Result<_> {
            let spec = Spec::new(vec![single(In)?, single(Out)?], S::TRIVIAL, 1)?;
            let ones = cell.bulk[site].re().full(&[spec.len()], 1.0);
            Ok(GradedTensor::new(spec, ones, None)?)
        };
        let edge = |d: usize, site: usize| -> Result<_> {
            let x = vector(d, site)?;
            let legs = vec![single(In)?, x.spec().legs()[0].clone(), single(Out)?];
            let spec = Spec::new(legs, x.spec().flux(), 1)?;
            normalised(&GradedTensor::new(spec, x.re().clone(), x.im().cloned())?)
        };
        let all = |f: &dyn Fn(usize, usize) -> Result<GradedTensor<S, A>>, d: usize| {
            (0..cell.len()).map(|site| f(d, site)).collect::<Result<Vec<_>>>()
        };
        let corners = |_: usize, site: usize| corner(site);
        Ok(Self {
            corners: [all(&corners, 0)?, all(&corners, 1)?, all(&corners, 2)?, all(&corners, 3)?],
            edges: [all(&edge, 0)?, all(&edge, 1)?, all(&edge, 2)?, all(&edge, 3)?],
        })
    }

    /// Environments of their tensors by direction and site: those of a stored iteration, or on other arrays.
    ///
    /// # Errors
    /// `Length` for lists of different lengths, and tensors of other numbers of legs.
    pub fn new(
        corners: [Vec<GradedTensor<S, A>>; 4],
        edges: [Vec<GradedTensor<S, A>>; 4],
    ) -> Result<Self> {
        let required = corners[0].len();
        if let Some(other) = corners.iter().chain(&edges).find(|all| all.len() != required) {
            let (what, given) = ("sites of an environment", other.len());
            return Err(NetworksError::Length { op: OP, what, required, given });
        }
        corners.iter().flatten().try_for_each(|x| rank(OP, x, 2))?;
        edges.iter().flatten().try_for_each(|x| rank(OP, x, 3))?;
        Ok(Self { corners, edges })
    }

    /// The corners by direction and site, `[to edge d, to edge d + 1]`: that of d is clockwise behind it.
    pub fn corners(&self) -> &[Vec<GradedTensor<S, A>>; 4] {
        &self.corners
    }

    /// The edges by direction and site, `[to corner d − 1, bulk, to corner d]`.
    pub fn edges(&self) -> &[Vec<GradedTensor<S, A>>; 4] {
        &self.edges
    }

    fn corner(&self, d: usize, site: usize) -> &GradedTensor<S, A> {
        &self.corners[d % 4][site]
    }

    fn edge(&self, d: usize, site: usize) -> &GradedTensor<S, A> {
        &self.edges[d % 4][site]
    }

    /// Rejects the environment of another number of sites.
    fn check_sites(&self, cell: &Cell<S, A>) -> Result<()> {
        let (required, given) = (cell.len(), self.corners[0].len());
        match required == given {
            true => Ok(()),
            false => {
                let what = "sites of an environment";
                Err(NetworksError::Length { op: OP, what, required, given })
            }
        }
    }

    /// Direction and site of an edge that does not contract with the tensor of a cell of the same number of sites.
    fn misfit(&self, cell: &Cell<S, A>) -> Option<(usize, usize)> {
        let all = (0..4).flat_map(|d| (0..cell.len()).map(move |site| (d, site)));
        let bond = |d: usize, site: usize| &self.edge(d, site).spec().legs()[1];
        let mut all = all.filter(|&(d, site)| !bond(d, site).contracts_with(cell.leg(site, d)));
        all.next()
    }

    /// Singular values of all corners, each in descending order and of sum 1.
    fn spectra(&self) -> Result<Vec<Vec<f64>>> {
        let of = |x: &GradedTensor<S, A>| -> Result<Vec<f64>> {
            let s = x.svd(1, FluxOn::Right)?.s;
            Ok(spectrum(s.numbers()?.into_iter().flat_map(|(_, own)| own).collect()))
        };
        self.corners.iter().flatten().map(of).collect()
    }

    fn bond_dim(&self) -> usize {
        self.corners.iter().flatten().map(|x| x.spec().legs()[0].dim()).max().unwrap_or(1)
    }
}

/// An iteration of CTMRG for a cell: moves to the left, up, right and down in turn.
#[derive(Clone, Debug)]
pub struct CellSearch<S> {
    cell: Cell<S>,
    environment: CellEnvironment<S>,
    options: CtmOptions,
    spectra: Vec<Vec<f64>>,
    steps: usize,
    last: Option<CtmReport>,
}

impl<S: Sector> CellSearch<S> {
    /// An iteration from a boundary whose bonds are in the sum of all neutral states.
    ///
    /// # Errors
    /// `Argument` for options out of range.
    pub fn new(cell: Cell<S>, options: CtmOptions) -> Result<Self> {
        let vector = |d: usize, site: usize| -> Result<GradedTensor<S>> {
            let spec = Spec::new(vec![cell.leg(site, d).dual()], S::TRIVIAL, 1)?;
            let ones = cell.bulk[site].re().full(&[spec.len()], 1.0);
            Ok(GradedTensor::new(spec, ones, None)?)
        };
        let environment = CellEnvironment::boundary(&cell, vector)?;
        Self::from_environment(cell, environment, options)
    }

    /// An iteration for a state of tensors `[site, left, up, right, down]`, from a boundary that closes both layers.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Length`, `Chain` as [`Cell::of_state`].
    pub fn of_state(width: usize, state: &[GradedTensor<S>], options: CtmOptions) -> Result<Self> {
        Self::closed(Cell::of_state(width, state)?, state, options)
    }

    /// An iteration for the cell of a state from the boundary that closes both layers.
    fn closed(cell: Cell<S>, state: &[GradedTensor<S>], options: CtmOptions) -> Result<Self> {
        let vector = |d: usize, site: usize| closed(&state[site].spec().legs()[1 + d].dual());
        let environment = CellEnvironment::boundary(&cell, vector)?;
        Self::from_environment(cell, environment, options)
    }

    /// An iteration that starts from an environment.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Length` for the environment of another number of sites; `Chain` for one whose
    /// edges do not contract with the tensors.
    pub fn from_environment(
        cell: Cell<S>,
        environment: CellEnvironment<S>,
        options: CtmOptions,
    ) -> Result<Self> {
        options.check(OP)?;
        environment.check_sites(&cell)?;
        if let Some((d, site)) = environment.misfit(&cell) {
            let (own, edge) = (cell.leg(site, d), &environment.edge(d, site).spec().legs()[1]);
            let message = format!("leg {d} is {own}, the edge of the environment has {edge}");
            return Err(NetworksError::Chain { op: OP, site, message });
        }
        let spectra = environment.spectra()?;
        Ok(Self { cell, environment, options, spectra, steps: 0, last: None })
    }

    /// The cell.
    pub fn cell(&self) -> &Cell<S> {
        &self.cell
    }

    /// The environment after the last step.
    pub fn environment(&self) -> &CellEnvironment<S> {
        &self.environment
    }

    /// The report of the last step.
    pub fn last(&self) -> Option<&CtmReport> {
        self.last.as_ref()
    }

    /// Steps until spectra change by less than the tolerance, or the number of steps is reached.
    ///
    /// # Errors
    /// That of the callback; those of the factorisations. The environment is that of the last step.
    pub fn run(&mut self, mut callback: impl FnMut(&CtmReport) -> Flow) -> Result<CtmReport> {
        loop {
            let report = self.step()?;
            let flow = callback(&report)?;
            let done = report.change < self.options.tolerance || self.steps >= self.options.steps;
            if flow == ControlFlow::Break(()) || done {
                return Ok(report);
            }
        }
    }

    /// A move in each of the four directions.
    ///
    /// # Errors
    /// Those of the factorisations; `Norm` for an environment that vanishes or is not finite.
    pub fn step(&mut self) -> Result<CtmReport> {
        let begin = Instant::now();
        let mut next = self.environment.clone();
        let mut truncation = 0.0f64;
        for d in 0..4 {
            truncation = truncation.max(next.absorb(&self.cell, d, &self.options)?);
        }
        let size = norm(next.corner(0, 0))?;
        if !size.is_finite() || size == 0.0 {
            return Err(NetworksError::Norm { op: OP, norm: size });
        }
        let spectra = next.spectra()?;
        let pairs = spectra.iter().zip(&self.spectra);
        self.steps += 1;
        let report = CtmReport {
            step: self.steps,
            change: pairs.map(|(a, b)| change(a, b)).fold(0.0, f64::max),
            truncation,
            bond_dim: next.bond_dim(),
            seconds: begin.elapsed().as_secs_f64(),
        };
        (self.environment, self.spectra, self.last) = (next, spectra, Some(report));
        Ok(report)
    }
}
