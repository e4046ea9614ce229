//! Diagonal and block-sparse tensors against dense ones, over semirings.

use std::sync::Arc;

use t4a_diff::{Array, Dual, Eager, check};
use t4a_einsum::{Einsum, FloatSemiring};
use t4a_structured::{BlockSparseTensor, DiagTensor, Pattern, StructuredError, diag_einsum};
use t4a_tensor::AnyTensor;

use crate::oracle::{Rng, close, numbers};

fn noise(shape: &[usize], seed: u64) -> Eager {
    check::noise(&check::array(shape, |_| 0.0), seed)
}

fn dense(semiring: FloatSemiring, x: &DiagTensor) -> AnyTensor {
    x.to_dense(semiring).unwrap().into_tensor().unwrap()
}

/// The dense einsum over (+, ×) or (max, +), term by term.
fn naive(semiring: FloatSemiring, text: &str, operands: &[&AnyTensor]) -> AnyTensor {
    let einsum = Einsum::new(text).unwrap();
    match semiring {
        FloatSemiring::Standard => einsum.contract_any(operands).unwrap(),
        _ => {
            let typed: Vec<_> = operands.iter().map(|x| x.typed::<f64>().unwrap()).collect();
            einsum.contract::<t4a_algebra::MaxPlus, f64>(&typed).unwrap().into()
        }
    }
}

#[test]
fn trap_24_einsums_of_payloads_are_einsums_of_dense_tensors() {
    let cases = [
        ("ij,jk->ik", vec![vec![0, 0], vec![0, 1]]),
        ("ij,jk->ik", vec![vec![0, 0], vec![0, 0]]),
        ("ij,jk->ijk", vec![vec![0, 0], vec![0, 1]]),
        ("ij,ij->", vec![vec![0, 0], vec![0, 1]]),
        ("ij,ij->", vec![vec![0, 0], vec![0, 0]]),
        ("ij,kl->ijkl", vec![vec![0, 0], vec![0, 0]]),
        ("ijk,kl->lij", vec![vec![0, 1, 0], vec![0, 0]]),
        ("ij->", vec![vec![0, 0]]),
        ("ii->i", vec![vec![0, 0]]),
    ];
    for semiring in [FloatSemiring::Standard, FloatSemiring::MaxPlus] {
        for (text, classes) in &cases {
            let tensors: Vec<DiagTensor> = classes
                .iter()
                .enumerate()
                .map(|(i, classes)| {
                    let rank = classes.iter().max().unwrap() + 1;
                    let payload = noise(&vec![3; rank], 5 + i as u64);
                    DiagTensor::new(payload, classes.clone()).unwrap()
                })
                .collect();
            let operands: Vec<&DiagTensor> = tensors.iter().collect();
            let got = diag_einsum(semiring, text, &operands).unwrap();
            let all: Vec<AnyTensor> = tensors.iter().map(|x| dense(semiring, x)).collect();
            let want = naive(semiring, text, &all.iter().collect::<Vec<_>>());
            let (got, want) = (numbers(&dense(semiring, &got)), numbers(&want));
            for (a, b) in got.iter().zip(&want) {
                assert!(
                    a == b || (a - b).abs() < 1e-12,
                    "{text} over {semiring:?}: {got:?} {want:?}"
                );
            }
        }
    }
    let diag = DiagTensor::from_diag(noise(&[4], 1), 2).unwrap();
    let outer = diag_einsum(FloatSemiring::Standard, "ij,kl->ijkl", &[&diag, &diag]).unwrap();
    assert_eq!((outer.classes(), &outer.payload().shape()[..]), (&[0, 0, 1, 1][..], &[4, 4][..]));
    let turned = outer.permute(&[2, 0, 3, 1]).unwrap();
    assert_eq!(turned.classes(), [0, 1, 0, 1]);
}

#[test]
fn trap_24_the_gradient_of_a_payload_is_the_diagonal_of_the_dense_one() {
    // y = Σ d_ij x_jk w_ki: along e_i of the payload and along the dense E_ii.
    let (d, x, w) = (noise(&[3], 1), noise(&[3, 3], 2), noise(&[3, 3], 3));
    for i in 0..3 {
        let e = check::array(&[3], |k| f64::from(k == i));
        let diag = DiagTensor::from_diag(Dual::new(d.clone(), e), 2).unwrap();
        let constant = |x: &Eager| DiagTensor::dense(Dual::constant(x.clone()));
        let operands = [&diag, &constant(&x), &constant(&w)];
        let y = diag_einsum(FloatSemiring::Standard, "ij,jk,ki->", &operands).unwrap();
        let got = check::elements(&y.payload().clone().into_tangent())[0];
        let product = x.matmul(&w);
        close(&[got], &[check::elements(&product)[4 * i]]);
    }
}

#[test]
fn classes_and_labels_are_checked() {
    let x = noise(&[3], 1);
    assert!(matches!(DiagTensor::new(x.clone(), vec![1, 0]), Err(StructuredError::Invalid { .. })));
    assert!(matches!(DiagTensor::new(x.clone(), vec![0, 1]), Err(StructuredError::Invalid { .. })));
    assert!(DiagTensor::from_diag(x.clone(), 0).is_err());
    let (d, one) = (DiagTensor::from_diag(x, 2).unwrap(), DiagTensor::dense(noise(&[1, 3], 2)));
    for (text, other) in [("ij,jk->ik", &one), ("ij->ij", &d), ("ij,jkl->i", &d), ("ij,jk->iz", &d)]
    {
        assert!(diag_einsum(FloatSemiring::Standard, text, &[&d, other]).is_err(), "{text}");
    }
}

fn pattern(rng: &mut Rng, legs: Vec<Vec<usize>>) -> Arc<Pattern> {
    let mut blocks = vec![vec![]];
    for leg in &legs {
        blocks = blocks
            .iter()
            .flat_map(|b: &Vec<u32>| (0..leg.len()).map(|i| [&b[..], &[i as u32]].concat()))
            .collect();
    }
    blocks.retain(|_| rng.below(2) == 0);
    Arc::new(Pattern::new(legs, blocks).unwrap())
}

#[test]
fn block_patterns_contract_as_dense_tensors() {
    let mut rng = Rng::new(3);
    for round in 0..20u64 {
        let [p, q, r, s] = std::array::from_fn(|_| {
            (0..1 + rng.below(3)).map(|_| 1 + rng.below(3)).collect::<Vec<usize>>()
        });
        let a = pattern(&mut rng, vec![p, q.clone(), r.clone()]);
        let b = pattern(&mut rng, vec![r, s, q]);
        let a = BlockSparseTensor::new(a.clone(), noise(&[a.len()], round)).unwrap();
        let b = BlockSparseTensor::new(b.clone(), noise(&[b.len()], 99 + round)).unwrap();
        let c = a.contract(&b, &[1, 2], &[2, 0], FloatSemiring::Standard).unwrap();
        let all = [&a, &b, &c].map(|x| x.to_dense().unwrap().into_tensor().unwrap());
        let want = naive(FloatSemiring::Standard, "aqr,rsq->as", &[&all[0], &all[1]]);
        close(&numbers(&all[2]), &numbers(&want));
        // Over (max, +) blocks that are not there are −∞.
        let m = a.contract(&b, &[1, 2], &[2, 0], FloatSemiring::MaxPlus).unwrap();
        assert_eq!(m.pattern(), c.pattern());
        let fill = |x: &BlockSparseTensor| {
            let ones = BlockSparseTensor::new(x.pattern().clone(), x.data().scale(0.0).shift(1.0));
            let there = check::elements(&ones.unwrap().to_dense().unwrap());
            let dense = x.to_dense().unwrap();
            let values = check::elements(&dense);
            let with = |i: usize| if there[i] == 1.0 { values[i] } else { f64::NEG_INFINITY };
            check::array(&dense.shape(), with).into_tensor().unwrap()
        };
        let want = naive(FloatSemiring::MaxPlus, "aqr,rsq->as", &[&fill(&a), &fill(&b)]);
        assert_eq!(numbers(&fill(&m)), numbers(&want));
    }
}

#[test]
fn patterns_are_checked() {
    let new = |blocks: &[&[u32]]| {
        Pattern::new(vec![vec![1, 2]; 2], blocks.iter().map(|b| b.to_vec()).collect())
    };
    assert!(new(&[&[0, 0], &[1, 1]]).is_ok());
    for bad in [&[&[1u32, 0][..], &[0, 1]][..], &[&[0, 0], &[0, 0]], &[&[0, 2]], &[&[0]]] {
        assert!(matches!(new(bad), Err(StructuredError::Invalid { .. })));
    }
    assert!(Pattern::new(vec![vec![0]], vec![]).is_err());
    let x = BlockSparseTensor::new(Arc::new(new(&[&[0, 1]]).unwrap()), noise(&[2], 1)).unwrap();
    let y = Pattern::new(vec![vec![2, 1]; 2], vec![]).unwrap();
    let y = BlockSparseTensor::new(Arc::new(y), noise(&[0], 1)).unwrap();
    let error = x.contract(&y, &[1], &[0], FloatSemiring::Standard).unwrap_err();
    assert!(matches!(error, StructuredError::LegMismatch { axis: 1, other: 0, .. }));
}
