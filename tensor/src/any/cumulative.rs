//! Running sums, products, maxima and minima of erased tensors.

use super::AnyTensor;
use crate::error::{Result, TensorError};
use crate::{cumulative, with_dtype};

macro_rules! running {
    ($($(#[$doc:meta])* $name:ident $typed:ident $class:ident $expected:literal;)*) => {
        impl AnyTensor {
            $($(#[$doc])*
            ///
            /// # Errors
            /// As there; [`TensorError::DTypeUnsupported`].
            pub fn $name(&self, axis: usize) -> Result<AnyTensor> {
                let (op, dtype) = (stringify!($name), self.dtype);
                with_dtype!(running!(@dtype $typed dtype), T in $class => {
                    let out = AnyTensor::from(cumulative::$name(self.$typed::<T>()?, axis)?);
                    Ok(out.with_sign_of(dtype))
                }, else => Err(TensorError::DTypeUnsupported { op, dtype, expected: $expected }))
            })*
        }
    };
    (@dtype typed $dtype:expr) => { $dtype };
    (@dtype typed_modular $dtype:expr) => { $dtype.modular() };
}

running! {
    /// Running sums along an axis: [`cumulative::cumsum`].
    cumsum typed_modular modular "a number";
    /// Running products along an axis: [`cumulative::cumprod`].
    cumprod typed_modular modular "a number";
    /// Running maxima along an axis: [`cumulative::cummax`].
    cummax typed real "a real number";
    /// Running minima along an axis: [`cumulative::cummin`].
    cummin typed real "a real number";
}
