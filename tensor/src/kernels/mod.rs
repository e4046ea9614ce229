//! Zero-sized operations of one or a few lines. A kernel operates on scalars only, independent of loop, layout and
//! number of threads.

pub mod activation;
pub mod arithmetic;
pub mod bitwise;
pub mod cast;
pub mod compare;
pub mod fold;
pub mod math;

/// Declares kernels of one argument: name, operation name, cost, class, expression.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $label:literal $cost:literal: $class:ident |$x:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl<T: $class> $crate::loops::kernel::Unary<T> for $name {
            type Out = T;
            const NAME: &'static str = $label;
            const COST: usize = $cost;
            #[inline(always)]
            fn apply(self, $x: T) -> T {
                $body
            }
        }
    )*};
}
pub(crate) use unary;

/// Declares kernels of two arguments of one type: name, operation name, cost, whether they may be
/// exchanged, class, expression.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $label:literal $cost:literal $(commutes if [$commutes:expr])?:
        $class:ident |$a:ident, $b:ident| -> $out:ty { $body:expr };)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl<T: $class> $crate::loops::kernel::Binary<T> for $name {
            type Out = $out;
            const NAME: &'static str = $label;
            const COST: usize = $cost;
            $(const COMMUTES: Option<$crate::loops::kernel::Same<T, T>> =
                if $commutes { Some($crate::loops::kernel::Same::PROOF) } else { None };)?
            #[inline(always)]
            fn apply(self, $a: T, $b: T) -> $out {
                $body
            }
        }
    )*};
}
pub(crate) use binary;
