//! Burn's records of operations, and when it forgets them.
//!
//! Burn 0.21 makes a graph for every operation on constants of a tape, about 2 KiB, and keeps it until the
//! next `backward` ends. A scan whose steps run so asks for that now and then: with a small carry these
//! records would be all of its memory.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{Backend, Shape, TensorMetadata};
use burn_tensor::{Tensor, TensorPrimitive};

use crate::ext::tape::Tracked;

/// Fewer steps than these are not worth a thread.
const LEAST: usize = 128;

/// Longer than forgetting takes on a machine that is not busy. Where a reverse pass waits for this thread it
/// never ends.
const PATIENCE: Duration = Duration::from_millis(100);

thread_local! {
    /// True while a reverse pass waits for this thread.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The end of a pass that this thread has started and did not wait for.
    static ASKED: Cell<Option<Receiver<()>>> = const { Cell::new(None) };
}

/// True if a reverse pass waits for this thread.
pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// Calls `f`, for which a reverse pass waits.
pub(super) fn inside<R>(f: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _before = Before(INSIDE.replace(true));
    f()
}

/// After a step of a forward pass: every √N steps a `backward` of nothing, unless the last one has not ended.
/// Returns whether to ask again.
pub(super) fn forget<B: Backend, C: CheckpointStrategy>(
    steps: usize,
    done: usize,
    like: &Tracked<B, C>,
) -> bool {
    // Inside of a reverse pass that holds the locks.
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
