//! Conversion of random words to elements.
//!
//! A [`Draw`] turns one group of 4 × 16 words into a fixed number of elements, so element `i` of a
//! tensor is a function of seed, stream and `i` alone.

use t4a_algebra::simd::{Loop, dispatch, dispatch_narrow};
use t4a_algebra::{Float, Int, Numeric, Scalar};

use super::philox::{LANES, PhiloxGroup, PhiloxStream};
use crate::error::Result;
use crate::loops::parallel;
use crate::output::{Fresh, Full, Output, Workspace};
use crate::tensor::Tensor;

/// Maximum number of elements generated from one group.
pub(super) const MOST: usize = 4 * LANES;
/// Groups per unit of parallel work.
const CHUNK: usize = 256;

/// A distribution: elements from words.
pub(super) trait Draw<T: Scalar>: Copy + Send + Sync {
    /// Elements per group.
    const PER_GROUP: usize;
    /// True if the elements take longer than the words, whose multiplications are a quarter slower on registers of 512
    /// bits (Zen 4, bench `peers`, row `uniform 1024²`).
    const HEAVY: bool = false;
    /// The elements of a group, `PER_GROUP` of them.
    fn draw<'o>(self, words: &PhiloxGroup, out: Fresh<'o, T>) -> Full<'o, T>;
}

/// A tensor of draws.
pub(super) fn fill<T: Scalar, D: Draw<T>>(
    op: &'static str,
    shape: &[usize],
    stream: PhiloxStream,
    draw: D,
) -> Result<Tensor<T>> {
    let out = Output::<T>::new(op, shape)?;
    let (groups, rest) = (out.numel() / D::PER_GROUP, out.numel() % D::PER_GROUP);
    // Of the last group, the first elements.
    let mut last = Workspace::new(if rest == 0 { 0 } else { D::PER_GROUP })?;
    // About sixteen additions per element.
    let parallel = parallel::worthwhile(out.numel(), 16);
    Ok(out.write(|out| {
        let mut out = out.cursor();
        let whole = out.next(groups * D::PER_GROUP);
        out.done(whole.par_chunks(CHUNK * D::PER_GROUP, parallel, |chunk, out| {
            let body = FillGroups { stream, first: (chunk * CHUNK) as u64, draw, out };
            if const { D::HEAVY } { dispatch(body) } else { dispatch_narrow(body) }
        }));
        if rest > 0 {
            let last = last.fresh(D::PER_GROUP);
            let last =
                dispatch_narrow(FillGroups { stream, first: groups as u64, draw, out: last });
            out.copy_from(&last[..rest]);
        }
        out.finish()
    }))
}

/// Whole groups from number `first` on.
struct FillGroups<'o, T, D> {
    stream: PhiloxStream,
    first: u64,
    draw: D,
    out: Fresh<'o, T>,
}

impl<'o, T: Scalar, D: Draw<T>> Loop for FillGroups<'o, T, D> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let groups = (self.out.len() / D::PER_GROUP) as u64;
        let mut out = self.out.cursor();
        for index in self.first..self.first + groups {
            let group = out.next(D::PER_GROUP);
            out.done(self.draw.draw(&self.stream.group(index), group));
        }
        out.finish()
    }
}

/// Float types in which random numbers are computed.
pub trait Accumulator: Float {
    /// True if one word gives an element; otherwise two words are needed.
    const ONE_WORD: bool;
    /// `k · 2⁻ᵖ` of an element with `p` significant bits: uniform on [0, 1), exact in its type.
    fn fraction(high: u32, low: u32, digits: u32) -> Self;
    /// Uniform on (0, 1), with the resolution of this type near 0.
    fn positive_fraction(high: u32, low: u32) -> Self;
}

impl Accumulator for f32 {
    const ONE_WORD: bool = true;
    #[inline(always)]
    fn fraction(high: u32, _low: u32, digits: u32) -> f32 {
        (high >> (32 - digits)) as i32 as f32 * (1.0 / (1u32 << digits) as f32)
    }
    #[inline(always)]
    fn positive_fraction(high: u32, _low: u32) -> f32 {
        // 31 bits, because conversions from signed integers vectorise.
        ((high >> 1) as i32 as f32 + 0.5) * (1.0 / (1u32 << 31) as f32)
    }
}

impl Accumulator for f64 {
    const ONE_WORD: bool = false;
    #[inline(always)]
    fn fraction(high: u32, low: u32, _digits: u32) -> f64 {
        // 52 bits below a leading one: the mantissa of a number in [1, 2).
        let bits = u64::from(high) << 20 | u64::from(low >> 12);
        f64::from_bits(0x3ff << 52 | bits) - 1.0
    }
    #[inline(always)]
    fn positive_fraction(high: u32, low: u32) -> f64 {
        // The distance to 1, half a step inside.
        Self::fraction(high, low, 53) + 0.5 / (1u64 << 52) as f64
    }
}

/// Floats that can be drawn: those computed in `f32` or `f64`.
pub trait Sample: Float<Acc: Accumulator> {
    /// True if one word gives an element; otherwise two words are needed.
    const ONE_WORD: bool = <Self::Acc as Accumulator>::ONE_WORD;
    /// Number of elements generated from one group.
    const PER_GROUP: usize = if Self::ONE_WORD { 4 * LANES } else { 2 * LANES };
}

impl<T: Float<Acc: Accumulator>> Sample for T {}

/// Writes `f(high, low)` for every element of a group: of one word each, or two.
#[inline(always)]
fn each<'o, T: Sample>(
    words: &PhiloxGroup,
    out: Fresh<'o, T>,
    f: impl Fn(u32, u32) -> T,
) -> Full<'o, T> {
    let mut out = out.cursor();
    if T::ONE_WORD {
        for high in words {
            let part = out.next(LANES).each(|lane| f(high[lane], 0));
            out.done(part);
        }
    } else {
        for [high, low] in words.as_chunks().0 {
            let part = out.next(LANES).each(|lane| f(high[lane], low[lane]));
            out.done(part);
        }
    }
    out.finish()
}

/// Uniform on [low, high).
#[derive(Clone, Copy)]
pub(super) struct Uniform<T: Sample> {
    pub(super) low: T::Acc,
    pub(super) span: T::Acc,
    pub(super) high: T,
    /// Replacement for a draw that rounds up to `high`.
    pub(super) last: T,
}

impl<T: Sample> Draw<T> for Uniform<T> {
    const PER_GROUP: usize = <T as Sample>::PER_GROUP;
    #[inline(always)]
    fn draw<'o>(self, words: &PhiloxGroup, out: Fresh<'o, T>) -> Full<'o, T> {
        each(words, out, |high, low| {
            let fraction = T::Acc::fraction(high, low, T::DIGITS);
            let x = T::narrow(fraction.mul_add(self.span, self.low));
            if x >= self.high { self.last } else { x }
        })
    }
}

/// Normal, by the transform of Box and Muller: `√(−2 ln u)·(cos 2πv, sin 2πv)` of uniform `u`, `v`.
#[derive(Clone, Copy)]
pub(super) struct Normal<T: Sample> {
    pub(super) mean: T::Acc,
    pub(super) deviation: T::Acc,
}

impl<T: Sample> Normal<T> {
    #[inline(always)]
    fn pair(self, u: T::Acc, v: T::Acc) -> (T, T) {
        let two = T::Acc::ONE.add(T::Acc::ONE);
        let radius = u.ln().mul(two).neg().sqrt().mul(self.deviation);
        let (sin, cos) = v.sin_cos_turns();
        let (x, y) = (cos.mul_add(radius, self.mean), sin.mul_add(radius, self.mean));
        (T::narrow(x), T::narrow(y))
    }
}

impl<T: Sample> Draw<T> for Normal<T> {
    const PER_GROUP: usize = <T as Sample>::PER_GROUP;
    const HEAVY: bool = true;
    #[inline(always)]
    fn draw<'o>(self, words: &PhiloxGroup, out: Fresh<'o, T>) -> Full<'o, T> {
        let mut out = out.cursor();
        if T::ONE_WORD {
            for [u, v] in words.as_chunks().0 {
                let pairs = out.next(2 * LANES).halves(|lane| {
                    self.pair(
                        T::Acc::positive_fraction(u[lane], 0),
                        T::Acc::positive_fraction(v[lane], 0),
                    )
                });
                out.done(pairs);
            }
        } else {
            let pairs = out.next(2 * LANES).halves(|lane| {
                let [u, v] =
                    [0, 2].map(|i| T::Acc::positive_fraction(words[i][lane], words[i + 1][lane]));
                self.pair(u, v)
            });
            out.done(pairs);
        }
        out.finish()
    }
}

/// One of two values, with probability `threshold · 2⁻³²` the second one.
#[derive(Clone, Copy)]
pub(super) struct Bernoulli<T> {
    pub(super) threshold: u64,
    pub(super) values: [T; 2],
}

impl<T: Scalar> Draw<T> for Bernoulli<T> {
    const PER_GROUP: usize = 4 * LANES;
    #[inline(always)]
    fn draw<'o>(self, words: &PhiloxGroup, out: Fresh<'o, T>) -> Full<'o, T> {
        out.map(words.as_flattened(), |word| {
            let success = u64::from(word) < self.threshold;
            if success { self.values[1] } else { self.values[0] }
        })
    }
}

/// Uniform integers `low + k` with `k < span ≤ 2³²`: the upper bits of a 64-bit word times `span`. No
/// value is more than 2⁻³² likelier than another.
#[derive(Clone, Copy)]
pub(super) struct UniformInt<I> {
    pub(super) low: I,
    pub(super) span: u64,
}

impl<I: Int> Draw<I> for UniformInt<I> {
    const PER_GROUP: usize = 2 * LANES;
    #[inline(always)]
    fn draw<'o>(self, words: &PhiloxGroup, out: Fresh<'o, I>) -> Full<'o, I> {
        let mut out = out.cursor();
        for [high, low] in words.as_chunks().0 {
            let part = out.next(LANES).each(|lane| {
                let carry = (u64::from(low[lane]) * self.span) >> 32;
                let k = (u64::from(high[lane]) * self.span + carry) >> 32;
                self.low.add(I::from_i64(k as i64))
            });
            out.done(part);
        }
        out.finish()
    }
}

/// Uniform integers `low + k` with `k < span`, where a span of 0 means 2⁶⁴: the upper bits of a 128-bit product with
/// `span`.
#[derive(Clone, Copy)]
pub(super) struct UniformWide<I> {
    pub(super) low: I,
    pub(super) span: u64,
}

impl<I: Int> Draw<I> for UniformWide<I> {
    const PER_GROUP: usize = LANES;
    #[inline(always)]
    fn draw<'o>(self, words: &PhiloxGroup, out: Fresh<'o, I>) -> Full<'o, I> {
        out.each(|lane| {
            let word =
                |i: usize| u64::from(words[2 * i][lane]) << 32 | u64::from(words[2 * i + 1][lane]);
            let k = if self.span == 0 {
                word(0)
            } else {
                let carry = (u128::from(word(1)) * u128::from(self.span)) >> 64;
                ((u128::from(word(0)) * u128::from(self.span) + carry) >> 64) as u64
            };
            self.low.add(I::from_i64(k as i64))
        })
    }
}

/// Draws of `f64`, truncated to integers.
#[derive(Clone, Copy)]
pub(super) struct TruncatedDraw<D>(pub(super) D);

impl<I: Int, D: Draw<f64>> Draw<I> for TruncatedDraw<D> {
    const PER_GROUP: usize = D::PER_GROUP;
    #[inline(always)]
    fn draw<'o>(self, words: &PhiloxGroup, out: Fresh<'o, I>) -> Full<'o, I> {
        let mut reals = [0.0; MOST];
        let reals = self.0.draw(words, Fresh::over(&mut reals[..D::PER_GROUP]));
        out.map(&reals, I::from_f64)
    }
}
