//! Arithmetic of the microkernel on packed elements.

use std::marker::PhantomData;

use crate::{Scalar, Selective, Semiring};

/// Loop structure of a tile, chosen by the assembly that the compiler generates for every element type (rustc 1.95).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TileLoop {
    /// Loops over rows and columns.
    Loops,
    /// Rows unrolled by macro; with loops, maxima of floats would be gathered across rows.
    Unrolled,
}

/// Arithmetic on packed elements, whose values may be encoded differently from memory.
pub(super) trait PackedArithmetic<T: Scalar>: 'static {
    /// Packed elements and accumulators.
    type Packed: Scalar;
    /// True if ⊗ commutes.
    const COMMUTES: bool;
    /// Loop structure of the tile.
    const FORM: TileLoop;
    /// Initial value of every sum, and fill value of lanes past the edge.
    fn zero() -> Self::Packed;
    /// Encodes an element for packing.
    fn encode(x: T) -> Self::Packed;
    /// Decodes a packed result.
    fn decode(x: Self::Packed) -> T;
    /// Type of a constant that products keep in a register.
    type Unit: Copy;
    /// The constant, computed once per tile.
    fn unit() -> Self::Unit;
    /// `c ⊕ (a ⊗ b)`; with `FMA` the instruction set has fused multiply-add.
    fn mul_add<const FMA: bool>(
        a: Self::Packed,
        b: Self::Packed,
        c: Self::Packed,
        unit: Self::Unit,
    ) -> Self::Packed;
}

/// [`PackedArithmetic`] of a selective semiring: ⊕ returns one of its operands.
pub(super) trait PackedArgmax<T: Scalar>: PackedArithmetic<T> {
    /// True if recomputing a term is cheap.
    const CHEAP: bool;
    /// `a ⊗ b`, as in [`PackedArithmetic::mul_add`].
    fn mul<const FMA: bool>(a: Self::Packed, b: Self::Packed, unit: Self::Unit) -> Self::Packed;
    /// True if `a` replaces `b` in a sum.
    fn better(a: Self::Packed, b: Self::Packed) -> bool;
}

/// A semiring's own arithmetic.
pub(super) struct Plain<S>(PhantomData<S>);

impl<T: Scalar, S: Semiring<T>> PackedArithmetic<T> for Plain<S> {
    type Packed = T;
    const COMMUTES: bool = false;
    const FORM: TileLoop = TileLoop::Loops;
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

impl<T: Scalar, S: Selective<T>> PackedArgmax<T> for Plain<S> {
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
