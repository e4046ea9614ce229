//! Einsum over graded operands, in an order that is found for it.

use hashbrown::HashMap;
use t4a_diff::Array;
use t4a_einsum::Einsum;

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::leg::Leg;
use crate::sector::Sector;

const OP: &str = "einsum";

/// A tensor and the labels of its legs.
type Labelled<S, A> = (GradedTensor<S, A>, Vec<char>);

/// The contraction of `ab,bc->ac` and the like: each label is on two legs, which are dual to each other, or
/// on one and in the output. Contractions go in pairs, in an order that is searched for; that of fermions
/// does not depend on it, but on the order of the operands where several are odd.
///
/// # Errors
/// `Invalid` for other subscripts, `Rank`, `LegMismatch`, those of contractions.
pub fn einsum<S: Sector, A: Array>(
    subscripts: &str,
    operands: &[&GradedTensor<S, A>],
) -> Result<GradedTensor<S, A>> {
    let (labels, output) = parse(subscripts, operands)?;
    // Traces first: they make operands smaller.
    let mut slots: Vec<Option<Labelled<S, A>>> = Vec::new();
    for (x, labels) in operands.iter().zip(&labels) {
        let (mut pairs, mut kept) = (Vec::new(), Vec::new());
        for (i, label) in labels.iter().enumerate() {
            match labels.iter().enumerate().position(|(j, other)| j != i && other == label) {
                Some(j) if i < j => pairs.push((i, j)),
                Some(_) => {}
                None => kept.push(*label),
            }
        }
        let x = if pairs.is_empty() { (*x).clone() } else { x.trace(&pairs)? };
        slots.push(Some((x, kept)));
    }
    if slots.len() > 1 {
        for pair in order(&slots, &output)? {
            let taken: Vec<_> = pair.iter().filter_map(|&slot| slots[slot].take()).collect();
            let [(a, of_a), (b, of_b)] = &taken[..] else {
                unreachable!("a step of several operands takes two")
            };
            let mut axes = (Vec::new(), Vec::new());
            for (i, label) in of_a.iter().enumerate() {
                if let Some(j) = of_b.iter().position(|other| other == label) {
                    axes.0.push(i);
                    axes.1.push(j);
                }
            }
            let kept = of_a.iter().chain(of_b).copied();
            let kept = kept.filter(|label| !(of_a.contains(label) && of_b.contains(label)));
            slots.push(Some((a.contract(b, &axes.0, &axes.1)?, kept.collect())));
        }
    }
    let Some((x, labels)) = slots.pop().flatten() else {
        return Err(invalid("at least one operand is required".into()));
    };
    if labels == output {
        return Ok(x);
    }
    let axis = |label: &char| labels.iter().position(|other| other == label);
    let axes: Vec<usize> = output.iter().filter_map(axis).collect();
    x.permute(&axes, x.spec().rows())
}

fn invalid(message: String) -> StructuredError {
    StructuredError::Invalid { op: OP, message }
}

/// Pairs of slots: operands, then results of steps.
fn order<S: Sector, A: Array>(
    slots: &[Option<Labelled<S, A>>],
    output: &[char],
) -> Result<Vec<Vec<usize>>> {
    let given = slots.iter().flatten();
    let inputs: Vec<String> = given.clone().map(|(_, labels)| labels.iter().collect()).collect();
    let shapes: Vec<Vec<usize>> = given.map(|(x, _)| x.spec().shape()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let output: String = output.iter().collect();
    let plan = Einsum::new(&format!("{}->{output}", inputs.join(",")))?.plan(&shapes, 8)?;
    Ok(plan.steps()?.iter().map(|step| step.slots.to_vec()).collect())
}

/// The labels of the operands and the output, checked against the legs.
fn parse<S: Sector, A: Array>(
    subscripts: &str,
    operands: &[&GradedTensor<S, A>],
) -> Result<(Vec<Vec<char>>, Vec<char>)> {
    let text: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
    let Some((inputs, output)) = text.split_once("->") else {
        return Err(invalid(format!("{subscripts}: the output is to be named")));
    };
    let labels: Vec<Vec<char>> = inputs.split(',').map(|part| part.chars().collect()).collect();
    let output: Vec<char> = output.chars().collect();
    if labels.len() != operands.len() {
        let (n, given) = (labels.len(), operands.len());
        return Err(invalid(format!("{subscripts}: {n} operands are required, given {given}")));
    }
    let mut seen: HashMap<char, Vec<(usize, &Leg<S>)>> = HashMap::new();
    for (x, labels) in operands.iter().zip(&labels) {
        let legs = x.spec().legs();
        if legs.len() != labels.len() {
            let (required, given) = (labels.len(), legs.len());
            return Err(StructuredError::Rank { op: OP, required, given });
        }
        for (axis, (&label, leg)) in labels.iter().zip(legs).enumerate() {
            seen.entry(label).or_default().push((axis, leg));
        }
    }
    for (label, legs) in &seen {
        let kept = output.iter().filter(|other| *other == label).count();
        match (&legs[..], kept) {
            ([_], 1) => {}
            ([(axis, lhs), (other, rhs)], 0) => {
                if !lhs.contracts_with(rhs) {
                    return Err(StructuredError::LegMismatch {
                        op: OP,
                        axis: *axis,
                        lhs: lhs.to_string(),
                        other: *other,
                        rhs: rhs.to_string(),
                        required: "legs of one label that are dual to each other",
                    });
                }
            }
            _ => {
                return Err(invalid(format!(
                    "{subscripts}: label {label} is to be on two legs, or on one and in the output"
                )));
            }
        }
    }
    match output.iter().find(|label| !seen.contains_key(*label)) {
        Some(label) => Err(invalid(format!("{subscripts}: label {label} is on no operand"))),
        None => Ok((labels, output)),
    }
}
