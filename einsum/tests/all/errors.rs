//! One test per error.

use t4a_algebra::Standard;
use t4a_einsum::{Einsum, EinsumError as E, Path, Result};
use t4a_tensor::{AnyTensor, Tensor};

fn plan(text: &str, shapes: &[&[usize]]) -> E {
    Einsum::new(text).unwrap().plan(shapes, 8).unwrap_err()
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    assert_eq!(plan("ij,jk", &[&[2, 3]]), E::OperandCount { expected: 2, given: 1 });
    assert!(matches!(plan("ij,jk", &[&[2, 3], &[3]]), E::Rank { operand: 1, .. }));
    assert!(matches!(plan("...ij", &[&[3]]), E::Rank { operand: 0, .. }));
    let conflict =
        E::SizeConflict { label: 'j'.into(), size: 4, operand: 1, other_size: 3, other_operand: 0 };
    assert_eq!(plan("ij,jk", &[&[2, 3], &[4, 5]]), conflict);
    assert!(matches!(plan("ii", &[&[2, 3]]), E::SizeConflict { operand: 0, other_operand: 0, .. }));
    assert!(matches!(plan("ii,i", &[&[1, 3], &[3]]), E::SizeConflict { .. }));
    assert_eq!(plan("...i->i", &[&[2, 3]]), E::EllipsisDropped);
    assert_eq!(plan("i->ik", &[&[2]]), E::UnknownOutputLabel { label: 'k'.into() });
    let half = Einsum::new("i->ikl").unwrap().size('k', 2).plan(&[&[2]], 8).unwrap_err();
    assert_eq!(half, E::MissingSize { label: 'l'.into() });
    let twice = Einsum::new("i->ik").unwrap().size('k', 2).size('k', 3).plan(&[&[2]], 8);
    assert_eq!(twice.unwrap_err(), E::DuplicateSize { label: 'k'.into(), first: 2, second: 3 });
    let other = Einsum::new("i->i").unwrap().size('i', 3).plan(&[&[2]], 8).unwrap_err();
    assert!(matches!(other, E::GivenSizeConflict { given: 3, size: 2, operand: 0, .. }));
    let huge = plan("i,j,k->ijk", &[&[1 << 30], &[1 << 30], &[1 << 30]]);
    assert!(matches!(huge, E::SizeOverflow { .. }));
}

#[test]
fn paths_that_do_not_contract_are_refused() {
    let path = |steps: Vec<Vec<usize>>| {
        let e = Einsum::new("ij,jk,kl").unwrap().path(Path::new(steps));
        e.plan(&[&[2, 2], &[2, 2], &[2, 2]], 8)
    };
    let step = |step, indices, remaining| E::PathStep { step, indices, remaining };
    assert_eq!(path(vec![vec![0, 3]]).unwrap_err(), step(0, vec![0, 3], 3));
    assert_eq!(path(vec![vec![1, 1]]).unwrap_err(), step(0, vec![1, 1], 3));
    assert_eq!(path(vec![vec![0, 1], vec![0, 2]]).unwrap_err(), step(1, vec![0, 2], 2));
    assert_eq!(path(vec![vec![]]).unwrap_err(), step(0, vec![], 3));
    assert_eq!(path(vec![vec![0, 1]]).unwrap_err(), E::PathIncomplete { remaining: 2 });
    assert!(path(vec![vec![0, 1], vec![0, 1]]).is_ok());
    assert!(path(vec![vec![2, 1, 0]]).is_ok());
}

#[test]
fn a_budget_below_the_result_is_refused_before_work() {
    let e = Einsum::new("ij,jk->ik").unwrap().memory(100);
    let error = e.plan(&[&[64, 64], &[64, 64]], 8).unwrap_err();
    assert!(matches!(error, E::BudgetTooSmall { budget: 100, needed } if needed > 100));
    let text = error.to_string();
    assert!(
        text.starts_with("einsum: no plan fits into 100 bytes, the smallest found takes "),
        "{text}"
    );
    assert!(
        text.contains("`Einsum::memory`, `BackendConfig::einsum_memory` or `T4A_EINSUM_MEMORY`"),
        "{text}"
    );
    let large = E::BudgetTooSmall { budget: 3 << 29, needed: usize::MAX }.to_string();
    assert!(large.contains("into 1.5 GiB") && large.contains("takes more than can be"), "{large}");
}

#[test]
fn operands_must_be_those_of_the_plan() -> Result<()> {
    let plan = Einsum::new("ij,jk")?.plan(&[&[2, 3], &[3, 2]], 8)?;
    let (a, b) = (Tensor::<f64>::zeros(&[2, 3])?, Tensor::<f64>::zeros(&[3, 3])?);
    let error = plan.contract::<Standard, f64>(&[&a, &b]).unwrap_err();
    assert!(matches!(error, E::PlanShape { operand: 1, .. }));
    let error = plan.contract::<Standard, f64>(&[&a]).unwrap_err();
    assert!(matches!(error, E::OperandCount { expected: 2, given: 1 }));
    Ok(())
}

#[test]
fn dtypes_must_agree() -> Result<()> {
    let a: AnyTensor = Tensor::<f64>::zeros(&[2, 2])?.into();
    let b: AnyTensor = Tensor::<f32>::zeros(&[2, 2])?.into();
    let e = Einsum::new("ij,jk")?;
    assert!(matches!(e.contract_any(&[&a, &b]).unwrap_err(), E::DTypeMismatch { operand: 1, .. }));
    assert_eq!(e.contract_any(&[&a, &a])?.shape(), [2, 2]);
    let flags: AnyTensor = Tensor::full(&[2, 2], true)?.into();
    assert!(matches!(e.contract_any(&[&flags, &flags]).unwrap_err(), E::Tensor(_)));
    assert!(matches!(e.contract_any(&[]).unwrap_err(), E::OperandCount { .. }));
    Ok(())
}

/// A summed label has the size of its axes, also if that is 1; a size for an unknown label is an error.
#[test]
fn sizes_are_given_to_labels_of_the_output_only() -> Result<()> {
    let sized = |text: &str, size: usize| Einsum::new(text).unwrap().size('b', size);
    let conflict = E::GivenSizeConflict { label: 'b'.into(), given: 4, size: 1, operand: 0 };
    assert_eq!(sized("ab->a", 4).plan(&[&[3, 1]], 8).unwrap_err(), conflict);
    assert_eq!(sized("ab,b->a", 4).plan(&[&[3, 1], &[1]], 8).unwrap_err(), conflict);
    let unused = E::UnusedSize { label: 'b'.into(), given: 4 };
    assert_eq!(sized("a->a", 4).plan(&[&[3]], 8).unwrap_err(), unused);
    // Valid sizes: that of the axes, and any size for axes of size 1 along the output.
    let x = Tensor::from_vec(vec![1, 2, 3], &[3, 1])?;
    assert_eq!(sized("ab->a", 1).contract::<Standard, i32>(&[&x])?.to_vec()?, [1, 2, 3]);
    let y = sized("ab->ba", 2).contract::<Standard, i32>(&[&x])?;
    assert_eq!((y.shape(), y.to_vec()?), (&[2, 3][..], vec![1, 2, 3, 1, 2, 3]));
    Ok(())
}

/// No integer overflow: not in shapes, not in products of labels, not in budgets.
#[test]
fn sizes_beyond_the_address_space_are_refused() {
    let huge = usize::MAX;
    let of = |text: &str, shapes: &[&[usize]]| Einsum::new(text).unwrap().plan(shapes, 8);
    assert!(matches!(of("i->", &[&[huge]]), Err(E::SizeOverflow { shape }) if shape == [huge]));
    assert!(matches!(of("ij->", &[&[1 << 32, 1 << 31]]), Err(E::SizeOverflow { .. })));
    assert!(matches!(of("i->iiii", &[&[1 << 20]]), Err(E::SizeOverflow { .. })));
    let far = Einsum::new("i->ni").unwrap().size('n', 1 << 62).plan(&[&[4]], 8);
    assert!(matches!(far, Err(E::SizeOverflow { .. })));
    // The number of multiply-adds is unlimited as long as it can be represented.
    let k = 1 << 48;
    let sums = Einsum::new("i,j,k->").unwrap().memory(huge);
    assert!(sums.plan(&[&[k], &[k], &[k]], 8).unwrap().shape().is_empty());
    // 130 labels of size 2 in one tensor, forced by the path.
    let first = (0..65).map(|i| vec![2 * i, 2 * i + 1]);
    let second = (0..65).map(|i| vec![(2 * i + 1) % 130, (2 * i + 2) % 130]);
    let terms: Vec<Vec<usize>> = first.chain(second).collect();
    let network = Einsum::from(t4a_einsum::Subscripts::new(terms, Vec::<usize>::new()));
    let outer = (0..64).map(|step| if step == 0 { vec![0, 1] } else { vec![0, 129 - step] });
    let rest = (0..65).map(|step| vec![0, 65 - step]);
    let path = Path::new(outer.chain(rest).collect());
    for budget in [1 << 40, huge] {
        let error = network.clone().path(path.clone()).memory(budget);
        let error = error.plan(&[&[2, 2][..]; 130], 8).unwrap_err();
        assert!(matches!(error, E::BudgetTooSmall { .. }), "{error}");
    }
    assert!(network.memory(huge).plan(&[&[2, 2][..]; 130], 8).is_ok());
}

/// An axis of size 0 next to axes whose product overflows: no elements, no error.
#[test]
fn empty_tensors_may_have_long_axes() -> Result<()> {
    let (huge, one) = (1 << 24, Tensor::<f64>::zeros(&[1, 1, 1])?);
    let empty = one.expand(&[0, huge, huge])?;
    let y = Einsum::new("ijk->i")?.contract::<Standard, f64>(&[&empty])?;
    assert_eq!(y.shape(), [0]);
    let y = Einsum::new("ijk->")?.contract::<Standard, f64>(&[&empty])?;
    assert_eq!(y.to_vec()?, [0.0]);
    let scalar = Tensor::<f64>::zeros(&[])?;
    let written = Einsum::new("->ffc")?.size('c', 1 << 48).size('f', 0);
    assert_eq!(written.contract::<Standard, f64>(&[&scalar])?.shape(), [0, 0, 1 << 48]);
    let plan = Einsum::new("ijk,jk->")?.memory(0).plan(&[&[0, huge, huge], &[2, 2]], 8);
    assert!(matches!(plan, Err(E::SizeConflict { .. })));
    Ok(())
}

#[test]
fn budgets_of_nothing_are_refused() {
    let e = Einsum::new("ij,jk->ik").unwrap().memory(0);
    assert!(matches!(e.plan(&[&[2, 2], &[2, 2]], 8), Err(E::BudgetTooSmall { budget: 0, .. })));
    // Elements of 0 bytes need no memory.
    assert!(e.plan(&[&[2, 2], &[2, 2]], 0).is_ok());
}
