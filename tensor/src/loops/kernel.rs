//! Elementwise kernels: small copyable values with a method on scalars. Most are zero-sized; some have a parameter.
//!
//! `apply` should be `#[inline(always)]` and free of branches, so that loops over it vectorise.

use std::marker::PhantomData;

use t4a_algebra::{Numeric, Scalar};

/// `T → Out`, element by element.
pub trait Unary<T: Scalar>: Copy + Send + Sync {
    /// Element type of the result.
    type Out: Scalar;
    /// Name of the operation, for errors.
    const NAME: &'static str;
    /// Work per element in additions; it decides about threads.
    const COST: usize = 1;
    /// True if intermediate results have a wider type than the elements, as in [`Promoted`].
    const PROMOTES: bool = false;
    /// The result for one element.
    fn apply(self, x: T) -> Self::Out;
    /// For kernels that vectorise over slices only: number of elements that [`Unary::complete`] computes at a time from
    /// those of [`Unary::seed`]. With 0, [`Unary::apply`] is used.
    const PART: usize = 0;
    /// Input of [`Unary::complete`] for one element.
    #[inline(always)]
    fn seed(self, x: T) -> Self::Out {
        self.apply(x)
    }
    /// Turns seeds into results.
    #[inline(always)]
    fn complete(self, seeds: &mut [Self::Out]) {
        let _ = seeds;
    }
}

/// A proof that two types are the same.
#[derive(Clone, Copy, Debug)]
pub struct Same<T, U>(PhantomData<(T, U)>);

impl<T> Same<T, T> {
    /// They are.
    pub const PROOF: Self = Self(PhantomData);
}

impl<T: Scalar, U: Scalar> Same<T, U> {
    /// An element, as one of the second type.
    #[inline(always)]
    pub(super) fn second(self, x: T) -> U {
        // SAFETY: `PROOF` is the only value of this type, so T and U are the same.
        unsafe { std::mem::transmute_copy(&x) }
    }

    /// Elements, as those of the first type.
    #[inline(always)]
    pub(super) fn first(self, x: &[U]) -> &[T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
    }
}

/// `(T, U) → Out`, element by element.
pub trait Binary<T: Scalar, U: Scalar = T>: Copy + Send + Sync {
    /// Element type of the result.
    type Out: Scalar;
    /// Name of the operation, for errors.
    const NAME: &'static str;
    /// Work per element in additions; it decides about threads.
    const COST: usize = 1;
    /// True if intermediate results have a wider type than the elements, as in [`Promoted`].
    const PROMOTES: bool = false;
    /// Set if the kernel is commutative (up to the choice between two NaN); fewer loops are compiled then.
    const COMMUTES: Option<Same<T, U>> = None;
    /// The result for one pair of elements.
    fn apply(self, a: T, b: U) -> Self::Out;
}

/// `(T, U, V) → Out`, element by element.
pub trait Ternary<T: Scalar, U: Scalar = T, V: Scalar = T>: Copy + Send + Sync {
    /// Element type of the result.
    type Out: Scalar;
    /// Name of the operation, for errors.
    const NAME: &'static str;
    /// Work per element in additions; it decides about threads.
    const COST: usize = 1;
    /// The result for one triple of elements.
    fn apply(self, a: T, b: U, c: V) -> Self::Out;
}

/// A reduction of elements `T`.
pub trait Fold<T: Scalar>: Copy + Send + Sync {
    /// Partial result.
    type Acc: Scalar;
    /// Final result.
    type Out: Scalar;
    /// Name of the operation, for errors.
    const NAME: &'static str;
    /// True if the reduction of zero elements is defined.
    const HAS_IDENTITY: bool = true;
    /// True if partial results have a wider type than the elements.
    const PROMOTES: bool = false;
    /// The partial result of zero elements.
    fn init(self) -> Self::Acc;
    /// Adds one element to a partial result.
    fn step(self, acc: Self::Acc, x: T) -> Self::Acc;
    /// True if [`Fold::step_both`] takes fewer operations than two steps.
    const PAIRS: bool = false;
    /// Adds two elements to a partial result.
    #[inline(always)]
    fn step_both(self, acc: Self::Acc, x: T, y: T) -> Self::Acc {
        self.step(self.step(acc, x), y)
    }
    /// Combines two partial results.
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result of a partial result over `n` elements.
    fn finish(self, acc: Self::Acc, n: usize) -> Self::Out;
}

/// A binary kernel with its right operand fixed.
#[derive(Clone, Copy)]
pub struct BindRight<K, U>(pub K, pub U);

impl<T: Scalar, U: Scalar, K: Binary<T, U>> Unary<T> for BindRight<K, U> {
    type Out = K::Out;
    const NAME: &'static str = K::NAME;
    const COST: usize = K::COST;
    const PROMOTES: bool = K::PROMOTES;
    #[inline(always)]
    fn apply(self, x: T) -> K::Out {
        self.0.apply(x, self.1)
    }
}

/// A binary kernel with its left operand fixed.
#[derive(Clone, Copy)]
pub struct BindLeft<K, T>(pub K, pub T);

impl<T: Scalar, U: Scalar, K: Binary<T, U>> Unary<U> for BindLeft<K, T> {
    type Out = K::Out;
    const NAME: &'static str = K::NAME;
    const COST: usize = K::COST;
    const PROMOTES: bool = K::PROMOTES;
    #[inline(always)]
    fn apply(self, x: U) -> K::Out {
        self.0.apply(self.1, x)
    }
}

/// A binary kernel with its operands exchanged.
#[derive(Clone, Copy)]
pub struct Flip<K>(pub K);

impl<T: Scalar, U: Scalar, K: Binary<T, U>> Binary<U, T> for Flip<K> {
    type Out = K::Out;
    const NAME: &'static str = K::NAME;
    const COST: usize = K::COST;
    const PROMOTES: bool = K::PROMOTES;
    #[inline(always)]
    fn apply(self, a: U, b: T) -> K::Out {
        self.0.apply(b, a)
    }
}

/// A kernel with intermediate results in [`Numeric::Acc`]: 16-bit floats are rounded once, after all steps. For other
/// types it equals the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Promoted<K>(pub K);

impl<T: Numeric, K: Unary<T::Acc, Out = T::Acc>> Unary<T> for Promoted<K> {
    type Out = T;
    const NAME: &'static str = K::NAME;
    const COST: usize = K::COST;
    const PROMOTES: bool = T::PROMOTES;
    #[inline(always)]
    fn apply(self, x: T) -> T {
        T::narrow(self.0.apply(x.widen()))
    }
}

impl<T: Numeric, K: Binary<T::Acc, Out = T::Acc>> Binary<T> for Promoted<K> {
    type Out = T;
    const NAME: &'static str = K::NAME;
    const COST: usize = K::COST;
    const PROMOTES: bool = T::PROMOTES;
    #[inline(always)]
    fn apply(self, a: T, b: T) -> T {
        T::narrow(self.0.apply(a.widen(), b.widen()))
    }
}
