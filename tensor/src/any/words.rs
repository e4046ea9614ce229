//! Elements as plain words: an operation that only moves elements is compiled once per size and
//! alignment instead of once per dtype.

use super::AnyTensor;
use crate::dtype::DType;
use crate::tensor::Tensor;
use crate::with_dtype;

use t4a_algebra::{Scalar, bf16, c32, c64, f16};

/// Binds a name to a word type with the size and alignment of the dtype: `u8 u16 u32 u64`, or the
/// complex type itself.
macro_rules! with_word {
    ($dtype:expr, $w:ident => $body:expr) => {{
        use $crate::DType::*;
        match $dtype {
            U8 | I8 | Bool => {
                type $w = u8;
                $body
            }
            U16 | I16 | F16 | BF16 => {
                type $w = u16;
                $body
            }
            U32 | I32 | F32 => {
                type $w = u32;
                $body
            }
            U64 | I64 | F64 => {
                type $w = u64;
                $body
            }
            C32 => {
                type $w = t4a_algebra::c32;
                $body
            }
            C64 => {
                type $w = t4a_algebra::c64;
                $body
            }
        }
    }};
}
pub(super) use with_word;

/// Whether a word has the size and the alignment of the elements of a dtype.
fn holds<W>(dtype: DType) -> bool {
    with_dtype!(dtype, T in all => {
        (size_of::<T>(), align_of::<T>()) == (size_of::<W>(), align_of::<W>())
    }, else => false)
}

/// Types of which every bit pattern is a value: all dtypes but `bool`.
pub(super) trait Word: Scalar {}

macro_rules! words {
    ($($t:ident)*) => {$(impl Word for $t {})*};
}

words!(u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 c32 c64);

impl AnyTensor {
    /// The elements as words of type `W`, the one that [`with_word!`] binds for this dtype.
    #[inline]
    pub(super) fn words<W: Word>(&self) -> &Tensor<W> {
        assert!(holds::<W>(self.dtype));
        // SAFETY: as in `typed`; every bit pattern is a word, and sizes and alignments agree.
        unsafe { &*std::ptr::from_ref(&self.tensor).cast::<Tensor<W>>() }
    }

    /// [`AnyTensor::words`] by value: keeps a unique buffer unique.
    #[inline]
    pub(super) fn into_words<W: Word>(self) -> Tensor<W> {
        assert!(holds::<W>(self.dtype));
        // SAFETY: as above.
        unsafe { self.tensor.retag() }
    }

    /// A tensor of words under the dtype that they were read from.
    ///
    /// # Safety
    /// The words are valid elements of the dtype: moved from tensors of that dtype, say.
    #[inline]
    pub(super) unsafe fn from_words<W: Scalar>(tensor: Tensor<W>, dtype: DType) -> Self {
        assert!(holds::<W>(dtype));
        // SAFETY: the caller's promise.
        Self { tensor: unsafe { tensor.retag() }, dtype }
    }
}
