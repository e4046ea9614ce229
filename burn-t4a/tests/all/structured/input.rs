//! Invalid arguments are rejected with a typed error before any work.

use std::sync::Arc;

use burn_backend::DType;
use burn_t4a::ext::Complex;
use burn_t4a::ext::structured::*;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::Tensor;

use super::cases::array;

type B = BurnT4a;
type G = GradedTensor<B, U1>;

fn leg(charges: &[(i32, usize)], direction: Direction) -> Leg<U1> {
    Leg::new(charges.iter().map(|&(n, dim)| (U1(n), dim)), direction).unwrap()
}

fn zeros(legs: &[&Leg<U1>], dtype: DType) -> G {
    let legs = legs.iter().map(|&leg| leg.clone()).collect();
    let device = T4aDevice;
    G::zeros(&Spec::new(legs, U1(0), 1).unwrap(), (&device, dtype)).unwrap()
}

/// Asserts that the call returns this variant of the error.
macro_rules! rejects {
    ($variant:ident: $call:expr) => {
        match $call {
            Err(StructuredError::$variant { .. }) => {}
            Err(other) => panic!("{other:?} for {}", stringify!($call)),
            Ok(_) => panic!("{} is accepted", stringify!($call)),
        }
    };
}

#[test]
fn lengths_types_and_kinds() {
    let a = leg(&[(0, 2), (1, 1)], Direction::Out);
    let x = zeros(&[&a, &a.dual()], DType::F64);
    rejects!(LengthMismatch: G::from_flat(x.spec(), array::<B>(&[0.0; 4])));
    rejects!(LengthMismatch: G::from_flat(x.spec(), array::<B>(&[0.0; 6])));
    let layout = Classes { payload: vec![2], classes: vec![0, 0] };
    rejects!(LengthMismatch: DiagTensor::<B>::from_flat(&layout, array::<B>(&[0.0; 3])));
    let z = Complex::new(array::<B>(&[0.0; 2]), array::<B>(&[0.0; 2])).unwrap();
    rejects!(Invalid: DiagTensor::<B>::from_complex(&layout, z.clone()));
    let backwards = Classes { payload: vec![2], classes: vec![1, 0] };
    rejects!(Invalid: DiagTensor::<B>::from_flat(&backwards, array::<B>(&[0.0; 2])));
    let pattern = Arc::new(Pattern::new(vec![vec![2]], vec![vec![0]]).unwrap());
    rejects!(Invalid: BlockSparseTensor::<B>::from_complex(&pattern, z));
    rejects!(LengthMismatch: BlockSparseTensor::<B>::from_flat(&pattern, array::<B>(&[0.0])));
    rejects!(Tensor: x.to_tensor::<3>());
    let single = zeros(&[&a, &a.dual()], DType::F32);
    rejects!(DType: x.contract(&single, &[1], &[0]));
    rejects!(DType: x.add(&single));
    rejects!(DType: x.inner(&single));
    let other = zeros(&[&a.dual(), &a], DType::F64);
    rejects!(SpecMismatch: x.add(&other));
    rejects!(SpecMismatch: x.with_tangent(Some(&other)).map(|_| ()));
}

#[test]
fn legs_and_axes() {
    let (a, b) = (leg(&[(0, 2), (1, 1)], Direction::Out), leg(&[(0, 2), (2, 1)], Direction::In));
    let x = zeros(&[&a, &a.dual()], DType::F64);
    let y = zeros(&[&b, &b.dual()], DType::F64);
    rejects!(LegMismatch: x.contract(&y, &[0], &[0]));
    rejects!(LegMismatch: x.contract(&x, &[0], &[0]));
    rejects!(LegMismatch: einsum("ab,bc->ac", &[&x, &y]));
    rejects!(LegMismatch: y.contract(&y, &[0], &[0]));
    rejects!(Axis: x.contract(&x, &[2], &[0]));
    rejects!(Axis: x.contract(&x, &[0, 0], &[1, 1]));
    rejects!(Rank: x.contract(&x, &[0], &[]));
    rejects!(Rank: x.permute(&[0], 0));
    rejects!(Axis: x.permute(&[0, 0], 0));
    rejects!(Rows: x.permute(&[0, 1], 3));
    rejects!(Axis: x.trace(&[(0, 7)]));
    rejects!(NotFused: x.split(0));
    rejects!(Rank: einsum("abc,bc->a", &[&x, &x]));
    rejects!(Invalid: einsum("ab,bc", &[&x, &x]));
    rejects!(Invalid: einsum("ab->c", &[&x]));
    // The leg was fused from other legs.
    let fused =
        zeros(&[&a, &a.dual(), &a, &a.dual()], DType::F64).fuse(0..2, Direction::Out).unwrap();
    let plain = Leg::sorted(fused.spec().legs()[0].sectors().to_vec(), Direction::In).unwrap();
    let rest = [&plain, &plain.dual()];
    rejects!(LegMismatch: fused.contract(&zeros(&rest, DType::F64), &[0], &[0]));
}

#[test]
fn charges() {
    rejects!(DuplicateSector: Leg::new([(U1(0), 1), (U1(0), 2)], Direction::Out));
    rejects!(UnsortedSectors: Leg::sorted(vec![(U1(1), 1), (U1(0), 2)], Direction::Out));
    rejects!(EmptySector: Leg::new([(U1(0), 0)], Direction::Out));
    let far = leg(&[(i32::MAX, 1)], Direction::Out);
    rejects!(ChargeOverflow: Spec::new(vec![far.clone(), far], U1(0), 2));
    let odd = Leg::new([(FermionNumber(1), 1)], Direction::Out).unwrap();
    rejects!(OddParity: Spec::new(vec![odd], FermionNumber(1), 1));
    rejects!(UnsortedBlocks: Pattern::new(vec![vec![1, 1]], vec![vec![1], vec![0]]));
    rejects!(DuplicateBlock: Pattern::new(vec![vec![1, 1]], vec![vec![0], vec![0]]));
    rejects!(Invalid: Pattern::new(vec![vec![1, 1]], vec![vec![2]]));
}

/// Tensors print through the engine, which rejects dtypes that are not floats by name.
#[test]
fn half_precision_is_refused_or_right() {
    let a = leg(&[(0, 2), (1, 1)], Direction::Out);
    let device = T4aDevice;
    let spec = Spec::new(vec![a.clone(), a.dual()], U1(0), 1).unwrap();
    let x = G::from_flat(&spec, Tensor::ones([5], (&device, DType::F16))).unwrap();
    match x.contract(&x, &[1], &[0]) {
        Ok(y) => {
            let y: Vec<f64> = y.flat().into_data().iter::<f64>().collect();
            assert_eq!(y, [2.0, 2.0, 2.0, 2.0, 1.0]);
        }
        Err(error) => assert!(
            error.to_string().contains("F16") || error.to_string().contains("f16"),
            "{error}"
        ),
    }
}
