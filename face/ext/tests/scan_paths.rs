//! Scans with and without a tape: values, and the execution path.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::arrays::{floats, random};
use super::ext::scan::{Options, ScanError, ScanPath, ScanReport, scan};
use super::{Tensor, numbers};

#[test]
fn computes_cumulative_sum() {
    let xs = floats(&[1.0, 2.0, 3.0, 4.0]).reshape([4, 1]);
    let sums = |options: &Options| -> (Tensor<1>, Tensor<2>) {
        let step = |(): (), c: Tensor<1>, x: Tensor<1>| {
            let c = c + x;
            (c.clone(), c)
        };
        scan(step, (), floats(&[0.0]), xs.clone(), options).unwrap()
    };
    let (last, ys) = sums(&Options::default());
    assert_eq!((numbers(last), numbers(ys)), (vec![10.0], vec![1.0, 3.0, 6.0, 10.0]));
    let (last, ys) = sums(&Options::default().reverse(true));
    assert_eq!((numbers(last), numbers(ys)), (vec![10.0], vec![10.0, 9.0, 7.0, 4.0]));
}

/// A path that the options do not accept is an error before the first step, with the path and the reason; an
/// accepted path is reported once, with and without a tape.
#[test]
fn paths_can_be_required_and_are_reported() {
    let (told, calls) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let sink = told.clone();
    let options = Options::default().length(2).report(move |r| sink.lock().unwrap().push(*r));
    let run = |paths: &[ScanPath]| {
        let counted = calls.clone();
        let step = move |(): (), c: Tensor<1>, (): ()| {
            counted.fetch_add(1, SeqCst);
            (c, ())
        };
        let options = options.clone().accept(paths);
        let init = random::<1>([2], 1);
        scan(step, (), init, (), &options).map(|(_, ()): (Tensor<1>, ())| ())
    };
    for paths in [&[][..], &[ScanPath::Fused]] {
        let error = run(paths).unwrap_err();
        let (chosen, reason) = (ScanPath::Fallback, "body_not_traced");
        let accepted = paths.to_vec();
        assert_eq!(error, ScanError::PathRejected { chosen, reason, accepted });
        let wanted = "scan: the path would be Fallback (body_not_traced), accepted are ";
        assert_eq!(error.to_string(), format!("{wanted}{paths:?}"));
    }
    assert_eq!((calls.load(SeqCst), told.lock().unwrap().len()), (0, 0));
    run(&[ScanPath::Fallback]).unwrap();
    run(&[ScanPath::Fused, ScanPath::Fallback]).unwrap();
    let report = ScanReport { path: ScanPath::Fallback, reason: "body_not_traced", length: 2 };
    assert_eq!(*told.lock().unwrap(), [report; 2]);
    assert_eq!(calls.load(SeqCst), 4);
}
