//! A semiring as a table of function pointers.
//!
//! The handling of labels, slots and slices is the same over all semirings: it is compiled once per element type, and
//! calls semiring-specific functions through these tables, once per tensor.

// The types of the function pointers document their arguments.
#![allow(clippy::type_complexity)]

use std::marker::PhantomData;

use t4a_algebra::{Numeric, Scalar, Semiring, Standard};
use t4a_tensor::kernels::arithmetic::Add;
use t4a_tensor::loops::kernel::{Binary, Same, Unary};
use t4a_tensor::map::{map, zip};
use t4a_tensor::matmul::{matmul, matmul_interleaved};
use t4a_tensor::{Tensor, TensorError};

use crate::error::Result;
use crate::rules::{self, Differentiable, MatrixProduct, Share, Slices};

/// Functions of a semiring that contractions use.
pub(crate) struct RingTable<T: Scalar> {
    /// The zero of the semiring.
    pub(crate) zero: T,
    /// The one of the semiring.
    pub(crate) one: T,
    /// [`matmul`].
    pub(crate) matmul: fn(&Tensor<T>, &Tensor<T>) -> Result<Tensor<T>, TensorError>,
    /// [`matmul_interleaved`].
    pub(crate) matmul_interleaved: fn(&Tensor<T>, &Tensor<T>) -> Result<Tensor<T>, TensorError>,
    /// `a ⊗ b`, elementwise.
    pub(crate) times: fn(Tensor<T>, Tensor<T>) -> Result<Tensor<T>, TensorError>,
    /// `a ⊕ b`, elementwise.
    pub(crate) plus: fn(Tensor<T>, Tensor<T>) -> Result<Tensor<T>, TensorError>,
}

impl<T: Scalar> RingTable<T> {
    /// The table of a semiring.
    pub(crate) fn of<S: Semiring<T>>() -> Self {
        Self {
            zero: S::ZERO,
            one: S::ONE,
            matmul: matmul::<S, T>,
            matmul_interleaved: matmul_interleaved::<S, T>,
            times: |a, b| zip(Times::<S>::default(), a, b),
            plus: |a, b| zip(Plus::<S>::default(), a, b),
        }
    }
}

/// Functions of a semiring that derivatives use.
pub(crate) struct Rules<T: Numeric> {
    /// The semiring.
    pub(crate) ring: RingTable<T>,
    /// (+, ×), the semiring of cotangents and tangents.
    pub(crate) numbers: RingTable<T>,
    /// [`Differentiable::SHARE`].
    pub(crate) share: Share,
    /// True if cotangents read the sums, or the argmax of each.
    pub(crate) reads_sums: bool,
    /// [`Differentiable::matmul`].
    pub(crate) matmul: fn(&Tensor<T>, &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)>,
    /// `x̄`.
    pub(crate) conj: fn(Tensor<T>) -> Result<Tensor<T>, TensorError>,
    /// `g` where x is not the zero of the semiring, else 0: derivative with respect to a copied operand.
    pub(crate) alive: fn(Tensor<T>, Tensor<T>) -> Result<Tensor<T>, TensorError>,
    /// Cotangents of A and B given that of C, for non-linear semirings.
    pub(crate) vjp: fn(&MatrixProduct<'_, T>, &[T]) -> Result<[Vec<T>; 2]>,
    /// Tangent of C given those of A and B, for non-linear semirings.
    pub(crate) jvp: fn(&MatrixProduct<'_, T>, &[T], &[T]) -> Result<Vec<T>>,
    /// 1 for absorbing elements, else 0.
    pub(crate) absorbing: fn(Tensor<T>) -> Result<Tensor<u32>, TensorError>,
    /// [`rules::open_to`].
    pub(crate) open_to: fn(&mut [T], &[T], &[T], Option<&[u32]>) -> Result<Vec<T>>,
    /// [`rules::add_slice`].
    pub(crate) add_slice: fn(&mut Slices<T>, &[T], &[T]),
}

impl<T: Numeric> Rules<T> {
    /// The table of a semiring.
    pub(crate) fn of<S: Differentiable<T>>() -> Self {
        Self {
            ring: RingTable::of::<S>(),
            numbers: RingTable::of::<Standard>(),
            share: S::SHARE,
            reads_sums: match S::SHARE {
                Share::Linear => false,
                Share::Argmax => true,
                Share::Marginal => S::READS_SUMS,
            },
            matmul: S::matmul,
            conj: |x| map(Conjugate::<S>(PhantomData), x),
            alive: |x, g| zip(Alive::<S>(PhantomData), x, g),
            vjp: rules::vjp::<S, T>,
            jvp: rules::jvp::<S, T>,
            absorbing: |x| map(Absorbing::<S>(PhantomData), x),
            open_to: rules::open_to::<S, T>,
            add_slice: rules::add_slice::<S, T>,
        }
    }

    /// `a + b` of derivatives.
    pub(crate) fn add(&self, a: Tensor<T>, b: Tensor<T>) -> Result<Tensor<T>, TensorError> {
        zip(Add, a, b)
    }
}

/// `a ⊗ b` and `a ⊕ b`, elementwise.
struct Times<S>(PhantomData<S>);
struct Plus<S>(PhantomData<S>);

macro_rules! elementwise {
    ($($kernel:ident: $name:literal, $op:ident $(, $commutes:ident)?;)*) => {$(
        impl<S> Default for $kernel<S> {
            fn default() -> Self {
                Self(PhantomData)
            }
        }
        impl<S> Clone for $kernel<S> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<S> Copy for $kernel<S> {}
        impl<T: Scalar, S: Semiring<T>> Binary<T> for $kernel<S> {
            type Out = T;
            const NAME: &'static str = $name;
            $(const $commutes: Option<Same<T, T>> = Some(Same::PROOF);)?
            #[inline(always)]
            fn apply(self, a: T, b: T) -> T {
                S::$op(a, b)
            }
        }
    )*};
}
elementwise! {
    Times: "einsum product", mul;
    Plus: "einsum sum", add, COMMUTES;
}

macro_rules! kernels {
    ($($name:ident)*) => {$(
        struct $name<S>(PhantomData<S>);
        impl<S> Clone for $name<S> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<S> Copy for $name<S> {}
    )*};
}
kernels!(Conjugate Alive Absorbing);

impl<T: Numeric, S: Differentiable<T>> Unary<T> for Conjugate<S> {
    type Out = T;
    const NAME: &'static str = "conj";
    #[inline(always)]
    fn apply(self, x: T) -> T {
        S::conj(x)
    }
}

impl<T: Numeric, S: Semiring<T>> Binary<T> for Alive<S> {
    type Out = T;
    const NAME: &'static str = "einsum derivative";
    #[inline(always)]
    fn apply(self, x: T, g: T) -> T {
        if x == S::ZERO { T::ZERO } else { g }
    }
}

impl<T: Numeric, S: Differentiable<T>> Unary<T> for Absorbing<S> {
    type Out = u32;
    const NAME: &'static str = "einsum derivative";
    #[inline(always)]
    fn apply(self, x: T) -> u32 {
        u32::from(S::absorbs(x))
    }
}
