//! Derivatives of contractions: cotangents of operands (vjp) and tangents of the result (jvp).
//!
//! An element `c = ⊕ₖ aₖ ⊗ bₖ` passes its cotangent on to term k with a weight wₖ:
//!
//! ```text
//! linear     wₖ = 1                          (+, ×): two contractions per step
//! winner     wₖ = 1 for the first term = c   max, min: a subgradient, ties to the smallest k
//! marginal   wₖ = ∂c/∂(aₖ ⊗ bₖ)              log-sum-exp: exp(aₖ + bₖ − c)
//! ```
//!
//! and within the term to a and b with `∂(a ⊗ b)`. An element without a candidate, `c = 0` of the
//! semiring, passes on nothing. Complex cotangents are conjugate Wirtinger derivatives: of a real
//! loss L they are ∂L/∂Re + i·∂L/∂Im.

use std::ops::ControlFlow;

use t4a_algebra::{
    Extended, Field, Float, LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Numeric, Scalar, Semiring,
    Signed, Standard,
};
use t4a_tensor::Tensor;
use t4a_tensor::kernels::arithmetic::Add;
use t4a_tensor::loops::kernel::Unary;
use t4a_tensor::map::{map, zip};

use crate::backend::Backend;
use crate::error::{EinsumError, Result};
use crate::network::{Ids, Labelled, align};
use crate::pair;
use crate::plan::{Pair, Plan};
use crate::sweep::{Sweep, elements_of};

/// How a sum passes its derivative on to its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The semiring is (+, ×) of the element type: every term in full.
    Linear,
    /// The first term that equals the sum.
    Winner,
    /// Every term with [`Differentiable::marginal`].
    Marginal,
}

/// A semiring whose contractions have a derivative. Cotangents and tangents are ordinary numbers
/// of the same type.
pub trait Differentiable<T: Numeric>: Semiring<T> {
    /// How the sum shares.
    const SHARE: Share;

    /// `∂(a ⊗ b)/∂a` and `∂(a ⊗ b)/∂b`.
    fn partials(a: T, b: T) -> (T, T);

    /// `∂(t₁ ⊕ t₂ ⊕ …)/∂t` of a term t, given the sum.
    fn marginal(term: T, sum: T) -> T {
        let _ = (term, sum);
        T::ONE
    }

    /// Complex conjugate; the identity on reals.
    fn conj(x: T) -> T {
        x
    }
}

impl<T: Field> Differentiable<T> for Standard {
    const SHARE: Share = Share::Linear;

    fn partials(a: T, b: T) -> (T, T) {
        (b, a)
    }

    fn conj(x: T) -> T {
        x.conj()
    }
}

impl<T: Signed> Differentiable<T> for MaxPlus {
    const SHARE: Share = Share::Winner;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }
}

impl<T: Extended> Differentiable<T> for MinPlus {
    const SHARE: Share = Share::Winner;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }
}

impl<T: Extended> Differentiable<T> for MaxMul {
    const SHARE: Share = Share::Winner;

    fn partials(a: T, b: T) -> (T, T) {
        (b, a)
    }
}

impl<T: Extended> Differentiable<T> for MaxMin {
    const SHARE: Share = Share::Winner;

    /// The left factor wins ties.
    fn partials(a: T, b: T) -> (T, T) {
        if a <= b { (T::ONE, T::ZERO) } else { (T::ZERO, T::ONE) }
    }
}

impl<T: Float> Differentiable<T> for LogSumExp {
    const SHARE: Share = Share::Marginal;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }

    /// The share of the term in the sum, a probability; an infinite sum is constant.
    fn marginal(term: T, sum: T) -> T {
        if sum.is_infinite() { T::ZERO } else { term.sub(sum).exp() }
    }
}

/// `x̄`.
struct Conjugate<S>(std::marker::PhantomData<S>);
impl<S> Clone for Conjugate<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Conjugate<S> {}
impl<T: Numeric, S: Differentiable<T>> Unary<T> for Conjugate<S> {
    type Out = T;
    const NAME: &'static str = "conj";
    #[inline(always)]
    fn apply(self, x: T) -> T {
        S::conj(x)
    }
}

fn conj<S: Differentiable<T>, T: Numeric>(x: &Labelled<T>) -> Result<Labelled<T>> {
    let tensor = map(Conjugate::<S>(std::marker::PhantomData), x.tensor.clone())?;
    Ok(Labelled { tensor, ids: x.ids.clone() })
}

/// Labels of the result, in the order of the step.
fn outer(step: &Pair) -> Ids {
    step.batch.iter().chain(&step.left).chain(&step.right).copied().collect()
}

/// The pair with its roles exchanged: what is summed, kept left and kept right.
fn roles(batch: &Ids, left: &Ids, right: &Ids, sum: &Ids) -> Pair {
    Pair {
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

fn shaped<T: Scalar>(data: Vec<T>, ids: &Ids, sizes: &[usize]) -> Result<Labelled<T>> {
    let shape: Vec<usize> = ids.iter().map(|&id| sizes[id as usize]).collect();
    Ok(Labelled { tensor: Tensor::from_vec(data, &shape)?, ids: ids.clone() })
}

/// Cotangents of a and b, given that of `c = a ⊗ b` summed as the step says.
fn pullback<S: Differentiable<T>, T: Numeric>(
    step: &Pair,
    [a, b, c, g]: [&Labelled<T>; 4],
    sizes: &[usize],
) -> Result<[Labelled<T>; 2]> {
    let Pair { batch, left, right, sum, .. } = step;
    if S::SHARE == Share::Linear {
        let own = Backend::default();
        let (a, b) = (conj::<S, T>(a)?, conj::<S, T>(b)?);
        let to_a = roles(batch, left, sum, right);
        let ga = pair::contract::<Standard, T>(&to_a, g.clone(), b, sizes, &own)?;
        let to_b = roles(batch, sum, right, left);
        let gb = pair::contract::<Standard, T>(&to_b, a, g.clone(), sizes, &own)?;
        return Ok([ga, gb]);
    }
    let outer = outer(step);
    let sweep = Sweep::new(a, b, &outer, sum, sizes)?;
    let (c, g) = (elements_of(c, &outer)?, elements_of(g, &outer)?);
    let (mut ga, mut gb) = (vec![T::ZERO; sweep.a.len()], vec![T::ZERO; sweep.b.len()]);
    sweep.elements(|element, at_a, at_b| {
        let (c, g) = (c[element], g[element]);
        share::<S, T>(&sweep, (at_a, at_b), c, |i, j, w, (da, db)| {
            let g = g.mul(w);
            ga[i] = ga[i].add(g.mul(da));
            gb[j] = gb[j].add(g.mul(db));
        });
    });
    Ok([shaped(ga, &a.ids, sizes)?, shaped(gb, &b.ids, sizes)?])
}

/// Tangent of the contraction, given those of a and b.
fn pushforward<S: Differentiable<T>, T: Numeric>(
    step: &Pair,
    [a, b, c, da, db]: [&Labelled<T>; 5],
    sizes: &[usize],
) -> Result<Labelled<T>> {
    let outer = outer(step);
    if S::SHARE == Share::Linear {
        let own = Backend::default();
        let plain = roles(&step.batch, &step.left, &step.right, &step.sum);
        let product = |a: &Labelled<T>, b: &Labelled<T>| {
            let out = pair::contract::<Standard, T>(&plain, a.clone(), b.clone(), sizes, &own)?;
            align(&out, &outer)
        };
        let tensor = zip(Add, product(da, b)?, product(a, db)?)?;
        return Ok(Labelled { tensor, ids: outer });
    }
    let sweep = Sweep::new(a, b, &outer, &step.sum, sizes)?;
    let c = elements_of(c, &outer)?;
    let (da, db) = (elements_of(da, &a.ids)?, elements_of(db, &b.ids)?);
    let mut dc = vec![T::ZERO; c.len()];
    sweep.elements(|element, at_a, at_b| {
        share::<S, T>(&sweep, (at_a, at_b), c[element], |i, j, w, (pa, pb)| {
            let term = da[i].mul(pa).add(db[j].mul(pb));
            dc[element] = dc[element].add(w.mul(term));
        });
    });
    shaped(dc, &outer, sizes)
}

/// Calls `body(position in a, position in b, weight, partials)` for the terms that share in c.
#[inline]
fn share<S: Differentiable<T>, T: Numeric>(
    sweep: &Sweep<T>,
    at: (usize, usize),
    c: T,
    mut body: impl FnMut(usize, usize, T, (T, T)),
) {
    if c == S::ZERO {
        return;
    }
    sweep.terms(at, |i, j| {
        let (a, b) = (sweep.a[i], sweep.b[j]);
        let term = S::mul(a, b);
        match S::SHARE {
            Share::Winner if term == c => {
                body(i, j, T::ONE, S::partials(a, b));
                ControlFlow::Break(())
            }
            Share::Winner => ControlFlow::Continue(()),
            _ if term == S::ZERO => ControlFlow::Continue(()),
            _ => {
                body(i, j, S::marginal(term, c), S::partials(a, b));
                ControlFlow::Continue(())
            }
        }
    });
}

/// `x` summed over labels that nothing else has, as a step with the number 1.
fn lone_step(x: &Ids, lone: &Ids) -> Pair {
    let kept: Ids = x.iter().copied().filter(|id| !lone.contains(id)).collect();
    roles(&Ids::new(), &kept, &Ids::new(), lone)
}

/// A ones vector over the given labels.
fn ones<S: Semiring<T>, T: Scalar>(ids: &Ids, sizes: &[usize]) -> Result<Labelled<T>> {
    let shape: Vec<usize> = ids.iter().map(|&id| sizes[id as usize]).collect();
    Ok(Labelled { tensor: Tensor::full(&shape, S::ONE)?, ids: ids.clone() })
}

/// The cotangent of `x`, given that of its sum over `lone`.
fn unsum<S: Differentiable<T>, T: Numeric>(
    x: &Labelled<T>,
    summed: &Labelled<T>,
    g: Labelled<T>,
    lone: &Ids,
    sizes: &[usize],
) -> Result<Labelled<T>> {
    if lone.is_empty() {
        return Ok(g);
    }
    let step = lone_step(&x.ids, lone);
    let [g, _] = pullback::<S, T>(&step, [x, &ones::<S, T>(lone, sizes)?, summed, &g], sizes)?;
    Ok(g)
}

/// The tangent of the sum of `x` over `lone`.
fn sum_tangent<S: Differentiable<T>, T: Numeric>(
    [x, summed, dx]: [&Labelled<T>; 3],
    lone: &Ids,
    sizes: &[usize],
) -> Result<Labelled<T>> {
    if lone.is_empty() {
        return Ok(dx.clone());
    }
    let (one, zero) = (ones::<S, T>(lone, sizes)?, ones::<Standard, T>(lone, sizes)?);
    let zero = Labelled { tensor: Tensor::zeros(zero.tensor.shape())?, ids: zero.ids };
    pushforward::<S, T>(&lone_step(&x.ids, lone), [x, &one, summed, dx, &zero], sizes)
}

fn same_shape(what: &'static str, expected: &[usize], given: &[usize]) -> Result<()> {
    if expected == given {
        return Ok(());
    }
    let (expected, given) = (expected.to_vec(), given.to_vec());
    Err(EinsumError::DerivativeShape { what, expected, given })
}

impl Plan {
    /// Cotangents of all operands, given that of the result.
    ///
    /// Keeps every intermediate: a memory budget does not bind here.
    ///
    /// Cost: the contraction, and twice its multiply-adds for (+, ×); once for other semirings.
    ///
    /// # Errors
    /// As [`Plan::contract`]; [`EinsumError::DerivativeShape`].
    pub fn vjp<S: Differentiable<T>, T: Numeric>(
        &self,
        operands: &[&Tensor<T>],
        cotangent: &Tensor<T>,
    ) -> Result<Vec<Tensor<T>>> {
        self.check(operands)?;
        same_shape("the cotangent", &self.shape(), cotangent.shape())?;
        let (network, sizes) = (&self.network, &self.network.sizes);
        let n = operands.len();
        let own = Backend::default();
        let mut slots = Vec::with_capacity(n + self.steps.len());
        for (i, x) in operands.iter().enumerate() {
            slots.push(network.enter(i, x)?);
        }
        let mut summed = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let a = pair::sum_out::<S, T>(slots[step.lhs].clone(), &step.lone_left, sizes)?;
            let b = pair::sum_out::<S, T>(slots[step.rhs].clone(), &step.lone_right, sizes)?;
            let plain = roles(&step.batch, &step.left, &step.right, &step.sum);
            slots.push(pair::contract::<S, T>(&plain, a.clone(), b.clone(), sizes, &own)?);
            summed.push((a, b));
        }
        let mut grads: Vec<Option<Labelled<T>>> = slots.iter().map(|_| None).collect();
        let lost = || EinsumError::PathIncomplete { remaining: 0 };
        let last = slots.len() - 1;
        let out = pair::sum_out::<S, T>(slots[last].clone(), &self.lone, sizes)?;
        let g = network.enter_result(cotangent)?;
        grads[last] = Some(unsum::<S, T>(&slots[last], &out, g, &self.lone, sizes)?);
        for (s, step) in self.steps.iter().enumerate().rev() {
            let g = grads[n + s].take().ok_or_else(lost)?;
            let (a, b) = &summed[s];
            let [ga, gb] = pullback::<S, T>(step, [a, b, &slots[n + s], &g], sizes)?;
            let (x, y) = (&slots[step.lhs], &slots[step.rhs]);
            grads[step.lhs] = Some(unsum::<S, T>(x, a, ga, &step.lone_left, sizes)?);
            grads[step.rhs] = Some(unsum::<S, T>(y, b, gb, &step.lone_right, sizes)?);
        }
        let leave = |i: usize| network.leave_operand(i, grads[i].as_ref().ok_or_else(lost)?);
        (0..n).map(leave).collect()
    }

    /// The result and its tangent, given those of all operands.
    ///
    /// # Errors
    /// As [`Plan::vjp`].
    pub fn jvp<S: Differentiable<T>, T: Numeric>(
        &self,
        operands: &[&Tensor<T>],
        tangents: &[&Tensor<T>],
    ) -> Result<(Tensor<T>, Tensor<T>)> {
        self.check(operands)?;
        self.check(tangents)?;
        let (network, sizes) = (&self.network, &self.network.sizes);
        let own = Backend::default();
        let mut slots = Vec::with_capacity(operands.len() + self.steps.len());
        for (i, (x, dx)) in operands.iter().zip(tangents).enumerate() {
            slots.push((network.enter(i, x)?, network.enter(i, dx)?));
        }
        for step in &self.steps {
            let half = |slot: usize, lone: &Ids| -> Result<_> {
                let (x, dx) = &slots[slot];
                let sum = pair::sum_out::<S, T>(x.clone(), lone, sizes)?;
                let tangent = sum_tangent::<S, T>([x, &sum, dx], lone, sizes)?;
                Ok((sum, tangent))
            };
            let ((a, da), (b, db)) =
                (half(step.lhs, &step.lone_left)?, half(step.rhs, &step.lone_right)?);
            let plain = roles(&step.batch, &step.left, &step.right, &step.sum);
            let c = pair::contract::<S, T>(&plain, a.clone(), b.clone(), sizes, &own)?;
            let dc = pushforward::<S, T>(step, [&a, &b, &c, &da, &db], sizes)?;
            slots.push((c, dc));
        }
        let (x, dx) = &slots[slots.len() - 1];
        let out = pair::sum_out::<S, T>(x.clone(), &self.lone, sizes)?;
        let tangent = sum_tangent::<S, T>([x, &out, dx], &self.lone, sizes)?;
        Ok((network.leave::<S, T>(out)?, network.leave::<Standard, T>(tangent)?))
    }
}
