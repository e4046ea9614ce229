//! What the microkernel computes with: the arithmetic on packed elements.

use std::marker::PhantomData;

use crate::{Scalar, Selective, Semiring};

/// How the loops of a tile are written, which decides what the compiler makes of them (seen in the
/// assembly of rustc 1.95, for every element type).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Loops over rows and columns.
    Loops,
    /// Rows unrolled by hand: maxima of floats would be gathered across rows otherwise.
    Unrolled,
}

/// Arithmetic on packed elements, which may be other values than those in memory.
pub(super) trait Lanes<T: Scalar>: 'static {
    /// Packed elements and accumulators.
    type Packed: Scalar;
    /// Whether the factors may be exchanged.
    const COMMUTES: bool;
    /// How to write the tile.
    const FORM: Form;
    /// Start of every sum, and what fills lanes past the edge.
    fn zero() -> Self::Packed;
    /// The packed form of an element.
    fn encode(x: T) -> Self::Packed;
    /// The element of a packed result.
    fn decode(x: Self::Packed) -> T;
    /// A constant that products need in a register.
    type Unit: Copy;
    /// That constant, made once per tile.
    fn unit() -> Self::Unit;
    /// `c ⊕ (a ⊗ b)`; the machine has fused multiply-add if `FMA`.
    fn mul_add<const FMA: bool>(
        a: Self::Packed,
        b: Self::Packed,
        c: Self::Packed,
        unit: Self::Unit,
    ) -> Self::Packed;
}

/// [`Lanes`] whose ⊕ picks one of its operands.
pub(super) trait ArgLanes<T: Scalar>: Lanes<T> {
    /// Whether terms are cheap to compute a second time.
    const CHEAP: bool;
    /// `a ⊗ b`, as in [`Lanes::mul_add`].
    fn mul<const FMA: bool>(a: Self::Packed, b: Self::Packed, unit: Self::Unit) -> Self::Packed;
    /// Whether `a` replaces `b`.
    fn better(a: Self::Packed, b: Self::Packed) -> bool;
}

/// A semiring's own arithmetic.
pub(super) struct Plain<S>(PhantomData<S>);

impl<T: Scalar, S: Semiring<T>> Lanes<T> for Plain<S> {
    type Packed = T;
    const COMMUTES: bool = false;
    const FORM: Form = Form::Loops;
    #[inline(always)]
    fn zero() -> T {
        S::ZERO
    }
    #[inline(always)]
    fn encode(x: T) -> T {
        x
    }
    #[inline(always)]
    fn decode(x: T) -> T {
        x
    }
    type Unit = ();
    #[inline(always)]
    fn unit() {}
    #[inline(always)]
    fn mul_add<const FMA: bool>(a: T, b: T, c: T, (): ()) -> T {
        S::mul_add(a, b, c)
    }
}

impl<T: Scalar, S: Selective<T>> ArgLanes<T> for Plain<S> {
    const CHEAP: bool = false;
    #[inline(always)]
    fn mul<const FMA: bool>(a: T, b: T, (): ()) -> T {
        S::mul(a, b)
    }
    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        S::better(a, b)
    }
}
