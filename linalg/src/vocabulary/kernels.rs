//! Elementwise kernels of the vocabulary.

use t4a_algebra::{Field, Float, Numeric, Real};
use t4a_tensor::loops::kernel::{Binary, Unary};

use crate::scalar::LinalgScalar;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $(($field:ty))? : $bound:ident, $t:ident, $x:ident, $this:ident => $out:ty, $cost:expr, $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name $((pub(crate) $field))?;
        impl<$t: $bound> Unary<$t> for $name {
            type Out = $out;
            const NAME: &'static str = stringify!($name);
            const COST: usize = $cost;
            #[inline(always)]
            fn apply(self, $x: $t) -> $out {
                let $this = self;
                let _ = $this;
                $body
            }
        }
    )*};
}

unary! {
    /// `x̄`.
    Conj: LinalgScalar, T, x, this => T, 1, Field::conj(x);
    /// `Re x`.
    Re: LinalgScalar, T, x, this => T::R, 1, Field::re(x);
    /// `Im x`.
    Im: LinalgScalar, T, x, this => T::R, 1, Field::im(x);
    /// `|x|`.
    Modulus: LinalgScalar, T, x, this => T::R, 4, Field::modulus(x);
    /// `c x`.
    Scale(f64): LinalgScalar, T, x, this => T, 1, Numeric::mul(x, <T as Numeric>::from_f64(this.0));
    /// `x + 0i`.
    IntoComplex: LinalgScalar, T, x, this => T::Complex, 1, Field::from_parts(Field::re(x), Field::im(x));
    /// `1 / x`.
    Recip: Float, T, x, this => T, 4, Field::recip(x);
    /// `eˣ`.
    Exp: Float, T, x, this => T, 10, Float::exp(x);
    /// `ln x`.
    Ln: Float, T, x, this => T, 10, Float::ln(x);
    /// `xᵖ`.
    Powf(f64): Float, T, x, this => T, 20, power(x, this.0);
}

#[inline(always)]
fn power<T: Float>(x: T, p: f64) -> T {
    if p == 0.5 { Float::sqrt(x) } else { Float::powf(x, T::from_f64(p)) }
}

/// The part of a complex number that `T` holds.
#[derive(Clone, Copy)]
pub(crate) struct FromComplex<T>(pub(crate) std::marker::PhantomData<T>);

impl<T: LinalgScalar> Unary<T::Complex> for FromComplex<T>
where
    Self: Copy,
{
    type Out = T;
    const NAME: &'static str = "from_complex";
    #[inline(always)]
    fn apply(self, z: T::Complex) -> T {
        T::from_parts(Field::re(z), Field::im(z))
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, ($a:ident: $ta:ty, $b:ident: $tb:ty) => $out:ty, $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl<T: $bound> Binary<$ta, $tb> for $name {
            type Out = $out;
            const NAME: &'static str = stringify!($name);
            #[inline(always)]
            fn apply(self, $a: $ta, $b: $tb) -> $out {
                $body
            }
        }
    )*};
}

binary! {
    /// `a + b`.
    Add: Numeric, (a: T, b: T) => T, a.add(b);
    /// `a − b`.
    Sub: Numeric, (a: T, b: T) => T, a.sub(b);
    /// `a b`.
    Mul: Numeric, (a: T, b: T) => T, a.mul(b);
    /// 1 if `|a| ≤ b`, else 0.
    Within: Float, (a: T, b: T) => T, if Real::abs(a) <= b { T::ONE } else { T::ZERO };
}

/// `a r` with real `r`.
#[derive(Clone, Copy)]
pub(crate) struct MulReal<T>(pub(crate) std::marker::PhantomData<T>);

impl<T: LinalgScalar> Binary<T, T::R> for MulReal<T> {
    type Out = T;
    const NAME: &'static str = "mul_real";
    #[inline(always)]
    fn apply(self, a: T, r: T::R) -> T {
        T::from_parts(Numeric::mul(Field::re(a), r), Numeric::mul(Field::im(a), r))
    }
}

/// `re + i im`.
#[derive(Clone, Copy)]
pub(crate) struct FromParts<T>(pub(crate) std::marker::PhantomData<T>);

impl<T: LinalgScalar> Binary<T::R, T::R> for FromParts<T> {
    type Out = T;
    const NAME: &'static str = "from_parts";
    #[inline(always)]
    fn apply(self, re: T::R, im: T::R) -> T {
        T::from_parts(re, im)
    }
}
