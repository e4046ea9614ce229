//! Table of einsums of every kind, their data, and the loops of the definition.

use std::sync::Arc;

use burn_backend::{AutodiffBackend, Backend};
use burn_t4a::ext::einsum::{ArraySemiring, Contraction, Einsum, Plan};
use burn_t4a::ext::operation::{Operations, apply};
use burn_t4a::ext::primitive::Floats;
use burn_tensor::{DType, Tensor, TensorData, TensorPrimitive};
use t4a_algebra::Semiring;
use t4a_diff::Value;

/// Subscripts, shapes of the operands, sizes of labels that occur in the output only.
pub(crate) struct Case {
    pub(crate) text: &'static str,
    pub(crate) shapes: &'static [&'static [usize]],
    pub(crate) given: &'static [(char, usize)],
}

pub(crate) const fn case(text: &'static str, shapes: &'static [&'static [usize]]) -> Case {
    Case { text, shapes, given: &[] }
}

/// Products, batches, chains, stars, diagonals in operands and outputs, labels of one operand, broadcasting,
/// scalars, a single operand, labels of the output only, no summed label.
pub(crate) const CASES: &[Case] = &[
    case("ij,jk->ik", &[&[2, 3], &[3, 4]]),
    case("bij,bjk->bik", &[&[2, 3, 2], &[2, 2, 3]]),
    case("ij,jk,kl->il", &[&[2, 3], &[3, 2], &[2, 3]]),
    case("ai,bi,ci->abc", &[&[2, 3], &[3, 3], &[2, 3]]),
    case("ii->i", &[&[3, 3]]),
    case("iij,jk->ik", &[&[2, 2, 3], &[3, 2]]),
    case("ij,j->jij", &[&[2, 3], &[3]]),
    case("ijk,k->i", &[&[2, 3, 2], &[2]]),
    case("ij,kl->", &[&[2, 2], &[2, 3]]),
    case("ij,jk->ik", &[&[2, 1], &[3, 2]]),
    case("...ij,jk->...ik", &[&[2, 2, 3], &[3, 2]]),
    case(",i->i", &[&[1], &[3]]),
    case("i,j->ij", &[&[2], &[3]]),
    case("ij->ji", &[&[2, 3]]),
    Case { text: "i->ni", shapes: &[&[3]], given: &[('n', 2)] },
    Case { text: "ij,j->niin", shapes: &[&[2, 3], &[3]], given: &[('n', 2)] },
];

/// Distinct numbers between 0.1 and 2.1.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        0.1 + (state >> 33) as f64 / (1u64 << 30) as f64
    };
    (0..count).map(next).collect()
}

pub(crate) fn data(case: &Case, seed: u64) -> Vec<Vec<f64>> {
    let sized = case.shapes.iter().enumerate();
    sized.map(|(i, shape)| numbers(shape.iter().product(), 7 * seed + i as u64)).collect()
}

/// The sum by a loop over all labels.
pub(crate) fn naive<S: Semiring<f64>>(case: &Case, data: &[Vec<f64>]) -> (Vec<f64>, Vec<usize>) {
    let (inputs, output) = case.text.split_once("->").unwrap();
    let term = |text: &str| text.replace("...", "Z").chars().collect::<Vec<char>>();
    let inputs: Vec<Vec<char>> = inputs.split(',').map(term).collect();
    let output = term(output);
    let mut sizes: Vec<(char, usize)> = case.given.to_vec();
    for (term, shape) in inputs.iter().zip(case.shapes) {
        for (&label, &n) in term.iter().zip(*shape) {
            match sizes.iter_mut().find(|(known, _)| *known == label) {
                Some((_, size)) => *size = (*size).max(n),
                None => sizes.push((label, n)),
            }
        }
    }
    let size = |label: char| sizes.iter().find(|(known, _)| *known == label).unwrap().1;
    let shape: Vec<usize> = output.iter().map(|&l| size(l)).collect();
    let mut out = vec![S::ZERO; shape.iter().product()];
    for mut number in 0..sizes.iter().map(|(_, n)| n).product::<usize>() {
        let mut value = vec![0; sizes.len()];
        for (v, (_, n)) in value.iter_mut().zip(&sizes) {
            (*v, number) = (number % n, number / n);
        }
        let of = |label: char| value[sizes.iter().position(|(l, _)| *l == label).unwrap()];
        let at = |term: &[char], shape: &[usize]| {
            term.iter().zip(shape).fold(0, |at, (&l, &n)| at * n + of(l) % n)
        };
        let factors = inputs.iter().zip(case.shapes).zip(data);
        let term =
            factors.fold(S::ONE, |x, ((term, shape), data)| S::mul(x, data[at(term, shape)]));
        let to = at(&output, &shape);
        out[to] = S::add(out[to], term);
    }
    (out, shape)
}

pub(crate) fn tensor<B: Backend>(values: &[f64], shape: &[usize]) -> B::FloatTensorPrimitive {
    B::float_from_data(TensorData::new(values.to_vec(), shape.to_vec()), &Default::default())
}

pub(crate) fn values<B: Backend>(x: B::FloatTensorPrimitive) -> Vec<f64> {
    // A flattened tensor of any rank.
    let count = burn_backend::TensorMetadata::shape(&x).num_elements();
    let flat = B::float_reshape(x, [count].into());
    Tensor::<B, 1>::from_primitive(TensorPrimitive::Float(flat)).into_data().iter().collect()
}

pub(crate) fn plan_of(case: &Case) -> Einsum {
    let einsum = Einsum::new(case.text).unwrap();
    case.given.iter().fold(einsum, |einsum, &(label, n)| einsum.size(label, n))
}

/// The plan, with operands of shape `[1]` read as scalars if their subscripts are empty.
pub(crate) fn compiled(case: &Case) -> std::sync::Arc<burn_t4a::ext::einsum::Plan> {
    let einsum = plan_of(case);
    let shapes: Vec<&[usize]> = case
        .shapes
        .iter()
        .enumerate()
        .map(|(i, shape)| if einsum.subscripts().rank(i) == Some(0) { &[] } else { *shape })
        .collect();
    einsum.plan(&shapes, 8).unwrap()
}

/// Runs a plan as an operation.
pub(crate) fn contract<S: ArraySemiring, B: Operations>(
    plan: &Arc<Plan>,
    operands: Vec<B::FloatTensorPrimitive>,
) -> B::FloatTensorPrimitive {
    let op = Contraction { plan: plan.clone(), semiring: S::TAG };
    let inputs: Vec<_> = operands.into_iter().map(|x| Value::Float(Floats(x))).collect();
    apply::<_, B>(&op, &inputs).unwrap().results.swap_remove(0).0
}

pub(crate) fn run<S: ArraySemiring, B: Operations>(case: &Case, data: &[Vec<f64>]) -> Vec<f64> {
    let operands = data.iter().zip(case.shapes).map(|(x, shape)| tensor::<B>(x, shape)).collect();
    values::<B>(contract::<S, B>(&compiled(case), operands))
}

/// Gradients of ⟨u, einsum⟩ for fixed numbers u.
pub(crate) fn gradients<S: ArraySemiring, B: AutodiffBackend + Operations>(
    case: &Case,
    data: &[Vec<f64>],
    u: &[f64],
) -> Vec<Vec<f64>> {
    let leaf =
        |(x, shape): (&Vec<f64>, &&[usize])| B::float_set_require_grad(tensor::<B>(x, shape), true);
    let leaves: Vec<_> = data.iter().zip(case.shapes).map(leaf).collect();
    let out = contract::<S, B>(&compiled(case), leaves.clone());
    let out = B::float_reshape(out, [u.len()].into());
    let loss = B::float_sum(B::float_mul(out, tensor::<B>(u, &[u.len()])));
    let grads = B::backward(loss);
    leaves.iter().map(|x| values::<B::InnerBackend>(B::grad(x, &grads).unwrap())).collect()
}

pub(crate) fn close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        let near = a == b || (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(near, "{what}: {a}, expected {b}");
    }
}

pub(crate) type Vector<B> = Tensor<B, 1>;

pub(crate) fn f64s<B: Backend, const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<B, D> {
    let data = TensorData::new(values.to_vec(), shape);
    Tensor::from_data(data, (&Default::default(), DType::F64))
}

/// A chain of three 8×8 matrices whose memory limit requires slices.
pub(crate) fn tight_chain() -> Einsum {
    let chain = Einsum::new("ij,jk,kl->il").unwrap();
    let peak = chain.plan(&[&[8usize, 8][..]; 3], 8).unwrap().cost().bytes(8) as usize;
    let tight = chain.memory(peak - 1);
    assert!(!tight.plan(&[&[8usize, 8][..]; 3], 8).unwrap().sliced().is_empty());
    tight
}
