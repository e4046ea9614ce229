//! Run-time element types: their table, the properties derived from it, and the only macro that matches on a dtype.
//!
//! ```text
//! kind       elements           what the kinds have in common
//! float      f64 f32            computed in themselves
//! narrow     f16 bf16           floats computed in `Numeric::Acc`, one rounding per result
//! signed     i64 i32 i16 i8
//! unsigned   u64 u32 u16 u8
//! truth      bool               one byte of 0 or 1
//! complex    c64 c32            two floats side by side
//! ```
//!
//! A new dtype needs a row of [`dtypes!`](crate::dtypes) and the classes of `t4a_algebra::scalar` for its element type.

use std::fmt;

use t4a_algebra::{Numeric, Scalar};

/// Element types that are not primitive in Rust, with the names used in the table.
pub mod scalars {
    pub use t4a_algebra::{bf16, c32, c64, f16};
}
use scalars::*;

/// The table of dtypes. `dtypes!(CLASS => [callback] { arguments })` expands to
/// `callback! { { arguments } TAG element, TAG element, … }` with the rows of a class, in the order of
/// [`DType::ALL`]; a list of kinds in brackets is a class as well.
///
/// ```
/// macro_rules! names {
///     ({} $($tag:ident $element:ident,)*) => { [$(stringify!($element)),*] };
/// }
/// assert_eq!(t4a_tensor::dtypes!(float => [names] {}), ["f64", "f32", "f16", "bf16"]);
/// assert_eq!(t4a_tensor::dtypes!([complex] => [names] {}), ["c64", "c32"]);
/// ```
#[macro_export]
macro_rules! dtypes {
    // Classes.
    (all => $($to:tt)*) => {
        $crate::dtypes! { [float narrow signed unsigned truth complex] => $($to)* }
    };
    (numeric => $($to:tt)*) => {
        $crate::dtypes! { [float narrow signed unsigned complex] => $($to)* }
    };
    (modular => $($to:tt)*) => {
        $crate::dtypes! { [float narrow unsigned complex] => $($to)* }
    };
    (ordered => $($to:tt)*) => { $crate::dtypes! { [float narrow signed unsigned truth] => $($to)* } };
    (real => $($to:tt)*) => { $crate::dtypes! { [float narrow signed unsigned] => $($to)* } };
    (primitive => $($to:tt)*) => { $crate::dtypes! { [float signed unsigned] => $($to)* } };
    (int => $($to:tt)*) => { $crate::dtypes! { [signed unsigned] => $($to)* } };
    (float => $($to:tt)*) => { $crate::dtypes! { [float narrow] => $($to)* } };
    (field => $($to:tt)*) => { $crate::dtypes! { [float complex] => $($to)* } };
    // Kinds.
    ([$($kind:ident)*] => $($to:tt)*) => { $crate::dtypes! { @ [$($kind)*] [] $($to)* } };
    (@ [float $($kind:ident)*] [$($row:tt)*] $($to:tt)*) => {
        $crate::dtypes! { @ [$($kind)*] [$($row)* F64 f64, F32 f32,] $($to)* }
    };
    (@ [narrow $($kind:ident)*] [$($row:tt)*] $($to:tt)*) => {
        $crate::dtypes! { @ [$($kind)*] [$($row)* F16 f16, BF16 bf16,] $($to)* }
    };
    (@ [signed $($kind:ident)*] [$($row:tt)*] $($to:tt)*) => {
        $crate::dtypes! { @ [$($kind)*] [$($row)* I64 i64, I32 i32, I16 i16, I8 i8,] $($to)* }
    };
    (@ [unsigned $($kind:ident)*] [$($row:tt)*] $($to:tt)*) => {
        $crate::dtypes! { @ [$($kind)*] [$($row)* U64 u64, U32 u32, U16 u16, U8 u8,] $($to)* }
    };
    (@ [truth $($kind:ident)*] [$($row:tt)*] $($to:tt)*) => {
        $crate::dtypes! { @ [$($kind)*] [$($row)* Bool bool,] $($to)* }
    };
    (@ [complex $($kind:ident)*] [$($row:tt)*] $($to:tt)*) => {
        $crate::dtypes! { @ [$($kind)*] [$($row)* C64 c64, C32 c32,] $($to)* }
    };
    (@ [] [$($row:tt)*] [$($callback:tt)*] $args:tt) => { $($callback)*! { $args $($row)* } };
}

macro_rules! enumerate {
    ({} $($tag:ident $element:ident,)*) => {
        /// Element type of an [`AnyTensor`](crate::AnyTensor).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum DType {
            $(#[doc = concat!("`", stringify!($element), "`.")] $tag,)*
        }

        impl DType {
            /// Number of dtypes.
            const COUNT: usize = [$(stringify!($tag)),*].len();

            /// Every dtype.
            pub const ALL: [DType; DType::COUNT] = [$(DType::$tag),*];

            /// Size of one element in bytes.
            pub const fn size(self) -> usize {
                match self {
                    $(DType::$tag => size_of::<$element>(),)*
                }
            }

            /// Alignment of one element in bytes.
            pub const fn align(self) -> usize {
                match self {
                    $(DType::$tag => align_of::<$element>(),)*
                }
            }

            /// Name of the element type, as in Rust.
            pub const fn name(self) -> &'static str {
                match self {
                    $(DType::$tag => stringify!($element),)*
                }
            }
        }

        $(impl sealed::Sealed for $element {}
        impl Element for $element {
            const DTYPE: DType = DType::$tag;
        })*
    };
}

dtypes!(all => [enumerate] {});

macro_rules! one_of {
    ({ $dtype:expr } $($tag:ident $element:ident,)*) => { matches!($dtype, $(DType::$tag)|*) };
}

impl DType {
    /// True for real floating-point types.
    pub const fn is_float(self) -> bool {
        dtypes!(float => [one_of] { self })
    }

    /// True for integer types.
    pub const fn is_int(self) -> bool {
        dtypes!(int => [one_of] { self })
    }

    /// True for complex types.
    pub const fn is_complex(self) -> bool {
        dtypes!([complex] => [one_of] { self })
    }

    /// The dtype whose arithmetic modulo 2ⁿ has the same bits: the unsigned type for integers, otherwise the dtype
    /// itself. Operations independent of the sign are computed in it and are compiled for half of the integer types
    /// (class `modular` of [`dtypes!`](crate::dtypes)).
    pub(crate) const fn modular(self) -> DType {
        match self {
            DType::I64 => DType::U64,
            DType::I32 => DType::U32,
            DType::I16 => DType::U16,
            DType::I8 => DType::U8,
            other => other,
        }
    }

    /// The accumulator type [`Numeric::Acc`] of this dtype: `F32` for 16-bit floats, else the dtype itself.
    pub const fn accumulator(self) -> DType {
        crate::with_dtype!(self, T in numeric => <<T as Numeric>::Acc as Element>::DTYPE, else => self)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A built-in element type: one that [`AnyTensor`](crate::AnyTensor) can hold.
pub trait Element: Scalar + sealed::Sealed {
    /// Its tag.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

/// Matches on a dtype once and runs the body with the type bound to a name.
///
/// `with_dtype!(dtype, T in CLASS => body, else => fallback)` where CLASS is one of
/// [`dtypes!`](crate::dtypes): `all`, `numeric`, `modular`, `ordered`, `real`, `float`, `int` or `field`; dtypes
/// outside of the class run the fallback.
///
/// ```
/// use t4a_tensor::{DType, with_dtype};
/// let size = with_dtype!(DType::F32, T in all => size_of::<T>(), else => unreachable!());
/// assert_eq!(size, 4);
/// ```
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $t:ident in $class:tt => $body:expr, else => $other:expr) => {
        $crate::dtypes!($class => [$crate::match_dtype] { $dtype, $t, $body, $other })
    };
}

/// The match of [`with_dtype!`](crate::with_dtype).
#[doc(hidden)]
#[macro_export]
macro_rules! match_dtype {
    (
        { $dtype:expr, $t:ident, $body:expr, $other:expr }
        $($tag:ident $element:ident,)*
    ) => {{
        #[allow(unused_imports)]
        use $crate::scalars::*;
        match $dtype {
            $($crate::DType::$tag => { type $t = $element; $body })*
            #[allow(unreachable_patterns)]
            _ => $other,
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_agree_with_the_types() {
        for (i, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!(dtype as usize, i);
            with_dtype!(dtype, T in all => {
                assert_eq!(T::DTYPE, dtype);
                assert_eq!((size_of::<T>(), align_of::<T>()), (dtype.size(), dtype.align()));
                let path = std::any::type_name::<T>();
                let generic = path.replace("num_complex::Complex<f64>", "c64");
                let generic = generic.replace("num_complex::Complex<f32>", "c32");
                assert!(generic.ends_with(dtype.name()), "{path} is called {dtype}");
            }, else => unreachable!());
            let classes = [dtype.is_float(), dtype.is_int(), dtype.is_complex()];
            assert_eq!(classes.iter().filter(|&&c| c).count(), (dtype != DType::Bool) as usize);
            let acc = dtype.accumulator();
            assert_eq!(acc.accumulator(), acc);
            assert_eq!(acc != dtype, dtypes!([narrow] => [one_of] { dtype }));
        }
    }
}
