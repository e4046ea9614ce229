//! Exported tensors. The memory of a tensor returns to CubeCL after its last consumer released it and the context was
//! idle, since kernels of the consumer may still read it.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use cubecl::server::Handle;
use t4a::dlpack::{CUDA, DataType, Device, DlTensor, MAX_RANK, Managed, Version};
use t4a::error::{Error, Failure, Status, enter};
use t4a::op::list;

use crate::driver::Current;

/// Memory of consumers that released it, with its device.
static RELEASED: Mutex<Vec<(usize, Handle)>> = Mutex::new(Vec::new());

/// Memory of an exported tensor.
struct Held {
    device: usize,
    handle: Option<Handle>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            let mut released = RELEASED.lock().unwrap_or_else(PoisonError::into_inner);
            released.push((self.device, handle));
        }
    }
}

/// Returns released memory of the device of this context to CubeCL, after all work of the context.
pub(crate) fn reclaim(current: &Current, device: usize) -> Result<(), Failure> {
    let of_device = |x: &mut (usize, Handle)| x.0 == device;
    let released: Vec<(usize, Handle)> = {
        let mut all = RELEASED.lock().unwrap_or_else(PoisonError::into_inner);
        all.extract_if(.., of_device).collect()
    };
    if released.is_empty() {
        return Ok(());
    }
    let done = current.synchronize();
    if done.is_err() {
        RELEASED.lock().unwrap_or_else(PoisonError::into_inner).extend(released);
    }
    done
}

/// A tensor before its export, row-major.
pub(crate) struct CudaResult {
    pub(crate) device: usize,
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<usize>,
    /// Address and memory; `None` without elements.
    pub(crate) memory: Option<(u64, Handle)>,
}

/// An exported tensor with its shape and strides.
struct ExportedMemory {
    managed: Managed,
    sizes: Vec<i64>,
    held: Arc<Held>,
}

unsafe extern "C" fn release(managed: *mut Managed) {
    // SAFETY: `context` is the box of `give`; DLPack requires that the consumer calls the deleter once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<ExportedMemory>()) });
}

/// Shape followed by row-major strides.
fn sizes(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for i in (1..shape.len()).rev() {
        // Only tensors without elements can have larger strides.
        strides[i - 1] = strides[i].saturating_mul(shape[i].max(1));
    }
    [shape, &strides].concat()
}

fn give(
    data: *mut c_void,
    device: Device,
    dtype: DataType,
    shape: &[i64],
    held: Arc<Held>,
) -> NonNull<Managed> {
    let tensor = DlTensor {
        data,
        device,
        ndim: shape.len() as i32,
        dtype,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = Managed {
        version: Version { major: 1, minor: 1 },
        context: std::ptr::null_mut(),
        deleter: Some(release),
        flags: 0,
        tensor,
    };
    let given = Box::leak(Box::new(ExportedMemory { managed, sizes: sizes(shape), held }));
    let rank = shape.len();
    given.managed.tensor.shape = given.sizes.as_mut_ptr();
    given.managed.tensor.strides = given.sizes.as_mut_ptr().wrapping_add(rank);
    let given = NonNull::from(given);
    // SAFETY: the box is leaked, so the pointer is valid; the second pointer is derived from it.
    unsafe {
        (*given.as_ptr()).managed.context = given.as_ptr().cast();
        NonNull::new_unchecked(&raw mut (*given.as_ptr()).managed)
    }
}

impl CudaResult {
    /// Exports the tensor to a consumer, which releases it by the deleter.
    pub(crate) fn give(self) -> NonNull<Managed> {
        let device = Device { kind: CUDA, id: self.device as i32 };
        let shape: Vec<i64> = self.shape.iter().map(|&n| n as i64).collect();
        let (data, handle) = self.memory.map_or((0, None), |(at, handle)| (at, Some(handle)));
        let held = Arc::new(Held { device: self.device, handle });
        give(data as usize as *mut c_void, device, self.dtype, &shape, held)
    }
}

/// Exports the memory of a result once more, row-major with this shape.
///
/// # Safety
/// `tensor` is null or a result of this library that was not released; `shape` is null or valid for `rank` numbers; `out` and
/// `error` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_cuda_share(
    tensor: *const Managed,
    shape: *const i64,
    rank: i32,
    out: *mut *mut Managed,
    error: *mut *mut Error,
) -> c_int {
    let share = || {
        // SAFETY: as the caller promises.
        let managed = unsafe { tensor.as_ref() }.ok_or_else(|| Failure::null("the tensor"))?;
        if managed.deleter.is_none_or(|f| f as usize != release as *const () as usize) {
            return Err(Failure::argument("the tensor is not a result of this library"));
        }
        let out = NonNull::new(out).ok_or_else(|| Failure::null("the place of the result"))?;
        let rank = usize::try_from(rank).ok().filter(|&rank| rank <= MAX_RANK);
        let rank = rank.ok_or_else(|| {
            Failure::new(Status::Shape, format!("0 to {MAX_RANK} axes are required"))
        })?;
        // SAFETY: as the caller promises.
        let shape = unsafe { list(shape, rank, "the shape") }?;
        // SAFETY: a result of this library, whose context is the box of `give`.
        let given = unsafe { &*managed.context.cast::<ExportedMemory>() };
        let own = &given.sizes[..given.sizes.len() / 2];
        let count = |shape: &[i64]| shape.iter().try_fold(1i64, |n, &size| n.checked_mul(size));
        if shape.iter().any(|&n| n < 0) || count(shape) != count(own) {
            let text = format!("the shape {shape:?} for a tensor of shape {own:?}");
            return Err(Failure::new(Status::Shape, text));
        }
        let DlTensor { data, device, dtype, .. } = managed.tensor;
        let made = give(data, device, dtype, shape, given.held.clone());
        // SAFETY: as the caller promises.
        unsafe { out.write(made.as_ptr()) };
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, share) }
}
