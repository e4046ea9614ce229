//! Programs on the fused backend, Burn's default, against the engine.

use burn::backend::Autodiff;
use burn::tensor::Tensor;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{MaxPlus, counting_einsum, semiring_einsum};
use burn_t4a::ext::nn::softmax;

use super::programs::{assert_parts, effective, filtered};
use super::user::{factored, program};
use super::{Engine, Fused, Tested, noise, numbers, steps, tensor};

type Gpu = Autodiff<Fused>;

#[test]
fn an_einsum_an_svd_and_a_scan() {
    assert_parts(&program::<Gpu>(), &program::<Engine>(), 2e-5);
}

#[test]
fn gradients_of_factorisations() {
    assert_parts(&factored::<Gpu>(), &factored::<Engine>(), 1e-4);
}

#[test]
fn graded_contractions() {
    assert_parts(&effective::<Gpu>(), &effective::<Engine>(), 1e-5);
}

#[test]
fn scans_with_bodies() {
    assert_parts(&filtered::<Gpu>(), &filtered::<Engine>(), 1e-5);
}

/// Burn's operations, fused, before and after operations of this crate; the operands are used again afterwards.
fn mixed<B: Tested>(seed: usize) -> Vec<Vec<f32>> {
    let x = tensor::<B, 2>(&noise(30, seed), [5, 6]);
    let y = (x.clone() * 2.0 + 1.0).exp() - x.clone();
    let best: Tensor<B, 2> = semiring_einsum::<MaxPlus, _, _>("ij,kj->ik", [&y, &x]).unwrap();
    let z = (best.clone() - best.clone().mean().unsqueeze()).tanh() + best.clone();
    let weights = softmax(z.clone(), 1);
    vec![numbers(y + x), numbers(best), numbers(z), numbers(weights)]
}

#[test]
fn between_operations_of_burn() {
    assert_parts(&mixed::<Fused>(3), &mixed::<BurnT4a>(3), 1e-5);
}

/// Each thread has a stream of its own; a tensor is used on another thread than the one that computed it.
#[test]
fn on_several_threads() {
    let x = tensor::<Fused, 2>(&noise(16, 9), [4, 4]) + 1.0;
    let expected = tensor::<BurnT4a, 2>(&noise(16, 9), [4, 4]) + 1.0;
    let expected: Tensor<BurnT4a, 2> =
        semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&expected, &expected]).unwrap();
    let expected = [numbers(expected)];
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (x, expected) = (x.clone(), &expected);
            scope.spawn(move || {
                assert_parts(&mixed::<Fused>(seed), &mixed::<BurnT4a>(seed), 1e-5);
                let own: Tensor<Fused, 2> =
                    semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&x, &x]).unwrap();
                assert_parts(&[numbers(own)], expected, 1e-6);
            });
        }
    });
}

/// Rows of −∞, for which Burn's maxima are other numbers, and counts of optimal terms.
#[test]
fn kernels_of_the_backend_within() {
    fn counts<B: Tested>() -> (Vec<f32>, Vec<i64>) {
        let mut x = steps(42, 1);
        x[7..14].fill(f32::NEG_INFINITY);
        let (x, y) = (tensor::<B, 2>(&x, [6, 7]), tensor::<B, 2>(&steps(35, 2), [7, 5]));
        let (best, counts) = counting_einsum::<MaxPlus, B, 2>("ij,jk->ik", vec![x, y]).unwrap();
        (numbers(best), counts.into_data().iter().collect())
    }
    let found = counts::<Fused>();
    assert_eq!(found, counts::<BurnT4a>());
    assert_eq!(found.0[5..10], [f32::NEG_INFINITY; 5]);
}
