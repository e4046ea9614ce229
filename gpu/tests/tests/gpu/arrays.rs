//! Array operations on the device, against naive loops.

use burn::tensor::{Int, Tensor, TensorPrimitive};
use burn_t4a::ext::operation::{Array, Integers};
use burn_t4a::ext::primitive::{Floats, Indices};

use super::{Card, assert_close, noise, numbers, steps, tensor};

fn array<const D: usize>(x: Tensor<Card, D>) -> Floats<Card> {
    Floats(x.into_primitive().tensor())
}

fn values(x: Floats<Card>) -> Vec<f32> {
    numbers(Tensor::<Card, 1>::from_primitive(TensorPrimitive::Float(
        x.reshape(&[x.shape().iter().product()]).0,
    )))
}

fn indices(x: Indices<Card>) -> Vec<i64> {
    let flat = x.reshape(&[x.shape().iter().product()]);
    Tensor::<Card, 1, Int>::from_primitive(flat.0).into_data().iter().collect()
}

/// Index of the first maximum (minimum); NaN takes precedence over numbers.
fn extreme(lane: &[f32], least: bool) -> (usize, f32) {
    let mut best = 0;
    for (i, &x) in lane.iter().enumerate() {
        let further = if least { x < lane[best] } else { x > lane[best] };
        if !lane[best].is_nan() && (further || x.is_nan()) {
            best = i;
        }
    }
    (best, lane[best])
}

#[test]
fn extremes_of_lanes_with_infinities_nan_and_ties() {
    let special = |x: &mut Vec<f32>, shape: [usize; 3]| {
        let [outer, n, inner] = shape;
        for lane in 0..outer * inner {
            let at = |t: usize| (lane / inner * n + t) * inner + lane % inner;
            match lane % 5 {
                0 => (0..n).for_each(|t| x[at(t)] = f32::NEG_INFINITY),
                1 => (0..n).for_each(|t| x[at(t)] = f32::INFINITY),
                2 => x[at(n / 2)] = f32::NAN,
                3 => x[at(n - 1)] = f32::INFINITY,
                _ => {}
            }
        }
    };
    // One unit per lane; one cube per long lane; one cube for several lanes; more cubes than lanes.
    for shape in [[3, 1, 4], [7, 31, 3], [5, 100, 1], [2, 300, 33], [130, 65, 2], [1, 40, 20000]] {
        let [outer, n, inner] = shape;
        let mut x = steps(outer * n * inner, n);
        special(&mut x, shape);
        let y = array(tensor::<Card, 3>(&x, shape));
        for least in [false, true] {
            let expected: Vec<(usize, f32)> = (0..outer * inner)
                .map(|lane| {
                    let at = |t: usize| x[(lane / inner * n + t) * inner + lane % inner];
                    extreme(&(0..n).map(at).collect::<Vec<f32>>(), least)
                })
                .collect();
            let (best, place) = match least {
                true => (y.min(1), y.argmin(1)),
                false => (y.max(1), y.argmax(1)),
            };
            assert_eq!(best.shape(), [outer, 1, inner]);
            let (places, bests): (Vec<i64>, Vec<f32>) =
                expected.into_iter().map(|(i, x)| (i as i64, x)).unzip();
            assert_close(&values(best), &bests, 0.0, &format!("{shape:?} {least}"));
            assert_eq!(indices(place), places, "{shape:?} {least}");
        }
        // Along a permuted axis.
        let turned = y.permute(&[1, 2, 0]).max(0);
        let bests = values(y.max(1).permute(&[1, 2, 0]));
        assert_close(&values(turned), &bests, 0.0, &format!("{shape:?} turned"));
    }
}

fn naive(a: &[f32], b: &[f32], [m, k, n]: [usize; 3]) -> Vec<f32> {
    let entry = |i: usize, j: usize| {
        (0..k).map(|t| f64::from(a[i * k + t]) * f64::from(b[t * n + j])).sum::<f64>() as f32
    };
    (0..m * n).map(|e| entry(e / n, e % n)).collect()
}

#[test]
fn products_at_the_edges_of_tiles_and_by_any_strides() {
    for [m, k, n] in
        [[1, 1, 1], [15, 17, 16], [16, 1, 33], [17, 33, 65], [65, 16, 63], [130, 5, 64]]
    {
        let (a, b) = (noise(m * k, m), noise(k * n, n));
        let expected = naive(&a, &b, [m, k, n]);
        let rows = [array(tensor::<Card, 2>(&a, [m, k])), array(tensor::<Card, 2>(&b, [k, n]))];
        // The same matrices in column-major order.
        let columns = [&rows[0], &rows[1]].map(|x| {
            let stored = x.transpose().reshape(&[x.shape()[1] * x.shape()[0]]);
            stored.reshape(&[x.shape()[1], x.shape()[0]]).transpose()
        });
        for a in [&rows[0], &columns[0]] {
            for b in [&rows[1], &columns[1]] {
                let of = format!("{m} {k} {n}");
                assert_close(&values(a.matmul(b)), &expected, 1e-6, &of);
            }
        }
    }
}

#[test]
fn batches_of_products_broadcast() {
    let [m, k, n] = [5, 7, 3];
    let (a, b) = (noise(6 * m * k, 1), noise(6 * k * n, 2));
    let x = array(tensor::<Card, 4>(&a, [2, 3, m, k]));
    let y = array(tensor::<Card, 4>(&b, [2, 3, k, n]));
    let part = |x: &[f32], i: usize, size: usize| x[i * size..(i + 1) * size].to_vec();
    let product = |i: usize, j: usize| naive(&part(&a, i, m * k), &part(&b, j, k * n), [m, k, n]);
    let all = |pairs: [(usize, usize); 6]| pairs.map(|(i, j)| product(i, j)).concat();
    let plain = all([(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
    assert_close(&values(x.matmul(&y)), &plain, 1e-6, "plain");
    // One matrix for the whole batch, on either side; one per row of batches.
    let one = x.slice(0, 1, 1, 1).slice(1, 2, 1, 1);
    let first = all([(5, 0), (5, 1), (5, 2), (5, 3), (5, 4), (5, 5)]);
    assert_close(&values(one.matmul(&y)), &first, 1e-6, "one for all");
    let row = x.slice(1, 1, 1, 1);
    let rows = all([(1, 0), (1, 1), (1, 2), (4, 3), (4, 4), (4, 5)]);
    assert_close(&values(row.matmul(&y)), &rows, 1e-6, "one for a row");
    let line = y.slice(0, 1, 1, 1);
    let lines = all([(0, 3), (1, 4), (2, 5), (3, 3), (4, 4), (5, 5)]);
    assert_close(&values(x.matmul(&line)), &lines, 1e-6, "one for a column");
    // Batch axes in another order than in memory.
    let turned = x.permute(&[1, 0, 2, 3]).matmul(&y.permute(&[1, 0, 2, 3]));
    let order = all([(0, 0), (3, 3), (1, 1), (4, 4), (2, 2), (5, 5)]);
    assert_close(&values(turned), &order, 1e-6, "turned");
}

/// Lanes of one chunk and of many, of few units and of whole cubes; both directions, with and without an initial
/// state.
#[test]
fn recurrences_and_running_sums() {
    for shape in [[2, 1, 3], [3, 7, 5], [1, 300, 1], [2, 257, 3], [1, 5000, 2], [300, 20, 500]] {
        let [outer, n, inner] = shape;
        let a = noise(outer * n * inner, 1);
        let b = noise(outer * n * inner, 2);
        let first = noise(outer * inner, 3);
        let arrays = [&a, &b].map(|x| array(tensor::<Card, 3>(x, shape)));
        let start = array(tensor::<Card, 3>(&first, [outer, 1, inner]));
        let naive = |scaled: bool, initial: bool, reverse: bool| {
            let mut h = vec![0.0; a.len()];
            for lane in 0..outer * inner {
                let mut state = if initial { f64::from(first[lane]) } else { 0.0 };
                for t in 0..n {
                    let t = if reverse { n - 1 - t } else { t };
                    let e = (lane / inner * n + t) * inner + lane % inner;
                    let p = if scaled { f64::from(a[e]) } else { 1.0 };
                    state = p * state + f64::from(b[e]);
                    h[e] = state as f32;
                }
            }
            h
        };
        for (initial, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            let first = initial.then_some(&start);
            let h = arrays[0].recurrence(&arrays[1], first, 1, reverse).unwrap();
            let of = format!("{shape:?} {initial} {reverse}");
            assert_close(&values(h), &naive(true, initial, reverse), 1e-5, &of);
        }
        let sums = values(arrays[1].cumsum(1));
        assert_close(&sums, &naive(false, false, false), 1e-5, &format!("{shape:?} sums"));
    }
}

/// A state of 0 stays 0, even if the product of the factors of a long lane overflows.
#[test]
fn zeros_outlast_factors_that_overflow() {
    let n = 4000;
    let mut b = vec![0.0; n];
    b[n - 2] = 3.0;
    let a = array(tensor::<Card, 1>(&vec![2.0; n], [n]));
    let h = values(a.recurrence(&array(tensor::<Card, 1>(&b, [n])), None, 0, false).unwrap());
    assert_eq!(h[n - 3..], [0.0, 3.0, 6.0]);
    assert!(h[..n - 2].iter().all(|&x| x == 0.0));
}
