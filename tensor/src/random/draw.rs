//! Random words as elements.
//!
//! A [`Draw`] turns one group of 4 × 16 words into a fixed number of elements, so element `i` of a
//! tensor is a function of seed, stream and `i` alone.

use std::mem::MaybeUninit;

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Int, Numeric, Scalar, bf16, f16};

use super::philox::{Group, LANES, Stream};
use crate::error::Result;
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::tensor::Tensor;

/// Most elements that one group makes.
pub(super) const MOST: usize = 4 * LANES;
/// Groups per unit of parallel work.
const CHUNK: usize = 256;

/// A distribution: elements from words.
pub(super) trait Draw<T: Scalar>: Copy + Send + Sync {
    /// Elements per group.
    const PER_GROUP: usize;
    /// The elements of a group, `PER_GROUP` of them.
    fn draw(self, words: &Group, out: &mut [MaybeUninit<T>]);
}

/// A tensor of draws.
pub(super) fn fill<T: Scalar, D: Draw<T>>(
    op: &'static str,
    shape: &[usize],
    stream: Stream,
    draw: D,
) -> Result<Tensor<T>> {
    let mut out = Output::<T>::new(op, shape)?;
    let numel = out.layout().numel();
    let dst = SendPtr(out.as_mut_ptr());
    let chunk_len = CHUNK * D::PER_GROUP;
    // About sixteen additions per element.
    let parallel = parallel::worthwhile(numel, 16);
    parallel::for_each(numel.div_ceil(chunk_len), parallel, &|chunk| {
        let start = chunk * chunk_len;
        let len = chunk_len.min(numel - start);
        // SAFETY: chunks are disjoint parts of the result.
        let out = unsafe { std::slice::from_raw_parts_mut(dst.get().add(start).cast(), len) };
        dispatch(Fill { stream, first: (chunk * CHUNK) as u64, draw, out });
    });
    // SAFETY: every chunk was written.
    Ok(unsafe { out.assume_init() })
}

struct Fill<'a, T, D> {
    stream: Stream,
    first: u64,
    draw: D,
    out: &'a mut [MaybeUninit<T>],
}

impl<T: Scalar, D: Draw<T>> Loop for Fill<'_, T, D> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut groups = self.out.chunks_exact_mut(D::PER_GROUP);
        let mut index = self.first;
        for out in &mut groups {
            self.draw.draw(&self.stream.group(index), out);
            index += 1;
        }
        let rest = groups.into_remainder();
        if !rest.is_empty() {
            let mut last = [const { MaybeUninit::uninit() }; MOST];
            let last = &mut last[..D::PER_GROUP];
            self.draw.draw(&self.stream.group(index), last);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

/// Floats that can be drawn, computed in `f32` or `f64`.
pub trait Sample: Float {
    /// What is computed in.
    type Wide: Float;
    /// Whether one word makes an element; otherwise two do.
    const ONE_WORD: bool;
    /// `k · 2⁻ᵖ` with `p` significant bits: uniform on [0, 1), exact in this type.
    fn fraction(high: u32, low: u32) -> Self::Wide;
    /// Uniform on (0, 1), as fine as `Wide` allows near 0.
    fn positive_fraction(high: u32, low: u32) -> Self::Wide;
    /// Rounds to this type.
    fn lower(wide: Self::Wide) -> Self;
    /// Converts to what is computed in.
    fn lift(self) -> Self::Wide;
    /// The largest number below.
    fn next_down(self) -> Self;
}

macro_rules! sample {
    ($($t:ident $bits:literal $next:expr;)*) => {$(
        impl Sample for $t {
            type Wide = f32;
            const ONE_WORD: bool = true;
            #[inline(always)]
            fn fraction(high: u32, _low: u32) -> f32 {
                (high >> (32 - $bits)) as i32 as f32 * (1.0 / (1u32 << $bits) as f32)
            }
            #[inline(always)]
            fn positive_fraction(high: u32, _low: u32) -> f32 {
                // 31 bits, because conversions from signed integers vectorise.
                ((high >> 1) as i32 as f32 + 0.5) * (1.0 / (1u32 << 31) as f32)
            }
            #[inline(always)]
            fn lower(wide: f32) -> Self { <$t as Lower>::from_wide(wide) }
            #[inline(always)]
            fn lift(self) -> f32 { self.widen() }
            fn next_down(self) -> Self { $next(self) }
        }
    )*};
}

/// Rounding from `f32`, which is the accumulator of the 16-bit types and `f32` itself.
trait Lower: Numeric<Acc = f32> {
    #[inline(always)]
    fn from_wide(wide: f32) -> Self {
        Self::narrow(wide)
    }
}
impl Lower for f32 {}
impl Lower for f16 {}
impl Lower for bf16 {}

macro_rules! next_down_bits {
    ($t:ident) => {
        |x: $t| match x.to_bits() {
            0 | 0x8000 => $t::from_bits(0x8001),
            bits if bits < 0x8000 => $t::from_bits(bits - 1),
            bits => $t::from_bits(bits + 1),
        }
    };
}

sample! {
    f32 24 f32::next_down;
    f16 11 next_down_bits!(f16);
    bf16 8 next_down_bits!(bf16);
}

impl Sample for f64 {
    type Wide = f64;
    const ONE_WORD: bool = false;
    #[inline(always)]
    fn fraction(high: u32, low: u32) -> f64 {
        // 52 bits below a leading one: the mantissa of a number in [1, 2).
        let bits = u64::from(high) << 20 | u64::from(low >> 12);
        f64::from_bits(0x3ff << 52 | bits) - 1.0
    }
    #[inline(always)]
    fn positive_fraction(high: u32, low: u32) -> f64 {
        // The distance to 1, half a step inside.
        Self::fraction(high, low) + 0.5 / (1u64 << 52) as f64
    }
    #[inline(always)]
    fn lower(wide: f64) -> f64 {
        wide
    }
    #[inline(always)]
    fn lift(self) -> f64 {
        self
    }
    fn next_down(self) -> f64 {
        f64::next_down(self)
    }
}

/// Calls `f(element, high, low)` for every element: one word each, or two.
#[inline(always)]
fn each<T: Sample>(words: &Group, mut f: impl FnMut(usize, u32, u32)) {
    if T::ONE_WORD {
        for (word, lanes) in words.iter().enumerate() {
            for (lane, &high) in lanes.iter().enumerate() {
                f(word * LANES + lane, high, 0);
            }
        }
    } else {
        for half in 0..2 {
            for lane in 0..LANES {
                f(half * LANES + lane, words[2 * half][lane], words[2 * half + 1][lane]);
            }
        }
    }
}

/// Uniform on [low, high).
#[derive(Clone, Copy)]
pub(super) struct Uniform<T: Sample> {
    pub(super) low: T::Wide,
    pub(super) span: T::Wide,
    pub(super) high: T,
    /// What a draw that rounds up to `high` becomes.
    pub(super) last: T,
}

impl<T: Sample> Draw<T> for Uniform<T> {
    const PER_GROUP: usize = if T::ONE_WORD { 4 * LANES } else { 2 * LANES };
    #[inline(always)]
    fn draw(self, words: &Group, out: &mut [MaybeUninit<T>]) {
        let out = &mut out[..Self::PER_GROUP];
        each::<T>(words, |i, high, low| {
            let x = T::lower(T::fraction(high, low).mul_add(self.span, self.low));
            out[i].write(if x >= self.high { self.last } else { x });
        });
    }
}

/// Normal, by the transform of Box and Muller: `√(−2 ln u)·(cos 2πv, sin 2πv)` of uniform `u`, `v`.
#[derive(Clone, Copy)]
pub(super) struct Normal<T: Sample> {
    pub(super) mean: T::Wide,
    pub(super) deviation: T::Wide,
}

impl<T: Sample> Normal<T> {
    #[inline(always)]
    fn pair(self, u: T::Wide, v: T::Wide) -> [T; 2] {
        let two = T::Wide::ONE.add(T::Wide::ONE);
        let radius = u.ln().mul(two).neg().sqrt().mul(self.deviation);
        let angle = v.mul(T::Wide::from_f64(std::f64::consts::TAU));
        let x = angle.cos().mul_add(radius, self.mean);
        let y = angle.sin().mul_add(radius, self.mean);
        [T::lower(x), T::lower(y)]
    }
}

impl<T: Sample> Draw<T> for Normal<T> {
    const PER_GROUP: usize = if T::ONE_WORD { 4 * LANES } else { 2 * LANES };
    #[inline(always)]
    fn draw(self, words: &Group, out: &mut [MaybeUninit<T>]) {
        let out = &mut out[..Self::PER_GROUP];
        if T::ONE_WORD {
            for half in 0..2 {
                let (first, second) = out[2 * half * LANES..][..2 * LANES].split_at_mut(LANES);
                for lane in 0..LANES {
                    let u = T::positive_fraction(words[2 * half][lane], 0);
                    let v = T::positive_fraction(words[2 * half + 1][lane], 0);
                    let [x, y] = self.pair(u, v);
                    first[lane].write(x);
                    second[lane].write(y);
                }
            }
        } else {
            let (first, second) = out.split_at_mut(LANES);
            for lane in 0..LANES {
                let u = T::positive_fraction(words[0][lane], words[1][lane]);
                let v = T::positive_fraction(words[2][lane], words[3][lane]);
                let [x, y] = self.pair(u, v);
                first[lane].write(x);
                second[lane].write(y);
            }
        }
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
    fn draw(self, words: &Group, out: &mut [MaybeUninit<T>]) {
        for (out, &word) in out.iter_mut().zip(words.iter().flatten()) {
            let success = u64::from(word) < self.threshold;
            out.write(if success { self.values[1] } else { self.values[0] });
        }
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
    fn draw(self, words: &Group, out: &mut [MaybeUninit<I>]) {
        for half in 0..2 {
            let out = &mut out[half * LANES..][..LANES];
            for lane in 0..LANES {
                let (high, low) = (words[2 * half][lane], words[2 * half + 1][lane]);
                let carry = (u64::from(low) * self.span) >> 32;
                let k = (u64::from(high) * self.span + carry) >> 32;
                out[lane].write(self.low.add(I::from_i64(k as i64)));
            }
        }
    }
}

/// Uniform integers `low + k` with `k < span`, where a span of 0 stands for 2⁶⁴: the upper bits of a
/// 128-bit word times `span`.
#[derive(Clone, Copy)]
pub(super) struct UniformWide<I> {
    pub(super) low: I,
    pub(super) span: u64,
}

impl<I: Int> Draw<I> for UniformWide<I> {
    const PER_GROUP: usize = LANES;
    #[inline(always)]
    fn draw(self, words: &Group, out: &mut [MaybeUninit<I>]) {
        for lane in 0..LANES {
            let word =
                |i: usize| u64::from(words[2 * i][lane]) << 32 | u64::from(words[2 * i + 1][lane]);
            let k = if self.span == 0 {
                word(0)
            } else {
                let carry = (u128::from(word(1)) * u128::from(self.span)) >> 64;
                ((u128::from(word(0)) * u128::from(self.span) + carry) >> 64) as u64
            };
            out[lane].write(self.low.add(I::from_i64(k as i64)));
        }
    }
}

/// Draws of `f64`, truncated to integers.
#[derive(Clone, Copy)]
pub(super) struct Truncated<D>(pub(super) D);

impl<I: Int, D: Draw<f64>> Draw<I> for Truncated<D> {
    const PER_GROUP: usize = D::PER_GROUP;
    #[inline(always)]
    fn draw(self, words: &Group, out: &mut [MaybeUninit<I>]) {
        let mut reals = [const { MaybeUninit::uninit() }; MOST];
        let reals = &mut reals[..D::PER_GROUP];
        self.0.draw(words, reals);
        for (out, real) in out.iter_mut().zip(reals) {
            // SAFETY: `draw` writes PER_GROUP elements.
            out.write(I::from_f64(unsafe { real.assume_init() }));
        }
    }
}
