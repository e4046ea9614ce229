//! Elements as plain words: an operation that only moves elements is compiled once per size and
//! alignment instead of once per dtype.

use super::AnyTensor;
use crate::dtype::DType;
use crate::tensor::Tensor;

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

impl AnyTensor {
    /// The elements as words of type `W`, the one that [`with_word!`] binds for this dtype.
    #[inline]
    pub(super) fn words<W>(&self) -> &Tensor<W> {
        debug_assert_eq!(size_of::<W>(), self.dtype.size());
        // SAFETY: as in `typed`; every bit pattern is a valid word, and sizes and alignments agree.
        unsafe { &*std::ptr::from_ref(&self.tensor).cast::<Tensor<W>>() }
    }

    /// [`AnyTensor::words`] by value: keeps a unique buffer unique.
    #[inline]
    pub(super) fn into_words<W>(self) -> Tensor<W> {
        debug_assert_eq!(size_of::<W>(), self.dtype.size());
        self.tensor.retag()
    }

    /// A tensor of words under the dtype that they were read from.
    ///
    /// # Safety
    /// The words are valid elements of the dtype: moved from tensors of that dtype, say.
    #[inline]
    pub(super) unsafe fn from_words<W>(tensor: Tensor<W>, dtype: DType) -> Self {
        debug_assert_eq!(size_of::<W>(), dtype.size());
        Self { tensor: tensor.retag(), dtype }
    }
}
