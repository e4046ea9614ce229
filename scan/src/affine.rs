//! Steps of linear recurrences over numbers of `P` parts: 1 for real, 2 for complex.
//!
//! ```text
//! Forward    h ← a h + b                            (state h)
//! Reverse    λ = h̄ + c,  c ← ā λ;  gives λ h̄₋₁ and λ  (state c)
//! totals     h ↦ A h + B
//! ```

use t4a_algebra::Float;

use crate::lanes::{ComposedMap, LaneStep};

/// `a b`.
#[inline(always)]
pub(crate) fn times<T: Float, const P: usize>(a: [T; P], b: [T; P]) -> [T; P] {
    let mut out = a;
    if P == 1 {
        out[0] = a[0].mul(b[0]);
    } else {
        out[0] = a[0].mul_add(b[0], a[1].mul(b[1]).neg());
        out[1] = a[0].mul_add(b[1], a[1].mul(b[0]));
    }
    out
}

/// `a b + c`.
#[inline(always)]
fn step<T: Float, const P: usize>(a: [T; P], b: [T; P], c: [T; P]) -> [T; P] {
    let mut out = c;
    if P == 1 {
        out[0] = a[0].mul_add(b[0], c[0]);
    } else {
        out[0] = a[0].mul_add(b[0], a[1].neg().mul_add(b[1], c[0]));
        out[1] = a[0].mul_add(b[1], a[1].mul_add(b[0], c[1]));
    }
    out
}

#[inline(always)]
fn conj<T: Float, const P: usize>(mut a: [T; P]) -> [T; P] {
    if P == 2 {
        a[1] = a[1].neg();
    }
    a
}

#[inline(always)]
fn size<T: Float, const P: usize>(a: [T; P]) -> T {
    a.into_iter().map(|x| x.abs()).reduce(T::add).unwrap_or(T::ZERO)
}

/// Elements `from .. from + P` of an array.
#[inline(always)]
fn part<T: Copy, const N: usize, const P: usize>(x: [T; N], from: usize) -> [T; P] {
    std::array::from_fn(|i| x[from + i])
}

/// Concatenation of two arrays.
#[inline(always)]
fn join<T: Copy, const P: usize, const N: usize>(a: [T; P], b: [T; P]) -> [T; N] {
    std::array::from_fn(|i| if i < P { a[i] } else { b[i - P] })
}

/// Smallest positive normal number of `T`.
fn tiny<T: Float>() -> T {
    T::from_f64(if size_of::<T>() == 8 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE as f64 })
}

/// `A h + B`, or `None` if A underflowed or overflowed while it was accumulated and the result would be wrong: `loss`
/// bounds the absolute error of A.
#[inline(always)]
fn enter<T: Float, const P: usize>(a: [T; P], b: [T; P], loss: T, state: [T; P]) -> Option<[T; P]> {
    let ranges = size(a).is_finite() && size(b).is_finite();
    let lost = size(state).mul(loss);
    let unseen = lost <= T::EPSILON.mul(size(b)) || size(state).is_zero();
    (ranges && unseen).then(|| step(a, state, b))
}

/// Step `h ← a h + b` on inputs `[a.., b..]`; output h.
#[derive(Clone, Copy)]
pub(crate) struct AffineStep;

/// Step `λ = h̄ + c`, `c ← ā λ` on inputs `[a.., h̄..]`; output λ.
#[derive(Clone, Copy)]
pub(crate) struct AffineAdjoint;

/// [`AffineAdjoint`] on inputs `[a.., h̄.., h₋₁..]`; outputs are the cotangents of a and b.
#[derive(Clone, Copy)]
pub(crate) struct AffineVjp;

/// Step `p ← p x`; output p.
#[derive(Clone, Copy)]
pub(crate) struct ProductStep;

/// Implements the steps for numbers of `$p` parts: `$two` = 2p, `$three` = 3p, `$total` = 2p + 1 array elements.
macro_rules! affine {
    ($p:literal, $two:literal, $three:literal, $total:literal) => {
        impl<T: Float> LaneStep<T, $two, $p, $p> for AffineStep {
            const COST: usize = 2 * $p;
            #[inline(always)]
            fn step(self, h: [T; $p], x: [T; $two]) -> ([T; $p], [T; $p]) {
                let h = step(part(x, 0), h, part(x, $p));
                (h, h)
            }
        }

        impl<T: Float> LaneStep<T, $two, $total, 0> for AffineStep {
            #[inline(always)]
            fn step(self, total: [T; $total], x: [T; $two]) -> ([T; $total], [T; 0]) {
                let a: [T; $p] = part(x, 0);
                after(total, a, step(a, part(total, $p), part(x, $p)))
            }
        }

        impl<T: Float> LaneStep<T, $two, $p, $p> for AffineAdjoint {
            const COST: usize = 2 * $p;
            #[inline(always)]
            fn step(self, c: [T; $p], x: [T; $two]) -> ([T; $p], [T; $p]) {
                let lambda: [T; $p] = std::array::from_fn(|i| c[i].add(x[$p + i]));
                (times(conj(part(x, 0)), lambda), lambda)
            }
        }

        impl<T: Float> LaneStep<T, $two, $total, 0> for AffineAdjoint {
            #[inline(always)]
            fn step(self, total: [T; $total], x: [T; $two]) -> ([T; $total], [T; 0]) {
                let a: [T; $p] = conj(part(x, 0));
                let b: [T; $p] = std::array::from_fn(|i| total[$p + i].add(x[$p + i]));
                after(total, a, times(a, b))
            }
        }

        impl<T: Float> LaneStep<T, $three, $p, $two> for AffineVjp {
            const COST: usize = 3 * $p;
            #[inline(always)]
            fn step(self, c: [T; $p], x: [T; $three]) -> ([T; $p], [T; $two]) {
                let lambda: [T; $p] = std::array::from_fn(|i| c[i].add(x[$p + i]));
                let before: [T; $p] = part(x, 2 * $p);
                (times(conj(part(x, 0)), lambda), join(times(lambda, conj(before)), lambda))
            }
        }

        impl<T: Float> LaneStep<T, $three, $total, 0> for AffineVjp {
            #[inline(always)]
            fn step(self, total: [T; $total], x: [T; $three]) -> ([T; $total], [T; 0]) {
                LaneStep::<T, $two, $total, 0>::step(AffineAdjoint, total, part(x, 0))
            }
        }

        impl<T: Float> LaneStep<T, $p, $p, $p> for ProductStep {
            #[inline(always)]
            fn step(self, p: [T; $p], x: [T; $p]) -> ([T; $p], [T; $p]) {
                let p = times(p, x);
                (p, p)
            }
        }

        impl<T: Float> LaneStep<T, $p, $total, 0> for ProductStep {
            #[inline(always)]
            fn step(self, total: [T; $total], x: [T; $p]) -> ([T; $total], [T; 0]) {
                after(total, x, part(total, $p))
            }
        }

        affine!(@total AffineStep $two $p $total);
        affine!(@total AffineAdjoint $two $p $total);
        affine!(@total AffineVjp $three $p $total);
        affine!(@total ProductStep $p $p $total);
    };
    (@total $kernel:ident $inputs:literal $p:literal $total:literal) => {
        impl<T: Float> ComposedMap<T, $inputs, $p, $total> for $kernel {
            fn identity(self) -> [T; $total] {
                let mut total = [T::ZERO; $total];
                total[0] = T::ONE;
                total
            }
            fn enter(self, total: [T; $total], state: [T; $p]) -> Option<[T; $p]> {
                enter(part(total, 0), part(total, $p), total[$total - 1], state)
            }
        }
    };
}

/// Total `[A.., B.., loss]` after one more step: A multiplied by a, and the given B.
#[inline(always)]
fn after<T: Float, const P: usize, const R: usize>(
    total: [T; R],
    a: [T; P],
    b: [T; P],
) -> ([T; R], [T; 0]) {
    let before = part::<T, R, P>(total, 0);
    let product = times(a, before);
    // An underflow error is multiplied by all later factors, and a new error is added at each step whose product is
    // subnormal. A factor of 0 makes the error 0.
    let (factor, loss) = (size(a), total[R - 1]);
    let low = size(product) < tiny::<T>() && !size(before).is_zero();
    let grown = loss.mul(factor);
    let grown = if grown > tiny::<T>() { grown } else { tiny::<T>() };
    let off = (low || !loss.is_zero()) && !factor.is_zero();
    let loss = if off { grown } else { T::ZERO };
    let next = |i: usize| match i {
        i if i < P => product[i],
        i if i < 2 * P => b[i - P],
        _ => loss,
    };
    (std::array::from_fn(next), [])
}

affine!(1, 2, 3, 3);
affine!(2, 4, 6, 5);
