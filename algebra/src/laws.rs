//! Checks of the axioms on samples, for built-in and user-defined semirings.
//!
//! A check takes elements and an equivalence relation, `PartialEq::eq` or a tolerance, tests every combination and
//! returns the first violated law with the elements that violate it. Samples should include 0, 1, values that tie, and
//! extremes.

use std::fmt::Debug;

use crate::message::short;
use crate::{Cancellative, Extended, Numeric, Scalar, Selective, Semiring, UncheckedSemiring};

/// A violated law, and the elements that violate it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{law} fails for {elements:?}: {left:?} is not {right:?}",
    elements = short(.elements), left = short(.left), right = short(.right)
)]
pub struct Violation<T: Debug> {
    /// The law, as a formula.
    pub law: &'static str,
    /// a, b, c in the order of the formula.
    pub elements: Vec<T>,
    /// Value of the left side.
    pub left: T,
    /// Value of the right side.
    pub right: T,
}

/// Checks that `S` is a semiring on `elements`: associativity, commutativity of ⊕, identities, distributivity on both
/// sides, annihilation, and consistency of `mul_add`.
///
/// Cost: n³ for n elements.
///
/// # Errors
/// The first violation found.
pub fn semiring<S: Semiring<T>, T: Scalar>(
    elements: &[T],
    same: impl Fn(&T, &T) -> bool,
) -> Result<(), Violation<T>> {
    let law = |law: &'static str, of: &[T], left: T, right: T| {
        if same(&left, &right) {
            return Ok(());
        }
        Err(Violation { law, elements: of.to_vec(), left, right })
    };
    let (add, mul) = (S::add, S::mul);
    for &a in elements {
        law("a ⊕ 0 = a", &[a], add(a, S::ZERO), a)?;
        law("0 ⊕ a = a", &[a], add(S::ZERO, a), a)?;
        law("a ⊗ 1 = a", &[a], mul(a, S::ONE), a)?;
        law("1 ⊗ a = a", &[a], mul(S::ONE, a), a)?;
        law("a ⊗ 0 = 0", &[a], mul(a, S::ZERO), S::ZERO)?;
        law("0 ⊗ a = 0", &[a], mul(S::ZERO, a), S::ZERO)?;
        for &b in elements {
            law("a ⊕ b = b ⊕ a", &[a, b], add(a, b), add(b, a))?;
            for &c in elements {
                let of = [a, b, c];
                law("a ⊕ (b ⊕ c) = (a ⊕ b) ⊕ c", &of, add(a, add(b, c)), add(add(a, b), c))?;
                law("a ⊗ (b ⊗ c) = (a ⊗ b) ⊗ c", &of, mul(a, mul(b, c)), mul(mul(a, b), c))?;
                let (left, right) = (mul(a, add(b, c)), add(mul(a, b), mul(a, c)));
                law("a ⊗ (b ⊕ c) = (a ⊗ b) ⊕ (a ⊗ c)", &of, left, right)?;
                let (left, right) = (mul(add(a, b), c), add(mul(a, c), mul(b, c)));
                law("(a ⊕ b) ⊗ c = (a ⊗ c) ⊕ (b ⊗ c)", &of, left, right)?;
                law("mul_add(a, b, c) = c ⊕ (a ⊗ b)", &of, S::mul_add(a, b, c), add(c, mul(a, b)))?;
            }
        }
    }
    Ok(())
}

/// Checks that ⊕ returns the operand that [`Selective::better`] prefers, that this is a strict weak order with 0 as its
/// least element, and that ⊗ preserves it.
///
/// Cost: n³ for n elements.
///
/// # Errors
/// The first violation found.
pub fn selective<S: Selective<T>, T: Scalar>(
    elements: &[T],
    same: impl Fn(&T, &T) -> bool,
) -> Result<(), Violation<T>> {
    let fails = |law: &'static str, of: &[T], left: T, right: T| {
        Err(Violation { law, elements: of.to_vec(), left, right })
    };
    let level = |a: T, b: T| !S::better(a, b) && !S::better(b, a);
    for &a in elements {
        if S::better(a, a) {
            return fails("no a is better than itself", &[a], a, a);
        }
        if S::better(S::ZERO, a) {
            return fails("0 is better than no a", &[a], S::ZERO, a);
        }
        if level(a, S::ZERO) && !same(&a, &S::ZERO) {
            return fails("a not better than 0 is 0", &[a], a, S::ZERO);
        }
        for &b in elements {
            let sum = S::add(a, b);
            let pick = if S::better(b, a) { b } else { a };
            if !same(&sum, &pick) {
                return fails("a ⊕ b is the better of a and b", &[a, b], sum, pick);
            }
            if S::better(a, b) && S::better(b, a) {
                return fails("a better than b excludes b better than a", &[a, b], a, b);
            }
            for &c in elements {
                let of = [a, b, c];
                if S::better(a, b) && S::better(b, c) && !S::better(a, c) {
                    return fails("a better than b better than c is better than c", &of, a, c);
                }
                if level(a, b) && level(b, c) && !level(a, c) {
                    return fails("a level with b level with c is level with c", &of, a, c);
                }
                let (left, right) = (S::mul(a, c), S::mul(b, c));
                if S::better(a, b) && S::better(right, left) {
                    return fails("a better than b: b ⊗ c not better than a ⊗ c", &of, left, right);
                }
                let (left, right) = (S::mul(c, a), S::mul(c, b));
                if S::better(a, b) && S::better(right, left) {
                    return fails("a better than b: c ⊗ b not better than c ⊗ a", &of, left, right);
                }
            }
        }
    }
    Ok(())
}

/// Checks that ⊗ by elements for which [`Cancellative::cancels`] preserves strict preference, and that 0 does not
/// cancel.
///
/// Cost: n³ for n elements.
///
/// # Errors
/// The first violation found.
pub fn cancellative<S: Cancellative<T>, T: Scalar>(elements: &[T]) -> Result<(), Violation<T>> {
    let fails = |law: &'static str, of: &[T], left: T, right: T| {
        Err(Violation { law, elements: of.to_vec(), left, right })
    };
    if S::cancels(S::ZERO) {
        return fails("0 does not cancel", &[S::ZERO], S::ZERO, S::ZERO);
    }
    for &x in elements.iter().filter(|&&x| S::cancels(x)) {
        for &a in elements {
            for &b in elements.iter().filter(|&&b| S::better(a, b)) {
                let of = [a, b, x];
                let (left, right) = (S::mul(a, x), S::mul(b, x));
                if !S::better(left, right) {
                    return fails("a better than b: a ⊗ x better than b ⊗ x", &of, left, right);
                }
                let (left, right) = (S::mul(x, a), S::mul(x, b));
                if !S::better(left, right) {
                    return fails("a better than b: x ⊗ a better than x ⊗ b", &of, left, right);
                }
            }
        }
    }
    Ok(())
}

/// Checks that the unchecked arithmetic agrees with the semiring on elements that fit: 0, sums of one and of two terms,
/// their order, and 0 as a factor.
///
/// Cost: n⁴ for n elements.
///
/// # Errors
/// The first violation found.
pub fn unchecked<S: UncheckedSemiring<T>, T: Extended>(
    elements: &[T],
    same: impl Fn(&T, &T) -> bool,
) -> Result<(), Violation<T>> {
    let law = |law: &'static str, of: &[T], left: T, right: T| {
        if same(&left, &right) {
            return Ok(());
        }
        Err(Violation { law, elements: of.to_vec(), left, right })
    };
    let better = |x: T::Acc, y: T::Acc| if S::unchecked_better(x, y) { x } else { y };
    let zero = S::encode(S::ZERO);
    law("decode(encode(0)) = 0", &[], S::decode(zero), S::ZERO)?;
    let fit: Vec<T> = elements.iter().copied().filter(|&x| S::fits(x)).collect();
    for &a in &fit {
        for &b in &fit {
            let term = S::unchecked_mul(S::encode(a), S::encode(b));
            let want = S::mul(a, b);
            law("0 ⊕ (a ⊗ b)", &[a, b], S::decode(better(term, zero)), want)?;
            let fused = S::fused_mul(S::encode(a), S::encode(b), <T::Acc as Numeric>::ONE);
            law("a ⊗ b fused", &[a, b], S::decode(better(fused, zero)), want)?;
            for &c in &fit {
                for &d in &fit {
                    let other = S::unchecked_mul(S::encode(c), S::encode(d));
                    let sum = S::decode(better(other, better(term, zero)));
                    law("(a ⊗ b) ⊕ (c ⊗ d)", &[a, b, c, d], sum, S::add(want, S::mul(c, d)))?;
                }
            }
        }
    }
    Ok(())
}
