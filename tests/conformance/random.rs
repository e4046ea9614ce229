//! Random tensors: the requested distribution and dtype, and equal results for equal seeds. The generator differs from
//! that of Flex, so the oracle is the distribution.

use burn_backend::ops::{FloatTensorOps, IntTensorOps};
use burn_backend::{
    Backend, DType, Distribution, FloatDType, IntDType, Shape, TensorData, TensorMetadata,
    ops::{TransactionOps, TransactionPrimitive},
};
use burn_t4a::BurnT4a;

use crate::line::*;
use crate::material::{self, FLOATS, INTS, Operand, Read, Values};

type B = BurnT4a;

const N: usize = 1 << 16;

// The seed is global to the process, so tests draw one at a time.
static DRAWING: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn float(distribution: Distribution, dtype: FloatDType, seed: u64) -> TensorData {
    B::seed(&Default::default(), seed);
    B::float_random(Shape::new([N]), distribution, &Default::default(), dtype).read().remove(0)
}

/// Mean and standard deviation of the elements.
fn moments(data: &TensorData) -> (f64, f64) {
    let n = data.iter::<f64>().count() as f64;
    let mean = data.iter::<f64>().sum::<f64>() / n;
    let variance = data.iter::<f64>().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[test]
fn floats_have_the_moments_of_their_distribution() {
    let _one = DRAWING.lock();
    // Mean, standard deviation, and bounds of the elements.
    let rows = [
        (Distribution::Default, 0.5, (1.0f64 / 12.0).sqrt(), 0.0..=1.0),
        (Distribution::Uniform(-2.0, 4.0), 1.0, 3.0f64.sqrt(), -2.0..=4.0),
        (Distribution::Normal(1.0, 2.0), 1.0, 2.0, f64::NEG_INFINITY..=f64::INFINITY),
        (Distribution::Bernoulli(0.25), 0.25, 0.1875f64.sqrt(), 0.0..=1.0),
    ];
    for (distribution, mean, deviation, bound) in rows {
        for dtype in FLOATS {
            let data = float(distribution, dtype.into(), 5);
            assert_eq!(data.dtype(), dtype);
            assert!(data.iter::<f64>().all(|x| bound.contains(&x)), "{distribution:?} {dtype:?}");
            let (m, d) = moments(&data);
            // Six standard errors plus the rounding of the dtype.
            let slack = 6.0 * deviation / (N as f64).sqrt() + dtype.finfo().unwrap().epsilon;
            assert!((m - mean).abs() < slack, "{distribution:?} {dtype:?}: mean {m}");
            assert!((d - deviation).abs() < 2.0 * slack, "{distribution:?} {dtype:?}: {d}");
        }
    }
}

#[test]
fn a_seed_repeats_and_draws_differ() {
    let _one = DRAWING.lock();
    let normal = |seed| float(Distribution::Normal(0.0, 1.0), FloatDType::F32, seed);
    let first = normal(9);
    let next = B::float_random(
        Shape::new([N]),
        Distribution::Normal(0.0, 1.0),
        &Default::default(),
        FloatDType::F32,
    );
    assert_ne!(first, next.read().remove(0), "the second draw repeats the first");
    // Tests on other threads may draw between the seed and the draw.
    assert!((0..100).any(|_| normal(9) == normal(9)), "a seed does not repeat its numbers");
    assert_ne!(first, normal(10));
}

#[test]
fn integers_are_uniform_in_their_range() {
    let _one = DRAWING.lock();
    for dtype in INTS {
        let device = Default::default();
        let range = Distribution::Uniform(0.0, 10.0);
        let x = B::int_random(Shape::new([N]), range, &device, IntDType::from(dtype));
        let data = x.read().remove(0);
        assert_eq!(data.dtype(), dtype);
        let mut counts = [0usize; 10];
        data.iter::<i64>().for_each(|x| counts[x as usize] += 1);
        let each = N as f64 / 10.0;
        assert!(counts.iter().all(|&c| (c as f64 - each).abs() < 6.0 * each.sqrt()), "{counts:?}");
    }
}

#[test]
fn a_transaction_reads_every_kind_at_once() {
    let operand = |dtype, salt| Operand::row_major(&[3, 4], dtype, Values::Count, salt);
    let float = material::float::<B>(&operand(DType::F32, 0));
    let int = material::int::<B>(&operand(DType::I32, 1));
    let truth = material::bool::<B>(&operand(FLAG, 2));
    let read = TransactionPrimitive::<B>::new(
        vec![float.clone(), float.clone()],
        vec![],
        vec![int.clone()],
        vec![truth.clone()],
    );
    let data = burn_backend::read_sync(B::tr_execute(read)).unwrap();
    assert_eq!(data.read_floats, [float.clone().read(), float.read()].concat());
    assert_eq!(data.read_ints, int.read());
    assert_eq!(data.read_bools, truth.clone().read());
    assert_eq!(truth.dtype(), FLAG);
}

const FLAG: DType = material::BOOLS[0];
