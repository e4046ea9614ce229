//! Derivatives of operations, as operations.
//!
//! ```text
//! Jvp   operands, tangents of the active ones       results, their tangents
//! Vjp   operands, cotangents of the given results   cotangents of the wanted operands
//! ```
//!
//! Both are differentiated like any operation, by applying the same rule to dual numbers. With y = f(x), its Jacobian
//! J, and a dual number x + ε t with value x and tangent t:
//!
//! ```text
//! vjp of Vjp, w for the wanted cotangents     Jᵀ(x + ε w) ȳ                tangent: of x; J w: of ȳ
//! vjp of Jvp, (ȳ, v) for results, tangents    Jᵀ(x + ε ẋ) (v + ε ȳ)        value: of ẋ; tangent: of x
//! ```
//!
//! The first holds because second derivatives are symmetric.

mod erased;
mod jvp;
mod residuals;
mod vjp;

use t4a_diff::{Array, Dual, Kept, Meta, Operation, Outcome, Reverse, Value};

pub use jvp::Jvp;
pub use vjp::Vjp;

use residuals::{Residuals, residuals};

use crate::{AnyOperation, OperationError};

/// Maximum order of nested derivatives. The time doubles with each order.
pub const MAX_ORDER: usize = 8;

fn refused(op: &AnyOperation, reason: impl Into<String>) -> OperationError {
    OperationError::Derivative { op: op.name(), reason: reason.into() }
}

/// Order of a derivative; 0 for other operations.
fn order(op: &AnyOperation) -> usize {
    match op {
        AnyOperation::Jvp(Jvp { op, .. }) | AnyOperation::Vjp(Vjp { op, .. }) => 1 + order(op),
        _ => 0,
    }
}

/// Checks that the operation can be differentiated within the maximum order.
fn differentiable(op: AnyOperation) -> Result<Box<AnyOperation>, OperationError> {
    match order(&op) {
        MAX_ORDER.. => Err(refused(&op, format!("its derivative has an order above {MAX_ORDER}"))),
        _ => Ok(Box::new(op)),
    }
}

/// Checks that there is one flag for each operand or result.
fn one_each(
    op: &AnyOperation,
    flags: &[bool],
    count: Option<usize>,
    what: &str,
) -> Result<(), OperationError> {
    match count.filter(|&count| count != flags.len()) {
        None => Ok(()),
        Some(count) => Err(refused(op, format!("{} flags for {count} {what}", flags.len()))),
    }
}

/// Splits the inputs of a derivative into the operands of the operation and `count` further arrays.
fn split<'a>(
    op: &AnyOperation,
    inputs: &'a [Meta],
    own: usize,
    count: usize,
    what: &str,
) -> Result<(&'a [Meta], &'a [Meta]), OperationError> {
    match inputs.len() == own + count {
        true => Ok(inputs.split_at(own)),
        false => {
            let given = inputs.len();
            Err(refused(op, format!("{own} operands and {count} {what}, given {given} arrays")))
        }
    }
}

/// Checks that a tangent or cotangent has the shape and dtype of its array.
fn fits(op: &AnyOperation, what: &str, of: &Meta, given: &Meta) -> Result<(), OperationError> {
    match of == given {
        true => Ok(()),
        false => {
            let text = |x: &Meta| format!("{} {:?}", x.dtype.name(), x.shape);
            Err(refused(op, format!("the {what} of {} is {}", text(of), text(given))))
        }
    }
}

/// Indices of the true elements.
fn places(mask: &[bool]) -> impl Iterator<Item = usize> + '_ {
    mask.iter().enumerate().filter(|(_, holds)| **holds).map(|(i, _)| i)
}

/// Distributes arrays to the true positions of the mask; `None` elsewhere.
fn spread<T>(mask: &[bool], arrays: impl IntoIterator<Item = T>) -> Vec<Option<T>> {
    let mut arrays = arrays.into_iter();
    mask.iter().map(|&holds| if holds { arrays.next() } else { None }).collect()
}

/// Results of an operation, and the cotangents of its operands; `None` is zero.
type Reversed<A> = (Outcome<A>, Vec<Option<A>>);

/// Runs the forward pass and the vjp of an operation on these arrays.
fn reverse<A: Array>(
    op: &AnyOperation,
    inputs: &[Value<A>],
    cotangents: &[Option<A>],
    wanted: &[bool],
) -> Result<Reversed<A>, OperationError> {
    let out = A::apply(op, inputs, wanted)?;
    if !wanted.contains(&true) || cotangents.iter().all(Option::is_none) {
        return Ok((out, vec![None; wanted.len()]));
    }
    let cotangents = &numbers(cotangents, &out)[..];
    let kept = Kept::new(op.keep(wanted), inputs, &out);
    let hidden = vec![None; out.hidden.len()];
    let back = op.vjp(&Reverse { kept: &kept, cotangents, hidden: &hidden, wanted })?;
    let back = back.into_iter().chain(std::iter::repeat(None)).zip(wanted);
    let back = back.map(|(x, &wanted)| x.filter(|_| wanted)).collect();
    Ok((out, back))
}

/// Reshapes cotangents to the shapes of the results: the cotangent of a 0-d result may have shape `[1]`.
fn numbers<A: Array>(cotangents: &[Option<A>], out: &Outcome<A>) -> Vec<Option<A>> {
    let number = |(x, y): (&Option<A>, &A)| {
        let x = x.as_ref()?;
        Some(if y.shape().is_empty() { x.reshape(&[]) } else { x.clone() })
    };
    cotangents.iter().zip(&out.results).map(number).collect()
}

/// Dual number without a tangent.
fn constant<A: Array>(x: &A) -> Dual<A> {
    Dual::constant(x.clone())
}
