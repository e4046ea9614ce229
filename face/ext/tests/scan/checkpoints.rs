//! `checkpoint`: functions that run again in the reverse pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_tensor::Int;

use super::ext::einsum::einsum;
use super::ext::scan::{CheckpointOptions, Saveable, ScanError, checkpoint, checkpoint_with};
use super::*;

type Inputs = (Tensor<2>, (Tensor<1>, Tensor<2>));

/// Two results whose ranks differ from those of the arguments; one depends on some arguments only.
fn layer((w, (b, x)): Inputs) -> (Tensor<1>, Tensor<2>) {
    let y = (x.matmul(w) + b.clone().unsqueeze()).tanh();
    (y.clone().sum() * b.exp(), y)
}

fn inputs() -> Inputs {
    (random([3, 3], 1), (random([3], 2), random([4, 3], 3)))
}

/// Values and gradients.
fn gradients(f: impl Fn(Inputs) -> (Tensor<1>, Tensor<2>)) -> Vec<Vec<f64>> {
    let (w, (b, x)) = inputs();
    let (w, b, x) = (w.require_grad(), b.require_grad(), x.require_grad());
    let (y, z) = f((w.clone(), (b.clone(), x.clone())));
    let found = (y.clone().sum() + z.clone().powi_scalar(2).sum()).backward();
    let parts = [numbers(y.inner()), numbers(z.inner())];
    let gradients = [
        numbers(w.grad(&found).unwrap()),
        numbers(b.grad(&found).unwrap()),
        numbers(x.grad(&found).unwrap()),
    ];
    parts.into_iter().chain(gradients).collect()
}

#[test]
fn checkpoints_have_the_gradients_of_their_functions() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = {
        let runs = runs.clone();
        move |x: Inputs| {
            runs.fetch_add(1, Ordering::Relaxed);
            layer(x)
        }
    };
    let got = gradients(|x| checkpoint(counted.clone(), x).unwrap());
    // Once forward, and once in the reverse pass.
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    for (got, want) in got.iter().zip(gradients(layer)) {
        close(got, &want, 1e-14);
    }
    // Without a tape it is the plain function.
    let (y, z): (Tensor<1>, Tensor<2>) = checkpoint(layer, inputs()).unwrap();
    let (u, v) = layer(inputs());
    assert_eq!((numbers(y), numbers(z)), (numbers(u), numbers(v)));
}

/// Saved values in the middle of a function: each of its parts runs once more in the reverse pass, and parts outside of
/// checkpoints do not. The gradients are the same.
#[test]
fn checkpoints_of_parts_save_the_values_between() {
    let counts = [0; 3].map(|_| Arc::new(AtomicUsize::new(0)));
    let part = |k: usize, f: fn(Tensor<2>) -> Tensor<2>| {
        let count = counts[k].clone();
        move |x: Tensor<2>| {
            count.fetch_add(1, Ordering::Relaxed);
            f(x)
        }
    };
    let first = part(0, |x| x.clone() * x.sin());
    let second = part(1, |x| x.clone().matmul(x).tanh());
    let third = part(2, |x| x.exp().sum_dim(0));
    let slope = |f: &dyn Fn(Tensor<2>) -> Tensor<2>| {
        counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        let x = random([3, 3], 1).require_grad();
        let gradient = numbers(x.grad(&f(x.clone()).sum().backward()).unwrap());
        (gradient, counts.each_ref().map(|count| count.load(Ordering::Relaxed)))
    };
    let (want, everything) = slope(&|x| third(second(first(x))));
    assert_eq!(everything, [1, 1, 1]);
    let whole = {
        let (first, second, third) = (first.clone(), second.clone(), third.clone());
        move |x: Tensor<2>| third(second(first(x)))
    };
    let (nothing, runs) = slope(&|x| checkpoint(whole.clone(), x).unwrap());
    assert_eq!(runs, [2, 2, 2]);
    close(&nothing, &want, 1e-14);
    let head = {
        let (first, second) = (first.clone(), second.clone());
        move |x: Tensor<2>| second(first(x))
    };
    let (named, runs) = slope(&|x| {
        let saved: Tensor<2> = checkpoint(head.clone(), x).unwrap();
        checkpoint(third.clone(), saved).unwrap()
    });
    assert_eq!(runs, [2, 2, 2]);
    close(&named, &want, 1e-14);
    // The last part keeps its records: it does not run again.
    let (last, runs) = slope(&|x| third(checkpoint(head.clone(), x).unwrap()));
    assert_eq!(runs, [2, 2, 1]);
    close(&last, &want, 1e-14);
}

#[test]
fn checkpoints_in_checkpoints() {
    let inner = |x: Inputs| checkpoint(layer, x).unwrap();
    let outer = move |x: Inputs| checkpoint(inner, x).unwrap();
    for (got, want) in gradients(outer).iter().zip(gradients(layer)) {
        close(got, &want, 1e-14);
    }
}

#[test]
fn a_checkpoint_refuses_tensors_that_it_was_not_given() {
    let (w, (_, x)) = inputs();
    let kept = w.require_grad();
    let f = move |x: Tensor<2>| x.matmul(kept.clone());
    let found: Result<Tensor<2>, _> = checkpoint(f, x.require_grad());
    assert!(matches!(found, Err(ScanError::Captured { .. })), "{:?}", found.err());
}

#[test]
fn integers_pass_through_a_checkpoint() {
    let (w, _) = inputs();
    let w = w.require_grad();
    let select = |(w, at): (Tensor<2>, Tensor<1, Int>)| (w.select(0, at.clone()), at + 1);
    let at = Tensor::<1, Int>::from_ints([2, 0, 2], &device());
    let (rows, next): (Tensor<2>, Tensor<1, Int>) = checkpoint(select, (w.clone(), at)).unwrap();
    assert_eq!(next.into_data().iter::<i64>().collect::<Vec<_>>(), [3, 1, 3]);
    let gradient = numbers(w.grad(&rows.sum().backward()).unwrap());
    let columns = w.dims()[1];
    let want: Vec<f64> =
        (0..gradient.len()).map(|i| [1.0, 0.0, 2.0, 0.0][(i / columns).min(3)]).collect();
    assert_eq!(gradient, want);
}

/// Every policy has the gradients of the function itself, on backends with and without a store of products.
#[test]
fn policies_have_the_gradients_of_their_functions() {
    let f = |(w, (b, x)): Inputs| {
        let y: Tensor<2> = einsum("ij,jk->ik", [&x.tanh(), &w]).unwrap();
        layer((w.exp(), (b, y)))
    };
    let want = gradients(f);
    for saveable in [Saveable::Nothing, Saveable::Products, Saveable::Everything] {
        let options = CheckpointOptions::default().save(saveable);
        let got = gradients(|x| checkpoint_with(f, x, &options).unwrap());
        for (got, want) in got.iter().zip(&want) {
            close(got, want, 1e-14);
        }
    }
}
