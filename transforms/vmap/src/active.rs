//! Active calls of `vmap` on this thread.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::sync::Arc;

use burn_backend::Backend;
use burn_t4a::ext::tape::released;

use crate::backend::Vmap;
use crate::random::Random;

/// State of an active call.
pub(crate) struct ActiveCall {
    backend: TypeId,
    /// Primitive types of the inner backend, which identify the tensors of this call.
    primitives: [TypeId; 4],
    /// Token held by every batched tensor of this call.
    held: Arc<()>,
    pub(crate) mode: Random,
    pub(crate) size: usize,
    /// Draws of the first chunk, replayed in later chunks.
    pub(crate) drawn: Vec<Box<dyn Any>>,
    /// Number of draws of `drawn` that this chunk has consumed.
    pub(crate) seen: usize,
    pub(crate) first_chunk: bool,
    /// True if the chunk contains all examples.
    pub(crate) whole: bool,
}

thread_local! {
    static CALLS: RefCell<Vec<ActiveCall>> = const { RefCell::new(Vec::new()) };
}

/// Guard of an active call.
pub(crate) struct CallGuard {
    held: Arc<()>,
}

impl CallGuard {
    pub(crate) fn start<B: Backend>(mode: Random) -> Self {
        let held = Arc::new(());
        let call = ActiveCall {
            backend: TypeId::of::<Vmap<B>>(),
            primitives: [
                TypeId::of::<B::FloatTensorPrimitive>(),
                TypeId::of::<B::IntTensorPrimitive>(),
                TypeId::of::<B::BoolTensorPrimitive>(),
                TypeId::of::<B::QuantizedTensorPrimitive>(),
            ],
            held: held.clone(),
            mode,
            size: 0,
            drawn: Vec::new(),
            seen: 0,
            first_chunk: true,
            whole: true,
        };
        CALLS.with_borrow_mut(|calls| calls.push(call));
        Self { held }
    }

    /// Starts the next chunk, with `size` examples; `whole` if these are all.
    pub(crate) fn chunk(&self, size: usize, first: bool, whole: bool) {
        CALLS.with_borrow_mut(|calls| {
            if let Some(call) = calls.last_mut() {
                (call.size, call.seen) = (size, 0);
                (call.first_chunk, call.whole) = (first, whole);
            }
        });
    }

    /// True if a batched tensor of the call has outlived it.
    pub(crate) fn keeps(self) -> bool {
        let held = self.held.clone();
        drop(self);
        !released(&held)
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        CALLS.with_borrow_mut(Vec::pop);
    }
}

/// Applies `f` to the innermost call of this backend.
pub(crate) fn with_call<R>(backend: TypeId, f: impl FnOnce(&mut ActiveCall) -> R) -> Option<R> {
    CALLS.with_borrow_mut(|calls| calls.iter_mut().rev().find(|c| c.backend == backend).map(f))
}

/// Token of the innermost call with this primitive type, to be held by a tensor.
pub(crate) fn call_of<P: 'static>() -> Option<Arc<()>> {
    let primitive = TypeId::of::<P>();
    CALLS.with_borrow(|calls| {
        let own = calls.iter().rev().find(|call| call.primitives.contains(&primitive));
        own.map(|call| call.held.clone())
    })
}
