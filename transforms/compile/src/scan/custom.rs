//! Functions with user-defined derivative rules.

use burn_t4a::ext::custom::{CustomBackend, CustomError, JvpRule, OperandList, Result, VjpRule};

use super::instruction;
use crate::backend::Traced;
use crate::operation::{any, value};
use crate::tensor::AnyPrimitive;

/// Records a call on the backend below as one instruction.
///
/// # Errors
/// Those of the call.
fn recorded<B: CustomBackend>(
    name: &'static str,
    x: &OperandList<Traced<B>>,
    run: impl Fn(OperandList<B>) -> Result<OperandList<B>> + Send + Sync + 'static,
) -> Result<OperandList<Traced<B>>> {
    instruction(name, None, x, move |x: Vec<AnyPrimitive<B>>| {
        let results = run(x.into_iter().map(value).collect())?;
        Ok::<_, CustomError>(results.into_iter().map(any).collect())
    })
}

/// Over a backend without derivatives the operations of the function are recorded; otherwise the function is one instruction,
/// which the backend below differentiates by the rule.
impl<B: CustomBackend> CustomBackend for Traced<B> {
    fn differentiates() -> bool {
        B::differentiates()
    }

    fn custom_vjp<R: VjpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        if B::differentiates() {
            return recorded::<B>("custom_vjp", &x, move |x| B::custom_vjp(rule.clone(), x));
        }
        rule.value(x)
    }

    fn custom_jvp<R: JvpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        if B::differentiates() {
            return recorded::<B>("custom_jvp", &x, move |x| B::custom_jvp(rule.clone(), x));
        }
        rule.value(x)
    }
}
