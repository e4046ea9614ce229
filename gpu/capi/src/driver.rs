//! Functions of the CUDA driver, which is loaded at run time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{
    self, CUDA_MEMCPY2D, CUcontext, CUmemorytype, CUstream, CUstreamCaptureStatus,
};
use t4a::error::{Failure, Status};

/// Error of a function of the driver.
pub(crate) fn failed(what: &str, error: DriverError) -> Failure {
    let status = match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Status::Memory,
        _ => Status::Internal,
    };
    Failure::new(status, format!("CUDA: {what}: {error}"))
}

/// Number of CUDA devices.
///
/// # Errors
/// `Unsupported` without a driver or without devices.
pub(crate) fn devices() -> Result<usize, Failure> {
    static FOUND: OnceLock<Result<usize, String>> = OnceLock::new();
    let count = || {
        // SAFETY: loads the library of the driver.
        if !unsafe { sys::is_culib_present() } {
            return Err("there is no CUDA driver (libcuda)".to_owned());
        }
        result::init().map_err(|e| format!("the CUDA driver does not start: {e}"))?;
        let count = result::device::get_count().map_err(|e| e.to_string())?;
        usize::try_from(count)
            .ok()
            .filter(|&count| count > 0)
            .ok_or("there is no CUDA device".to_owned())
    };
    let protected = || {
        catch_unwind(AssertUnwindSafe(count))
            .unwrap_or_else(|_| Err("the CUDA driver does not start".to_owned()))
    };
    FOUND.get_or_init(protected).clone().map_err(|text| Failure::new(Status::Unsupported, text))
}

/// The primary context of a device, current on this thread until it is dropped.
pub(crate) struct Current;

impl Current {
    /// # Errors
    /// For a device that does not exist.
    pub(crate) fn enter(device: usize) -> Result<Self, Failure> {
        /// The address of the context of each device, retained for the lifetime of the process.
        static CONTEXTS: OnceLock<Vec<OnceLock<usize>>> = OnceLock::new();
        let count = devices()?;
        let contexts = CONTEXTS.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
        let slot = contexts.get(device).ok_or_else(|| {
            Failure::new(
                Status::Unsupported,
                format!("there is no CUDA device {device}, but {count} of them"),
            )
        })?;
        let retain = || -> Result<CUcontext, DriverError> {
            let device = result::device::get(device as i32)?;
            // SAFETY: a device of the driver.
            unsafe { result::primary_ctx::retain(device) }
        };
        let context = match slot.get() {
            Some(&context) => context,
            None => {
                let made = retain().map_err(|e| failed("the context of a device", e))?;
                *slot.get_or_init(|| made as usize)
            }
        };
        // SAFETY: a context that is never released.
        unsafe { sys::cuCtxPushCurrent_v2(context as CUcontext) }
            .result()
            .map_err(|e| failed("the context of a device", e))?;
        Ok(Self)
    }

    /// Waits for all work of the context, on all streams.
    pub(crate) fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: a context is current.
        unsafe { sys::cuCtxSynchronize() }
            .result()
            .map_err(|e| failed("earlier work on the device", e))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut context = std::ptr::null_mut();
        // SAFETY: `enter` pushed it on this thread.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut context) };
    }
}

/// A stream of the caller.
#[derive(Clone, Copy)]
pub(crate) struct CallerStream(CUstream);

impl CallerStream {
    /// A stream as DLPack numbers it: 0 or 1 is the legacy default stream, 2 the default stream of the thread, −1 no stream
    /// to wait for.
    pub(crate) fn of(number: i64) -> Result<Self, Failure> {
        match number {
            -1 | 0 => Ok(Self(std::ptr::null_mut())),
            1.. => Ok(Self(number as usize as CUstream)),
            _ => Err(Failure::argument(format!("there is no stream {number}"))),
        }
    }

    /// # Errors
    /// While the stream is captured as a graph.
    pub(crate) fn check(self) -> Result<(), Failure> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: a stream of the caller.
        unsafe { sys::cuStreamIsCapturing(self.0, &raw mut status) }
            .result()
            .map_err(|e| failed("the stream", e))?;
        match status {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => Ok(()),
            _ => Err(Failure::new(
                Status::Unsupported,
                "operations cannot be captured as a CUDA graph",
            )),
        }
    }

    /// Waits for the stream.
    pub(crate) fn synchronize(self) -> Result<(), Failure> {
        // SAFETY: a stream of the caller.
        unsafe { sys::cuStreamSynchronize(self.0) }
            .result()
            .map_err(|e| failed("work of the caller on its stream", e))
    }

    /// Copies bytes on the device.
    ///
    /// # Safety
    /// Both ranges are memory of the device.
    pub(crate) unsafe fn copy(self, from: u64, to: u64, bytes: usize) -> Result<(), Failure> {
        // SAFETY: as the caller promises.
        unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.0) }
            .result()
            .map_err(|e| failed("the copy of an operand", e))
    }

    /// Copies `rows` rows of `width` bytes, which are `pitch` bytes apart, to consecutive memory.
    ///
    /// # Safety
    /// As [`CallerStream::copy`].
    pub(crate) unsafe fn copy_rows(
        self,
        from: u64,
        to: u64,
        [rows, width, pitch]: [usize; 3],
    ) -> Result<(), Failure> {
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: from,
            srcArray: std::ptr::null_mut(),
            srcPitch: pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: to,
            dstArray: std::ptr::null_mut(),
            dstPitch: width,
            WidthInBytes: width,
            Height: rows,
        };
        // SAFETY: as the caller promises.
        unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, self.0) }
            .result()
            .map_err(|e| failed("the copy of an operand", e))
    }
}
