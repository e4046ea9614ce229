//! Truncation policies, isometries, changes of flux, block patterns and printing.

use std::collections::BTreeMap;
use std::sync::Arc;

use t4a_diff::{Array, Eager, check};
use t4a_einsum::FloatSemiring;
use t4a_linalg::svd::Truncation;
use t4a_structured::{
    BlockSparseTensor, BondTruncation, DiagTensor, Direction, FermionNumber, FluxOn, Forbidden,
    GradedTensor, Leg, Pattern, Spec, StructuredError, U1,
};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

use crate::oracle::*;

fn noise(shape: &[usize], seed: u64) -> Eager {
    check::noise(&check::array(shape, |_| 0.0), seed)
}

#[test]
fn trap_13_degenerate_values_stay_together_if_they_are_asked_to() {
    let max = |n| BondTruncation::from(Truncation::new().max_dim(n));
    let (a, b): (&[f64], &[f64]) = (&[2.0, 1.0, 0.5], &[1.0, 0.5, 0.5]);
    assert_eq!(max(2).dims(&[a, b]), [2, 0]);
    assert_eq!(max(2).degeneracy(1e-9).dims(&[a, b]), [1, 0]);
    assert_eq!(max(3).degeneracy(1e-9).dims(&[a, b]), [2, 1]);
    assert_eq!(max(4).degeneracy(1e-9).dims(&[a, b]), [2, 1]);
    assert_eq!(max(6).degeneracy(1e-9).dims(&[a, b]), [3, 3]);
    // All values are degenerate: the limit splits them, since nothing would remain otherwise.
    assert_eq!(max(3).degeneracy(1e-9).dims(&[&[1.0; 8]]), [3]);
    assert_eq!(max(1).min_per_sector(2).dims(&[a, b, &[0.1]]), [2, 2, 1]);
    assert!(max(1).degeneracy(f64::NAN).validate().is_err());
    assert!(max(1).degeneracy(-1.0).validate().is_err());
    // The truncation error is the norm of the discarded values.
    let leg = Leg::new([(U1(0), 3), (U1(1), 2)], Direction::Out).unwrap();
    let x = GradedTensor::identity(&[leg], DType::F64).unwrap();
    let policy = max(1).min_per_sector(1);
    let cut = x.svd_truncated(1, FluxOn::Right, policy).unwrap();
    assert_eq!(cut.kept.s.leg().sectors(), [(U1(0), 1), (U1(1), 1)]);
    close(&[cut.error], &[3f64.sqrt()]);
}

/// Entries of an array in row-major order whose index of an axis is listed.
fn selected(x: &[f64], shape: &[usize], axis: usize, kept: &[usize]) -> Vec<f64> {
    let inner: usize = shape[axis + 1..].iter().product();
    let lines = x.chunks((shape[axis] * inner).max(1));
    let own = lines.flat_map(|line| kept.iter().map(move |&i| &line[i * inner..(i + 1) * inner]));
    own.flatten().copied().collect()
}

#[test]
fn leading_states_of_each_axis() {
    let mut rng = Rng::new(5);
    let mut compared = 0;
    for k in 0..200 {
        let legs = rng.below(4) + 1;
        let legs = rng.legs(legs, &[U1(-1), U1(0), U1(1), U1(2)]);
        let flux = U1(rng.below(3) as i32 - 1);
        let x = rng.tensor(legs, flux, k % 3 == 0);
        for axis in 0..x.spec().legs().len() {
            let (mut dims, mut kept, mut start) = (Vec::new(), Vec::new(), 0);
            for &(_, size) in x.spec().legs()[axis].sectors() {
                dims.push(rng.below(size + 1));
                kept.extend(start..start + dims[dims.len() - 1]);
                start += size;
            }
            let part = x.leading(axis, &dims).unwrap();
            invariant(&part);
            let shape = x.spec().shape();
            for (part, whole) in dense(&part).iter().zip(&dense(&x)) {
                let wanted = selected(&numbers(whole), &shape, axis, &kept);
                assert_eq!(numbers(part), wanted);
                compared += wanted.iter().filter(|&&x| x != 0.0).count();
            }
        }
    }
    assert!(compared > 3000, "{compared} nonzero entries were compared");
}

#[test]
fn isometries() {
    let wide = Leg::new([(U1(0), 4), (U1(1), 3)], Direction::Out).unwrap();
    let thin = Leg::new([(U1(0), 2), (U1(1), 3), (U1(2), 1)], Direction::In).unwrap();
    let spec = |a: &Leg<U1>, b: &Leg<U1>| Spec::new(vec![a.clone(), b.clone()], U1(0), 1).unwrap();
    for complex in [false, true] {
        let (spec, random) = (spec(&wide, &thin), Generator::new(3));
        let v = GradedTensor::isometry(spec, DType::F64, complex, &random).unwrap();
        invariant(&v);
        let one = v.dagger().unwrap().contract(&v, &[1], &[0]).unwrap();
        let legs = one.spec().legs()[..1].to_vec();
        for matrix in one.spec().matrices() {
            let n = matrix.rows;
            let own = one.re().narrow(0, matrix.offset, n * n);
            let want: Vec<f64> = (0..n * n).map(|i| f64::from(i % (n + 1) == 0)).collect();
            close(&check::elements(&own), if matrix.charge == U1(2) { &[0.0] } else { &want });
        }
        assert_eq!(legs[0].dim(), 6);
    }
    let other = spec(&thin.dual(), &wide.dual());
    let error = GradedTensor::isometry(other, DType::F64, false, &Generator::new(3)).unwrap_err();
    assert!(matches!(error, StructuredError::Invalid { op: "isometry", .. }));
}

#[test]
fn charges_that_cannot_change() {
    let leg = Leg::new([0, 1].map(|n| (FermionNumber(n), 1)), Direction::Out).unwrap();
    let x = Rng::new(1).tensor(vec![leg.clone(), leg.dual()], FermionNumber(0), false);
    assert!(matches!(x.drop_charge(), Err(StructuredError::OddParity { .. })));
    let odd = x.change_flux(0, FermionNumber(1)).unwrap_err();
    assert!(matches!(odd, StructuredError::OddParity { .. }));
    assert!(x.change_flux(0, FermionNumber(2)).is_ok());
    assert!(matches!(x.change_flux(2, FermionNumber(2)), Err(StructuredError::Axis { .. })));
    let none = x.coarsen(|FermionNumber(n)| FermionNumber(n * n)).map(|x| x.spec().len());
    assert_eq!(none, Ok(2));
    let leg = Leg::new([1, 2, 3].map(|n| (U1(n), 1)), Direction::Out).unwrap();
    let x = Rng::new(1).tensor(vec![leg.clone(), leg.clone(), leg.dual()], U1(0), false);
    let error = x.coarsen(|U1(n)| U1(n * n)).unwrap_err();
    assert!(matches!(error, StructuredError::Invalid { op: "coarsen", .. }));
}

fn blocks() -> [BlockSparseTensor; 2] {
    let legs = vec![vec![1, 2], vec![2, 1], vec![1, 2]];
    let all = [
        vec![vec![0, 0, 0], vec![0, 1, 1], vec![1, 0, 1]],
        vec![vec![0, 1, 1], vec![1, 0, 0], vec![1, 0, 1], vec![1, 1, 1]],
    ];
    let mut seed = 0;
    all.map(|blocks| {
        seed += 1;
        let pattern = Arc::new(Pattern::new(legs.clone(), blocks).unwrap());
        BlockSparseTensor::random(pattern, DType::F64, &Generator::new(seed)).unwrap()
    })
}

fn all(x: &BlockSparseTensor) -> Vec<f64> {
    check::elements(&x.to_dense().unwrap())
}

#[test]
fn products_of_equal_patterns_share_their_plan() {
    // A block of one element beside a large one, as at the edge of a spectrum.
    let tensor = |seed| {
        let legs = vec![vec![1, 50], vec![1, 50]];
        let pattern = Pattern::new(legs, vec![vec![0, 0], vec![1, 1]]).unwrap();
        let generator = Generator::new(seed);
        BlockSparseTensor::random(pattern.into(), DType::F64, &generator).unwrap()
    };
    let (a, b) = (tensor(1), tensor(2));
    let product = |i, j| a.contract(&b, &[i], &[j], FloatSemiring::Standard).unwrap();
    // Results with the same object as pattern have one plan.
    assert!(Arc::ptr_eq(product(1, 0).pattern(), product(1, 0).pattern()));
    let again = tensor(1).contract(&tensor(2), &[1], &[0], FloatSemiring::Standard).unwrap();
    assert!(Arc::ptr_eq(product(1, 0).pattern(), again.pattern()));
    let dense = [&a, &b].map(|x| x.to_dense().unwrap().into_tensor().unwrap());
    for (text, i, j) in [("ik,kj->ij", 1, 0), ("ki,kj->ij", 0, 0), ("ik,jk->ij", 1, 1)] {
        close(&all(&product(i, j)), &numbers(&einsum(text, &[&dense[0], &dense[1]])));
    }
    let far = a.contract(&b, &[1], &[1 << 32], FloatSemiring::Standard);
    assert!(matches!(far, Err(StructuredError::Axis { .. })));
}

#[test]
fn block_patterns_against_dense_tensors() {
    let [a, b] = blocks();
    let zip = |f: fn(f64, f64) -> f64| -> Vec<f64> {
        all(&a).iter().zip(all(&b)).map(|(&a, b)| f(a, b)).collect()
    };
    close(&all(&a.add(&b).unwrap()), &zip(|a, b| a + b));
    close(&all(&a.add(&a.scale(-1.0)).unwrap()), &vec![0.0; 27]);
    let common = a.mul(&b).unwrap();
    assert_eq!(common.pattern().blocks().len(), 2);
    close(&all(&common), &zip(|a, b| a * b));
    let inner = zip(|a, b| a * b).iter().sum::<f64>();
    close(&check::elements(&a.inner(&b).unwrap()), &[inner]);
    close(&check::elements(&b.inner(&a).unwrap()), &[inner]);
    let square: f64 = all(&a).iter().map(|x| x * x).sum();
    close(&check::elements(&a.norm().unwrap()), &[square.sqrt()]);
    for axes in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
        let want = a.to_dense().unwrap().permute(&axes);
        close(&all(&a.permute(&axes).unwrap()), &check::elements(&want));
    }
    let dense = a.to_dense().unwrap().into_tensor().unwrap();
    close(&all(&a.trace(&[(2, 0)]).unwrap()), &numbers(&einsum("iji->j", &[&dense])));
    assert!(matches!(a.trace(&[(0, 1)]), Err(StructuredError::LegMismatch { .. })));
    assert!(matches!(a.permute(&[0, 0, 1]), Err(StructuredError::Axis { .. })));
    // Round trips through dense arrays and through blocks.
    let dense = a.to_dense().unwrap();
    let back = BlockSparseTensor::from_dense(a.pattern().clone(), &dense, Forbidden::Error(0.0));
    assert_eq!(all(&back.unwrap()), all(&a));
    let sum = a.add(&b).unwrap().to_dense().unwrap();
    let from = |elsewhere| BlockSparseTensor::from_dense(a.pattern().clone(), &sum, elsewhere);
    assert!(matches!(from(Forbidden::Error(1e-9)), Err(StructuredError::NotStored { .. })));
    let kept = from(Forbidden::Project).unwrap();
    assert_eq!(kept.pattern(), a.pattern());
    let each: BTreeMap<Vec<u32>, Eager> =
        a.pattern().blocks().iter().map(|block| (block.clone(), a.block(block).unwrap())).collect();
    let again = BlockSparseTensor::from_blocks(a.pattern().legs().to_vec(), &each).unwrap();
    assert_eq!(all(&again), all(&a));
    let place = &a.pattern().blocks()[1];
    let other = a.with_block(place, &a.block(place).unwrap().scale(2.0)).unwrap();
    let own = b.mul(&a).unwrap();
    close(&all(&own.add(&other).unwrap()), &all(&other.add(&own).unwrap()));
    close(
        &check::elements(&other.block(place).unwrap().scale(0.5)),
        &check::elements(&a.block(place).unwrap()),
    );
    assert!(a.block(&[1, 1, 1]).is_none());
    assert!(a.with_block(&[1, 1, 1], &noise(&[2, 1, 2], 1)).is_err());
    assert!(matches!(a.map_entries(Eager::exp), Err(StructuredError::Invalid { .. })));
    // Over (max, +) entries outside of the stored blocks are −∞.
    let over = check::elements(&a.to_dense_over(FloatSemiring::MaxPlus).unwrap());
    assert_eq!(over.iter().filter(|x| x.is_infinite()).count(), 27 - a.pattern().len());
}

#[test]
fn patterns_come_back_and_corrupted_ones_do_not() {
    let [a, _] = blocks();
    let text = serde_json::to_string(&a).unwrap();
    let back: BlockSparseTensor = serde_json::from_str(&text).unwrap();
    // Decimal numbers are parsed exactly up to the last bit but one.
    close(&all(&back), &all(&a));
    assert_eq!(back.pattern(), a.pattern());
    for (from, to) in [
        ("[0,1,1]", "[0,0,0]"),
        ("[0,1,1]", "[0,7,1]"),
        ("[[1,2],", "[[1,3],"),
        ("{\"f64\":[", "{\"f64\":[1.0,"),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text, "{from} in {text}");
        assert!(serde_json::from_str::<BlockSparseTensor>(&other).is_err(), "{from} → {to}");
    }
    let x = DiagTensor::new(noise(&[3, 2], 1), vec![0, 1, 0]).unwrap();
    let text = serde_json::to_string(&x).unwrap();
    let back: DiagTensor = serde_json::from_str(&text).unwrap();
    close(&check::elements(&back.payload()), &check::elements(&x.payload()));
    assert_eq!(back.classes(), x.classes());
    for (from, to) in [("[0,1,0]", "[1,0,0]"), ("[0,1,0]", "[0,0,0]"), ("[3,2]", "[3,3]")] {
        let other = text.replacen(from, to, 1);
        assert!(serde_json::from_str::<DiagTensor>(&other).is_err(), "{from} → {to}");
    }
}

#[test]
fn diagonals_against_dense_tensors() {
    let standard = FloatSemiring::Standard;
    let all = |x: &DiagTensor| check::elements(&x.to_dense(standard).unwrap());
    for classes in [vec![0, 0], vec![0, 1, 0], vec![0, 0, 1, 1], vec![0]] {
        let rank = classes.iter().max().unwrap() + 1;
        let shape = [3, 2][..rank].to_vec();
        let [a, b] =
            [1, 2].map(|seed| DiagTensor::new(noise(&shape, seed), classes.clone()).unwrap());
        let zip = |f: fn(f64, f64) -> f64| -> Vec<f64> {
            all(&a).iter().zip(all(&b)).map(|(&a, b)| f(a, b)).collect()
        };
        close(&all(&a.add(&b).unwrap()), &zip(|a, b| a + b));
        close(&all(&a.sub(&b).unwrap()), &zip(|a, b| a - b));
        close(&all(&a.mul(&b).unwrap()), &zip(|a, b| a * b));
        assert_eq!(a.mul(&b).unwrap().classes(), classes);
        close(&check::elements(&a.inner(&b).unwrap()), &[zip(|a, b| a * b).iter().sum()]);
        let square: f64 = zip(|a, _| a * a).iter().sum();
        close(&check::elements(&a.norm().unwrap()), &[square.sqrt()]);
        let dense = a.to_dense(standard).unwrap();
        let back = DiagTensor::try_from_dense(&dense, classes.clone(), 0.0).unwrap();
        assert_eq!(check::elements(&back.payload()), check::elements(&a.payload()));
        if classes.len() > rank {
            let full = dense.shift(1.0);
            let error = DiagTensor::try_from_dense(&full, classes.clone(), 1e-3).unwrap_err();
            assert!(matches!(error, StructuredError::NotStored { .. }), "{error}");
        }
    }
    let one = DiagTensor::identity(3, DType::F64).unwrap();
    let diag = DiagTensor::from_diag(noise(&[3], 4), 2).unwrap();
    close(&all(&one.mul(&diag).unwrap()), &all(&diag));
    let exp = diag.map_matrix(Eager::exp).unwrap();
    let (want, dense) = (exp.to_dense(standard).unwrap(), diag.to_dense(standard).unwrap());
    let expm = t4a_linalg::expm::expm(dense.tensor().unwrap().typed::<f64>().unwrap()).unwrap();
    close(&check::elements(&want), &expm.to_vec().unwrap());
    assert!(DiagTensor::dense(noise(&[2, 2], 1)).map_matrix(Eager::exp).is_err());
    assert!(matches!(diag.map_entries(Eager::exp), Err(StructuredError::Invalid { .. })));
    assert!(diag.add(&DiagTensor::dense(noise(&[3, 3], 1))).is_err());
    assert!(DiagTensor::diag_of(&noise(&[3, 2], 1), vec![0, 0]).is_err());
}

#[test]
fn trap_22_random_numbers_keep_the_size_of_vectors() {
    // Standard deviations √(2 / (m + n)) of an m × n matrix, per coupled sector.
    let wide = Leg::new([(U1(0), 30), (U1(1), 2)], Direction::Out).unwrap();
    let thin = Leg::new([(U1(0), 20), (U1(1), 6)], Direction::In).unwrap();
    let spec = Spec::new(vec![wide, thin], U1(0), 1).unwrap();
    let scales = spec.scales();
    assert_eq!(scales.len(), spec.len());
    for (matrix, (m, n)) in spec.matrices().iter().zip([(30.0f64, 20.0), (2.0, 6.0)]) {
        let own = &scales[matrix.offset..matrix.offset + matrix.rows * matrix.cols];
        assert!(own.iter().all(|&x| x == (2.0 / (m + n)).sqrt()));
    }
}

#[test]
fn pictures() {
    let [a, _] = blocks();
    let want = "[1, 2] × [2, 1] × [1, 2]  f64\n│█··│\n│█··│\n│·██│\n│·██│\n│·██│\n│···│\n│·██│\n│·██│\n│···│\n12 of 27 entries, 44.4 %";
    assert_eq!(a.to_string(), want);
    let diag = DiagTensor::from_diag(noise(&[3], 4), 2).unwrap();
    let want = "[3, 3] of classes [0, 0]  f64\n│█··│\n│·█·│\n│··█│\n3 of 9 entries, 33.3 %";
    assert_eq!(diag.to_string(), want);
}

#[test]
fn trap_12_lists_of_the_best_keep_duplicates_and_end_with_zeros() {
    // Sums over j of equal blocks: three terms for block 2, one for 1, then none.
    let pattern = |legs: Vec<Vec<usize>>, blocks: Vec<Vec<u32>>| {
        Arc::new(Pattern::new(legs, blocks).unwrap())
    };
    let row = pattern(vec![vec![1], vec![2, 1, 3]], vec![vec![0, 0], vec![0, 2]]);
    let column = pattern(vec![vec![2, 1, 3], vec![1]], vec![vec![0, 0], vec![1, 0], vec![2, 0]]);
    let a = check::array(&[5], |i| [1.0, 1.0, 0.0, 1.0, -7.0][i]);
    let b = check::array(&[6], |i| [1.0, 1.0, 9.0, 1.0, 1.0, 0.0][i]);
    let dense = [(row, a), (column, b)].map(|(pattern, data)| {
        let x = BlockSparseTensor::new(pattern, data).unwrap();
        x.to_dense_over(FloatSemiring::MaxPlus).unwrap().into_tensor().unwrap()
    });
    let plan = t4a_einsum::Einsum::new("ij,jk->ik").unwrap().plan(&[&[1, 6], &[6, 1]], 8).unwrap();
    let best = plan.k_best::<t4a_algebra::MaxPlus, 7>(&[&dense[0], &dense[1]]).unwrap();
    let none = f64::NEG_INFINITY;
    assert_eq!(numbers(&best), [2.0, 2.0, 2.0, 1.0, -7.0, none, none]);
}
