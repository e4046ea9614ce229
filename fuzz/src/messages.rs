//! Serialised operations: valid messages, and messages with a few modifications.
//!
//! A message is executed or rejected; the choice is not compared, since operations have tests of their own. The tensors
//! have few elements, so memory use beyond a bound is a failure.

#[path = "../../operations/tests/table/mod.rs"]
mod table;

use std::sync::LazyLock;

use t4a_diff::{Eager, Meta, Operation, Value, check};
use t4a_linalg::cholesky::CholeskyOp;
use t4a_linalg::det::{DetOp, SlogdetOp};
use t4a_linalg::eig::{EigOp, EigvalsOp};
use t4a_linalg::eigh::{EighOp, EigvalshOp};
use t4a_linalg::hermitian::{Elementary, HermitianFunctionOp};
use t4a_linalg::logm::LogmOp;
use t4a_linalg::lstsq::{LstsqMinNormOp, LstsqOp};
use t4a_linalg::lyapunov::LyapunovPositiveOp;
use t4a_linalg::pinv::PinvOp;
use t4a_linalg::polar::{PolarOp, Side};
use t4a_linalg::qr::{Columns, LqOp, QrOp};
use t4a_linalg::solve::SolveOp;
use t4a_linalg::sqrtm::SqrtmOp;
use t4a_linalg::svd::{LowRankOp, SvdFunctionOp, SvdOp, SvdvalsOp, Vectors};
use t4a_linalg::sylvester::SylvesterOp;
use t4a_linalg::triangular::{SolveTriangularOp, Triangle};
use t4a_linalg::{Degeneracy, Linalg, MatrixOp};
use t4a_nn::{Attention, AttentionOptions};
use t4a_operations::{AnyOperation, Jvp, Vjp};
use t4a_scan::{Cell, Recurrent};
use t4a_tensor::{AnyTensor, DType};

use crate::input::Input;

type Case = (AnyOperation, Vec<AnyTensor>);

/// Every operation with operands.
static TABLE: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let rows = table::table().into_iter().chain(layers()).chain(matrices());
    rows.map(|(op, inputs)| (op, inputs.iter().map(tensor).collect())).collect()
});

fn tensor(x: &Value<Eager>) -> AnyTensor {
    let x = match x {
        Value::Float(x) => x.tensor(),
        Value::Integers(x) => x.tensor(),
        Value::Flags(x) => x.tensor(),
    };
    x.expect("an operand of the table").clone()
}

/// Variants of layers with other numbers of operands.
fn layers() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let floats = table::floats;
    let mask = AnyTensor::zeros(&[1, 1, 3, 1], DType::Bool).expect("small");
    let options = AttentionOptions { scale: None, softcap: Some(2.0), causal: true };
    let mut attention: Vec<_> = [1, 2, 3].map(|seed| floats(&[1, 2, 3, 4], seed)).into();
    attention.extend([Value::Flags(mask.into()), floats(&[1, 2, 1, 3], 4)]);
    let mut all = vec![(Attention { options, masked: true, biased: true }.into(), attention)];
    for (cell, gates, states) in
        [(Cell::Tanh, 1, 1), (Cell::Gated, 2, 1), (Cell::Gru, 3, 1), (Cell::Lstm, 4, 2)]
    {
        let op = Recurrent { bias: true, initial: true, reverse: true, ..Recurrent::new(cell) };
        let mut inputs = vec![floats(&[3, 2, 2 * gates], 1), floats(&[2, 2 * gates], 2)];
        inputs.push(floats(&[2 * gates], 3));
        inputs.extend((0..states).map(|k| floats(&[2, 2], 4 + k)));
        all.push((op.into(), inputs));
    }
    all
}

/// Every matrix operation, real and complex.
fn matrices() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let (degeneracy, function) = (Degeneracy::default(), Elementary::Pow(0.5));
    let all: Vec<MatrixOp> = vec![
        SvdOp { vectors: Vectors::Thin, degeneracy }.into(),
        SvdOp { vectors: Vectors::Full, degeneracy }.into(),
        SvdvalsOp.into(),
        SvdFunctionOp { function }.into(),
        LowRankOp { rank: 2 }.into(),
        QrOp { columns: Columns::Thin }.into(),
        LqOp.into(),
        CholeskyOp.into(),
        EighOp { degeneracy }.into(),
        EigvalshOp.into(),
        EigOp { degeneracy }.into(),
        EigvalsOp.into(),
        PolarOp { side: Side::Left }.into(),
        SqrtmOp.into(),
        LogmOp.into(),
        HermitianFunctionOp { function: Elementary::Ln }.into(),
        PinvOp { rtol: None }.into(),
        DetOp.into(),
        SlogdetOp.into(),
        SolveOp.into(),
        SolveTriangularOp { triangle: Triangle::LOWER }.into(),
        LstsqOp.into(),
        LstsqMinNormOp { rtol: Some(1e-3) }.into(),
        LyapunovPositiveOp.into(),
        SylvesterOp.into(),
    ];
    let positive = [4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.5, 0.2, 2.0];
    let row = |op: MatrixOp, complex: bool| {
        let real = (0..op.operands().count())
            .map(|k| Value::Float(check::array(&[3, 3], |i| positive[i] + k as f64)));
        let zero = || Value::Float(check::array(&[3, 3], |_| 0.0));
        let inputs = real.flat_map(|x| match complex {
            true => vec![x, zero()],
            false => vec![x],
        });
        (Linalg { op, complex }.into(), inputs.collect())
    };
    all.into_iter().flat_map(|op| [row(op, false), row(op, true)]).collect()
}

fn metas(tensors: &[AnyTensor]) -> Vec<Meta> {
    let meta = |x: &AnyTensor| Meta { shape: x.shape().into(), dtype: x.dtype() };
    tensors.iter().map(meta).collect()
}

/// An operation of the table or one of its derivatives, with operands; flags are occasionally modified.
fn valid(input: &mut Input<'_>) -> (AnyOperation, Vec<AnyTensor>) {
    let (op, inputs) = TABLE[(input.word() % TABLE.len() as u64) as usize].clone();
    let mut all = inputs.clone();
    let wrong = input.once_in(3);
    let derivative = match input.below(3) {
        0 => None,
        1 => {
            let mut moving: Vec<bool> =
                inputs.iter().map(|x| x.dtype().is_float() && !input.once_in(4)).collect();
            all.extend(inputs.iter().zip(&moving).filter(|x| *x.1).map(|x| x.0.clone()));
            if wrong {
                change_flags(input, &mut moving);
            }
            Jvp::new(op.clone(), moving).ok().map(AnyOperation::from)
        }
        _ => {
            let results = op.results(&metas(&inputs)).expect("operands of the table");
            let mut given: Vec<bool> = results.iter().map(|_| !input.once_in(4)).collect();
            let cotangents = results.iter().zip(&given).filter(|x| *x.1);
            all.extend(cotangents.map(|(y, _)| {
                AnyTensor::ones(&y.shape, y.dtype).expect("results of the table are small")
            }));
            let mut wanted: Vec<bool> =
                inputs.iter().map(|x| x.dtype().is_float() && !input.once_in(3)).collect();
            if wrong {
                let which = if input.once_in(3) { &mut given } else { &mut wanted };
                change_flags(input, which);
            }
            Vjp::new(op.clone(), given, wanted).ok().map(AnyOperation::from)
        }
    };
    // If there is no derivative for these flags, the operation itself is used.
    match derivative {
        Some(derivative) => (derivative, all),
        None => (op, inputs),
    }
}

/// The tensor with a modified dtype, axis or element.
fn changed(input: &mut Input<'_>, x: &AnyTensor) -> AnyTensor {
    let mut shape = x.shape().to_vec();
    let dtype = match input.below(3) {
        0 => input.pick(&DType::ALL),
        1 if x.dtype().is_float() => input.pick(&[DType::F32, DType::F64]),
        _ => x.dtype(),
    };
    match input.below(6) {
        0 if !shape.is_empty() => {
            let axis = input.below(shape.len());
            shape[axis] = input.below(5);
        }
        1 => shape.push(1 + input.below(3)),
        2 => drop(shape.pop()),
        3 if shape.len() > 1 => shape.swap(0, 1),
        4 => return x.clone().cast(dtype).unwrap_or_else(|_| x.clone()),
        _ => {}
    }
    let number = input.pick(&[0.0, 1.0, -1.0, 0.5, 1e30, f64::INFINITY, f64::NAN]);
    let number = t4a_tensor::any::Number::Float(number);
    AnyTensor::full(&shape, number, dtype).unwrap_or_else(|_| x.clone())
}

fn change_tensors(input: &mut Input<'_>, all: &mut Vec<AnyTensor>) {
    if all.is_empty() {
        return;
    }
    let at = input.below(all.len());
    match input.below(8) {
        0 => drop(all.remove(at)),
        1 => all.push(all[at].clone()),
        2 => all.swap(0, at),
        _ => all[at] = changed(input, &all[at]),
    }
}

fn change_flags(input: &mut Input<'_>, flags: &mut Vec<bool>) {
    match input.below(8) {
        0 => flags.push(true),
        1 => drop(flags.pop()),
        2 => flags.fill(false),
        _ if !flags.is_empty() => {
            let at = input.below(flags.len());
            flags[at] = !flags[at];
        }
        _ => {}
    }
}

/// Modifies a few data bytes of a message.
fn change_words(input: &mut Input<'_>, words: &mut [u64]) {
    let mut bytes: Vec<u8> = words[2..].iter().flat_map(|word| word.to_le_bytes()).collect();
    for _ in 0..=input.below(2) {
        let at = (input.word() % bytes.len() as u64) as usize;
        bytes[at] = match input.below(4) {
            0 => bytes[at] ^ 1 << input.below(8),
            1 => input.byte(),
            // Small numbers, and MessagePack markers of wider numbers.
            2 => input.below(8) as u8,
            _ => input.pick(&[0xc0, 0xc2, 0xc3, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd3, 0x7f, 0xff]),
        };
    }
    for (word, part) in words[2..].iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(part.try_into().expect("eight bytes"));
    }
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let input = &mut input;
    let (op, mut tensors) = valid(input);
    for _ in 0..input.below(3) {
        change_tensors(input, &mut tensors);
    }
    let mut words = op.to_words().expect("operations of the table are data");
    if input.once_in(2) {
        change_words(input, &mut words);
    }
    if let Ok(received) = AnyOperation::from_words(&words) {
        drop(received.run(tensors));
    }
}
