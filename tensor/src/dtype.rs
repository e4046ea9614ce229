//! Run-time element types and the one place that matches on them.

use std::fmt;

use t4a_algebra::{Scalar, bf16, c32, c64, f16};

/// Element type of an [`AnyTensor`](crate::AnyTensor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
#[non_exhaustive]
#[repr(u8)]
pub enum DType {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
    C64,
    C32,
}

impl DType {
    /// Every dtype.
    pub const ALL: [DType; 15] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
        DType::C64,
        DType::C32,
    ];

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::C64 => 16,
            DType::F64 | DType::I64 | DType::U64 | DType::C32 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// Whether this is one of the four real floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
    }

    /// Whether this is one of the eight integer types.
    pub const fn is_int(self) -> bool {
        (self as u8) >= DType::I64 as u8 && (self as u8) <= DType::U8 as u8
    }

    /// Whether this is one of the two complex types.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C32)
    }
}

/// Short name of a dtype, as in Rust.
pub(crate) const fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "f64",
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::I64 => "i64",
        DType::I32 => "i32",
        DType::I16 => "i16",
        DType::I8 => "i8",
        DType::U64 => "u64",
        DType::U32 => "u32",
        DType::U16 => "u16",
        DType::U8 => "u8",
        DType::Bool => "bool",
        DType::C64 => "c64",
        DType::C32 => "c32",
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(*self))
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

macro_rules! element {
    ($($t:ident $tag:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$tag;
        }
    )*};
}

element!(
    f64 F64, f32 F32, f16 F16, bf16 BF16, i64 I64, i32 I32, i16 I16, i8 I8,
    u64 U64, u32 U32, u16 U16, u8 U8, bool Bool, c64 C64, c32 C32
);

/// Matches on a dtype once and runs the body with the type bound to a name.
///
/// `with_dtype!(dtype, T in CLASS => body, else => fallback)` where CLASS is `all`, `numeric`,
/// `real`, `float`, `int` or `field`; dtypes outside of the class run the fallback.
///
/// ```
/// use t4a_tensor::{DType, with_dtype};
/// let size = with_dtype!(DType::F32, T in all => size_of::<T>(), else => unreachable!());
/// assert_eq!(size, 4);
/// ```
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $t:ident in all => $body:expr, else => $other:expr) => {
        $crate::with_dtype!(@match $dtype, $t, $body, $other;
            F64 f64, F32 f32, F16 f16, BF16 bf16, I64 i64, I32 i32, I16 i16, I8 i8,
            U64 u64, U32 u32, U16 u16, U8 u8, Bool bool, C64 c64, C32 c32)
    };
    ($dtype:expr, $t:ident in numeric => $body:expr, else => $other:expr) => {
        $crate::with_dtype!(@match $dtype, $t, $body, $other;
            F64 f64, F32 f32, F16 f16, BF16 bf16, I64 i64, I32 i32, I16 i16, I8 i8,
            U64 u64, U32 u32, U16 u16, U8 u8, C64 c64, C32 c32)
    };
    ($dtype:expr, $t:ident in real => $body:expr, else => $other:expr) => {
        $crate::with_dtype!(@match $dtype, $t, $body, $other;
            F64 f64, F32 f32, F16 f16, BF16 bf16, I64 i64, I32 i32, I16 i16, I8 i8,
            U64 u64, U32 u32, U16 u16, U8 u8)
    };
    ($dtype:expr, $t:ident in int => $body:expr, else => $other:expr) => {
        $crate::with_dtype!(@match $dtype, $t, $body, $other;
            I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8)
    };
    ($dtype:expr, $t:ident in float => $body:expr, else => $other:expr) => {
        $crate::with_dtype!(@match $dtype, $t, $body, $other;
            F64 f64, F32 f32, F16 f16, BF16 bf16)
    };
    ($dtype:expr, $t:ident in field => $body:expr, else => $other:expr) => {
        $crate::with_dtype!(@match $dtype, $t, $body, $other;
            F64 f64, F32 f32, C64 c64, C32 c32)
    };
    (@match $dtype:expr, $t:ident, $body:expr, $other:expr; $($tag:ident $ty:ident),*) => {{
        #[allow(unused_imports)]
        use $crate::scalars::*;
        match $dtype {
            $($crate::DType::$tag => { type $t = $ty; $body })*
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
        for dtype in DType::ALL {
            with_dtype!(dtype, T in all => {
                assert_eq!(T::DTYPE, dtype);
                assert_eq!(size_of::<T>(), dtype.size());
            }, else => unreachable!());
            let classes = [dtype.is_float(), dtype.is_int(), dtype.is_complex()];
            assert_eq!(classes.iter().filter(|&&c| c).count(), (dtype != DType::Bool) as usize);
        }
    }
}
