//! Networks with known answers, from enumeration, textbooks and OEIS.

use crate::oracle::{MaxTimes, MinPlus, Tropical};
use t4a_algebra::{Semiring, Standard};
use t4a_einsum::{Einsum, Subscripts, einsum};
use t4a_tensor::Tensor;

/// A sum over the values of vertices: one factor per edge, one per vertex.
fn graph<S: Semiring<T>, T: t4a_algebra::Scalar>(
    edges: &[(usize, usize)],
    pair: [T; 4],
    vertices: usize,
    single: [T; 2],
) -> T {
    let terms = edges.iter().map(|&(a, b)| vec![a, b]).chain((0..vertices).map(|v| vec![v]));
    let einsum: Einsum = Subscripts::new(terms, vec![]).into();
    let pair = Tensor::from_vec(pair.to_vec(), &[2, 2]).unwrap();
    let single = Tensor::from_vec(single.to_vec(), &[2]).unwrap();
    let operands: Vec<&Tensor<T>> =
        edges.iter().map(|_| &pair).chain((0..vertices).map(|_| &single)).collect();
    einsum.contract::<S, T>(&operands).unwrap().get(&[]).unwrap()
}

fn grid(n: usize) -> Vec<(usize, usize)> {
    let right = (0..n * n).filter(|v| v % n + 1 < n).map(|v| (v, v + 1));
    let down = (0..n * n - n).map(|v| (v, v + n));
    right.chain(down).collect()
}

fn petersen() -> Vec<(usize, usize)> {
    let outer = (0..5).map(|i| (i, (i + 1) % 5));
    let spokes = (0..5).map(|i| (i, i + 5));
    let star = (0..5).map(|i| (5 + i, 5 + (i + 2) % 5));
    outer.chain(spokes).chain(star).collect()
}

/// OEIS A006506; the last value exceeds the exact integers of f64.
#[test]
fn independent_sets_of_grids() {
    let want = [
        (1, 2),
        (2, 7),
        (3, 63),
        (4, 1234),
        (5, 55447),
        (6, 5598861),
        (7, 1280128950),
        (8, 660647962955),
        (10, 2030049051145980050),
    ];
    for (n, want) in want {
        let got = graph::<Standard, i64>(&grid(n), [1, 1, 1, 0], n * n, [1, 1]);
        assert_eq!(got, want, "{n}×{n}");
    }
}

#[test]
fn petersen_graph() {
    let edges = petersen();
    assert_eq!(graph::<Standard, i64>(&edges, [1, 1, 1, 0], 10, [1, 1]), 76);
    let none = f64::NEG_INFINITY;
    let largest = graph::<Tropical, f64>(&edges, [0.0, 0.0, 0.0, none], 10, [0.0, 1.0]);
    assert_eq!(largest, 4.0);
    let cut = graph::<Tropical, f64>(&edges, [0.0, 1.0, 1.0, 0.0], 10, [0.0, 0.0]);
    assert_eq!(cut, 12.0);
}

/// ln Z by enumeration of the 2¹⁶ states.
#[test]
fn ising_on_a_torus() {
    let (n, k) = (4usize, 0.4f64);
    let right = (0..n * n).map(|v| (v, v / n * n + (v + 1) % n));
    let down = (0..n * n).map(|v| (v, (v + n) % (n * n)));
    let edges: Vec<(usize, usize)> = right.chain(down).collect();
    let (same, other) = (k.exp(), (-k).exp());
    let z = graph::<Standard, f64>(&edges, [same, other, other, same], n * n, [1.0, 1.0]);
    assert!((z.ln() - 14.561093023844).abs() < 1e-9, "{}", z.ln());
}

/// Cormen, Leiserson, Rivest and Stein, figure 25.1.
#[test]
fn all_pairs_shortest_paths() {
    let x = f64::INFINITY;
    let weights = [
        [0.0, 3.0, 8.0, x, -4.0],
        [x, 0.0, x, 1.0, 7.0],
        [x, 4.0, 0.0, x, x],
        [2.0, x, -5.0, 0.0, x],
        [x, x, x, 6.0, 0.0],
    ];
    let w = Tensor::from_vec(weights.concat(), &[5, 5]).unwrap();
    let paths = einsum::<MinPlus, f64>("ab,bc,cd,de->ae", &[&w, &w, &w, &w]).unwrap();
    let want = [
        [0.0, 1.0, -3.0, 2.0, -4.0],
        [3.0, 0.0, -4.0, 1.0, -1.0],
        [7.0, 4.0, 0.0, 5.0, 3.0],
        [2.0, -1.0, -5.0, 0.0, -2.0],
        [8.0, 5.0, 1.0, 6.0, 0.0],
    ];
    assert_eq!(paths.to_vec().unwrap(), want.concat());
}

/// States healthy and fever, observations normal, cold and dizzy.
#[test]
fn viterbi_and_forward_probabilities() {
    let start = Tensor::from_vec(vec![0.6, 0.4], &[2]).unwrap();
    let step = Tensor::from_vec(vec![0.7, 0.3, 0.4, 0.6], &[2, 2]).unwrap();
    let seen = |normal: f64, fever: f64| Tensor::from_vec(vec![normal, fever], &[2]).unwrap();
    let (normal, cold, dizzy) = (seen(0.5, 0.1), seen(0.4, 0.3), seen(0.1, 0.6));
    let operands = [&start, &normal, &step, &cold, &step, &dizzy];
    let subscripts = "a,a,ab,b,bc,c->";
    let best = einsum::<MaxTimes, f64>(subscripts, &operands).unwrap().get(&[]).unwrap();
    let sum = einsum::<Standard, f64>(subscripts, &operands).unwrap().get(&[]).unwrap();
    assert!((best - 0.01512).abs() < 1e-12, "{best}");
    assert!((sum - 0.03628).abs() < 1e-12, "{sum}");
}
