//! What examples share where the mapped function draws random numbers.

use std::any::{Any, TypeId};
use std::cell::RefCell;

use burn_backend::{Backend, Shape};

use crate::backend::{Vmap, refuse};
use crate::kind::{Kind, Primitive};
use crate::movement::Mapped;
use crate::tensor::VmapTensor;

/// Random numbers inside of a mapped function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Random {
    /// They are an error: nobody has said what examples share.
    #[default]
    Error,
    /// Every example sees the same numbers, in every chunk.
    Same,
    /// Every example has its own. A draw is one of shape `[batch, …]` from the generator of the backend
    /// below: examples in order, draw by draw, chunk by chunk.
    Different,
}

/// The calls of `vmap` that run on this thread.
struct Call {
    backend: TypeId,
    mode: Random,
    size: usize,
    /// What the first chunk drew, for the chunks behind it.
    drawn: Vec<Box<dyn Any>>,
    /// How many draws of `drawn` this chunk has seen.
    seen: usize,
    first_chunk: bool,
}

thread_local! {
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

/// A call of `vmap`, until it is dropped.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn start<B: Backend>(mode: Random) -> Self {
        let call = Call {
            backend: TypeId::of::<Vmap<B>>(),
            mode,
            size: 0,
            drawn: Vec::new(),
            seen: 0,
            first_chunk: true,
        };
        CALLS.with_borrow_mut(|calls| calls.push(call));
        Self(())
    }

    /// The next chunk, of so many examples.
    pub(crate) fn chunk(&self, size: usize, first: bool) {
        CALLS.with_borrow_mut(|calls| {
            if let Some(call) = calls.last_mut() {
                (call.size, call.seen, call.first_chunk) = (size, 0, first);
            }
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        CALLS.with_borrow_mut(Vec::pop);
    }
}

/// The innermost call of this backend.
fn with_call<R>(backend: TypeId, f: impl FnOnce(&mut Call) -> R) -> Option<R> {
    CALLS.with_borrow_mut(|calls| calls.iter_mut().rev().find(|c| c.backend == backend).map(f))
}

/// A draw of the shape of one example; outside of any call one that all examples share.
#[track_caller]
pub(crate) fn draw<B: Backend, K: Kind<B>>(
    op: &'static str,
    shape: Shape,
    make: impl Fn(Shape) -> Primitive<B, K>,
) -> Mapped<B, K> {
    let backend = TypeId::of::<Vmap<B>>();
    match with_call(backend, |call| (call.mode, call.size)) {
        None => VmapTensor::shared(make(shape)),
        Some((Random::Error, _)) => refuse(
            op,
            "random numbers inside of a mapped function: say whether examples share them, by \
             random(Random::Same) or random(Random::Different)",
        ),
        Some((Random::Different, size)) => {
            VmapTensor::batched(make([size].into_iter().chain(shape.iter().copied()).collect()))
        }
        Some((Random::Same, _)) => VmapTensor::shared(same::<B, K>(op, backend, shape, make)),
    }
}

/// What the first chunk drew at this place.
#[track_caller]
fn same<B: Backend, K: Kind<B>>(
    op: &'static str,
    backend: TypeId,
    shape: Shape,
    make: impl Fn(Shape) -> Primitive<B, K>,
) -> Primitive<B, K> {
    use burn_backend::TensorMetadata;
    let first = with_call(backend, |call| call.first_chunk) == Some(true);
    if first {
        let x = make(shape);
        with_call(backend, |call| call.drawn.push(Box::new(x.clone())));
        return x;
    }
    let again = with_call(backend, |call| {
        call.seen += 1;
        call.drawn.get(call.seen - 1)?.downcast_ref::<Primitive<B, K>>().cloned()
    });
    match again.flatten() {
        Some(x) if x.shape() == shape => x,
        _ => refuse(op, "chunks draw different random numbers, which Random::Same cannot repeat"),
    }
}
