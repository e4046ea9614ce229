//! Functions with user-defined derivative rules.

use burn_t4a::ext::custom::{
    CustomBackend, JvpRule, OperandList, Result, VjpRule, tangents_by_transposition,
};
use burn_t4a::ext::operation::{Operand, Value};

use crate::backend::Jvp;
use crate::operations::{above, below, constant_value, dual, moves};

impl<B: CustomBackend> CustomBackend for Jvp<B> {
    fn differentiates() -> bool {
        true
    }

    /// The tangent is the transpose of the rule.
    fn custom_vjp<R: VjpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        if !x.iter().any(moves) {
            return Ok(B::custom_vjp(rule, below(&x))?.into_iter().map(constant_value).collect());
        }
        let tangent = |x| match dual::<B>(x) {
            Value::Float(x) => x.tangent,
            _ => None,
        };
        let tangents = x.iter().map(tangent).collect();
        let (results, tangents) = tangents_by_transposition(rule, below(&x), tangents)?;
        let both = results.into_iter().zip(tangents);
        Ok(both.map(|(y, t)| above(y.dual(t))).collect())
    }

    fn custom_jvp<R: JvpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        let primals = below(&x);
        if !x.iter().any(moves) {
            return Ok(B::custom_jvp(rule, primals)?.into_iter().map(constant_value).collect());
        }
        let tangent = |(x, y): (_, &Operand<B>)| {
            match dual::<B>(x) {
                Value::Float(x) if x.tangent.is_some() => x.tangent.map(Value::Float),
                _ => None,
            }
            .unwrap_or_else(|| y.zeros(&y.shape()))
        };
        let tangents = x.iter().zip(&primals).map(tangent).collect();
        // The levels below differentiate the results by the rule, too.
        let below = B::differentiates().then(|| B::custom_jvp(rule.clone(), primals.clone()));
        let [results, tangents] = rule.jvp::<B>([primals, tangents])?;
        let results = below.unwrap_or(Ok(results))?;
        let both = results.into_iter().zip(tangents);
        Ok(both.map(|(y, t)| above(y.dual(t.into_float()))).collect())
    }
}
