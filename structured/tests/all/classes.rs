//! Diagonal and block-sparse tensors against dense ones, over several semirings.

use std::sync::Arc;

use t4a_diff::{Array, Dual, Eager, check};
use t4a_einsum::{Einsum, FloatSemiring};
use t4a_linalg::LinalgError;
use t4a_structured::{
    BlockSparseTensor, Complex, DiagTensor, Pattern, StructuredError, diag_einsum,
    diag_einsum_complex,
};
use t4a_tensor::{AnyTensor, DType};

use crate::oracle::{Rng, close, numbers};

fn noise(shape: &[usize], seed: u64) -> Eager {
    check::noise(&check::array(shape, |_| 0.0), seed)
}

fn dense(semiring: FloatSemiring, x: &DiagTensor) -> AnyTensor {
    x.to_dense(semiring).unwrap().into_tensor().unwrap()
}

/// Dense einsum over (+, ×) or (max, +), by explicit loops.
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
    assert_eq!((outer.classes(), outer.sizes()), (&[0, 0, 1, 1][..], &[4, 4][..]));
    let turned = outer.permute(&[2, 0, 3, 1]).unwrap();
    assert_eq!(turned.classes(), [0, 1, 0, 1]);
}

#[test]
fn trap_24_the_gradient_of_a_payload_is_the_diagonal_of_the_dense_one() {
    // y = Σ d_ij x_jk w_ki: derivative along e_i of the payload and along the dense E_ii.
    let (d, x, w) = (noise(&[3], 1), noise(&[3, 3], 2), noise(&[3, 3], 3));
    for i in 0..3 {
        let e = check::array(&[3], |k| f64::from(k == i));
        let diag = DiagTensor::from_diag(Dual::new(d.clone(), e), 2).unwrap();
        let constant = |x: &Eager| DiagTensor::dense(Dual::constant(x.clone()));
        let operands = [&diag, &constant(&x), &constant(&w)];
        let y = diag_einsum(FloatSemiring::Standard, "ij,jk,ki->", &operands).unwrap();
        let got = check::elements(&y.payload().into_tangent())[0];
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
        // Over (max, +) entries outside of the stored blocks are −∞.
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
    for bad in [&[&[0u32, 2][..]][..], &[&[0]]] {
        assert!(matches!(new(bad), Err(StructuredError::Invalid { .. })));
    }
    let (op, block) = ("block pattern", vec![0, 1]);
    let unsorted = StructuredError::UnsortedBlocks { op, block: block.clone() };
    assert_eq!(new(&[&[1, 0], &[0, 1]]), Err(unsorted));
    assert_eq!(new(&[&[0, 1], &[0, 1]]), Err(StructuredError::DuplicateBlock { op, block }));
    assert!(Pattern::new(vec![vec![0]], vec![]).is_err());
    let x = BlockSparseTensor::new(Arc::new(new(&[&[0, 1]]).unwrap()), noise(&[2], 1)).unwrap();
    let y = Pattern::new(vec![vec![2, 1]; 2], vec![]).unwrap();
    let y = BlockSparseTensor::new(Arc::new(y), noise(&[0], 1)).unwrap();
    let error = x.contract(&y, &[1], &[0], FloatSemiring::Standard).unwrap_err();
    assert!(matches!(error, StructuredError::LegMismatch { axis: 1, other: 0, .. }));
}

/// `re` and `im` of `(a + ib) (c + id)` by four einsums.
fn product(text: &str, x: [&AnyTensor; 2], y: [&AnyTensor; 2]) -> [Vec<f64>; 2] {
    let run = |x, y| numbers(&naive(FloatSemiring::Standard, text, &[x, y]));
    let both = |a: Vec<f64>, b: Vec<f64>, sign: f64| -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a + sign * b).collect()
    };
    [both(run(x[0], y[0]), run(x[1], y[1]), -1.0), both(run(x[0], y[1]), run(x[1], y[0]), 1.0)]
}

#[test]
fn complex_blocks_are_pairs() {
    let mut rng = Rng::new(5);
    let legs = vec![vec![2, 1, 3], vec![1, 2], vec![2, 2]];
    let a = pattern(&mut rng, legs.clone());
    let b = pattern(&mut rng, legs.into_iter().rev().collect());
    let of = |pattern: &Arc<Pattern>, seed| {
        let part =
            |seed| BlockSparseTensor::new(pattern.clone(), noise(&[pattern.len()], seed)).unwrap();
        Complex::<BlockSparseTensor>::new(part(seed), part(seed + 1)).unwrap()
    };
    let (x, y) = (of(&a, 1), of(&b, 3));
    let tensors =
        |x: &Complex<BlockSparseTensor>| x.to_dense().unwrap().map(|x| x.into_tensor().unwrap());
    let (dx, dy) = (tensors(&x), tensors(&y));
    let got = tensors(&x.contract(&y, &[1, 2], &[1, 0]).unwrap());
    let want = product("ijk,kjl->il", dx.each_ref(), dy.each_ref());
    for (got, want) in got.iter().zip(&want) {
        close(&numbers(got), want);
    }
    let turned = tensors(&x.permute(&[2, 0, 1]).unwrap());
    let want = naive(FloatSemiring::Standard, "ijk->kij", &[&dx[1]]);
    close(&numbers(&turned[1]), &numbers(&want));
    // ⟨x, x⟩ = ‖x‖², and conjugation.
    let one = |x: &Eager| check::elements(x)[0];
    let [re, im] = x.inner(&x).unwrap();
    let norm = one(&x.norm().unwrap());
    assert!((one(&re) - norm * norm).abs() < 1e-12 && one(&im).abs() < 1e-12);
    let [re, im] = x.inner(&x.conj()).unwrap();
    let sum = x.add(&x.conj()).unwrap();
    assert!(check::elements(sum.im().data()).iter().all(|&x| x == 0.0));
    let square = |x: &AnyTensor| numbers(x).iter().map(|x| x * x).sum::<f64>();
    let cross: f64 = numbers(&dx[0]).iter().zip(numbers(&dx[1])).map(|(a, b)| a * b).sum();
    assert!((one(&re) - (square(&dx[0]) - square(&dx[1]))).abs() < 1e-12);
    assert!((one(&im) + 2.0 * cross).abs() < 1e-12);
    assert!(Complex::<BlockSparseTensor>::new(x.re().clone(), y.im().clone()).is_err());
}

#[test]
fn complex_diagonals_are_pairs() {
    let of = |classes: &[usize], seed| {
        let rank = classes.iter().max().unwrap() + 1;
        let part = |seed| DiagTensor::new(noise(&vec![3; rank], seed), classes.to_vec()).unwrap();
        Complex::<DiagTensor>::new(part(seed), part(seed + 1)).unwrap()
    };
    let tensors = |x: &Complex<DiagTensor>| x.to_dense().unwrap().map(|x| x.into_tensor().unwrap());
    let (x, y, z) = (of(&[0, 0], 1), of(&[0, 1], 3), of(&[0, 0], 5));
    let got = diag_einsum_complex("ij,jk->ik", &[&x, &y]).unwrap();
    let want = product("ij,jk->ik", tensors(&x).each_ref(), tensors(&y).each_ref());
    for (got, want) in tensors(&got).iter().zip(&want) {
        close(&numbers(got), want);
    }
    // An einsum of three operands equals two successive ones, and the product of diagonals is diagonal.
    let all = diag_einsum_complex("ij,jk,kl->il", &[&x, &z, &x.conj()]).unwrap();
    assert_eq!(all.re().classes(), [0, 0]);
    let first = diag_einsum_complex("ij,jk->ik", &[&x, &z]).unwrap();
    let want = diag_einsum_complex("ij,jk->ik", &[&first, &x.conj()]).unwrap();
    for (got, want) in tensors(&all).iter().zip(&tensors(&want)) {
        close(&numbers(got), &numbers(want));
    }
    // One operand, summed to a number.
    let trace = diag_einsum_complex("ii->", &[&y]).unwrap();
    let [re, im] = tensors(&y).map(|y| numbers(&naive(FloatSemiring::Standard, "ii->", &[&y])));
    close(&numbers(&tensors(&trace)[0]), &re);
    close(&numbers(&tensors(&trace)[1]), &im);
}

/// Dense product of the tensors.
fn dense_product(text: &str, operands: &[&DiagTensor]) -> Vec<f64> {
    let standard = FloatSemiring::Standard;
    numbers(&dense(standard, &diag_einsum(standard, text, operands).unwrap()))
}

#[test]
fn factorisations_of_diagonal_matrices_are_those_of_dense_ones() {
    // Degenerate values of both signs, and a zero.
    let cases: [&[f64]; 4] = [&[0.5, -2.0, 2.0, 0.0, -0.5, 3.0], &[-1.0], &[], &[0.0, 0.0]];
    for given in cases {
        let n = given.len();
        let d = DiagTensor::from_diag(check::array(&[n], |i| given[i]), 2).unwrap();
        let full = dense(FloatSemiring::Standard, &d);
        let matrix = full.typed::<f64>().unwrap();
        let svd = d.svd().unwrap();
        assert_eq!((svd.u.classes(), svd.s.classes()), (&[0, 1][..], &[0, 0][..]));
        let want = t4a_linalg::svd::svdvals(matrix).unwrap().to_vec().unwrap();
        close(&check::elements(&svd.s.payload()), &want);
        close(&dense_product("ij,jk,kl->il", &[&svd.u, &svd.s, &svd.vh]), &numbers(&full));
        let one = dense(FloatSemiring::Standard, &DiagTensor::identity(n, DType::F64).unwrap());
        for (text, x) in [("ji,jk->ik", &svd.u), ("ij,kj->ik", &svd.vh)] {
            assert_eq!(dense_product(text, &[x, x]), numbers(&one));
        }
        let eigh = d.eigh().unwrap();
        let want = t4a_linalg::eigh::eigvalsh(matrix).unwrap().to_vec().unwrap();
        close(&check::elements(&eigh.w.payload()), &want);
        let left = dense_product("ij,jk->ik", &[&d, &eigh.v]);
        assert_eq!(left, dense_product("ij,jk->ik", &[&eigh.v, &eigh.w]));
        assert_eq!(dense_product("ji,jk->ik", &[&eigh.v, &eigh.v]), numbers(&one));
    }
}

#[test]
fn derivatives_of_factors_of_diagonal_matrices() {
    // Σ wᵢ sᵢ³ and Σ wᵢ λᵢ² against the dense factorisations, along random directions of the diagonal.
    let x = check::array(&[5], |i| [0.7, -2.0, 1.5, -0.3, 0.1][i]);
    let t = noise(&[5], 7);
    let weights = check::array(&[5], |i| i as f64 - 1.5);
    let one = FloatSemiring::Standard;
    let diag = DiagTensor::from_diag(Dual::new(x.clone(), t.clone()), 2).unwrap();
    let w = Dual::constant(weights.clone());
    let sum = |values: Dual<Eager>, power: f64| values.pow(power).mul(&w).sum(0);
    let s = sum(diag.svd().unwrap().s.payload(), 3.0);
    let e = sum(diag.eigh().unwrap().w.payload(), 2.0);
    let of = |h: f64| {
        let full = DiagTensor::from_diag(x.add(&t.scale(h)), 2).unwrap().to_dense(one).unwrap();
        let matrix = full.tensor().unwrap().typed::<f64>().unwrap().clone();
        let dot = |values: Vec<f64>, power: i32| -> f64 {
            values.iter().zip(check::elements(&weights)).map(|(x, w)| w * x.powi(power)).sum()
        };
        let s = t4a_linalg::svd::svdvals(&matrix).unwrap().to_vec().unwrap();
        let e = t4a_linalg::eigh::eigvalsh(&matrix).unwrap().to_vec().unwrap();
        [dot(s, 3), dot(e, 2)]
    };
    let (up, down) = (of(1e-5), of(-1e-5));
    for (k, own) in [s, e].into_iter().enumerate() {
        let got = check::elements(&own.into_tangent())[0];
        let want = (up[k] - down[k]) / 2e-5;
        assert!((got - want).abs() < 1e-7 * want.abs().max(1.0), "{got} {want}");
    }
    // d(U S Vᴴ) = dD, also at zeros and degenerate values of D.
    let d = check::array(&[4], |i| [0.0, -1.0, 1.0, 0.0][i]);
    let t = noise(&[4], 3);
    let svd = DiagTensor::from_diag(Dual::new(d, t.clone()), 2).unwrap().svd().unwrap();
    let back = diag_einsum(one, "ij,jk,kl->il", &[&svd.u, &svd.s, &svd.vh]).unwrap();
    let moved = DiagTensor::from_diag(t, 2).unwrap();
    close(&check::elements(&back.payload().into_tangent()), &numbers(&dense(one, &moved)));
}

#[test]
fn factorisations_ask_for_a_finite_diagonal_matrix() {
    for x in [
        DiagTensor::from_diag(noise(&[3], 1), 1).unwrap(),
        DiagTensor::from_diag(noise(&[3], 1), 3).unwrap(),
        DiagTensor::dense(noise(&[3, 3], 1)),
        DiagTensor::new(noise(&[1], 1), vec![]).unwrap(),
    ] {
        assert!(matches!(x.svd(), Err(StructuredError::Invalid { .. })));
        assert!(matches!(x.eigh(), Err(StructuredError::Invalid { .. })));
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let x = DiagTensor::from_diag(check::array(&[2], |i| [1.0, bad][i]), 2).unwrap();
        for error in [x.svd().map(|_| ()), x.eigh().map(|_| ())] {
            assert!(matches!(error, Err(StructuredError::Linalg(LinalgError::NonFinite { .. }))));
        }
    }
}
