//! (or, and).

use crate::{Cancellative, Selective, Semiring};

/// `a ⊕ b = a ∨ b`, `a ⊗ b = a ∧ b`, with false and true: reachability, satisfiability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Boolean;

impl Semiring<bool> for Boolean {
    const ZERO: bool = false;
    const ONE: bool = true;

    #[inline(always)]
    fn add(a: bool, b: bool) -> bool {
        a | b
    }

    #[inline(always)]
    fn mul(a: bool, b: bool) -> bool {
        a & b
    }
}

impl Selective<bool> for Boolean {
    #[inline(always)]
    fn better(a: bool, b: bool) -> bool {
        a & !b
    }
}

impl Cancellative<bool> for Boolean {
    #[inline(always)]
    fn cancels(x: bool) -> bool {
        x
    }
}
