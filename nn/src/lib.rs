//! Operations of neural networks as values: softmax, norms, attention and cross-entropy. Each has its shapes, its
//! definition and its derivative in the array operations of `t4a-diff`, and one fused kernel of the engine for either
//! pass. Burn users call `burn_t4a::ext::nn`.
//!
//! ```
//! use t4a_diff::{Operation, Value, check};
//! use t4a_nn::Softmax;
//!
//! let x = Value::Float(check::array(&[1, 2], |_| 3.0));
//! let y = Softmax { axis: 1 }.forward(&[x], &[false])?;
//! assert_eq!(check::elements(&y.results[0]), [0.5, 0.5]);
//! # Ok::<(), t4a_tensor::TensorError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | softmax and its logarithm along an axis | [`Softmax`], [`LogSoftmax`] |
//! | layer norm, root mean square norm | [`LayerNorm`], [`RmsNorm`] |
//! | scaled dot-product attention: masks, causal, bias | [`Attention`] |
//! | cross-entropy of scores: ignored classes, smoothing, weights | [`CrossEntropy`] |

// softmax         Softmax, LogSoftmax
// norm            LayerNorm, RmsNorm
// attention       Attention
// cross_entropy   CrossEntropy

#![forbid(unsafe_code)]

/// Equality and hash of values with floats, by their bits.
macro_rules! by_bits {
    ($($value:ty: |$x:ident| $key:expr;)*) => {$(
        impl $value {
            fn key(&self) -> impl Eq + std::hash::Hash + use<> {
                let $x = self;
                $key
            }
        }
        impl PartialEq for $value {
            fn eq(&self, other: &Self) -> bool {
                self.key() == other.key()
            }
        }
        impl Eq for $value {}
        impl std::hash::Hash for $value {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.key().hash(state);
            }
        }
    )*};
}

mod attention;
mod cross_entropy;
mod norm;
mod softmax;
#[cfg(test)]
mod tests;

pub use attention::Attention;
pub use cross_entropy::CrossEntropy;
pub use norm::{LayerNorm, RmsNorm};
pub use softmax::{LogSoftmax, Softmax};
pub use t4a_tensor::nn::attention::AttentionOptions;

use t4a_diff::{Eager, Kept, Meta, Value};
use t4a_tensor::{AnyTensor, Result, TensorError};

/// The engine tensor of an optional operand.
fn given(inputs: &[Value<Eager>], i: usize) -> Result<Option<&AnyTensor>> {
    inputs.get(i).map(tensor).transpose()
}

/// The engine tensor of a kept operand.
fn kept_tensor(kept: &Kept<Eager>, i: usize) -> Result<&AnyTensor> {
    tensor(kept.input(i))
}

fn tensor(value: &Value<Eager>) -> Result<&AnyTensor> {
    match value {
        Value::Float(x) => x.tensor(),
        Value::Integers(x) => x.tensor(),
        Value::Flags(x) => x.tensor(),
    }
}

/// Checks the number of operands.
fn operands<'a, const N: usize>(op: &'static str, inputs: &'a [Meta]) -> Result<&'a [Meta; N]> {
    inputs.try_into().map_err(|_| {
        let message = format!("required {N} operands, given {}", inputs.len());
        TensorError::value(op, message)
    })
}

/// Checks that operands are floats of one dtype.
fn same_dtype(op: &'static str, inputs: &[&Meta]) -> Result<()> {
    let first = inputs[0].dtype;
    match inputs.iter().find(|x| x.dtype != first) {
        Some(other) => Err(TensorError::DTypeMismatch { op, lhs: first, rhs: other.dtype }),
        None => Ok(()),
    }
}
