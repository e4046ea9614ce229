//! Elementwise instructions that run together.
//!
//! ```text
//! group     which instructions become one: same elements, no way around
//! plan      the instructions of a group over registers
//! chain     light ones in an order in which each takes the result of the one before
//! machine   a chain over an accumulator that stays in vector registers
//! kernel    one of the others over a block, by the engine's own kernels
//! run       blocks of rows that stay in the first-level cache, on all threads; source, bank, links: the operands
//!           in memory, the registers of a block, chains over both
//! ```
//!
//! All values of a group have the shape `[…, n]`, or `[…, 1]`: one number per row. Sums and means over
//! rows of the first kind are numbers of the second, so a normalisation is one pass over its operand: a
//! block holds whole rows then. Every step computes what the engine's method computes, by the same
//! kernel.

mod bank;
mod chain;
mod group;
pub(crate) mod kernel;
mod links;
mod machine;
mod plan;
mod run;
mod source;

pub(crate) use group::fuse;
pub(crate) use run::{engine, is_engine, same, squeezed};

/// Functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
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

/// Functions of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
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

/// Comparisons of two numbers.
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
    /// Whether `x ∘ y`.
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

/// Reductions along an axis, which stays with size 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Mean,
}

/// What an instruction computes, element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Elementwise {
    /// `f(x)`.
    Unary(Unary),
    /// `f(x, y)`.
    Binary(Binary),
    /// `f(x, c)`.
    Scalar(Binary, f64),
    /// `min(max(x, low), high)`.
    Clamp(f64, f64),
    /// `x` where positive, else `c x`.
    Leaky(f64),
    /// Whether `x ∘ y`.
    Compare(Compare),
    /// Whether `x ∘ c`.
    CompareScalar(Compare, f64),
    /// `z` where `y` holds, else `x`.
    Select,
    /// `c` where `y` holds, else `x`.
    Fill(f64),
    /// 1 where `x` holds, else 0.
    Indicator,
    /// Along the axis, if it is the last one.
    Reduce(Reduction, usize),
}

impl Elementwise {
    /// `xᵖ` as the engine computes it: small powers take no logarithm.
    pub(crate) fn power(p: f64) -> Option<Self> {
        Some(Self::Unary(match p {
            2.0 => Unary::Square,
            3.0 => Unary::Cube,
            0.5 => Unary::PowHalf,
            -1.0 => Unary::Recip,
            // Others that Burn takes apart.
            0.0 | 1.0 | -2.0 => return None,
            p => return Some(Self::Scalar(Binary::Pow, p)),
        }))
    }

    /// Which of its operands are truth values.
    pub(crate) fn takes_flag(self, at: usize) -> bool {
        match self {
            Self::Indicator => true,
            Self::Select | Self::Fill(_) => at == 1,
            _ => false,
        }
    }

    /// Whether its result is a truth value.
    pub(crate) fn gives_flag(self) -> bool {
        matches!(self, Self::Compare(_) | Self::CompareScalar(..))
    }

    /// Work per element in additions.
    pub(crate) fn cost(self) -> usize {
        match self {
            Self::Unary(f) => kernel::unary_cost(f),
            Self::Binary(f) | Self::Scalar(f, _) => kernel::binary_cost(f),
            _ => 1,
        }
    }
}
