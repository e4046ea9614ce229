//! Rules on backends: a plain call, and one node of a tape.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::{CheckpointStrategy, NoCheckpointing};
use burn_backend::AutodiffBackend;
use burn_backend::ops::FloatTensorOps;
use t4a_diff::Value;

use super::list::{JvpRule, OperandList, Pulled, VjpRule, WithTangents};
use super::{CustomError, Result, tape};
use crate::ext::line::without_tape;
use crate::ext::operation::Operand;
use crate::ext::primitive::{Bools, Floats, Indices};
use crate::ext::scan::ScanBackend;
use crate::ext::scan::records::is_inside;
use crate::ext::tape::is_tracked;

/// A backend that functions with user-defined rules run on. The default calls the function, which is right for every
/// backend without derivatives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it runs functions with user-defined rules",
    label = "not a `CustomBackend`",
    note = "code that is generic over its backend asks for it: `B: CustomBackend` in the place of `B: Backend`",
    note = "a backend of your own: `impl burn_t4a::ext::custom::CustomBackend for MyBackend {{}}`"
)]
pub trait CustomBackend: ScanBackend {
    /// True if this backend or one below it has derivatives.
    fn differentiates() -> bool {
        false
    }

    /// The results of a function with a rule for reverse mode.
    ///
    /// # Errors
    /// Those of the rule.
    fn custom_vjp<R: VjpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        rule.value(x)
    }

    /// The results of a function with a rule for forward mode.
    ///
    /// # Errors
    /// Those of the rule.
    fn custom_jvp<R: JvpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        rule.value(x)
    }
}

without_tape!(CustomBackend);

impl<B: CustomBackend, C: CheckpointStrategy> CustomBackend for Autodiff<B, C> {
    fn differentiates() -> bool {
        true
    }

    fn custom_vjp<R: VjpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        tape::custom_vjp::<R, B, C>(rule, x)
    }

    fn custom_jvp<R: JvpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        tape::custom_jvp::<R, B, C>(rule, x)
    }
}

/// Zeros like a value.
pub(super) fn zeros<B: CustomBackend>(x: &Operand<B>) -> Operand<B> {
    x.zeros(&x.shape())
}

/// Results and residuals of a level over `B`: the derivatives of the levels below apply to the results by the rule, to the
/// residuals by the operations of `forward`.
///
/// # Errors
/// Those of the rule.
pub(super) fn forward<B: CustomBackend, R: VjpRule>(
    rule: &R,
    x: OperandList<B>,
) -> Result<Pulled<B>> {
    if !B::differentiates() {
        return rule.forward(x);
    }
    let results = B::custom_vjp(rule.clone(), x.clone())?;
    let [_, residuals] = rule.forward(x)?;
    Ok([results, residuals])
}

/// Results of a function with a rule for reverse mode, and their tangents along those of the arguments; `None` is zero.
///
/// `backward` is linear in the cotangents u, so `J v` is the gradient of `<Jᵀ u, v>` with respect to u: one reverse pass.
///
/// # Errors
/// Those of the rule; [`CustomError::InsidePass`].
pub fn tangents_by_transposition<B: CustomBackend, R: VjpRule>(
    rule: R,
    x: OperandList<B>,
    tangents: Vec<Option<Floats<B>>>,
) -> Result<WithTangents<B>> {
    type Tape<B> = Autodiff<B, NoCheckpointing>;
    if is_inside() {
        return Err(CustomError::InsidePass { rule: rule.name() });
    }
    let [results, residuals] = forward(&rule, x)?;
    let constant = |x: Operand<B>| {
        x.map(|x| Floats(Tape::<B>::from_inner(x.0)), |x| Indices(x.0), |x| Bools(x.0))
    };
    let variable = |x: Floats<Tape<B>>| Floats(Tape::<B>::float_set_require_grad(x.0, true));
    let residuals = residuals.into_iter().map(constant).collect();
    let cotangents: OperandList<Tape<B>> =
        results.iter().map(|y| constant(zeros(y)).map(variable, |x| x, |x| x)).collect();
    let pulled = rule.backward([residuals, cotangents.clone()])?;
    let products = pulled.into_iter().zip(tangents).filter_map(|(g, v)| match (g, v) {
        (Value::Float(g), Some(v)) if is_tracked::<B, NoCheckpointing>(&g.0) => {
            let v = Tape::<B>::from_inner(v.0);
            Some(Tape::<B>::float_sum(Tape::<B>::float_mul(g.0, v)))
        }
        _ => None,
    });
    let gradients = products.reduce(Tape::<B>::float_add).map(Tape::<B>::backward);
    let tangent = |u: &Operand<Tape<B>>| match (u, &gradients) {
        (Value::Float(u), Some(all)) => Tape::<B>::grad(&u.0, all).map(Floats),
        _ => None,
    };
    let tangents = cotangents.iter().map(tangent).collect();
    Ok((results, tangents))
}
