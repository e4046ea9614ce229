//! Einsum on tensors: expressions, operands, complex numbers, gradients, slices, threads.

use burn_tensor::{DType, TensorData};

use super::arrays::{f64s, positive as numbers};
use super::ext::einsum::{
    ArraySemiring, Einsum, EinsumError, LogSumExp, MaxPlus, Operand, Path, Standard, Subscripts,
    complex_einsum, einsum,
};
use super::ext::{self, ExtError, MismatchError};
use super::{Complex, Tensor, device, semiring};

/// A chain of three 8×8 matrices whose memory limit requires slices.
fn tight_chain() -> Einsum {
    let chain = Einsum::new("ij,jk,kl->il").unwrap();
    let peak = chain.plan(&[&[8usize, 8][..]; 3], 8).unwrap().cost().bytes(8) as usize;
    let tight = chain.memory(peak - 1);
    assert!(!tight.plan(&[&[8usize, 8][..]; 3], 8).unwrap().sliced().is_empty());
    tight
}

#[test]
fn half_precision_runs_on_the_engine() {
    let a = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &device());
    for dtype in [DType::F16, DType::BF16] {
        let a = a.clone().cast(dtype);
        let y: Tensor<2> = semiring::<MaxPlus, _>("ij,jk->ik", [&a, &a]).unwrap();
        assert_eq!(y.dtype(), dtype);
        assert_eq!(y.into_data().iter::<f32>().collect::<Vec<_>>(), [5.0, 6.0, 7.0, 8.0]);
    }
}

#[test]
fn expressions_of_every_kind() {
    let a = f64s(&numbers(6, 1), [2, 3]);
    let b = f64s(&numbers(6, 2), [3, 2]);
    let v = f64s(&numbers(2, 3), [2]);
    let expected: Tensor<1> =
        a.clone().matmul(b.clone()).matmul(v.clone().reshape([2, 1])).squeeze_dim(1);
    let same = |y: Tensor<1>| {
        let (y, e) = (y.into_data(), expected.to_data());
        y.assert_approx_eq::<f64>(&e, burn_tensor::Tolerance::relative(1e-12));
    };
    same(einsum("ij,jk,k", (&a, &b, &v)).unwrap());
    let labels = Subscripts::new([vec![10, 20], vec![20, 30], vec![30]], [10]);
    same(einsum(labels, (a.clone(), &b, &v)).unwrap());
    let guided = Einsum::new("ij,jk,k->i").unwrap().path(Path::from([[1, 2], [0, 1]]));
    same(einsum(&guided, vec![Operand::from(&a), (&b).into(), (&v).into()]).unwrap());
    // A list whose length is known at run time; all operands have one rank.
    let pair = [a.clone(), b.clone()];
    let product: Tensor<2> = einsum("ij,jk->ik", &pair[..]).unwrap();
    same(einsum("ik,k->i", (&product, &v)).unwrap());
    let listed: Tensor<2> = einsum("ij,jk->ik", pair.to_vec()).unwrap();
    assert_eq!(listed.to_data(), product.to_data());
    // A memory limit that requires slices.
    let peak = guided.plan(&[&[2, 3], &[3, 2], &[2]], 8).unwrap().cost().bytes(8) as usize;
    same(einsum(guided.memory(peak - 1), (&a, &b, &v)).unwrap());
}

#[test]
fn mistakes_are_typed_errors() {
    let a = f64s(&numbers(6, 1), [2, 3]);
    let v = f64s(&numbers(2, 1), [2]);
    let of = |text: &str| {
        let result: ext::Result<Tensor<2>> = einsum(text, [&a, &a]);
        result.unwrap_err()
    };
    let wrong = |text: &str| match of(text) {
        ExtError::Einsum(error) => error,
        other => panic!("{other}"),
    };
    assert!(matches!(wrong("ij,jk->ik"), EinsumError::SizeConflict { .. }));
    assert!(matches!(wrong("ij,j;->ik"), EinsumError::UnexpectedCharacter { position: 4, .. }));
    assert!(matches!(wrong("ij,ij->iq"), EinsumError::UnknownOutputLabel { .. }));
    assert!(matches!(wrong("ijk,ij->ij"), EinsumError::Rank { operand: 0, .. }));
    assert!(matches!(wrong("ij->ij"), EinsumError::OperandCount { expected: 1, given: 2 }));
    let rank = MismatchError::ResultRank { op: "einsum", required: 1, given: 2 };
    assert_eq!(of("ij,ij->i"), ExtError::Mismatch(rank.clone()));
    assert_eq!(of("ij,ij->"), ExtError::Mismatch(rank));
    let none: ext::Result<Tensor<1>> = einsum("i->i", Vec::<Tensor<1>>::new());
    let none = none.unwrap_err();
    assert!(matches!(none, ExtError::Einsum(EinsumError::OperandCount { expected: 1, given: 0 })));
    let mixed: ext::Result<Tensor<1>> = einsum("ij,i->j", (&a, v.clone().cast(DType::F32)));
    let (first, dtype) = (DType::F64, DType::F32);
    let expected = MismatchError::DType { op: "einsum", first, argument: 1, dtype };
    assert_eq!(mixed.unwrap_err(), ExtError::Mismatch(expected));
}

#[test]
fn complex_numbers_and_their_gradients() {
    let part = |seed: u64, shape: [usize; 2]| {
        f64s(&numbers(shape[0] * shape[1], seed), shape).require_grad()
    };
    let (ar, ai, br, bi) = (part(1, [2, 3]), part(2, [2, 3]), part(3, [3, 2]), part(4, [3, 2]));
    let a = Complex::new(ar.clone(), ai.clone()).unwrap();
    let b = Complex::new(br.clone(), bi.clone()).unwrap();
    let close = |a: &Tensor<2>, b: &Tensor<2>| {
        a.to_data().assert_approx_eq::<f64>(&b.to_data(), burn_tensor::Tolerance::relative(1e-12));
    };
    let product: Complex<2> = complex_einsum("ij,jk->ik", (&a, &b)).unwrap();
    let expected = a.clone().matmul(b.clone());
    close(&product.re(), &expected.re());
    close(&product.im(), &expected.im());
    // L = Σ |A B Ā|²; gradients against those of the real network.
    let loss = |abc: Complex<2>| abc.abs_squared().sum();
    let ours: Complex<2> = complex_einsum("ij,jk,kl->il", [&a, &b, &a.clone().conj()]).unwrap();
    let theirs = expected.matmul(a.conj());
    let (ours, theirs) = (loss(ours).backward(), loss(theirs).backward());
    for x in [ar, ai, br, bi] {
        let (g, e) = (x.grad(&ours).unwrap().into_data(), x.grad(&theirs).unwrap().into_data());
        g.assert_approx_eq::<f64>(&e, burn_tensor::Tolerance::relative(1e-10));
    }
}

/// f(y) ≥ f(x) + ⟨g, y − x⟩ at points with many ties, and one unit of cotangent per element goes
/// to one element of each operand.
#[test]
fn gradients_at_ties_are_subgradients() {
    let ties = |seed: u64| numbers(9, seed).iter().map(|x| x.round()).collect::<Vec<f64>>();
    let f = |a: &[f64], b: &[f64]| -> (f64, Vec<f64>, Vec<f64>) {
        let (a, b) = (f64s(a, [3, 3]).require_grad(), f64s(b, [3, 3]).require_grad());
        let y: Tensor<1> = semiring::<MaxPlus, _>("ij,jk->", [&a, &b]).unwrap();
        let grads = y.backward();
        let grad = |x: &Tensor<2>| x.grad(&grads).unwrap().into_data().iter().collect();
        (y.into_data().iter::<f64>().sum(), grad(&a), grad(&b))
    };
    for seed in 0..20 {
        let (a, b) = (ties(seed), ties(seed + 100));
        let (fx, ga, gb) = f(&a, &b);
        assert_eq!((ga.iter().sum::<f64>(), gb.iter().sum::<f64>()), (1.0, 1.0));
        let (c, d) = (numbers(9, seed + 200), numbers(9, seed + 300));
        let slope = |g: &[f64], x: &[f64], y: &[f64]| -> f64 {
            g.iter().zip(x.iter().zip(y)).map(|(g, (x, y))| g * (y - x)).sum()
        };
        assert!(f(&c, &d).0 >= fx + slope(&ga, &a, &c) + slope(&gb, &b, &d) - 1e-12);
    }
}

#[test]
fn one_tensor_twice_and_constants_beside_it() {
    let a = f64s(&[1.0, 2.0, 3.0, 4.0], [2, 2]).require_grad();
    let c = f64s(&[1.0, 10.0], [2]);
    let y: Tensor<1> = einsum("ij,jk,k->", (&a, &a, &c)).unwrap();
    let grads = y.backward();
    // L = 1ᵀ A A c: ∂L/∂A = 1 (A c)ᵀ + (Aᵀ 1) cᵀ
    let g: Vec<f64> = a.grad(&grads).unwrap().into_data().iter().collect();
    assert_eq!(g, [21.0 + 4.0, 43.0 + 40.0, 21.0 + 6.0, 43.0 + 60.0]);
}

#[test]
fn empty_axes() {
    let a = f64s(&[], [2, 0]).require_grad();
    let b = f64s(&[], [0, 3]).require_grad();
    let y: Tensor<2> = einsum("ij,jk->ik", [&a, &b]).unwrap();
    assert_eq!(y.to_data(), TensorData::zeros::<f64, _>([2, 3]));
    let grads = y.sum().backward();
    assert_eq!(a.grad(&grads).unwrap().dims(), [2, 0]);
    let y: Tensor<2> = semiring::<MaxPlus, _>("ij,jk->ik", [&a, &b]).unwrap();
    assert!(y.clone().into_data().iter::<f64>().all(|x| x == f64::NEG_INFINITY));
    let grads = y.sum().backward();
    assert_eq!(b.grad(&grads).unwrap().dims(), [0, 3]);
}

#[test]
fn sliced_plans_have_the_gradients_of_whole_ones() {
    fn check<S: ArraySemiring>() {
        let gradients = |chain: Einsum| {
            let x: Vec<Tensor<2>> =
                (0..3).map(|seed| f64s(&numbers(64, seed), [8, 8]).require_grad()).collect();
            let weights = f64s(&numbers(64, 9), [8, 8]);
            let y: Tensor<2> = semiring::<S, _>(chain, [&x[0], &x[1], &x[2]]).unwrap();
            let gradients = (y.clone() * weights).sum().backward();
            let of = |x: &Tensor<2>| x.grad(&gradients).unwrap().into_data();
            (y.into_data(), x.iter().map(of).collect::<Vec<_>>())
        };
        let (whole, expected) = gradients(Einsum::new("ij,jk,kl->il").unwrap());
        let (sliced, given) = gradients(tight_chain());
        let close = burn_tensor::Tolerance::relative(1e-12);
        sliced.assert_approx_eq::<f64>(&whole, close);
        given.iter().zip(&expected).for_each(|(g, e)| g.assert_approx_eq::<f64>(e, close));
    }
    check::<Standard>();
    check::<MaxPlus>();
    check::<LogSumExp>();
}

#[test]
fn threads_share_plans_and_tapes() {
    let gradient = || -> Vec<f64> {
        let a = f64s(&numbers(12, 1), [3, 4]).require_grad();
        let b = f64s(&numbers(12, 2), [4, 3]);
        let y: Tensor<1> = semiring::<LogSumExp, _>("ij,jk,il->", [&a, &b, &a]).unwrap();
        let grads = y.backward();
        a.grad(&grads).unwrap().into_data().iter().collect()
    };
    let expected = gradient();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..25).map(|_| gradient()).collect::<Vec<_>>()))
            .collect();
        for thread in threads {
            assert!(thread.join().unwrap().iter().all(|g| *g == expected));
        }
    });
}
