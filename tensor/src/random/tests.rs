//! Moments, distances between distributions, and streams of generators.

use t4a_algebra::{Real, bf16, f16};

use super::draw::Draw;
use super::*;
use crate::output::Fresh;
use crate::testing::elements;

const N: usize = 1 << 18;

/// Largest distance between the empirical distribution function and `cdf`, times √n: above 1.95 with
/// probability 0.001 (Kolmogorov).
fn kolmogorov(sample: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let distance = sorted.iter().enumerate().fold(0.0f64, |d, (i, &x)| {
        let f = cdf(x);
        d.max((f - i as f64 / n).abs()).max(((i + 1) as f64 / n - f).abs())
    });
    distance * n.sqrt()
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * (1.0 + Float::erf(x / std::f64::consts::SQRT_2))
}

fn reals<T: Real>(x: Tensor<T>) -> Vec<f64> {
    elements(&x).iter().map(|v| v.to_f64()).collect()
}

/// Mean, variance, third and fourth standardised moments.
fn moments(sample: &[f64]) -> [f64; 4] {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let central = |p| sample.iter().map(|x| (x - mean).powi(p)).sum::<f64>() / n;
    let variance = central(2);
    [mean, variance, central(3) / variance.powf(1.5), central(4) / variance.powi(2)]
}

/// Correlation of elements at a distance `lag`.
fn correlation(sample: &[f64], lag: usize) -> f64 {
    let [mean, variance, ..] = moments(sample);
    let pairs = sample.iter().zip(&sample[lag..]);
    pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / (sample.len() as f64 * variance)
}

fn check_uniform<T: Sample>(roundoff: f64) {
    let generator = Generator::new(11);
    let sample = reals(uniform::<T>(&generator, &[N], -2.0, 3.0).unwrap());
    assert!(sample.iter().all(|&x| (-2.0..3.0).contains(&x)));
    let [mean, variance, skew, kurtosis] = moments(&sample);
    let sigma = 1.0 / (N as f64).sqrt();
    assert!((mean - 0.5).abs() < 5.0 * (25.0f64 / 12.0).sqrt() * sigma + 4.0 * roundoff, "{mean}");
    assert!((variance - 25.0 / 12.0).abs() < 10.0 * sigma + 8.0 * roundoff, "{variance}");
    assert!(
        skew.abs() < 10.0 * sigma + roundoff && (kurtosis - 1.8).abs() < 10.0 * sigma + roundoff
    );
    let distance = kolmogorov(&sample, |x| (x + 2.0) / 5.0);
    // Coarse types step by 2⁻ᵖ; half of the largest step shows in the distance.
    assert!(distance < 1.95 + roundoff * (N as f64).sqrt(), "{distance}");
    for lag in [1, 2, 16, 32, 64] {
        assert!(correlation(&sample, lag).abs() < 5.0 * sigma, "lag {lag}");
    }
}

#[test]
fn uniform_floats_have_their_distribution() {
    check_uniform::<f64>(0.0);
    check_uniform::<f32>(1e-7);
    check_uniform::<f16>(1e-3);
    check_uniform::<bf16>(1e-2);
}

fn check_normal<T: Sample>(roundoff: f64) {
    let generator = Generator::new(12);
    let sample = reals(normal::<T>(&generator, &[N], 1.0, 2.0).unwrap());
    let [mean, variance, skew, kurtosis] = moments(&sample);
    let sigma = 1.0 / (N as f64).sqrt();
    assert!((mean - 1.0).abs() < 10.0 * sigma + roundoff, "{mean}");
    assert!((variance - 4.0).abs() < 4.0 * 7.0 * sigma + 8.0 * roundoff, "{variance}");
    assert!(skew.abs() < 13.0 * sigma + roundoff, "{skew}");
    assert!((kurtosis - 3.0).abs() < 25.0 * sigma + roundoff, "{kurtosis}");
    let distance = kolmogorov(&sample, |x| normal_cdf((x - 1.0) / 2.0));
    assert!(distance < 1.95 + roundoff * (N as f64).sqrt(), "{distance}");
    for lag in [1, 16, 32] {
        assert!(correlation(&sample, lag).abs() < 5.0 * sigma, "lag {lag}");
    }
    // Radius and angle of a pair are independent: neither are its parts related by their sizes.
    let sizes: Vec<f64> = sample.iter().map(|x| (x - 1.0).abs()).collect();
    assert!(correlation(&sizes, 16).abs() < 5.0 * sigma);
    // The tails exist: the largest of 2¹⁸ draws exceeds 4 σ except in one case in 4000.
    let extreme = sizes.iter().fold(0.0f64, |a, &b| a.max(b)) / 2.0;
    assert!((4.0..6.7).contains(&extreme), "{extreme}");
}

#[test]
fn normal_floats_have_their_distribution() {
    check_normal::<f64>(0.0);
    check_normal::<f32>(1e-6);
    check_normal::<f16>(1e-3);
    check_normal::<bf16>(1e-2);
}

#[test]
fn integers_are_uniform() {
    let generator = Generator::new(13);
    let sample = elements(&uniform_int::<i8>(&generator, &[N], -3, 7).unwrap());
    let mut counts = [0usize; 10];
    for x in sample {
        counts[(x + 3) as usize] += 1;
    }
    let expected = N as f64 / 10.0;
    let chi: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
    // Nine degrees of freedom: above 27.9 with probability 0.001.
    assert!(chi < 27.9, "{chi}");

    // Wide ranges, over the sign and beyond 2³².
    let sample = reals(uniform_int::<i64>(&generator, &[N], i64::MIN, i64::MAX).unwrap());
    assert!(kolmogorov(&sample, |x| x / 2f64.powi(64) + 0.5) < 1.95);
    let sample = elements(&uniform_int::<u64>(&generator, &[1000], 5, 5 + (1 << 40)).unwrap());
    assert!(sample.iter().all(|x| (5..5 + (1 << 40)).contains(x)));
    let sample = reals(uniform_span::<u64>(&generator, &[N], 0, 0).unwrap());
    assert!(kolmogorov(&sample, |x| x / 2f64.powi(64)) < 1.95);
    let sample = elements(&uniform_int::<u8>(&generator, &[5000], 0, 255).unwrap());
    assert!(sample.contains(&0) && sample.contains(&254) && !sample.contains(&255));
    let sample = reals(normal_int::<i32>(&generator, &[N], 0.0, 100.0).unwrap());
    assert!((moments(&sample)[1] / 1e4 - 1.0).abs() < 0.02);
}

#[test]
fn bernoulli_has_its_probability() {
    let generator = Generator::new(14);
    let mean = |p| {
        let sample = elements(&bernoulli(&generator, &[N], p, [0u32, 1]).unwrap());
        f64::from(sample.iter().sum::<u32>()) / N as f64
    };
    assert_eq!((mean(0.0), mean(1.0)), (0.0, 1.0));
    for p in [0.5, 0.1, 0.999] {
        assert!((mean(p) - p).abs() < 5.0 * (p * (1.0 - p) / N as f64).sqrt(), "{p}");
    }
}

#[test]
fn an_element_depends_on_seed_stream_and_position_only() {
    let draw = |numel| elements(&normal::<f32>(&Generator::new(5), &[numel], 0.0, 1.0).unwrap());
    let long = draw(300_000);
    for numel in [0, 1, 63, 64, 65, 20_000] {
        assert!(draw(numel) == long[..numel], "{numel}");
    }
    // Group by group, on this thread and without wide instructions.
    let stream = PhiloxStream { seed: 5, number: 0 };
    let law = normal_draw::<f32>("normal", 0.0, 1.0).unwrap();
    let mut out = [0.0; 64];
    for group in [0, 1, 4000] {
        law.draw(&stream.group(group as u64), Fresh::over(&mut out));
        for (i, x) in out.iter().enumerate() {
            assert_eq!(x.to_bits(), long[group * 64 + i].to_bits());
        }
    }
}

#[test]
fn streams_and_seeds_differ_and_come_back() {
    let generator = Generator::new(1);
    let draw = || elements(&uniform::<f64>(&generator, &[4], 0.0, 1.0).unwrap());
    let (a, b) = (draw(), draw());
    assert_ne!(a, b);
    generator.seed(1);
    assert_eq!((draw(), draw()), (a.clone(), b));
    generator.seed(2);
    assert_ne!(draw(), a);
    seed(9);
    let global_draw = || elements(&uniform::<f64>(global(), &[4], 0.0, 1.0).unwrap());
    let first = global_draw();
    assert_ne!(first, global_draw());
    let unseeded = Generator(Mutex::new(None));
    assert_ne!(unseeded.stream().seed, Generator(Mutex::new(None)).stream().seed);
}

#[test]
fn draws_stay_below_the_upper_bound() {
    let generator = Generator::new(3);
    // A span of one unit in the last place: half of the draws would round up to the bound.
    let x = uniform::<f32>(&generator, &[1000], 1.0, f64::from(1.0f32.next_up())).unwrap();
    assert!(elements(&x).iter().all(|&v| v == 1.0));
    let x = uniform::<f16>(&generator, &[1000], -1.0, 0.0).unwrap();
    assert!(elements(&x).iter().all(|v| v.is_sign_negative() && v.to_f32() < 0.0));
    let x = uniform::<bf16>(&generator, &[100], 2.0, 2.0).unwrap();
    assert!(elements(&x).iter().all(|v| v.to_f32() == 2.0));
    assert_eq!(f16::ZERO.next_down().to_bits(), 0x8001);
    assert_eq!(bf16::ONE.next_down().to_bits(), bf16::ONE.to_bits() - 1);
}

#[test]
fn arguments_that_name_no_distribution() {
    let g = Generator::new(0);
    let value = |r: Result<Tensor<f32>>| assert!(matches!(r, Err(TensorError::Value { .. })));
    value(uniform(&g, &[2], 1.0, 0.0));
    value(uniform(&g, &[2], 0.0, f64::INFINITY));
    value(uniform(&g, &[2], f64::NAN, 1.0));
    value(uniform(&g, &[2], -3e38, 3e38));
    value(normal(&g, &[2], 0.0, -1.0));
    value(normal(&g, &[2], f64::NAN, 1.0));
    value(bernoulli(&g, &[2], 1.5, [0.0, 1.0]));
    value(bernoulli(&g, &[2], f64::NAN, [0.0, 1.0]));
    assert!(uniform_int(&g, &[2], 3i32, 3).is_err());
    let huge = uniform::<f32>(&g, &[1 << 40, 1 << 40], 0.0, 1.0);
    assert!(matches!(huge, Err(TensorError::SizeOverflow { .. })));
}
