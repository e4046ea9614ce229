//! Random shapes, views and indices.

use proptest::prelude::*;

use super::replaced;
use crate::index::{self, Span};
use crate::kernels::arithmetic::Add;
use crate::tensor::Tensor;
use crate::testing::{Mix, elements, indices, naive};

/// A random view of fresh memory: permuted, stepped with either sign, with repeated axes.
fn view(shape: &[usize], seed: u64) -> Tensor<i64> {
    let mut rng = Mix(seed);
    let rank = shape.len();
    let mut axes: Vec<usize> = (0..rank).collect();
    for i in (1..rank).rev() {
        axes.swap(i, rng.below(i + 1));
    }
    // Axis k of the memory becomes axis axes[k].
    let mut memory = vec![0; rank];
    let mut plan = Vec::new();
    for (k, &axis) in axes.iter().enumerate() {
        let step = 1 + rng.below(2) as isize;
        let (flip, repeat) = (rng.below(2) == 1, rng.below(4) == 0);
        memory[k] = if repeat { 1 } else { shape[axis] * step as usize + rng.below(2) };
        plan.push((axis, step, flip, repeat));
    }
    let mut x = Tensor::from_fn(&memory, |i| i as i64 * 3 - 50).unwrap();
    let mut expanded = memory.clone();
    for (k, &(axis, step, flip, repeat)) in plan.iter().enumerate() {
        let n = shape[axis];
        if repeat {
            expanded[k] = n;
        } else if n > 0 {
            let last = (n - 1) * step as usize;
            let (start, step) = if flip { (last, -step) } else { (0, step) };
            x = x.slice_axis(k, start, n, step).unwrap();
            expanded[k] = n;
        } else {
            x = x.slice_axis(k, 0, 0, 1).unwrap();
            expanded[k] = 0;
        }
    }
    let x = x.expand(&expanded).unwrap();
    let mut back = vec![0; rank];
    for (k, &axis) in axes.iter().enumerate() {
        back[axis] = k;
    }
    x.permute(&back).unwrap()
}

fn shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![4 => 1usize..9, 1 => Just(0), 1 => 30usize..50], 1..5)
        .prop_filter("small", |s| s.iter().product::<usize>() < 20_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn gather_of_any_view(shape in shape(), axis in 0usize..4, len in 0usize..20, seed: u64) {
        let axis = axis % shape.len();
        let x = view(&shape, seed);
        let wanted = replaced(&shape, axis, if shape[axis] == 0 { 0 } else { len });
        let size = shape[axis].max(1) as i64;
        let i = view(&wanted, seed ^ 1);
        let i = Tensor::from_vec(
            elements(&i).iter().map(|v| v.rem_euclid(size)).collect(), &wanted).unwrap();
        let got = index::gather(&x, axis, &i).unwrap();
        let want = naive(&wanted, |at| {
            x.get(&replaced(at, axis, i.get(at).unwrap() as usize)).unwrap()
        });
        prop_assert_eq!(elements(&got), want);
    }

    #[test]
    fn scatter_of_any_view(shape in shape(), axis in 0usize..4, len in 0usize..20, seed: u64) {
        let axis = axis % shape.len();
        let x = view(&shape, seed);
        let wanted = replaced(&shape, axis, if shape[axis] == 0 { 0 } else { len });
        let size = shape[axis].max(1) as i64;
        let v = view(&wanted, seed ^ 2);
        let i = Tensor::from_vec(
            elements(&view(&wanted, seed ^ 1)).iter().map(|v| v.rem_euclid(size)).collect(),
            &wanted,
        ).unwrap();
        let mut want = elements(&x);
        for at in indices(&wanted) {
            let to = replaced(&at, axis, i.get(&at).unwrap() as usize);
            let to = shape.iter().zip(&to).fold(0, |p, (n, i)| p * n + i);
            want[to] += v.get(&at).unwrap();
        }
        let got = index::scatter(Add, x, axis, &i, &v).unwrap();
        prop_assert_eq!(elements(&got), want);
    }

    #[test]
    fn slice_assign_of_any_region(shape in shape(), seed: u64) {
        let mut rng = Mix(seed);
        let spans: Vec<Span> = shape.iter().map(|&n| {
            let step = 1 + rng.below(3);
            let start = rng.below(n.max(1));
            let (room, step) = if rng.below(2) == 1 {
                (start / step + 1, -(step as isize))
            } else {
                (n.saturating_sub(start).div_ceil(step), step as isize)
            };
            Span { start, len: rng.below(room + 1).min(n), step }
        }).collect();
        let region: Vec<usize> = spans.iter().map(|s| s.len).collect();
        let (x, v) = (view(&shape, seed ^ 3), view(&region, seed ^ 4));
        let mut want = elements(&x);
        for at in indices(&region) {
            let to = shape.iter().zip(&at).zip(&spans).fold(0, |p, ((n, &i), s)| {
                p * n + (s.start as isize + i as isize * s.step) as usize
            });
            want[to] = v.get(&at).unwrap();
        }
        let got = index::slice_assign(x, &spans, &v).unwrap();
        prop_assert_eq!(elements(&got), want);
    }
}
