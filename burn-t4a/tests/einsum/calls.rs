//! Expressions, operands, dtypes, mistakes.

use burn_autodiff::Autodiff;
use burn_t4a::ext::einsum::{
    Einsum, EinsumError, MaxPlus, Operand, Path, Subscripts, complex_einsum, einsum,
    semiring_einsum,
};
use burn_t4a::ext::{Complex, ExtError, MismatchError};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::{DType, Tensor};

use crate::cases::{Vector, f64s, numbers, tight_chain};

#[test]
fn half_precision_runs_on_the_engine() {
    let a = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
    for dtype in [DType::F16, DType::BF16] {
        let a = a.clone().cast(dtype);
        let y: Tensor<BurnT4a, 2> =
            semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&a, &a]).unwrap();
        assert_eq!(y.dtype(), dtype);
        assert_eq!(y.into_data().iter::<f32>().collect::<Vec<_>>(), [5.0, 6.0, 7.0, 8.0]);
    }
}

#[test]
fn expressions_of_every_kind() {
    let a = f64s::<BurnT4a, 2>(&numbers(6, 1), [2, 3]);
    let b = f64s::<BurnT4a, 2>(&numbers(6, 2), [3, 2]);
    let v = f64s::<BurnT4a, 1>(&numbers(2, 3), [2]);
    let expected: Vector<BurnT4a> =
        a.clone().matmul(b.clone()).matmul(v.clone().reshape([2, 1])).squeeze_dim(1);
    let same = |y: Vector<BurnT4a>| {
        let (y, e) = (y.into_data(), expected.to_data());
        y.assert_approx_eq::<f64>(&e, burn_tensor::Tolerance::relative(1e-12));
    };
    same(einsum("ij,jk,k", (&a, &b, &v)).unwrap());
    let labels = Subscripts::new([vec![10, 20], vec![20, 30], vec![30]], [10]);
    same(einsum(labels, (a.clone(), &b, &v)).unwrap());
    let guided = Einsum::new("ij,jk,k->i").unwrap().path(Path::from([[1, 2], [0, 1]]));
    same(einsum(&guided, vec![Operand::from(&a), (&b).into(), (&v).into()]).unwrap());
    // Lists whose length is known at run time: one rank each.
    let pair = [a.clone(), b.clone()];
    let product: Tensor<BurnT4a, 2> = einsum("ij,jk->ik", &pair[..]).unwrap();
    same(einsum("ik,k->i", (&product, &v)).unwrap());
    let listed: Tensor<BurnT4a, 2> = einsum("ij,jk->ik", pair.to_vec()).unwrap();
    assert_eq!(listed.to_data(), product.to_data());
    // A budget that forces slices.
    let peak = guided.plan(&[&[2, 3], &[3, 2], &[2]], 8).unwrap().cost().bytes(8) as usize;
    same(einsum(guided.memory(peak - 1), (&a, &b, &v)).unwrap());
}

#[test]
fn mistakes_are_typed_errors() {
    type B = BurnT4a;
    let a = f64s::<B, 2>(&numbers(6, 1), [2, 3]);
    let v = f64s::<B, 1>(&numbers(2, 1), [2]);
    let of = |text: &str| einsum::<B, 2>(text, [&a, &a]).unwrap_err();
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
    let none = einsum::<B, 1>("i->i", Vec::<Operand<B>>::new()).unwrap_err();
    assert!(matches!(none, ExtError::Einsum(EinsumError::OperandCount { expected: 1, given: 0 })));
    let mixed = einsum::<B, 1>("ij,i->j", (&a, v.clone().cast(DType::F32))).unwrap_err();
    let (first, dtype) = (DType::F64, DType::F32);
    let expected = MismatchError::DType { op: "einsum", first, argument: 1, dtype };
    assert_eq!(mixed, ExtError::Mismatch(expected));
    // Where every step is a node, all intermediates are kept: no slices.
    type Twice = Autodiff<Autodiff<B>>;
    let x = f64s::<Twice, 2>(&numbers(64, 1), [8, 8]).require_grad();
    let sliced = einsum::<_, 2>(tight_chain(), [&x, &x, &x]);
    assert!(matches!(sliced, Err(ExtError::Einsum(EinsumError::NotSliced { .. }))));
    let inner = x.inner();
    assert!(einsum::<_, 2>(tight_chain(), [&inner, &inner, &inner]).is_ok());
}

#[test]
fn complex_numbers_and_their_gradients() {
    type AD = Autodiff<BurnT4a>;
    let part = |seed: u64, shape: [usize; 2]| {
        f64s::<AD, 2>(&numbers(shape[0] * shape[1], seed), shape).require_grad()
    };
    let (ar, ai, br, bi) = (part(1, [2, 3]), part(2, [2, 3]), part(3, [3, 2]), part(4, [3, 2]));
    let a = Complex::new(ar.clone(), ai.clone()).unwrap();
    let b = Complex::new(br.clone(), bi.clone()).unwrap();
    let close = |a: &Tensor<AD, 2>, b: &Tensor<AD, 2>| {
        a.to_data().assert_approx_eq::<f64>(&b.to_data(), burn_tensor::Tolerance::relative(1e-12));
    };
    let product: Complex<AD, 2> = complex_einsum("ij,jk->ik", (&a, &b)).unwrap();
    let expected = a.clone().matmul(b.clone());
    close(&product.re(), &expected.re());
    close(&product.im(), &expected.im());
    // L = Σ |A B Ā|²; gradients against those of the real network.
    let loss = |abc: Complex<AD, 2>| abc.abs_squared().sum();
    let ours: Complex<AD, 2> = complex_einsum("ij,jk,kl->il", [&a, &b, &a.clone().conj()]).unwrap();
    let theirs = expected.matmul(a.conj());
    let (ours, theirs) = (loss(ours).backward(), loss(theirs).backward());
    for x in [ar, ai, br, bi] {
        let (g, e) = (x.grad(&ours).unwrap().into_data(), x.grad(&theirs).unwrap().into_data());
        g.assert_approx_eq::<f64>(&e, burn_tensor::Tolerance::relative(1e-10));
    }
}
