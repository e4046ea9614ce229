//! Energies of iPEPS as one operation on tapes: the entries of the tensors of a state to the energy per site. The gradient
//! is that of the fixed point of CTMRG, which is computed on the host.

use std::sync::Arc;

use t4a_diff::operation::Keep;
use t4a_diff::{Array, Cotangents, Dual, Eager, Meta, Operation, Outcome, Reverse, Value};
use t4a_structured::{GradedTensor, Sector, Spec};

use super::cell::CellEnergy;
use super::energy::SymmetricEnergy;
use super::variational::PepsEnergy;
use crate::error::{NetworksError, Result};

/// The energy per site of a state over any arrays, an array of one element: one operation, whose gradient is that of
/// the fixed point ([`SymmetricEnergy::gradient`]). Computed on the host; derivatives of first order, a second one is
/// `Gradient`. [`SymmetricEnergy::unrolled`] has second derivatives.
///
/// ```no_run
/// # use t4a_networks::peps::{energy, SymmetricEnergy};
/// # use t4a_networks::tape::{Recorded, gradients};
/// # use t4a_structured::{GradedTensor, Z2};
/// # fn f(h: &SymmetricEnergy<Z2>, state: &GradedTensor<Z2, Recorded>) -> Result<(), t4a_networks::NetworksError> {
/// let gradient = gradients(&energy(h, state)?, &[state.re()])?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`SymmetricEnergy::gradient`].
pub fn energy<S: Sector, A: Array>(
    energy: &SymmetricEnergy<S>,
    state: &GradedTensor<S, A>,
) -> Result<A> {
    SymmetricEnergy::check(state)?;
    applied(energy, std::slice::from_ref(state))
}

/// The energy per site of a state of a cell over any arrays, an array of one element: one operation of all tensors of the
/// state, whose gradient is that of the fixed point ([`CellEnergy::gradient`]). Computed on the host; derivatives of first
/// order, a second one is `Gradient`.
///
/// ```no_run
/// # use t4a_networks::peps::{CellEnergy, cell_energy};
/// # use t4a_networks::tape::{Recorded, gradients};
/// # use t4a_structured::{GradedTensor, Z2};
/// # fn f(h: &CellEnergy<Z2>, state: &[GradedTensor<Z2, Recorded>]) -> Result<(), t4a_networks::NetworksError> {
/// let entries: Vec<&Recorded> = state.iter().map(|x| x.re()).collect();
/// let gradient = gradients(&cell_energy(h, state)?, &entries)?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`CellEnergy::gradient`].
pub fn cell_energy<S: Sector, A: Array>(
    energy: &CellEnergy<S>,
    state: &[GradedTensor<S, A>],
) -> Result<A> {
    energy.check(state)?;
    applied(energy, state)
}

fn applied<E: PepsEnergy, A: Array>(energy: &E, state: &[GradedTensor<E::Sector, A>]) -> Result<A> {
    let specs = state.iter().map(|x| x.spec().clone()).collect();
    let op = EnergyOperation { energy: Arc::new(energy.clone()), specs };
    let inputs: Vec<Value<A>> = state.iter().map(|x| Value::Float(x.re().clone())).collect();
    let outcome = A::apply(&op, &inputs, &vec![false; inputs.len()])?;
    let none = NetworksError::Norm { op: op.name(), norm: f64::NAN };
    outcome.results.into_iter().next().ok_or(none)
}

/// The energy of the entries of the tensors of a state.
#[derive(Clone, Debug)]
struct EnergyOperation<E: PepsEnergy> {
    energy: Arc<E>,
    specs: Vec<Spec<E::Sector>>,
}

impl<E: PepsEnergy> EnergyOperation<E> {
    fn state<A: Array>(&self, inputs: &[Value<A>]) -> Result<E::State> {
        let one = |(spec, x): (&Spec<E::Sector>, &Value<A>)| {
            let entries = x.float().elements()?.cast(t4a_tensor::DType::F64)?;
            Ok(GradedTensor::new(spec.clone(), entries.into(), None)?)
        };
        E::state(self.specs.iter().zip(inputs).map(one).collect::<Result<_>>()?)
    }

    /// An array like another of these numbers.
    fn array<A: Array>(&self, like: &A, x: &Eager) -> Result<A> {
        Ok(like.constant(x.tensor()?.clone().cast(like.dtype())?))
    }

    /// The energy, and the gradient with respect to each input.
    fn evaluated<A: Array>(&self, inputs: &[Value<A>]) -> Result<Vec<A>> {
        let evaluated = self.energy.evaluate(&self.state(inputs)?, None)?;
        let (energy, gradient, _) = E::parts(&evaluated);
        let mut all = vec![inputs[0].float().full(&[1], energy)];
        for (x, g) in inputs.iter().zip(gradient) {
            all.push(self.array(x.float(), g.re())?);
        }
        Ok(all)
    }

    fn no_second_order<T>(&self) -> Result<T> {
        let (op, message) = ("ipeps_energy", "the energy has first derivatives".into());
        Err(NetworksError::Gradient { op, message })
    }
}

/// The energy and its gradient, which has no derivative.
#[derive(Clone, Debug)]
struct EvaluatedOperation<E: PepsEnergy>(EnergyOperation<E>);

impl<E: PepsEnergy> Operation for EvaluatedOperation<E> {
    type Error = NetworksError;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let energy = self.0.results(inputs)?;
        Ok(energy.into_iter().chain(inputs.iter().cloned()).collect())
    }

    fn is_on_host(&self) -> bool {
        true
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        Ok(Outcome::new(self.0.evaluated(inputs)?))
    }

    fn vjp<A: Array>(&self, _: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        self.0.no_second_order()
    }

    fn jvp<A: Array>(&self, _: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        self.0.no_second_order()
    }

    fn check_second_order(&self) -> Result<()> {
        self.0.no_second_order()
    }
}

impl<E: PepsEnergy> Operation for EnergyOperation<E> {
    type Error = NetworksError;

    fn name(&self) -> &'static str {
        "ipeps_energy"
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        Ok(inputs.iter().take(1).map(|x| Meta { shape: vec![1], dtype: x.dtype }).collect())
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default()
    }

    fn is_on_host(&self) -> bool {
        true
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], tracked: &[bool]) -> Result<Outcome<A>> {
        if !tracked.contains(&true) {
            let energy = self.energy.energy(&self.state(inputs)?)?;
            return Ok(inputs[0].float().full(&[1], energy).into());
        }
        let mut results = self.evaluated(inputs)?;
        let hidden = results.split_off(1);
        Ok(Outcome { results, hidden, extra: Vec::new() })
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let one = |gradient: &A| gradient.mul(&reverse.cotangent().expand(&gradient.shape()));
        Ok(reverse.kept.hidden.iter().map(|gradient| Some(one(gradient))).collect())
    }

    fn jvp<A: Array>(&self, inputs: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        // As an operation, of which a tape above is an error.
        let values: Vec<Value<A>> =
            inputs.iter().map(|x| Value::Float(x.float().value.clone())).collect();
        let operation = EvaluatedOperation(self.clone());
        let mut all = A::apply(&operation, &values, &vec![false; values.len()])?.results;
        let gradient = all.split_off(1);
        let slopes = inputs.iter().zip(&gradient).filter_map(|(x, g)| {
            let tangent = x.float().tangent.as_ref()?;
            Some(g.mul(tangent).sum(0))
        });
        let tangent = slopes.reduce(|a, b| a.add(&b));
        Ok(Outcome {
            results: all
                .into_iter()
                .map(|value| Dual { value, tangent: tangent.clone() })
                .collect(),
            hidden: gradient.into_iter().map(Dual::constant).collect(),
            extra: Vec::new(),
        })
    }

    fn check_second_order(&self) -> Result<()> {
        self.no_second_order()
    }
}
