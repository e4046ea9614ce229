//! Removal of Burn's records of operations on constants during a forward pass.
//!
//! Burn 0.21 makes a graph of about 2 KiB for every operation on constants of a tape, and keeps it until the next
//! `backward` ends. With a small carry these records would dominate the memory of a scan, so it runs a `backward`
//! periodically.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{Backend, Shape, TensorMetadata};
use burn_tensor::{Tensor, TensorPrimitive};

use crate::ext::tape::Tracked;

/// Minimum number of steps between removals, below which a thread costs more.
const LEAST: usize = 128;

/// Time to wait for a removal; it is sufficient on a machine that is not busy. A removal never ends while a reverse
/// pass waits for this thread.
const PATIENCE: Duration = Duration::from_millis(100);

thread_local! {
    /// True while a reverse pass waits for this thread.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Signals the end of a removal that this thread has started and not waited for.
    static ASKED: Cell<Option<Receiver<()>>> = const { Cell::new(None) };
}

/// Returns true if a reverse pass waits for this thread.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Calls `f` on behalf of a waiting reverse pass.
pub(crate) fn inside<R>(f: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _before = Before(INSIDE.replace(true));
    f()
}

/// Called after each step of a forward pass: every √N steps runs a `backward` of a constant, unless the last one
/// has not ended. Returns false if no further calls are needed.
pub(super) fn forget<B: Backend, C: CheckpointStrategy>(
    steps: usize,
    done: usize,
    like: &Tracked<B, C>,
) -> bool {
    // A reverse pass holds the locks.
    if is_inside() {
        return false;
    }
    let kept = ((steps as f64).sqrt().ceil() as usize).max(LEAST);
    if !done.is_multiple_of(kept) {
        return true;
    }
    if let Some(asked) = ASKED.take()
        && asked.recv_timeout(Duration::ZERO) == Err(RecvTimeoutError::Timeout)
    {
        ASKED.set(Some(asked));
        return true;
    }
    let device = Autodiff::<B, C>::float_device(like);
    let number = Autodiff::<B, C>::float_zeros(Shape::from([1]), &device, like.dtype().into());
    let number = Autodiff::<B, C>::float_set_require_grad(number, true);
    let root = TensorPrimitive::Float(number);
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("scan records".into()).spawn(move || {
        drop(Tensor::<Autodiff<B, C>, 1>::from_primitive(root).backward());
        let _ = sender.send(());
    });
    if thread.is_err() {
        return false;
    }
    if receiver.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        ASKED.set(Some(receiver));
    }
    true
}
