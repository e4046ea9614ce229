//! Optimisation and execution of a recording.
//!
//! ```text
//! dead code    removes instructions that no output needs; random numbers stay, so that later draws are unchanged
//! simplify     removes identity operations
//! CSE          merges equal methods of equal operands
//! fusion       merges chains of elementwise instructions
//! liveness     donates a value at its last use, so that its memory can be reused
//! ```
//!
//! Constant folding happens during the recording: operations that depend on no input are not recorded.

use std::cell::OnceCell;
use std::sync::Arc;

use burn_backend::Backend;

use crate::error::{CompileError, Result, caught};
use crate::explain::size;
use crate::fuse::{fuse, is_repeated};
use crate::recording::{Execute, Frame, Instruction};
use crate::simplify::{repeated, simplify};
use crate::tensor::{AnyPrimitive, TensorType};
use crate::trace::Source;
use crate::words::Word;

/// Instruction of a program: one instruction of the recording, or several fused ones.
pub(crate) struct Unit<B: Backend> {
    pub(crate) name: &'static str,
    pub(crate) step: Arc<dyn Execute<B>>,
    pub(crate) operands: Vec<usize>,
    pub(crate) results: Vec<usize>,
    /// The fused instructions; `None` if it is a single one.
    pub(crate) members: Option<Arc<[Instruction<B>]>>,
}

impl<B: Backend> Unit<B> {
    /// Names of the fused instructions; empty if it is a single one.
    pub(crate) fn parts(&self) -> Vec<&'static str> {
        self.members.iter().flat_map(|members| members.iter().map(|one| one.name)).collect()
    }
}

/// Operand: its slot, and whether this is its last use.
#[derive(Clone, Copy)]
struct Use {
    slot: usize,
    last: bool,
}

struct SlotInstruction<B: Backend> {
    unit: Unit<B>,
    operands: Vec<Use>,
    /// Slots of the results; `None` for unused results.
    results: Vec<Option<usize>>,
}

/// Compiled form of a function: instructions over slots of values.
pub(crate) struct Program<B: Backend> {
    slots: usize,
    inputs: Vec<Option<usize>>,
    constants: Vec<(usize, AnyPrimitive<B>)>,
    lines: Vec<SlotInstruction<B>>,
    outputs: Vec<Use>,
    /// Values of the outputs.
    results: Vec<usize>,
    metas: Vec<TensorType>,
}

/// Dead code elimination: keeps random instructions and those whose results are needed.
pub(crate) fn live<B: Backend>(
    instructions: Vec<Instruction<B>>,
    outputs: &[usize],
    values: usize,
) -> Vec<Instruction<B>> {
    let mut needed = vec![false; values];
    outputs.iter().for_each(|&value| needed[value] = true);
    let mut kept: Vec<_> = instructions
        .into_iter()
        .rev()
        .filter(|one| {
            let any = (one.first..one.first + one.results).any(|value| needed[value]);
            let keep = any || !one.pure;
            if keep {
                one.operands.iter().for_each(|&value| needed[value] = true);
            }
            keep
        })
        .collect();
    kept.reverse();
    kept
}

/// Common subexpression elimination. `detach` and `set_require_grad` are kept separate: they create leaves of a tape,
/// and each leaf has a gradient of its own.
pub(crate) fn unique<B: Backend>(
    instructions: Vec<Instruction<B>>,
    outputs: &mut [usize],
    values: usize,
) -> Vec<Instruction<B>> {
    let mut alias: Vec<usize> = (0..values).collect();
    // Kept instructions by their first operand, with their words, which are compared only where name and operands are
    // equal.
    type Known = (usize, OnceCell<Option<Vec<Word>>>);
    let mut users: Vec<Vec<Known>> = Vec::new();
    users.resize_with(values + 1, Vec::new);
    let mut kept: Vec<Instruction<B>> = Vec::with_capacity(instructions.len());
    for mut one in instructions {
        one.operands.iter_mut().for_each(|value| *value = alias[*value]);
        let is_leaf = matches!(one.name, "float_detach" | "float_set_require_grad");
        if one.pure && !is_leaf {
            let users = &mut users[one.operands.first().copied().unwrap_or(values)];
            let words = OnceCell::new();
            let equal = users.iter().find(|(at, other_words)| {
                let other = &kept[*at];
                other.name == one.name && other.operands == one.operands && {
                    let words = words.get_or_init(|| one.step.words());
                    words.is_some() && other_words.get_or_init(|| other.step.words()) == words
                }
            });
            if let Some(&(at, _)) = equal {
                let first = kept[at].first;
                (0..one.results).for_each(|k| alias[one.first + k] = first + k);
                continue;
            }
            users.push((kept.len(), words));
        }
        kept.push(one);
    }
    outputs.iter_mut().for_each(|value| *value = alias[*value]);
    kept
}

impl<B: Backend> Program<B> {
    /// Compiles a recording.
    pub(crate) fn new(source: Source<B>, fused: bool) -> Self {
        let Source { metas, inputs, constants, instructions, mut outputs } = source;
        let values = metas.len();
        let instructions = live(instructions, &outputs, values);
        let constants = repeated(constants, &instructions, &outputs, values);
        let instructions = simplify(instructions, &constants, &mut outputs, &metas);
        let instructions = unique(instructions, &mut outputs, values);
        let instructions = live(instructions, &outputs, values);
        let one = constants.iter().filter(|(_, x)| is_repeated(x)).map(|(value, _)| *value);
        let units = fuse(instructions, &metas, &outputs, &one.collect(), fused);

        // Last line that uses each value; outputs are used after all lines.
        let mut last = vec![None; values];
        for (at, unit) in units.iter().enumerate() {
            unit.operands.iter().for_each(|&value| last[value] = Some(at));
        }
        outputs.iter().for_each(|&value| last[value] = Some(units.len()));

        let (mut free, mut slots, mut slot) = (Vec::new(), 0, vec![None; values]);
        let mut place = |free: &mut Vec<usize>| {
            free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            })
        };
        for value in 0..inputs {
            slot[value] = last[value].map(|_| place(&mut free));
        }
        let input_slots = slot[..inputs].to_vec();
        let mut kept = Vec::new();
        for (value, x) in constants {
            if last[value].is_some() {
                let at = place(&mut free);
                slot[value] = Some(at);
                kept.push((at, x));
            }
        }
        let is_constant: Vec<bool> =
            (0..slot.len()).map(|v| v >= inputs && slot[v].is_some()).collect();
        let mut lines = Vec::new();
        for (at, unit) in units.into_iter().enumerate() {
            let mut operands = Vec::new();
            for (k, &value) in unit.operands.iter().enumerate() {
                let later = unit.operands[k + 1..].contains(&value);
                let ends = last[value] == Some(at) && !later;
                let slot =
                    slot[value].unwrap_or_else(|| unreachable!("values are made before use"));
                operands.push(Use { slot, last: ends && !is_constant[value] });
            }
            free.extend(operands.iter().filter(|x| x.last).map(|x| x.slot));
            let results = unit.results.iter().map(|&value| {
                slot[value] = last[value].map(|_| place(&mut free));
                slot[value]
            });
            let results = results.collect();
            lines.push(SlotInstruction { unit, operands, results });
        }
        let uses = outputs.iter().enumerate().map(|(k, &value)| Use {
            slot: slot[value].unwrap_or_else(|| unreachable!("outputs are made")),
            last: !outputs[k + 1..].contains(&value) && !is_constant[value],
        });
        let uses = uses.collect();
        let constants = kept;
        Self {
            slots,
            inputs: input_slots,
            constants,
            lines,
            outputs: uses,
            results: outputs,
            metas,
        }
    }

    /// Executes the program. If `checked`, shape and dtype of every result are compared with the recording.
    pub(crate) fn interpret(
        &self,
        inputs: Vec<AnyPrimitive<B>>,
        checked: bool,
    ) -> Result<Vec<AnyPrimitive<B>>> {
        let mut values: Vec<Option<AnyPrimitive<B>>> = Vec::new();
        values.resize_with(self.slots, || None);
        for (x, slot) in inputs.into_iter().zip(&self.inputs) {
            if let Some(slot) = slot {
                values[*slot] = Some(x);
            }
        }
        for (slot, x) in &self.constants {
            values[*slot] = Some(x.clone());
        }
        let take = |values: &mut [Option<AnyPrimitive<B>>], x: &Use| {
            if x.last { values[x.slot].take() } else { values[x.slot].clone() }
        };
        let (mut frame, mut results) = (Frame(Vec::new()), Vec::new());
        for line in &self.lines {
            frame.0.clear();
            frame.0.extend(line.operands.iter().map(|x| take(&mut values, x)));
            results.clear();
            let operation = line.unit.name;
            caught(operation, || line.unit.step.run(&mut frame, &mut results))?
                .map_err(|message| CompileError::Operation { operation, message })?;
            let is = |(value, x): (&usize, &AnyPrimitive<B>)| x.meta() == self.metas[*value];
            let values_of = &line.unit.results;
            if checked
                && (results.len() != values_of.len() || !values_of.iter().zip(&results).all(is))
            {
                let message = "its results are not those of the recording".to_owned();
                return Err(CompileError::Operation { operation, message });
            }
            for (slot, x) in line.results.iter().zip(results.drain(..)) {
                if let Some(slot) = slot {
                    values[*slot] = Some(x);
                }
            }
        }
        let outputs = self
            .outputs
            .iter()
            .map(|x| take(&mut values, x).unwrap_or_else(|| unreachable!("outputs are made")));
        Ok(outputs.collect())
    }

    /// Number of instructions.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Instructions in execution order.
    pub(crate) fn units(&self) -> impl Iterator<Item = &Unit<B>> {
        self.lines.iter().map(|line| &line.unit)
    }

    /// Shape and dtype of every value.
    pub(crate) fn metas(&self) -> &[TensorType] {
        &self.metas
    }

    /// Number of inputs; they are the first values.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Values of the outputs.
    pub(crate) fn outputs(&self) -> &[usize] {
        &self.results
    }

    /// Number of slots, and the maximum number of bytes of all values that exist at once.
    pub(crate) fn memory(&self) -> (usize, u64) {
        let mut held = vec![0; self.slots];
        for (value, slot) in self.inputs.iter().enumerate() {
            slot.iter().for_each(|&slot| held[slot] = size(&self.metas[value]));
        }
        for (slot, x) in &self.constants {
            held[*slot] = size(&x.meta());
        }
        let mut peak: u64 = held.iter().sum();
        for line in &self.lines {
            // Results exist before the operands of the instruction are released.
            let new: u64 = line.unit.results.iter().map(|&value| size(&self.metas[value])).sum();
            peak = peak.max(held.iter().sum::<u64>() + new);
            line.operands.iter().filter(|x| x.last).for_each(|x| held[x.slot] = 0);
            for (&value, slot) in line.unit.results.iter().zip(&line.results) {
                slot.iter().for_each(|&slot| held[slot] = size(&self.metas[value]));
            }
        }
        (self.slots, peak)
    }
}
