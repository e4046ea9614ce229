//! Step-by-step bodies over engine arrays.

use t4a_diff::tree::Structure;
use t4a_diff::{Array, Eager, Value};
use t4a_scan::ScanError;
use t4a_scan::body::{Flat, Options, Steps};
use t4a_tensor::TensorError;

use super::of;

/// Runs steps over a carry of one array.
fn steps(
    step: impl Fn(Eager) -> (Eager, Vec<Eager>) + Send + Sync + 'static,
    options: &Options,
) -> Steps<Eager> {
    let body = move |_: Flat<Eager>, carry: Flat<Eager>, _: Flat<Eager>| {
        let (next, y) = step(carry[0].float().clone());
        Ok((vec![Value::Float(next)], y.into_iter().map(Value::Float).collect()))
    };
    Steps::new(body, (&[], &Structure::Node(Vec::new())), &Structure::Leaf, options).unwrap()
}

/// The error of a scan of 2⁴⁰ steps or more.
fn error(
    step: impl Fn(Eager) -> (Eager, Vec<Eager>) + Send + Sync + 'static,
    options: &Options,
) -> ScanError {
    steps(step, options).run(&[], vec![Value::Float(of(&[1], &[1.0]))], &[]).unwrap_err()
}

/// Without ys no list is allocated, so the body runs until its fifth step fails.
#[test]
fn a_length_of_2_to_the_40_without_ys_takes_no_memory() {
    for reverse in [false, true] {
        let left = std::sync::atomic::AtomicUsize::new(4);
        let step = move |c: Eager| {
            let order = std::sync::atomic::Ordering::SeqCst;
            let last = left.fetch_sub(1, order) == 0;
            (if last { of(&[2], &[1.0, 2.0]) } else { c }, vec![])
        };
        let options = Options::default().length(1 << 40).reverse(reverse);
        assert!(matches!(error(step, &options), ScanError::Carry { .. }));
    }
}

#[test]
fn ys_beyond_all_memory_are_an_error_at_the_first_step() {
    for length in [1usize << 46, 1 << 60, usize::MAX] {
        let step = |c: Eager| (c.clone(), vec![c]);
        let error = error(step, &Options::default().length(length));
        let ScanError::Tensor(TensorError::OutOfMemory { bytes, .. }) = error else {
            panic!("{length}: {error}")
        };
        assert!(bytes >= length);
    }
}

#[test]
fn ys_lie_at_their_places_in_both_directions() {
    for (reverse, want) in [(false, [1.0, 2.0, 3.0, 4.0]), (true, [4.0, 3.0, 2.0, 1.0])] {
        let step = |c: Eager| (c.add(&of(&[1], &[1.0])), vec![c]);
        let options = Options::default().length(4).reverse(reverse);
        let [_, ys] =
            steps(step, &options).run(&[], vec![Value::Float(of(&[1], &[1.0]))], &[]).unwrap();
        assert_eq!(t4a_diff::check::elements(ys[0].float()), want);
    }
}
