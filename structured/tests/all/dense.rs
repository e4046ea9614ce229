//! Bosonic tensors against dense tensors.

use t4a_diff::{Eager, check};
use t4a_structured::{
    Direction, Forbidden, GradedTensor, Leg, Product, Sector, Spec, StructuredError, Trivial, U1,
    Z2, Zn, einsum as graded_einsum,
};
use t4a_tensor::{AnyTensor, DType};

use crate::oracle::*;

fn letters(n: usize, from: u8) -> String {
    (0..n).map(|i| (from + i as u8) as char).collect()
}

/// Permutations, traces, contractions and fusions of random tensors with these sectors.
fn everything<S: Sector>(seed: u64, sectors: &[S]) {
    let mut rng = Rng::new(seed);
    for round in 0..25 {
        let complex = round % 3 == 0;
        let flux = sectors[rng.below(sectors.len())];
        let n = 1 + rng.below(4);
        let legs = rng.legs(n, sectors);
        let a = rng.tensor(legs, flux, complex);
        invariant(&a);

        // Permute.
        let axes = rng.permutation(n);
        let y = a.permute(&axes, rng.below(n + 1)).unwrap();
        invariant(&y);
        for (x, y) in dense(&a).iter().zip(&dense(&y)) {
            let want = x.clone().permute(&axes).unwrap();
            close(&numbers(y), &numbers(&want));
        }

        // Conj, dagger, flip.
        let conj = a.conj().unwrap();
        invariant(&conj);
        let (x, y) = (dense(&a), dense(&conj));
        close(&numbers(&y[0]), &numbers(&x[0]));
        let dagger = a.dagger().unwrap();
        invariant(&dagger);
        same(&dagger.dagger().unwrap(), &a);
        let axis = rng.below(n);
        let flipped = a.flip(axis).unwrap();
        invariant(&flipped);
        same(&flipped.flip(axis).unwrap(), &a);

        // Fuse and split.
        let (start, end) = {
            let s = rng.below(n);
            (s, s + 1 + rng.below(n - s))
        };
        let fused = a.fuse(start..end, rng.direction()).unwrap();
        invariant(&fused);
        same(&fused.split(start).unwrap(), &a);
        close(&[number(&fused.norm().unwrap())], &[number(&a.norm().unwrap())]);

        // Contraction with another tensor over some pairs of axes.
        let k = rng.below(n + 1);
        let (summed, m) = (rng.permutation(n)[..k].to_vec(), k + rng.below(3));
        let places = rng.permutation(m)[..k].to_vec();
        let mut legs = rng.legs(m, sectors);
        for (&i, &j) in summed.iter().zip(&places) {
            legs[j] = a.spec().legs()[i].dual();
        }
        let flux = sectors[rng.below(sectors.len())];
        let b = rng.tensor(legs, flux, complex);
        let c = a.contract(&b, &summed, &places).unwrap();
        invariant(&c);
        let (la, mut lb) = (letters(n, b'a'), letters(m, b'n').into_bytes());
        for (&i, &j) in summed.iter().zip(&places) {
            lb[j] = la.as_bytes()[i];
        }
        let lb = String::from_utf8(lb).unwrap();
        let free: String = la
            .chars()
            .filter(|x| !lb.contains(*x))
            .chain(lb.chars().filter(|x| !la.contains(*x)))
            .collect();
        let text = format!("{la},{lb}->{free}");
        let (x, y, z) = (dense(&a), dense(&b), dense(&c));
        let product = |i: usize, j: usize| numbers(&einsum(&text, &[&x[i], &y[j]]));
        if complex {
            let zip = |a: Vec<f64>, b: Vec<f64>, s: f64| -> Vec<f64> {
                a.iter().zip(b).map(|(a, b)| a + s * b).collect()
            };
            close(&numbers(&z[0]), &zip(product(0, 0), product(1, 1), -1.0));
            close(&numbers(&z[1]), &zip(product(0, 1), product(1, 0), 1.0));
        } else {
            close(&numbers(&z[0]), &product(0, 0));
            same(&graded_einsum(&text, &[&a, &b]).unwrap(), &c);
        }

        // Trace of a tensor with a pair of dual legs.
        let mut legs = rng.legs(2, sectors);
        let (i, j) = (rng.below(3), rng.below(4));
        let leg = rng.leg(sectors);
        legs.insert(i, leg.clone());
        legs.insert(j, leg.dual());
        let pair = if j <= i { (i + 1, j) } else { (i, j) };
        let t = rng.tensor(legs, sectors[0], false);
        let traced = t.trace(&[pair]).unwrap();
        invariant(&traced);
        let mut text = letters(4, b'a').into_bytes();
        text[pair.0] = b'z';
        text[pair.1] = b'z';
        let text = String::from_utf8(text).unwrap();
        let out: String = text.chars().filter(|&x| x != 'z').collect();
        let want = einsum(&format!("{text}->{out}"), &[&dense(&t)[0]]);
        close(&numbers(&dense(&traced)[0]), &numbers(&want));
    }
}

fn number(x: &Eager) -> f64 {
    check::elements(x)[0]
}

#[test]
fn trivial() {
    everything(1, &[Trivial]);
}

#[test]
fn parity() {
    everything(2, &[Z2::new(0), Z2::new(1)]);
}

#[test]
fn trap_18_residues() {
    everything(3, &[0, 1, 2].map(Zn::<3>::new));
    everything(4, &[0, 1, 2, 3, 4].map(Zn::<5>::new));
}

#[test]
fn trap_20_irregular_and_unreachable_blocks_of_charges() {
    everything(5, &[-2, -1, 0, 1, 3].map(U1));
}

#[test]
fn products_of_symmetries() {
    let sectors = [(-1, 0), (0, 0), (0, 1), (1, 1)].map(|(a, b)| Product(U1(a), Z2::new(b)));
    everything(6, &sectors);
}

#[test]
fn trap_17_fused_legs_contract_as_their_parts_and_no_others() {
    let mut rng = Rng::new(7);
    let sectors = [-1, 0, 1].map(U1);
    for _ in 0..20 {
        let legs = rng.legs(3, &sectors);
        let a = rng.tensor(legs.clone(), U1(0), false);
        let mut duals: Vec<_> = legs.iter().map(Leg::dual).collect();
        duals[2] = rng.leg(&sectors);
        let b = rng.tensor(duals, U1(1), false);
        let direct = a.contract(&b, &[0, 1], &[0, 1]).unwrap();
        let direction = rng.direction();
        let (fa, fb) = (a.fuse(0..2, direction).unwrap(), b.fuse(0..2, direction.dual()).unwrap());
        same(&fa.contract(&fb, &[0], &[0]).unwrap(), &direct);
        // The dual of a fused leg is the fusion of the duals.
        assert_eq!(fa.spec().legs()[0].dual(), fb.spec().legs()[0]);
        // Fusing the same legs in another order gives other states.
        let turned = b.permute(&[1, 0, 2], 1).unwrap().fuse(0..2, direction.dual()).unwrap();
        if legs[0] != legs[1] {
            let error = fa.contract(&turned, &[0], &[0]).unwrap_err();
            assert!(matches!(error, StructuredError::LegMismatch { axis: 0, other: 0, .. }));
        }
    }
}

#[test]
fn trap_21_dense_conversion_refuses_or_projects_what_the_symmetry_forbids() {
    let leg = Leg::new([(U1(0), 1), (U1(1), 2)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    let x = check::array(&[3, 3], |i| i as f64 + 1.0);
    let error = GradedTensor::from_dense(&spec, &x, None, Forbidden::Error(1e-12)).unwrap_err();
    let StructuredError::FluxViolation { index, value, given, required, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((&index[..], value), (&[0, 1][..], 2.0));
    assert_eq!((&given[..], &required[..]), ("-1", "0"));
    let kept = GradedTensor::from_dense(&spec, &x, None, Forbidden::Project).unwrap();
    assert_eq!(check::elements(kept.re()), [1.0, 5.0, 6.0, 8.0, 9.0]);
    invariant(&kept);
    let nan = check::array(&[3, 3], |i| if i == 1 { f64::NAN } else { 0.0 });
    assert!(GradedTensor::from_dense(&spec, &nan, None, Forbidden::Error(1.0)).is_err());
    let wrong = check::array(&[3, 2], |_| 0.0);
    let error = GradedTensor::from_dense(&spec, &wrong, None, Forbidden::Project).unwrap_err();
    assert!(matches!(error, StructuredError::Shape { .. }));
}

#[test]
fn trap_25_inner_products_conjugate() {
    let mut rng = Rng::new(8);
    let legs = rng.legs(2, &[Z2::new(0), Z2::new(1)]);
    let (a, b) = (rng.tensor(legs.clone(), Z2::new(0), true), rng.tensor(legs, Z2::new(0), true));
    let b = b.repartition(a.spec().rows()).unwrap();
    let (re, im) = a.inner(&b).unwrap();
    let full = a.conj().unwrap().contract(&b, &[0, 1], &[0, 1]).unwrap();
    close(&[number(&re)], &check::elements(full.re()));
    close(&[number(&im.unwrap())], &check::elements(full.im().unwrap()));
    close(&[number(&a.inner(&a).unwrap().0)], &[number(&a.norm_squared().unwrap())]);
}

#[test]
fn trap_26_plans_of_similar_structures_do_not_mix() {
    let leg = |a, b, d| Leg::new([(U1(a), 2), (U1(b), 2)], d).unwrap();
    let mut rng = Rng::new(9);
    let mut all = Vec::new();
    for (a, b) in [(0, 1), (0, 2), (-1, 1)] {
        for d in [Direction::Out, Direction::In] {
            for flux in [0, 1] {
                let x = rng.tensor(vec![leg(a, b, d), leg(a, b, d.dual())], U1(flux), false);
                all.push(x.repartition(1).unwrap());
            }
        }
    }
    // Equal shapes; each plan is requested twice, with others in between.
    for _ in 0..2 {
        for x in &all {
            let y = x.permute(&[1, 0], 1).unwrap();
            let want = dense(x)[0].clone().permute(&[1, 0]).unwrap();
            close(&numbers(&dense(&y)[0]), &numbers(&want));
            let z = x.contract(x, &[1], &[0]).unwrap();
            let want = einsum("ij,jk->ik", &[&dense(x)[0], &dense(x)[0]]);
            close(&numbers(&dense(&z)[0]), &numbers(&want));
        }
    }
}

#[test]
fn trap_27_tensors_without_elements() {
    let none = Leg::<U1>::new([], Direction::Out).unwrap();
    let some = Leg::new([(U1(1), 2)], Direction::Out).unwrap();
    let spec = Spec::new(vec![none.clone(), some.clone()], U1(0), 1).unwrap();
    assert!(spec.is_empty());
    let a = GradedTensor::zeros(spec, DType::F32, false).unwrap();
    invariant(&a);
    let b = GradedTensor::zeros(
        Spec::new(vec![none.dual(), some.clone()], U1(1), 1).unwrap(),
        DType::F32,
        false,
    )
    .unwrap();
    // The contracted dimension is 0: zeros, with the correct flux.
    let c = a.contract(&b, &[0], &[0]).unwrap();
    assert_eq!((c.spec().flux(), c.spec().len()), (U1(1), 0));
    let c = a.conj().unwrap().contract(&b.twist(&[]).unwrap(), &[], &[]).unwrap();
    assert_eq!(c.spec().shape(), [0, 2, 0, 2]);
    // No common sector: all entries of the result are stored and zero.
    let row = Leg::new([(U1(0), 2)], Direction::Out).unwrap();
    let bond = Leg::new([(U1(1), 1), (U1(5), 2)], Direction::Out).unwrap();
    let mut rng = Rng::new(3);
    let a = rng.tensor(vec![row.clone(), bond.dual()], U1(-1), false);
    let b = rng.tensor(vec![bond, row], U1(5), false);
    let c = a.contract(&b, &[1], &[0]).unwrap();
    assert_eq!((c.spec().flux(), c.spec().len()), (U1(4), 0));
    let rank0 = Spec::new(vec![], U1(0), 0).unwrap();
    assert_eq!((rank0.len(), rank0.blocks().len()), (1, 1));
    assert_eq!(Spec::new(vec![], U1(1), 0).unwrap().len(), 0);
}

#[test]
fn trap_16_the_norm_of_zero_has_a_gradient() {
    use t4a_diff::Dual;
    let spec = Spec::new(vec![Leg::new([(U1(0), 2)], Direction::Out).unwrap()], U1(0), 1).unwrap();
    let x = Dual::new(check::array(&[2], |_| 0.0), check::array(&[2], |_| 1.0));
    let norm = GradedTensor::new(spec, x, None).unwrap().norm().unwrap();
    assert_eq!(check::elements(&norm.into_tangent()), [0.0]);
}

#[test]
fn data_comes_back_and_corrupted_data_does_not() {
    let mut rng = Rng::new(11);
    let legs = rng.legs(3, &[-1, 0, 1].map(U1));
    let x = rng.tensor(legs, U1(1), true).fuse(0..2, Direction::In).unwrap();
    let text = serde_json::to_string(&x).unwrap();
    let y: GradedTensor<U1> = serde_json::from_str(&text).unwrap();
    assert_eq!(x.spec(), y.spec());
    same(&x.split(0).unwrap(), &y.split(0).unwrap());
    let bad = |from: &str, to: &str| {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text);
        serde_json::from_str::<GradedTensor<U1>>(&other).unwrap_err()
    };
    bad("\"f64\":[", "\"f64\":[1.0,");
    bad("\"in\"", "\"out\"");
    bad("\"flux\":1", "\"flux\":0");
    bad("\"rows\":", "\"rows\":7");
    // A residue outside of the group.
    let leg = Leg::new([(Zn::<3>::new(2), 1)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], Zn::new(0), 1).unwrap();
    let x = GradedTensor::zeros(spec, DType::F32, false).unwrap();
    let text = serde_json::to_string(&x).unwrap().replace("[[2,1]]", "[[5,1]]");
    assert!(
        serde_json::from_str::<GradedTensor<Zn<3>>>(&text).unwrap_err().to_string().contains('5')
    );
}

#[test]
fn a_picture() {
    let leg = Leg::new([(U1(-1), 1), (U1(1), 2)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    let x = GradedTensor::zeros(spec, DType::F64, false).unwrap();
    let want = "charge 0: out {-1: 1, 1: 2} | in {-1: 1, 1: 2}  f64\n\
        │█··│ -1: 1×1\n│·██│ 1: 2×2\n│·██│ \n5 of 9 entries, 55.6 %";
    assert_eq!(x.to_string(), want);
}

#[test]
fn every_dtype_computes() {
    let mut rng = Rng::new(12);
    let legs = rng.legs(2, &[0, 1].map(U1));
    let legs = vec![legs[0].clone(), legs[1].clone(), legs[1].dual()];
    for complex in [false, true] {
        let x = rng.tensor(legs.clone(), U1(0), complex);
        let narrow = |x: &Eager| Eager::from(x.tensor().unwrap().clone().cast(DType::F32));
        let y = GradedTensor::new(x.spec().clone(), narrow(x.re()), x.im().map(narrow)).unwrap();
        let run = |x: &GradedTensor<U1>| {
            x.contract(&x.conj().unwrap(), &[0, 2], &[0, 2]).unwrap().permute(&[1, 0], 1).unwrap()
        };
        for (x, y) in dense(&run(&x)).iter().zip(dense(&run(&y))) {
            assert_eq!(AnyTensor::dtype(&y), DType::F32);
            for (x, y) in numbers(x).iter().zip(numbers(&y)) {
                assert!((x - y).abs() < 1e-4);
            }
        }
    }
}
