//! Einsum of structures: contraction order, and the plans of all contractions as one.

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;
use t4a_einsum::{Einsum, EinsumError};
use t4a_tensor::config::einsum_memory;

use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::leg::Leg;
use crate::operation::ContractionNetwork;
use crate::plan::{SequencePlan, SequenceStep};
use crate::sector::Sector;
use crate::spec::Spec;

const OP: &str = "einsum";

/// Bytes of an element in estimates of memory.
const ELEMENT: usize = 8;

/// Structure with the labels of its legs and its slot.
struct LabelledSpec<S> {
    spec: Spec<S>,
    labels: Vec<char>,
    slot: u32,
}

impl<S: Sector> Spec<S> {
    /// Contraction such as `ab,bc->ac`. Each label is on two mutually dual legs, or on one leg and in the output.
    /// Pairwise contractions run in an optimised order. For fermions the value does not depend on that order, but on
    /// the order of the operands if several are odd.
    ///
    /// Cost: that of the order search and of the plans on the first call, then a cache look-up.
    ///
    /// # Errors
    /// `Invalid` for other subscripts, `Rank`, `LegMismatch`; errors of the contractions; `Einsum` with `BudgetTooSmall` if
    /// the stored elements of intermediates and result, of 8 bytes, exceed the limit for intermediates
    /// ([`BackendConfig::einsum_memory`](t4a_tensor::config::BackendConfig::einsum_memory)), where one is set.
    pub fn einsum(subscripts: &str, operands: &[&Self]) -> Result<(Self, ContractionNetwork)> {
        let ids: SmallVec<[u64; 8]> = operands.iter().map(|spec| spec.id()).collect();
        let weight = |planned: &(Self, Arc<SequencePlan>)| planned.1.bytes();
        let planned =
            cached((OP, subscripts.to_owned(), ids), weight, |_| plan(subscripts, operands))?;
        if let Some(budget) = einsum_memory() {
            let needed = planned.1.peak().saturating_mul(ELEMENT);
            if needed > budget {
                return Err(EinsumError::BudgetTooSmall { budget, needed }.into());
            }
        }
        Ok((planned.0.clone(), ContractionNetwork { plan: planned.1.clone(), complex: false }))
    }
}

fn plan<S: Sector>(
    subscripts: &str,
    operands: &[&Spec<S>],
) -> Result<(Spec<S>, Arc<SequencePlan>)> {
    let (labels, output) = parse(subscripts, operands)?;
    let lens: Vec<usize> = operands.iter().map(|spec| spec.len()).collect();
    let mut steps: Vec<SequenceStep> = Vec::new();
    let next = |steps: &[SequenceStep]| (operands.len() + steps.len() - 1) as u32;
    // Traces first: they reduce the size of the operands.
    let mut slots: Vec<Option<LabelledSpec<S>>> = Vec::new();
    for (slot, (&spec, labels)) in operands.iter().zip(labels).enumerate() {
        let (mut pairs, mut kept) = (Vec::new(), Vec::new());
        for (i, label) in labels.iter().enumerate() {
            match labels.iter().enumerate().position(|(j, other)| j != i && other == label) {
                Some(j) if i < j => pairs.push((i, j)),
                Some(_) => {}
                None => kept.push(*label),
            }
        }
        let slot = slot as u32;
        slots.push(Some(match pairs.is_empty() {
            true => LabelledSpec { spec: spec.clone(), labels, slot },
            false => {
                let (spec, trace) = spec.trace(&pairs)?;
                steps.push(SequenceStep::Rearrange(slot, trace.plan));
                LabelledSpec { spec, labels: kept, slot: next(&steps) }
            }
        }));
    }
    if slots.len() > 1 {
        for pair in order(&slots, &output)? {
            let taken: Vec<_> = pair.iter().filter_map(|&slot| slots[slot].take()).collect();
            let [a, b] = &taken[..] else { unreachable!("a step of several operands takes two") };
            let mut axes = (Vec::new(), Vec::new());
            for (i, label) in a.labels.iter().enumerate() {
                if let Some(j) = b.labels.iter().position(|other| other == label) {
                    axes.0.push(i);
                    axes.1.push(j);
                }
            }
            let (spec, product) = a.spec.contract(&b.spec, &axes.0, &axes.1)?;
            let summed = |label: &char| a.labels.contains(label) && b.labels.contains(label);
            let labels = a.labels.iter().chain(&b.labels).copied();
            let labels = labels.filter(|label| !summed(label)).collect();
            steps.push(SequenceStep::Contract([a.slot, b.slot], product.plan));
            slots.push(Some(LabelledSpec { spec, labels, slot: next(&steps) }));
        }
    }
    let Some(LabelledSpec { mut spec, labels, slot }) = slots.pop().flatten() else {
        return Err(invalid("at least one operand is required".into()));
    };
    if labels != output {
        let axis = |label: &char| labels.iter().position(|other| other == label);
        let axes: Vec<usize> = output.iter().filter_map(axis).collect();
        let turned = spec.permute(&axes, spec.rows())?;
        spec = turned.0;
        steps.push(SequenceStep::Rearrange(slot, turned.1.plan));
    }
    Ok((spec, Arc::new(SequencePlan::new(lens, steps)?)))
}

fn invalid(message: String) -> StructuredError {
    StructuredError::Invalid { op: OP, message }
}

/// Contraction path: pairs of slots; slots are the operands, then the results of steps.
fn order<S: Sector>(slots: &[Option<LabelledSpec<S>>], output: &[char]) -> Result<Vec<Vec<usize>>> {
    let given = slots.iter().flatten();
    let inputs: Vec<String> = given.clone().map(|x| x.labels.iter().collect()).collect();
    let output: String = output.iter().collect();
    let subscripts = format!("{}->{output}", inputs.join(","));
    let einsum = Einsum::new(&subscripts)?;
    if slots.len() == 2 {
        return Ok(vec![vec![0, 1]]);
    }
    let shapes: Vec<Vec<usize>> = given.map(|x| x.spec.shape()).collect();
    // Sizes of 0 are replaced by 1: they give no information for the order.
    let shapes: Vec<Vec<usize>> =
        shapes.into_iter().map(|shape| shape.into_iter().map(|n| n.max(1)).collect()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    // Dense arrays of these shapes are never made, so that their size is no reason to slice labels.
    let plan = einsum.memory(usize::MAX).plan(&shapes, ELEMENT)?;
    Ok(plan.steps()?.iter().map(|step| step.slots.to_vec()).collect())
}

/// Labels of the operands and of the output, checked against the legs.
fn parse<S: Sector>(
    subscripts: &str,
    operands: &[&Spec<S>],
) -> Result<(Vec<Vec<char>>, Vec<char>)> {
    let text: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
    let Some((inputs, output)) = text.split_once("->") else {
        return Err(invalid(format!("{subscripts}: an explicit output is required")));
    };
    let labels: Vec<Vec<char>> = inputs.split(',').map(|part| part.chars().collect()).collect();
    let output: Vec<char> = output.chars().collect();
    if labels.len() != operands.len() {
        let (n, given) = (labels.len(), operands.len());
        return Err(invalid(format!("{subscripts}: {n} operands are required, given {given}")));
    }
    let mut seen: HashMap<char, Vec<(usize, &Leg<S>)>> = HashMap::new();
    for (x, labels) in operands.iter().zip(&labels) {
        let legs = x.legs();
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
        Some(label) => Err(invalid(format!("{subscripts}: label {label} is not on an operand"))),
        None => Ok((labels, output)),
    }
}
