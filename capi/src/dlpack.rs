//! Structs of DLPack 1.x, and exported tensors of the engine. The module `described` reads those of a caller.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use t4a_tensor::{AnyTensor, DType};

use crate::error::{Failure, Status};

/// Maximum number of axes of a tensor.
pub const MAX_RANK: usize = 64;
/// Flag of [`Managed::flags`]: the consumer must not write to the memory.
pub const FLAG_READ_ONLY: u64 = 1;
/// Device type of memory of the processor.
pub const CPU: i32 = 1;
/// Device type of memory of CUDA.
pub const CUDA: i32 = 2;

/// `DLPackVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Version {
    /// Major version; structs with another one are rejected.
    pub major: u32,
    /// Minor version; additions increase it.
    pub minor: u32,
}

/// `DLDevice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Device {
    /// Device type; 1 is CPU memory.
    pub kind: i32,
    /// Index among the devices of this type.
    pub id: i32,
}

/// `DLDataType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DataType {
    /// Type code: 0 signed integer, 1 unsigned integer, 2 float, 4 bfloat, 5 complex, 6 boolean.
    pub code: u8,
    /// Number of bits of an element.
    pub bits: u8,
    /// Number of lanes; 1 for all supported types.
    pub lanes: u16,
}

/// `DLTensor`.
#[derive(Debug)]
#[repr(C)]
pub struct DlTensor {
    /// Start of the memory.
    pub data: *mut c_void,
    /// Device of the memory.
    pub device: Device,
    /// Number of axes.
    pub ndim: i32,
    /// Element type.
    pub dtype: DataType,
    /// Sizes of the axes.
    pub shape: *mut i64,
    /// Strides in elements, or null for row-major.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensorVersioned`.
#[derive(Debug)]
#[repr(C)]
pub struct Managed {
    /// Version of the struct.
    pub version: Version,
    /// Data of the producer.
    pub context: *mut c_void,
    /// Function that releases the tensor; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    /// Bit mask of flags.
    pub flags: u64,
    /// The tensor.
    pub tensor: DlTensor,
}

/// Dtypes of the engine with their DLPack code and number of bits. Booleans are bytes with value 0 or 1.
const DTYPES: [(DType, u8, u8); 15] = [
    (DType::I8, 0, 8),
    (DType::I16, 0, 16),
    (DType::I32, 0, 32),
    (DType::I64, 0, 64),
    (DType::U8, 1, 8),
    (DType::U16, 1, 16),
    (DType::U32, 1, 32),
    (DType::U64, 1, 64),
    (DType::F16, 2, 16),
    (DType::F32, 2, 32),
    (DType::F64, 2, 64),
    (DType::BF16, 4, 16),
    (DType::C32, 5, 64),
    (DType::C64, 5, 128),
    (DType::Bool, 6, 8),
];

/// Converts a DLPack data type to a dtype of the engine.
pub(crate) fn dtype(of: DataType) -> Result<DType, Failure> {
    let known = DTYPES.iter().find(|&&(_, code, bits)| (code, bits) == (of.code, of.bits));
    known.filter(|_| of.lanes == 1).map(|&(dtype, ..)| dtype).ok_or_else(|| {
        let DataType { code, bits, lanes } = of;
        let text =
            format!("there are no elements of code {code} with {bits} bits and {lanes} lanes");
        Failure::new(Status::Dtype, text)
    })
}

/// Converts a dtype of the engine to a DLPack data type.
///
/// # Errors
/// For dtypes without one.
pub fn data_type(of: DType) -> Result<DataType, Failure> {
    let known = DTYPES.iter().find(|&&(dtype, ..)| dtype == of);
    let found = known.map(|&(_, code, bits)| DataType { code, bits, lanes: 1 });
    found.ok_or_else(|| Failure::new(Status::Dtype, format!("DLPack has no {}", of.name())))
}

/// Dtype of the real and imaginary parts of a complex dtype; `None` for real dtypes.
pub fn real(dtype: DType) -> Option<DType> {
    match dtype {
        DType::C64 => Some(DType::F64),
        DType::C32 => Some(DType::F32),
        _ => None,
    }
}

/// Owned managed tensor; its deleter is called on drop.
pub(crate) struct Taken(NonNull<Managed>);

// SAFETY: DLPack requires that the deleter can be called on any thread; nothing else is accessed.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

impl Taken {
    /// # Safety
    /// The managed tensor is valid and is not released elsewhere.
    pub(crate) unsafe fn new(managed: NonNull<Managed>) -> Self {
        Self(managed)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: this object owns the tensor and releases it once. The offset of the deleter is the same in all versions.
        unsafe {
            if let Some(deleter) = (*self.0.as_ptr()).deleter {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// Exported tensor with the memory of its shape and strides.
struct Given {
    managed: Managed,
    /// Owners: the consumer, and [`give_to`] during an import.
    owners: AtomicUsize,
    _sizes: Vec<i64>,
    _tensor: AnyTensor,
}

unsafe extern "C" fn release(managed: *mut Managed) {
    // SAFETY: `context` is the box allocated by `give`, which an owner releases once; the last one drops it.
    unsafe {
        let given = (*managed).context.cast::<Given>();
        if (*given).owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(Box::from_raw(given));
        }
    }
}

/// Shape followed by strides, and the dtype, in the types of DLPack.
pub(crate) fn description(tensor: &AnyTensor) -> Result<(Vec<i64>, DataType), Failure> {
    let shape = tensor.shape().iter().map(|&n| n as i64);
    let strides = tensor.layout().strides().iter().map(|&s| s as i64);
    Ok((shape.chain(strides).collect(), data_type(tensor.dtype())?))
}

/// Describes a tensor. The result refers to the memory of the tensor and of `sizes`, as [`description`] returned them.
pub(crate) fn view(tensor: &AnyTensor, sizes: &[i64], dtype: DataType) -> DlTensor {
    let offset = tensor.layout().offset() * tensor.dtype().size();
    let (shape, strides) = sizes.split_at(sizes.len() / 2);
    DlTensor {
        data: tensor.buffer().as_ptr().wrapping_add(offset).cast_mut().cast(),
        device: Device { kind: CPU, id: 0 },
        ndim: shape.len() as i32,
        dtype,
        shape: shape.as_ptr().cast_mut(),
        strides: strides.as_ptr().cast_mut(),
        byte_offset: 0,
    }
}

/// Exports a tensor to a consumer, which releases it by the deleter.
pub(crate) fn give(tensor: AnyTensor, flags: u64) -> Result<NonNull<Managed>, Failure> {
    let (sizes, dtype) = description(&tensor)?;
    let version = Version { major: 1, minor: 1 };
    let own = view(&tensor, &sizes, dtype);
    let managed = Managed {
        version,
        context: std::ptr::null_mut(),
        deleter: Some(release),
        flags,
        tensor: own,
    };
    let owners = AtomicUsize::new(1);
    let given = Box::leak(Box::new(Given { managed, owners, _sizes: sizes, _tensor: tensor }));
    let given = NonNull::from(given);
    // SAFETY: the box is leaked, so the pointer is valid; the second pointer is derived from it.
    unsafe {
        (*given.as_ptr()).managed.context = given.as_ptr().cast();
        Ok(NonNull::new_unchecked(&raw mut (*given.as_ptr()).managed))
    }
}

/// Exports a tensor to a function that returns true if it took the tensor over. A function that fails may have called the
/// deleter or not: consumers differ here. The tensor is released in both cases.
pub(crate) fn give_to(
    tensor: AnyTensor,
    import: impl FnOnce(*mut Managed) -> bool,
) -> Result<bool, Failure> {
    let managed = give(tensor, 0)?.as_ptr();
    // SAFETY: `give` sets the context; the box exists until its second owner, this function, releases it.
    unsafe {
        let given = (*managed).context.cast::<Given>();
        (*given).owners.store(2, Ordering::Release);
        let taken = import(managed);
        if !taken
            && (*given).owners.load(Ordering::Acquire) == 2
            && let Some(deleter) = (*managed).deleter
        {
            deleter(managed);
        }
        release(managed);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use t4a_tensor::layout::Layout;
    use t4a_tensor::storage::Buffer;

    use super::*;

    /// A tensor on memory of an owner, and a second reference to the owner.
    fn counted() -> (AnyTensor, Arc<[f64; 2]>) {
        let owner = Arc::new([1.0, 2.0]);
        let layout = Layout::contiguous("test", &[2], 8).unwrap();
        // SAFETY: two aligned numbers, which the owner keeps.
        let tensor = unsafe {
            let buffer =
                Buffer::from_foreign(NonNull::from(&owner[0]).cast(), 16, Box::new(owner.clone()));
            AnyTensor::from_buffer(buffer, layout, DType::F64).unwrap()
        };
        (tensor, owner)
    }

    #[test]
    fn a_failed_import_releases_the_tensor_once() {
        let (tensor, owner) = counted();
        assert!(!give_to(tensor, |_| false).unwrap());
        assert_eq!(Arc::strong_count(&owner), 1);

        // A consumer that calls the deleter and then fails.
        let (tensor, owner) = counted();
        // SAFETY: the tensor was passed to this consumer.
        let consumed = give_to(tensor, |managed| unsafe {
            release(managed);
            false
        });
        assert!(!consumed.unwrap());
        assert_eq!(Arc::strong_count(&owner), 1);

        let (tensor, owner) = counted();
        let mut kept = std::ptr::null_mut();
        let consumed = give_to(tensor, |managed| {
            kept = managed;
            true
        });
        assert!(consumed.unwrap());
        assert_eq!(Arc::strong_count(&owner), 2);
        // SAFETY: the consumer took the tensor over.
        unsafe { release(kept) };
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
