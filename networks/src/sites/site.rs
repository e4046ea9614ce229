//! A kind of site, and the sites of a chain.

use std::sync::Arc;

use t4a_algebra::c64;
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec};

use super::LocalMatrix;
use crate::error::{NetworksError, Result};
use crate::fill::Filler;

const OP: &str = "site";

/// Basis states with charges, and operators by name.
///
/// The basis of the site, of its leg and of dense arrays is sorted by charge; states of one charge stay in the order in
/// which they were given. States have names, so that no program depends on that order.
///
/// ```
/// use t4a_networks::sites::{Site, spin_half};
/// use t4a_structured::{Trivial, U1};
/// // A qutrit with a conserved excitation number.
/// let site = Site::new("qutrit", [("g", U1(0)), ("e", U1(1)), ("f", U1(2))])?
///     .with_operator("Raise", &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2f64.sqrt(), 0.0])?;
/// assert_eq!(site.charge_of("Raise"), Some(U1(1)));
/// // The same states of spin ½ without a symmetry.
/// let free = spin_half().conserve(|_| Trivial)?;
/// assert_eq!(spin_half().charge_of("Sx"), None);
/// assert_eq!(free.charge_of("Sx"), Some(Trivial));
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Site<S> {
    kind: String,
    leg: Leg<S>,
    states: Vec<State<S>>,
    operators: Vec<(String, LocalMatrix)>,
}

/// A basis state of a site.
#[derive(Clone, Debug)]
struct State<S> {
    name: String,
    charge: S,
    odd: bool,
}

fn invalid(what: &'static str, name: &str, message: String) -> NetworksError {
    NetworksError::Definition { op: OP, what, name: name.to_owned(), message }
}

impl<S: Sector> Site<S> {
    /// A site with these basis states and the operators `Id` and `F`, which are equal until
    /// [`Site::with_odd_states`].
    ///
    /// # Errors
    /// `Definition` without states or with a name twice; `FermionicSector`.
    pub fn new<'a>(kind: &str, states: impl IntoIterator<Item = (&'a str, S)>) -> Result<Self> {
        let state = |(name, charge): (&str, S)| State { name: name.to_owned(), charge, odd: false };
        let states: Vec<State<S>> = states.into_iter().map(state).collect();
        for (i, state) in states.iter().enumerate() {
            if states[..i].iter().any(|other| other.name == state.name) {
                return Err(invalid("state", &state.name, "is given twice".into()));
            }
        }
        Self::of_states(kind.to_owned(), states, Vec::new())
    }

    /// Sorts the states by charge, and the operators with them.
    fn of_states(
        kind: String,
        states: Vec<State<S>>,
        operators: Vec<(String, LocalMatrix)>,
    ) -> Result<Self> {
        if S::FERMIONIC {
            return Err(NetworksError::FermionicSector { op: OP, what: kind });
        }
        if states.is_empty() {
            return Err(invalid("site", &kind, "a site has at least one state".into()));
        }
        let mut order: Vec<usize> = (0..states.len()).collect();
        order.sort_by_key(|&k| states[k].charge);
        let states: Vec<State<S>> = order.iter().map(|&k| states[k].clone()).collect();
        let same = states.chunk_by(|a, b| a.charge == b.charge);
        let leg = Leg::new(same.map(|same| (same[0].charge, same.len())), Direction::Out)?;
        let operators = operators.into_iter().map(|(name, x)| (name, x.reordered(&order)));
        let mut site = Self { kind, leg, states, operators: operators.collect() };
        if site.operators.is_empty() {
            site.operators.push(("Id".into(), LocalMatrix::identity(site.dim())));
            site.operators.push(("F".into(), site.parity_matrix()));
        }
        Ok(site)
    }

    /// The same site with these states holding an odd number of fermions.
    ///
    /// # Errors
    /// `Definition` for an unknown state, or after operators were added.
    pub fn with_odd_states<'a>(mut self, odd: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        if self.operators.len() > 2 {
            let message = "odd states come before operators".into();
            return Err(invalid("site", &self.kind, message));
        }
        for name in odd {
            match self.states.iter_mut().find(|state| state.name == name) {
                Some(state) => state.odd = true,
                None => return Err(invalid("state", name, "is not a state of the site".into())),
            }
        }
        self.operators[1].1 = self.parity_matrix();
        Ok(self)
    }

    fn parity_matrix(&self) -> LocalMatrix {
        let sign = |state: &State<S>| c64::from(if state.odd { -1.0 } else { 1.0 });
        LocalMatrix::diagonal(&self.states.iter().map(sign).collect::<Vec<_>>())
    }

    /// The site with one more operator: its matrix `[out, in]`, row-major, in the order of
    /// [`Site::states`].
    ///
    /// # Errors
    /// `Definition` for a name twice, a matrix of another size, entries that are not finite, and an
    /// operator that is neither even nor odd in fermions.
    pub fn with_operator<C: Copy + Into<c64>>(self, name: &str, matrix: &[C]) -> Result<Self> {
        let (n, given) = (self.dim(), matrix.len());
        if given != n * n {
            let message = format!("{n} × {n} entries are required, given {given}");
            return Err(invalid("operator", name, message));
        }
        let entries = matrix.iter().map(|&x| x.into()).collect();
        self.with_matrix(name, LocalMatrix { n, entries })
    }

    pub(crate) fn with_matrix(mut self, name: &str, matrix: LocalMatrix) -> Result<Self> {
        if self.operators.iter().any(|(other, _)| other == name) {
            return Err(invalid("operator", name, "is given twice".into()));
        }
        if matrix.entries.iter().any(|x| !x.is_finite()) {
            return Err(invalid("operator", name, "has an entry that is not finite".into()));
        }
        if self.parity(&matrix).is_none() {
            let message = "changes the parity of some states only".into();
            return Err(invalid("operator", name, message));
        }
        self.operators.push((name.to_owned(), matrix));
        Ok(self)
    }

    /// The site with products, sums or functions of matrices of its operators as one more operator.
    pub(crate) fn with(self, name: &str, f: impl Fn(&Self) -> LocalMatrix) -> Result<Self> {
        let matrix = f(&self);
        self.with_matrix(name, matrix)
    }

    /// The same states and operators with other charges. The map does not have to be a homomorphism: operators
    /// have the difference of the charges of the states that they connect.
    ///
    /// # Errors
    /// `FermionicSector`; those of [`Leg::new`].
    pub fn conserve<T: Sector>(&self, charge: impl Fn(S) -> T) -> Result<Site<T>> {
        let state = |state: &State<S>| State {
            name: state.name.clone(),
            charge: charge(state.charge),
            odd: state.odd,
        };
        let states = self.states.iter().map(state).collect();
        Site::of_states(self.kind.clone(), states, self.operators.clone())
    }

    /// The name of the kind of site.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Number of states.
    pub fn dim(&self) -> usize {
        self.states.len()
    }

    /// The leg of the states, pointing out.
    pub fn leg(&self) -> &Leg<S> {
        &self.leg
    }

    /// Name and charge of the states, in the order of the basis.
    pub fn states(&self) -> impl Iterator<Item = (&str, S)> {
        self.states.iter().map(|state| (&state.name[..], state.charge))
    }

    /// The number of a state in the basis.
    pub fn state(&self, name: &str) -> Option<usize> {
        self.states.iter().position(|state| state.name == name)
    }

    /// Names of the operators.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.operators.iter().map(|(name, _)| &name[..])
    }

    pub(crate) fn matrix(&self, name: &str) -> Option<&LocalMatrix> {
        self.operators.iter().find(|(other, _)| other == name).map(|(_, matrix)| matrix)
    }

    /// The matrix of an operator that exists.
    pub(crate) fn own(&self, name: &str) -> LocalMatrix {
        self.matrix(name).cloned().unwrap_or_else(|| LocalMatrix::zeros(self.dim()))
    }

    /// The charge that an operator adds; `None` for an unknown one and one that connects states of several
    /// differences of charge.
    pub fn charge_of(&self, operator: &str) -> Option<S> {
        match &self.components(self.matrix(operator)?).ok()?[..] {
            [] => Some(S::TRIVIAL),
            [(charge, _)] => Some(*charge),
            _ => None,
        }
    }

    /// True for an operator that connects states of even and odd numbers of fermions; `None` for an unknown one.
    pub fn is_odd(&self, operator: &str) -> Option<bool> {
        self.parity(self.matrix(operator)?)
    }

    pub(crate) fn parity(&self, matrix: &LocalMatrix) -> Option<bool> {
        let mut all = matrix.nonzeros().map(|(i, j, _)| self.states[i].odd != self.states[j].odd);
        let first = all.next().unwrap_or(false);
        all.all(|odd| odd == first).then_some(first)
    }

    /// True if a state has an odd number of fermions.
    pub(crate) fn has_fermions(&self) -> bool {
        self.states.iter().any(|state| state.odd)
    }

    /// The parts of an operator of one charge each, by ascending charge.
    pub(crate) fn components(&self, matrix: &LocalMatrix) -> Result<Vec<(S, LocalMatrix)>> {
        let mut parts: Vec<(S, LocalMatrix)> = Vec::new();
        for (i, j, x) in matrix.nonzeros() {
            let (to, from) = (self.states[i].charge, self.states[j].charge);
            let overflow = || t4a_structured::StructuredError::ChargeOverflow {
                op: OP,
                sectors: format!("{to} and {from}"),
            };
            let charge = from.dual().and_then(|from| to.fuse(from)).ok_or_else(overflow)?;
            let place = match parts.iter().position(|(other, _)| *other == charge) {
                Some(place) => place,
                None => {
                    parts.push((charge, LocalMatrix::zeros(self.dim())));
                    parts.len() - 1
                }
            };
            parts[place].1.entries[i * self.dim() + j] = x;
        }
        parts.sort_by_key(|&(charge, _)| charge);
        Ok(parts)
    }

    /// An operator as a tensor `[out, in]` of its charge.
    ///
    /// # Errors
    /// `UnknownOperator`; `Definition` for an operator without a charge of its own.
    pub fn operator(&self, name: &str) -> Result<GradedTensor<S>> {
        let matrix = self.matrix(name).ok_or_else(|| self.unknown(OP, 0, name))?;
        let charge = self.charge_of(name).ok_or_else(|| {
            invalid("operator", name, "connects states of several differences of charge".into())
        })?;
        self.tensor(charge, matrix)
    }

    /// A matrix of one charge as a tensor `[out, in]`.
    pub(crate) fn tensor(&self, charge: S, matrix: &LocalMatrix) -> Result<GradedTensor<S>> {
        let spec = Spec::new(vec![self.leg.clone(), self.leg.dual()], charge, 1)?;
        let mut filler = Filler::new(spec);
        for (i, j, x) in matrix.nonzeros() {
            filler.add(&[i, j], x);
        }
        filler.finish()
    }

    pub(crate) fn unknown(&self, op: &'static str, site: usize, name: &str) -> NetworksError {
        let known = self.operators().collect::<Vec<_>>().join(", ");
        let (kind, operator) = (self.kind.clone(), name.to_owned());
        NetworksError::UnknownOperator { op, site, kind, operator, known }
    }

    pub(crate) fn unknown_state(&self, op: &'static str, site: usize, name: &str) -> NetworksError {
        let known = self.states().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let (kind, state) = (self.kind.clone(), name.to_owned());
        NetworksError::UnknownState { op, site, kind, state, known }
    }
}

/// The sites of a chain.
#[derive(Clone, Debug)]
pub struct Sites<S> {
    sites: Arc<[Arc<Site<S>>]>,
}

impl<S: Sector> Sites<S> {
    /// `n` sites of one kind.
    pub fn uniform(site: Site<S>, n: usize) -> Self {
        let shared = Arc::new(site);
        Self { sites: (0..n).map(|_| Arc::clone(&shared)).collect() }
    }

    /// Sites of several kinds.
    pub fn new(sites: impl IntoIterator<Item = Arc<Site<S>>>) -> Self {
        Self { sites: sites.into_iter().collect() }
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// True if there is no site.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// A site.
    pub fn get(&self, site: usize) -> Option<&Site<S>> {
        self.sites.get(site).map(|site| &**site)
    }

    /// All sites.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Site<S>> + ExactSizeIterator {
        self.sites.iter().map(|site| &**site)
    }

    pub(crate) fn shared(&self) -> &[Arc<Site<S>>] {
        &self.sites
    }

    pub(crate) fn at(&self, op: &'static str, site: usize) -> Result<&Site<S>> {
        let sites = self.len();
        self.get(site).ok_or(NetworksError::SiteOutOfRange { op, site, sites })
    }

    /// Rejects a chain without sites.
    pub(crate) fn check(&self, op: &'static str) -> Result<()> {
        match self.is_empty() {
            false => Ok(()),
            true => {
                let (name, given) = ("the number of sites", "0".into());
                Err(NetworksError::Argument { op, name, given, required: "at least 1" })
            }
        }
    }
}
