//! Fusion of elementwise instructions.
//!
//! ```text
//! group     selection of the instructions to fuse: equal shapes, no cyclic dependencies
//! plan      the instructions of a group over registers
//! chain     cheap instructions, ordered so that each uses the result of the previous one
//! machine   interpreter of a chain with an accumulator in vector registers
//! code      machine code for all cheap instructions, with values in vector registers: the feature `jit`
//! kernel    one of the other instructions over a block, by the engine's kernels
//! run       blocks of rows that fit in the L1 cache, on all threads; source, bank, links: operands in memory,
//!           registers of a block, chains over both
//! ```
//!
//! All values of a group have the shape `[…, n]`, or `[…, 1]`: one scalar per row. Sums and means over rows reduce the
//! first shape to the second, so a normalisation is one pass over its operand; blocks then hold whole rows. Every step
//! computes the same as the engine's method, with the same kernel.

mod bank;
mod chain;
#[cfg(all(feature = "jit", target_arch = "x86_64"))]
mod code;
mod group;
pub(crate) mod kernel;
mod links;
mod machine;
mod plan;
mod run;
mod source;

pub(crate) use group::fuse;
pub(crate) use run::{engine, is_engine, is_repeated, is_row_major, same, squeezed};

/// Unary elementwise functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Neg,
    Abs,
    Exp,
    Ln,
    Ln1p,
    Sqrt,
    Recip,
    Square,
    Cube,
    PowHalf,
    Sin,
    Cos,
    Tan,
    Tanh,
    Sinh,
    Cosh,
    Atan,
    Erf,
    Floor,
    Ceil,
    Round,
    Trunc,
    Sign,
    Relu,
    Sigmoid,
    Gelu,
    LogSigmoid,
}

/// Binary elementwise functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Pow,
    Atan2,
    ReluBackward,
    SigmoidBackward,
    GeluBackward,
    LogSigmoidBackward,
}

/// Comparison predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

impl Compare {
    /// Evaluates the predicate `x ∘ y`.
    pub(crate) fn holds<T: PartialOrd>(self, x: T, y: T) -> bool {
        match self {
            Self::Equal => x == y,
            Self::NotEqual => x != y,
            Self::Greater => x > y,
            Self::GreaterEqual => x >= y,
            Self::Less => x < y,
            Self::LessEqual => x <= y,
        }
    }
}

/// Reductions along an axis, which is kept with size 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReduceOp {
    Sum,
    Mean,
}

/// Elementwise function of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Elementwise {
    /// `f(x)`.
    Unary(UnaryOp),
    /// `f(x, y)`.
    Binary(BinaryOp),
    /// `f(x, c)`.
    Scalar(BinaryOp, f64),
    /// `min(max(x, low), high)`.
    Clamp(f64, f64),
    /// `x` where positive, else `c x`.
    Leaky(f64),
    /// `x ∘ y`, a boolean.
    Compare(Compare),
    /// `x ∘ c`, a boolean.
    CompareScalar(Compare, f64),
    /// `z` where `y` holds, else `x`.
    Select,
    /// `c` where `y` holds, else `x`.
    Fill(f64),
    /// 1 where `x` holds, else 0.
    Indicator,
    /// Reduction along the given axis; fused only if it is the last one.
    Reduce(ReduceOp, usize),
}

impl Elementwise {
    /// `xᵖ` as the engine computes it: small integer powers and square roots need no logarithm.
    pub(crate) fn power(p: f64) -> Option<Self> {
        Some(Self::Unary(match p {
            2.0 => UnaryOp::Square,
            3.0 => UnaryOp::Cube,
            0.5 => UnaryOp::PowHalf,
            -1.0 => UnaryOp::Recip,
            // Burn decomposes these powers into other methods.
            0.0 | 1.0 | -2.0 => return None,
            p => return Some(Self::Scalar(BinaryOp::Pow, p)),
        }))
    }

    /// True if operand `at` is boolean.
    pub(crate) fn takes_flag(self, at: usize) -> bool {
        match self {
            Self::Indicator => true,
            Self::Select | Self::Fill(_) => at == 1,
            _ => false,
        }
    }

    /// True if the result is boolean.
    pub(crate) fn gives_flag(self) -> bool {
        matches!(self, Self::Compare(_) | Self::CompareScalar(..))
    }

    /// Work per element, in units of one addition.
    pub(crate) fn cost(self) -> usize {
        match self {
            Self::Unary(f) => kernel::unary_cost(f),
            Self::Binary(f) | Self::Scalar(f, _) => kernel::binary_cost(f),
            _ => 1,
        }
    }
}
