//! Ties, gauges, truncation: cases in which derivatives of factorisations are delicate.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::Complex;
use burn_t4a::ext::linalg::*;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::primitive::Floats;
use burn_tensor::Tensor;

use super::cases::{numbers, tensor, values};

type AD = Autodiff<BurnT4a>;

/// `U diag(s) Vᵀ` with random orthogonal factors.
fn with_singular_values(s: &[f64], m: usize, n: usize) -> Tensor<BurnT4a, 2> {
    let k = s.len();
    let u = qr(tensor::<BurnT4a, 2>(numbers(1, m * k), [m, k])).unwrap().q;
    let v = qr(tensor::<BurnT4a, 2>(numbers(2, n * k), [n, k])).unwrap().q;
    (u * tensor::<BurnT4a, 2>(s.to_vec(), [1, k])).matmul(v.transpose())
}

fn message(result: std::thread::Result<impl Sized>) -> String {
    let payload = result.err().expect("a panic");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn ties_are_harmless_for_losses_without_gauge() {
    // The polar factor U Vᵀ by the decomposition, at a triple singular value.
    let a = with_singular_values(&[3.0, 2.0, 2.0, 2.0, 0.5], 6, 5);
    let w = tensor::<AD, 2>(numbers(3, 30), [6, 5]);
    let gradient = |f: fn(Tensor<AD, 2>) -> Tensor<AD, 2>| {
        let x = Tensor::<AD, 2>::from_inner(a.clone()).require_grad();
        let gradients = (f(x.clone()) * w.clone()).sum().backward();
        values(x.grad(&gradients).unwrap())
    };
    let through_svd = gradient(|x| {
        let Svd { u, vh, .. } = svd_with(x, Degeneracy::SEPARABLE).unwrap();
        u.matmul(vh)
    });
    let exact = gradient(|x| polar(x, Side::Right).unwrap().u);
    let off = through_svd.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off < 1e-13, "{off:e}");
}

/// `2 P Qᴴ`: the singular values differ by rounding only, and the loss `Re⟨C, U Vᴴ⟩` is smooth.
#[test]
fn ties_split_by_rounding_are_ties() {
    fn gradients<M>(a: M, loss: impl Fn(Svd<M>) -> Tensor<AD, 1>, leaf: &Tensor<AD, 3>) -> Vec<f64>
    where
        M: Matrix<Burn, Array = Floats<AD>>,
    {
        let gradients = loss(svd_with(a, Degeneracy::SEPARABLE).unwrap()).backward();
        values(leaf.grad(&gradients).unwrap())
    }
    for n in [2, 3, 4, 5, 8] {
        let shape = [100, n, n];
        let random = |seed| tensor::<BurnT4a, 3>(numbers(seed, 100 * n * n), shape);
        let weights = Tensor::<AD, 3>::from_inner(random(5));
        let check = |got: Vec<f64>, exact: Vec<f64>| {
            let off = got.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-12, "n = {n}: {off:e}");
        };
        // The polar decomposition divides by no gaps.
        let q = |seed| qr(random(seed)).unwrap().q;
        let a = q(1).matmul(q(2).transpose()) * 2.0;
        let x = Tensor::<AD, 3>::from_inner(a).require_grad();
        let through = |out: Svd<Tensor<AD, 3>>| (out.u.matmul(out.vh) * weights.clone()).sum();
        let got = gradients(x.clone(), through, &x);
        let exact = (polar(x.clone(), Side::Right).unwrap().u * weights.clone()).sum().backward();
        check(got, values(x.grad(&exact).unwrap()));

        let q = |seed| qr(Complex::new(random(seed), random(seed + 10)).unwrap()).unwrap().q;
        let (re, im) = q(3).matmul(q(4).adjoint()).map(|x| x * 2.0).into_parts();
        let x = Tensor::<AD, 3>::from_inner(re).require_grad();
        let z = Complex::new(x.clone(), Tensor::from_inner(im)).unwrap();
        let through =
            |out: Svd<Complex<AD, 3>>| (out.u.matmul(out.vh).im() * weights.clone()).sum();
        let got = gradients(z.clone(), through, &x);
        let exact = polar(z, Side::Right).unwrap().u.im() * weights.clone();
        check(got, values(x.grad(&exact.sum().backward()).unwrap()));
    }
}

/// A loss of vectors and values of tied triplets is a function of the matrix only through `svd_function`; the
/// message recommends it.
#[test]
fn functions_of_singular_values_are_smooth_at_ties() {
    let x = tensor::<AD, 2>(vec![2.0, 0.0, 0.0, 2.0], [2, 2]).require_grad();
    let weights = tensor::<AD, 2>(vec![1.0, 0.5, -0.3, 0.2], [2, 2]);
    let Svd { u, s, vh } = svd(x.clone()).unwrap();
    let through = (u * (s.clone() * s.clone() * s).unsqueeze_dim(0)).matmul(vh);
    let loss = (through * weights.clone()).sum();
    let text = message(catch_unwind(AssertUnwindSafe(|| loss.backward())));
    assert!(text.contains("svd_function") && text.contains("hermitian_function"), "{text}");

    let cube = svd_function(x.clone(), Elementary::Pow(3.0)).unwrap();
    let gradients = (cube * weights.clone()).sum().backward();
    let direct = x.clone().matmul(x.clone().transpose()).matmul(x.clone());
    let exact = (direct * weights).sum().backward();
    let (got, exact) = (values(x.grad(&gradients).unwrap()), values(x.grad(&exact).unwrap()));
    for (got, exact) in got.iter().zip(&exact) {
        assert!((got - exact).abs() < 1e-13, "{got} {exact}");
    }
}

/// `⟨C, A⟩`, `⟨C, eᴬ⟩` at the identity, computed from factors: cotangents are packed, some of them zeros.
#[test]
fn functions_of_the_matrix_through_tied_factors_are_refused() {
    type Loss = fn(Tensor<AD, 2>) -> Tensor<AD, 2>;
    let losses: [(Loss, &str); 3] = [
        (
            |x| {
                let Svd { u, s, vh } = svd(x).unwrap();
                (u * s.unsqueeze_dim(0)).matmul(vh)
            },
            "svd_vjp",
        ),
        (
            |x| {
                let Eigh { values, vectors } = eigh(x).unwrap();
                (vectors.clone() * values.exp().unsqueeze_dim(0)).matmul(vectors.transpose())
            },
            "eigh_vjp",
        ),
        (|x| eig(x).unwrap().vectors.abs_squared(), "eig_vjp"),
    ];
    let swap = tensor::<AD, 2>(vec![0.0, 1.0, 1.0, 0.0], [2, 2]);
    for (loss, op) in losses {
        let x = tensor::<AD, 2>(vec![1.0, 0.0, 0.0, 1.0], [2, 2]).require_grad();
        let loss = (loss(x) * swap.clone()).sum();
        let text = message(catch_unwind(AssertUnwindSafe(|| loss.backward())));
        assert!(text.contains(op) && text.contains("are tied"), "{text}");
    }
    // The sum of all entries of diag(2, 2, 1) truncated to two values.
    let entries = vec![2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0];
    let x = tensor::<AD, 2>(entries, [3, 3]).require_grad();
    let gradients = low_rank(x.clone(), 2).unwrap().sum().backward();
    let got = values(x.grad(&gradients).unwrap());
    for (got, want) in got.iter().zip([1.0, 1.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0, 0.0]) {
        assert!((got - want).abs() < 1e-14, "{got} {want}");
    }
}

#[test]
fn a_loss_of_arbitrary_phases_is_reported() {
    let part = |seed| tensor::<AD, 2>(numbers(seed, 16), [4, 4]).require_grad();
    let loss = |sum: fn(Svd<Complex<AD, 2>>) -> Tensor<AD, 1>| {
        sum(svd(Complex::new(part(1), part(2)).unwrap()).unwrap())
    };
    let text = message(catch_unwind(AssertUnwindSafe(|| loss(|out| out.u.re().sum()).backward())));
    assert!(text.contains("arbitrary basis"), "{text}");
    // U and V have arbitrary phases, but the loss does not depend on them.
    loss(|out| out.u.matmul(out.vh).re().sum()).backward();
}

#[test]
fn a_loss_that_splits_a_tie_is_reported() {
    let a = with_singular_values(&[2.0, 1.0, 1.0], 3, 3);
    let x = Tensor::<AD, 2>::from_inner(a).require_grad();
    let Svd { u, vh, .. } = svd_truncated(x.clone(), &Truncation::new().max_dim(2)).unwrap().kept;
    assert_eq!(u.dims(), [3, 2]);
    let loss = u.matmul(vh).sum();
    let text = message(catch_unwind(AssertUnwindSafe(|| loss.backward())));
    assert!(text.contains("arbitrary basis"), "{text}");
    // With `check_gauge: false` the undefined part is dropped.
    let quiet = Degeneracy { check_gauge: false, ..Degeneracy::default() };
    let Svd { u, .. } = svd_with(x.clone(), quiet).unwrap();
    let gradients = u.sum().backward();
    assert!(values(x.grad(&gradients).unwrap()).iter().all(|g| g.is_finite()));
}

#[test]
fn truncation_reports_what_it_dropped() {
    let a = with_singular_values(&[3.0, 2.0, 0.2, 0.1], 5, 4);
    let out = svd_truncated(a.clone(), &Truncation::new().relative_cutoff(0.1)).unwrap();
    let Svd { u, s, vh } = out.kept;
    assert_eq!(s.dims(), [2]);
    let rest = a - (u * s.unsqueeze_dim(0)).matmul(vh);
    let norm = values((rest.clone() * rest).sum().sqrt())[0];
    let error = values(out.error)[0];
    assert!((error - 0.05f64.sqrt()).abs() < 1e-14 && (norm - error).abs() < 1e-13);
    let error =
        svd_truncated(tensor::<BurnT4a, 2>(numbers(1, 4), [2, 2]), &Truncation::new().cutoff(-1.0));
    assert!(matches!(error, Err(LinalgError::Tensor(_))));
}

#[test]
fn determinants_of_singular_matrices_have_a_gradient() {
    let x = tensor::<AD, 2>(vec![1.0, 2.0, 2.0, 4.0], [2, 2]).require_grad();
    let gradients = det(x.clone()).unwrap().backward();
    let cofactors = values(x.grad(&gradients).unwrap());
    for (got, want) in cofactors.iter().zip([4.0, -2.0, -2.0, 1.0]) {
        assert!((got - want).abs() < 1e-14, "{cofactors:?}");
    }
}

/// The gradient of a determinant is linear for 2×2 matrices: its derivative is known at rank 1 and 0.
#[test]
fn determinants_of_singular_matrices_have_a_second_derivative() {
    fn check<B: burn_backend::AutodiffBackend + Operations>() {
        for entries in [[1.0, 2.0, 2.0, 4.0], [0.0; 4]] {
            let x = tensor::<B, 2>(entries.to_vec(), [2, 2]).require_grad();
            let above = Tensor::<Autodiff<B>, 2>::from_inner(x.clone()).require_grad();
            let gradients = det(above.clone()).unwrap().backward();
            let direction = tensor::<B, 2>(vec![0.1, 0.2, 0.3, 0.4], [2, 2]);
            let slope = (above.grad(&gradients).unwrap() * direction).sum();
            let moved = values(x.grad(&slope.backward()).unwrap());
            for (got, want) in moved.iter().zip([0.4, -0.3, -0.2, 0.1]) {
                assert!((got - want).abs() < 1e-14, "{entries:?}: {moved:?}");
            }
        }
    }
    check::<AD>();
    check::<Autodiff<Flex>>();
}

#[test]
fn factors_asked_for_in_another_rank_are_errors() {
    let a = tensor::<BurnT4a, 3>(numbers(1, 24), [2, 3, 4]);
    type Factors<const M: usize, const N: usize> = Result<(Tensor<BurnT4a, M>, Tensor<BurnT4a, N>)>;
    let fits: Factors<2, 3> = qr_left_dims(a.clone(), &[1]);
    assert!(fits.is_ok());
    let wrong: Factors<3, 3> = qr_left_dims(a.clone(), &[1]);
    assert!(matches!(wrong, Err(LinalgError::Tensor(_))));
    let twice: Factors<3, 2> = qr_left_dims(a.clone(), &[1, 1]);
    assert!(matches!(twice, Err(LinalgError::Tensor(_))));
    let real: Result<(Complex<BurnT4a, 2>, Complex<BurnT4a, 3>)> = qr_left_dims(a, &[1]);
    assert!(matches!(real, Err(LinalgError::Tensor(_))));
}

#[test]
fn strided_and_expanded_inputs_and_cotangents() {
    let a = tensor::<AD, 3>(numbers(5, 24), [4, 2, 3]).require_grad();
    // Permuted axes, every other row, and an expanded scalar as the cotangent.
    let view = a.clone().permute([1, 0, 2]).slice([0..2, 1..4, 0..3]);
    let (s, again) = (svdvals(view.clone()).unwrap(), svdvals(view.clone() * 1.0).unwrap());
    assert_eq!(values(s.clone()), values(again));
    let gradients = s.sum().backward();
    let bar = values(a.grad(&gradients).unwrap());
    let dense = (view.inner() * 1.0).into_data();
    let b = Tensor::<AD, 3>::from_primitive(burn_tensor::TensorPrimitive::Float(
        <AD as burn_backend::ops::FloatTensorOps<AD>>::float_from_data(dense, &Default::default()),
    ))
    .require_grad();
    let gradients = svdvals(b.clone()).unwrap().sum().backward();
    let dense = values(b.grad(&gradients).unwrap());
    for (i, &got) in bar.iter().enumerate() {
        let (row, batch, col) = (i / 6, i / 3 % 2, i % 3);
        let want = if row == 0 { 0.0 } else { dense[(batch * 3 + row - 1) * 3 + col] };
        assert!((got - want).abs() < 1e-14);
    }
}
