//! Conversion between `TensorData` and engine tensors without copying elements.
//!
//! Incoming [`Bytes`] become foreign memory of the engine; they are copied only if their alignment is below that of
//! the dtype. Outgoing `Bytes` refer to the tensor's buffer and copy it on the first write while another handle
//! exists.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use burn_backend::{AllocationProperty, BoolDType, Bytes, DType as BurnDType, Shape, TensorData};
use burn_backend::{TensorMetadata, bf16, f16};
use burn_std::AllocationController;
#[cfg(burn_line = "0.22")]
use burn_std::{AccessError, AccessPolicy};
use t4a_tensor::{AnyTensor, Buffer, DType, Layout, Result, Tensor, TensorError};

use super::primitive::{T4aTensor, engine_dtype};

impl T4aTensor {
    /// Creates a tensor that owns the memory of `data`. Boolean bytes other than 0 and 1 are normalised to 1.
    ///
    /// # Errors
    /// [`TensorError::Value`] if the number of bytes does not match shape and dtype, or the dtype is quantized;
    /// [`TensorError::SizeOverflow`] if the number of elements overflows.
    pub fn try_from_data(data: TensorData) -> Result<Self> {
        let (bytes, shape, dtype) = parts(data);
        let layout = Layout::contiguous("from_data", &shape, dtype.size())?;
        let required = layout.numel() * dtype.size();
        if bytes.len() != required {
            let message = format!(
                "shape {:?} of {} takes {required} bytes, the data has {}",
                &*shape,
                dtype.name(),
                bytes.len()
            );
            return Err(TensorError::value("from_data", message));
        }
        let engine = engine_dtype(dtype)?;
        match dtype {
            BurnDType::Bool(store @ BoolDType::U32) => {
                let words = bytes.chunks_exact(4).map(|word| word != [0; 4]).collect();
                let any = Tensor::<bool>::from_vec(words, &shape)?.into();
                Ok(Self::from_any(any)?.with_store(store))
            }
            BurnDType::Bool(store) => Ok(Self::from_any(bools(bytes, layout)?)?.with_store(store)),
            _ => {
                let align = engine.size().min(align_of::<u64>());
                let buffer = adopt(bytes, align)?;
                // SAFETY: every bit pattern is a valid integer or float, and the bytes are initialised.
                Self::from_any(unsafe { AnyTensor::from_buffer(buffer, layout, engine) }?)
            }
        }
    }

    /// Copies the tensor into memory allocated by the engine, which counts towards its memory limit; the memory of
    /// [`T4aTensor::try_from_data`] belongs to the caller and does not.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`].
    pub fn into_owned(self) -> Result<Self> {
        let store = self.store();
        let any = self.into_any().to_contiguous()?;
        let own = t4a_tensor::with_dtype!(any.dtype(), T in all => {
            let x = any.typed::<T>()?;
            Tensor::<T>::from_slice(x.as_slice().unwrap_or_default(), x.shape())?.into()
        }, else => any);
        Ok(Self::from_any(own)?.with_store(store))
    }

    /// Returns the elements in row-major order. Copies if the tensor is strided, or uses less than half of its
    /// memory block.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`].
    pub fn try_into_data(self) -> Result<TensorData> {
        let (shape, dtype) = (self.shape(), self.dtype());
        let any = self.into_any();
        let bytes = if dtype == BurnDType::Bool(BoolDType::U32) {
            let any = any.to_contiguous()?;
            let words: Vec<u32> =
                any.typed::<bool>()?.to_vec()?.into_iter().map(u32::from).collect();
            Bytes::from_elems(words)
        } else {
            hand_out(&any)?
        };
        Ok(TensorData::from_bytes(bytes, shape, dtype))
    }
}

/// Splits data into bytes, shape and dtype.
pub(super) fn parts(data: TensorData) -> (Bytes, Shape, BurnDType) {
    #[cfg(burn_line = "0.21")]
    return (data.bytes, data.shape, data.dtype);
    #[cfg(burn_line = "0.22")]
    return data.into_parts();
}

/// Returns the elements of a tensor as contiguous `Bytes`.
fn hand_out(any: &AnyTensor) -> Result<Bytes> {
    let len = any.numel() * any.dtype().size();
    // A small view is copied, so that it does not keep a large buffer alive.
    let any = if any.layout().is_contiguous() && 2 * len < any.buffer().len() {
        t4a_tensor::with_dtype!(any.dtype(), T in all => {
            let part = any.typed::<T>()?.as_slice().unwrap_or_default();
            Tensor::<T>::from_slice(part, any.shape())?.into()
        }, else => any.clone())
    } else {
        any.to_contiguous()?
    };
    let start = if len == 0 { 0 } else { any.layout().offset() * any.dtype().size() };
    Ok(share(any.buffer().clone(), start, len))
}

/// Returns `len` bytes of a buffer from byte `start` as copy-on-write `Bytes`.
fn share(buffer: Buffer, start: usize, len: usize) -> Bytes {
    debug_assert!(start + len <= buffer.len());
    let controller = SharedBytes { buffer, start, len };
    // SAFETY: the controller exposes exactly `len` bytes, all initialised by the invariant of
    // buffers inside of tensors.
    unsafe { Bytes::from_controller(Box::new(controller), len) }
}

/// Returns the whole memory block of a tensor as `Bytes`, without a copy.
#[cfg(burn_line = "0.22")]
pub(super) fn hand_out_all(any: &AnyTensor) -> Bytes {
    let buffer = any.buffer();
    share(buffer.clone(), 0, buffer.len())
}

/// Creates a tensor over bytes with the given shape, strides and offset, in units of elements. Booleans are
/// normalised.
///
/// # Errors
/// [`TensorError::Shape`] if the layout addresses an element outside of the bytes; [`TensorError::Value`] for
/// quantized dtypes and booleans of four bytes.
#[cfg(burn_line = "0.22")]
pub(super) fn tensor_over(
    bytes: Bytes,
    shape: &[usize],
    strides: &[isize],
    offset: usize,
    dtype: BurnDType,
) -> Result<T4aTensor> {
    let engine = engine_dtype(dtype)?;
    if dtype == BurnDType::Bool(BoolDType::U32) {
        let message = "booleans of four bytes are elements of data alone";
        return Err(TensorError::value("new", message));
    }
    let layout = Layout::from_parts(shape, strides, offset, bytes.len() / engine.size())?;
    let odd = engine == DType::Bool && bytes.iter().any(|&byte| byte > 1);
    let bytes = match odd {
        true => Bytes::from_elems(bytes.iter().map(|&byte| u8::from(byte != 0)).collect()),
        false => bytes,
    };
    let buffer = adopt(bytes, engine.size().min(align_of::<u64>()))?;
    // SAFETY: every bit pattern is a valid integer or float, booleans are 0 or 1, and the bytes are initialised.
    let x = T4aTensor::from_any(unsafe { AnyTensor::from_buffer(buffer, layout, engine) }?)?;
    Ok(match dtype {
        BurnDType::Bool(store) => x.with_store(store),
        _ => x,
    })
}

/// Converts `Bytes` to an engine buffer; copies only if they are not aligned to `align`.
fn adopt(bytes: Bytes, align: usize) -> Result<Buffer> {
    let (ptr, len) = (NonNull::from(&*bytes).cast::<u8>(), bytes.len());
    if len == 0 || !ptr.as_ptr().addr().is_multiple_of(align) {
        let mut copy = Buffer::alloc("from_data", len)?;
        if let Some(dst) = copy.as_mut_ptr() {
            // SAFETY: both hold `len` bytes, and the copy is new.
            unsafe { std::ptr::copy_nonoverlapping(ptr.as_ptr(), dst, len) };
        }
        return Ok(copy);
    }
    // SAFETY: the memory behind `Bytes` is heap-allocated or mapped, does not move with its handle, and is written
    // only through a unique handle, which the buffer keeps.
    Ok(unsafe { Buffer::from_foreign(ptr, len, Box::new(bytes)) })
}

/// Converts bytes to booleans: every nonzero byte is `true`.
fn bools(bytes: Bytes, layout: Layout) -> Result<AnyTensor> {
    if bytes.iter().all(|&byte| byte <= 1) {
        // SAFETY: the bytes are initialised and each is 0 or 1.
        unsafe { AnyTensor::from_buffer(adopt(bytes, 1)?, layout, DType::Bool) }
    } else {
        let values = bytes.iter().map(|&byte| byte != 0).collect();
        Ok(Tensor::<bool>::from_vec(values, layout.shape())?.into())
    }
}

/// Allocation controller that exposes a range of a buffer as `Bytes`.
struct SharedBytes {
    buffer: Buffer,
    start: usize,
    len: usize,
}

impl SharedBytes {
    /// Copies the range into a new buffer unless this handle is the only one.
    fn own(&mut self) -> Result<()> {
        if !self.buffer.is_unique() {
            self.buffer = self.buffer.duplicate()?;
        }
        Ok(())
    }

    /// Returns the writable bytes, after [`Self::own`].
    fn written(&mut self) -> &mut [MaybeUninit<u8>] {
        match self.buffer.as_mut_ptr() {
            // SAFETY: the range was checked in `share`, and this is the only handle of the buffer.
            Some(ptr) => unsafe {
                std::slice::from_raw_parts_mut(ptr.add(self.start).cast(), self.len)
            },
            None => unreachable!("a fresh copy is unique"),
        }
    }

    fn read(&self) -> &[MaybeUninit<u8>] {
        // SAFETY: the range was checked in `share`; the buffer is alive.
        unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().add(self.start).cast(), self.len) }
    }
}

impl AllocationController for SharedBytes {
    fn alloc_align(&self) -> usize {
        let address = self.buffer.as_ptr().addr() + self.start;
        1 << address.trailing_zeros().min(4)
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    #[cfg(burn_line = "0.21")]
    unsafe fn memory_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        match self.own() {
            Ok(()) => self.written(),
            Err(error) => panic!("{error}"),
        }
    }

    #[cfg(burn_line = "0.22")]
    unsafe fn memory_mut(
        &mut self,
        policy: AccessPolicy,
    ) -> std::result::Result<&mut [MaybeUninit<u8>], AccessError> {
        if !self.buffer.is_unique() && !policy.copy_allowed() {
            return Err(AccessError::WouldCopy);
        }
        self.own().map_err(|error| AccessError::Read(error.to_string()))?;
        Ok(self.written())
    }

    #[cfg(burn_line = "0.21")]
    fn memory(&self) -> &[MaybeUninit<u8>] {
        self.read()
    }

    #[cfg(burn_line = "0.22")]
    fn memory(
        &self,
        _policy: AccessPolicy,
    ) -> std::result::Result<&[MaybeUninit<u8>], AccessError> {
        Ok(self.read())
    }

    fn duplicate(&self) -> Option<Box<dyn AllocationController>> {
        let Self { buffer, start, len } = self;
        Some(Box::new(Self { buffer: buffer.clone(), start: *start, len: *len }))
    }
}

// The 16-bit float types of the engine and of Burn are the same types.
const _: fn(f16, bf16) -> (t4a_algebra::f16, t4a_algebra::bf16) = |a, b| (a, b);

#[cfg(test)]
mod tests {
    use burn_backend::Element;

    use super::*;

    fn read(tensor: T4aTensor) -> TensorData {
        tensor.try_into_data().unwrap()
    }

    fn elements<E: Element>(data: &TensorData) -> Vec<E> {
        data.iter::<E>().collect()
    }

    #[test]
    fn elements_enter_and_leave_without_copying() {
        let data = TensorData::from([[1.0f32, 2.0], [3.0, 4.0]]);
        let ptr = data.as_bytes().as_ptr();
        let tensor = T4aTensor::try_from_data(data).unwrap();
        assert_eq!(tensor.any().buffer().as_ptr(), ptr);
        let mut out = read(tensor.clone());
        assert_eq!(out.as_bytes().as_ptr(), ptr);
        // The first write copies, because the tensor still holds the memory.
        out.as_mut_slice::<f32>().unwrap()[0] = 9.0;
        assert_ne!(out.as_bytes().as_ptr(), ptr);
        assert_eq!(elements::<f32>(&read(tensor)), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(elements::<f32>(&out), [9.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn strided_and_partial_tensors_leave_in_row_major_order() {
        let any = AnyTensor::from(Tensor::from_vec((0..6i32).collect(), &[2, 3]).unwrap());
        let read = |any: AnyTensor| {
            let data = read(T4aTensor::from_any(any).unwrap());
            assert_eq!(data.as_bytes().len(), 4 * data.num_elements());
            elements::<i32>(&data)
        };
        assert_eq!(read(any.permute(&[1, 0]).unwrap()), [0, 3, 1, 4, 2, 5]);
        assert_eq!(read(any.select(0, 1).unwrap()), [3, 4, 5]);
        assert_eq!(read(any.select(0, 1).unwrap().slice_axis(0, 1, 1, 1).unwrap()), [4]);
        assert_eq!(read(any.flip(&[0]).unwrap()), [3, 4, 5, 0, 1, 2]);
        assert_eq!(read(any.slice_axis(1, 3, 0, 1).unwrap()), [0i32; 0]);
        assert_eq!(read(any.select(0, 0).unwrap().select(0, 2).unwrap()), [2]);
    }

    #[test]
    fn misaligned_bytes_are_copied() {
        let values = [1.5f64, -2.0];
        let mut raw = vec![0u8; 8 * 3];
        let skew = (1..8).find(|skew| !(raw.as_ptr().addr() + skew).is_multiple_of(8)).unwrap();
        for (i, value) in values.iter().enumerate() {
            raw[skew + 8 * i..][..8].copy_from_slice(&value.to_ne_bytes());
        }
        let buffer = AnyTensor::from(Tensor::from_vec(raw, &[24]).unwrap()).into_buffer();
        let data = TensorData::from_bytes(share(buffer, skew, 16), [2], BurnDType::F64);
        let tensor = T4aTensor::try_from_data(data).unwrap();
        assert_eq!(elements::<f64>(&read(tensor)), values);
    }

    #[test]
    fn every_bool_store_round_trips() {
        for store in [BoolDType::Native, BoolDType::U8, BoolDType::U32] {
            let data = TensorData::from([true, false, true]).convert_dtype(BurnDType::Bool(store));
            let tensor = T4aTensor::try_from_data(data.clone()).unwrap();
            assert_eq!(tensor.dtype(), BurnDType::Bool(store));
            assert_eq!(read(tensor), data);
        }
        let odd = TensorData::from_bytes_vec(vec![2, 0, 255], [3], BurnDType::Bool(BoolDType::U8));
        let tensor = T4aTensor::try_from_data(odd).unwrap();
        assert_eq!(tensor.any().typed::<bool>().unwrap().to_vec().unwrap(), [true, false, true]);
    }

    /// Burn 0.22 rejects data of the wrong size before the backend is called.
    #[cfg(burn_line = "0.21")]
    #[test]
    fn data_of_the_wrong_size_is_an_error() {
        let bytes = || Bytes::from_elems(vec![0f32; 3]);
        let error =
            T4aTensor::try_from_data(TensorData::from_bytes(bytes(), [2, 2], BurnDType::F32));
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "from_data: shape [2, 2] of f32 takes 16 bytes, the data has 12");
        let shape = [usize::MAX, 2, 2];
        let error =
            T4aTensor::try_from_data(TensorData::from_bytes(bytes(), shape, BurnDType::F32));
        assert!(matches!(error, Err(TensorError::SizeOverflow { .. })));
    }
}
