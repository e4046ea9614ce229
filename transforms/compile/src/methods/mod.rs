//! Burn's backend methods: one instruction each.
//!
//! A row is the signature of a method; `=>` gives its elementwise function, if it has one. Tensors created without
//! operands are constants. Reading elements ends the recording, and the function continues to run.

use burn_backend::ops::TransactionOps;
use burn_backend::{Backend, Distribution, FloatDType, IntDType, Shape};

use crate::backend::Traced;
use crate::call::made;
use crate::recording::Made;
use crate::tensor::{FloatKind, IntKind, PrimitiveKind, TracedTensor};
use crate::words::{EncodedDevice, Word, read};

mod activation;
mod bool;
mod class;
mod float;
mod int;
mod module;
mod quantized;

pub use class::MethodClass;

/// Step of a method, rebuilt from its name.
pub(crate) struct NamedStep<B: Backend> {
    pub(crate) name: &'static str,
    pub(crate) class: MethodClass,
    pub(crate) made: Made<B>,
}

/// Implements a backend trait: first the methods written in full, then rows of methods that run on the inner backend
/// and are recorded, each under its [`MethodClass`]. `$make` rebuilds the steps of these rows from their names and static
/// arguments.
macro_rules! methods {
    (impl $trait:ident, $make:ident { $($own:tt)* }
     $([$class:ident]
       $(fn $name:ident($($arg:ident: $t:ty),* $(,)?) -> $ret:ty $(=> $what:expr)?;)*)*) => {
        impl<B: Backend> $trait<Self> for Traced<B> {
            $($own)*
            $($(fn $name($($arg: $t),*) -> $ret {
                let class = $crate::methods::MethodClass::$class;
                let mut call = $crate::call::Call::new(stringify!($name)).class(class);
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
            })*)*
        }

        impl<B: Backend> Traced<B> {
            pub(crate) fn $make(
                name: &str,
                words: &[$crate::words::Word],
            ) -> Option<$crate::methods::NamedStep<B>> {
                Some(match name {
                    $($(stringify!($name) => $crate::methods::NamedStep {
                        name: stringify!($name),
                        class: $crate::methods::MethodClass::$class,
                        made: $crate::call::made::<B, $ret, _>(
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
                        ),
                    },)*)*
                    _ => return None,
                })
            }
        }
    };
}
use methods;

impl<B: Backend> TransactionOps<Self> for Traced<B> {}

/// Unwraps the tensor of the inner backend; a recording that contains it fails.
fn unrecorded<B: Backend, K: PrimitiveKind<B>>(
    operation: &'static str,
    x: TracedTensor<B, K>,
) -> K::Primitive {
    if let Some(node) = &x.node {
        node.recording.read(operation);
    }
    x.primitive
}

/// Rebuilds the step of a method from its name and static arguments.
pub(crate) fn make<B: Backend>(name: &str, words: &[Word]) -> Option<NamedStep<B>> {
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

/// Random number methods, which are not rows.
fn own<B: Backend>(name: &str, words: &[Word]) -> Option<NamedStep<B>> {
    Some(match name {
        "float_random" => NamedStep {
            name: "float_random",
            class: MethodClass::General,
            made: made::<B, TracedTensor<B, FloatKind>, _>(
                read::<(Shape, Distribution, EncodedDevice<B::Device>, FloatDType)>(words)?,
                |(shape, distribution, device, dtype), _| {
                    B::float_random(shape.clone(), *distribution, &device.0, *dtype)
                },
                |_| None,
            ),
        },
        "int_random" => NamedStep {
            name: "int_random",
            class: MethodClass::General,
            made: made::<B, TracedTensor<B, IntKind>, _>(
                read::<(Shape, Distribution, EncodedDevice<B::Device>, IntDType)>(words)?,
                |(shape, distribution, device, dtype), _| {
                    B::int_random(shape.clone(), *distribution, &device.0, *dtype)
                },
                |_| None,
            ),
        },
        _ => return None,
    })
}
