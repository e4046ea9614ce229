//! Semirings in the operations of any backend: the vocabulary of the portable contraction and of
//! its derivative.
//!
//! Terms of a sum stand along one axis. What holds for numbers holds here: 0 of the semiring
//! absorbs everything but NaN, and a sum without a candidate passes no derivative on.

use burn_backend::tensor::{BoolTensor, FloatTensor};
use burn_backend::{Backend, Scalar, TensorMetadata, get_device_settings};
use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Semiring, Standard, bf16, f16};
use t4a_einsum::Differentiable;

/// A semiring over floats on Burn tensors.
///
/// Elementwise functions broadcast operands of equal rank. The element-by-element rules of the
/// supertraits are what the engine runs; these are the same in operations of a backend, which
/// makes them differentiable in turn.
pub trait TensorSemiring:
    Differentiable<f64> + Differentiable<f32> + Differentiable<f16> + Differentiable<bf16>
{
    /// `a ⊗ b`.
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B>;

    /// ⊕ along an axis, which stays with size 1. It has at least one element.
    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B>;

    /// `∂(t₁ ⊕ t₂ ⊕ …)/∂tₖ` along an axis. The default is 1 for the first term that equals the
    /// sum.
    fn weights<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        winner::<Self, B>(terms, axis)
    }

    /// `g ∂(a ⊗ b)/∂a` and `g ∂(a ⊗ b)/∂b` for `g` of the shape of the product. The default is
    /// that of a sum.
    fn factors<B: Backend>(
        a: FloatTensor<B>,
        b: FloatTensor<B>,
        g: FloatTensor<B>,
    ) -> [FloatTensor<B>; 2] {
        drop((a, b));
        [g.clone(), g]
    }
}

/// 0 of the semiring as a scalar argument.
pub(super) fn zero<S: TensorSemiring>() -> Scalar {
    Scalar::Float(<S as Semiring<f64>>::ZERO)
}

/// 1 for the first term that equals the sum, unless that is 0 of the semiring.
fn winner<S: TensorSemiring, B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
    let (shape, dtype) = (terms.shape(), terms.dtype());
    let device = B::float_device(&terms);
    let settings = get_device_settings::<B>(&device);
    let terms = B::float_detach(terms);
    let best = B::float_expand(S::sum::<B>(terms.clone(), axis), shape.clone());
    let dead = B::float_equal_elem(best.clone(), zero::<S>(), settings.bool_dtype);
    let best = B::float_equal(terms, best, settings.bool_dtype);
    // Position of each winner, the length of the axis elsewhere; the smallest is the first.
    let length = shape[axis];
    let mut line = vec![1; shape.num_dims()];
    line[axis] = length;
    let places = B::int_arange(0..length as i64, &device, settings.int_dtype);
    let places = B::int_expand(B::int_reshape(places, line.into()), shape.clone());
    let places = B::int_mask_fill(places, B::bool_not(best.clone()), Scalar::Int(length as i64));
    let first = B::int_expand(B::int_min_dim(places.clone(), axis), shape);
    let first = B::int_equal(places, first, settings.bool_dtype);
    let wins = B::bool_and(B::bool_and(first, best), B::bool_not(dead));
    B::bool_into_float(wins, dtype.into())
}

/// `value` where `a ∘ b` came out NaN from operands that were none, as −∞ + ∞ does: there both
/// operands have their infinities of the wrong sign set to 0 first.
fn absorb<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    wrong: f64,
    f: impl Fn(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
) -> FloatTensor<B> {
    let plain = f(a.clone(), b.clone());
    let bools = get_device_settings::<B>(&B::float_device(&plain)).bool_dtype;
    let without = |x: FloatTensor<B>| {
        let mask = B::float_equal_elem(x.clone(), Scalar::Float(wrong), bools);
        B::float_mask_fill(x, mask, Scalar::Float(0.0))
    };
    let absorbed = f(without(a), without(b));
    let mask = B::float_is_nan(plain.clone(), bools);
    B::float_mask_where(plain, mask, absorbed)
}

/// `a + b` with −∞ + ∞ = −∞.
fn sum_below<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
    absorb::<B>(a, b, f64::INFINITY, B::float_add)
}

/// The cotangents of `a · b`.
fn of_product<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    g: FloatTensor<B>,
) -> [FloatTensor<B>; 2] {
    [B::float_mul(g.clone(), b), B::float_mul(g, a)]
}

/// a where the mask holds, else b, of one shape.
fn choose<B: Backend>(mask: BoolTensor<B>, a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
    B::float_mask_where(b, mask, a)
}

/// Both operands in their common shape.
fn broadcast<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> [FloatTensor<B>; 2] {
    let (x, y) = (a.shape(), b.shape());
    let common: Vec<usize> = x.iter().zip(y.iter()).map(|(&x, &y)| x.max(y)).collect();
    [a, b].map(|t| B::float_expand(t, common.clone().into()))
}

impl TensorSemiring for Standard {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        B::float_mul(a, b)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        B::float_sum_dim(terms, axis)
    }

    fn weights<B: Backend>(terms: FloatTensor<B>, _axis: usize) -> FloatTensor<B> {
        B::float_ones(terms.shape(), &B::float_device(&terms), terms.dtype().into())
    }

    fn factors<B: Backend>(
        a: FloatTensor<B>,
        b: FloatTensor<B>,
        g: FloatTensor<B>,
    ) -> [FloatTensor<B>; 2] {
        of_product::<B>(a, b, g)
    }
}

impl TensorSemiring for MaxPlus {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        sum_below::<B>(a, b)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        B::float_max_dim(terms, axis)
    }
}

impl TensorSemiring for MinPlus {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        absorb::<B>(a, b, f64::NEG_INFINITY, B::float_add)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        B::float_min_dim(terms, axis)
    }
}

impl TensorSemiring for MaxMul {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        absorb::<B>(a, b, f64::INFINITY, B::float_mul)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        B::float_max_dim(terms, axis)
    }

    fn factors<B: Backend>(
        a: FloatTensor<B>,
        b: FloatTensor<B>,
        g: FloatTensor<B>,
    ) -> [FloatTensor<B>; 2] {
        of_product::<B>(a, b, g)
    }
}

impl TensorSemiring for MaxMin {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        let [a, b] = broadcast::<B>(a, b);
        let bools = get_device_settings::<B>(&B::float_device(&a)).bool_dtype;
        let above = B::float_greater(a.clone(), b.clone(), bools);
        let nan = B::float_is_nan(b.clone(), bools);
        choose::<B>(B::bool_or(above, nan), b, a)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        B::float_max_dim(terms, axis)
    }

    fn factors<B: Backend>(
        a: FloatTensor<B>,
        b: FloatTensor<B>,
        g: FloatTensor<B>,
    ) -> [FloatTensor<B>; 2] {
        // The smaller one, a of two equals.
        let [a, b] = broadcast::<B>(a, b);
        let bools = get_device_settings::<B>(&B::float_device(&a)).bool_dtype;
        let b_smaller = B::float_lower(b, a, bools);
        let a_smaller = B::bool_not(b_smaller.clone());
        let without = |mask| B::float_mask_fill(g.clone(), mask, Scalar::Float(0.0));
        [without(b_smaller), without(a_smaller)]
    }
}

impl TensorSemiring for LogSumExp {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        sum_below::<B>(a, b)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        let shift = finite_max::<B>(terms.clone(), axis);
        let sum = B::float_sum_dim(B::float_exp(B::float_sub(terms, shift.clone())), axis);
        B::float_add(B::float_log(sum), shift)
    }

    /// `exp(t − c)`; terms of +∞ share equally.
    fn weights<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        let (shape, dtype) = (terms.shape(), terms.dtype());
        let shift = finite_max::<B>(terms.clone(), axis);
        let parts = B::float_exp(B::float_sub(terms.clone(), shift));
        let whole = B::float_sum_dim(parts.clone(), axis);
        let bools = get_device_settings::<B>(&B::float_device(&whole)).bool_dtype;
        let dead = B::float_equal_elem(whole.clone(), Scalar::Float(0.0), bools);
        let finite = B::float_div(parts, B::float_mask_fill(whole, dead, Scalar::Float(1.0)));
        let infinite = B::float_equal_elem(terms, Scalar::Float(f64::INFINITY), bools);
        let count = B::float_sum_dim(B::bool_into_float(infinite.clone(), dtype.into()), axis);
        let share = B::float_recip(B::float_clamp_min(count, Scalar::Float(1.0)));
        choose::<B>(infinite, B::float_expand(share, shape), finite)
    }
}

/// The maximum along an axis, 0 where it is infinite; a constant of the tape.
fn finite_max<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
    let most = B::float_max_dim(B::float_detach(terms), axis);
    let bools = get_device_settings::<B>(&B::float_device(&most)).bool_dtype;
    let infinite = B::float_is_inf(most.clone(), bools);
    B::float_mask_fill(most, infinite, Scalar::Float(0.0))
}
