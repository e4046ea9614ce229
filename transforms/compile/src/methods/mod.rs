//! Burn's methods: each is one instruction.
//!
//! A row is the method's signature; after `=>` stands what it computes, if that is elementwise. Tensors
//! made of nothing are constants. Reading elements ends the recording, and the function runs on.

use burn_backend::Backend;
use burn_backend::ops::TransactionOps;

use crate::backend::Traced;
use crate::tensor::{Kind, TracedTensor};

mod activation;
mod bool;
mod float;
mod int;
mod module;
mod quantized;

/// Methods that run on the inner backend and are recorded.
macro_rules! methods {
    ($(fn $name:ident($($arg:ident: $t:ty),* $(,)?) -> $ret:ty $(=> $what:expr)?;)*) => {$(
        fn $name($($arg: $t),*) -> $ret {
            let what = None::<$crate::fuse::Elementwise>$(.or(Option::from($what)))?;
            let mut call = $crate::recording::Call::new(stringify!($name)).elementwise(what);
            $(let $arg = call.take($arg);)*
            call.run::<$ret, _>(($($arg,)*), |($($arg,)*), frame| {
                B::$name($(<$t as $crate::argument::Argument<B>>::fetch($arg, frame)),*)
            })
        }
    )*};
}
use methods;

impl<B: Backend> TransactionOps<Self> for Traced<B> {}

/// The tensor of the inner backend; a recording that knows it ends.
fn read<B: Backend, K: Kind<B>>(operation: &'static str, x: TracedTensor<B, K>) -> K::Primitive {
    if let Some(node) = &x.node {
        node.recording.read(operation);
    }
    x.primitive
}
