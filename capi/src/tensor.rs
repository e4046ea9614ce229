//! Handles of tensors: immutable, reference-counted, usable from any thread.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;

use t4a_tensor::AnyTensor;

use crate::described::Described;
use crate::dlpack::{self, DataType, DlTensor, FLAG_READ_ONLY, Managed, Taken};
use crate::error::{Error, Failure, Status, enter};
use crate::handle;

/// Flag: the consumer may write to the tensor; the elements are copied if they are shared.
pub const WRITABLE: u32 = 1;
/// Flag: column-major strides; the elements are copied if they have others.
pub const COLUMN_MAJOR: u32 = 2;
/// Flag: any strides; without it row-major ones.
pub const STRIDED: u32 = 4;

/// A handle.
#[derive(Debug)]
pub struct Tensor {
    pub(crate) any: AnyTensor,
    view: DlTensor,
    _sizes: Vec<i64>,
}

// SAFETY: the pointers of `view` refer to memory that the handle owns and that is never written.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Tensor {
    pub(crate) fn handle(any: AnyTensor) -> Result<*const Tensor, Failure> {
        let (sizes, dtype) = dlpack::description(&any)?;
        let view = dlpack::view(&any, &sizes, dtype);
        let tensor = Arc::new(Self { any, view, _sizes: sizes });
        Ok(handle::made(Arc::into_raw(tensor)))
    }

    /// Releases a handle; does nothing for null.
    ///
    /// # Safety
    /// `tensor` is null or a handle that was not released.
    pub(crate) unsafe fn release(tensor: *const Tensor) {
        if handle::released(tensor) {
            // SAFETY: as the caller promises.
            drop(unsafe { Arc::from_raw(tensor) });
        }
    }
}

/// Writes a handle to `out`.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn put(out: *mut *const Tensor, any: AnyTensor) -> Result<(), Failure> {
    let out = NonNull::new(out).ok_or_else(|| Failure::null("the place of the result"))?;
    let handle = Tensor::handle(any)?;
    // SAFETY: as the caller promises.
    unsafe { out.write(handle) };
    Ok(())
}

/// Takes ownership of a tensor, without a copy where the engine can use it directly. Its deleter is called once:
/// when the last handle is released, or here in case of an error.
///
/// # Safety
/// `managed` is null or valid, and its memory stays as it is until the deleter is called; `out` and `error`
/// are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_tensor_take(
    managed: *mut Managed,
    out: *mut *const Tensor,
    error: *mut *mut Error,
) -> c_int {
    let take = || {
        let managed = NonNull::new(managed).ok_or_else(|| Failure::null("the tensor"))?;
        // SAFETY: as the caller promises.
        let owner = unsafe { Taken::new(managed) };
        if out.is_null() {
            return Err(Failure::null("the place of the result"));
        }
        // SAFETY: the version has its place in every version.
        let version = unsafe { (*managed.as_ptr()).version };
        if version.major != 1 {
            let text = format!("DLPack {}.{} is given, 1 is known", version.major, version.minor);
            return Err(Failure::new(Status::Unsupported, text));
        }
        // SAFETY: as the caller promises.
        unsafe {
            let described =
                Described::read(&raw const (*managed.as_ptr()).tensor, format_args!("the tensor"))?;
            put(out, described.tensor(None, Box::new(owner))?)
        }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, take) }
}

/// Copies a tensor that the caller keeps.
///
/// # Safety
/// `tensor` is null or valid; `out` and `error` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_tensor_copy(
    tensor: *const DlTensor,
    out: *mut *const Tensor,
    error: *mut *mut Error,
) -> c_int {
    let copy = || {
        // SAFETY: as the caller promises.
        unsafe { put(out, Described::read(tensor, format_args!("the tensor"))?.copy()?) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, copy) }
}

/// Copies a tensor to its own memory.
pub(crate) fn duplicate(any: &AnyTensor) -> Result<AnyTensor, Failure> {
    let (buffer, layout) = (any.buffer().duplicate()?, any.layout().clone());
    // SAFETY: the same elements in another buffer.
    Ok(unsafe { AnyTensor::from_buffer(buffer, layout, any.dtype())? })
}

fn arranged(any: AnyTensor, flags: u32) -> Result<AnyTensor, Failure> {
    if flags & COLUMN_MAJOR != 0 {
        let axes: Vec<usize> = (0..any.rank()).rev().collect();
        return Ok(any.permute(&axes)?.to_contiguous()?.permute(&axes)?);
    }
    if flags & STRIDED != 0 {
        return Ok(any);
    }
    Ok(any.to_contiguous()?)
}

/// Passes a tensor to a consumer and releases the handle, also in case of an error. No copy is made if strides
/// match and, for [`WRITABLE`], the elements are not shared.
///
/// # Safety
/// `tensor` is null or a handle that was not released; `out` and `error` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_tensor_give(
    tensor: *const Tensor,
    flags: u32,
    out: *mut *mut Managed,
    error: *mut *mut Error,
) -> c_int {
    let give = || {
        if tensor.is_null() {
            return Err(Failure::null("the tensor"));
        }
        if !handle::released(tensor) {
            return Err(Failure::argument("the tensor is a handle that was released"));
        }
        // SAFETY: as the caller promises.
        let held = unsafe { Arc::from_raw(tensor) };
        let out = NonNull::new(out).ok_or_else(|| Failure::null("the place of the result"))?;
        if flags & !(WRITABLE | COLUMN_MAJOR | STRIDED) != 0 {
            return Err(Failure::argument(format!("there are no flags {flags:#x}")));
        }
        let any = match Arc::try_unwrap(held) {
            Ok(held) => held.any,
            Err(held) => held.any.clone(),
        };
        let mut any = arranged(any, flags)?;
        let mut read_only = 0;
        if any.buffer().is_shared() {
            read_only = FLAG_READ_ONLY;
            if flags & WRITABLE != 0 {
                any = duplicate(&any)?;
                read_only = 0;
            }
        }
        let given = dlpack::give(any, read_only)?;
        // SAFETY: as the caller promises.
        unsafe { out.write(given.as_ptr()) };
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, give) }
}

/// Creates one more handle of the same tensor: the same pointer, to be released once more.
///
/// # Safety
/// `tensor` is null or a handle that was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_tensor_retain(tensor: *const Tensor) -> *const Tensor {
    // SAFETY: as the caller promises.
    match unsafe { handle::get(tensor, "the tensor") } {
        Ok(_) => {
            // SAFETY: as the caller promises.
            unsafe { Arc::increment_strong_count(tensor) };
            handle::made(tensor)
        }
        Err(_) => std::ptr::null(),
    }
}

/// Releases a handle; does nothing for null.
///
/// # Safety
/// `tensor` is null or a handle that was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_tensor_release(tensor: *const Tensor) {
    // SAFETY: as the caller promises.
    unsafe { Tensor::release(tensor) };
}

/// Elements of a tensor, valid while a handle exists; null for null.
///
/// # Safety
/// `tensor` is null or a handle that was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_tensor_view(tensor: *const Tensor) -> *const DlTensor {
    // SAFETY: as the caller promises.
    unsafe { handle::get(tensor, "the tensor") }
        .map_or(std::ptr::null(), |tensor| &raw const tensor.view)
}

/// Shape and dtype.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TensorMeta {
    /// `sizeof` of the struct.
    pub size: usize,
    /// Number of axes.
    pub rank: i32,
    /// Element type.
    pub dtype: DataType,
    /// Sizes of the axes.
    pub shape: [i64; dlpack::MAX_RANK],
}
