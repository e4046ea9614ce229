//! Handles of cuSOLVER and cuBLAS, one set per device and concurrent call.
//!
//! CubeCL has no public function for its CUDA streams. Each set therefore has a stream of its own: the caller waits
//! for CubeCL before the calls, and [`with_library`] waits for the stream after them.

use core::cell::RefCell;
use core::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::cublas::sys as blas;
use cudarc::cusolver::sys as solver;
use cudarc::driver::{result as driver, sys as cuda};

use super::memory::Client;
use crate::launch::Operand;

/// Text of an error of the driver or of a library.
pub(super) type Failure = String;

/// Handles for one device.
pub(super) struct Library {
    device: usize,
    context: cuda::CUcontext,
    stream: cuda::CUstream,
    pub(super) solver: solver::cusolverDnHandle_t,
    pub(super) blas: blas::cublasHandle_t,
    /// Parameters of Jacobi methods, with their default values.
    pub(super) jacobi: solver::gesvdjInfo_t,
    /// Memory that the work on the stream uses.
    held: RefCell<Vec<Box<dyn Send>>>,
}

// SAFETY: CUDA permits the use of these handles by any thread, one at a time; a set is owned by one call at a time.
unsafe impl Send for Library {}

/// Sets that no call uses. Creation takes about half a second, so they are kept until the process ends.
static IDLE: Mutex<Vec<Library>> = Mutex::new(Vec::new());

/// Returns true if the libraries can be loaded; their functions panic otherwise.
pub(super) fn is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    *PRESENT.get_or_init(|| {
        // SAFETY: loads libraries of NVIDIA, whose initialisation has no requirements.
        unsafe {
            cuda::is_culib_present() && solver::is_culib_present() && blas::is_culib_present()
        }
    })
}

/// Converts a status of cuSOLVER.
pub(super) fn solved(status: solver::cusolverStatus_t) -> Result<(), Failure> {
    match status {
        solver::cusolverStatus_t::CUSOLVER_STATUS_SUCCESS => Ok(()),
        status => Err(format!("{status:?}")),
    }
}

/// Converts a status of cuBLAS.
pub(super) fn multiplied(status: blas::cublasStatus_t) -> Result<(), Failure> {
    match status {
        blas::cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        status => Err(format!("{status:?}")),
    }
}

fn driven<T>(result: Result<T, driver::DriverError>) -> Result<T, Failure> {
    result.map_err(|error| format!("{error:?}"))
}

/// The primary context of a device, current on this thread until the value is dropped.
struct Current;

impl Current {
    fn new(context: cuda::CUcontext) -> Result<Self, Failure> {
        // SAFETY: primary contexts are never released here.
        driven(unsafe { cuda::cuCtxPushCurrent_v2(context) }.result())?;
        Ok(Self)
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: removes the context that `new` has added. An error leaves the context current, which is harmless.
        let _ = unsafe { cuda::cuCtxPopCurrent_v2(&mut context) };
    }
}

/// The primary context of a device, which CubeCL uses too.
fn primary(device: usize) -> Result<cuda::CUcontext, Failure> {
    driven(driver::init())?;
    let ordinal = i32::try_from(device).map_err(|error| error.to_string())?;
    let device = driven(driver::device::get(ordinal))?;
    // SAFETY: the device exists.
    driven(unsafe { driver::primary_ctx::retain(device) })
}

impl Library {
    /// Requires that the context is current.
    fn new(device: usize, context: cuda::CUcontext) -> Result<Self, Failure> {
        let stream = driven(driver::stream::create(driver::stream::StreamKind::NonBlocking))?;
        let mut library = Self {
            device,
            context,
            stream,
            solver: null_mut(),
            blas: null_mut(),
            jacobi: null_mut(),
            held: RefCell::default(),
        };
        // SAFETY: the context is current, the pointers are valid for writes, and the stream is never destroyed.
        unsafe {
            solved(solver::cusolverDnCreate(&mut library.solver))?;
            solved(solver::cusolverDnSetStream(library.solver, stream.cast()))?;
            solved(solver::cusolverDnCreateGesvdjInfo(&mut library.jacobi))?;
            multiplied(blas::cublasCreate_v2(&mut library.blas))?;
            multiplied(blas::cublasSetStream_v2(library.blas, stream.cast()))?;
        }
        Ok(library)
    }

    /// Address of an operand, whose memory is held until [`with_library`] has waited for the stream.
    pub(super) fn address<T>(&self, client: &Client, of: &Operand) -> Result<*mut T, Failure> {
        let memory =
            client.get_resource(of.handle.clone()).map_err(|error| format!("{error:?}"))?;
        let address = memory.resource().ptr as *mut T;
        self.held.borrow_mut().push(Box::new(memory));
        Ok(address)
    }

    /// Copies elements between arrays in the memory of the device.
    ///
    /// # Safety
    /// Both arrays have `len` elements and do not overlap.
    pub(super) unsafe fn copy<T>(
        &self,
        to: *mut T,
        from: *const T,
        len: usize,
    ) -> Result<(), Failure> {
        let bytes = len * size_of::<T>();
        // SAFETY: as required of the caller.
        driven(unsafe { driver::memcpy_dtod_async(to as u64, from as u64, bytes, self.stream) })
    }

    fn finish(&self) -> Result<(), Failure> {
        // SAFETY: the stream is never destroyed.
        driven(unsafe { driver::stream::synchronize(self.stream) })
    }
}

/// Calls `run` with handles for the device, whose context is current, and waits for the work that it enqueues.
///
/// # Errors
/// Those of `run`, of the creation of handles, and of the work; the handles are not used again in this case.
pub(super) fn with_library<T>(
    device: usize,
    run: impl FnOnce(&Library) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let idle = {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        idle.iter().position(|library| library.device == device).map(|at| idle.swap_remove(at))
    };
    let context = match &idle {
        Some(library) => library.context,
        None => primary(device)?,
    };
    let _current = Current::new(context)?;
    let library = match idle {
        Some(library) => library,
        None => Library::new(device, context)?,
    };
    let result = run(&library);
    // Work that was enqueued before an error may still use the memory.
    let finished = library.finish();
    library.held.borrow_mut().clear();
    let result = result?;
    finished?;
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(library);
    Ok(result)
}
