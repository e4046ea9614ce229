//! Construction from blocks, elements and other tensors, compared with dense arrays; legs from states in any order;
//! serialisation.

use t4a_algebra::c64;
use t4a_diff::{Array, Eager, check};
use t4a_structured::{
    Direction, FermionNumber, FermionParity, Forbidden, GradedTensor, Leg, Product, Sector, Spec,
    StructuredError, Trivial, U1, Z2, Zn,
};
use t4a_tensor::DType;

use crate::factor::{Loss, slope, weighted};
use crate::oracle::*;

fn sectors_of<S: Sector>(spec: &Spec<S>, places: &[u32]) -> Vec<S> {
    spec.legs().iter().zip(places).map(|(leg, &k)| leg.sectors()[k as usize].0).collect()
}

/// A random tensor is rebuilt from its blocks, and from its elements.
fn parts<S: Sector>(seed: u64, sectors: &[S]) {
    let mut rng = Rng::new(seed);
    for _ in 0..8 {
        let legs = rng.legs(3, sectors);
        let a = rng.tensor(legs, S::TRIVIAL, false);
        let spec = a.spec();
        let mut blocks = Vec::new();
        let mut elements = Vec::new();
        for block in spec.blocks() {
            let own = sectors_of(spec, block.places());
            let (re, im) = a.block_of(&own).unwrap();
            assert!(im.is_none());
            for (i, x) in check::elements(&re).into_iter().enumerate() {
                let (mut rest, mut states) = (i, vec![(S::TRIVIAL, 0); 3]);
                for axis in (0..3).rev() {
                    states[axis] = (own[axis], rest % block.shape()[axis]);
                    rest /= block.shape()[axis];
                }
                elements.push((states, x));
            }
            blocks.push((own, re));
        }
        blocks.reverse();
        let all: Vec<(&[S], Eager)> = blocks.iter().map(|(s, x)| (&s[..], x.clone())).collect();
        let of_elements = GradedTensor::from_elements(spec, elements, DType::F64, false).unwrap();
        same(&of_elements, &a);
        if all.is_empty() {
            assert!(GradedTensor::from_blocks(spec, &all).is_err());
            continue;
        }
        same(&GradedTensor::from_blocks(spec, &all).unwrap(), &a);
        // A single block.
        let one = GradedTensor::from_blocks(spec, &all[..1]).unwrap();
        invariant(&one);
        let norm = check::elements(&all[0].1).iter().map(|x| x * x).sum::<f64>();
        close(&check::elements(&one.norm_squared().unwrap()), &[norm]);
    }
}

#[test]
fn tensors_of_blocks_and_of_elements() {
    parts(1, &[-1, 0, 1].map(U1));
    parts(2, &[0, 1].map(|n| Product(FermionNumber(n), Z2::new(n.into()))));
}

/// Positions of the states of each term in a concatenated leg, in dense order.
fn stacked_order<S: Sector>(terms: [&Leg<S>; 2]) -> Vec<usize> {
    let runs = terms.iter().flat_map(|leg| leg.sectors()).copied();
    Leg::from_states(runs, terms[0].direction()).unwrap().1
}

#[test]
fn direct_sums_are_those_of_dense_arrays() {
    let mut rng = Rng::new(5);
    let sectors = [0, 1, 2].map(FermionNumber);
    for round in 0..12 {
        let complex = round % 3 == 0;
        let shared = rng.leg(&sectors);
        let (d, e) = (rng.direction(), rng.direction());
        let mut leg = |direction| {
            let dims: Vec<_> = sectors
                .iter()
                .filter_map(|&s| Some((s, rng.below(3))).filter(|x| x.1 > 0))
                .collect();
            Leg::new(dims, direction).unwrap()
        };
        let [a, b] = [0, 1].map(|_| vec![leg(d), shared.clone(), leg(e)]);
        let [a, b] = [a, b].map(|legs| rng.tensor(legs, FermionNumber(0), complex));
        let [la, lb] = [&a, &b].map(|x| x.spec().legs().to_vec());
        let sum = GradedTensor::direct_sum(&[&a, &b], &[0, 2]).unwrap();
        invariant(&sum);
        let [first, last] = [0, 2].map(|k| stacked_order([&la[k], &lb[k]]));
        // Dense block-diagonal array, its axes sorted by sectors.
        let (da, db) = (dense(&a), dense(&b));
        for (part, got) in dense(&sum).iter().enumerate() {
            let got = numbers(got);
            let (xa, xb) = (numbers(&da[part]), numbers(&db[part]));
            let (m, n, k) = (la[0].dim(), shared.dim(), la[2].dim());
            let kb = lb[2].dim();
            let mut want = Vec::new();
            for &i in &first {
                for j in 0..n {
                    for &l in &last {
                        want.push(match (i < m, l < k) {
                            (true, true) => xa[(i * n + j) * k + l],
                            (false, false) => xb[((i - m) * n + j) * kb + l - k],
                            _ => 0.0,
                        });
                    }
                }
            }
            close(&got, &want);
        }
        // Direct sum along no leg: the sum.
        let twice = GradedTensor::direct_sum(&[&a, &a], &[]).unwrap();
        same(&twice, &a.scale(2.0));
    }
}

#[test]
fn states_in_any_order() {
    let runs = [(U1(1), 1), (U1(-1), 2), (U1(1), 2), (U1(0), 0)];
    let (leg, order) = Leg::from_states(runs, Direction::Out).unwrap();
    assert_eq!(leg.sectors(), [(U1(-1), 2), (U1(1), 3)]);
    assert_eq!(order, [1, 2, 0, 3, 4]);
    // Charges of the given states equal those of the sorted array.
    let charges = [1, -1, -1, 1, 1];
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    let given =
        check::array(
            &[5, 5],
            |k| {
                if charges[k / 5] == charges[k % 5] { (k + 1) as f64 } else { 0.0 }
            },
        );
    let exact = Forbidden::Error(0.0);
    let read = GradedTensor::from_dense_in(&spec, &given, None, &[&order, &order], exact).unwrap();
    let (sorted, x) = (check::elements(&read.to_dense().unwrap().0), check::elements(&given));
    for i in 0..5 {
        for j in 0..5 {
            assert_eq!(sorted[i * 5 + j], x[order[i] * 5 + order[j]]);
        }
    }
    let wrong = GradedTensor::from_dense_in(&spec, &given, None, &[&order, &[0; 5]], exact);
    assert!(matches!(wrong, Err(StructuredError::Invalid { .. })));
    let wrong = GradedTensor::from_dense_in(&spec, &given, None, &[&order], exact);
    assert!(matches!(wrong, Err(StructuredError::Rank { .. })));
    let many = Leg::from_states([(U1(0), usize::MAX)], Direction::Out);
    assert!(matches!(many, Err(StructuredError::TooLarge { .. })));
}

#[test]
fn copy_tensors() {
    let leg = |d| Leg::new([0, 1].map(|q| (Zn::<3>::new(q), 2)), d).unwrap();
    let (out, into) = (leg(Direction::Out), leg(Direction::In));
    let one = GradedTensor::delta(&[out.clone(), into.clone()], Zn::new(0), 1, DType::F64).unwrap();
    same(&one, &GradedTensor::identity(std::slice::from_ref(&out), DType::F64).unwrap());
    // q + q − q − q.
    let four = [out.clone(), out.clone(), into.clone(), into];
    let copy = GradedTensor::delta(&four, Zn::new(0), 2, DType::F64).unwrap();
    let want: Vec<f64> = (0..256).map(|k| f64::from(k % 85 == 0)).collect();
    close(&numbers(&dense(&copy)[0]), &want);
    let error = GradedTensor::delta(&four[..3], Zn::new(0), 1, DType::F64).unwrap_err();
    assert!(matches!(error, StructuredError::Flux { .. }), "{error}");
    let short = Leg::new([(Zn::<3>::new(0), 1)], Direction::In).unwrap();
    let error = GradedTensor::delta(&[out, short], Zn::new(0), 1, DType::F64).unwrap_err();
    assert!(matches!(error, StructuredError::Invalid { .. }));
}

/// Loss for derivatives through `from_blocks` and `direct_sum`: `[A, A²]`.
struct Sum;

impl Loss for Sum {
    fn of<A: Array>(&self, a: &GradedTensor<U1, A>) -> A {
        let square = GradedTensor::new(a.spec().clone(), a.re().mul(a.re()), None).unwrap();
        let sum = GradedTensor::direct_sum(&[a, &square], &[1]).unwrap();
        let places = [0, 0];
        let sectors = sectors_of(sum.spec(), &places);
        let block = sum.block_of(&sectors).unwrap().0;
        let one = GradedTensor::from_blocks(sum.spec(), &[(&sectors, block.mul(&block))]).unwrap();
        weighted(&sum).add(&weighted(&one))
    }
}

#[test]
fn derivatives_of_composed_tensors() {
    let leg = |n, d| Leg::new([(U1(0), n), (U1(1), 2)], d).unwrap();
    let legs = vec![leg(2, Direction::Out), leg(3, Direction::In)];
    slope(&Rng::new(4).tensor(legs, U1(0), false), &Sum);
}

#[test]
fn bad_input_of_constructors() {
    let leg = Leg::new([(U1(0), 2), (U1(1), 3)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    let x = |m, n| check::array(&[m, n], |k| k as f64);
    let (zero, one) = ([U1(0); 2], [U1(1); 2]);
    let new = |blocks: &[(&[U1], Eager)]| GradedTensor::from_blocks(&spec, blocks).unwrap_err();
    use StructuredError as E;
    assert!(matches!(new(&[(&zero, x(2, 3))]), E::Shape { .. }));
    assert!(matches!(new(&[(&[U1(0), U1(1)], x(2, 3))]), E::Flux { .. }));
    assert!(matches!(new(&[(&[U1(7), U1(1)], x(2, 3))]), E::Invalid { .. }));
    assert!(matches!(new(&[(&zero[..1], x(2, 3))]), E::Rank { .. }));
    assert!(matches!(
        new(&[(&zero, x(2, 2)), (&one, x(3, 3)), (&zero, x(2, 2))]),
        E::DuplicateBlock { .. }
    ));
    let element = |states: Vec<(U1, usize)>, value: c64| {
        GradedTensor::from_elements(&spec, [(states, value)], DType::F64, false).unwrap_err()
    };
    let (re, im) = (c64::new(1.0, 0.0), c64::new(0.0, 1.0));
    assert!(matches!(element(vec![(U1(0), 2), (U1(0), 0)], re), E::Invalid { .. }));
    assert!(matches!(element(vec![(U1(0), 1), (U1(0), 0)], im), E::Invalid { .. }));
    assert!(matches!(element(vec![(U1(0), 1), (U1(1), 0)], re), E::Flux { .. }));
    let a = Rng::new(1).tensor(spec.legs().to_vec(), U1(0), false);
    let b = Rng::new(1).tensor(vec![leg.clone(), leg.clone()], U1(1), false);
    let sum = |terms: &[&GradedTensor<U1>], axes: &[usize]| {
        GradedTensor::direct_sum(terms, axes).unwrap_err()
    };
    assert!(matches!(sum(&[], &[0]), E::Invalid { .. }));
    assert!(matches!(sum(&[&a], &[2]), E::Axis { .. }));
    assert!(matches!(sum(&[&a, &b], &[0, 1]), E::Flux { .. }));
    let c = Rng::new(1).tensor(vec![leg.clone(), leg], U1(0), false);
    assert!(matches!(sum(&[&a, &c], &[0]), E::LegMismatch { .. }));
    assert!(matches!(sum(&[&a, &c], &[0, 1]), E::LegMismatch { .. }));
}

#[test]
fn legs_and_structures_as_data_name_their_symmetry() {
    let leg = Leg::new([(U1(0), 2), (U1(1), 3)], Direction::Out).unwrap();
    let pair = Leg::fused(&[leg.clone(), leg.dual()], Direction::In).unwrap();
    let text = serde_json::to_string(&pair).unwrap();
    assert!(text.contains(r#""symmetry":"U1""#), "{text}");
    assert_eq!(serde_json::from_str::<Leg<U1>>(&text).unwrap(), pair);
    let spec = Spec::new(vec![leg.clone(), pair.clone(), leg.dual()], U1(0), 1).unwrap();
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<Spec<U1>>(&text).unwrap(), spec);
    // The charges are equal numbers; the name distinguishes the symmetries.
    let refused = |error: serde_json::Error| {
        let text = error.to_string();
        assert!(text.contains("the symmetry is U1, fermion number is required"), "{text}");
    };
    refused(serde_json::from_str::<Spec<FermionNumber>>(&text).unwrap_err());
    let alone = serde_json::to_string(&leg).unwrap();
    refused(serde_json::from_str::<Leg<FermionNumber>>(&alone).unwrap_err());
    let tensor = Rng::new(1).tensor(vec![leg.clone(), leg.dual()], U1(0), true);
    let text = serde_json::to_string(&tensor).unwrap();
    same(&serde_json::from_str::<GradedTensor<U1>>(&text).unwrap(), &tensor);
    refused(serde_json::from_str::<GradedTensor<FermionNumber>>(&text).unwrap_err());
    let names = [
        Trivial::symmetry(),
        Z2::symmetry(),
        FermionParity::symmetry(),
        Product::<U1, Product<Zn<3>, FermionNumber>>::symmetry(),
    ];
    assert_eq!(names, ["trivial", "Z2", "fermion parity", "(U1 x (Z3 x fermion number))"]);
    // More combinations of sectors than the bound.
    let many = Spec::new(vec![leg; 18], U1(18), 18).unwrap();
    assert!(serde_json::to_string(&many).is_err());
}
