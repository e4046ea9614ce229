//! Random numbers as functions of keys against those of JAX: numbers stored in `random_numbers.rs`, which
//! `random_numbers.py` generates.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{FloatDType, Int, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::{Options, ScanBackend, scan};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::grad;
use burn_t4a_transforms::random::{self, RandomError, key, split};
use burn_t4a_transforms::vmap::{Vmap, vmap};

use super::random_numbers as jax;

type B = BurnT4a;
type T = Traced<B>;
type Keys<B, const D: usize> = Tensor<B, D, Int>;

const LARGE: u64 = (7 << 32) + (1 << 31) + 5;

fn seed<C: Backend>(seed: u64) -> Keys<C, 1> {
    key(seed, &C::Device::default())
}

fn row<C: Backend>(keys: &Keys<C, 2>, i: usize) -> Keys<C, 1> {
    keys.clone().narrow(0, i, 1).reshape([2])
}

fn integers(data: TensorData) -> Vec<i64> {
    data.iter::<i64>().collect()
}

fn floats(data: TensorData) -> Vec<f64> {
    data.iter::<f64>().collect()
}

/// The numbers of the script.
fn agrees<C: Backend>() {
    let device = C::Device::default();
    let keys = [seed::<C>(42), seed(LARGE)].map(|key| integers(key.into_data()));
    assert_eq!(keys.concat(), jax::KEYS);
    assert_eq!(integers(split::<C>(seed(LARGE), 3).unwrap().into_data()), jax::SPLIT);
    let folded = [0, 1, (1i64 << 31) + 3].map(|n| {
        let data = Tensor::<C, 1, Int>::from_data([n], (&device, burn::tensor::DType::I64));
        integers(random::fold_in(seed::<C>(LARGE), data).unwrap().into_data())
    });
    assert_eq!(folded.concat(), jax::FOLDED);
    let bits = random::bits::<C, 2>(seed(LARGE), [3, 5]).unwrap();
    assert_eq!(integers(bits.into_data()), jax::BITS);
    let short = random::randint::<C, 1>(seed(42), [12], -3..7).unwrap();
    assert_eq!(integers(short.into_data()), jax::RANDINT);
    // 64 bits modulo the length of the range.
    let span = (1 << 30) + 11;
    let long = random::randint::<C, 1>(seed(LARGE), [6], 5..5 + span).unwrap();
    let keys = split::<C>(seed(LARGE), 2).unwrap();
    let [high, low] =
        [0, 1].map(|i| integers(random::bits::<C, 1>(row(&keys, i), [6]).unwrap().into_data()));
    let wanted = high
        .iter()
        .zip(&low)
        .map(|(&high, &low)| (((high as u64) << 32 | low as u64) % span as u64) as i64 + 5);
    assert_eq!(integers(long.into_data()), wanted.collect::<Vec<i64>>());
    for (dtype, wanted) in [
        (FloatDType::F32, jax::UNIFORM_32),
        (FloatDType::F64, jax::UNIFORM_64),
        (FloatDType::F16, jax::UNIFORM_16),
        (FloatDType::BF16, jax::UNIFORM_BRAIN),
    ] {
        let u = random::uniform::<C, 2>(seed(LARGE), [2, 7], dtype).unwrap();
        assert_eq!(floats(u.into_data()), wanted, "{dtype:?}");
    }
    for (dtype, wanted, tolerance) in
        [(FloatDType::F32, jax::NORMAL_32, 4e-6), (FloatDType::F64, jax::NORMAL_64, 1e-13)]
    {
        let x = random::normal::<C, 2>(seed(42), [4, 8], dtype).unwrap();
        for (x, wanted) in floats(x.into_data()).into_iter().zip(wanted) {
            assert!((x - wanted).abs() <= tolerance * (1.0 + wanted.abs()), "{x} {wanted}");
        }
    }
    let kept = random::bernoulli::<C, 1>(seed(42), 0.3, [20]).unwrap();
    assert_eq!(integers(kept.int().into_data()), jax::BERNOULLI);
    let logits = (0..15).map(|i| (i as f32).sin()).collect::<Vec<f32>>();
    let logits = Tensor::<C, 2>::from_data(TensorData::new(logits, [3, 5]), &device);
    let drawn = random::categorical(seed::<C>(42), logits).unwrap();
    assert_eq!((drawn.dims(), integers(drawn.into_data())), ([3, 1], jax::CATEGORICAL.to_vec()));
    let order = random::permutation::<C>(seed(LARGE), 17).unwrap();
    assert_eq!(integers(order.into_data()), jax::PERMUTATION);
    let order = random::permutation::<C>(seed(42), 2000).unwrap();
    assert_eq!(integers(order.into_data())[..24], *jax::LONG_PERMUTATION);
}

#[test]
fn numbers_are_those_of_jax() {
    agrees::<B>();
    agrees::<Autodiff<B>>();
}

#[test]
fn compiled_functions_draw_new_numbers_for_new_keys() {
    let draw =
        compile(|key: Keys<T, 1>| random::normal::<T, 1>(key, [50], FloatDType::F32).unwrap());
    for i in 0..4 {
        let wanted = random::normal::<B, 1>(seed(i), [50], FloatDType::F32).unwrap();
        let got = draw.call(seed::<B>(i)).unwrap();
        let pairs = floats(got.into_data()).into_iter().zip(floats(wanted.into_data()));
        for (got, wanted) in pairs {
            assert!((got - wanted).abs() < 1e-6, "{got} {wanted}");
        }
    }
    assert_eq!(draw.counters().traces, 1);
}

#[test]
fn examples_of_a_batch_have_their_own_numbers() {
    type V = Vmap<B>;
    let keys = split::<B>(seed(3), 5).unwrap();
    let draw = |key: Keys<V, 1>| random::uniform::<V, 2>(key, [2, 3], FloatDType::F32).unwrap();
    let all: Tensor<B, 3> = vmap(draw).call(keys.clone()).unwrap();
    for (i, got) in floats(all.into_data()).chunks(6).enumerate() {
        let one = random::uniform::<B, 2>(row(&keys, i), [2, 3], FloatDType::F32).unwrap();
        assert_eq!(got, floats(one.into_data()));
    }
}

/// A random walk whose key is a part of the carry, and the gradient of its noise's scale.
#[test]
fn a_key_in_the_carry_of_a_scan() {
    fn walk<C: ScanBackend>(key: Keys<C, 1>, scale: Tensor<C, 1>) -> Tensor<C, 1> {
        let steps = Tensor::<C, 2>::zeros([6, 1], &C::Device::default());
        let start = (key, scale.clone().zeros_like());
        let body = |scale: Tensor<C, 1>, (key, x): (Keys<C, 1>, Tensor<C, 1>), _: Tensor<C, 1>| {
            let keys = split(key, 2).unwrap();
            let noise = random::normal::<C, 1>(row(&keys, 1), [1], FloatDType::F32).unwrap();
            let x = x + noise * scale;
            ((row(&keys, 0), x.clone()), x)
        };
        let ((_, x), _): ((Keys<C, 1>, Tensor<C, 1>), Tensor<C, 2>) =
            scan(body, scale, start, steps, &Options::default()).unwrap();
        x
    }
    let one = Tensor::<B, 1>::from_floats([1.0], &Default::default());
    let end = floats(walk::<B>(seed(8), one.clone()).into_data());
    // By hand.
    let (mut key, mut sum) = (seed::<B>(8), 0.0);
    for _ in 0..6 {
        let keys = split(key, 2).unwrap();
        let noise = random::normal::<B, 1>(row(&keys, 1), [1], FloatDType::F32).unwrap();
        sum += floats(noise.into_data())[0];
        key = row(&keys, 0);
    }
    assert!((end[0] - sum).abs() < 1e-5, "{end:?} {sum}");
    // The walk is linear in the scale.
    let slope = grad(|scale: Tensor<Autodiff<B>, 1>| walk(seed(8), scale).sum(), one).unwrap();
    assert!((floats(slope.into_data())[0] - sum).abs() < 1e-5);
}

/// Moments, and the extremes of 2¹⁶ numbers.
#[test]
fn distributions() {
    let n = 1 << 16;
    for dtype in [FloatDType::F16, FloatDType::BF16, FloatDType::F32, FloatDType::F64] {
        let x = floats(random::normal::<B, 1>(seed(1), [n], dtype).unwrap().into_data());
        let moment = |k: i32| x.iter().map(|x| x.powi(k)).sum::<f64>() / n as f64;
        assert!(moment(1).abs() < 0.02 && (moment(2) - 1.0).abs() < 0.03, "{dtype:?}");
        assert!((moment(4) - 3.0).abs() < 0.2 && x.iter().all(|x| x.abs() < 6.0), "{dtype:?}");
        let u = floats(random::uniform::<B, 1>(seed(2), [n], dtype).unwrap().into_data());
        assert!(u.iter().all(|u| (0.0..1.0).contains(u)), "{dtype:?}");
        assert!((u.iter().sum::<f64>() / n as f64 - 0.5).abs() < 0.01, "{dtype:?}");
    }
    let mut order = integers(random::permutation::<B>(seed(4), 2000).unwrap().into_data());
    order.sort();
    assert_eq!(order, (0..2000).collect::<Vec<i64>>());
    let empty = random::normal::<B, 2>(seed(1), [0, 3], FloatDType::F32).unwrap();
    assert_eq!(empty.dims(), [0, 3]);
    // A logit of −∞ is not drawn.
    let logits = Tensor::<B, 1>::from_floats([f32::NEG_INFINITY, 0.0], &Default::default());
    let logits = logits.reshape([1, 2]).repeat_dim(0, 500);
    let drawn = integers(random::categorical(seed(5), logits).unwrap().into_data());
    assert!(drawn.iter().all(|&i| i == 1));
}

#[test]
fn invalid_arguments() {
    let device = Default::default();
    let short = Tensor::<B, 1, Int>::from_ints([1, 2], &device);
    let error = random::bits::<B, 1>(short, [3]).unwrap_err();
    assert!(matches!(error, RandomError::Key { .. }), "{error}");
    let long = split::<B>(seed(1), 2).unwrap().reshape([4]);
    assert!(matches!(split(long, 2), Err(RandomError::Key { .. })));
    let error = random::uniform::<B, 2>(seed(1), [1 << 20, 1 << 12], FloatDType::F32).unwrap_err();
    assert!(matches!(error, RandomError::Size { .. }), "{error}");
    for (start, end) in [(3, 3), (4, 3), (0, (1 << 31) + 1), (i64::MIN, i64::MAX)] {
        let error = random::randint::<B, 1>(seed(1), [1], start..end).unwrap_err();
        assert!(matches!(error, RandomError::Range { .. }), "{error}");
    }
    let data = Tensor::<B, 1, Int>::from_ints([1, 2], &device);
    let error = random::fold_in(seed::<B>(1), data).unwrap_err();
    assert_eq!(error, RandomError::Data { count: 2 });
    for probability in [-0.1, 1.5, f64::NAN] {
        let error = random::bernoulli::<B, 1>(seed(1), probability, [1]).unwrap_err();
        assert!(matches!(error, RandomError::Probability { .. }), "{error}");
    }
}
