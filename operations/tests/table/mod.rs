//! One operation of each kind, with operands.

use std::sync::Arc;

use t4a_diff::{Eager, Pairs, Value, check};
use t4a_einsum::{Contraction, Einsum, FloatSemiring, Plan};
use t4a_linalg::expm::ExpmOp;
use t4a_linalg::inverse::InvOp;
use t4a_linalg::lu::{LuFactorOp, Pivoting};
use t4a_linalg::qr::{Columns, QrPivotedOp};
use t4a_linalg::{Linalg, MatrixOp};
use t4a_nn::{Attention, AttentionOptions, CrossEntropy, LayerNorm, LogSoftmax, RmsNorm, Softmax};
use t4a_operations::AnyOperation;
use t4a_scan::{
    AssociativeScan, Cell, Cumulative, FloatMonoid, KalmanFilter, LinearRecurrence, LogPartition,
    MatrixRecurrence, Recurrent, Running,
};
use t4a_structured::plan::MatrixList;
use t4a_structured::{
    ByMatrix, ContractOver, Direction, FrobeniusNorm, InnerProduct, Leg, Pattern, Spec, U1,
};
use t4a_tensor::{AnyTensor, Tensor};

pub(crate) fn floats(shape: &[usize], seed: u64) -> Value<Eager> {
    Value::Float(check::noise(&check::array(shape, |_| 0.0), seed))
}

pub(crate) fn plan(text: &str, shapes: &[&[usize]]) -> Arc<Plan> {
    Einsum::new(text).unwrap().plan(shapes, 8).unwrap()
}

/// One operation of each kind, with operands.
pub(crate) fn table() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let targets = Tensor::from_vec(vec![2i32, 0, 4], &[3]).unwrap();
    let targets = Value::Integers(Eager::from(AnyTensor::from(targets)));
    let options = AttentionOptions { scale: Some(0.3), softcap: None, causal: true };
    let [q, k, v] = [1, 2, 3].map(|seed| floats(&[1, 2, 3, 4], seed));
    let shapes: [&[usize]; 3] = [&[2, 3], &[3, 4], &[4]];
    let product = plan("ij,jk,k->i", &shapes);
    let mut table: Vec<(AnyOperation, Vec<Value<Eager>>)> = vec![
        (Softmax { axis: 1 }.into(), vec![floats(&[2, 3], 1)]),
        (Softmax { axis: 0 }.into(), vec![floats(&[2, 3], 1)]),
        (LogSoftmax { axis: 1 }.into(), vec![floats(&[2, 3], 1)]),
        (LayerNorm { epsilon: 1e-3 }.into(), vec![floats(&[2, 3], 1), floats(&[3], 2)]),
        (LayerNorm { epsilon: 1e-5 }.into(), vec![floats(&[2, 3], 1), floats(&[3], 2)]),
        (RmsNorm { epsilon: 1e-3 }.into(), vec![floats(&[2, 3], 1), floats(&[3], 2)]),
        (Attention { options, masked: false, biased: false }.into(), vec![q, k, v]),
        (CrossEntropy.into(), vec![floats(&[3, 5], 1), targets]),
    ];
    let operands: Vec<_> = shapes.iter().map(|shape| floats(shape, 7)).collect();
    for semiring in [FloatSemiring::Standard, FloatSemiring::LogSumExp] {
        let op = Contraction { plan: product.clone(), semiring };
        table.push((op.into(), operands.clone()));
    }
    let complex = Contraction { plan: product, semiring: FloatSemiring::Standard };
    let parts = operands.iter().flat_map(|x| [x.clone(), x.clone()]).collect();
    table.push((Pairs { op: complex, conj: [true, false] }.into(), parts));
    let factors = [
        LuFactorOp { pivoting: Pivoting::Full }.into(),
        QrPivotedOp { columns: Columns::Thin }.into(),
    ];
    for op in [MatrixOp::from(InvOp), ExpmOp.into()].into_iter().chain(factors) {
        let a = check::array(&[3, 3], |i| [4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.5, 0.2, 2.0][i]);
        table.push((Linalg { op, complex: false }.into(), vec![Value::Float(a)]));
    }
    table.extend(scans());
    table.extend(structured());
    table
}

/// Operations on flat arrays of graded tensors, and of blocks over a semiring.
fn structured() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let leg = Leg::new([(U1(-1), 2), (U1(0), 1), (U1(1), 2)], Direction::Out).unwrap();
    let spec = |legs: &[&Leg<U1>], rows| {
        Spec::new(legs.iter().map(|&leg| leg.clone()).collect(), U1(0), rows).unwrap()
    };
    let (out, into) = (leg.clone(), leg.dual());
    let (a, b) = (spec(&[&out, &out, &into], 1), spec(&[&out, &into], 1));
    let of = |spec: &Spec<U1>, seed| floats(&[spec.len()], seed);
    let one = || vec![of(&a, 1)];
    let both = || vec![of(&a, 1), of(&b, 2)];
    let sizes = b.matrices().iter().map(|matrix| [matrix.rows, matrix.cols]).collect();
    let sizes = MatrixList::new(sizes, vec![vec![2, 0, 1]]).unwrap();
    let network = Spec::einsum("abc,cd->adb", &[&a, &b]).unwrap().1;
    let pattern = Pattern::new(vec![vec![2, 1]; 2], vec![vec![0, 0], vec![0, 1]]).unwrap();
    let over = pattern.contract(&pattern, &[1], &[1]).unwrap().1;
    let blocks = || vec![floats(&[6], 3), floats(&[6], 4)];
    let exp = ByMatrix { op: ExpmOp.into(), complex: false, plan: sizes.into() };
    vec![
        (a.permute(&[2, 0, 1], 1).unwrap().1.into(), one()),
        (a.trace(&[(1, 2)]).unwrap().1.into(), one()),
        (a.contract(&b, &[2], &[0]).unwrap().1.into(), both()),
        (network.into(), both()),
        (exp.into(), vec![of(&b, 2)]),
        (a.numbers(1).unwrap().into(), vec![of(&a, 1), floats(&[5], 5)]),
        (InnerProduct { complex: false }.into(), vec![of(&a, 1), of(&a, 2)]),
        (FrobeniusNorm { complex: false }.into(), one()),
        (ContractOver { plan: over.clone(), semiring: FloatSemiring::MaxPlus }.into(), blocks()),
        (ContractOver { plan: over, semiring: FloatSemiring::LogSumExp }.into(), blocks()),
    ]
}

fn scans() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let one = || vec![floats(&[4, 3], 1)];
    let two = || vec![floats(&[4, 2, 2], 1), floats(&[4, 2, 2], 2)];
    let logs = FloatMonoid::Matrix(FloatSemiring::LogSumExp);
    let unit = |n: usize| Value::Float(check::array(&[n, n], |i| (i % (n + 1) == 0) as u8 as f64));
    let filter = vec![
        unit(2),
        unit(2),
        floats(&[1, 2], 1),
        unit(1),
        floats(&[1, 3, 1], 2),
        floats(&[2], 3),
        unit(2),
    ];
    vec![
        (Cumulative::new(Running::Product, 0).into(), one()),
        (Cumulative::new(Running::LogSumExp, 0).into(), one()),
        (LinearRecurrence::new(1).into(), two()),
        (LinearRecurrence { reverse: true, ..LinearRecurrence::new(1) }.into(), two()),
        (MatrixRecurrence::default().into(), two()),
        (AssociativeScan::new(FloatMonoid::Affine, 0).into(), two()),
        (AssociativeScan::new(logs, 0).into(), vec![floats(&[4, 2, 2], 1)]),
        (Recurrent::new(Cell::Gru).into(), vec![floats(&[3, 2, 6], 1), floats(&[2, 6], 2)]),
        (KalmanFilter.into(), filter),
        (
            LogPartition { lengths: vec![3, 2] }.into(),
            vec![floats(&[2, 3, 2], 1), floats(&[2, 2], 2)],
        ),
    ]
}
