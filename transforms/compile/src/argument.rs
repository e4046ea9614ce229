//! Decomposition of method arguments and results into tensors, which become values of a recording, and static
//! arguments, which are stored in the instruction.

use std::fmt::Debug;

use burn_backend::ops::*;
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{Backend, BoolDType, FloatDType, IntDType, Scalar, Shape, Slice};

use crate::backend::Traced;
use crate::call::{Call, Results};
use crate::recording::Frame;
use crate::tensor::{AnyPrimitive, FloatKind, IntKind, PrimitiveKind, TracedTensor};
use crate::words::StaticArgument;

/// An argument of a backend method.
pub(crate) trait Argument<B: Backend> {
    /// Representation in the instruction; for a tensor, its index among the operands.
    type Slot: StaticArgument + Debug + Send + Sync + 'static;
    /// Argument type of the inner backend's method.
    type Inner<'a>;
    /// Splits the argument into operands of the call and a slot.
    fn store(self, call: &mut Call<B>) -> Self::Slot;
    /// Rebuilds the argument from its slot and the operands of the frame.
    fn fetch<'a>(slot: &'a Self::Slot, frame: &mut Frame<B>) -> Self::Inner<'a>;
}

impl<B: Backend, K: PrimitiveKind<B>> Argument<B> for TracedTensor<B, K> {
    type Slot = usize;
    type Inner<'a> = K::Primitive;
    fn store(self, call: &mut Call<B>) -> usize {
        call.operand(self)
    }
    fn fetch(&at: &usize, frame: &mut Frame<B>) -> K::Primitive {
        frame.take::<K>(at)
    }
}

impl<B: Backend, A: Argument<B>> Argument<B> for Vec<A> {
    type Slot = Vec<A::Slot>;
    type Inner<'a> = Vec<A::Inner<'a>>;
    fn store(self, call: &mut Call<B>) -> Self::Slot {
        self.into_iter().map(|x| x.store(call)).collect()
    }
    fn fetch<'a>(slot: &'a Self::Slot, frame: &mut Frame<B>) -> Self::Inner<'a> {
        slot.iter().map(|x| A::fetch(x, frame)).collect()
    }
}

impl<B: Backend, A: Argument<B>> Argument<B> for Option<A> {
    type Slot = Option<A::Slot>;
    type Inner<'a> = Option<A::Inner<'a>>;
    fn store(self, call: &mut Call<B>) -> Self::Slot {
        self.map(|x| x.store(call))
    }
    fn fetch<'a>(slot: &'a Self::Slot, frame: &mut Frame<B>) -> Self::Inner<'a> {
        slot.as_ref().map(|x| A::fetch(x, frame))
    }
}

impl<B: Backend> Argument<B> for QuantizationParametersPrimitive<Traced<B>> {
    type Slot = usize;
    type Inner<'a> = QuantizationParametersPrimitive<B>;
    fn store(self, call: &mut Call<B>) -> usize {
        call.operand(self.scales)
    }
    fn fetch(at: &usize, frame: &mut Frame<B>) -> Self::Inner<'static> {
        QuantizationParametersPrimitive { scales: frame.take::<FloatKind>(*at) }
    }
}

macro_rules! values {
    ($($t:ty),* $(,)?) => {$(
        impl<B: Backend> Argument<B> for $t {
            type Slot = $t;
            type Inner<'a> = $t;
            fn store(self, _: &mut Call<B>) -> $t {
                self
            }
            fn fetch(slot: &$t, _: &mut Frame<B>) -> $t {
                slot.clone()
            }
        }
    )*};
}

values! {
    usize, bool, f64, [usize; 2], Shape, Scalar, BoolDType, FloatDType, IntDType, IndexingUpdateOp,
    ConvOptions<1>, ConvOptions<2>, ConvOptions<3>, ConvTransposeOptions<1>, ConvTransposeOptions<2>,
    ConvTransposeOptions<3>, DeformConvOptions<2>, GridSampleOptions, InterpolateOptions, UnfoldOptions,
    AttentionModuleOptions,
}

macro_rules! slices {
    ($($t:ty),*) => {$(
        impl<B: Backend> Argument<B> for &[$t] {
            type Slot = Vec<$t>;
            type Inner<'a> = &'a [$t];
            fn store(self, _: &mut Call<B>) -> Vec<$t> {
                self.to_vec()
            }
            fn fetch<'a>(slot: &'a Vec<$t>, _: &mut Frame<B>) -> &'a [$t] {
                slot
            }
        }
    )*};
}

slices!(usize, Slice);

impl<B: Backend> Argument<B> for &QuantScheme {
    type Slot = QuantScheme;
    type Inner<'a> = &'a QuantScheme;
    fn store(self, _: &mut Call<B>) -> QuantScheme {
        *self
    }
    fn fetch<'a>(slot: &'a QuantScheme, _: &mut Frame<B>) -> &'a QuantScheme {
        slot
    }
}

/// Result type of a backend method.
pub(crate) trait Returned<B: Backend>: Sized {
    /// Return type of the inner backend's method.
    type Inner;
    /// Presence of each optional tensor.
    type Form;
    /// Appends the tensors of a result to `all`.
    fn split(inner: Self::Inner, all: &mut Vec<AnyPrimitive<B>>) -> Self::Form;
    /// Rebuilds a result from the next tensors of the recorded results.
    fn join(form: Self::Form, all: &mut Results<B>) -> Self;
}

impl<B: Backend, K: PrimitiveKind<B>> Returned<B> for TracedTensor<B, K> {
    type Inner = K::Primitive;
    type Form = ();
    fn split(inner: K::Primitive, all: &mut Vec<AnyPrimitive<B>>) {
        all.push(K::erase(inner));
    }
    fn join((): (), all: &mut Results<B>) -> Self {
        all.take()
    }
}

impl<B: Backend, X: Returned<B>, Y: Returned<B>> Returned<B> for (X, Y) {
    type Inner = (X::Inner, Y::Inner);
    type Form = (X::Form, Y::Form);
    fn split((x, y): Self::Inner, all: &mut Vec<AnyPrimitive<B>>) -> Self::Form {
        let x = X::split(x, all);
        (x, Y::split(y, all))
    }
    fn join((x, y): Self::Form, all: &mut Results<B>) -> Self {
        let x = X::join(x, all);
        (x, Y::join(y, all))
    }
}

impl<B: Backend, X: Returned<B>> Returned<B> for Option<X> {
    type Inner = Option<X::Inner>;
    type Form = Option<X::Form>;
    fn split(inner: Self::Inner, all: &mut Vec<AnyPrimitive<B>>) -> Self::Form {
        inner.map(|x| X::split(x, all))
    }
    fn join(form: Self::Form, all: &mut Results<B>) -> Self {
        form.map(|x| X::join(x, all))
    }
}

macro_rules! structs {
    ($($name:ident { $($field:ident: $t:ty),* })*) => {$(
        impl<B: Backend> Returned<B> for $name<Traced<B>> {
            type Inner = $name<B>;
            type Form = ($(<$t as Returned<B>>::Form,)*);
            fn split(inner: $name<B>, all: &mut Vec<AnyPrimitive<B>>) -> Self::Form {
                ($(<$t as Returned<B>>::split(inner.$field, all),)*)
            }
            fn join(($($field,)*): Self::Form, all: &mut Results<B>) -> Self {
                Self { $($field: <$t as Returned<B>>::join($field, all)),* }
            }
        }
    )*};
}

type TracedFloat<B> = TracedTensor<B, FloatKind>;
type TracedInt<B> = TracedTensor<B, IntKind>;

structs! {
    MaxPool1dWithIndices { output: TracedFloat<B>, indices: TracedInt<B> }
    MaxPool2dWithIndices { output: TracedFloat<B>, indices: TracedInt<B> }
    MaxPool1dBackward { x_grad: TracedFloat<B> }
    MaxPool2dBackward { x_grad: TracedFloat<B> }
    DeformConv2dBackward {
        x_grad: TracedFloat<B>, offset_grad: TracedFloat<B>, weight_grad: TracedFloat<B>, mask_grad: Option<TracedFloat<B>>,
        bias_grad: Option<TracedFloat<B>>
    }
}
