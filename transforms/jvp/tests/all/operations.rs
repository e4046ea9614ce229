//! Operations beyond Burn's traits, which share one rule; these tests check that tangents reach it.

use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Int, Tensor, TensorData, backend::Backend};
use burn_t4a::ext::einsum::{LogSumExp, MaxPlus, einsum, semiring_einsum};
use burn_t4a::ext::scan::{Options, fused, scan};
use burn_t4a::ext::structured::{Direction, GradedTensor, Leg, Spec, Structured, U1};
use burn_t4a::ext::{linalg, nn};

use crate::rows::{rows, tensor};

fn classes<B: Backend>() -> Tensor<B, 1, Int> {
    Tensor::from_data(TensorData::from([2i64, 0, 1]), &Default::default())
}

/// Adds diag(4, 2, 1), so that matrices are regular and spectra are non-degenerate.
fn apart<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    x + tensor(&[4.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]).reshape([3usize, 3])
}

fn trace_of_square<B: burn_t4a::ext::operation::Operations>(x: Tensor<B, 1>) -> Tensor<B, 1> {
    let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out).unwrap();
    let legs = [spin.clone(), spin.clone(), spin.dual(), spin.dual()];
    let spec = Spec::new(legs.to_vec(), U1(0), 2).unwrap();
    let h = GradedTensor::from_flat(&spec, x).unwrap();
    let square = h.contract(&h, &[2, 3], &[0, 1]).unwrap();
    square.trace(&[(0, 2), (1, 3)]).unwrap().flat()
}

rows! {
    check singular_values(x: [3, 3] in (-0.4, 0.4)) => linalg::svd(apart(x)).unwrap().s;
    check polar_by_svd(x: [3, 3] in (-0.4, 0.4)) => {
        let linalg::Svd { u, vh, .. } = linalg::svd(apart(x)).unwrap();
        u.matmul(vh)
    };
    check eigenvalues(x: [3, 3] in (-0.4, 0.4)) => linalg::eigvalsh(apart(x)).unwrap();
    check eigenprojector(x: [3, 3] in (-0.4, 0.4)) => {
        let v = linalg::eigh(apart(x)).unwrap().vectors.slice_dim(1, 0..1);
        v.clone().matmul(v.transpose())
    };
    check solved(a: [3, 3] in (-0.4, 0.4), b: [3, 2] in (-1.0, 1.0)) => linalg::solve(apart(a), b).unwrap();
    check choleskied(x: [3, 3] in (-0.4, 0.4)) => linalg::cholesky(apart(x.clone() + x.transpose())).unwrap();

    check einsum_standard(a: [2, 3] in (-1.0, 1.0), b: [3, 2] in (-1.0, 1.0), c: [2, 2] in (-1.0, 1.0)) => {
        let y: Tensor<Back, 2> = einsum("ij,jk,kl->il", (a, b, c)).unwrap();
        y
    };
    check einsum_log(a: [2, 3] in (-1.0, 1.0), b: [3, 2] in (-1.0, 1.0)) => {
        let y: Tensor<Back, 2> = semiring_einsum::<LogSumExp, _, 2>("ij,jk->ik", (a, b)).unwrap();
        y
    };
    check einsum_max_plus(a: [2, 3] in (-1.0, 1.0), b: [3, 2] in (-1.0, 1.0)) => {
        let y: Tensor<Back, 2> = semiring_einsum::<MaxPlus, _, 2>("ij,jk->ik", (a, b)).unwrap();
        y.sin()
    };

    check fused_softmax(x: [3, 4] in (-1.0, 1.0)) => nn::softmax(x, 1);
    check fused_layer_norm(x: [3, 4] in (-1.0, 1.0), g: [4] in (0.5, 1.5), b: [4] in (-1.0, 1.0)) => nn::layer_norm(x, g, Some(b), 1e-5);
    check fused_cross_entropy(x: [3, 3] in (-1.0, 1.0)) => nn::cross_entropy(x, classes());
    check fused_attention(q: [1, 2, 3, 2] in (-1.0, 1.0), k: [1, 2, 3, 2] in (-1.0, 1.0), v: [1, 2, 3, 2] in (-1.0, 1.0)) => {
        nn::attention(q, k, v, None, None, AttentionModuleOptions::default())
    };

    check recurrence(a: [4, 2] in (0.2, 0.9), b: [4, 2] in (-1.0, 1.0)) => fused::linear_recurrence(a, b, None, 0, false).unwrap();
    check scanned(a: [1] in (0.2, 0.9), c: [1] in (-1.0, 1.0), xs: [5, 1] in (-1.0, 1.0)) => {
        let step = |(a,): (Tensor<Back, 1>,), c: Tensor<Back, 1>, x: Tensor<Back, 1>| {
            let c = (a * c + x).tanh();
            (c.clone(), c)
        };
        let (_, ys): (Tensor<Back, 1>, Tensor<Back, 2>) =
            scan(step, (a,), c, xs, &Options::default()).unwrap();
        ys
    };
    check graded(x: [6] in (-1.0, 1.0)) => trace_of_square(x);
}
