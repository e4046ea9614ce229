//! Running sums, products, maxima and minima of erased tensors.

use super::AnyTensor;
use crate::error::{Result, TensorError};
use crate::{cumulative, with_dtype};

macro_rules! running {
    ($($(#[$doc:meta])* $name:ident $class:ident $expected:literal;)*) => {
        impl AnyTensor {
            $($(#[$doc])*
            ///
            /// # Errors
            /// As there; [`TensorError::DTypeUnsupported`].
            pub fn $name(&self, axis: usize) -> Result<AnyTensor> {
                let (op, dtype) = (stringify!($name), self.dtype);
                with_dtype!(dtype, T in $class => {
                    cumulative::$name(self.typed::<T>()?, axis).map(AnyTensor::from)
                }, else => Err(TensorError::DTypeUnsupported { op, dtype, expected: $expected }))
            })*
        }
    };
}

running! {
    /// Running sums along an axis: [`cumulative::cumsum`].
    cumsum numeric "a number";
    /// Running products along an axis: [`cumulative::cumprod`].
    cumprod numeric "a number";
    /// Running maxima along an axis: [`cumulative::cummax`].
    cummax real "a real number";
    /// Running minima along an axis: [`cumulative::cummin`].
    cummin real "a real number";
}
