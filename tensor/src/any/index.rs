//! Indices, masks and regions on erased tensors. An index tensor may have any integer type.

use super::words::with_word;
use super::{AnyTensor, Tensor};
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::index::{self, IndexTensor, Put, Reduction, Span, TypedPut};
use crate::kernels::arithmetic::{Add, Max, Min, Mul};
use crate::number::Number;
use crate::with_dtype;

/// The index operand of an operation.
fn indices<'a>(op: &'static str, index: &'a AnyTensor) -> Result<IndexTensor<'a>> {
    let dtype = index.dtype();
    with_dtype!(dtype, I in int => Ok(IndexTensor::new(index.typed::<I>()?)), else => {
        Err(TensorError::DTypeUnsupported { op, dtype, expected: "an integer index" })
    })
}

fn same_dtype(op: &'static str, lhs: &AnyTensor, rhs: &AnyTensor) -> Result<()> {
    if lhs.dtype() == rhs.dtype() {
        return Ok(());
    }
    Err(TensorError::DTypeMismatch { op, lhs: lhs.dtype(), rhs: rhs.dtype() })
}

/// Runs `body` on a mask of bytes or of 32-bit words.
macro_rules! with_mask {
    ($op:expr, $mask:ident, $m:ident => $body:expr) => {
        match $mask.dtype() {
            DType::Bool | DType::U8 => {
                let $m = $mask.into_words::<u8>();
                $body
            }
            DType::U32 => {
                let $m = $mask.into_words::<u32>();
                $body
            }
            dtype => {
                let expected = "a mask of bool, u8 or u32";
                Err(TensorError::DTypeUnsupported { op: $op, dtype, expected })
            }
        }
    };
}

/// The kernel of a reduction on elements of a dtype.
fn kernel(op: &'static str, reduction: Reduction, dtype: DType) -> Result<&'static dyn Put> {
    macro_rules! put {
        ($t:ty, $kernel:expr) => {
            Ok(const { &TypedPut::<$t, _>::new($kernel) } as &dyn Put)
        };
    }
    let unsupported = |expected| Err(TensorError::DTypeUnsupported { op, dtype, expected });
    match (reduction, dtype) {
        (Reduction::Assign, _) => with_word!(dtype, W => put!(W, index::Assign)),
        // Bytes of 0 and 1.
        (Reduction::Add | Reduction::Max, DType::Bool) => put!(u8, Max),
        (Reduction::Mul | Reduction::Min, DType::Bool) => put!(u8, Min),
        (Reduction::Add, _) => with_dtype!(dtype.modular(), T in modular => put!(T, Add), else => {
            unsupported("a number")
        }),
        (Reduction::Mul, _) => with_dtype!(dtype.modular(), T in modular => put!(T, Mul), else => {
            unsupported("a number")
        }),
        (Reduction::Min, _) => with_dtype!(dtype, T in real => put!(T, Min), else => {
            unsupported("a real number")
        }),
        (Reduction::Max, _) => with_dtype!(dtype, T in real => put!(T, Max), else => {
            unsupported("a real number")
        }),
    }
}

impl AnyTensor {
    /// `out[…, i, …] = self[…, index[…, i, …], …]` with `i` at `axis`: [`index::gather`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`] for an index that is not of integers.
    pub fn gather(&self, axis: usize, index: &AnyTensor) -> Result<AnyTensor> {
        let op = "gather";
        let index = indices(op, index)?;
        with_word!(self.dtype, W => {
            let out = index::gather_at(op, self.words::<W>(), axis, index)?;
            // SAFETY: the words are elements of this tensor.
            Ok(unsafe { AnyTensor::from_words(out, self.dtype) })
        })
    }

    /// `out[…, i, …] = self[…, index[i], …]` with `i` at `axis`: [`index::index_select`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`] for an index that is not of integers.
    pub fn index_select(&self, axis: usize, index: &AnyTensor) -> Result<AnyTensor> {
        let op = "index_select";
        let index = indices(op, index)?;
        with_word!(self.dtype, W => {
            let out = index::select_at(op, self.words::<W>(), axis, index)?;
            // SAFETY: the words are elements of this tensor.
            Ok(unsafe { AnyTensor::from_words(out, self.dtype) })
        })
    }

    /// `out[n…, j…] = self[index[n…, 0], …, index[n…, k − 1], j…]`: [`index::gather_nd`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`] for an index that is not of integers.
    pub fn gather_nd(&self, index: &AnyTensor) -> Result<AnyTensor> {
        let op = "gather_nd";
        let index = indices(op, index)?;
        with_word!(self.dtype, W => {
            let out = index::gather_nd_at(op, self.words::<W>(), index)?;
            // SAFETY: the words are elements of this tensor.
            Ok(unsafe { AnyTensor::from_words(out, self.dtype) })
        })
    }

    /// Combines values with the elements at `index` along `axis`: [`index::scatter`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeMismatch`]; [`TensorError::DTypeUnsupported`] for an index
    /// that is not of integers, and for minima and maxima of complex numbers.
    pub fn scatter(
        self,
        axis: usize,
        index: &AnyTensor,
        values: &AnyTensor,
        reduction: Reduction,
    ) -> Result<AnyTensor> {
        let (op, x) = ("scatter", self);
        same_dtype(op, &x, values)?;
        let index = indices(op, index)?;
        let (k, dtype) = (kernel(op, reduction, x.dtype)?, x.dtype);
        with_word!(dtype, W => {
            // SAFETY: the kernel is one of the dtype, whose elements it yields: for bool, bytes of 0
            // and 1.
            unsafe {
                let (x, values) = (x.into_words::<W>(), values.words::<W>());
                let out = index::scatter_at(op, k, x, axis, index, values)?;
                Ok(AnyTensor::from_words(out, dtype))
            }
        })
    }

    /// Combines values with the slices that `index` names along `axis`: [`index::index_scatter`].
    ///
    /// # Errors
    /// As [`AnyTensor::scatter`].
    pub fn index_scatter(
        self,
        axis: usize,
        index: &AnyTensor,
        values: &AnyTensor,
        reduction: Reduction,
    ) -> Result<AnyTensor> {
        let (op, x) = ("index_scatter", self);
        same_dtype(op, &x, values)?;
        let index = indices(op, index)?;
        let (k, dtype) = (kernel(op, reduction, x.dtype)?, x.dtype);
        with_word!(dtype, W => {
            // SAFETY: the kernel is one of the dtype, whose elements it yields: for bool, bytes of 0
            // and 1.
            unsafe {
                let (x, values) = (x.into_words::<W>(), values.words::<W>());
                let out = index::index_scatter_at(op, k, x, axis, index, values)?;
                Ok(AnyTensor::from_words(out, dtype))
            }
        })
    }

    /// Combines values with the slices that index tuples name: [`index::scatter_nd`].
    ///
    /// # Errors
    /// As [`AnyTensor::scatter`].
    pub fn scatter_nd(
        self,
        index: &AnyTensor,
        values: &AnyTensor,
        reduction: Reduction,
    ) -> Result<AnyTensor> {
        let (op, x) = ("scatter_nd", self);
        same_dtype(op, &x, values)?;
        let index = indices(op, index)?;
        let (k, dtype) = (kernel(op, reduction, x.dtype)?, x.dtype);
        with_word!(dtype, W => {
            // SAFETY: the kernel is one of the dtype, whose elements it yields: for bool, bytes of 0
            // and 1.
            unsafe {
                let (x, values) = (x.into_words::<W>(), values.words::<W>());
                let out = index::scatter_nd_at(op, k, x, index, values)?;
                Ok(AnyTensor::from_words(out, dtype))
            }
        })
    }

    /// `outᵢ = valueᵢ` where `maskᵢ` is not 0, else `selfᵢ`; shapes broadcast. The mask is of
    /// `bool`, `u8` or `u32`.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`], [`TensorError::DTypeMismatch`],
    /// [`TensorError::DTypeUnsupported`].
    pub fn mask_where(self, mask: AnyTensor, value: AnyTensor) -> Result<AnyTensor> {
        let op = "mask_where";
        same_dtype(op, &self, &value)?;
        let dtype = self.dtype;
        with_word!(dtype, W => with_mask!(op, mask, mask => {
            let out = index::mask_where(self.into_words::<W>(), mask, value.into_words::<W>())?;
            // SAFETY: the words are elements of tensors of the dtype.
            Ok(unsafe { AnyTensor::from_words(out, dtype) })
        }))
    }

    /// `outᵢ = value` where `maskᵢ` is not 0, else `selfᵢ`; shapes broadcast. The mask is of
    /// `bool`, `u8` or `u32`.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`], [`TensorError::DTypeUnsupported`].
    pub fn mask_fill(self, mask: AnyTensor, value: Number) -> Result<AnyTensor> {
        let op = "mask_fill";
        let value = AnyTensor::full(&[], value, self.dtype)?;
        let dtype = self.dtype;
        with_word!(dtype, W => with_mask!(op, mask, mask => {
            let value = value.words::<W>().get(&[]);
            let Some(value) = value else { return Ok(self) };
            let out = index::mask_fill(self.into_words::<W>(), mask, value)?;
            // SAFETY: the words are elements of tensors of the dtype.
            Ok(unsafe { AnyTensor::from_words(out, dtype) })
        }))
    }

    /// The indices of the elements that are not 0, one per row, in row-major order:
    /// [`index::nonzero`]. `dtype` is the integer type of the result.
    ///
    /// # Errors
    /// [`TensorError::DTypeUnsupported`] unless `dtype` is an integer type; [`TensorError::Value`]
    /// if it cannot hold an index.
    pub fn nonzero(&self, dtype: DType) -> Result<AnyTensor> {
        let op = "nonzero";
        let truths = with_dtype!(self.dtype, T in all => index::truths(self.typed::<T>()?)?,
            else => unreachable!("every dtype is covered"));
        with_dtype!(dtype, I in int => index::nonzero_of::<I>(&truths).map(AnyTensor::from),
            else => Err(TensorError::DTypeUnsupported { op, dtype, expected: "an integer type" }))
    }

    /// `self[span₀, span₁, …] ← values`: [`index::slice_assign`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeMismatch`].
    pub fn slice_assign(self, spans: &[Span], values: &AnyTensor) -> Result<AnyTensor> {
        same_dtype("slice_assign", &self, values)?;
        let dtype = self.dtype;
        with_word!(dtype, W => {
            let out = index::slice_assign(self.into_words::<W>(), spans, values.words::<W>())?;
            // SAFETY: the words are elements of tensors of the dtype.
            Ok(unsafe { AnyTensor::from_words(out, dtype) })
        })
    }

    /// Concatenates tensors along an axis: [`index::cat`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeMismatch`].
    pub fn cat(tensors: &[AnyTensor], axis: usize) -> Result<AnyTensor> {
        let op = "cat";
        let first = tensors.first().ok_or_else(|| TensorError::value(op, "no tensors to join"))?;
        tensors.iter().try_for_each(|x| same_dtype(op, first, x))?;
        let dtype = first.dtype;
        with_word!(dtype, W => {
            let words: Vec<Tensor<W>> = tensors.iter().map(|x| x.words::<W>().clone()).collect();
            let out = index::cat(&words, axis)?;
            // SAFETY: the words are elements of tensors of the dtype.
            Ok(unsafe { AnyTensor::from_words(out, dtype) })
        })
    }

    /// Concatenates `times` copies of the tensor along an axis: [`index::repeat`].
    ///
    /// # Errors
    /// As there.
    pub fn repeat(&self, axis: usize, times: usize) -> Result<AnyTensor> {
        with_word!(self.dtype, W => {
            let out = index::repeat(self.words::<W>(), axis, times)?;
            // SAFETY: the words are elements of this tensor.
            Ok(unsafe { AnyTensor::from_words(out, self.dtype) })
        })
    }
}
