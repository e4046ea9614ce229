//! Rejected input: every error is raised before any arithmetic.

use t4a_diff::check;
use t4a_structured::plan::{MatrixView, Products};
use t4a_structured::{
    Direction, FermionNumber, FermionParity, GradedTensor, Leg, Product, Sector, Spec,
    StructuredError, U1, Z2, Zn, einsum,
};
use t4a_tensor::DType;

use crate::oracle::Rng;

fn leg(sectors: &[(i32, usize)], direction: Direction) -> Leg<U1> {
    Leg::new(sectors.iter().map(|&(q, n)| (U1(q), n)), direction).unwrap()
}

#[test]
fn legs() {
    let out = Direction::Out;
    let new = |sectors: &[(i32, usize)]| Leg::new(sectors.iter().map(|&(q, n)| (U1(q), n)), out);
    assert!(matches!(new(&[(1, 2), (1, 3)]), Err(StructuredError::DuplicateSector { .. })));
    assert!(matches!(new(&[(1, 0)]), Err(StructuredError::EmptySector { .. })));
    let sorted = Leg::sorted(vec![(U1(1), 1), (U1(0), 1)], out);
    assert!(matches!(sorted, Err(StructuredError::UnsortedSectors { .. })));
    assert!(matches!(new(&[(0, usize::MAX), (1, 2)]), Err(StructuredError::TooLarge { .. })));
}

#[test]
fn r8_sectors_of_another_group() {
    // A residue that no constructor makes, but that deserialisation may produce.
    let three: Zn<3> = serde_json::from_str("3").unwrap();
    let unknown = |error| {
        assert_eq!(error, StructuredError::UnknownSector { sector: "3".into() });
    };
    unknown(Leg::new([(three, 1)], Direction::Out).unwrap_err());
    unknown(Leg::sorted(vec![(Zn::new(1), 1), (three, 1)], Direction::In).unwrap_err());
    let leg = Leg::new([(Zn::<3>::new(1), 1)], Direction::Out).unwrap();
    unknown(Spec::new(vec![leg], three, 1).unwrap_err());
}

#[test]
fn r8_matrices_overlap_or_leave_gaps() {
    let view = |offset, rows, cols| MatrixView { offset, rows, cols, transposed: false };
    let new = |lens: [usize; 3], c: Vec<MatrixView>, terms: Vec<[u32; 3]>| {
        let (a, b) = (vec![view(0, 2, 3)], vec![view(0, 3, 2)]);
        Products::new(lens, a, b, c, terms).map(|_| ())
    };
    let whole = vec![view(0, 2, 2)];
    assert_eq!(new([6, 6, 4], whole.clone(), vec![[0, 0, 0]]), Ok(()));
    for (lens, c, terms) in [
        // A gap, an overlap, beyond the end, leftover elements, an index out of range, mismatching sizes.
        ([6, 6, 9], vec![view(0, 2, 2), view(5, 2, 2)], vec![]),
        ([6, 6, 6], vec![view(0, 2, 2), view(2, 2, 2)], vec![]),
        ([6, 6, 3], whole.clone(), vec![]),
        ([6, 6, 5], whole.clone(), vec![]),
        ([6, 6, 4], whole, vec![[0, 1, 0]]),
        ([6, 6, 4], vec![view(0, 4, 1)], vec![[0, 0, 0]]),
    ] {
        assert!(matches!(new(lens, c, terms), Err(StructuredError::Corrupt { .. })), "{lens:?}");
    }
}

#[test]
fn trap_18_charges_beyond_their_type() {
    let big = leg(&[(i32::MAX, 1)], Direction::Out);
    let error = Leg::fused(&[big.clone(), big.clone()], Direction::Out).unwrap_err();
    assert!(matches!(error, StructuredError::ChargeOverflow { .. }));
    let error = Spec::new(vec![big.clone(), big], U1(0), 2).unwrap_err();
    assert!(matches!(error, StructuredError::ChargeOverflow { .. }));
    let least = leg(&[(i32::MIN, 1)], Direction::In);
    assert!(matches!(least.flipped(), Err(StructuredError::ChargeOverflow { .. })));
    assert_eq!(Zn::<3>::new(-1).charge(), 2);
}

#[test]
fn trap_18_groups_and_their_order() {
    fn group<S: Sector>(all: &[S]) {
        for &a in all {
            let dual = a.dual().unwrap();
            assert_eq!((dual.dual(), a.fuse(dual)), (Some(a), Some(S::TRIVIAL)));
            assert_eq!((dual.is_odd(), a.fuse(S::TRIVIAL)), (a.is_odd(), Some(a)));
            for &b in all {
                let c = a.fuse(b).unwrap();
                assert_eq!((b.fuse(a), c.fuse(dual)), (Some(c), Some(b)));
                // Parity is a homomorphism of the group.
                assert_eq!(c.is_odd(), a.is_odd() != b.is_odd());
            }
        }
    }
    group(&[-2, -1, 0, 1, 5].map(U1));
    group(&[-3, -1, 0, 1, 2].map(FermionNumber));
    group(&[false, true].map(FermionParity));
    group(&[-4, -1, 0, 1, 2, 6].map(Zn::<5>::new));
    let both = |n, s| Product(FermionNumber(n), Zn::<3>::new(s));
    group(&[both(-1, -1), both(0, 2), both(1, 0), both(2, 1)]);
    // Legs are sorted, the first charge of a product before the second.
    let given = [both(1, 0), both(-2, 2), both(-1, 1), both(-2, -2)].map(|q| (q, 1));
    let leg = Leg::new(given, Direction::Out).unwrap();
    let sorted = [both(-2, 1), both(-2, 2), both(-1, 1), both(1, 0)].map(|q| (q, 1));
    assert_eq!(leg.sectors(), sorted);
    assert_eq!(leg.dual().dual(), leg);
    assert_eq!(leg.dual().sectors(), leg.sectors());
}

#[test]
fn contractions() {
    let mut rng = Rng::new(1);
    let a = leg(&[(0, 2), (1, 1)], Direction::Out);
    let b = leg(&[(0, 2), (1, 2)], Direction::In);
    let x = rng.tensor(vec![a.clone(), a.dual()], U1(0), false);
    let y = rng.tensor(vec![b.clone(), b.dual()], U1(0), false);
    let mismatch =
        |result: Result<GradedTensor<U1>, StructuredError>, axes: (usize, usize)| match result {
            Err(StructuredError::LegMismatch { axis, other, .. }) => {
                assert_eq!((axis, other), axes);
            }
            other => panic!("{other:?}"),
        };
    // Degeneracies, then directions.
    mismatch(x.contract(&y, &[0], &[0]), (0, 0));
    mismatch(x.contract(&x, &[1], &[1]), (1, 1));
    mismatch(y.contract(&x, &[0], &[0]), (0, 0));
    mismatch(einsum("ab,cb->ac", &[&x, &x]), (1, 1));
    mismatch(rng.tensor(vec![a.clone(), a.clone()], U1(1), false).trace(&[(0, 1)]), (0, 1));
    assert!(matches!(x.contract(&x, &[1, 1], &[0, 0]), Err(StructuredError::Axis { .. })));
    assert!(matches!(x.contract(&x, &[2], &[0]), Err(StructuredError::Axis { .. })));
    assert!(matches!(x.contract(&x, &[1], &[]), Err(StructuredError::Rank { .. })));
    assert!(matches!(x.permute(&[0], 0), Err(StructuredError::Rank { .. })));
    assert!(matches!(x.permute(&[0, 1], 3), Err(StructuredError::Rows { .. })));
    assert!(matches!(x.fuse(1..3, Direction::Out), Err(StructuredError::Axis { .. })));
    assert!(matches!(x.split(0), Err(StructuredError::NotFused { axis: 0, .. })));
    for text in ["ab,bc", "ab,bc->abc", "ab->ab", "ab,bc->az", "ab,bb->a"] {
        assert!(matches!(einsum(text, &[&x, &x]), Err(StructuredError::Invalid { .. })), "{text}");
    }
    let z = rng.tensor(vec![a.clone(), a.dual()], U1(0), false);
    let narrow = z.re().tensor().unwrap().clone().cast(DType::F32).unwrap();
    let z = GradedTensor::new(z.spec().clone(), narrow.into(), None).unwrap();
    assert!(matches!(x.contract(&z, &[1], &[0]), Err(StructuredError::DType { .. })));
    assert!(matches!(x.add(&y), Err(StructuredError::SpecMismatch { .. })));
}

#[test]
fn buffers() {
    let spec = Spec::new(vec![leg(&[(0, 2)], Direction::Out)], U1(0), 1).unwrap();
    let error = GradedTensor::new(spec, check::array(&[3], |_| 0.0), None).unwrap_err();
    let required = StructuredError::LengthMismatch { op: "graded tensor", required: 2, given: 3 };
    assert_eq!(error, required);
}

#[test]
fn trap_19_maps_are_neutral_and_square() {
    let mut rng = Rng::new(2);
    let leg = Leg::new([(Z2::new(0), 2), (Z2::new(1), 2)], Direction::Out).unwrap();
    let x = rng.tensor(vec![leg.clone(), leg.dual()], Z2::new(1), false).repartition(1).unwrap();
    assert!(matches!(x.exp(), Err(StructuredError::Flux { .. })));
    assert!(matches!(x.eigh(), Err(StructuredError::Flux { .. })));
    let x = rng.tensor(vec![leg.clone(), leg.clone()], Z2::new(0), false).repartition(1).unwrap();
    assert!(matches!(x.exp(), Err(StructuredError::LegMismatch { .. })));
    assert!(matches!(x.repartition(2).unwrap().exp(), Err(StructuredError::Rank { .. })));
    // A tensor without blocks keeps its flux.
    let none = Leg::<U1>::new([], Direction::Out).unwrap();
    let x = rng.tensor(vec![none], U1(3), false);
    assert_eq!(x.conj().unwrap().spec().flux(), U1(-3));
}
