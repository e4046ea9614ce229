//! Random numbers in mapped functions.

use std::any::TypeId;

use burn_backend::{Backend, Shape};

use crate::active::with_call;
use crate::backend::{Vmap, refuse};
use crate::kind::{DataKind, Primitive};
use crate::movement::MappedTensor;
use crate::tensor::VmapTensor;

/// Semantics of random numbers inside a mapped function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Random {
    /// A draw is an error: the semantics must be stated.
    #[default]
    Error,
    /// All examples, in all chunks, receive the same numbers.
    Same,
    /// Every example receives its own numbers. A draw has shape `[batch, …]` and uses the generator of the inner
    /// backend: examples in order, draw by draw, chunk by chunk.
    Different,
}

/// A draw with the shape of one example; outside of a call, it is shared by all examples.
#[track_caller]
pub(crate) fn draw<B: Backend, K: DataKind<B>>(
    op: &'static str,
    shape: Shape,
    make: impl Fn(Shape) -> Primitive<B, K>,
) -> MappedTensor<B, K> {
    let backend = TypeId::of::<Vmap<B>>();
    match with_call(backend, |call| (call.mode, call.size)) {
        None => VmapTensor::shared(make(shape)),
        Some((Random::Error, _)) => refuse(
            op,
            "random numbers inside of a mapped function: say whether examples share them, by \
             random(Random::Same) or random(Random::Different); parameters of modules are drawn at their \
             first use, which has to be before the call",
        ),
        Some((Random::Different, size)) => {
            VmapTensor::batched(make([size].into_iter().chain(shape.iter().copied()).collect()))
        }
        Some((Random::Same, _)) => VmapTensor::shared(same::<B, K>(op, backend, shape, make)),
    }
}

/// The same draw as in the first chunk.
#[track_caller]
fn same<B: Backend, K: DataKind<B>>(
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
