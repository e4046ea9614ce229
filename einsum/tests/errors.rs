//! One test per way of being wrong.

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
