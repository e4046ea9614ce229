//! Removal of identity operations, and compact storage of constants of one number.
//!
//! ```text
//! sum or mean along an axis of size 1      its operand + 0, which is +0 for −0; its operand if that is a sum
//! product or quotient with ones            the other operand
//! constant of one number                   one element with stride 0
//! ```
//!
//! Reverse passes contain many of them: the initial cotangent, factors of powers, sums that undo a broadcast of a
//! tensor that already has the target shape.

use burn_backend::Backend;
use burn_t4a::T4aTensor;
use t4a_tensor::{AnyTensor, DType, Number};

use crate::fuse::{BinaryOp, Elementwise, ReduceOp, engine, is_engine, same, squeezed};
use crate::recording::Instruction;
use crate::tensor::{AnyPrimitive, TensorType};

/// Replaces constants of one number by broadcast views of one element, where only elementwise instructions use them:
/// sums and products add in an order that depends on the layout.
pub(crate) fn repeated<B: Backend>(
    constants: Vec<(usize, AnyPrimitive<B>)>,
    instructions: &[Instruction<B>],
    outputs: &[usize],
    values: usize,
) -> Vec<(usize, AnyPrimitive<B>)> {
    if !is_engine::<B>() {
        return constants;
    }
    let mut is_read = vec![false; values];
    outputs.iter().for_each(|&value| is_read[value] = true);
    for one in instructions {
        if matches!(one.elementwise, None | Some(Elementwise::Reduce(..))) {
            one.operands.iter().for_each(|&value| is_read[value] = true);
        }
    }
    let one = |(value, x): (usize, AnyPrimitive<B>)| {
        let number = if is_read[value] { None } else { uniform(&x) };
        match number.and_then(|number| view(number, &x.meta())) {
            Some(view) => (value, AnyPrimitive::Float(same(view))),
            None => (value, x),
        }
    };
    constants.into_iter().map(one).collect()
}

/// One element, broadcast to a shape.
fn view(number: f64, meta: &TensorType) -> Option<T4aTensor> {
    let dtype = if meta.dtype == burn_backend::DType::F64 { DType::F64 } else { DType::F32 };
    let one = AnyTensor::full(&vec![1; meta.shape.len()], Number::Float(number), dtype).ok()?;
    T4aTensor::from_any(one.expand(&meta.shape).ok()?).ok()
}

/// The common value of all elements, if there is one.
fn uniform<B: Backend>(x: &AnyPrimitive<B>) -> Option<f64> {
    fn of<T: Copy + Into<f64>>(all: &[T]) -> Option<f64> {
        let (&first, rest) = all.split_first()?;
        let first: f64 = first.into();
        // +0 and -0 compare equal but differ in bits; NaN compares unequal to itself. Neither is merged.
        let is_same = |x: f64| x == first && x.is_sign_negative() == first.is_sign_negative();
        rest.iter().all(|&x| is_same(x.into())).then_some(first)
    }
    let AnyPrimitive::Float(x) = x else { return None };
    let x = squeezed(engine(AnyPrimitive::<B>::Float(x.clone()))).ok()?;
    match x.dtype() {
        DType::F32 => of(x.typed::<f32>().ok()?.as_slice()?),
        DType::F64 => of(x.typed::<f64>().ok()?.as_slice()?),
        _ => None,
    }
}

/// Removes identity instructions; uses of their results are replaced by their operands.
pub(crate) fn simplify<B: Backend>(
    instructions: Vec<Instruction<B>>,
    constants: &[(usize, AnyPrimitive<B>)],
    outputs: &mut [usize],
    metas: &[TensorType],
) -> Vec<Instruction<B>> {
    let mut is_one = vec![false; metas.len()];
    if is_engine::<B>() {
        for (value, x) in constants {
            is_one[*value] = uniform(x) == Some(1.0);
        }
    }
    // Sums begin with +0, so that none is −0.
    let mut is_sum = vec![false; metas.len()];
    let mut alias: Vec<usize> = (0..metas.len()).collect();
    let mut kept = Vec::with_capacity(instructions.len());
    for mut one in instructions {
        one.operands.iter_mut().for_each(|value| *value = alias[*value]);
        let equal = one.elementwise.and_then(|what| match what {
            Elementwise::Reduce(_, axis) if metas[one.operands[0]].shape.get(axis) == Some(&1) => {
                one.elementwise =
                    is_engine::<B>().then_some(Elementwise::Scalar(BinaryOp::Add, 0.0));
                is_sum[one.first] = true;
                is_sum[one.operands[0]].then_some(0)
            }
            Elementwise::Reduce(ReduceOp::Sum, _) => {
                is_sum[one.first] = true;
                None
            }
            Elementwise::Scalar(BinaryOp::Mul | BinaryOp::Div, 1.0) => Some(0),
            Elementwise::Binary(BinaryOp::Mul | BinaryOp::Div) if is_one[one.operands[1]] => {
                Some(0)
            }
            Elementwise::Binary(BinaryOp::Mul) if is_one[one.operands[0]] => Some(1),
            _ => None,
        });
        match equal.map(|at| one.operands[at]) {
            Some(operand) if one.pure && metas[operand] == metas[one.first] => {
                alias[one.first] = operand;
            }
            _ => kept.push(one),
        }
    }
    outputs.iter_mut().for_each(|value| *value = alias[*value]);
    kept
}
