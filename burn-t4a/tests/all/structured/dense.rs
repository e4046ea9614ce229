//! Operations on Burn tensors against dense einsums of Burn tensors.

use burn_autodiff::Autodiff;
use burn_backend::{DType, Distribution};
use burn_t4a::ext::Complex;
use burn_t4a::ext::einsum::einsum as dense_einsum;
use burn_t4a::ext::structured::*;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::Tensor;

use super::cases::{Rng, close, numbers};

type B = BurnT4a;
type AD = Autodiff<BurnT4a>;
type G<B> = GradedTensor<B, U1>;

fn leg(rng: &mut Rng) -> Leg<U1> {
    // Charges of fermions, used here without their signs.
    let leg = rng.leg();
    let sectors = leg.sectors().iter().map(|&(FermionNumber(n), dim)| (U1(n), dim));
    Leg::new(sectors, leg.direction()).unwrap()
}

fn random(legs: &[&Leg<U1>], flux: i32, rows: usize) -> G<B> {
    let legs = legs.iter().map(|&leg| leg.clone()).collect();
    let spec = Spec::new(legs, U1(flux), rows).unwrap();
    let device = T4aDevice;
    G::random(&spec, Distribution::Normal(0.0, 1.0), (&device, DType::F64)).unwrap()
}

#[test]
fn contractions_are_dense_einsums() {
    for seed in 1..12 {
        let mut rng = Rng::new(seed);
        let [a, b, c, d] = std::array::from_fn(|_| leg(&mut rng));
        let x = random(&[&a, &b, &c], 1, 1);
        let y = random(&[&c.dual(), &d, &b.dual()], 0, 2);
        let z = x.contract(&y, &[1, 2], &[2, 0]).unwrap();
        let [dx, dy]: [Tensor<B, 3>; 2] = [&x, &y].map(|t| t.to_tensor().unwrap());
        let want: Tensor<B, 2> = dense_einsum("abc,cdb->ad", [&dx, &dy]).unwrap();
        close("contract", &numbers(z.to_tensor::<2>().unwrap()), &numbers(want.clone()), 1e-12);
        let network: G<B> = einsum("abc,cdb->da", &[&x, &y]).unwrap();
        let network = network.to_tensor::<2>().unwrap();
        close("einsum", &numbers(network), &numbers(want.transpose()), 1e-12);
        // Round trip through the dense array, which is zero outside of the allowed blocks.
        let back = G::<B>::from_tensor(x.spec(), dx.clone(), Forbidden::Error(0.0)).unwrap();
        close("from_tensor", &numbers(back.flat()), &numbers(x.flat()), 0.0);
        if dx.shape().num_elements() > x.spec().len() {
            let (off, tolerance) = (dx + 0.5, Forbidden::Error(1e-9));
            let error = G::<B>::from_tensor(x.spec(), off.clone(), tolerance).unwrap_err();
            assert!(matches!(error, StructuredError::FluxViolation { .. }));
            let kept = G::<B>::from_tensor(x.spec(), off, Forbidden::Project).unwrap();
            close("project", &numbers(kept.flat()), &numbers(x.flat() + 0.5), 1e-15);
        }
    }
}

/// Block-sparse and diagonal tensors: the stored entries, an error or a projection for others.
#[test]
fn dense_tensors_become_structured_ones() {
    let dense = Tensor::<B, 2>::from_floats(
        [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]],
        &T4aDevice,
    );
    let exact = Forbidden::Error(0.0);
    let rejected = |error: StructuredError, place: [usize; 2]| match error {
        StructuredError::NotStored { index, value, .. } => {
            assert_eq!((&index[..], value), (&place[..], 2.0))
        }
        error => panic!("{error}"),
    };
    // Blocks of sizes 2 and 1 along both axes; the two diagonal ones are stored.
    let pattern = Pattern::new(vec![vec![2, 1]; 2], vec![vec![0, 0], vec![1, 1]]).unwrap();
    let pattern = std::sync::Arc::new(pattern);
    rejected(
        BlockSparseTensor::<B>::from_tensor(&pattern, dense.clone(), exact).unwrap_err(),
        [0, 2],
    );
    let blocks = BlockSparseTensor::<B>::from_tensor(&pattern, dense.clone(), Forbidden::Project);
    assert_eq!(numbers(blocks.unwrap().flat()), [1.0, 0.0, 0.0, 3.0, 4.0]);
    let classes = Classes { payload: vec![3], classes: vec![0, 0] };
    rejected(DiagTensor::<B>::from_tensor(&classes, dense.clone(), exact).unwrap_err(), [0, 2]);
    let diagonal =
        DiagTensor::<B>::from_tensor(&classes, dense.clone(), Forbidden::Project).unwrap();
    assert_eq!(numbers(diagonal.flat()), [1.0, 3.0, 4.0]);
    let other = Classes { payload: vec![2], classes: vec![0, 0] };
    let error = DiagTensor::<B>::from_tensor(&other, dense, Forbidden::Project).unwrap_err();
    assert!(matches!(error, StructuredError::Shape { .. }), "{error}");
}

#[test]
fn gradients_are_those_of_the_dense_tensor() {
    for seed in 1..6 {
        let mut rng = Rng::new(seed);
        let [a, b, c] = std::array::from_fn(|_| leg(&mut rng));
        let (x, y) = (random(&[&a, &b], 0, 1), random(&[&b.dual(), &c], 0, 1));
        let (tx, ty) =
            (G::<AD>::from_inner(&x).require_grad(), G::<AD>::from_inner(&y).require_grad());
        let z = tx.contract(&ty, &[1], &[0]).unwrap().flat();
        let gradients = (z.clone() * z).sum().backward();
        let own: [Option<G<B>>; 2] = [tx.grad(&gradients), ty.grad(&gradients)];

        let dense = |t: &G<B>| Tensor::<AD, 2>::from_inner(t.to_tensor().unwrap()).require_grad();
        let (dx, dy) = (dense(&x), dense(&y));
        let z = dx.clone().matmul(dy.clone());
        let gradients = (z.clone() * z).sum().backward();
        let want = [dx.grad(&gradients), dy.grad(&gradients)];
        for (own, want) in own.into_iter().zip(want) {
            let (own, want) = (own.unwrap(), want.unwrap());
            // On the support of the tensor; elsewhere the dense gradient is zero.
            close("gradient", &numbers(own.to_tensor::<2>().unwrap()), &numbers(want), 1e-12);
        }
    }
}

#[test]
fn complex_tensors_are_pairs() {
    let mut rng = Rng::new(4);
    let (a, b) = (leg(&mut rng), leg(&mut rng));
    let (re, im) = (random(&[&a, &b], 0, 1), random(&[&a, &b], 0, 1));
    let z = Complex::new(re.flat(), im.flat()).unwrap();
    let x = G::<B>::from_complex(re.spec(), z).unwrap();
    let square = x.contract(&x.dagger().unwrap(), &[1], &[0]).unwrap();
    let dense: Complex<B, 2> = x.to_complex().unwrap();
    let want = dense.clone().matmul(dense.adjoint());
    let own: Complex<B, 2> = square.to_complex().unwrap();
    close("re", &numbers(own.re()), &numbers(want.re()), 1e-12);
    close("im", &numbers(own.im()), &numbers(want.im()), 1e-12);
    assert!(matches!(x.to_tensor::<2>(), Err(StructuredError::Invalid { .. })));

    // The gradient of Σ |z|² is 2z.
    let x = G::<AD>::from_inner(&x).require_grad();
    let norm: Tensor<AD, 1> = x.norm_squared().unwrap().tensor().unwrap();
    let grad = x.grad(&norm.backward()).unwrap().complex_flat();
    close("2 Re z", &numbers(grad.re()), &numbers(re.flat() * 2.0), 1e-14);
    close("2 Im z", &numbers(grad.im()), &numbers(im.flat() * 2.0), 1e-14);
}

#[test]
fn pictures_are_printed() {
    let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out).unwrap();
    let spec = Spec::new(vec![spin.clone(), spin.dual()], U1(0), 1).unwrap();
    let x = G::<B>::zeros(&spec, &Default::default()).unwrap();
    let text = x.to_string();
    for line in
        ["charge 0: out {-1: 1, 1: 1} | in {-1: 1, 1: 1}", "│█·│", "│·█│", "2 of 4 entries, 50.0 %"]
    {
        assert!(text.contains(line), "{text}");
    }
}
