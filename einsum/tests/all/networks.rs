//! Every contraction order of random networks against the loops of the definition.

use crate::oracle::{Case, MinPlus, Or, Tropical, naive, networks, tensor};
use proptest::prelude::*;
use t4a_algebra::{Scalar, Semiring, Standard};
use t4a_einsum::{Einsum, Label, Optimizer, Path, Subscripts};
use t4a_tensor::Tensor;

fn einsum_of(case: &Case) -> Einsum {
    let subscripts = Subscripts::new(case.inputs.clone(), case.output.clone());
    case.given().into_iter().fold(subscripts.into(), |e: Einsum, (l, n)| e.size(l, n))
}

/// All pairwise orders of `n` tensors; 180 for five tensors.
fn orders(n: usize) -> Vec<Vec<Vec<usize>>> {
    if n < 2 {
        return vec![vec![]];
    }
    let rest = orders(n - 1);
    let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| vec![a, b]));
    let with =
        |pair: Vec<usize>| rest.iter().map(move |r| [vec![pair.clone()], r.clone()].concat());
    pairs.flat_map(with).collect()
}

fn check<S: Semiring<T>, T: Scalar>(case: &Case, pick: usize, value: impl Fn(i64) -> T) {
    let shapes = case.shapes();
    let data: Vec<Tensor<T>> =
        shapes.iter().enumerate().map(|(i, s)| tensor(s, i, &value)).collect();
    let data: Vec<&Tensor<T>> = data.iter().collect();
    let (shape, want) = naive::<S, T>(case, &data);
    let einsum = einsum_of(case);
    let orders = orders(data.len());
    for steps in &orders {
        let got = einsum.clone().path(Path::new(steps.clone())).contract::<S, T>(&data).unwrap();
        assert_eq!(got.to_vec().unwrap(), want, "{steps:?}");
    }
    let own = einsum.clone().path(Path::new(orders[pick % orders.len()].clone()));
    let nary = einsum.clone().path(Path::new(vec![(0..data.len()).collect()]));
    for (name, einsum) in [("search", &einsum), ("given", &own), ("one step", &nary)] {
        let got = einsum.contract::<S, T>(&data).unwrap();
        assert_eq!(got.shape(), shape, "{name}");
        assert_eq!(got.to_vec().unwrap(), want, "{name}");
    }
    let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let plan = own.plan(&views, size_of::<T>()).unwrap();
    let again = einsum.clone().path(plan.path().clone()).contract::<S, T>(&data).unwrap();
    assert_eq!(again.to_vec().unwrap(), want, "path returned");
    let mut slots: Vec<Tensor<T>> = data.iter().map(|x| (*x).clone()).collect();
    for step in plan.steps().unwrap() {
        let operands: Vec<&Tensor<T>> = step.slots.iter().map(|&slot| &slots[slot]).collect();
        for (i, x) in operands.iter().enumerate() {
            assert_eq!(step.plan.operand_shape(i).unwrap(), x.shape());
            assert_eq!(step.plan.operand_labels(i).unwrap().len(), x.rank());
        }
        let next = step.plan.contract::<S, T>(&operands).unwrap();
        assert_eq!(next.shape(), step.plan.shape());
        assert_eq!(next.rank(), step.plan.result_labels().len());
        slots.push(next);
    }
    assert_eq!(slots.len(), data.len() + data.len().max(2) - 1);
    assert_eq!(slots.last().unwrap().to_vec().unwrap(), want, "step by step");
    // Budgets down to the smallest feasible one.
    let mut budget = plan.cost().bytes(size_of::<T>()) as usize;
    let mut sliced = 0;
    while let Ok(plan) = own.clone().memory(budget).plan(&views, size_of::<T>()) {
        let got = plan.contract::<S, T>(&data).unwrap();
        assert_eq!(got.to_vec().unwrap(), want, "sliced over {:?}", plan.sliced());
        assert!(plan.cost().bytes(size_of::<T>()) <= budget as f64);
        sliced += 1;
        if budget < 8 || sliced > 12 {
            break;
        }
        budget = budget * 4 / 5;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_order_equals_the_loops(case in networks(), pick in 0usize..1000) {
        check::<Standard, i64>(&case, pick, |v| v);
        check::<Standard, f64>(&case, pick, |v| v as f64);
        check::<Tropical, f64>(&case, pick, |v| if v < -3 { f64::NEG_INFINITY } else { v as f64 });
        check::<MinPlus, f64>(&case, pick, |v| if v < -3 { f64::INFINITY } else { v as f64 });
        check::<Or, bool>(&case, pick, |v| v < -1);
    }
}

/// Slices over summed labels, over output labels, and over both, with steps independent of the slices.
#[test]
fn slices_of_summed_and_of_output_labels_give_the_same() {
    let shapes = [[6, 8], [8, 8], [8, 8], [8, 5]];
    let data: Vec<Tensor<f64>> =
        shapes.iter().enumerate().map(|(i, s)| tensor(s, i, |v| v as f64)).collect();
    let data: Vec<&Tensor<f64>> = data.iter().collect();
    let views: Vec<&[usize]> = shapes.iter().map(|s| s.as_slice()).collect();
    let mut kinds = [false; 3];
    for (text, outputs) in
        [("ab,bc,cd,de->ae", "ae"), ("ab,bc,cd,de->abcde", "abcde"), ("ab,bc,cd,de->", "")]
    {
        let chain = Einsum::new(text).unwrap();
        let whole = chain.plan(&views, 8).unwrap();
        let want = whole.contract::<Standard, f64>(&data).unwrap().to_vec().unwrap();
        let best = whole.contract::<Tropical, f64>(&data).unwrap().to_vec().unwrap();
        let mut budget = whole.cost().bytes(8) as usize;
        while let Ok(plan) = chain.clone().memory(budget).plan(&views, 8) {
            let got = plan.contract::<Standard, f64>(&data).unwrap();
            assert_eq!(got.to_vec().unwrap(), want, "{text} over {:?}", plan.sliced());
            let got = plan.contract::<Tropical, f64>(&data).unwrap();
            assert_eq!(got.to_vec().unwrap(), best, "{text} over {:?}", plan.sliced());
            let cuts = |l: &Label| outputs.chars().any(|c| *l == Label::Char(c));
            let (inner, outer) =
                (plan.sliced().iter().any(|l| !cuts(l)), plan.sliced().iter().any(cuts));
            kinds[0] |= inner && !outer;
            kinds[1] |= outer && !inner;
            kinds[2] |= outer && inner;
            budget = budget * 9 / 10;
        }
    }
    assert_eq!(kinds, [true; 3], "summed, output, both");
}

/// Annealing and greedy search agree on a chain with a unique best order.
#[test]
fn optimizers_agree_and_beat_the_left_to_right_order() {
    let shapes = [[10, 100], [100, 5], [5, 50], [50, 1000]];
    let data: Vec<Tensor<i64>> =
        shapes.iter().enumerate().map(|(i, s)| tensor(s, i, |v| v)).collect();
    let data: Vec<&Tensor<i64>> = data.iter().collect();
    let chain = Einsum::new("ab,bc,cd,de->ae").unwrap();
    let views: Vec<&[usize]> = shapes.iter().map(|s| s.as_slice()).collect();
    let left = chain.clone().path(Path::from([[0, 1], [2, 0], [1, 0]]));
    let (left, greedy) = (left.plan(&views, 8).unwrap(), chain.plan(&views, 8).unwrap());
    let annealed = chain.clone().optimizer(Optimizer::TreeSa).plan(&views, 8).unwrap();
    assert!(greedy.cost().flops <= left.cost().flops);
    let want = left.contract::<Standard, i64>(&data).unwrap().to_vec().unwrap();
    for plan in [greedy, annealed] {
        assert_eq!(plan.contract::<Standard, i64>(&data).unwrap().to_vec().unwrap(), want);
    }
}

/// Interleaved small matrices, also with two batch axes, and with one operand in another layout.
#[test]
fn interleaved_batches_equal_the_loops() {
    let (i, j, k, b, c) = (0, 1, 2, 3, 4);
    let whole = |inputs: [Vec<usize>; 2]| Case {
        inputs: inputs.to_vec(),
        output: vec![i, k, b, c],
        sizes: vec![3, 4, 5, 9, 11],
        ones: vec![vec![false; 4]; 2],
    };
    for inputs in [
        [vec![i, j, b, c], vec![j, k, b, c]],
        [vec![j, b, i, c], vec![k, b, j, c]],
        [vec![i, j, b, c], vec![b, c, j, k]],
    ] {
        let case = whole(inputs);
        fn run<S: Semiring<T>, T: Scalar>(case: &Case, value: impl Fn(i64) -> T) {
            let shapes = case.shapes();
            let data = shapes.iter().enumerate().map(|(i, s)| tensor(s, i, &value));
            let data: Vec<Tensor<T>> = data.collect();
            let data: Vec<&Tensor<T>> = data.iter().collect();
            let got = einsum_of(case).contract::<S, T>(&data).unwrap();
            assert_eq!(got.to_vec().unwrap(), naive::<S, T>(case, &data).1, "{case:?}");
        }
        run::<Standard, i64>(&case, |x| x);
        run::<Standard, f32>(&case, |x| x as f32);
        run::<Tropical, f64>(&case, |x| x as f64);
    }
}

/// Operands are views of any kind.
#[test]
fn strides_are_free() {
    let m = tensor(&[6, 4], 0, |v| v as f64);
    let t = m.permute(&[1, 0]).unwrap();
    let flipped = m.flip(&[0, 1]).unwrap();
    let repeated = tensor(&[1, 4], 1, |v| v as f64).expand(&[6, 4]).unwrap();
    let stepped = tensor(&[12, 8], 2, |v| v as f64);
    let stepped = stepped.slice_axis(0, 1, 6, 2).unwrap().slice_axis(1, 0, 4, 2).unwrap();
    let case = |inputs: &[[usize; 2]]| Case {
        inputs: inputs.iter().map(|t| t.to_vec()).collect(),
        output: vec![0, 2],
        sizes: vec![6, 4, 6],
        ones: vec![vec![false; 2]; inputs.len()],
    };
    for right in [&flipped, &repeated, &stepped, &m] {
        let case = case(&[[1, 0], [2, 1]]);
        let (_, want) = naive::<Standard, f64>(&case, &[&t, right]);
        let got = einsum_of(&case).contract::<Standard, f64>(&[&t, right]).unwrap();
        assert_eq!(got.to_vec().unwrap(), want);
    }
}

/// With two operands ⊗ need not commute, regardless of the path.
#[test]
fn two_operands_keep_their_order() {
    /// The left one of two letters other than 0.
    #[derive(Clone, Copy)]
    struct Left;
    impl Semiring<u8> for Left {
        const ZERO: u8 = 0;
        const ONE: u8 = u8::MAX;
        fn add(a: u8, b: u8) -> u8 {
            a.max(b)
        }
        fn mul(a: u8, b: u8) -> u8 {
            if a == 0 || b == 0 {
                0
            } else if a == u8::MAX {
                b
            } else {
                a
            }
        }
    }
    let (a, b) = (Tensor::full(&[2, 3], 5u8).unwrap(), Tensor::full(&[3, 2], 7u8).unwrap());
    for path in [[0, 1], [1, 0]] {
        let e = Einsum::new("ij,jk->ik").unwrap().path(Path::from([path]));
        assert_eq!(e.contract::<Left, u8>(&[&a, &b]).unwrap().to_vec().unwrap(), [5; 4]);
    }
}

/// Empty sums are the zero of the semiring, empty products its one.
#[test]
fn empty_sums_give_the_zero_of_the_semiring() {
    let (a, b) = (tensor(&[2, 0], 0, |v| v as f64), tensor(&[0, 3], 0, |v| v as f64));
    let e = Einsum::new("ij,jk->ik").unwrap();
    assert_eq!(e.contract::<Standard, f64>(&[&a, &b]).unwrap().to_vec().unwrap(), [0.0; 6]);
    let got = e.contract::<Tropical, f64>(&[&a, &b]).unwrap();
    assert_eq!(got.to_vec().unwrap(), [f64::NEG_INFINITY; 6]);
    let alone = Einsum::new("ij->i").unwrap().contract::<Tropical, f64>(&[&a]).unwrap();
    assert_eq!(alone.to_vec().unwrap(), [f64::NEG_INFINITY; 2]);
    let diagonal = tensor(&[2], 0, |v| v as f64);
    let got = Einsum::new("i->ii").unwrap().contract::<Tropical, f64>(&[&diagonal]).unwrap();
    let zero = f64::NEG_INFINITY;
    assert_eq!(
        got.to_vec().unwrap(),
        [diagonal.get(&[0]).unwrap(), zero, zero, diagonal.get(&[1]).unwrap()]
    );
}

#[test]
fn ellipses_broadcast_from_the_right() {
    let a = tensor(&[5, 1, 2, 3], 0, |v| v);
    let b = tensor(&[4, 3, 2], 1, |v| v);
    let out =
        Einsum::new("...ij,...jk->...ik").unwrap().contract::<Standard, i64>(&[&a, &b]).unwrap();
    assert_eq!(out.shape(), [5, 4, 2, 2]);
    for (p, q, i, k) in [(0, 0, 0, 0), (4, 3, 1, 1), (2, 1, 0, 1)] {
        let want: i64 =
            (0..3).map(|j| a.get(&[p, 0, i, j]).unwrap() * b.get(&[q, j, k]).unwrap()).sum();
        assert_eq!(out.get(&[p, q, i, k]), Some(want));
    }
    // The implicit output puts the ellipsis first and the labels in alphabetical order.
    let implicit = Einsum::new("b...a").unwrap().contract::<Standard, i64>(&[&b]).unwrap();
    assert_eq!(implicit.shape(), [3, 2, 4]);
}
