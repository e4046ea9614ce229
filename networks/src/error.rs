//! Rejected input of tensor networks, before any arithmetic.

use t4a_algebra::message::{cut, long, short};
use t4a_linalg::LinalgError;
use t4a_structured::StructuredError;
use t4a_tensor::TensorError;
use thiserror::Error;

/// Result of a function of this crate.
pub type Result<T, E = NetworksError> = std::result::Result<T, E>;

/// A rejected argument, operator or state: what was required and what was given. Charges and legs are given as
/// they print.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum NetworksError {
    /// An operator that the site does not have.
    #[error(
        "{op}: site {site} is a {kind} without operator {operator:?}; it has {known}",
        kind = short(.kind), operator = short(.operator), known = short(.known)
    )]
    UnknownOperator { op: &'static str, site: usize, kind: String, operator: String, known: String },
    /// A basis state that the site does not have.
    #[error(
        "{op}: site {site} is a {kind} without state {state:?}; it has {known}",
        kind = short(.kind), state = short(.state), known = short(.known)
    )]
    UnknownState { op: &'static str, site: usize, kind: String, state: String, known: String },
    /// A site beyond the end of the chain.
    #[error("{op}: site {site} is outside of a chain of {sites} sites")]
    SiteOutOfRange { op: &'static str, site: usize, sites: usize },
    /// A site, or an operator of a site, that contradicts itself.
    #[error("{op}: {what} {name:?}: {message}", name = short(.name), message = cut(.message, 270))]
    Definition { op: &'static str, what: &'static str, name: String, message: String },
    /// Sectors with a parity, where fermions have Jordan–Wigner strings.
    #[error(
        "{op}: sectors of {what} are fermionic; chains keep signs in Jordan–Wigner strings, so take U1 for \
         FermionNumber and Z2 for FermionParity",
        what = short(.what)
    )]
    FermionicSector { op: &'static str, what: String },
    /// A term or a state of another charge.
    #[error(
        "{op}: {what} has charge {given}; {required} is required",
        what = short(.what), given = short(.given), required = short(.required)
    )]
    Charge { op: &'static str, what: String, given: String, required: String },
    /// A term with an odd number of fermion operators in an even operator, or the reverse.
    #[error(
        "{op}: {term} has an {given} number of fermion operators; the operator is {required}",
        term = short(.term)
    )]
    Parity { op: &'static str, term: String, given: &'static str, required: &'static str },
    /// A number of sites, states or tensors.
    #[error("{op}: {required} {what} are required, given {given}")]
    Length { op: &'static str, what: &'static str, required: usize, given: usize },
    /// A number outside of its range.
    #[error("{op}: {name} is {given}; {required} is required", given = short(.given))]
    Argument { op: &'static str, name: &'static str, given: String, required: &'static str },
    /// Legs of a tensor of a chain that do not fit.
    #[error("{op}: tensor {site}: {message}", message = long(.message))]
    Chain { op: &'static str, site: usize, message: String },
    /// An operator that differs from its adjoint.
    #[error("{op}: the operator is not Hermitian: {deviation:e} of its norm is anti-Hermitian")]
    NotHermitian { op: &'static str, deviation: f64 },
    /// A state of norm zero, or one that is orthogonal to everything it is compared with.
    #[error("{op}: the norm of the state is {norm:?}; it has to be positive and finite")]
    Norm { op: &'static str, norm: f64 },
    /// A linear system of a chain whose solution still changes.
    #[error(
        "{op}: the solution changed by {change:e} of its size in sweep {sweeps}, the last one; {required:e} is required"
    )]
    Unconverged { op: &'static str, change: f64, sweeps: usize, required: f64 },
    /// More terms, states or numbers than the operation has room for.
    #[error("{op}: {what} exceed {limit}")]
    TooLarge { op: &'static str, what: &'static str, limit: usize },
    /// A user's callback that failed; the state is that before the message.
    #[error("{op}: the callback failed: {message}", message = long(.message))]
    Callback { op: &'static str, message: String },
    /// A derivative rule that failed in a reverse pass.
    #[error("gradient of {op}: {message}", message = long(.message))]
    Gradient { op: &'static str, message: String },
    /// A failure of graded tensors.
    #[error(transparent)]
    Structured(#[from] StructuredError),
    /// A failure of a factorisation.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A failure of the tensors below.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
