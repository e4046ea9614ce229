//! Burn's methods: each is one instruction.
//!
//! A row is the method's signature; after `=>` stands what it computes, if that is elementwise. Tensors
//! made of nothing are constants. Reading elements ends the recording, and the function runs on.

use burn_backend::ops::TransactionOps;
use burn_backend::{Backend, Distribution, FloatDType, IntDType, Shape};

use crate::backend::Traced;
use crate::call::made;
use crate::recording::Made;
use crate::tensor::{FloatKind, IntKind, Kind, TracedTensor};
use crate::words::{Place, Word, read};

mod activation;
mod bool;
mod float;
mod int;
mod module;
mod quantized;

/// An implementation of a trait of methods: first what is written out, then rows of methods that run on the
/// inner backend and are recorded. `$make` makes the steps of these rows of their names and static
/// arguments.
macro_rules! methods {
    (impl $trait:ident, $make:ident { $($own:tt)* }
     $(fn $name:ident($($arg:ident: $t:ty),* $(,)?) -> $ret:ty $(=> $what:expr)?;)*) => {
        impl<B: Backend> $trait<Self> for Traced<B> {
            $($own)*
            $(fn $name($($arg: $t),*) -> $ret {
                let mut call = $crate::call::Call::new(stringify!($name));
                $(let $arg = call.take($arg);)*
                call.run::<$ret, _>(
                    ($($arg,)*),
                    |($($arg,)*), frame| {
                        B::$name($(<$t as $crate::argument::Argument<B>>::fetch($arg, frame)),*)
                    },
                    |&($(ref $arg,)*)| {
                        $(let _ = $arg;)*
                        None::<$crate::fuse::Elementwise>$(.or(Option::from($what)))?
                    },
                )
            })*
        }

        impl<B: Backend> Traced<B> {
            pub(crate) fn $make(
                name: &str,
                words: &[$crate::words::Word],
            ) -> Option<(&'static str, $crate::recording::Made<B>)> {
                Some(match name {
                    $(stringify!($name) => (stringify!($name), $crate::call::made::<B, $ret, _>(
                        $crate::words::read::<($(
                            <$t as $crate::argument::Argument<B>>::Slot,
                        )*)>(words)?,
                        |($($arg,)*), frame| {
                            B::$name($(<$t as $crate::argument::Argument<B>>::fetch($arg, frame)),*)
                        },
                        |&($(ref $arg,)*)| {
                            $(let _ = $arg;)*
                            None::<$crate::fuse::Elementwise>$(.or(Option::from($what)))?
                        },
                    )),)*
                    _ => return None,
                })
            }
        }
    };
}
use methods;

impl<B: Backend> TransactionOps<Self> for Traced<B> {}

/// The tensor of the inner backend; a recording that knows it ends.
fn unrecorded<B: Backend, K: Kind<B>>(
    operation: &'static str,
    x: TracedTensor<B, K>,
) -> K::Primitive {
    if let Some(node) = &x.node {
        node.recording.read(operation);
    }
    x.primitive
}

/// The step of a method of this name with these static arguments, and the name.
pub(crate) fn make<B: Backend>(name: &str, words: &[Word]) -> Option<(&'static str, Made<B>)> {
    let families = [
        Traced::<B>::activation,
        Traced::<B>::bools,
        Traced::<B>::floats,
        Traced::<B>::ints,
        Traced::<B>::layers,
        Traced::<B>::quantized,
        own::<B>,
    ];
    families.into_iter().find_map(|make| make(name, words))
}

/// Random numbers, which are no rows.
fn own<B: Backend>(name: &str, words: &[Word]) -> Option<(&'static str, Made<B>)> {
    Some(match name {
        "float_random" => (
            "float_random",
            made::<B, TracedTensor<B, FloatKind>, _>(
                read::<(Shape, Distribution, Place<B::Device>, FloatDType)>(words)?,
                |(shape, distribution, device, dtype), _| {
                    B::float_random(shape.clone(), *distribution, &device.0, *dtype)
                },
                |_| None,
            ),
        ),
        "int_random" => (
            "int_random",
            made::<B, TracedTensor<B, IntKind>, _>(
                read::<(Shape, Distribution, Place<B::Device>, IntDType)>(words)?,
                |(shape, distribution, device, dtype), _| {
                    B::int_random(shape.clone(), *distribution, &device.0, *dtype)
                },
                |_| None,
            ),
        ),
        _ => return None,
    })
}
