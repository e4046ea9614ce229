//! Reductions of erased tensors. Reduced axes keep size 1.

use super::AnyTensor;
use super::elementwise::unsupported;
use crate::arg_reduce::arg_reduce;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::fold::{All, Any, MaxAbs, Maximum, Mean, Minimum, Prod, Sum, SumSquares};
use crate::reduce::reduce;
use crate::with_dtype;

/// Rows: name, class, compute class (unsigned for integers if the sign is irrelevant), and fold.
macro_rules! reduce_methods {
    ($($(#[$doc:meta])* $name:ident: $class:ident as $kind:tt $typed:ident $fold:ident;)*) => {
        impl AnyTensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`Axis`](crate::TensorError::Axis) for axes out of range or repeated,
            /// `DTypeUnsupported`, and [`Shape`](crate::TensorError::Shape) if nothing is reduced
            /// by an operation that has no value for it.
            pub fn $name(&self, axes: &[usize]) -> Result<Self> {
                let dtype = reduce_methods!(@dtype $typed self.dtype());
                with_dtype!(dtype, T in $kind => {
                    let out: Self = reduce($fold, self.$typed::<T>()?, axes)?.into();
                    Ok(out.with_sign_of(self.dtype()))
                }, else => Err(unsupported(stringify!($name), self.dtype(), stringify!($class))))
            }
        )*}
    };
    (@dtype typed $dtype:expr) => { $dtype };
    (@dtype typed_modular $dtype:expr) => { $dtype.modular() };
}

reduce_methods! {
    /// `Σ xᵢ`; 16-bit floats are summed in `f32`, integers wrap.
    sum: numeric as modular typed_modular Sum;
    /// `Π xᵢ`.
    prod: numeric as modular typed_modular Prod;
    /// The maximum; NaN if an element is NaN.
    max: real as real typed Maximum;
    /// The minimum; NaN if an element is NaN.
    min: real as real typed Minimum;
    /// The maximum of `|xᵢ|`.
    max_abs: real as real typed MaxAbs;
    /// `Σ |xᵢ|²`, real also for complex tensors.
    sum_squares: field as field typed SumSquares;
    /// True if some element is nonzero.
    any: all as [float narrow unsigned truth complex] typed_modular Any;
    /// True if all elements are nonzero.
    all: all as [float narrow unsigned truth complex] typed_modular All;
}

impl AnyTensor {
    /// `Σ xᵢ / n`; integers truncate, and those of fewer than 64 bits are summed in 64.
    ///
    /// # Errors
    /// As [`AnyTensor::max`].
    pub fn mean(&self, axes: &[usize]) -> Result<Self> {
        use DType::{I8, I16, I32, I64, U8, U16, U32};
        if matches!(self.dtype(), I8 | I16 | I32 | U8 | U16 | U32) {
            // Neither the sum nor the number of elements need fit.
            return self.clone().cast(I64)?.mean(axes)?.cast(self.dtype());
        }
        with_dtype!(self.dtype(), T in real => {
            Ok(reduce(Mean, self.typed::<T>()?, axes)?.into())
        }, else => Err(unsupported("mean", self.dtype(), "real")))
    }

    /// The maxima along an axis and the first index of each (`i64`).
    ///
    /// # Errors
    /// As [`AnyTensor::max`].
    pub fn max_with_index(&self, axis: usize) -> Result<(Self, Self)> {
        with_dtype!(self.dtype(), T in real => {
            let (values, indices) = arg_reduce(Maximum, self.typed::<T>()?, axis)?;
            Ok((values.into(), indices.into()))
        }, else => Err(unsupported("max_with_index", self.dtype(), "real")))
    }

    /// The minima along an axis and the first index of each (`i64`).
    ///
    /// # Errors
    /// As [`AnyTensor::min`].
    pub fn min_with_index(&self, axis: usize) -> Result<(Self, Self)> {
        with_dtype!(self.dtype(), T in real => {
            let (values, indices) = arg_reduce(Minimum, self.typed::<T>()?, axis)?;
            Ok((values.into(), indices.into()))
        }, else => Err(unsupported("min_with_index", self.dtype(), "real")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::Number;
    use crate::dtype::DType;
    use crate::route::{Path, Reason};

    #[test]
    fn means_of_narrow_integers_do_not_wrap() {
        let mean = |x: AnyTensor| x.mean(&[0]).unwrap().cast(DType::I64).unwrap();
        let read = |x: AnyTensor| x.typed::<i64>().unwrap().to_vec().unwrap()[0];
        for (dtype, n, value, want) in [
            (DType::I8, 256, 1, 1),
            (DType::I8, 128, 100, 100),
            (DType::U8, 2, 200, 200),
            (DType::I32, 3, 2_000_000_000, 2_000_000_000),
            (DType::I64, 3, -5, -5),
        ] {
            let x = AnyTensor::full(&[n], Number::Int(value), dtype).unwrap();
            assert_eq!(read(mean(x)), want, "{dtype} {n}");
        }
    }

    #[test]
    fn sums_of_16_bit_floats_are_promoted_and_others_are_not() {
        for dtype in DType::ALL {
            let Ok(x) = AnyTensor::full(&[30, 30], Number::Int(1), dtype) else { continue };
            let promoted = dtype != dtype.accumulator();
            let why = if promoted { Reason::DtypePromoted } else { Reason::Native };
            let sums = [x.sum(&[0]), x.prod(&[1]), x.mean(&[0, 1]), x.cumsum(0), x.matmul(&x)];
            for y in sums.into_iter().flatten() {
                assert_eq!(y.route().reason, why, "{dtype}");
            }
            for y in [x.max(&[0]), x.cummax(1), x.any(&[0])].into_iter().flatten() {
                assert_eq!((y.route().path, y.route().reason), (Path::LoopReduce, Reason::Native));
            }
            if dtype.is_float() {
                let last = x.softmax(1).unwrap();
                let routes = [x.clone().gelu().unwrap().route().reason, last.route().reason];
                assert_eq!(routes, [why; 2], "{dtype}");
                assert_eq!(last.dtype(), dtype);
            }
        }
    }
}
