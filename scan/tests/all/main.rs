//! Every operation against finite differences, its adjoint, the engine's kernels and loops.

mod associative;
mod body;
mod chain;
mod cumulative;
mod kalman;
mod matrix;
mod recurrence;
mod recurrent;
mod schedule;

use t4a_algebra::parallel::set_threads;
use t4a_diff::check::{array, elements, noise, operation};
use t4a_diff::{Array, Dual, Eager, Kept, Meta, Operation, Outcome, Reverse, Value};
use t4a_tensor::TensorError;

/// Tolerance of the checks, relative to the largest entry.
const TOLERANCE: f64 = 1e-8;

fn random(shape: &[usize], seed: u64) -> Eager {
    noise(&array(shape, |_| 0.0), seed)
}

/// An array of given elements.
fn of(shape: &[usize], data: &[f64]) -> Eager {
    array(shape, |i| data[i])
}

fn values(arrays: &[Eager]) -> Vec<Value<Eager>> {
    arrays.iter().cloned().map(Value::Float).collect()
}

fn metas(arrays: &[Eager]) -> Vec<Meta> {
    arrays.iter().map(|x| Meta { shape: x.shape(), dtype: x.dtype() }).collect()
}

/// The results, after the checks of their shapes and dtypes.
#[track_caller]
fn run<O: Operation>(op: &O, arrays: &[Eager]) -> Vec<Eager> {
    let promised = op.results(&metas(arrays)).unwrap();
    let out = op.forward(&values(arrays), &vec![true; arrays.len()]).unwrap();
    assert_eq!(metas(&out.results), promised);
    out.results
}

/// The gradient of the sum of all results, by the engine.
#[track_caller]
fn gradient<O: Operation>(op: &O, arrays: &[Eager]) -> Vec<Eager> {
    let tracked = vec![true; arrays.len()];
    let results = run(op, arrays);
    let cotangents: Vec<_> = results.iter().map(|y| Some(y.full(&y.shape(), 1.0))).collect();
    let kept = t4a_diff::Kept::new(op.keep(&tracked), &values(arrays), &Outcome::new(results));
    let reverse =
        t4a_diff::Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &tracked };
    op.fused_vjp(&reverse).unwrap().into_iter().map(Option::unwrap).collect()
}

#[track_caller]
fn check<O: Operation>(op: &O, arrays: &[Eager]) {
    run(op, arrays);
    operation(op, &values(arrays), TOLERANCE);
}

#[track_caller]
fn close(x: &[f64], y: &[f64], tolerance: f64) {
    assert_eq!(x.len(), y.len());
    let size = y.iter().filter(|y| y.is_finite()).fold(1.0f64, |size, y| size.max(y.abs()));
    for (i, (x, y)) in x.iter().zip(y).enumerate() {
        let same = (x - y).abs() <= tolerance * size || x == y || (x.is_nan() && y.is_nan());
        assert!(same, "element {i} is {x}, wanted {y}");
    }
}

/// Checks identical bits with 1, 2 and 3 threads. The number of threads is process-wide: concurrent tests must not
/// depend on it either.
fn same_bits_on_threads(f: impl Fn() -> Vec<Eager>) {
    let bits = |threads| -> Vec<u64> {
        set_threads(threads);
        f().iter().flat_map(elements).map(f64::to_bits).collect()
    };
    let one = bits(1);
    assert_eq!(one, bits(2));
    assert_eq!(one, bits(3));
}

/// Calls `f` for every lane of an array of this shape, with the flat indices of its elements in order of time.
fn lanes(shape: &[usize], axis: usize, reverse: bool, mut f: impl FnMut(&[usize])) {
    let outer: usize = shape[..axis].iter().product();
    let inner: usize = shape[axis + 1..].iter().product();
    for o in 0..outer {
        for i in 0..inner {
            let mut places: Vec<usize> =
                (0..shape[axis]).map(|t| (o * shape[axis] + t) * inner + i).collect();
            if reverse {
                places.reverse();
            }
            f(&places);
        }
    }
}

/// Shapes with an axis: empty, one, odd sizes, many and few lanes, longer than chunks.
const SHAPES: [(&[usize], usize); 12] = [
    (&[0], 0),
    (&[1], 0),
    (&[7], 0),
    (&[3, 0, 2], 1),
    (&[2, 5, 3], 0),
    (&[2, 5, 3], 1),
    (&[2, 5, 3], 2),
    (&[19, 33], 1),
    (&[21, 37], 0),
    (&[40, 150], 0),
    (&[4700], 0),
    (&[2, 4200, 2], 1),
];
