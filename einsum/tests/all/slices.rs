//! Derivatives under a memory budget equal those without one, and ties have one argmax over all
//! slices.

use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard};
use t4a_einsum::{Differentiable, Einsum, EinsumError};
use t4a_tensor::Tensor;

fn values(shape: &[usize], seed: usize) -> Tensor<f64> {
    Tensor::from_fn(shape, |i| ((i * 37 + seed * 101) as f64).sin().abs() + 0.1).unwrap()
}

fn assert_close(want: &Tensor<f64>, got: &Tensor<f64>, what: &str) {
    assert_eq!(want.shape(), got.shape(), "{what}");
    for (want, got) in want.to_vec().unwrap().iter().zip(got.to_vec().unwrap()) {
        let same = (want - got).abs() <= 1e-12 * (1.0 + want.abs());
        assert!(same || (want.is_nan() && got.is_nan()), "{what}: {want} {got}");
    }
}

const CASES: [(&str, &[&[usize]]); 4] = [
    ("ab,bc,cd->ad", &[&[4, 5], &[5, 6], &[6, 3]]),
    ("ab,bc,cd,da->", &[&[4, 5], &[5, 6], &[6, 3], &[3, 4]]),
    ("abx,bcx,cdx->xa", &[&[3, 4, 2], &[4, 3, 2], &[3, 5, 2]]),
    ("aab,bc->ca", &[&[4, 4, 5], &[5, 6]]),
];

fn check<S: Differentiable<f64>>(name: &str) {
    let mut sliced = 0;
    for (text, shapes) in CASES {
        let data: Vec<_> = shapes.iter().enumerate().map(|(i, s)| values(s, i)).collect();
        let moves: Vec<_> = shapes.iter().enumerate().map(|(i, s)| values(s, i + 9)).collect();
        let (data, moves): (Vec<_>, Vec<_>) = (data.iter().collect(), moves.iter().collect());
        let whole = Einsum::new(text).unwrap().plan(shapes, 8).unwrap();
        let cotangent = values(&whole.shape(), 20);
        let grads = whole.vjp::<S, f64>(&data, &cotangent).unwrap();
        let (sum, tangent) = whole.jvp::<S, f64>(&data, &moves).unwrap();
        let mut budget = whole.cost().bytes(8) as usize;
        while let Ok(plan) = Einsum::new(text).unwrap().memory(budget).plan(shapes, 8) {
            let what = format!("{name} {text} over {:?}", plan.sliced());
            sliced += usize::from(!plan.sliced().is_empty());
            for (want, got) in grads.iter().zip(plan.vjp::<S, f64>(&data, &cotangent).unwrap()) {
                assert_close(want, &got, &what);
            }
            let (sum_again, tangent_again) = plan.jvp::<S, f64>(&data, &moves).unwrap();
            assert_close(&sum, &sum_again, &what);
            assert_close(&tangent, &tangent_again, &what);
            budget = budget * 4 / 5;
        }
    }
    assert!(sliced >= 8, "{name}: {sliced}");
}

#[test]
fn budgets_do_not_change_derivatives() {
    check::<Standard>("standard");
    check::<MaxPlus>("max-plus");
    check::<MinPlus>("min-plus");
    check::<MaxMul>("max-mul");
    check::<MinMul>("min-mul");
    check::<MaxMin>("max-min");
    check::<LogSumExp>("log-sum-exp");
}

/// All terms tie; each element of the result has exactly one argmax.
#[test]
fn ties_have_one_argmax_over_all_slices() {
    let shapes: [&[usize]; 2] = [&[3, 8], &[8, 2]];
    let data: Vec<Tensor<f64>> = shapes.iter().map(|s| Tensor::zeros(s).unwrap()).collect();
    let data: Vec<&Tensor<f64>> = data.iter().collect();
    let einsum = Einsum::new("ij,jk->ik").unwrap();
    let most = einsum.plan(&shapes, 8).unwrap().cost().bytes(8) as usize;
    let plan = einsum.memory(most / 2).plan(&shapes, 8).unwrap();
    assert!(!plan.sliced().is_empty());
    let ones = Tensor::full(&[3, 2], 1.0).unwrap();
    for grad in plan.vjp::<MaxPlus, f64>(&data, &ones).unwrap() {
        assert_eq!(grad.to_vec().unwrap().iter().sum::<f64>(), 6.0);
    }
}

/// All terms are −∞: no slice has the argmax.
#[test]
fn dead_elements_have_no_gradient_in_any_slice() {
    let shapes: [&[usize]; 2] = [&[3, 8], &[8, 2]];
    let data: Vec<Tensor<f64>> =
        shapes.iter().map(|s| Tensor::full(s, f64::NEG_INFINITY).unwrap()).collect();
    let data: Vec<&Tensor<f64>> = data.iter().collect();
    let einsum = Einsum::new("ij,jk->ik").unwrap();
    let most = einsum.plan(&shapes, 8).unwrap().cost().bytes(8) as usize;
    let plan = einsum.memory(most / 2).plan(&shapes, 8).unwrap();
    let ones = Tensor::full(&[3, 2], 1.0).unwrap();
    for grad in plan.vjp::<MaxPlus, f64>(&data, &ones).unwrap() {
        assert_eq!(grad.to_vec().unwrap(), vec![0.0; grad.numel()]);
    }
    for grad in plan.vjp::<LogSumExp, f64>(&data, &ones).unwrap() {
        assert_eq!(grad.to_vec().unwrap(), vec![0.0; grad.numel()]);
    }
}

/// The operands are broadcast views of one element.
#[test]
fn sums_beyond_the_index_range_are_refused_before_work() {
    let k = 1usize << 33;
    let x = Tensor::<f64>::zeros(&[1]).unwrap().expand(&[k]).unwrap();
    let plan = Einsum::new("i,i->").unwrap().memory(usize::MAX).plan(&[&[k], &[k]], 8).unwrap();
    let one = Tensor::full(&[], 1.0).unwrap();
    let error = plan.vjp::<MaxPlus, f64>(&[&x, &x], &one).unwrap_err();
    assert!(matches!(error, EinsumError::IndexRange { terms, .. } if terms == k as f64));
    let error = plan.jvp::<MaxPlus, f64>(&[&x, &x], &[&x, &x]).unwrap_err();
    assert!(matches!(error, EinsumError::IndexRange { .. }));
}

/// For infinite or NaN results, sliced gradients equal those of the unsliced plan: the first NaN is the argmax, and
/// terms of +∞ in log-sum-exp have equal weights.
#[test]
fn results_that_are_no_numbers_keep_their_gradients() {
    fn check<S: Differentiable<f64>>(odd: f64, places: &[usize]) {
        let shapes: [&[usize]; 2] = [&[3, 8], &[8, 2]];
        let data: Vec<Tensor<f64>> = shapes.iter().enumerate().map(|(i, s)| values(s, i)).collect();
        // Row 0 of the first operand has the value at these steps of the sum.
        let mut first = data[0].to_vec().unwrap();
        places.iter().for_each(|&k| first[k] = odd);
        let first = Tensor::from_vec(first, shapes[0]).unwrap();
        let data = [&first, &data[1]];
        let moves: Vec<_> = shapes.iter().enumerate().map(|(i, s)| values(s, i + 9)).collect();
        let moves: Vec<&Tensor<f64>> = moves.iter().collect();
        let einsum = Einsum::new("ij,jk->ik").unwrap();
        let whole = einsum.plan(&shapes, 8).unwrap();
        let half = whole.cost().bytes(8) as usize / 2;
        let sliced = einsum.memory(half).plan(&shapes, 8).unwrap();
        assert_eq!(sliced.sliced().len(), 1);
        let g = values(&[3, 2], 5);
        let (want, got) = (whole.vjp::<S, f64>(&data, &g), sliced.vjp::<S, f64>(&data, &g));
        for (want, got) in want.unwrap().iter().zip(&got.unwrap()) {
            assert_close(want, got, "vjp");
        }
        let row: f64 = g.to_vec().unwrap()[..2].iter().sum();
        let passed: f64 =
            sliced.vjp::<S, f64>(&data, &g).unwrap()[0].to_vec().unwrap()[..8].iter().sum();
        assert!((passed - row).abs() < 1e-12, "{passed} of {row}");
        let (_, want) = whole.jvp::<S, f64>(&data, &moves).unwrap();
        let (_, got) = sliced.jvp::<S, f64>(&data, &moves).unwrap();
        assert_close(&want, &got, "jvp");
    }
    check::<MaxPlus>(f64::NAN, &[5, 2]);
    check::<MinPlus>(f64::NAN, &[7]);
    check::<MaxMin>(f64::NAN, &[3, 4]);
    check::<MaxPlus>(f64::INFINITY, &[6]);
    check::<MinPlus>(f64::NEG_INFINITY, &[6, 7]);
    check::<LogSumExp>(f64::INFINITY, &[4]);
    check::<LogSumExp>(f64::INFINITY, &[1, 4, 6]);
}
