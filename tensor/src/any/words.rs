//! Elements as words: an operation that only moves elements is compiled once per size and alignment instead of once per
//! dtype.

use super::AnyTensor;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::tensor::Tensor;

use t4a_algebra::Scalar;

/// Binds a name to a word type with the size of the dtype, and an alignment that its elements have.
macro_rules! with_word {
    ($dtype:expr, $w:ident => $body:expr) => {
        match ($dtype.size(), $dtype.align()) {
            (1, _) => {
                type $w = u8;
                $body
            }
            (2, 2) => {
                type $w = u16;
                $body
            }
            (4, 4) => {
                type $w = u32;
                $body
            }
            (8, 8) => {
                type $w = u64;
                $body
            }
            (8, 4) => {
                type $w = [u32; 2];
                $body
            }
            (16, 8..) => {
                type $w = [u64; 2];
                $body
            }
            _ => unreachable!("every dtype has a word"),
        }
    };
}
pub(super) use with_word;

/// Every dtype has a word in [`with_word!`].
const _: () = {
    let mut i = 0;
    while i < DType::ALL.len() {
        let dtype = DType::ALL[i];
        let found = matches!(
            (dtype.size(), dtype.align()),
            (1, _) | (2, 2) | (4, 4) | (8, 8 | 4) | (16, 8..)
        );
        assert!(found, "a dtype without a word");
        i += 1;
    }
};

/// True if elements of a dtype have the size, and at least the alignment, of words of type `W`.
fn holds<W>(dtype: DType) -> bool {
    dtype.size() == size_of::<W>() && dtype.align() >= align_of::<W>()
}

/// Types for which every bit pattern is valid.
pub(super) trait AnyBits: Scalar {}

macro_rules! words {
    ($($t:ty),*) => {$(impl AnyBits for $t {})*};
}
words!(u8, u16, u32, u64, [u32; 2], [u64; 2]);

impl AnyTensor {
    /// The elements as words of type `W`, the one that [`with_word!`] binds for this dtype.
    #[inline]
    pub(super) fn words<W: AnyBits>(&self) -> &Tensor<W> {
        assert!(holds::<W>(self.dtype));
        // SAFETY: as in `typed`; every bit pattern is a word, sizes agree, and the elements are
        // aligned for words.
        unsafe { &*std::ptr::from_ref(&self.tensor).cast::<Tensor<W>>() }
    }

    /// [`AnyTensor::words`] by value: keeps a unique buffer unique.
    #[inline]
    pub(super) fn into_words<W: AnyBits>(self) -> Tensor<W> {
        assert!(holds::<W>(self.dtype));
        // SAFETY: as above.
        unsafe { self.tensor.retag() }
    }

    /// A tensor of words with the dtype of the original elements. New memory is aligned for every element, and other
    /// memory is shared with a tensor of the dtype.
    ///
    /// # Safety
    /// The words are valid elements of the dtype, for example moved from tensors of that dtype.
    #[inline]
    pub(super) unsafe fn from_words<W: Scalar>(tensor: Tensor<W>, dtype: DType) -> Self {
        assert!(holds::<W>(dtype));
        // SAFETY: the caller's contract.
        Self { tensor: unsafe { tensor.retag() }, dtype }
    }

    /// Integers as unsigned integers: the same bits with dtype [`DType::modular`].
    #[inline]
    pub(super) fn modular(self) -> Self {
        Self { dtype: self.dtype.modular(), ..self }
    }

    /// The result of an operation on [`AnyTensor::modular`] operands of a dtype: integers get its sign.
    #[inline]
    pub(super) fn with_sign_of(self, dtype: DType) -> Self {
        if self.dtype == dtype.modular() { Self { dtype, ..self } } else { self }
    }

    /// The typed tensor, integers without their sign.
    ///
    /// # Errors
    /// As [`AnyTensor::typed`].
    #[inline]
    pub(super) fn typed_modular<T: Element>(&self) -> Result<&Tensor<T>> {
        if self.dtype.modular() != T::DTYPE {
            return self.typed();
        }
        // SAFETY: as in `typed`; signed and unsigned integers of one width have the same size, alignment and valid
        // values.
        Ok(unsafe { &*std::ptr::from_ref(&self.tensor).cast::<Tensor<T>>() })
    }
}
