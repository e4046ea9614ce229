//! Derivatives of one step, and of summed or repeated labels of one operand.

use std::borrow::Cow;

use t4a_algebra::{Numeric, Scalar, Standard};
use t4a_tensor::Tensor;

use crate::backend::{BgemmShape, ProductBackends};
use crate::error::{EinsumError, Result};
use crate::labelled::{LabelledArray, align, enter};
use crate::network::{Ids, Network};
use crate::pair;
use crate::plan::PairLabels;
use crate::rules::{MatrixProduct, Share, elements};
use crate::table::{RingTable, Rules};

fn conj<T: Numeric>(rules: &Rules<T>, x: &LabelledArray<T>) -> Result<LabelledArray<T>> {
    let tensor = (rules.conj)(x.tensor.clone())?;
    Ok(LabelledArray { tensor, ids: x.ids.clone() })
}

/// Labels of the result, in the order of the step.
fn outer(step: &PairLabels) -> Ids {
    step.batch.iter().chain(&step.left).chain(&step.right).copied().collect()
}

/// The pair with its roles exchanged: summed, kept left and kept right.
fn roles(batch: &Ids, left: &Ids, right: &Ids, sum: &Ids) -> PairLabels {
    PairLabels {
        lhs: 0,
        rhs: 1,
        lone_left: Ids::new(),
        lone_right: Ids::new(),
        batch: batch.clone(),
        left: left.clone(),
        right: right.clone(),
        sum: sum.clone(),
    }
}

/// The labels of A, B and C as axes of matrices.
pub(super) struct MatrixAxes {
    a: Ids,
    b: Ids,
    c: Ids,
    pub(super) shape: BgemmShape,
}

impl MatrixAxes {
    pub(super) fn new(step: &PairLabels, sizes: &[usize]) -> Self {
        let PairLabels { batch, left, right, sum, .. } = step;
        let join = |parts: [&Ids; 3]| parts.into_iter().flatten().copied().collect();
        let volume = |ids: &Ids| ids.iter().map(|&id| sizes[id as usize]).product();
        let (m, k, n) = (volume(left), volume(sum), volume(right));
        Self {
            a: join([batch, left, sum]),
            b: join([batch, sum, right]),
            c: join([batch, left, right]),
            shape: BgemmShape { batch: volume(batch), m, k, n },
        }
    }

    /// A and B as `[batch, m, k]` and `[batch, k, n]`.
    fn matrices<T: Scalar>(
        &self,
        a: &LabelledArray<T>,
        b: &LabelledArray<T>,
    ) -> Result<[Tensor<T>; 2]> {
        let BgemmShape { batch, m, k, n } = self.shape;
        let a = align(a, &self.a)?.reshape(&[batch, m, k])?;
        Ok([a, align(b, &self.b)?.reshape(&[batch, k, n])?])
    }
}

fn shaped<T: Scalar>(data: Vec<T>, ids: &Ids, sizes: &[usize]) -> Result<LabelledArray<T>> {
    let shape: Vec<usize> = ids.iter().map(|&id| sizes[id as usize]).collect();
    Ok(LabelledArray { tensor: Tensor::from_vec(data, &shape)?, ids: ids.clone() })
}

/// The result of a step, or its argmax, whichever the rule reads.
pub(super) struct ForwardValue<T: Scalar> {
    pub(super) c: Option<LabelledArray<T>>,
    pub(super) argmax: Option<Tensor<u32>>,
}

/// `a ⊗ b`, summed over the labels of the step, and the argmax for selective sums.
pub(super) fn forward<T: Numeric>(
    rules: &Rules<T>,
    step: &PairLabels,
    [a, b]: [&LabelledArray<T>; 2],
    sizes: &[usize],
) -> Result<(LabelledArray<T>, Option<Tensor<u32>>)> {
    if rules.share != Share::Argmax || step.sum.is_empty() {
        let plain = roles(&step.batch, &step.left, &step.right, &step.sum);
        let own = ProductBackends::default();
        return Ok((pair::contract(&rules.ring, &plain, a.clone(), b.clone(), sizes, &own)?, None));
    }
    let axes = MatrixAxes::new(step, sizes);
    let [a, b] = axes.matrices(a, b)?;
    let (c, argmax) = (rules.matmul)(&a, &b)?;
    let shape: Vec<usize> = axes.c.iter().map(|&id| sizes[id as usize]).collect();
    Ok((LabelledArray { tensor: c.reshape(&shape)?, ids: axes.c }, argmax))
}

/// Cotangents of a and b, given that of `c = a ⊗ b` summed over the labels of the step.
pub(super) fn pullback<T: Numeric>(
    rules: &Rules<T>,
    step: &PairLabels,
    [a, b]: [&LabelledArray<T>; 2],
    ForwardValue { c, argmax }: &ForwardValue<T>,
    g: &LabelledArray<T>,
    sizes: &[usize],
) -> Result<[LabelledArray<T>; 2]> {
    let PairLabels { batch, left, right, sum, .. } = step;
    if rules.share == Share::Linear {
        let own = ProductBackends::default();
        let (a, b) = (conj(rules, a)?, conj(rules, b)?);
        let to_a = roles(batch, left, sum, right);
        let ga = pair::contract(&rules.numbers, &to_a, g.clone(), b, sizes, &own)?;
        let to_b = roles(batch, sum, right, left);
        let gb = pair::contract(&rules.numbers, &to_b, a, g.clone(), sizes, &own)?;
        return Ok([ga, gb]);
    }
    let axes = MatrixAxes::new(step, sizes);
    let [a, b] = axes.matrices(a, b)?;
    let c = c.as_ref().map(|c| align(c, &axes.c)).transpose()?;
    let c = c.as_ref().map_or(Ok(Cow::Borrowed(&[][..])), elements)?;
    let g = align(g, &axes.c)?;
    let argmax = argmax.as_ref().map(elements).transpose()?;
    let (shape, g) = (axes.shape, elements(&g)?);
    let x = MatrixProduct { shape, a: elements(&a)?, b: elements(&b)?, c, argmax };
    let [ga, gb] = (rules.vjp)(&x, &g)?;
    Ok([shaped(ga, &axes.a, sizes)?, shaped(gb, &axes.b, sizes)?])
}

/// Tangent of the contraction, given those of a and b.
pub(super) fn pushforward<T: Numeric>(
    rules: &Rules<T>,
    step: &PairLabels,
    [a, b, da, db]: [&LabelledArray<T>; 4],
    ForwardValue { c, argmax }: &ForwardValue<T>,
    sizes: &[usize],
) -> Result<LabelledArray<T>> {
    let outer = outer(step);
    if rules.share == Share::Linear {
        let own = ProductBackends::default();
        let plain = roles(&step.batch, &step.left, &step.right, &step.sum);
        let product = |a: &LabelledArray<T>, b: &LabelledArray<T>| {
            let out = pair::contract(&rules.numbers, &plain, a.clone(), b.clone(), sizes, &own)?;
            align(&out, &outer)
        };
        let tensor = rules.add(product(da, b)?, product(a, db)?)?;
        return Ok(LabelledArray { tensor, ids: outer });
    }
    let axes = MatrixAxes::new(step, sizes);
    let [a, b] = axes.matrices(a, b)?;
    let [da, db] = axes.matrices(da, db)?;
    let c = c.as_ref().map(|c| align(c, &axes.c)).transpose()?;
    let c = c.as_ref().map_or(Ok(Cow::Borrowed(&[][..])), elements)?;
    let argmax = argmax.as_ref().map(elements).transpose()?;
    let (a, b) = (elements(&a)?, elements(&b)?);
    let x = MatrixProduct { shape: axes.shape, a, b, c, argmax };
    let dc = (rules.jvp)(&x, &elements(&da)?, &elements(&db)?)?;
    shaped(dc, &axes.c, sizes)
}

/// `x` summed over labels that occur nowhere else, as a step with the scalar 1.
fn lone_step(x: &Ids, lone: &Ids) -> PairLabels {
    let kept: Ids = x.iter().copied().filter(|id| !lone.contains(id)).collect();
    roles(&Ids::new(), &kept, &Ids::new(), lone)
}

/// A ones vector over the given labels.
fn ones<T: Scalar>(one: T, ids: &Ids, sizes: &[usize]) -> Result<LabelledArray<T>> {
    let shape: Vec<usize> = ids.iter().map(|&id| sizes[id as usize]).collect();
    Ok(LabelledArray { tensor: Tensor::full(&shape, one)?, ids: ids.clone() })
}

/// The cotangent of `x`, given that of its sum over `lone`.
pub(super) fn unsum<T: Numeric>(
    rules: &Rules<T>,
    x: &LabelledArray<T>,
    summed: &LabelledArray<T>,
    g: LabelledArray<T>,
    lone: &Ids,
    sizes: &[usize],
) -> Result<LabelledArray<T>> {
    if lone.is_empty() {
        return Ok(g);
    }
    let step = lone_step(&x.ids, lone);
    let known = ForwardValue { c: Some(summed.clone()), argmax: None };
    let [g, _] =
        pullback(rules, &step, [x, &ones(rules.ring.one, lone, sizes)?], &known, &g, sizes)?;
    Ok(g)
}

/// The tangent of the sum of `x` over `lone`.
pub(super) fn sum_tangent<T: Numeric>(
    rules: &Rules<T>,
    [x, summed, dx]: [&LabelledArray<T>; 3],
    lone: &Ids,
    sizes: &[usize],
) -> Result<LabelledArray<T>> {
    if lone.is_empty() {
        return Ok(dx.clone());
    }
    let one = ones(rules.ring.one, lone, sizes)?;
    let zero =
        LabelledArray { tensor: Tensor::full(one.tensor.shape(), T::ZERO)?, ids: one.ids.clone() };
    let known = ForwardValue { c: Some(summed.clone()), argmax: None };
    pushforward(rules, &lone_step(&x.ids, lone), [x, &one, dx, &zero], &known, sizes)
}

pub(super) fn same_shape(what: &'static str, expected: &[usize], given: &[usize]) -> Result<()> {
    if expected == given {
        return Ok(());
    }
    let (expected, given) = (expected.to_vec(), given.to_vec());
    Err(EinsumError::DerivativeShape { what, expected, given })
}

/// The cotangent of the output labels, given that of the result: repetition in [`Network::leave`] becomes a sum,
/// embedding becomes a diagonal.
pub(super) fn enter_result<T: Numeric>(
    network: &Network,
    cotangent: &Tensor<T>,
) -> Result<LabelledArray<T>> {
    let x = enter(&network.result, cotangent)?;
    let repeated: Ids = x.ids.iter().copied().filter(|id| !network.output.contains(id)).collect();
    pair::sum_out(&RingTable::of::<Standard>(), x, &repeated, &network.sizes)
}
