use super::{assert_vjp, random, values};
use crate::nn::attention::*;
use crate::testing::{assert_close, indices};
use crate::{AnyTensor, DType, Tensor, TensorError};

/// The definition, one query at a time.
fn naive(
    [q, k, v]: [&Tensor<f64>; 3],
    mask: Option<&Tensor<bool>>,
    bias: Option<&Tensor<f64>>,
    options: &AttentionOptions,
) -> Vec<f64> {
    let (queries, d, keys, e) = (q.shape()[2], q.shape()[3], k.shape()[2], v.shape()[3]);
    let scale = options.scale.unwrap_or(1.0 / (d as f64).sqrt());
    let mut out = Vec::new();
    for at in indices(&q.shape()[..3]) {
        let (b, h, i) = (at[0], at[1], at[2]);
        let score = |j: usize| {
            let dot: f64 =
                (0..d).map(|c| q.get(&[b, h, i, c]).unwrap() * k.get(&[b, h, j, c]).unwrap()).sum();
            let mut s = dot * scale;
            if let Some(cap) = options.softcap {
                s = cap * (s / cap).tanh();
            }
            if mask.is_some_and(|m| m.get(&[b, h, i, j]).unwrap())
                || (options.causal && j as isize > i as isize + keys as isize - queries as isize)
            {
                s = f64::NEG_INFINITY;
            }
            s + bias.map_or(0.0, |m| m.get(&[b, h, i, j]).unwrap())
        };
        let scores: Vec<f64> = (0..keys).map(score).collect();
        let max = scores.iter().copied().fold(f64::MIN, f64::max);
        let p: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
        let sum = p.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        for c in 0..e {
            let dot: f64 = (0..keys).map(|j| p[j] * v.get(&[b, h, j, c]).unwrap()).sum();
            out.push(dot / sum);
        }
    }
    out
}

#[test]
fn attention_agrees_with_its_definition() {
    for (queries, keys) in [(5, 7), (7, 5), (70, 130), (3, 1100), (130, 600), (1, 1), (2, 0)] {
        let [b, h, d, e] = [2, 3, 4, 5];
        // Heads split off the features, as a network has them.
        let split = |len: usize, width: usize, seed| {
            random(&[b, len, h, width], seed).permute(&[0, 2, 1, 3]).unwrap()
        };
        let (q, k, v) = (split(queries, d, 1), split(keys, d, 2), split(keys, e, 3));
        let bias = random(&[1, h, 1, keys], 4).expand(&[b, h, queries, keys]).unwrap();
        let mask = Tensor::from_fn(&[b, 1, queries, keys], |i| i * 7 % 5 < 2 || i < keys).unwrap();
        let mask = mask.expand(&[b, h, queries, keys]).unwrap();
        let plain = AttentionOptions::default();
        let all = AttentionOptions { scale: Some(3.0), softcap: Some(2.0), causal: true };
        for (mask, bias, options) in [
            (None, None, plain),
            (Some(&mask), None, plain),
            (None, Some(&bias), AttentionOptions { causal: true, ..plain }),
            (Some(&mask), Some(&bias), all),
        ] {
            let want = naive([&q, &k, &v], mask, bias, &options);
            let y = attention(&q, &k, &v, mask, bias, &options).unwrap();
            assert_eq!(y.shape(), [b, h, queries, e]);
            let context = format!("{queries} × {keys} {options:?}");
            assert_close(&y.to_vec().unwrap(), &want, 1e-12, &context);
            for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::BF16, 6e-2)] {
                let cast = |x: &Tensor<f64>| AnyTensor::from(x.clone()).cast(dtype).unwrap();
                let mask = mask.map(|m| AnyTensor::from(m.clone()));
                let bias = bias.map(cast);
                let y = cast(&q)
                    .attention(&cast(&k), &cast(&v), mask.as_ref(), bias.as_ref(), &options)
                    .unwrap();
                assert_eq!(y.dtype(), dtype);
                assert_close(&values(&y), &want, tolerance, &context);
            }
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_errors() {
    let (q, k, v) = (random(&[1, 2, 3, 4], 1), random(&[1, 2, 5, 4], 2), random(&[1, 2, 5, 6], 3));
    let ok = AttentionOptions::default();
    let mask = Tensor::full(&[1, 2, 5, 5], false).unwrap();
    assert!(matches!(
        attention(&q, &k, &v, Some(&mask), None, &ok),
        Err(TensorError::ShapeMismatch { .. })
    ));
    assert!(matches!(
        attention(&q, &v, &v, None, None, &ok),
        Err(TensorError::ShapeMismatch { .. })
    ));
    assert!(matches!(
        attention(&q, &k, &q, None, None, &ok),
        Err(TensorError::ShapeMismatch { .. })
    ));
    let flat = random(&[2, 3, 4], 1);
    assert!(matches!(attention(&flat, &k, &v, None, None, &ok), Err(TensorError::Shape { .. })));
    for cap in [0.0, -1.0, f64::NAN] {
        let options = AttentionOptions { softcap: Some(cap), ..ok };
        let error = attention(&q, &k, &v, None, None, &options).unwrap_err();
        assert!(matches!(error, TensorError::Value { .. }), "{error}");
    }
}

#[test]
fn cotangents_agree_with_differences() {
    for (queries, keys) in [(5, 7), (7, 5), (70, 130), (1, 1)] {
        let [b, h, d, e] = [2, 3, 4, 5];
        let (q, k) = (random(&[b, h, queries, d], 1), random(&[b, 1, keys, d], 2));
        let v = random(&[b, keys, h, e], 3).permute(&[0, 2, 1, 3]).unwrap();
        let bias = random(&[1, h, 1, keys], 4);
        let mask = Tensor::from_fn(&[b, 1, queries, keys], |i| i * 7 % 5 < 2 || i < keys).unwrap();
        let dy = random(&[h, b, queries, e], 5).permute(&[1, 0, 2, 3]).unwrap();
        let plain = AttentionOptions::default();
        let all = AttentionOptions { scale: Some(3.0), softcap: Some(2.0), causal: true };
        for (mask, bias, options) in [
            (None, None, plain),
            (Some(&mask), Some(&bias), plain),
            (Some(&mask), Some(&bias), all),
        ] {
            let run =
                |q: &Tensor<f64>, k: &Tensor<f64>, v: &Tensor<f64>, bias: Option<&Tensor<f64>>| {
                    attention(q, k, v, mask, bias, &options).unwrap()
                };
            let vjp = attention_vjp([&q, &k, &v], mask, bias, &options, &dy, true).unwrap();
            assert_eq!(vjp.key.shape(), k.shape());
            assert_vjp(&q, &vjp.query, &dy, |q| run(q, &k, &v, bias));
            assert_vjp(&k, &vjp.key, &dy, |k| run(&q, k, &v, bias));
            assert_vjp(&v, &vjp.value, &dy, |v| run(&q, &k, v, bias));
            if let (Some(bias), Some(dbias)) = (bias, vjp.bias) {
                assert_vjp(bias, &dbias, &dy, |bias| run(&q, &k, &v, Some(bias)));
            }
        }
    }
    let q = random(&[1, 2, 3, 4], 1);
    let wrong = attention_vjp(
        [&q, &q, &q],
        None,
        None,
        &Default::default(),
        &random(&[1, 2, 3, 5], 2),
        false,
    );
    assert!(matches!(wrong, Err(TensorError::ShapeMismatch { op: "attention_vjp", .. })));
}
