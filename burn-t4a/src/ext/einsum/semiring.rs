//! Semirings in the operations of any backend: the vocabulary of the portable contraction and of
//! its derivative.
//!
//! Terms of a sum stand along one axis. What holds for numbers holds here: 0 of the semiring
//! absorbs everything but NaN, and a sum without a candidate passes no derivative on.

use burn_backend::tensor::{BoolTensor, FloatTensor};
use burn_backend::{Backend, Scalar, TensorMetadata, get_device_settings};
use burn_std::BoolDType;
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

    /// ⊕ along an axis, which stays with size 1. It has at least one element. NaN is passed on.
    ///
    /// A tape differentiates this, and [`TensorSemiring::weights`], for second derivatives: nothing
    /// infinite may enter an operation whose derivative is infinite or NaN there.
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

/// How booleans are stored beside a tensor.
fn bools<B: Backend>(x: &FloatTensor<B>) -> BoolDType {
    get_device_settings::<B>(&B::float_device(x)).bool_dtype
}

/// 1 for the first term that equals the sum, or is NaN as it is, unless that is 0 of the semiring.
fn winner<S: TensorSemiring, B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
    let (shape, dtype) = (terms.shape(), terms.dtype());
    let device = B::float_device(&terms);
    let settings = get_device_settings::<B>(&device);
    let terms = B::float_detach(terms);
    let best = B::float_expand(S::sum::<B>(terms.clone(), axis), shape.clone());
    let dead = B::float_equal_elem(best.clone(), zero::<S>(), settings.bool_dtype);
    let nan = B::float_is_nan(terms.clone(), settings.bool_dtype);
    let best = B::bool_or(B::float_equal(terms, best, settings.bool_dtype), nan);
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

/// The extremum along an axis, NaN if there is one: backends differ in whether they pass that on.
fn extremum<S: TensorSemiring, B: Backend>(
    terms: FloatTensor<B>,
    axis: usize,
    of: impl Fn(FloatTensor<B>, usize) -> FloatTensor<B>,
) -> FloatTensor<B> {
    let nan = B::float_is_nan(terms.clone(), bools::<B>(&terms));
    let any = B::bool_any_dim(nan.clone(), axis);
    let best = of(B::float_mask_fill(terms, nan, zero::<S>()), axis);
    B::float_mask_fill(best, any, Scalar::Float(f64::NAN))
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
    let bools = bools::<B>(&plain);
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

/// `w · p`, and 0 where w is 0 and p no number: in the gradient of this product too, which is why p
/// and not the product is masked.
pub(super) fn scaled<B: Backend>(w: FloatTensor<B>, p: FloatTensor<B>) -> FloatTensor<B> {
    let bools = bools::<B>(&p);
    // Before p is repeated.
    let odd = B::float_is_inf(p.clone(), bools);
    let odd = B::bool_or(odd, B::float_is_nan(p.clone(), bools));
    let [w, p] = broadcast::<B>(w, p);
    let none = B::float_equal_elem(w.clone(), Scalar::Float(0.0), bools);
    let idle = B::bool_and(B::bool_expand(odd, w.shape()), none);
    B::float_mul(w, B::float_mask_fill(p, idle, Scalar::Float(0.0)))
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
        [B::float_mul(g.clone(), b), B::float_mul(g, a)]
    }
}

impl TensorSemiring for MaxPlus {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        sum_below::<B>(a, b)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        extremum::<Self, B>(terms, axis, B::float_max_dim)
    }
}

impl TensorSemiring for MinPlus {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        absorb::<B>(a, b, f64::NEG_INFINITY, B::float_add)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        extremum::<Self, B>(terms, axis, B::float_min_dim)
    }
}

impl TensorSemiring for MaxMul {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        // 0 · ∞ is masked in the operands: masked in the product, its gradient would be 0 · ∞ again.
        let [a, b] = broadcast::<B>(a, b);
        let bools = bools::<B>(&a);
        let is =
            |x: &FloatTensor<B>, value| B::float_equal_elem(x.clone(), Scalar::Float(value), bools);
        let meet = |zero: &FloatTensor<B>, far: &FloatTensor<B>| {
            B::bool_and(is(zero, 0.0), is(far, f64::INFINITY))
        };
        let absorbed = B::bool_or(meet(&a, &b), meet(&b, &a));
        let [a, b] = [a, b].map(|x| B::float_mask_fill(x, absorbed.clone(), Scalar::Float(0.0)));
        B::float_mul(a, b)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        extremum::<Self, B>(terms, axis, B::float_max_dim)
    }

    fn factors<B: Backend>(
        a: FloatTensor<B>,
        b: FloatTensor<B>,
        g: FloatTensor<B>,
    ) -> [FloatTensor<B>; 2] {
        [scaled::<B>(g.clone(), b), scaled::<B>(g, a)]
    }
}

impl TensorSemiring for MaxMin {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        let [a, b] = broadcast::<B>(a, b);
        let bools = bools::<B>(&a);
        let above = B::float_greater(a.clone(), b.clone(), bools);
        let nan = B::float_is_nan(b.clone(), bools);
        choose::<B>(B::bool_or(above, nan), b, a)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        extremum::<Self, B>(terms, axis, B::float_max_dim)
    }

    fn factors<B: Backend>(
        a: FloatTensor<B>,
        b: FloatTensor<B>,
        g: FloatTensor<B>,
    ) -> [FloatTensor<B>; 2] {
        // The smaller one, a of two equals, and NaN before a number.
        let [a, b] = broadcast::<B>(a, b);
        let bools = bools::<B>(&a);
        let smaller = B::float_lower(b.clone(), a.clone(), bools);
        let number = B::bool_not(B::float_is_nan(a, bools));
        let nan = B::bool_and(B::float_is_nan(b, bools), number);
        let counts_b = B::bool_or(smaller, nan);
        let counts_a = B::bool_not(counts_b.clone());
        let without = |mask| B::float_mask_fill(g.clone(), mask, Scalar::Float(0.0));
        [without(counts_b), without(counts_a)]
    }
}

/// The terms of log-sum-exp as numbers between 0 and 1. Nothing here is infinite, and neither is a
/// derivative of it: what is 0 because a mask says so has none.
struct Exponentials<B: Backend> {
    /// `exp(t − shift)`, 0 for infinite t.
    parts: FloatTensor<B>,
    /// Their sum, 1 where that is 0.
    total: FloatTensor<B>,
    shift: FloatTensor<B>,
    /// Where the sum is 0.
    dead: BoolTensor<B>,
    /// Terms that are +∞, and sums that are.
    high: BoolTensor<B>,
    infinite: BoolTensor<B>,
}

impl<B: Backend> Exponentials<B> {
    fn new(terms: FloatTensor<B>, axis: usize) -> Self {
        let bools = bools::<B>(&terms);
        let high = B::float_equal_elem(terms.clone(), Scalar::Float(f64::INFINITY), bools);
        let low = Scalar::Float(f64::NEG_INFINITY);
        let terms = B::float_mask_fill(terms, high.clone(), low);
        // The maximum, 0 where it is infinite; a constant of the tape.
        let most = B::float_max_dim(B::float_detach(terms.clone()), axis);
        let none = B::float_is_inf(most.clone(), bools);
        let shift = B::float_mask_fill(most, none, Scalar::Float(0.0));
        let parts = B::float_exp(B::float_sub(terms, shift.clone()));
        let total = B::float_sum_dim(parts.clone(), axis);
        let dead = B::float_equal_elem(total.clone(), Scalar::Float(0.0), bools);
        let number = B::bool_not(B::float_is_nan(total.clone(), bools));
        let infinite = B::bool_and(B::bool_any_dim(high.clone(), axis), number);
        let total = B::float_mask_fill(total, dead.clone(), Scalar::Float(1.0));
        Self { parts, total, shift, dead, high, infinite }
    }
}

impl TensorSemiring for LogSumExp {
    fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
        sum_below::<B>(a, b)
    }

    fn sum<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        let Exponentials { total, shift, dead, infinite, .. } = Exponentials::<B>::new(terms, axis);
        let sum = B::float_add(B::float_log(total), shift);
        let sum = B::float_mask_fill(sum, dead, Scalar::Float(f64::NEG_INFINITY));
        B::float_mask_fill(sum, infinite, Scalar::Float(f64::INFINITY))
    }

    /// `exp(t − c)`; terms of +∞ share equally.
    fn weights<B: Backend>(terms: FloatTensor<B>, axis: usize) -> FloatTensor<B> {
        let (shape, dtype) = (terms.shape(), terms.dtype());
        let Exponentials { parts, total, high, infinite, .. } = Exponentials::<B>::new(terms, axis);
        let finite = B::float_div(parts, total);
        let high = B::bool_into_float(high, dtype.into());
        let count = B::float_sum_dim(high.clone(), axis);
        let share = B::float_div(high, B::float_clamp_min(count, Scalar::Float(1.0)));
        choose::<B>(B::bool_expand(infinite, shape), share, finite)
    }
}
