//! Ground states and lowest excited states of chains by DMRG.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use t4a_algebra::c64;
use t4a_networks::sites::{boson, electron, fermion, spin, spin_half};
use t4a_networks::{Dmrg, DmrgOptions, Mpo, Mps, NetworksError, Report, Site, Sites, Sum, Update};
use t4a_structured::{Sector, Trivial};

use super::{read, written};
use crate::error::{Error, Failure, enter};
use crate::run::{check_process, hand_over};
use crate::tensor::Tensor;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum SiteKind {
    SpinHalf,
    Spin { twice: usize },
    Fermion,
    Electron,
    Boson { most: usize },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Term {
    /// Real and imaginary part.
    coefficient: [f64; 2],
    factors: Vec<(String, usize)>,
    #[serde(default)]
    with_adjoint: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sweeps {
    TwoSites,
    OneSite,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SearchOptions {
    max_dims: Option<Vec<usize>>,
    cutoff: Option<f64>,
    sweeps: Option<usize>,
    tolerance: Option<f64>,
    update: Option<Sweeps>,
    expansion: Option<f64>,
    applications: Option<usize>,
}

type Setter<T> = fn(DmrgOptions, T) -> DmrgOptions;

impl SearchOptions {
    fn options(&self) -> DmrgOptions {
        let mut own = DmrgOptions::new();
        if let Some(dims) = &self.max_dims {
            own = own.max_dims(dims.iter().copied());
        }
        let numbers: [(Option<f64>, Setter<f64>); 3] = [
            (self.cutoff, DmrgOptions::cutoff),
            (self.tolerance, DmrgOptions::tolerance),
            (self.expansion, DmrgOptions::expansion),
        ];
        let counts: [(Option<usize>, Setter<usize>); 2] =
            [(self.sweeps, DmrgOptions::sweeps), (self.applications, DmrgOptions::applications)];
        for (number, set) in numbers {
            own = number.map_or(own.clone(), |x| set(own, x));
        }
        for (count, set) in counts {
            own = count.map_or(own.clone(), |n| set(own, n));
        }
        match self.update {
            Some(Sweeps::OneSite) => own.update(Update::OneSite),
            _ => own,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Problem {
    site: SiteKind,
    count: usize,
    /// Charges of the kind of site; none otherwise.
    #[serde(default = "yes")]
    conserve: bool,
    terms: Vec<Term>,
    /// Names of the basis states of the product state to start from, which has the charge of the result.
    start: Vec<String>,
    /// Number of states, from the lowest one on.
    #[serde(default = "one")]
    states: usize,
    #[serde(default)]
    options: SearchOptions,
    /// Operators of which expectation values are returned.
    #[serde(default)]
    expect: Vec<String>,
    /// Pairs of operators of which correlations are returned.
    #[serde(default)]
    correlations: Vec<(String, String)>,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

type Number = [f64; 2];

#[derive(Serialize)]
struct Sweep {
    energy: f64,
    truncation: f64,
    bond_dim: usize,
    seconds: f64,
}

#[derive(Serialize)]
struct State {
    energy: f64,
    variance: f64,
    sweeps: Vec<Sweep>,
    entropies: Vec<f64>,
    expect: BTreeMap<String, Vec<Number>>,
    correlations: Vec<Vec<Vec<Number>>>,
}

#[derive(Serialize)]
struct States {
    states: Vec<State>,
    operator_bonds: usize,
}

/// Called after each sweep: number of the state and of the sweep, energy, dropped weight, largest bond. 0 goes on, 1
/// ends the search of this state, anything else is an error.
pub type Progress =
    Option<unsafe extern "C" fn(*mut c_void, usize, usize, f64, f64, usize) -> c_int>;

fn pair(x: c64) -> Number {
    [x.re, x.im]
}

fn solve<S: Sector>(
    problem: &Problem,
    site: Site<S>,
    mut progress: impl FnMut(usize, &Report) -> c_int,
) -> Result<States, Failure> {
    let sites = Sites::uniform(site, problem.count);
    let mut sum = Sum::new(&sites);
    for term in &problem.terms {
        let [re, im] = term.coefficient;
        let factors = term.factors.iter().map(|(name, site)| (&name[..], *site));
        match term.with_adjoint {
            true => sum.add_with_adjoint(c64::new(re, im), factors),
            false => sum.add(c64::new(re, im), factors),
        };
    }
    let h = sum.mpo()?;
    let start = Mps::product(&sites, problem.start.iter().map(|name| &name[..]))?;
    let (mut lower, mut states) = (Vec::new(), Vec::new());
    for i in 0..problem.states {
        let mut search = Dmrg::excited(&h, start.clone(), &lower, problem.options.options())?;
        let mut sweeps = Vec::new();
        let last = search.run(|report| {
            let &Report { energy, truncation, bond_dim, seconds, .. } = report;
            sweeps.push(Sweep { energy, truncation, bond_dim, seconds });
            match progress(i, report) {
                0 => Ok(ControlFlow::Continue(())),
                1 => Ok(ControlFlow::Break(())),
                code => Err(NetworksError::callback(format!("it returned {code}"))),
            }
        })?;
        let state = search.into_state();
        states.push(measured(problem, &sites, &h, &state, last.energy, sweeps)?);
        lower.push(state);
    }
    let operator_bonds = h.bond_dims().into_iter().max().unwrap_or(1);
    Ok(States { states, operator_bonds })
}

fn measured<S: Sector>(
    problem: &Problem,
    sites: &Sites<S>,
    h: &Mpo<S>,
    state: &Mps<S>,
    energy: f64,
    sweeps: Vec<Sweep>,
) -> Result<State, Failure> {
    let mut expect = BTreeMap::new();
    for name in &problem.expect {
        let values = state.expect(sites, name)?.into_iter().map(pair).collect();
        expect.insert(name.clone(), values);
    }
    let mut correlations = Vec::new();
    for (a, b) in &problem.correlations {
        let rows = state.correlation(sites, a, b)?.into_iter();
        correlations.push(rows.map(|row| row.into_iter().map(pair).collect()).collect());
    }
    let (variance, entropies) = (state.variance(h)?, state.entropies()?);
    Ok(State { energy, variance, sweeps, entropies, expect, correlations })
}

fn solve_any<S: Sector>(
    problem: &Problem,
    site: Site<S>,
    progress: impl FnMut(usize, &Report) -> c_int,
) -> Result<States, Failure> {
    match problem.conserve {
        true => solve(problem, site, progress),
        false => solve(problem, site.conserve(|_| Trivial)?, progress),
    }
}

/// The lowest states of a chain by DMRG: a problem in, a report out, both text.
///
/// # Safety
/// `problem` is null or valid for `len` bytes; `progress` may be called with `context`; `out` is null or valid for `room`
/// writes, `results` and `error` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_ground_states(
    problem: *const c_char,
    len: usize,
    progress: Progress,
    context: *mut c_void,
    out: *mut *const Tensor,
    room: usize,
    results: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    let run = || {
        check_process()?;
        // SAFETY: as the caller promises.
        let problem: Problem = unsafe { read(problem, len, "the problem")? };
        let report = |state: usize, r: &Report| match progress {
            // SAFETY: as the caller promises.
            Some(f) => unsafe { f(context, state, r.step, r.energy, r.truncation, r.bond_dim) },
            None => 0,
        };
        let states = match problem.site {
            SiteKind::SpinHalf => solve_any(&problem, spin_half(), report),
            SiteKind::Spin { twice } => solve_any(&problem, spin(twice)?, report),
            SiteKind::Fermion => solve_any(&problem, fermion(), report),
            SiteKind::Electron => solve_any(&problem, electron(), report),
            SiteKind::Boson { most } => solve_any(&problem, boson(most)?, report),
        }?;
        // SAFETY: as the caller promises.
        unsafe { hand_over(vec![written(&states)?], out, room, results) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, run) }
}
