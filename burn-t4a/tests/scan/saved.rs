//! Checkpoints that keep results of products: numbers of products that run, and gradients.

use burn_t4a::ext::einsum::einsum;
use burn_t4a::ext::scan::{CheckpointOptions, Saveable, checkpoint, checkpoint_with};
use burn_tensor::module::{conv2d, linear};
use burn_tensor::ops::ConvOptions;

use super::*;

/// Bits of the value and of the gradients of `f` with respect to x and w.
fn gradients<B: Backend>(
    f: impl FnOnce(Pair<Autodiff<B>>) -> Tensor<Autodiff<B>, 2>,
) -> [Vec<u64>; 3] {
    let x: Tensor<Autodiff<B>, 2> = random([6, 5], 1).require_grad();
    let w: Tensor<Autodiff<B>, 2> = random([5, 5], 2).require_grad();
    let y = f((x.clone(), w.clone()));
    let found = y.clone().powi_scalar(2).sum().backward();
    [y.inner(), x.grad(&found).unwrap(), w.grad(&found).unwrap()]
        .map(|x| numbers(x).into_iter().map(f64::to_bits).collect())
}

type Pair<B> = (Tensor<B, 2>, Tensor<B, 2>);

/// Three products: of matrices, by einsum, and a linear layer.
fn net<B: ScanBackend>((x, w): Pair<B>) -> Tensor<B, 2> {
    let x = (x.tanh().matmul(w.clone()) * 2.0).sin();
    let x: Tensor<B, 2> = einsum("ij,kj->ik", [&x.exp(), &w.clone().cos()]).unwrap();
    linear(x.tanh(), w, None).tanh()
}

#[test]
fn products_run_once() {
    let options = CheckpointOptions::default().save(Saveable::Products);
    let got = gradients::<BurnT4a>(|x| checkpoint_with(net, x, &options).unwrap());
    assert_eq!(options.products(), [3, 3]);
    assert_eq!(got, gradients::<BurnT4a>(net));
    assert_eq!(got, gradients::<BurnT4a>(|x| checkpoint(net, x).unwrap()));
    // Without a tape nothing runs again.
    let options = CheckpointOptions::default().save(Saveable::Products);
    let x = (random::<BurnT4a, 2>([6, 5], 1), random([5, 5], 2));
    let y: Tensor<BurnT4a, 2> = checkpoint_with(net, x.clone(), &options).unwrap();
    assert_eq!(options.products(), [3, 0]);
    assert_eq!(numbers(y), numbers(net(x)));
}

#[test]
fn results_of_other_policies_are_not_kept() {
    for saveable in [Saveable::Nothing, Saveable::Everything] {
        let options = CheckpointOptions::default().save(saveable);
        let got = gradients::<BurnT4a>(|x| checkpoint_with(net, x, &options).unwrap());
        assert_eq!(options.products(), [0, 0]);
        assert_eq!(got, gradients::<BurnT4a>(net));
    }
}

/// A checkpoint in a checkpoint decides on its products, which run again in both reverse passes.
#[test]
fn the_inner_checkpoint_decides() {
    let options = CheckpointOptions::default().save(Saveable::Products);
    let outer = |(x, w): Pair<AD>| {
        let y: Tensor<AD, 2> = checkpoint(net, (x.matmul(w.clone()), w.clone())).unwrap();
        y.sin().matmul(w)
    };
    let got = gradients::<BurnT4a>(|x| checkpoint_with(outer, x, &options).unwrap());
    assert_eq!(options.products(), [2, 2]);
    // Sums of cotangents are in the order of checkpoints.
    assert_eq!(got, gradients::<BurnT4a>(|x| checkpoint(outer, x).unwrap()));
}

#[test]
fn convolutions_run_once() {
    let options = CheckpointOptions::default().save(Saveable::Products);
    let f = |(x, w): Pair<AD>| {
        let windows = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        let x = x.tanh().reshape([1, 1, 6, 5]);
        let w = w.narrow(0, 0, 3).narrow(1, 0, 3).reshape([1, 1, 3, 3]);
        conv2d(x, w, None, windows).tanh().reshape([6, 5])
    };
    let got = gradients::<BurnT4a>(|x| checkpoint_with(f, x, &options).unwrap());
    assert_eq!(options.products(), [1, 1]);
    assert_eq!(got, gradients::<BurnT4a>(f));
}

/// A function that is not deterministic: products of other operands are computed.
#[test]
fn other_operands_are_computed() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let options = CheckpointOptions::default().save(Saveable::Products);
    let runs = AtomicUsize::new(0);
    let f = move |(x, w): Pair<AD>| {
        let scale = 1.0 + runs.fetch_add(1, Ordering::Relaxed) as f64;
        (x * scale).matmul(w)
    };
    gradients::<BurnT4a>(|x| checkpoint_with(f, x, &options).unwrap());
    assert_eq!(options.products(), [2, 0]);
}

/// Second derivatives, and a backend without a store.
#[test]
fn levels() {
    // Burn has no second derivative of a linear layer.
    let products = |(x, w): Pair<Autodiff<AD>>| (x.tanh().matmul(w.clone()) * 2.0).sin().matmul(w);
    let options = CheckpointOptions::default().save(Saveable::Products);
    let got = gradients::<AD>(|x| checkpoint_with(products, x, &options).unwrap());
    let [computed, reused] = options.products();
    assert!(computed == 2 && reused >= 2, "{computed} {reused}");
    assert_eq!(got, gradients::<AD>(products));
    let options = CheckpointOptions::default().save(Saveable::Products);
    let got = gradients::<Flex>(|x| checkpoint_with(net, x, &options).unwrap());
    assert_eq!(options.products(), [0, 0]);
    assert_eq!(got, gradients::<Flex>(net));
}
