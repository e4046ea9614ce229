//! Panics of the thread of CubeCL that serves a device. They end a task but not the thread: a kernel whose memory cannot be
//! allocated is skipped, and its result keeps old bytes. A hook records them, so that the call fails.

use std::panic::{
    AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind, set_hook, take_hook,
};
use std::sync::{Mutex, Once, PoisonError};

use cubecl::cuda::CudaDevice;
use t4a::error::{Failure, Status};

use crate::run::wait;

/// The first panic since the last [`take`].
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Maximum number of characters of the message of a panic.
const LENGTH: usize = 300;

/// True on a thread of CubeCL that serves a device: it is named `DSU-…` or `DSD-…`.
fn serves_a_device() -> bool {
    let current = std::thread::current();
    current.name().is_some_and(|name| name.starts_with("DSU-") || name.starts_with("DSD-"))
}

fn record(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let text = text.split_once("an `Err` value: ").map_or(text, |(_, error)| error);
    let line = text.lines().next().unwrap_or(text).chars().take(LENGTH).collect();
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(line);
}

/// Installs the hook of this library; other panics keep theirs.
fn watch() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| match serves_a_device() {
            true => record(panic),
            false => others(panic),
        }));
    });
}

fn take() -> Option<Failure> {
    let text = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    let memory = ["allocate buffer", "OUT_OF_MEMORY"].iter().any(|name| text.contains(name));
    Some(match memory {
        true => Failure::new(Status::Memory, format!("CUDA: no memory on the device: {text}")),
        false => Failure::new(Status::Internal, format!("CUDA: a fault of CubeCL: {text}")),
    })
}

/// Runs work on a device that is complete when `work` returns. Errors of its tasks are errors of this work, not of later work.
pub(crate) fn observed<T>(
    device: &CudaDevice,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    watch();
    drop(take());
    let done = catch_unwind(AssertUnwindSafe(work));
    if !matches!(done, Ok(Ok(_))) {
        // Tasks that were started before the failure, with their errors.
        let _ = catch_unwind(AssertUnwindSafe(|| wait(device)));
    }
    match take() {
        Some(fault) => Err(fault),
        None => done.unwrap_or_else(|panic| resume_unwind(panic)),
    }
}
