//! Functions with user-defined derivative rules, written in Burn's tensors: `jax.custom_vjp` and `jax.custom_jvp`.
//!
//! ```text
//! CustomVjp   forward: x → y, residuals     backward: residuals, ȳ → x̄
//! CustomJvp   jvp: x, ẋ → y, ẏ                                               transposed by the tape
//! ```
//!
//! Arguments, results and residuals are [trees](crate::tree::Tree). `forward`, `backward` and the values of `jvp` are computed on
//! tensors without a tape; the cotangent of a [`CustomJvp`] is the transpose of `jvp`, which is linear in ẋ: the tape records its
//! operations on ẋ. Rules of derivatives of higher order are in the crate for Burn 0.21.
//!
//! ```
//! use burn_t4a_022_ext::custom::{CustomVjp, custom_vjp};
//! use burn::tensor::{Device, Tensor};
//!
//! /// The identity, with a gradient that is clipped to [−1, 1].
//! #[derive(Clone)]
//! struct ClipGradient;
//!
//! impl CustomVjp for ClipGradient {
//!     type Arguments = Tensor<1>;
//!     type Results = Tensor<1>;
//!     type Residuals = ();
//!
//!     fn forward(&self, x: Tensor<1>) -> (Tensor<1>, ()) {
//!         (x, ())
//!     }
//!     fn backward(&self, (): (), y: Tensor<1>) -> Tensor<1> {
//!         y.clamp(-1.0, 1.0)
//!     }
//! }
//!
//! let device = Device::flex().autodiff();
//! let x = Tensor::<1>::from_floats([0.1, 10.0], &device).require_grad();
//! let y = custom_vjp(ClipGradient, x.clone())?;
//! let gradient = x.grad(&(y.clone() * y).sum().backward()).unwrap();
//! gradient.into_data().assert_eq(&[0.2f32, 1.0].into(), false);
//! # Ok::<(), burn_t4a_022_ext::custom::CustomError>(())
//! ```

mod error;
mod signature;

use std::any::type_name;

use burn_dispatch::{Dispatch, DispatchAutodiffContext, DispatchTensor};
use t4a_diff::Value;
use t4a_scan::body::Tape;
use t4a_tensor::TensorError;

use crate::boundary::accept;
use crate::dispatch::{self, ListRule};
use crate::operation::Operand;
use crate::primitive::Floats;
use crate::tape::InputMeta;
use crate::tree::Tree;
use signature::{TreeSignature, built};

pub use error::{CustomError, Result, TensorMismatch};

type OperandList = Vec<Operand<Dispatch>>;
type DispatchFloats = Floats<Dispatch>;

/// A function whose derivative in reverse mode is written by hand.
pub trait CustomVjp: Clone + Send + Sync + 'static {
    /// The arguments.
    type Arguments: Tree;
    /// The results.
    type Results: Tree;
    /// Values that `backward` needs.
    type Residuals: Tree;

    /// The results, and values for the reverse pass.
    fn forward(&self, x: Self::Arguments) -> (Self::Results, Self::Residuals);

    /// Cotangents of the arguments, in the shapes of the arguments. Linear in `cotangents`, which are zeros for results that
    /// the loss does not use. Integer and boolean leaves have no derivative: their values are ignored, in the cotangents and in
    /// the result.
    fn backward(&self, residuals: Self::Residuals, cotangents: Self::Results) -> Self::Arguments;
}

/// A function whose derivative in forward mode is written by hand.
pub trait CustomJvp: Clone + Send + Sync + 'static {
    /// The arguments.
    type Arguments: Tree;
    /// The results.
    type Results: Tree;

    /// The results, and their tangents in the shapes of the results. The latter are linear in `tangents`, which are zeros
    /// for arguments without a tangent. Integer and boolean leaves have no tangent: their values are ignored.
    fn jvp(&self, x: Self::Arguments, tangents: Self::Arguments) -> (Self::Results, Self::Results);
}

/// `f(x)` of a function with a rule for reverse mode: one node of the tape.
///
/// Cost: `forward`, and `backward` in a reverse pass.
///
/// # Errors
/// [`CustomError::Backend`] for a tracked argument on a backend that [the crate's documentation](crate) does not list. A tree of
/// cotangents that does not fit the arguments panics in the reverse pass, with the text of the error.
pub fn custom_vjp<R: CustomVjp>(rule: R, x: R::Arguments) -> Result<R::Results> {
    let (arguments, x) = TreeSignature::of(x);
    let Some(tape) = RuleTape::of::<R>(&x)? else {
        return Ok(rule.forward(built::<R, _, _>("the arguments", &arguments.structure, x)?).0);
    };
    let below = x.iter().cloned().map(below).collect();
    let below = built::<R, _, _>("the arguments", &arguments.structure, below)?;
    let tracked: Vec<bool> = x.iter().map(is_tracked).collect();
    let inputs = x.into_iter().filter(is_tracked).filter_map(Value::into_float).map(|x| x.0);
    let (results, residuals) = rule.forward(below);
    let (TreeSignature { structure, .. }, results) = TreeSignature::of(results);
    let (TreeSignature { structure: of_residuals, .. }, residuals) = TreeSignature::of(residuals);
    let like: Vec<ZeroCotangent> = results.iter().map(ZeroCotangent::of).collect();
    let float = |y: &Operand<Dispatch>| Some(y.as_float()?.0.clone());
    let floats: Vec<DispatchTensor> = results.iter().filter_map(float).collect();
    let of_results = structure.clone();
    let pull = move |cotangents: Vec<Option<DispatchTensor>>| -> Vec<Option<DispatchTensor>> {
        let mut given = cotangents.into_iter();
        let cotangents = like.into_iter().map(|y| y.or(|| given.next().flatten())).collect();
        let back = || {
            let residuals = built::<R, _, _>("the residuals", &of_residuals, residuals)?;
            let what = "the cotangents of the results";
            let cotangents = built::<R, _, _>(what, &of_results, cotangents)?;
            let (given, all) = TreeSignature::of(rule.backward(residuals, cotangents));
            given.check::<R>("the cotangents of the arguments", &arguments)?;
            Ok::<_, CustomError>(all)
        };
        let all = accept(back()).into_iter().zip(tracked).filter(|(_, tracked)| *tracked);
        all.map(|(g, _)| g.into_float().map(|g| g.0)).collect()
    };
    let recorded = match floats.is_empty() {
        true => Ok(floats),
        false => dispatch::record_list(inputs.collect(), floats, ListRule(Box::new(pull))),
    };
    let mut recorded = recorded.map_err(failed::<R>)?.into_iter();
    let result = |y: Operand<Dispatch>| match y {
        Value::Float(_) => match recorded.next() {
            Some(y) => Value::Float(Floats(y)),
            None => unreachable!("one node per float"),
        },
        other => tape.above(other),
    };
    let results = results.into_iter().map(result).collect();
    built::<R, _, _>("the results", &structure, results)
}

/// `f(x)` of a function with a rule for forward mode.
///
/// Cost: `jvp` once, and on a tape a second time, where the tape records its operations on the tangents.
///
/// # Errors
/// [`CustomError`] if a tree of tangents does not fit the results; `Backend` as for [`custom_vjp`].
///
/// ```
/// use burn_t4a_022_ext::custom::{CustomJvp, custom_jvp};
/// use burn::tensor::{Device, Tensor};
///
/// /// `ln(1 + eˣ)`, whose derivative `1/(1 + e⁻ˣ)` does not overflow.
/// #[derive(Clone)]
/// struct Softplus;
///
/// impl CustomJvp for Softplus {
///     type Arguments = Tensor<1>;
///     type Results = Tensor<1>;
///
///     fn jvp(&self, x: Tensor<1>, v: Tensor<1>) -> (Tensor<1>, Tensor<1>) {
///         let y = x.clone().clamp_min(0.0) + (x.clone().abs() * -1.0).exp().log1p();
///         (y, v / ((x * -1.0).exp() + 1.0))
///     }
/// }
///
/// let device = Device::flex().autodiff();
/// let x = Tensor::<1>::from_floats([0.0, 100.0], &device).require_grad();
/// let y = custom_jvp(Softplus, x.clone())?;
/// let slope = x.grad(&y.sum().backward()).unwrap();
/// slope.into_data().assert_eq(&[0.5f32, 1.0].into(), false);
/// # Ok::<(), burn_t4a_022_ext::custom::CustomError>(())
/// ```
pub fn custom_jvp<R: CustomJvp>(rule: R, x: R::Arguments) -> Result<R::Results> {
    let (arguments, x) = TreeSignature::of(x);
    let tree = |what, all| built::<R, _, R::Arguments>(what, &arguments.structure, all);
    let zero = |x: &Operand<Dispatch>| x.zeros(&x.shape());
    let run = |x: OperandList, tangents: OperandList| {
        let (results, tangents) =
            rule.jvp(tree("the arguments", x)?, tree("the tangents", tangents)?);
        let (of_results, results) = TreeSignature::of(results);
        let (of_tangents, tangents) = TreeSignature::of(tangents);
        of_tangents.check::<R>("the tangents of the results", &of_results)?;
        Ok::<_, CustomError>((of_results.structure, results, tangents))
    };
    let Some(tape) = RuleTape::of::<R>(&x)? else {
        let tangents = x.iter().map(zero).collect();
        let (structure, results, _) = run(x, tangents)?;
        return built::<R, _, _>("the results", &structure, results);
    };
    let values: OperandList = x.iter().cloned().map(below).collect();
    let (structure, results, _) = run(values.clone(), values.iter().map(zero).collect())?;
    // The value of ẋ is zero and that of y does not depend on ẏ, so that tangents that are not finite at ẋ = 0 do no harm.
    let tangent = |(x, value): (Operand<Dispatch>, &Operand<Dispatch>)| match x {
        Value::Float(x) if x.is_tracked() => {
            let node = |[x]: [DispatchTensor; 1]| Ok((InputMeta::<Dispatch>::of(&x).zeros(), ()));
            dispatch::record([x.0], node, |(), g| [Some(g)]).map(|x| Value::Float(Floats(x)))
        }
        _ => Ok(tape.above(zero(value))),
    };
    let tangents = x.into_iter().zip(&values).map(tangent).collect::<Result<_, TensorError>>();
    let constants = values.into_iter().map(|x| tape.above(x)).collect();
    let (_, _, tangents) = run(constants, tangents.map_err(failed::<R>)?)?;
    let result = |(y, t): (Operand<Dispatch>, Operand<Dispatch>)| match (y, t) {
        (Value::Float(y), Value::Float(t)) if t.is_tracked() => {
            dispatch::record([t.0], |_| Ok((y.0, ())), |(), g| [Some(g)])
                .map(|y| Value::Float(Floats(y)))
        }
        (y, _) => Ok(tape.above(y)),
    };
    let results = results.into_iter().zip(tangents).map(result).collect::<Result<_, TensorError>>();
    built::<R, _, _>("the results", &structure, results.map_err(failed::<R>)?)
}

/// The tape that a function with a rule is recorded on.
#[derive(Clone, Copy)]
struct RuleTape(DispatchAutodiffContext);

impl RuleTape {
    /// The tape of the arguments; `None` if none of them is tracked.
    ///
    /// # Errors
    /// `Backend` if it cannot record a rule.
    fn of<R>(x: &[Operand<Dispatch>]) -> Result<Option<Self>> {
        let floats = || x.iter().filter_map(Value::as_float);
        let Some(tracked) = floats().find(|x| x.is_tracked()) else { return Ok(None) };
        if !dispatch::records(floats().map(|x| &x.0)) {
            let message = "the tape of this backend cannot record a rule";
            return Err(failed::<R>(TensorError::value("custom", message)));
        }
        Ok(Some(Self(tracked.kind())))
    }

    /// A constant of the tape.
    fn above(self, x: Operand<Dispatch>) -> Operand<Dispatch> {
        x.map(
            |x| DispatchFloats::above(x, self.0),
            |x| DispatchFloats::integers_above(x, self.0),
            |x| DispatchFloats::flags_above(x, self.0),
        )
    }
}

/// The value without the tape.
fn below(x: Operand<Dispatch>) -> Operand<Dispatch> {
    x.map(DispatchFloats::below, DispatchFloats::integers_below, DispatchFloats::flags_below)
}

fn is_tracked(x: &Operand<Dispatch>) -> bool {
    matches!(x, Value::Float(x) if x.is_tracked())
}

fn failed<R>(error: TensorError) -> CustomError {
    CustomError::Backend { rule: type_name::<R>(), error }
}

/// The zero cotangent of a result.
enum ZeroCotangent {
    Float(InputMeta<Dispatch>),
    Other(Operand<Dispatch>),
}

impl ZeroCotangent {
    fn of(y: &Operand<Dispatch>) -> Self {
        match y {
            Value::Float(y) => Self::Float(InputMeta::of(&y.0)),
            other => Self::Other(other.zeros(&other.shape())),
        }
    }

    /// The cotangent of a float, if there is one; otherwise zero.
    fn or(self, next: impl FnOnce() -> Option<DispatchTensor>) -> Operand<Dispatch> {
        match self {
            Self::Float(y) => Value::Float(Floats(next().unwrap_or_else(|| y.zeros()))),
            Self::Other(y) => y,
        }
    }
}
