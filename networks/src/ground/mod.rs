//! Ground states as functions of their Hamiltonian.
//!
//! ```text
//! E(θ) = ⟨ψ|H(θ)|ψ⟩           ∂E = ⟨ψ|∂H|ψ⟩: ψ counts as a constant (Hellmann, Feynman)
//! O(θ) = ⟨ψ(θ)|O|ψ(θ)⟩        ∂O = 2 Re⟨λ|∂H|ψ⟩ with (H − E) λ = −(O − ⟨O⟩) ψ, λ ⊥ ψ
//! ```
//!
//! The search for the state is not differentiated: the state is the solution of an equation, and the derivative of a
//! solution is one linear system, whatever the number of parameters. The system is solved by sweeps over pairs of
//! sites, as the search itself.
//!
//! References: R. Feynman, *Forces in molecules* (1939); E. Jeckelmann, *Dynamical density-matrix renormalization-group
//! method* (2002), for linear systems by sweeps; M. Blondel et al., *Efficient and modular implicit differentiation*
//! (2022).

mod response;

use t4a_diff::Array;
use t4a_linalg::svd::Truncation;
use t4a_structured::{GradedTensor, Sector};

pub use response::ResponseOptions;

use crate::dmrg::{Dmrg, DmrgOptions};
use crate::error::Result;
use crate::mpo::Mpo;
use crate::mps::Mps;

const OP: &str = "ground state";

/// Singular values of the bonds of a Hamiltonian, relative to the largest, that a search leaves out.
const NEGLIGIBLE: f64 = 1e-14;

/// The ground state of a Hamiltonian over any arrays, as a function of the tensors of the Hamiltonian.
///
/// ```
/// use t4a_diff::{Array, Dual, check};
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::{DmrgOptions, GroundState, Mpo, Mps, Sum};
/// // Two spins in a field: E = −√(x² + z²), and the derivative of E in x.
/// let sites = Sites::uniform(spin_half().conserve(|_| t4a_structured::Trivial)?, 2);
/// let part = |name: &str| {
///     let mut sum = Sum::new(&sites);
///     sum.add(-1.0, [(name, 0)]).add(-1.0, [(name, 1)]);
///     sum.mpo()
/// };
/// let number = |x: f64| check::array(&[1], |_| x);
/// let weights = [Dual::new(number(3.0), number(1.0)), Dual::constant(number(4.0))];
/// let h = Mpo::weighted(&[part("Sx")?, part("Sz")?], &weights)?;
/// let start = Mps::product(&sites, ["Up", "Up"])?;
/// let ground = GroundState::find(&h, start, DmrgOptions::new())?;
/// let energy = ground.energy()?;
/// assert!((check::elements(&energy.value)[0] + 5.0).abs() < 1e-10);
/// assert!((check::elements(&energy.into_tangent())[0] + 3.0 / 5.0).abs() < 1e-6);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GroundState<'a, S, A> {
    operator: &'a Mpo<S, A>,
    /// The operator of the search.
    plain: Mpo<S>,
    state: Mps<S>,
    energy: f64,
}

impl<'a, S: Sector, A: Array> GroundState<'a, S, A> {
    /// Of a state that a search has found.
    ///
    /// # Errors
    /// `Charge` and `NotHermitian` of the operator; `Length`, `Chain` for other sites; `Norm` for a state of norm 0.
    pub fn new(operator: &'a Mpo<S, A>, state: Mps<S>) -> Result<Self> {
        let plain = compressed(operator)?;
        plain.check_hermitian(OP)?;
        Self::of(operator, plain, state)
    }

    /// The result of a search for the state, from a start.
    ///
    /// # Errors
    /// As [`GroundState::new`] and [`Dmrg::new`].
    pub fn find(operator: &'a Mpo<S, A>, start: Mps<S>, options: DmrgOptions) -> Result<Self> {
        let plain = compressed(operator)?;
        let mut search = Dmrg::new(&plain, start, options)?;
        search.run_to_end()?;
        let state = search.into_state();
        Self::of(operator, plain, state)
    }

    fn of(operator: &'a Mpo<S, A>, plain: Mpo<S>, mut state: Mps<S>) -> Result<Self> {
        state.orthogonalise(0)?;
        state.normalise()?;
        let energy = state.expectation(&plain)?.re;
        Ok(Self { operator, plain, state, energy })
    }

    /// The state, of norm 1.
    pub fn state(&self) -> &Mps<S> {
        &self.state
    }

    /// The state, of norm 1.
    pub fn into_state(self) -> Mps<S> {
        self.state
    }

    /// The state as a constant over the arrays of the operator.
    fn constant(&self) -> Result<Mps<S, A>> {
        self.state.over(self.operator.tensors()[0].re())
    }

    /// The energy, an array of one element. Its derivative is that of the Hamiltonian in the state; second derivatives
    /// would need that of the state, and are not those of the energy.
    ///
    /// Accuracy of value and derivative: quadratic and linear in the error of the state.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn energy(&self) -> Result<A> {
        let state = self.constant()?;
        Ok(state.matrix_element_array(self.operator, &state)?.0)
    }

    /// The expectation value of a Hermitian operator, an array of one element, differentiable in the Hamiltonian and in
    /// the operator itself. Derivatives are of first order; they are those of the exact state where the state and the
    /// solution of the linear system have converged in their bond dimensions.
    ///
    /// Cost: about that of the search, with a state of the bond dimension of the options.
    ///
    /// # Errors
    /// `NotHermitian`, `Charge`, `Length`, `Chain` of the operator; `Length` for chains of one site; `Argument` for
    /// options out of range; `Unconverged`; `Structured` with that of a system that is not positive definite, for a
    /// degenerate ground state or a search that has not reached it.
    pub fn expectation(&self, operator: &Mpo<S, A>, options: &ResponseOptions) -> Result<A> {
        let plain = operator.to_engine()?;
        plain.check_hermitian(OP)?;
        let state = self.constant()?;
        let value = state.matrix_element_array(operator, &state)?.0;
        let Some(lambda) = self.response(&plain, options)? else { return Ok(value) };
        let lambda = lambda.over(state.tensors()[0].re())?;
        let change = lambda.matrix_element_array(self.operator, &state)?.0.scale(2.0);
        // The value of the added term is 0, its derivative that of the state.
        Ok(value.add(&change.sub(&change.detach())))
    }
}

/// The operator on the engine, with bonds of full rank.
fn compressed<S: Sector, A: Array>(operator: &Mpo<S, A>) -> Result<Mpo<S>> {
    // In units of the identity of each site, whose product exceeds the range of numbers for long chains.
    let unit = |x: &GradedTensor<S>| (x.spec().legs()[1].dim() as f64).sqrt();
    let scaled = operator.to_engine()?.tensors().iter().map(|x| x.scale(1.0 / unit(x))).collect();
    let mut plain = Mpo::new(scaled)?;
    plain.truncate(Truncation::new().relative_cutoff(NEGLIGIBLE))?;
    Mpo::new(plain.tensors().iter().map(|x| x.scale(unit(x))).collect())
}
