//! Type-erased arrays.
//!
//! A derivative runs its operation on dual numbers, and the operation may itself be a derivative. Without type
//! erasure the compiler would instantiate code for duals of duals of duals without bound. All arrays of one
//! computation have the same concrete type.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

use t4a_diff::array::Shape;
use t4a_diff::{Array, Dual, Eager, Flags, Integers, Operation, Outcome, Value};
use t4a_tensor::{AnyTensor, DType, TensorError};

use crate::{AnyOperation, OperationError};

type Elements = Result<AnyTensor, TensorError>;

/// Concrete value of an erased array. All arrays of a computation have one concrete type.
fn inside<T: 'static>(x: &dyn Any) -> &T {
    x.downcast_ref().unwrap_or_else(|| unreachable!("arrays of one computation have one type"))
}

/// Type of an argument: a reference to an erased array type, or a bracketed type that is passed unchanged.
macro_rules! taken {
    ($own:ident same) => {
        &$own
    };
    ($own:ident integers) => {
        &ErasedIntegers
    };
    ($own:ident flags) => {
        &ErasedFlags
    };
    ($own:ident [$plain:ty]) => {
        $plain
    };
}

/// Converts an argument to its concrete type.
macro_rules! down {
    ($array:ident same $x:expr) => {
        inside::<$array>(&*$x.0)
    };
    ($array:ident integers $x:expr) => {
        inside::<$array::Integers>(&*$x.0)
    };
    ($array:ident flags $x:expr) => {
        inside::<$array::Flags>(&*$x.0)
    };
    ($array:ident [$plain:ty] $x:expr) => {
        $x
    };
}

/// Type of a result.
macro_rules! returned {
    ($own:ident same) => {
        $own
    };
    ($own:ident integers) => {
        ErasedIntegers
    };
    ($own:ident flags) => {
        ErasedFlags
    };
    ($own:ident [$plain:ty]) => {
        $plain
    };
}

/// Erases the type of a result.
macro_rules! up {
    ($own:ident same $x:expr) => {
        $own(Rc::new($x))
    };
    ($own:ident integers $x:expr) => {
        ErasedIntegers(Rc::new($x))
    };
    ($own:ident flags $x:expr) => {
        ErasedFlags(Rc::new($x))
    };
    ($own:ident [$plain:ty] $x:expr) => {
        $x
    };
}

/// Defines a type-erased implementor of one array trait; the rows are the methods of the trait.
macro_rules! erased {
    (
        $(#[$doc:meta])* $erased:ident, $object:ident for $array:ident: $vocabulary:ident;
        { $($declared:item)* } { $($defined:item)* } { $($direct:item)* }
        $($name:ident($($x:ident: $kind:tt),*) -> $out:tt;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(super) struct $erased(Rc<dyn $object>);

        trait $object: Any + fmt::Debug {
            $(fn $name(&self, $($x: taken!($erased $kind)),*) -> returned!($erased $out);)*
            fn cat_with(&self, all: &[$erased], axis: usize) -> $erased;
            $($declared)*
        }

        impl<$array: $vocabulary> $object for $array {
            $(fn $name(&self, $($x: taken!($erased $kind)),*) -> returned!($erased $out) {
                let out = <$array as $vocabulary>::$name(self, $(down!($array $kind $x)),*);
                up!($erased $out out)
            })*
            fn cat_with(&self, all: &[$erased], axis: usize) -> $erased {
                let all: Vec<$array> = all.iter().map(|x| inside::<$array>(&*x.0).clone()).collect();
                $erased(Rc::new(<$array as $vocabulary>::cat(&all, axis)))
            }
            $($defined)*
        }

        impl $vocabulary for $erased {
            $(fn $name(&self, $($x: taken!($erased $kind)),*) -> returned!($erased $out) {
                self.0.$name($($x),*)
            })*
            fn cat(arrays: &[Self], axis: usize) -> Self {
                arrays[0].0.cat_with(arrays, axis)
            }
            $($direct)*
        }

        impl fmt::Debug for $erased {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

erased! {
    /// Type-erased float arrays.
    Erased, Floating for A: Array;
    {
        fn run(
            &self,
            op: &AnyOperation,
            inputs: &[Value<Erased>],
            tracked: &[bool],
        ) -> Result<Outcome<Erased>, OperationError>;
    }
    {
        fn run(
            &self,
            op: &AnyOperation,
            inputs: &[Value<Erased>],
            tracked: &[bool],
        ) -> Result<Outcome<Erased>, OperationError> {
            let inputs: Vec<Value<A>> = inputs.iter().map(release_value).collect();
            A::apply(op, &inputs, tracked)?.try_map(|x| Ok(erase_value(&x)), |x| Ok(erase(&x)))
        }
    }
    {
        type Integers = ErasedIntegers;
        type Flags = ErasedFlags;

        /// Operations of the table run on the concrete arrays; others run by their portable definition.
        fn apply<O: Operation>(
            op: &O,
            inputs: &[Value<Self>],
            tracked: &[bool],
        ) -> Result<Outcome<Self>, O::Error> {
            let first = inputs.iter().find_map(|x| match x {
                Value::Float(x) => Some(x),
                _ => None,
            });
            match (AnyOperation::of(op), first) {
                (Some(any), Some(x)) => x.0.run(&any, inputs, tracked).map_err(OperationError::into_of::<O>),
                _ => op.portable(inputs, tracked),
            }
        }
        /// Engine tensors use the engine's own jvp.
        fn jvp<O: Operation>(
            op: &O,
            inputs: &[Value<Dual<Self>>],
            tracked: &[bool],
        ) -> Result<Outcome<Dual<Self>>, O::Error> {
            let engine: Option<Vec<Value<Dual<Eager>>>> = inputs.iter().map(on_engine).collect();
            let Some(inputs) = engine else { return op.jvp(inputs, tracked) };
            let dual = |x: Dual<Eager>| Dual {
                value: erase(&x.value),
                tangent: x.tangent.as_ref().map(erase),
            };
            let value = |x: Value<Dual<Eager>>| match x {
                Value::Float(x) => Value::Float(dual(x)),
                other => erase_value(&other.below()).dual(None),
            };
            op.fused_jvp(&inputs, tracked)?.try_map(|x| Ok(value(x)), |x| Ok(dual(x)))
        }
    }
    shape() -> [Shape];
    dtype() -> [DType];
    elements() -> [Elements];
    full(shape: [&[usize]], c: [f64]) -> same;
    constant(elements: [AnyTensor]) -> same;
    indices(elements: [AnyTensor]) -> integers;
    counting(n: [usize]) -> integers;
    indicator(flags: flags) -> same;
    detach() -> same;
    activity() -> same;
    add(y: same) -> same;
    sub(y: same) -> same;
    mul(y: same) -> same;
    div(y: same) -> same;
    shift(c: [f64]) -> same;
    scale(c: [f64]) -> same;
    recip() -> same;
    exp() -> same;
    ln() -> same;
    sqrt() -> same;
    pow(p: [f64]) -> same;
    tanh() -> same;
    ln_1p() -> same;
    sin() -> same;
    cos() -> same;
    erf() -> same;
    abs() -> same;
    neg() -> same;
    sign() -> same;
    equal(y: same) -> flags;
    greater(y: same) -> flags;
    equals(c: [f64]) -> flags;
    is_nan() -> flags;
    replace(flags: flags, y: same) -> same;
    fill(flags: flags, c: [f64]) -> same;
    reshape(shape: [&[usize]]) -> same;
    permute(axes: [&[usize]]) -> same;
    expand(shape: [&[usize]]) -> same;
    slice(axis: [usize], start: [usize], len: [usize], step: [usize]) -> same;
    embed(axis: [usize], start: [usize], step: [usize], size: [usize]) -> same;
    flip(axes: [&[usize]]) -> same;
    sum(axis: [usize]) -> same;
    mean(axis: [usize]) -> same;
    max(axis: [usize]) -> same;
    min(axis: [usize]) -> same;
    argmax(axis: [usize]) -> integers;
    argmin(axis: [usize]) -> integers;
    cumsum(axis: [usize]) -> same;
    matmul(y: same) -> same;
    gather(axis: [usize], index: integers) -> same;
    scatter_add(axis: [usize], index: integers, y: same) -> same;
}

erased! {
    /// Type-erased integer arrays.
    ErasedIntegers, Indexing for I: Integers;
    {} {} { type Flags = ErasedFlags; }
    shape() -> [Shape];
    dtype() -> [DType];
    elements() -> [Elements];
    full(shape: [&[usize]], c: [i64]) -> same;
    reshape(shape: [&[usize]]) -> same;
    expand(shape: [&[usize]]) -> same;
    narrow(axis: [usize], start: [usize], len: [usize]) -> same;
    shift(c: [i64]) -> same;
    equal(j: same) -> flags;
    greater(j: same) -> flags;
    at_least(c: [i64]) -> flags;
    fill(flags: flags, c: [i64]) -> same;
}

erased! {
    /// Type-erased boolean arrays.
    ErasedFlags, Deciding for F: Flags;
    {} {} {}
    shape() -> [Shape];
    elements() -> [Elements];
    full(shape: [&[usize]], holds: [bool]) -> same;
    reshape(shape: [&[usize]]) -> same;
    expand(shape: [&[usize]]) -> same;
    narrow(axis: [usize], start: [usize], len: [usize]) -> same;
    and(rhs: same) -> same;
    or(rhs: same) -> same;
    not() -> same;
    any(axis: [usize]) -> same;
}

/// Erases the type of an array.
pub(super) fn erase<A: Array>(x: &A) -> Erased {
    Erased(Rc::new(x.clone()))
}

/// Concrete array of an erased one.
pub(super) fn release<A: Array>(x: &Erased) -> A {
    inside::<A>(&*x.0).clone()
}

/// Erases the type of a value.
pub(super) fn erase_value<A: Array>(x: &Value<A>) -> Value<Erased> {
    let integers = |x| ErasedIntegers(Rc::new(x));
    x.clone().map(|x| erase(&x), integers, |x| ErasedFlags(Rc::new(x)))
}

/// Concrete value of an erased one.
pub(super) fn release_value<A: Array>(x: &Value<Erased>) -> Value<A> {
    x.clone().map(
        |x| release(&x),
        |x| inside::<A::Integers>(&*x.0).clone(),
        |x| inside::<A::Flags>(&*x.0).clone(),
    )
}

/// Engine tensors with their tangents; `None` for arrays of another type.
fn on_engine(x: &Value<Dual<Erased>>) -> Option<Value<Dual<Eager>>> {
    fn get<T: Clone + 'static>(x: &dyn Any) -> Option<T> {
        x.downcast_ref().cloned()
    }
    Some(match x {
        Value::Float(Dual { value, tangent }) => {
            let tangent = tangent.as_ref().and_then(|x| get(&*x.0));
            Value::Float(Dual { value: get(&*value.0)?, tangent })
        }
        Value::Integers(x) => Value::Integers(get(&*x.0)?),
        Value::Flags(x) => Value::Flags(get(&*x.0)?),
    })
}
