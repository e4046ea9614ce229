//! Einsum over booleans, integers, counts and K-best lists: values, gradients, errors.

use burn_tensor::{Bool, DType, Int, TensorData};

use super::ext::einsum::{Einsum, EinsumError, MaxMul, MaxPlus, MinPlus, Subscripts, bool_einsum};
use super::ext::{ExtError, MismatchError};
use super::{Tensor, counting, device, ints, k_best};

fn f64s(values: &[f64]) -> Tensor<1> {
    let data = TensorData::new(values.to_vec(), [values.len()]);
    Tensor::from_data(data, (&device(), DType::F64))
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn count(ways: Tensor<1, Int>) -> Option<i64> {
    ways.into_data().iter::<i64>().next()
}

#[test]
fn steps_between_states() {
    let step = [[false, true, false], [false, false, true], [true, false, false]];
    let step = Tensor::<2, Bool>::from_data(step, &device());
    let two: Tensor<2, Bool> = bool_einsum("ij,jk->ik", [&step, &step]).unwrap();
    let reached: Vec<bool> = two.into_data().iter().collect();
    assert_eq!(reached, [false, false, true, true, false, false, false, true, false]);
    let hop = Tensor::<2, Int>::from_data([[0, 5, 1], [5, 0, i32::MAX], [1, 2, 0]], &device());
    let two: Tensor<2, Int> = ints::<MinPlus, 2, _>("ij,jk->ik", vec![hop.clone(), hop]).unwrap();
    let shortest: Vec<i64> = two.into_data().iter().collect();
    assert_eq!(shortest, [0, 3, 1, 5, 0, 6, 1, 2, 0]);
}

/// All pairs: sorted sums, and the multiplicity of the largest.
#[test]
fn counts_and_lists_of_all_pairs() {
    let (a, b) = ([1.0, 3.0, 2.0, 3.0], [0.0, 2.0, 2.0, 1.0]);
    let (x, y) = (f64s(&a), f64s(&b));
    let mut sums: Vec<f64> = a.iter().flat_map(|a| b.map(|b| a + b)).collect();
    sums.sort_by(|a, b| b.total_cmp(a));
    let best: Tensor<1> = k_best::<MaxPlus, 6, 1, _>("i,j->", vec![x.clone(), y.clone()]).unwrap();
    assert_eq!(numbers(best), sums[..6]);
    let best: Tensor<2> = k_best::<MinPlus, 2, 2, _>("i,i->i", vec![x.clone(), y.clone()]).unwrap();
    let none = f64::INFINITY;
    assert_eq!(numbers(best), [1.0, none, 5.0, none, 4.0, none, 4.0, none]);
    // The values have the gradient of the maximum.
    let leaf = x.require_grad();
    let (most, ways) = counting::<MaxPlus, 1, _>("i,j->", vec![leaf.clone(), y]).unwrap();
    assert_eq!((numbers(most.clone()), count(ways)), (vec![5.0], Some(4)));
    let gradient = leaf.grad(&most.backward()).unwrap();
    assert_eq!(gradient.into_data().iter::<f64>().collect::<Vec<_>>(), [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn mistakes_without_derivatives_are_typed_errors() {
    let of = |dtype| Tensor::<1, Int>::from_data([1, 2], (&device(), dtype));
    let unsigned = ints::<MinPlus, 1, _>("i,i->i", vec![of(DType::U8), of(DType::U8)]);
    assert!(matches!(unsigned, Err(ExtError::Einsum(EinsumError::Tensor(_)))));
    let mixed = ints::<MinPlus, 1, _>("i,i->i", vec![of(DType::I32), of(DType::I64)]);
    assert!(matches!(mixed, Err(ExtError::Mismatch(MismatchError::DType { argument: 1, .. }))));
    let rank = ints::<MinPlus, 2, _>("i,i->i", vec![of(DType::I32), of(DType::I32)]);
    let wrong = MismatchError::ResultRank { op: "einsum", required: 1, given: 2 };
    assert_eq!(rank.unwrap_err(), ExtError::Mismatch(wrong));
    // 2⁶⁴ assignments of no elements.
    let free = Tensor::<1>::zeros([2], &device());
    let text = (b'a'..=b'z').chain(b'A'..=b'Z').map(|c| (c as char).to_string());
    let text: Vec<String> = text.take(52).collect();
    let many = format!("{}->", text.join(","));
    let few = counting::<MaxPlus, 1, _>(&*many, vec![free.clone(); 52]).unwrap();
    assert_eq!(count(few.1), Some(1 << 52));
    let more: Vec<usize> = (0..64).collect();
    let labels = Subscripts::new(more.iter().map(|&l| vec![l]), Vec::<usize>::new());
    let over = counting::<MaxPlus, 1, _>(labels, vec![free; 64]).unwrap_err();
    assert_eq!(over, ExtError::Einsum(EinsumError::CountOverflow));
}

/// Counts one pair of each tie and none that underflows, and is undefined where a value absorbs others.
#[test]
fn counts_at_the_edges() {
    // 10⁻⁴⁰⁰ rounds to 0, which no assignment attains.
    let tiny = vec![f64s(&[1e-200; 2]); 2];
    let (likely, ways) = counting::<MaxMul, 1, _>("i,i->", tiny).unwrap();
    assert_eq!((numbers(likely), count(ways)), (vec![0.0], Some(0)));
    let overflow = ExtError::Einsum(EinsumError::CountOverflow);
    for text in ["i,j->", "i,j->i"] {
        let far = vec![f64s(&[f64::INFINITY, 1.0]), f64s(&[1.0, 2.0])];
        assert_eq!(counting::<MaxPlus, 1, _>(text, far).unwrap_err(), overflow, "{text}");
    }
    // In (min, +), −∞ absorbs as NaN does, and +∞ is the zero.
    for absorbing in [f64::NAN, f64::NEG_INFINITY] {
        let counted = counting::<MinPlus, 1, _>("i->", vec![f64s(&[absorbing, 1.0])]);
        assert_eq!(counted.unwrap_err(), overflow, "{absorbing}");
    }
    let x = vec![f64s(&[f64::INFINITY, 1.0, 1.0])];
    assert_eq!(count(counting::<MinPlus, 1, _>("i->", x).unwrap().1), Some(2));
}

/// A NaN is listed first among the values.
#[test]
fn one_nan_is_listed_once() {
    let operands = vec![f64s(&[f64::NAN, 1.0, 3.0]), f64s(&[2.0])];
    let best = numbers::<1>(k_best::<MaxPlus, 4, 1, _>("i,j->", operands).unwrap());
    assert!(best[0].is_nan());
    assert_eq!(best[1..], [5.0, 3.0, f64::NEG_INFINITY]);
}

/// Lists of 3 numbers take three times the memory of numbers, numbers with counts four times: a limit that is one
/// byte smaller is an error.
#[test]
fn budgets_count_lists_and_counts() {
    let x = f64s(&[1.0, 2.0, 3.0, 4.0]);
    let plan = Einsum::new("i,j->ij").unwrap().plan(&[&[4], &[4]], 8).unwrap();
    let needed = plan.cost().bytes(8) as usize;
    let outer = |bytes: usize| Einsum::new("i,j->ij").unwrap().memory(bytes);
    let too_small = |x: ExtError| matches!(x, ExtError::Einsum(EinsumError::BudgetTooSmall { .. }));
    let lists = |bytes| k_best::<MaxPlus, 3, 3, _>(outer(bytes), vec![x.clone(), x.clone()]);
    assert!(lists(3 * needed).is_ok());
    assert!(too_small(lists(16 * 3 * 8 - 1).unwrap_err()));
    let counts = |bytes| counting::<MaxPlus, 2, _>(outer(bytes), vec![x.clone(), x.clone()]);
    assert!(counts(4 * needed).is_ok());
    assert!(too_small(counts(16 * 4 * 8 - 1).unwrap_err()));
}
