//! Burn's records of operations, and when it forgets them.
//!
//! Burn 0.21 makes a graph for every operation on constants of a tape, about 2 KiB, and keeps it until the
//! next `backward` ends. A scan whose steps run so asks for that now and then: with a small carry these
//! records would be all of its memory.

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::time::Duration;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::Device;
use burn_backend::{AutodiffBackend, Backend, DType, Shape};
use burn_tensor::{Tensor, TensorPrimitive};

use crate::ext::tape::Tracked;

/// Fewer steps than these are not worth a thread.
const LEAST: usize = 128;

/// Much longer than forgetting takes. Where a reverse pass waits for this thread it would never end.
const PATIENCE: Duration = Duration::from_millis(100);

thread_local! {
    /// Whether a reverse pass waits for this thread.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
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

/// A number that is tracked.
pub(super) fn leaf<B: Backend, C: CheckpointStrategy>(
    device: &Device<B>,
    dtype: DType,
) -> Tracked<B, C> {
    let number = B::float_zeros(Shape::from([1]), device, dtype.into());
    let number = Autodiff::<B, C>::from_inner(number);
    <Autodiff<B, C> as FloatTensorOps<_>>::float_set_require_grad(number, true)
}

/// The records of a forward pass of many steps.
pub(super) struct Records<B: Backend> {
    device: Device<B>,
    dtype: DType,
    /// Of how many steps they are kept; none at all inside of a reverse pass, which holds the locks.
    kept: Option<usize>,
    steps: usize,
}

impl<B: Backend> Records<B> {
    /// As many steps' records as carries are kept by default.
    pub(super) fn new(steps: usize, device: Device<B>, dtype: DType) -> Self {
        let kept = (steps as f64).sqrt().ceil() as usize;
        Self { device, dtype, kept: (!INSIDE.get()).then_some(kept.max(LEAST)), steps: 0 }
    }

    /// After each step.
    pub(super) fn step<C: CheckpointStrategy>(&mut self) {
        self.steps += 1;
        if self.kept.is_some_and(|kept| self.steps.is_multiple_of(kept)) && !self.forget::<C>() {
            self.kept = None;
        }
    }

    /// A `backward` of nothing. Returns whether it has ended.
    fn forget<C: CheckpointStrategy>(&self) -> bool {
        let root = TensorPrimitive::Float(leaf::<B, C>(&self.device, self.dtype));
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("scan records".into()).spawn(move || {
            drop(Tensor::<Autodiff<B, C>, 1>::from_primitive(root).backward());
            let _ = sender.send(());
        });
        thread.is_ok() && receiver.recv_timeout(PATIENCE).is_ok()
    }
}
