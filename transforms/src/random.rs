//! Random numbers as functions of a key, like those of JAX: equal keys give equal numbers, under every transformation.
//!
//! Burn's random tensors come from a generator of the device, whose state every draw changes: two evaluations of a function
//! differ, a scan whose body draws is not compiled, and in a mapped function it must be stated whether examples share the
//! numbers. A key is a tensor: an argument of a compiled function, one row per example in [`vmap`](crate::vmap::vmap), a part
//! of the carry of a scan. Use every key once: [`split`] it, or [`fold_in`] the number of a step.
//!
//! ```
//! use burn::tensor::{FloatDType, Int, Tensor};
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::compile::{Traced, compile};
//! use burn_t4a_transforms::random;
//!
//! type T = Traced<BurnT4a>;
//! let noise = compile(|key| random::normal::<T, 2>(key, [2, 3], FloatDType::F32).unwrap());
//! let key = random::key::<BurnT4a>(42, &T4aDevice);
//! let steps = [0, 1].map(|step| Tensor::<BurnT4a, 1, Int>::from_ints([step], &T4aDevice));
//! let [a, b] = steps.map(|step| noise.call(random::fold_in(key.clone(), step).unwrap()).unwrap());
//! assert_ne!(a.into_data(), b.into_data());
//!
//! // Six keys, each used once.
//! let keys = random::split(key, 6)?;
//! let at = |i: usize| keys.clone().narrow(0, i, 1).reshape([2]);
//! let u = random::uniform(at(0), [100], FloatDType::F64)?;
//! let kept = random::bernoulli(at(1), 0.9, [100])?;
//! let tokens = random::categorical(at(2), u.mask_fill(kept.bool_not(), f64::NEG_INFINITY))?;
//! let order = random::permutation(at(3), 100)?;
//! let dice = random::randint(at(4), [100], 1..7)?;
//! let words = random::bits(at(5), [100])?;
//! assert_eq!((tokens.dims(), order.dims(), (dice + words).dims()), ([1], [100], [100]));
//! # Ok::<(), random::RandomError>(())
//! ```
//!
//! A key is a tensor of two integers of 64 bits, 0 ≤ k < 2³²; the generator is Threefry-2x32 with 20 rounds (Salmon et al.,
//! “Parallel random numbers: as easy as 1, 2, 3”, SC 2011), applied to the position of each element. With equal keys and
//! dtypes, bits, uniform numbers and integers of short ranges are those of `jax.random` in JAX 0.5 or later, and normal
//! numbers up to rounding. Cost: some 150 operations on integers per element, in as many passes unless the function is
//! compiled; numbers from the generator of a device are much faster.

use std::ops::Range;

use burn_backend::tensor::IntTensor;
use burn_backend::{Backend, DType, FloatDType, IntDType, Scalar, Shape, TensorData};
use burn_tensor::{Bool, Int, Tensor, TensorPrimitive};
use t4a_algebra::message::short;
use thiserror::Error;

/// Error of a random function.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RandomError {
    /// The key is not one of [`key`], [`split`] or [`fold_in`].
    #[error("random: a key has shape [2] and dtype I64, given {shape:?} {dtype:?}", shape = short(.shape))]
    Key {
        /// Given shape.
        shape: Shape,
        /// Given dtype.
        dtype: DType,
    },
    /// More numbers than one key has.
    #[error("random: a tensor of shape {shape:?} has more than 2³² − 1 elements", shape = short(.shape))]
    Size {
        /// Given shape.
        shape: Shape,
    },
    /// No integer is in the range, or more than 2³¹.
    #[error("random: randint needs a range of 1 to 2³¹ integers, given {start} to {end}")]
    Range {
        /// Start of the given range.
        start: i64,
        /// Its end, which is not in it.
        end: i64,
    },
    /// The data of [`fold_in`] are not one integer.
    #[error("random: fold_in takes a tensor of one element, given {count}")]
    Data {
        /// Given number of elements.
        count: usize,
    },
    /// Not a probability.
    #[error(
        "random: bernoulli needs a probability between 0 and 1, given {probability}",
        probability = short(.probability)
    )]
    Probability {
        /// The given number as text.
        probability: String,
    },
}

type Result<T> = std::result::Result<T, RandomError>;

const WORD: i64 = 0xFFFF_FFFF;

/// The key of a seed, `[2]`.
pub fn key<B: Backend>(seed: u64, device: &B::Device) -> Tensor<B, 1, Int> {
    let words = [seed >> 32, seed & WORD as u64].map(|word| word as i64);
    Tensor::from_data(TensorData::from(words), (device, DType::I64))
}

/// `count` new keys, the rows of `[count, 2]`.
///
/// # Errors
/// For a tensor that is not a key, and for more than 2³² − 1 keys.
pub fn split<B: Backend>(key: Tensor<B, 1, Int>, count: usize) -> Result<Tensor<B, 2, Int>> {
    let [high, low] = KeyWords::of(key)?.at_positions(&[count].into())?;
    Ok(Tensor::stack(vec![flat(high), flat(low)], 1))
}

/// A new key `[2]` from a key and an integer, such as the number of a step; of `data`, 32 bits count.
///
/// # Errors
/// For a tensor that is not a key, and for `data` that is not one element.
pub fn fold_in<B: Backend, const D: usize>(
    key: Tensor<B, 1, Int>,
    data: Tensor<B, D, Int>,
) -> Result<Tensor<B, 1, Int>> {
    let words = KeyWords::of(key)?;
    let count = data.shape().num_elements();
    if count != 1 {
        return Err(RandomError::Data { count });
    }
    let data = B::int_cast(data.reshape([1]).into_primitive(), IntDType::I64);
    let new = words.hash(masked::<B>(data, WORD)).map(flat);
    Ok(Tensor::cat(new.into(), 0))
}

/// Uniform integers of 32 bits, 0 ≤ x < 2³², of dtype I64.
///
/// # Errors
/// For a tensor that is not a key, and for more than 2³² − 1 elements.
pub fn bits<B: Backend, const D: usize>(
    key: Tensor<B, 1, Int>,
    shape: [usize; D],
) -> Result<Tensor<B, D, Int>> {
    let [high, low] = KeyWords::of(key)?.at_positions(&shape.into())?;
    Ok(flat(B::bitwise_xor(high, low)).reshape(shape))
}

/// Integers of a range of at most 2³¹ integers, of dtype I64: 64 random bits modulo the number of integers, whose
/// probabilities differ by less than 2⁻³². For up to 2¹⁶ integers the numbers are those of JAX, which has 32 bits there.
///
/// # Errors
/// For a tensor that is not a key, for more than 2³² − 1 elements, and for an empty or too long range.
pub fn randint<B: Backend, const D: usize>(
    key: Tensor<B, 1, Int>,
    shape: [usize; D],
    range: Range<i64>,
) -> Result<Tensor<B, D, Int>> {
    let Range { start, end } = range;
    let span = end.checked_sub(start).filter(|span| (1..=1 << 31).contains(span));
    let span = span.ok_or(RandomError::Range { start, end })?;
    let keys = split(key, 2)?;
    let [high, low] = [0, 1].map(|i| bits(row(&keys, i), shape));
    let modulo = |x| B::int_remainder_scalar(x, Scalar::Int(span));
    let [high, low] = [high?, low?].map(|x| modulo(x.into_primitive()));
    // 2³² modulo the span: all products are below 2⁶².
    let high = B::int_mul_scalar(high, Scalar::Int((1 << 32) % span));
    let x = modulo(B::int_add(high, low));
    Ok(Tensor::from_primitive(B::int_add_scalar(x, Scalar::Int(start))))
}

/// Uniform numbers 0 ≤ u < 1: multiples of 2⁻²³ in `f32`, 2⁻⁵² in `f64`, 2⁻¹⁰ in `f16` and
/// 2⁻⁷ in `bf16`.
///
/// # Errors
/// For a tensor that is not a key, and for more than 2³² − 1 elements.
pub fn uniform<B: Backend, const D: usize>(
    key: Tensor<B, 1, Int>,
    shape: [usize; D],
    dtype: FloatDType,
) -> Result<Tensor<B, D>> {
    let words = KeyWords::of(key)?.at_positions(&shape.into())?;
    let x = TensorPrimitive::Float(UniformFormat(dtype).uniform::<B>(words));
    Ok(Tensor::<B, 1>::from_primitive(x).reshape(shape))
}

/// Numbers with the standard normal distribution: `√2 erf⁻¹(2u − 1)`.
///
/// # Errors
/// For a tensor that is not a key, and for more than 2³² − 1 elements.
pub fn normal<B: Backend, const D: usize>(
    key: Tensor<B, 1, Int>,
    shape: [usize; D],
    dtype: FloatDType,
) -> Result<Tensor<B, D>> {
    let format = UniformFormat(dtype);
    // The numbers above −1: the least would be −∞.
    let least = -1.0 + format.below_one();
    // 1 − least, rounded, is 2.
    let u = uniform::<B, D>(key, shape, dtype)? * 2.0 + least;
    let x = inverse_erf(format.wide(u.clamp_min(least)), format) * std::f64::consts::SQRT_2;
    Ok(x.cast(dtype))
}

/// True with the given probability.
///
/// # Errors
/// For a tensor that is not a key, for more than 2³² − 1 elements, and for a number that is not between 0 and 1.
pub fn bernoulli<B: Backend, const D: usize>(
    key: Tensor<B, 1, Int>,
    probability: f64,
    shape: [usize; D],
) -> Result<Tensor<B, D, Bool>> {
    if !(0.0..=1.0).contains(&probability) {
        return Err(RandomError::Probability { probability: probability.to_string() });
    }
    Ok(uniform::<B, D>(key, shape, FloatDType::F32)?.lower_elem(probability))
}

/// One index along the last axis, of size 1 in the result, with probabilities `softmax(logits)` along that axis. Gumbel
/// noise; a logit of −∞ is never drawn if there are others.
///
/// # Errors
/// For a tensor that is not a key, and for more than 2³² − 1 logits.
pub fn categorical<B: Backend, const D: usize>(
    key: Tensor<B, 1, Int>,
    logits: Tensor<B, D>,
) -> Result<Tensor<B, D, Int>> {
    let dtype = FloatDType::from(logits.dtype());
    let format = UniformFormat(dtype);
    let u = uniform::<B, D>(key, logits.dims(), dtype)?.clamp_min(format.smallest());
    let noise = -(-format.wide(u).log()).log();
    Ok((noise.cast(dtype) + logits).argmax(D - 1))
}

/// A permutation of 0 … n − 1, `[n]`, of dtype I64: sorted by random bits, twice for n > 1625 and three times for
/// n > 2 642 245, because bits may be equal; as in JAX.
///
/// # Errors
/// For a tensor that is not a key, and for more than 2³² − 1 elements.
pub fn permutation<B: Backend>(key: Tensor<B, 1, Int>, n: usize) -> Result<Tensor<B, 1, Int>> {
    let rounds = (3.0 * (n.max(1) as f64).ln() / f64::from(u32::MAX).ln()).ceil() as usize;
    let mut keys = split(key, 2)?;
    let mut order = bits(row(&keys, 1), [n])?.argsort(0).cast(IntDType::I64);
    for _ in 1..rounds {
        keys = split(row(&keys, 0), 2)?;
        order = order.select(0, bits(row(&keys, 1), [n])?.argsort(0));
    }
    Ok(order)
}

/// One of several keys.
fn row<B: Backend>(keys: &Tensor<B, 2, Int>, i: usize) -> Tensor<B, 1, Int> {
    keys.clone().narrow(0, i, 1).reshape([2])
}

fn flat<B: Backend>(x: IntTensor<B>) -> Tensor<B, 1, Int> {
    Tensor::from_primitive(x)
}

fn masked<B: Backend>(x: IntTensor<B>, mask: i64) -> IntTensor<B> {
    B::bitwise_and_scalar(x, Scalar::Int(mask))
}

fn shifted_right<B: Backend>(x: IntTensor<B>, by: u32) -> IntTensor<B> {
    B::bitwise_right_shift_scalar(x, Scalar::Int(by.into()))
}

fn shifted_left<B: Backend>(x: IntTensor<B>, by: u32) -> IntTensor<B> {
    B::bitwise_left_shift_scalar(x, Scalar::Int(by.into()))
}

/// A key as two tensors of shape `[1]`.
struct KeyWords<B: Backend>([IntTensor<B>; 2]);

impl<B: Backend> KeyWords<B> {
    fn of(key: Tensor<B, 1, Int>) -> Result<Self> {
        let (shape, dtype) = (key.shape(), key.dtype());
        if shape.num_elements() != 2 || dtype != DType::I64 {
            return Err(RandomError::Key { shape, dtype });
        }
        Ok(Self([0, 1].map(|i| key.clone().narrow(0, i, 1).into_primitive())))
    }

    /// Two random words, `[elements]`, for every position of a tensor.
    fn at_positions(&self, shape: &Shape) -> Result<[IntTensor<B>; 2]> {
        let size = shape.iter().try_fold(1usize, |size, &n| size.checked_mul(n));
        let size = size.and_then(|size| i64::try_from(size).ok()).filter(|&size| size <= WORD);
        let Some(size) = size else { return Err(RandomError::Size { shape: shape.clone() }) };
        let device = B::int_device(&self.0[0]);
        Ok(self.hash(B::int_arange(0..size, &device, IntDType::I64)))
    }

    /// Threefry-2x32 with 20 rounds, of counters whose upper words are 0.
    fn hash(&self, low: IntTensor<B>) -> [IntTensor<B>; 2] {
        const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
        let add = |x, y| masked::<B>(B::int_add(x, y), WORD);
        let [first, second] = self.0.clone();
        let both = B::bitwise_xor(first.clone(), second.clone());
        let third = B::bitwise_xor_scalar(both, Scalar::Int(0x1BD1_1BDA));
        let keys = [first, second, third];
        let (mut x, mut y) = (keys[0].clone(), add(low, keys[1].clone()));
        for group in 0..5 {
            for by in ROTATIONS[group % 2] {
                x = add(x, y.clone());
                let wrapped = shifted_right::<B>(y.clone(), 32 - by);
                y = masked::<B>(B::bitwise_or(shifted_left::<B>(y, by), wrapped), WORD);
                y = B::bitwise_xor(y, x.clone());
            }
            let key = |i: usize| keys[(group + i) % 3].clone();
            x = add(x, key(1));
            y = add(B::int_add_scalar(y, Scalar::Int(group as i64 + 1)), key(2));
        }
        [x, y]
    }
}

/// Formats of uniform numbers.
#[derive(Clone, Copy)]
struct UniformFormat(FloatDType);

impl UniformFormat {
    /// Explicit bits of a significand.
    fn digits(self) -> u32 {
        match self.0 {
            FloatDType::F64 => 52,
            FloatDType::F16 => 10,
            FloatDType::BF16 => 7,
            _ => 23,
        }
    }

    /// Multiples of `2^-digits`. Numbers of 16 bits are made of the lower half of a word, `bf16` of its last byte.
    fn uniform<B: Backend>(self, [high, low]: [IntTensor<B>; 2]) -> B::FloatTensorPrimitive {
        let digits = self.digits();
        let x = if digits > 32 {
            let high = shifted_left::<B>(high, digits - 32);
            B::bitwise_or(high, shifted_right::<B>(low, 64 - digits))
        } else {
            let width = if digits < 8 { 8 } else { digits.next_power_of_two() };
            let x = masked::<B>(B::bitwise_xor(high, low), WORD >> (32 - width));
            shifted_right::<B>(x, width - digits)
        };
        let x = B::int_into_float(x, self.0);
        B::float_mul_scalar(x, Scalar::Float(0.5f64.powi(digits as i32)))
    }

    /// For functions of numbers, at least `f32`.
    fn wide<B: Backend, const D: usize>(self, x: Tensor<B, D>) -> Tensor<B, D> {
        let wide = if self.0 == FloatDType::F64 { FloatDType::F64 } else { FloatDType::F32 };
        x.cast(wide)
    }

    /// Distance of 1 to the next smaller number.
    fn below_one(self) -> f64 {
        0.5f64.powi(self.digits() as i32 + 1)
    }

    /// Smallest normal number.
    fn smallest(self) -> f64 {
        match self.0 {
            FloatDType::F64 => f64::MIN_POSITIVE,
            FloatDType::F16 => 2f64.powi(-14),
            _ => f32::MIN_POSITIVE.into(),
        }
    }
}

/// Polynomials of Giles, “Approximating the erfinv function” (2010), in `−ln(1 − x²)`; in `f64` improved by two steps of
/// Newton's method.
fn inverse_erf<B: Backend, const D: usize>(x: Tensor<B, D>, format: UniformFormat) -> Tensor<B, D> {
    const CENTRE: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    const TAIL: [f64; 9] = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    let w = -(-x.clone() * x.clone()).log1p();
    let polynomial = |[first, rest @ ..]: [f64; 9], w: Tensor<B, D>| {
        rest.into_iter().fold(w.full_like(first), |p, c| p * w.clone() + c)
    };
    let tail = polynomial(TAIL, w.clone().sqrt() - 3.0);
    let centre = polynomial(CENTRE, w.clone() - 2.5);
    let mut y = x.clone() * tail.mask_where(w.lower_elem(5.0), centre);
    if format.0 == FloatDType::F64 {
        for _ in 0..2 {
            let slope = (-y.clone() * y.clone()).exp() * std::f64::consts::FRAC_2_SQRT_PI;
            y = y.clone() - (y.erf() - x.clone()) / slope;
        }
    }
    y
}
