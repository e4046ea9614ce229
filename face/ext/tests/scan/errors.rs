//! Errors of invalid arguments.

use super::ext::scan::ScanError;
use super::ext::tree::TreeError;
use super::*;

#[test]
fn a_carry_that_changes_is_an_error() {
    for memory in [Memory::StoreAll, Memory::Bounded(Policy::Sqrt)] {
        let options = Options::default().memory(memory).length(3);
        let step = |(): (), (a, (b, c)): Pair, (): ()| {
            (
                (
                    a.reshape([2, 1]).squeeze::<1>(),
                    (b.clone().repeat_dim(0, 2), c.cast(FloatDType::F32)),
                ),
                (),
            )
        };
        type Pair = (Tensor<1>, (Tensor<1>, Tensor<1>));
        let one = || floats(&[1.0]);
        let init = (floats(&[1.0, 2.0]), (one().require_grad(), one()));
        let scanned: Scanned<Pair> = scan(step, (), init, (), &options);
        let error = scanned.err();
        let Some(ScanError::Carry { leaves }) = &error else { panic!("{error:?}") };
        let paths: Vec<&str> = leaves.iter().map(|leaf| leaf.path.as_str()).collect();
        assert_eq!(paths, [".1.0", ".1.1"]);
        let text = error.unwrap().to_string();
        assert!(text.contains("[1] became") && text.contains("F64 became F32"), "{text}");
    }
}

#[test]
fn a_carry_of_another_tree_is_an_error() {
    let step = |(): (), mut c: Vec<Tensor<1>>, (): ()| {
        c.push(floats(&[0.0]));
        (c, ())
    };
    let options = Options::default().length(2);
    let scanned: Scanned<Vec<Tensor<1>>> = scan(step, (), vec![floats(&[0.0])], (), &options);
    let error = scanned.err();
    let Some(ScanError::Structure { given, required, .. }) = &error else { panic!("{error:?}") };
    assert_eq!((&given[..], &required[..]), ("(*, *)", "(*)"));
}

#[test]
fn ys_that_change_are_an_error() {
    let step = |(): (), c: Tensor<2>, x: Tensor<1>| {
        let wide = numbers(x)[0] > 1.0;
        (c.clone(), if wide { c } else { c.transpose() })
    };
    for memory in [Memory::StoreAll, Memory::default()] {
        let init = random::<2>([1, 2], 1).require_grad();
        let options = Options::default().memory(memory);
        let xs = floats(&[1.0, 2.0]);
        let scanned: Scanned<Tensor<2>, Tensor<3>> = scan(step, (), init, xs, &options);
        assert!(matches!(scanned.err(), Some(ScanError::YShape { .. })));
    }
}

#[test]
fn what_disagrees_is_an_error() {
    let step = |(): (), c: Tensor<1>, _: (Tensor<1>, Tensor<1>)| (c, ());
    let xs = || (floats(&[1.0, 2.0]), floats(&[1.0, 2.0, 3.0]));
    let scanned: Scanned<Tensor<1>> = scan(step, (), floats(&[0.0]), xs(), &Options::default());
    assert_eq!(scanned.err(), Some(ScanError::LengthMismatch { given: None, leading: vec![2, 3] }));
    let same = (xs().0, xs().0);
    let options = Options::default().length(5);
    let scanned: Scanned<Tensor<1>> = scan(step, (), floats(&[0.0]), same, &options);
    assert_eq!(
        scanned.err(),
        Some(ScanError::LengthMismatch { given: Some(5), leading: vec![2, 2] })
    );
    // The body requests a matrix, but elements are vectors.
    let step = |(): (), c: Tensor<1>, _: Tensor<2>| (c, ());
    let xs = random::<2>([3, 2], 1);
    let scanned: Scanned<Tensor<1>> = scan(step, (), floats(&[0.0]), xs, &Options::default());
    let error = scanned.err();
    let rank = TreeError::Leaf { kind: "floats", rank: 2, given: "floats", shape: vec![2] };
    assert_eq!(error, Some(ScanError::Tree { what: "x", error: rank }));
}

#[test]
fn captured_tracked_tensors_are_an_error() {
    let a = floats(&[2.0]).require_grad();
    let init = floats(&[1.0]).require_grad();
    let captured = a.clone();
    let step = move |(): (), c: Tensor<1>, (): ()| (c * captured.clone(), ());
    let options = Options::default().length(3);
    let scanned: Scanned<Tensor<1>> = scan(step.clone(), (), init.clone(), (), &options);
    let error = scanned.err();
    assert!(matches!(error, Some(ScanError::Captured { .. })), "{error:?}");
    // Everything is on the tape in any case.
    let options = options.memory(Memory::StoreAll);
    let (last, ()): (Tensor<1>, ()) = scan(step, (), init, (), &options).unwrap();
    assert_eq!(numbers(a.grad(&last.backward()).unwrap()), [12.0]);
}

#[test]
fn a_policy_that_keeps_nothing_is_an_error() {
    for policy in [Policy::Segment(0), Policy::Revolve(0)] {
        let init = floats(&[1.0]).require_grad();
        let step = |(): (), c: Tensor<1>, (): ()| (c, ());
        let options = Options::default().length(3).memory(Memory::Bounded(policy));
        let scanned: Scanned<Tensor<1>> = scan(step, (), init, (), &options);
        let error = scanned.err();
        assert!(matches!(error, Some(ScanError::Tensor(_))), "{error:?}");
    }
}
