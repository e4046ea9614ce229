//! Infinite chains: by growth from the middle (iDMRG), and by uniform states (VUMPS).
//!
//! ```text
//! mod        iDMRG
//! operator   a sum over all cells as an automaton
//! uniform    uniform states in mixed gauge
//! geometric  environments of uniform states
//! vumps      VUMPS
//! grow       growth of its bonds
//! ```
//!
//! # iDMRG
//! Two sites are inserted in the middle of a chain, optimised, and become parts of the environments on both sides. The
//! sites of the cell alternate: after (0, 1) follows (1, 0).
//!
//! ```text
//!  L ── A ── Λ ── B ── R   →   L A ── Λ B Λ'⁻¹ A Λ ── B R      the product in the middle is the next start
//! ```
//!
//! References: I. McCulloch, *Infinite size density matrix renormalization group, revisited* (2008).

mod geometric;
mod grow;
mod operator;
mod uniform;
mod vumps;

use std::ops::ControlFlow;
use std::time::Instant;

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_linalg::krylov::{KrylovOptions, arnoldi, lanczos};
use t4a_structured::{Bond, Direction, FluxOn, GradedTensor, Leg, Sector, Spec, Svd, Truncated};

pub use operator::InfiniteMpo;
pub use uniform::UniformMps;
pub use vumps::{Vumps, VumpsOptions, VumpsReport};

use crate::effective::EffectiveMap;
use crate::environment::{grow_left, grow_right};
use crate::error::{NetworksError, Result};
use crate::fill::Filler;
use crate::mps::transfer;
use crate::report::{Flow, Report};
use crate::scalar::{complex, number};
use crate::sites::Sites;
use operator::{END, START};

const OP: &str = "idmrg";

/// Options of [`Idmrg`].
///
/// | option | default |
/// |---|---|
/// | `max_dim` | 64 states per bond |
/// | `cutoff` | 1e-12: part of the squares of singular values that is dropped |
/// | `steps` | at most 500 |
/// | `tolerance` | 1e-9: change of the energy per site at which the search ends |
/// | `applications` | 12 of the effective operator per step |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdmrgOptions {
    max_dim: usize,
    cutoff: f64,
    steps: usize,
    tolerance: f64,
    applications: usize,
}

impl Default for IdmrgOptions {
    fn default() -> Self {
        Self { max_dim: 64, cutoff: 1e-12, steps: 500, tolerance: 1e-9, applications: 12 }
    }
}

impl IdmrgOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of states of a bond.
    pub fn max_dim(self, max_dim: usize) -> Self {
        Self { max_dim, ..self }
    }

    /// Part of the sum of the squares of singular values that a bond may drop.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { cutoff, ..self }
    }

    /// The largest number of steps.
    pub fn steps(self, steps: usize) -> Self {
        Self { steps, ..self }
    }

    /// The change of the energy per site in a step below which the search ends.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Applications of the effective operator per step.
    pub fn applications(self, applications: usize) -> Self {
        Self { applications, ..self }
    }

    fn check(&self) -> Result<()> {
        let reject = |name, given: String, required| {
            Err(NetworksError::Argument { op: OP, name, given, required })
        };
        if self.max_dim == 0 || self.steps == 0 || self.applications == 0 {
            return reject("the bond dimension, steps or applications", "0".into(), "at least 1");
        }
        for (name, x) in [("the cutoff", self.cutoff), ("the tolerance", self.tolerance)] {
            if !(x.is_finite() && x >= 0.0) {
                return reject(name, x.to_string(), "a finite number of at least 0");
            }
        }
        Ok(())
    }
}

/// A search for the ground state of an infinite chain, whose cell has two sites and the charge 0:
/// [`Site::conserve`](crate::Site::conserve) shifts charges to a filling.
///
/// ```
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::{Idmrg, IdmrgOptions, Sum};
/// let sites = Sites::uniform(spin_half(), 2);
/// let mut h = Sum::new(&sites);
/// for i in 0..2 {
///     h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
///     h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
/// }
/// let mut search = Idmrg::new(&h.infinite_mpo()?, ["Up", "Dn"], IdmrgOptions::new().max_dim(16).tolerance(1e-6))?;
/// let report = search.run(|_| Ok(std::ops::ControlFlow::Continue(())))?;
/// assert!((report.energy - (0.25 - 2f64.ln())).abs() < 1e-3);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Idmrg<S> {
    sites: Sites<S>,
    w: [GradedTensor<S>; 2],
    options: IdmrgOptions,
    left: GradedTensor<S>,
    right: GradedTensor<S>,
    /// The two sites in the middle: a left isometry, singular values, a right isometry.
    middle: Option<Svd<S, t4a_diff::Eager>>,
    /// Singular values of the bond between cells.
    between: Option<Bond<S, t4a_diff::Eager>>,
    /// The product of the first states.
    start: GradedTensor<S>,
    /// The energy of the chain so far.
    energy: f64,
    steps: usize,
    last: Option<Report>,
}

/// The environment of a chain without sites: `[ket, operator, bra]`, in one state of the operator.
fn boundary<S: Sector>(
    leg: &Leg<S>,
    state: usize,
    direction: Direction,
) -> Result<GradedTensor<S>> {
    let neutral = |direction| Leg::new([(S::TRIVIAL, 1)], direction);
    let legs = vec![neutral(direction)?, leg.dual(), neutral(direction.dual())?];
    let mut filler = Filler::new(Spec::new(legs, S::TRIVIAL, 1)?);
    filler.add(&[0, state, 0], c64::ONE);
    filler.finish()
}

impl<S: Sector> Idmrg<S> {
    /// A search that starts from a product of basis states of the two sites.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Length` for a cell of another number of sites; `UnknownState`; `Charge`
    /// for a cell of another charge than 0.
    pub fn new(
        operator: &InfiniteMpo<S>,
        states: [&str; 2],
        options: IdmrgOptions,
    ) -> Result<Self> {
        options.check()?;
        let [w0, w1] = operator.tensors() else {
            let (what, required, given) = ("sites of a cell", 2, operator.tensors().len());
            return Err(NetworksError::Length { op: OP, what, required, given });
        };
        let cell = crate::mps::Mps::product(operator.sites(), states)?;
        if cell.charge() != S::TRIVIAL {
            let (given, required) = (cell.charge().to_string(), S::TRIVIAL.to_string());
            return Err(NetworksError::Charge { op: OP, what: "the cell".into(), given, required });
        }
        let x = cell.tensors();
        let start = x[0].contract(&x[1], &[2], &[0])?.repartition(2)?;
        let leg = &w0.spec().legs()[0];
        let left = boundary(leg, operator.place(START), Direction::In)?;
        let right = boundary(&w1.spec().legs()[3], operator.place(END), Direction::Out)?;
        Ok(Self {
            sites: operator.sites().clone(),
            w: [w0.clone(), w1.clone()],
            options,
            left,
            right,
            middle: None,
            between: None,
            start,
            energy: 0.0,
            steps: 0,
            last: None,
        })
    }

    /// The report of the last step: its energy is that per site.
    pub fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Steps until the energy per site changes by less than the tolerance, or the number of steps is reached.
    ///
    /// # Errors
    /// That of the callback; those of the factorisations. The state is that of the last step.
    pub fn run(&mut self, mut callback: impl FnMut(&Report) -> Flow) -> Result<Report> {
        for _ in 0..self.options.steps {
            let before = self.last.map_or(f64::INFINITY, |report| report.energy);
            let report = self.step()?;
            let flow = callback(&report)?;
            let small = (report.energy - before).abs() < self.options.tolerance;
            if flow == ControlFlow::Break(()) || (small && report.step > 4) {
                break;
            }
        }
        self.last.ok_or(NetworksError::Norm { op: OP, norm: 0.0 })
    }

    /// Two sites more.
    ///
    /// # Errors
    /// Those of the factorisations.
    pub fn step(&mut self) -> Result<Report> {
        let begin = Instant::now();
        let start = self.guess()?;
        let [first, second] = self.order(self.steps);
        let w = [&self.w[first], &self.w[second]];
        let effective = EffectiveMap::pair([&self.left, &self.right], w);
        let options =
            KrylovOptions::new().max_applications(self.options.applications).tolerance(1e-10);
        let map = |x: &GradedTensor<S>| effective.apply(x);
        let mut found = lanczos(map, &start, &options)?;
        let (Some(&energy), Some(pair)) = (found.values.first(), found.vectors.pop()) else {
            return Err(NetworksError::Norm { op: OP, norm: 0.0 });
        };
        let truncation = crate::truncation(self.options.max_dim, self.options.cutoff);
        let Truncated { kept: Svd { u, s, vh }, error } =
            pair.svd_truncated(2, FluxOn::Right, truncation)?;
        let (s, vh) = (s.normalised()?, vh.repartition(2)?);
        let left = grow_left(&self.left, &u, w[0], &u.conj()?)?;
        let right = grow_right(&self.right, &vh, w[1], &vh.conj()?)?;
        let before = self.middle.replace(Svd { u, s, vh });
        self.between = before.map(|middle| middle.s);
        (self.left, self.right) = (left, right);
        self.steps += 1;
        let report = Report {
            step: self.steps,
            energy: (energy - self.energy) / 2.0,
            truncation: error * error,
            bond_dim: self.middle.as_ref().map_or(1, |middle| middle.s.leg().dim()),
            seconds: begin.elapsed().as_secs_f64(),
        };
        self.energy = energy;
        self.last = Some(report);
        Ok(report)
    }

    /// Sites of the cell that are inserted in a step, in turn (0, 1) and (1, 0).
    fn order(&self, step: usize) -> [usize; 2] {
        [step % 2, 1 - step % 2]
    }

    /// The next two sites: `Λ B Λ'⁻¹ A Λ`, or a product where there is nothing yet.
    fn guess(&self) -> Result<GradedTensor<S>> {
        let Some(Svd { u, s, vh }) = &self.middle else { return Ok(self.start.clone()) };
        let Some(between) = &self.between else {
            return self.product_between(u, vh);
        };
        let first = vh.scale_rows(s)?;
        let second = u.scale_columns(s)?;
        let inverse = between.inverse(1e-10)?;
        let joined = first.scale_columns(&inverse)?.contract(&second, &[2], &[0]);
        match joined {
            Ok(pair) => Ok(pair.repartition(2)?),
            Err(_) => self.product_between(u, vh),
        }
    }

    /// Any state of the two sites between the environments.
    fn product_between(
        &self,
        u: &GradedTensor<S>,
        vh: &GradedTensor<S>,
    ) -> Result<GradedTensor<S>> {
        let [first, second] = self.order(self.steps);
        let legs = vec![
            u.spec().legs()[2].dual(),
            self.w[first].spec().legs()[1].clone(),
            self.w[second].spec().legs()[1].clone(),
            vh.spec().legs()[0].dual(),
        ];
        let spec = Spec::new(legs, S::TRIVIAL, 2)?;
        let generator = t4a_tensor::random::Generator::new(1);
        Ok(GradedTensor::random(spec, u.re().dtype(), u.im().is_some(), &generator)?)
    }

    fn middle(&self) -> Result<&Svd<S, t4a_diff::Eager>> {
        self.middle.as_ref().ok_or(NetworksError::Norm { op: OP, norm: 0.0 })
    }

    /// The tensors of the middle: left isometry, singular values, right isometry.
    ///
    /// # Errors
    /// `Norm` before the first step.
    pub fn tensors(&self) -> Result<Svd<S, t4a_diff::Eager>> {
        self.middle().cloned()
    }

    /// The von Neumann entropy of the bond in the middle.
    ///
    /// # Errors
    /// `Norm` before the first step.
    pub fn entropy(&self) -> Result<f64> {
        number(&self.middle()?.s.entropy()?)
    }

    /// `⟨O⟩` of an operator at the two sites of the cell.
    ///
    /// # Errors
    /// `UnknownOperator`; `Definition` for an operator without a charge of its own; `Norm` before the first step.
    pub fn expect(&self, operator: &str) -> Result<[c64; 2]> {
        let Svd { u, s, vh } = self.middle()?;
        let centers = [u.scale_columns(s)?, vh.scale_rows(s)?];
        let mut values = [c64::ZERO; 2];
        let order = self.order(self.steps.wrapping_sub(1));
        for (k, x) in order.into_iter().zip(&centers) {
            let site = self.sites.at(OP, k)?;
            site.matrix(operator).ok_or_else(|| site.unknown(OP, k, operator))?;
            let o = site.operator(operator)?;
            if o.spec().flux() == S::TRIVIAL {
                let moved = o.contract(x, &[1], &[1])?.permute(&[1, 0, 2], x.spec().rows())?;
                values[k] = complex(&x.inner(&moved)?)?;
            }
        }
        Ok(values)
    }

    /// The length ξ in sites of the slowest decay `exp(−r / ξ)` of correlations of operators that add this charge, from
    /// the transfer matrix of a cell.
    ///
    /// # Errors
    /// `Norm` before the second step and where the bonds between cells still change; those of the iteration.
    pub fn correlation_length(&self, charge: S) -> Result<f64> {
        let unsettled = NetworksError::Norm { op: OP, norm: 0.0 };
        let (Svd { u, s, vh }, Some(between)) = (self.middle()?, &self.between) else {
            return Err(unsettled);
        };
        let second = vh.scale_rows(s)?.scale_columns(&between.inverse(1e-10)?)?;
        let leg = u.spec().legs()[0].dual();
        if !second.spec().legs()[2].contracts_with(&u.spec().legs()[0]) {
            return Err(unsettled);
        }
        let spec = Spec::new(vec![leg.clone(), leg.dual()], charge, 1)?;
        let generator = t4a_tensor::random::Generator::new(3);
        let start = GradedTensor::random(spec, u.re().dtype(), u.im().is_some(), &generator)?;
        let map = |x: &GradedTensor<S>| -> Result<GradedTensor<S>> {
            Ok(transfer(&transfer(x, u, u)?, &second, &second)?.repartition(1)?)
        };
        // The state itself has the eigenvalue 1 of charge 0.
        let which = usize::from(charge == S::TRIVIAL);
        let options = KrylovOptions::new().count(which + 1).tolerance(1e-8);
        let found = arnoldi(map, &start, &options)?;
        let modulus = found.values.get(which).map_or(0.0, |value| value.norm());
        Ok(-2.0 / modulus.ln())
    }
}
