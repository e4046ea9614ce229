//! Structs of DLPack 1.x, and their conversion to and from tensors of the engine.

use std::any::Any;
use std::ffi::c_void;
use std::fmt::Arguments;
use std::ptr::NonNull;

use t4a_tensor::layout::Layout;
use t4a_tensor::storage::Buffer;
use t4a_tensor::{AnyTensor, DType};

use crate::error::{Failure, Status};

/// Maximum number of axes of a tensor.
pub const MAX_RANK: usize = 64;
/// Flag of [`Managed::flags`]: the consumer must not write to the memory.
pub const FLAG_READ_ONLY: u64 = 1;
const CPU: i32 = 1;

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
pub(crate) fn data_type(of: DType) -> Result<DataType, Failure> {
    let known = DTYPES.iter().find(|&&(dtype, ..)| dtype == of);
    let found = known.map(|&(_, code, bits)| DataType { code, bits, lanes: 1 });
    found.ok_or_else(|| Failure::new(Status::Dtype, format!("DLPack has no {}", of.name())))
}

/// Dtype of the real and imaginary parts of a complex dtype; `None` for real dtypes.
pub(crate) fn real(dtype: DType) -> Option<DType> {
    match dtype {
        DType::C64 => Some(DType::F64),
        DType::C32 => Some(DType::F32),
        _ => None,
    }
}

/// Checked description of strided memory.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// Strides in elements.
    pub(crate) strides: Vec<isize>,
    /// Address of the element with index (0, …, 0); dangling if there are no elements.
    pub(crate) first: *mut u8,
    /// Number of elements of the memory below and above the first one.
    below: usize,
    above: usize,
}

impl Described {
    /// Reads a description.
    ///
    /// # Safety
    /// `tensor` is null or valid, and so are its shape and strides.
    pub(crate) unsafe fn read(
        tensor: *const DlTensor,
        what: Arguments<'_>,
    ) -> Result<Self, Failure> {
        // SAFETY: as the caller promises.
        let x = unsafe { tensor.as_ref() }.ok_or_else(|| Failure::null(&what.to_string()))?;
        if x.device.kind != CPU {
            let text = format!(
                "{what} lies on a device of kind {}, only memory of the processor is known",
                x.device.kind
            );
            return Err(Failure::new(Status::Unsupported, text));
        }
        let dtype = dtype(x.dtype)?;
        let rank = usize::try_from(x.ndim).ok().filter(|&rank| rank <= MAX_RANK);
        let rank = rank.ok_or_else(|| {
            Failure::new(Status::Shape, format!("{what} has {} axes, not 0 to {MAX_RANK}", x.ndim))
        })?;
        if rank > 0 && x.shape.is_null() {
            return Err(Failure::null(&format!("the shape of {what}")));
        }
        let list = |from: *const i64| match rank {
            0 => &[][..],
            // SAFETY: as the caller promises, and `from` is not null.
            _ => unsafe { std::slice::from_raw_parts(from, rank) },
        };
        let strides = (!x.strides.is_null()).then(|| list(x.strides));
        let data = match x.data.is_null() {
            true => std::ptr::null_mut(),
            false => x.data.cast::<u8>().wrapping_add(x.byte_offset as usize),
        };
        Self::new(dtype, list(x.shape), strides, data, what)
    }

    /// Checks a description; without strides it is row-major.
    pub(crate) fn new(
        dtype: DType,
        sizes: &[i64],
        strides: Option<&[i64]>,
        data: *mut u8,
        what: Arguments<'_>,
    ) -> Result<Self, Failure> {
        let size = |&size: &i64| usize::try_from(size).ok();
        let shape: Option<Vec<usize>> = sizes.iter().map(size).collect();
        let bytes = |n: usize| n.checked_mul(dtype.size()).filter(|&n| n <= isize::MAX as usize);
        let fits = |shape: &Vec<usize>| {
            let mut sizes = shape.iter().filter(|&&n| n > 0);
            sizes.try_fold(1usize, |n, &size| n.checked_mul(size)).and_then(bytes).is_some()
        };
        let shape = shape.filter(fits).ok_or_else(|| {
            Failure::new(Status::Shape, format!("{what} has the impossible shape {sizes:?}"))
        })?;
        let strides = match strides {
            None => row_major(&shape),
            Some(strides) => strides.iter().map(|&s| s as isize).collect(),
        };
        let empty = shape.contains(&0);
        let (mut below, mut above) = (0usize, 0usize);
        for (&n, &s) in shape.iter().zip(&strides).filter(|_| !empty) {
            let end = if s < 0 { &mut below } else { &mut above };
            let reach = (n - 1).checked_mul(s.unsigned_abs());
            let sum = reach.and_then(|reach| end.checked_add(reach));
            let fits = |n: &usize| n.checked_add(1).and_then(bytes).is_some();
            *end = sum.filter(fits).ok_or_else(|| {
                let text = format!("{what} has the impossible strides {strides:?}");
                Failure::new(Status::Shape, text)
            })?;
        }
        let first = match empty {
            true => NonNull::<u64>::dangling().as_ptr().cast(),
            false if data.is_null() => {
                return Err(Failure::null(&format!("the memory of {what}")));
            }
            false => data,
        };
        Ok(Self { dtype, shape, strides, first, below, above })
    }

    /// Inserts a leading axis of size 1.
    pub(crate) fn insert_axis(&mut self) {
        self.shape.insert(0, 1);
        self.strides.insert(0, 0);
    }

    /// Address range of the memory.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        let size = self.dtype.size();
        let start = (self.first as usize).wrapping_sub(self.below * size);
        match self.shape.contains(&0) {
            true => 0..0,
            false => start..start.wrapping_add((self.below + self.above + 1) * size),
        }
    }

    /// Converts to a tensor, without a copy if possible. Unaligned elements and booleans, whose bytes have to be checked, are
    /// copied.
    ///
    /// # Safety
    /// The memory is valid for reads and is not modified during the lifetime of `owner`.
    pub(crate) unsafe fn into_tensor(
        self,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<AnyTensor, Failure> {
        if self.shape.contains(&0) {
            return Ok(AnyTensor::zeros(&self.shape, self.dtype)?);
        }
        let aligned = (self.first as usize).is_multiple_of(self.dtype.align());
        if !aligned || self.dtype == DType::Bool {
            // SAFETY: as the caller promises, and `owner` lives.
            return unsafe { self.copy() };
        }
        let (size, len) = (self.dtype.size(), self.below + self.above + 1);
        let start = self.first.wrapping_sub(self.below * size);
        let start = NonNull::new(start).ok_or_else(|| Failure::null("memory"))?;
        let layout = Layout::from_parts(&self.shape, &self.strides, self.below, len)?;
        // SAFETY: as the caller promises; any bytes are elements of these dtypes.
        Ok(unsafe {
            let buffer = Buffer::from_foreign(start, len * size, owner);
            AnyTensor::from_buffer(buffer, layout, self.dtype)?
        })
    }

    /// Copies the elements to a new tensor.
    ///
    /// # Safety
    /// The memory is valid for reads.
    pub(crate) unsafe fn copy(&self) -> Result<AnyTensor, Failure> {
        let (size, numel) = (self.dtype.size(), self.shape.iter().product::<usize>());
        let (buffer, to) = fresh(numel * size)?;
        let mut at = to;
        walk(&self.shape, &self.strides, |place| {
            let from = self.first.wrapping_offset(place * size as isize);
            // SAFETY: element `place` is inside the memory, `at` inside the buffer, which has as many elements.
            unsafe {
                std::ptr::copy_nonoverlapping(from, at, size);
                if self.dtype == DType::Bool {
                    *at = u8::from(*at != 0);
                }
                at = at.add(size);
            }
        });
        let layout = Layout::contiguous("copy", &self.shape, size)?;
        // SAFETY: every element was written; booleans are 0 or 1.
        Ok(unsafe { AnyTensor::from_buffer(buffer, layout, self.dtype)? })
    }

    /// Copies a tensor of the same shape and dtype into the memory.
    ///
    /// # Safety
    /// The memory is valid for writes and does not overlap that of the tensor.
    pub(crate) unsafe fn write(&self, tensor: &AnyTensor) {
        let size = self.dtype.size();
        let from = tensor.buffer().as_ptr().wrapping_add(tensor.layout().offset() * size);
        let compact = |strides: &[isize]| {
            row_major(&self.shape)
                .iter()
                .zip(strides)
                .zip(&self.shape)
                .all(|((a, b), &n)| a == b || n == 1)
        };
        if self.shape.contains(&0) {
            return;
        }
        if compact(&self.strides) && compact(tensor.layout().strides()) {
            let bytes = self.shape.iter().product::<usize>() * size;
            // SAFETY: both ranges have this length in bytes and do not overlap.
            return unsafe { std::ptr::copy_nonoverlapping(from, self.first, bytes) };
        }
        let strides: Vec<[isize; 2]> =
            tensor.layout().strides().iter().zip(&self.strides).map(|(&a, &b)| [a, b]).collect();
        walk_both(&self.shape, &strides, |[a, b]| {
            let (from, to) = (
                from.wrapping_offset(a * size as isize),
                self.first.wrapping_offset(b * size as isize),
            );
            // SAFETY: the offsets are those of elements of the tensor and of the memory.
            unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
        });
    }

    /// True if sizes and strides guarantee that no two elements overlap. False negatives are possible.
    pub(crate) fn is_injective(&self) -> bool {
        let mut axes: Vec<(usize, usize)> = self
            .strides
            .iter()
            .zip(&self.shape)
            .filter(|&(_, &n)| n > 1)
            .map(|(s, &n)| (s.unsigned_abs(), n))
            .collect();
        axes.sort_unstable();
        let mut reach = 0;
        axes.into_iter().all(|(stride, n)| {
            let apart = stride > reach;
            reach += stride * (n - 1);
            apart
        })
    }
}

/// Allocates a buffer; returns it with the address of its first byte.
fn fresh(bytes: usize) -> Result<(Buffer, *mut u8), Failure> {
    let mut buffer = Buffer::alloc(bytes)?;
    let first = buffer
        .as_mut_ptr()
        .ok_or_else(|| Failure::new(Status::Internal, "fresh memory has two owners"))?;
    Ok((buffer, first))
}

pub(crate) fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) as isize;
    }
    strides
}

/// Calls `f` with the offset of each element in row-major order.
fn walk(shape: &[usize], strides: &[isize], mut f: impl FnMut(isize)) {
    let both: Vec<[isize; 2]> = strides.iter().map(|&s| [s, 0]).collect();
    walk_both(shape, &both, |[place, _]| f(place));
}

fn walk_both(shape: &[usize], strides: &[[isize; 2]], mut f: impl FnMut([isize; 2])) {
    let mut index = vec![0; shape.len()];
    let mut at = [0isize; 2];
    for _ in 0..shape.iter().product() {
        f(at);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            let back = if index[axis] == shape[axis] { index[axis] as isize } else { 0 };
            for (at, s) in at.iter_mut().zip(strides[axis]) {
                *at += s - s * back;
            }
            if back == 0 {
                break;
            }
            index[axis] = 0;
        }
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
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _tensor: AnyTensor,
}

unsafe extern "C" fn release(managed: *mut Managed) {
    // SAFETY: `context` is the box allocated by `give`; DLPack requires that the consumer calls the deleter once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Given>()) });
}

/// Shape, strides and dtype of a tensor in the types of DLPack.
pub(crate) fn description(tensor: &AnyTensor) -> Result<(Vec<i64>, Vec<i64>, DataType), Failure> {
    let shape = tensor.shape().iter().map(|&n| n as i64).collect();
    let strides = tensor.layout().strides().iter().map(|&s| s as i64).collect();
    Ok((shape, strides, data_type(tensor.dtype())?))
}

/// Describes a tensor. The result refers to the memory of the tensor, `shape` and `strides`.
pub(crate) fn view(
    tensor: &AnyTensor,
    shape: &[i64],
    strides: &[i64],
    dtype: DataType,
) -> DlTensor {
    let offset = tensor.layout().offset() * tensor.dtype().size();
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
    let (shape, strides, dtype) = description(&tensor)?;
    let version = Version { major: 1, minor: 1 };
    let own = view(&tensor, &shape, &strides, dtype);
    let managed = Managed {
        version,
        context: std::ptr::null_mut(),
        deleter: Some(release),
        flags,
        tensor: own,
    };
    let given =
        Box::leak(Box::new(Given { managed, _shape: shape, _strides: strides, _tensor: tensor }));
    let given = NonNull::from(given);
    // SAFETY: the box is leaked, so the pointer is valid; the second pointer is derived from it.
    unsafe {
        (*given.as_ptr()).managed.context = given.as_ptr().cast();
        Ok(NonNull::new_unchecked(&raw mut (*given.as_ptr()).managed))
    }
}
