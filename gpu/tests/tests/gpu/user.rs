//! User programs, generic over the backend, on the GPU backend with a tape and on the engine.

use burn::tensor::Tensor;
use burn::tensor::backend::AutodiffBackend;
use burn_t4a::ext::einsum::{MaxPlus, semiring_einsum};
use burn_t4a::ext::linalg::{cholesky, eigh, op, qr, status, svd};
use burn_t4a::ext::scan::fused::linear_recurrence;

use super::{Card, Engine, Gpu, Tested, assert_close, noise, numbers, tensor, times};

/// A loss of a best path, a nuclear norm and a filter, and its gradients.
pub(super) fn program<B: Tested + AutodiffBackend>() -> Vec<Vec<f32>> {
    let scores = tensor::<B, 2>(&noise(36, 1), [6, 6]).require_grad();
    let decay = tensor::<B, 2>(&noise(40, 2), [20, 2]).require_grad();

    let best: Tensor<B, 1> =
        semiring_einsum::<MaxPlus, _, _>("ij,jk->", [&scores, &scores]).unwrap();
    let norm = svd(scores.clone()).unwrap().s.sum();
    let states = linear_recurrence(decay.clone(), decay.clone().sin(), None, 0, false).unwrap();
    let loss = best.clone() + norm.clone() + states.clone().powi_scalar(2).sum();

    let grads = loss.clone().backward();
    let leaf = |x: &Tensor<B, 2>| numbers(x.grad(&grads).unwrap());
    let values = [best, norm, loss].map(|x| numbers(x.inner()));
    [&values[..], &[numbers(states.inner()), leaf(&scores), leaf(&decay)]].concat()
}

#[test]
fn an_einsum_an_svd_and_a_scan() {
    for (i, (given, expected)) in program::<Gpu>().iter().zip(program::<Engine>()).enumerate() {
        assert_close(given, &expected, 2e-5, &format!("part {i}"));
    }
}

#[test]
fn a_single_matrix_has_a_status() {
    for (entries, fails) in [([2.0, 1.0, 0.0, 4.0], false), ([1.0, 2.0, 2.0, 4.0], true)] {
        let (_, info): (Tensor<Card, 2>, _) = status(op::InvOp, tensor(&entries, [2, 2])).unwrap();
        assert_eq!(info.dims(), [1]);
        assert_eq!(info.into_scalar() != 0, fails);
    }
}

/// Gradient of a loss with respect to a matrix, general or symmetric positive definite.
fn gradient<B: Tested + AutodiffBackend>(
    loss: impl FnOnce(Tensor<B, 2>, Tensor<B, 2>, Tensor<B, 2>) -> Tensor<B, 1>,
) -> Vec<f32> {
    let n = 20;
    let x = tensor::<B, 2>(&noise(n * n, 7), [n, n]).require_grad();
    let of = |e: usize| if e / n == e % n { (e % n + 9) as f32 } else { 0.0 };
    let diagonal: Vec<f32> = (0..n * n).map(of).collect();
    let spd = times(x.clone(), x.clone().transpose()) * 0.1 + tensor(&diagonal, [n, n]);
    let weights = tensor::<B, 2>(&noise(n * n, 8), [n, n]);
    numbers(x.grad(&loss(x.clone(), spd, weights).backward()).unwrap())
}

/// Gradients of factorisations, whose rules are matrix products on the device.
pub(super) fn factored<B: Tested + AutodiffBackend>() -> [Vec<f32>; 4] {
    [
        gradient::<B>(|_, spd, w| (cholesky(spd).unwrap() * w).sum()),
        gradient::<B>(|x, _, w| (qr(x).unwrap().r * w).sum()),
        gradient::<B>(|_, spd, w| {
            (eigh(spd).unwrap().values.sin() * w.narrow(0, 0, 1).squeeze()).sum()
        }),
        gradient::<B>(|x, _, _| svd(x).unwrap().s.powi_scalar(2).sum()),
    ]
}

#[test]
fn gradients_of_factorisations() {
    for (i, (given, expected)) in factored::<Gpu>().iter().zip(factored::<Engine>()).enumerate() {
        assert_close(given, &expected, 1e-4, &format!("factorisation {i}"));
    }
}

/// `f64`, whose functions software Vulkan computes incorrectly.
#[cfg(feature = "cuda")]
#[test]
fn double_precision() {
    use burn::tensor::DType;
    use burn_t4a::ext::einsum::LogSumExp;
    fn results<B: Tested>() -> Vec<f64> {
        let x = tensor::<B, 2>(&noise(400, 9), [20, 20]).cast(DType::F64);
        let sums: Tensor<B, 2> = semiring_einsum::<LogSumExp, _, _>("ij,jk->ik", [&x, &x]).unwrap();
        let best: Tensor<B, 2> = semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&x, &x]).unwrap();
        let states = linear_recurrence(x.clone(), x.clone(), None, 0, false).unwrap();
        let spd = times(x.clone(), x.clone().transpose())
            + Tensor::<B, 2>::eye(20, &B::place()).cast(DType::F64);
        let all = [sums, best, states, cholesky(spd.clone()).unwrap(), qr(x).unwrap().r];
        let values = eigh(spd).unwrap().values;
        let all = all.into_iter().flat_map(|x| x.into_data().iter::<f64>().collect::<Vec<_>>());
        all.chain(values.into_data().iter()).collect()
    }
    for (i, (given, expected)) in
        results::<Card>().iter().zip(results::<burn_t4a::BurnT4a>()).enumerate()
    {
        assert!(
            (given - expected).abs() < 1e-11 * (1.0 + expected.abs()),
            "{i}: {given} {expected}"
        );
    }
}
