//! Second derivatives of functions of singular values and eigenvalues at coinciding values, by two nested tapes in
//! each order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_autodiff::Autodiff;
use burn_backend::AutodiffBackend;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::Complex;
use burn_t4a::ext::linalg::*;
use burn_t4a::ext::operation::Operations;
use burn_tensor::Tensor;

use super::cases::{numbers, tensor, values};

type Loss<B> = fn(Tensor<B, 3>) -> Tensor<B, 1>;

const UNIT: [f64; 4] = [1.0, 0.0, 0.0, 1.0];
const SWAP: [f64; 4] = [0.0, 1.0, 1.0, 0.0];

/// `d⟨∇L, v⟩`, reverse over reverse.
fn reverse<B>(a: &[f64], v: &[f64], shape: [usize; 3], loss: Loss<Autodiff<B>>) -> Vec<f64>
where
    B: AutodiffBackend + Operations,
{
    let x = tensor::<B, 3>(a.to_vec(), shape).require_grad();
    let above = Tensor::<Autodiff<B>, 3>::from_inner(x.clone()).require_grad();
    let gradients = loss(above.clone()).backward();
    let slope = (above.grad(&gradients).unwrap() * tensor(v.to_vec(), shape)).sum();
    values(x.grad(&slope.backward()).unwrap())
}

fn close(got: &[f64], want: &[f64]) {
    let off = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(got.len() == want.len() && off < 1e-11, "{got:?} {want:?}");
}

fn squares<B: Operations>(x: Tensor<B, 3>) -> Tensor<B, 1> {
    svdvals(x).unwrap().powi_scalar(2).sum()
}

fn quartics<B: Operations>(x: Tensor<B, 3>) -> Tensor<B, 1> {
    svdvals(x).unwrap().powi_scalar(4).sum()
}

fn quartics_by_products<B: Operations>(x: Tensor<B, 3>) -> Tensor<B, 1> {
    x.clone().swap_dims(1, 2).matmul(x).powi_scalar(2).sum()
}

fn log_det<B: Operations>(x: Tensor<B, 3>) -> Tensor<B, 1> {
    eigvalsh(x).unwrap().log().sum()
}

fn log_det_by_pivots<B: Operations>(x: Tensor<B, 3>) -> Tensor<B, 1> {
    let symmetric = (x.clone() + x.swap_dims(1, 2)) / 2.0;
    slogdet(symmetric).unwrap().1.sum()
}

fn at_ties<B: AutodiffBackend + Operations>() {
    let shape = [1, 2, 2];
    close(&reverse::<B>(&UNIT, &SWAP, shape, squares), &[0.0, 2.0, 2.0, 0.0]);
    close(&reverse::<B>(&UNIT, &SWAP, shape, log_det), &[0.0, -1.0, -1.0, 0.0]);

    // One matrix without ties, one with ties, and one at zero.
    let regular = numbers(3, 6);
    let tied = [0.6, 0.8, -0.8, 0.6, 0.0, 0.0];
    let a = [regular, tied.to_vec(), vec![0.0; 6]].concat();
    let v = numbers(4, 18);
    for shape in [[3, 3, 2], [3, 2, 3]] {
        let want = reverse::<B>(&a, &v, shape, quartics_by_products);
        close(&reverse::<B>(&a, &v, shape, quartics), &want);
    }
    let a = [UNIT.to_vec(), vec![2.0, 0.5, 0.5, 1.0]].concat();
    let v = numbers(5, 8);
    let want = reverse::<B>(&a, &v, [2, 2, 2], log_det_by_pivots);
    close(&reverse::<B>(&a, &v, [2, 2, 2], log_det), &want);
}

#[test]
fn values_have_second_derivatives_at_ties() {
    at_ties::<Autodiff<BurnT4a>>();
}

#[test]
fn also_on_another_backend() {
    at_ties::<Autodiff<Flex>>();
}

/// Reverse over forward: the gradient of the tangent of a loss.
#[test]
fn tangents_have_derivatives_at_ties() {
    type AD = Autodiff<BurnT4a>;
    let derivative = |f: fn(Tensor<AD, 2>, Tensor<AD, 2>) -> Tensor<AD, 1>| {
        let x = tensor::<AD, 2>(UNIT.to_vec(), [2, 2]).require_grad();
        let slope = f(x.clone(), tensor(SWAP.to_vec(), [2, 2]));
        values(x.grad(&slope.backward()).unwrap())
    };
    let got = derivative(|x, v| {
        let (s, ds) = jvp(op::SvdvalsOp, x, v).unwrap();
        (s * ds * 2.0).sum()
    });
    close(&got, &[0.0, 2.0, 2.0, 0.0]);
    let got = derivative(|x, v| {
        let (e, de) = jvp(op::EigvalshOp, x, v).unwrap();
        (de / e).sum()
    });
    close(&got, &[0.0, -1.0, -1.0, 0.0]);
}

#[test]
fn complex_values_have_second_derivatives_at_ties() {
    type B = Autodiff<BurnT4a>;
    type AD = Autodiff<B>;
    // A multiple of a unitary matrix; the imaginary part is varied.
    let run = |f: fn(Complex<AD, 2>) -> Tensor<AD, 1>| {
        let x = tensor::<B, 2>(vec![0.0, 0.6, -0.6, 0.0], [2, 2]).require_grad();
        let im = Tensor::<AD, 2>::from_inner(x.clone()).require_grad();
        let re = tensor::<AD, 2>(vec![0.8, 0.0, 0.0, 0.8], [2, 2]);
        let gradients = f(Complex::new(re, im.clone()).unwrap()).backward();
        let slope = im.grad(&gradients).unwrap() * tensor(vec![0.3, 0.7, -0.2, 0.4], [2, 2]);
        values(x.grad(&slope.sum().backward()).unwrap())
    };
    let got = run(|z| svdvals(z).unwrap().powi_scalar(4).sum());
    let want = run(|z| z.clone().adjoint().matmul(z).abs_squared().sum());
    close(&got, &want);
    let got = run(|z| eigvalsh(z.clone().adjoint().matmul(z)).unwrap().log().sum());
    let want = run(|z| slogdet(z.clone().adjoint().matmul(z)).unwrap().1);
    close(&got, &want);
}

/// Third derivatives: `Σ s⁴` without ties.
#[test]
fn values_have_third_derivatives() {
    type B = Autodiff<BurnT4a>;
    let third = |loss: Loss<Autodiff<Autodiff<B>>>| {
        let shape = [1, 3, 2];
        let x = tensor::<B, 3>(numbers(8, 6), shape).require_grad();
        let x2 = Tensor::<Autodiff<B>, 3>::from_inner(x.clone()).require_grad();
        let x3 = Tensor::<Autodiff<Autodiff<B>>, 3>::from_inner(x2.clone()).require_grad();
        let gradients = loss(x3.clone()).backward();
        let slope = (x3.grad(&gradients).unwrap() * tensor(numbers(9, 6), shape)).sum();
        let gradients = slope.backward();
        let slope = (x2.grad(&gradients).unwrap() * tensor(numbers(10, 6), shape)).sum();
        values(x.grad(&slope.backward()).unwrap())
    };
    close(&third(quartics), &third(quartics_by_products));
}

/// Entries of `f(A)` at and near ties, where derivatives by eigenvectors lose their digits.
#[test]
fn functions_of_matrices_have_second_derivatives_at_ties() {
    fn symmetric<B: Operations>(x: Tensor<B, 3>) -> Tensor<B, 3> {
        (x.clone() + x.swap_dims(1, 2)) / 2.0
    }
    fn entry<B: Operations>(x: Tensor<B, 3>) -> Tensor<B, 1> {
        x.narrow(1, 0, 1).narrow(2, 1, 1).reshape([-1])
    }
    fn check<B: AutodiffBackend + Operations>() {
        let pairs: [[Loss<Autodiff<B>>; 2]; 2] = [
            [
                |x| entry(hermitian_function(x, Elementary::Exp).unwrap()),
                |x| entry(expm(symmetric(x)).unwrap()),
            ],
            [
                |x| entry(hermitian_function(x, Elementary::Pow(3.0)).unwrap()),
                |x| {
                    let x = symmetric(x);
                    entry(x.clone().matmul(x.clone()).matmul(x))
                },
            ],
        ];
        for gap in [0.0, 1e-10, 1e-6] {
            for direction in [SWAP, [0.3, -0.7, 1.1, 0.4]] {
                for [loss, other] in pairs {
                    let a = [1.0, 0.0, 0.0, 1.0 + gap];
                    let got = reverse::<B>(&a, &direction, [1, 2, 2], loss);
                    let want = reverse::<B>(&a, &direction, [1, 2, 2], other);
                    let off = got.iter().zip(&want).map(|(a, b)| (a - b).abs());
                    assert!(off.fold(0.0, f64::max) < 1e-8, "{gap} {got:?} {want:?}");
                }
            }
        }
    }
    check::<Autodiff<BurnT4a>>();
    check::<Autodiff<Flex>>();
}

#[test]
fn losses_without_a_second_derivative_at_ties_are_reported() {
    fn text(run: impl FnOnce() -> Vec<f64>) -> String {
        let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("a panic");
        payload.downcast_ref::<String>().cloned().unwrap_or_default()
    }
    type B = Autodiff<BurnT4a>;
    let shape = [1, 2, 2];
    let largest = text(|| {
        reverse::<B>(&UNIT, &SWAP, shape, |x| {
            svdvals(x).unwrap().narrow(1, 0, 1).powi_scalar(2).sum()
        })
    });
    assert!(largest.contains("svdvals") && largest.contains("tied values"), "{largest}");
    let nuclear = text(|| reverse::<B>(&[0.0; 4], &SWAP, shape, |x| svdvals(x).unwrap().sum()));
    assert!(nuclear.contains("svdvals") && nuclear.contains("tied values"), "{nuclear}");
    // The symmetry of the loss is not visible through the factors, so no error reports it as gauge dependent, not
    // even where its gradient is zero.
    let losses: [Loss<Autodiff<B>>; 4] = [
        |x| eigh(x).unwrap().values.powi_scalar(2).sum(),
        |x| (eigh(x).unwrap().values - 1.0).powi_scalar(2).sum(),
        |x| (svd(x).unwrap().s - 1.0).powi_scalar(2).sum(),
        |x| (eigvals(x).unwrap().re() - 1.0).powi_scalar(2).sum(),
    ];
    for loss in losses {
        let through = text(|| reverse::<B>(&UNIT, &SWAP, shape, loss));
        assert!(through.contains("eig") || through.contains("svd"), "{through}");
        assert!(through.contains("tied values"), "{through}");
        assert!(!through.contains("the loss depends"), "{through}");
    }
    // Directions that preserve the tie.
    let got = reverse::<B>(&UNIT, &UNIT, shape, losses[0]);
    close(&got, &[2.0, 0.0, 0.0, 2.0]);
    let both = [[2.0, 0.0, 0.0, 1.0], UNIT].concat();
    let got = reverse::<B>(&both, &[UNIT, [0.0; 4]].concat(), [2, 2, 2], losses[0]);
    close(&got, &[2.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
}
