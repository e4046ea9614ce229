//! Factorisations: spectra of the dense matrix, truncation, gradients independent of the gauge.

use burn_autodiff::Autodiff;
use burn_backend::AutodiffBackend;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::linalg;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::structured::*;
use burn_tensor::Tensor;

use super::cases::{Rng, array, close, numbers};

type B = BurnT4a;
type AD = Autodiff<BurnT4a>;
type G<B> = GradedTensor<B, U1>;

fn spec(flux: i32) -> Spec<U1> {
    let leg = |sizes: [usize; 4], direction| {
        let sectors = [-2, 0, 1, 4].into_iter().map(U1).zip(sizes).filter(|&(_, n)| n > 0);
        Leg::new(sectors, direction).unwrap()
    };
    let legs = vec![
        leg([2, 3, 2, 0], Direction::Out),
        leg([1, 1, 2, 1], Direction::Out),
        leg([3, 2, 4, 0], Direction::In),
    ];
    Spec::new(legs, U1(flux), 2).unwrap()
}

fn tensor<B: Operations>(spec: &Spec<U1>, x: &[f64]) -> G<B> {
    G::from_flat(spec, array::<B>(x)).unwrap()
}

/// Derivative of `f` along a direction by the tape, and by finite differences.
fn slope<B: AutodiffBackend + Operations>(
    spec: &Spec<U1>,
    f: impl Fn(&G<B>) -> Tensor<B, 1>,
    tolerance: f64,
) where
    B::InnerBackend: Operations,
{
    let (x, t) = (Rng::new(8).numbers(spec.len()), Rng::new(9).numbers(spec.len()));
    let leaf = tensor::<B>(spec, &x).require_grad();
    let grad = leaf.grad(&f(&leaf).backward()).unwrap();
    let along: f64 = numbers(grad.flat()).iter().zip(&t).map(|(g, t)| g * t).sum();
    let at = |h: f64| {
        let x: Vec<f64> = x.iter().zip(&t).map(|(x, t)| x + h * t).collect();
        numbers(f(&tensor::<B>(spec, &x)))[0]
    };
    close("slope", &[along], &[(at(1e-5) - at(-1e-5)) / 2e-5], tolerance);
}

fn matrix(x: &G<B>) -> Tensor<B, 2> {
    let [a, b, c] = x.to_tensor::<3>().unwrap().dims();
    x.to_tensor::<3>().unwrap().reshape([a * b, c])
}

fn sorted(x: Tensor<B, 1>) -> Vec<f64> {
    let mut x = numbers(x);
    x.sort_by(|a, b| b.total_cmp(a));
    x
}

#[test]
fn spectra_are_those_of_the_dense_matrix() {
    for flux in [0, 1] {
        for on in [FluxOn::Left, FluxOn::Right] {
            let spec = spec(flux);
            let x = tensor::<B>(&spec, &Rng::new(1).numbers(spec.len()));
            let svd = x.svd(2, on).unwrap();
            let values = sorted(svd.s.values().tensor().unwrap());
            let dense = sorted(linalg::svdvals(matrix(&x)).unwrap());
            close("spectrum", &values, &dense[..values.len()], 1e-13);
            assert!(dense[values.len()..].iter().all(|s| s.abs() < 1e-13));
            // U and Q are isometries.
            for u in [&svd.u, &x.qr(2, on).unwrap().q] {
                let square = u.dagger().unwrap().contract(u, &[2, 1], &[0, 1]).unwrap();
                let n = square.spec().shape()[0];
                let eye = Tensor::<B, 2>::eye(n, &Default::default());
                close("isometry", &numbers(square.to_tensor::<2>().unwrap()), &numbers(eye), 1e-13);
            }
        }
    }
}

#[test]
fn truncation_is_the_best_of_the_dense_matrix() {
    let spec = spec(1);
    let x = tensor::<B>(&spec, &Rng::new(2).numbers(spec.len()));
    let dense = sorted(linalg::svdvals(matrix(&x)).unwrap());
    for keep in 1..6 {
        let truncated = x.svd_truncated(2, FluxOn::Right, Truncation::new().max_dim(keep)).unwrap();
        let Svd { u, s, vh } = &truncated.kept;
        assert_eq!(s.leg().dim(), keep);
        let kept = sorted(s.values().tensor().unwrap());
        close("kept", &kept, &dense[..keep], 1e-13);
        let rest = dense[keep..].iter().map(|s| s * s).sum::<f64>().sqrt();
        close("error", &[truncated.error], &[rest], 1e-13);
        let product = u.scale_columns(s).unwrap().contract(vh, &[2], &[0]).unwrap();
        let difference = x.repartition(2).unwrap().sub(&product).unwrap();
        let norm: Tensor<B, 1> = difference.norm().unwrap().tensor().unwrap();
        close("distance", &numbers(norm), &[rest], 1e-12);
    }
    // Ties are truncated at the requested number.
    let spin = Leg::new([(U1(0), 4), (U1(1), 4)], Direction::Out).unwrap();
    let spec = Spec::new(vec![spin.clone(), spin.dual()], U1(0), 1).unwrap();
    let eye: Vec<f64> = (0..32).map(|i| f64::from(i % 16 % 5 == 0)).collect();
    let x = tensor::<B>(&spec, &eye);
    let truncated = x.svd_truncated(1, FluxOn::Right, Truncation::new().max_dim(3)).unwrap();
    assert_eq!(truncated.kept.s.leg().dim(), 3);
    close("error", &[truncated.error], &[5f64.sqrt()], 1e-14);
    let wrong = Truncation::new().min_dim(4).max_dim(3);
    assert!(matches!(x.svd_truncated(1, FluxOn::Right, wrong), Err(StructuredError::Linalg(_))));
}

/// A loss of `U S Vᴴ` of the leading triplets, which depends on their coupling to the discarded ones.
fn truncated<B: Operations>(x: &G<B>) -> Tensor<B, 1> {
    let kept = x.svd_truncated(2, FluxOn::Left, Truncation::new().max_dim(3)).unwrap().kept;
    let product = kept.u.scale_columns(&kept.s).unwrap().contract(&kept.vh, &[2], &[0]).unwrap();
    let weights = array::<B>(&Rng::new(4).numbers(product.spec().len()));
    (product.flat() * weights).sum()
}

#[test]
fn truncated_factors_have_gradients() {
    for flux in [0, 1] {
        slope::<AD>(&spec(flux), truncated::<AD>, 1e-7);
        slope::<Autodiff<Flex>>(&spec(flux), truncated::<Autodiff<Flex>>, 1e-7);
        #[cfg(feature = "ndarray")]
        slope::<Autodiff<burn_ndarray::NdArray>>(&spec(flux), truncated, 1e-7);
    }
}

fn hermitian<B: Operations>(x: &G<B>) -> G<B> {
    x.add(&x.dagger().unwrap()).unwrap()
}

fn square() -> Spec<U1> {
    let leg = Leg::new([(U1(-1), 2), (U1(0), 3), (U1(3), 2)], Direction::Out).unwrap();
    Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap()
}

#[test]
fn eigenvalues_and_functions_of_maps() {
    let spec = square();
    let h = hermitian(&tensor::<B>(&spec, &Rng::new(6).numbers(spec.len())));
    let Eigh { w, v } = h.eigh().unwrap();
    let dense = linalg::eigvalsh(h.to_tensor::<2>().unwrap()).unwrap();
    close("eigenvalues", &sorted(w.values().tensor().unwrap()), &sorted(dense), 1e-12);
    let product = v.scale_columns(&w).unwrap().contract(&v.dagger().unwrap(), &[1], &[0]).unwrap();
    close("V w Vᴴ", &numbers(product.flat()), &numbers(h.flat()), 1e-12);
    let exp = h.exp().unwrap().to_tensor::<2>().unwrap();
    let want = linalg::expm(h.to_tensor::<2>().unwrap()).unwrap();
    close("exp", &numbers(exp), &numbers(want), 1e-12);
    slope::<AD>(
        &spec,
        |x| {
            let values: Tensor<AD, 1> = hermitian(x).eigh().unwrap().w.values().tensor().unwrap();
            (values * array::<AD>(&[1.0, -2.0, 0.5, 3.0, 1.0, -1.0, 2.0])).sum()
        },
        1e-7,
    );
}

#[test]
fn maps_are_checked_before_any_work() {
    let (lone, h) = (spec(0), square());
    let x = tensor::<B>(&lone, &vec![0.0; lone.len()]);
    assert!(matches!(x.eigh(), Err(StructuredError::Rank { .. })));
    assert!(matches!(x.svd(4, FluxOn::Left), Err(StructuredError::Rows { .. })));
    let charged = Spec::new(h.legs().to_vec(), U1(1), 1).unwrap();
    let x = tensor::<B>(&charged, &vec![0.0; charged.len()]);
    assert!(matches!(x.exp(), Err(StructuredError::Flux { .. })));
    // NaN is an error of the factorisation.
    let x = tensor::<B>(&h, &vec![f64::NAN; h.len()]);
    assert!(matches!(x.svd(1, FluxOn::Left), Err(StructuredError::Linalg(_))));
}
