//! `h_t = a_t h_{t−1} + b_t` along an axis, element by element.

use t4a_diff::array::Kernel;
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Meta, OnBatch, Operation, Outcome, Reverse, Value,
};
use t4a_tensor::{Result, Tensor, TensorError};

use crate::affine;
use crate::lanes::{ComposedMap, Extent, LaneOperand, LaneStep, PerLane, Walk, walk};
use crate::operand::{self, computed_in, elements, narrow, wide};

/// `h_t = a_t h_{t−1} + b_t` along an axis.
///
/// Operands: `a` and `b` of one shape, and with `initial` h₀ with size 1 along the axis; otherwise h₀ = 0. The result
/// has the shape of a. With `complex` every operand and the result are pairs, real part first: `a, ia, b, ib, h₀, ih₀`.
/// With `reverse` time runs from the end of the axis.
///
/// The rule, a recurrence in the opposite direction: `λ_t = h̄_t + a*_{t+1} λ_{t+1}`,
/// `ā_t = λ_t h*_{t−1}`, `b̄_t = λ_t`, `h̄₀ = a*₁ λ₁`.
///
/// Cost: 2 flops per element; two reads, one write. A few long lanes are cut into chunks of 512 steps whose totals are
/// computed first: one additional read, and independent dependency chains.
///
/// Reference: Martin and Cundy 2018 (arXiv 1709.04057).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LinearRecurrence {
    /// The axis of time.
    pub axis: usize,
    /// Time runs from the end of the axis.
    pub reverse: bool,
    /// h₀ is an operand.
    pub initial: bool,
    /// Every operand is a pair of real and imaginary parts.
    pub complex: bool,
}

/// Real part, and imaginary part of complex numbers.
type RealParts<A> = Vec<A>;

/// `a b`, with the conjugate of b if `conj`.
fn times<A: Array>(a: &[A], b: &[A], conj: bool) -> RealParts<A> {
    match (a, b) {
        ([a, ia], [b, ib]) => {
            let (re, im) = (a.mul(b), ia.mul(ib));
            let (left, right) = (a.mul(ib), ia.mul(b));
            if conj {
                vec![re.add(&im), right.sub(&left)]
            } else {
                vec![re.sub(&im), right.add(&left)]
            }
        }
        _ => vec![a[0].mul(&b[0])],
    }
}

fn plus<A: Array>(a: &[A], b: &[A]) -> RealParts<A> {
    a.iter().zip(b).map(|(a, b)| a.add(b)).collect()
}

/// The conjugate.
fn conj<A: Array>(mut a: RealParts<A>) -> RealParts<A> {
    if let Some(im) = a.get_mut(1) {
        *im = im.neg();
    }
    a
}

/// x shifted by one step in time: element t is `x_{t−1}`, and `first` at the first step.
pub(crate) fn before<A: Array>(x: &A, first: &A, axis: usize, reverse: bool) -> A {
    let n = x.shape()[axis];
    match (n, reverse) {
        (0, _) => x.clone(),
        (_, false) => A::cat(&[first.clone(), x.narrow(axis, 0, n - 1)], axis),
        (_, true) => A::cat(&[x.narrow(axis, 1, n - 1), first.clone()], axis),
    }
}

/// Zeros with size 1 along an axis.
pub(crate) fn zero<A: Array>(x: &A, axis: usize) -> A {
    let mut shape = x.shape();
    shape[axis] = 1;
    x.full(&shape, 0.0)
}

impl LinearRecurrence {
    /// A real forward recurrence with h₀ = 0.
    pub fn new(axis: usize) -> Self {
        Self { axis, reverse: false, initial: false, complex: false }
    }

    /// Parts of a number: 1 real, 2 complex.
    fn parts(&self) -> usize {
        1 + self.complex as usize
    }

    /// Parts of operand `k`; `None` if absent.
    fn operand<A: Array>(&self, inputs: &[A], k: usize) -> Option<RealParts<A>> {
        let p = self.parts();
        Some(inputs.get(k * p..(k + 1) * p)?.to_vec())
    }

    /// The recurrence of these operands, for any array type.
    pub(crate) fn of<A: Array>(&self, inputs: Vec<A>) -> Result<RealParts<A>> {
        let inputs: Vec<Value<A>> = inputs.into_iter().map(Value::Float).collect();
        Ok(A::apply(self, &inputs, &vec![false; inputs.len()])?.results)
    }

    /// `h_{t−1}`.
    fn states_before<A: Array>(&self, h: &[A], h0: Option<&[A]>) -> RealParts<A> {
        let shifted = |(i, h): (usize, &A)| {
            let first = h0.map_or_else(|| zero(h, self.axis), |h0| h0[i].clone());
            before(h, &first, self.axis, self.reverse)
        };
        h.iter().enumerate().map(shifted).collect()
    }

    /// `λ`, given the cotangents of h.
    pub(crate) fn adjoint<A: Array>(
        &self,
        a: &[A],
        cotangents: RealParts<A>,
    ) -> Result<RealParts<A>> {
        let later = |a: &A| before(a, &zero(a, self.axis), self.axis, !self.reverse);
        let a = conj(a.iter().map(later).collect());
        let op = Self { reverse: !self.reverse, initial: false, ..*self };
        op.of([a, cotangents].concat())
    }

    /// The first step in time of an array.
    fn first<A: Array>(&self, x: &A) -> A {
        x.narrow(self.axis, if self.reverse { x.shape()[self.axis] - 1 } else { 0 }, 1)
    }

    fn cotangents<A: Array>(&self, reverse: &Reverse<'_, A>) -> RealParts<A> {
        let given = reverse.cotangents.iter().flatten().next();
        let given = given.unwrap_or_else(|| unreachable!("one cotangent is given"));
        let zeros = || given.full(&given.shape(), 0.0);
        reverse.cotangents.iter().map(|g| g.clone().unwrap_or_else(zeros)).collect()
    }

    /// True if a cotangent of operand `k` is required.
    fn wants(&self, wanted: &[bool], k: usize) -> bool {
        (0..self.parts()).any(|i| wanted.get(k * self.parts() + i) == Some(&true))
    }
}

impl Operation for LinearRecurrence {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "linear_recurrence"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([(2 + usize::from(self.initial)) * self.parts(), self.parts()])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let (op, p) = (self.name(), self.parts());
        operand::count(op, inputs, (2 + self.initial as usize) * p)?;
        operand::floats(op, inputs)?;
        operand::axis(op, self.axis, &inputs[0].shape)?;
        operand::same_shape(op, &inputs[..2 * p], "a and b of one shape")?;
        let mut first = inputs[0].shape.clone();
        first[self.axis] = 1;
        if let Some(h0) = inputs[2 * p..].iter().find(|h0| h0.shape != first) {
            let required = "an initial state with size 1 along the axis";
            return Err(TensorError::shapes(op, &inputs[0].shape, &h0.shape, required));
        }
        Ok(inputs[..p].to_vec())
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        let p = self.parts();
        let keep = Keep::default().inputs(&[0, p - 1]);
        if !self.wants(tracked, 0) {
            return keep;
        }
        let keep = keep.all_results();
        if self.initial { keep.inputs(&[2 * p, 3 * p - 1]) } else { keep }
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        vec![if self.complex { Kernel::ComplexRecurrence } else { Kernel::Recurrence }]
    }

    /// A kernel of the array type if it has one, else a sequential loop.
    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let inputs: Vec<A> = inputs.iter().map(|x| x.float().clone()).collect();
        let operand = |k| self.operand(&inputs, k).unwrap_or_else(|| unreachable!("it is given"));
        let (a, b) = (operand(0), operand(1));
        if let ([a], [b]) = (&a[..], &b[..])
            && let Some(h) = a.recurrence(b, inputs.get(2), self.axis, self.reverse)
        {
            return Ok(h.into());
        }
        if let ([a, ia], [b, ib]) = (&a[..], &b[..]) {
            let first = inputs.get(4).zip(inputs.get(5)).map(|(h, ih)| [h, ih]);
            let (axis, reverse) = (self.axis, self.reverse);
            if let Some(h) = A::complex_recurrence([a, ia], [b, ib], first, axis, reverse) {
                return Ok(Outcome::new(h.into()));
            }
        }
        let zeros = || b.iter().map(|b| zero(b, self.axis)).collect();
        let mut h = if self.initial { operand(2) } else { zeros() };
        let n = a[0].shape()[self.axis];
        if n == 0 {
            return Ok(Outcome::new(b));
        }
        let mut all: Vec<RealParts<A>> = Vec::with_capacity(n);
        for k in 0..n {
            let t = if self.reverse { n - 1 - k } else { k };
            let at =
                |x: &[A]| -> RealParts<A> { x.iter().map(|x| x.narrow(self.axis, t, 1)).collect() };
            h = plus(&times(&at(&a), &h, false), &at(&b));
            all.push(h.clone());
        }
        if self.reverse {
            all.reverse();
        }
        let part =
            |i: usize| A::cat(&all.iter().map(|h| h[i].clone()).collect::<Vec<A>>(), self.axis);
        Ok(Outcome::new((0..self.parts()).map(part).collect()))
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let x: Vec<&Eager> = inputs.iter().map(Value::float).collect();
        let (shape, dtype) = (x[0].shape(), x[0].dtype());
        let y = computed_in!(self.name(), dtype, T => {
            let y: Vec<Tensor<T>> = match (self.complex, &x[..]) {
                (false, &[a, b, ref h0 @ ..]) => self.fused::<T, 2, 1, 3>([a, b], h0)?.into(),
                (true, &[a, ia, b, ib, ref h0 @ ..]) => {
                    self.fused::<T, 4, 2, 5>([a, ia, b, ib], h0)?.into()
                }
                _ => unreachable!("operands are counted before"),
            };
            y.into_iter().map(|y| Ok(narrow(y, &shape, dtype)?.into())).collect::<Result<_>>()
        })?;
        Ok(Outcome::new(y))
    }

    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let op = Self { axis: self.axis + 1, ..*self };
        (!differ.contains(&false)).then_some(OnBatch::front(op))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (kept, wanted, p) = (reverse.kept, reverse.wanted, self.parts());
        let parts =
            |k: usize| (0..p).map(|i| kept.float(k * p + i).clone()).collect::<RealParts<A>>();
        let a = parts(0);
        let lambda = self.adjoint(&a, self.cotangents(reverse))?;
        let mut all: Cotangents<A> = vec![None; wanted.len()];
        if self.wants(wanted, 0) {
            let h: RealParts<A> = (0..p).map(|i| kept.result(i).clone()).collect();
            let h0 = self.initial.then(|| parts(2));
            let h = self.states_before(&h, h0.as_deref());
            all.splice(..p, times(&lambda, &h, true).into_iter().map(Some));
        }
        if self.wants(wanted, 2) && a[0].shape()[self.axis] > 0 {
            let first =
                |x: &RealParts<A>| x.iter().map(|x| self.first(x)).collect::<RealParts<A>>();
            let h0 = times(&first(&lambda), &first(&a), true);
            all.splice(2 * p.., h0.into_iter().map(Some));
        }
        all.splice(p..2 * p, lambda.into_iter().map(Some));
        Ok(all)
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (kept, wanted, p) = (reverse.kept, reverse.wanted, self.parts());
        let (a, g) = (kept.float(0), self.cotangents(reverse));
        let (shape, dtype) = (a.shape(), a.dtype());
        let of_a = self.wants(wanted, 0);
        let h0: Vec<&Eager> = match self.initial && of_a {
            true => (2 * p..3 * p).map(|i| kept.float(i)).collect(),
            false => Vec::new(),
        };
        computed_in!(self.name(), dtype, T => {
            let [all, first] = match (self.complex, of_a) {
                (false, true) => {
                    let x = [a, &g[0], kept.result(0)];
                    self.fused_reverse::<T, 3, 1, 2, 3>(affine::AffineVjp, x, &h0)?
                }
                (false, false) => {
                    self.fused_reverse::<T, 2, 1, 1, 3>(affine::AffineAdjoint, [a, &g[0]], &[])?
                }
                (true, true) => {
                    let x = [a, kept.float(1), &g[0], &g[1], kept.result(0), kept.result(1)];
                    self.fused_reverse::<T, 6, 2, 4, 5>(affine::AffineVjp, x, &h0)?
                }
                (true, false) => {
                    let x = [a, kept.float(1), &g[0], &g[1]];
                    self.fused_reverse::<T, 4, 2, 2, 5>(affine::AffineAdjoint, x, &[])?
                }
            };
            let mut cotangents: Cotangents<Eager> = vec![None; if of_a { 0 } else { p }];
            for x in all {
                cotangents.push(Some(narrow(x, &shape, dtype)?.into()));
            }
            if self.initial {
                let mut shape = shape;
                shape[self.axis] = 1;
                for x in first {
                    cotangents.push(Some(narrow(x, &shape, dtype)?.into()));
                }
            }
            Ok(cotangents)
        })
    }

    /// `ḣ_t = a_t ḣ_{t−1} + (ȧ_t h_{t−1} + ḃ_t)`: the same recurrence with another b.
    fn jvp<A: Array>(&self, inputs: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        let values: Vec<A> = inputs.iter().map(|x| x.float().value.clone()).collect();
        let h = self.of(values.clone())?;
        let p = self.parts();
        let moves =
            |k: usize| inputs.get(k * p..(k + 1) * p).is_some_and(|x| x.iter().any(Value::moves));
        let tangent = |k: usize| -> RealParts<A> {
            inputs[k * p..(k + 1) * p].iter().map(|x| x.float().clone().into_tangent()).collect()
        };
        let mut force = moves(1).then(|| tangent(1));
        if moves(0) {
            let h0 = self.initial.then(|| &values[2 * p..]);
            let term = times(&tangent(0), &self.states_before(&h, h0), false);
            force = Some(force.map_or_else(|| term.clone(), |b| plus(&b, &term)));
        }
        let zeros = || h.iter().map(|h| h.full(&h.shape(), 0.0)).collect();
        let mut operands = [values[..p].to_vec(), force.unwrap_or_else(zeros)].concat();
        let initial = moves(2);
        if initial {
            operands.extend(tangent(2));
        }
        let tangents = Self { initial, ..*self }.of(operands)?;
        let duals = h.into_iter().zip(tangents).map(|(h, t)| Dual::new(h, t));
        Ok(Outcome::new(duals.collect()))
    }
}

impl LinearRecurrence {
    fn fused<T, const I: usize, const P: usize, const R: usize>(
        &self,
        x: [&Eager; I],
        h0: &[&Eager],
    ) -> Result<[Tensor<T>; P]>
    where
        T: t4a_tensor::Element + t4a_algebra::Float,
        affine::AffineStep: LaneStep<T, I, P, P> + ComposedMap<T, I, P, R>,
    {
        let extent = Extent::new(&x[0].shape(), self.axis);
        let x = wide::<T, I>(x)?;
        let h0: Vec<[Tensor<T>; 1]> = h0.iter().map(|&h0| wide([h0])).collect::<Result<_>>()?;
        let start = std::array::from_fn(|i| match h0.get(i) {
            Some([h0]) => PerLane::Each(elements(h0)),
            None => PerLane::Same(T::ZERO),
        });
        let sources = std::array::from_fn(|i| LaneOperand::now(elements(&x[i])));
        let over = Walk { extent, reverse: self.reverse, sources, start };
        Ok(walk(affine::AffineStep, &over)?.outputs)
    }

    /// Outputs of a reverse kernel, given `a`, the cotangents of h and, for [`AffineVjp`](crate::affine::AffineVjp), h.
    fn fused_reverse<T, const I: usize, const P: usize, const O: usize, const R: usize>(
        &self,
        kernel: impl LaneStep<T, I, P, O> + ComposedMap<T, I, P, R>,
        x: [&Eager; I],
        h0: &[&Eager],
    ) -> Result<[Vec<Tensor<T>>; 2]>
    where
        T: t4a_tensor::Element + t4a_algebra::Float,
    {
        let extent = Extent::new(&x[0].shape(), self.axis);
        let x = wide::<T, I>(x)?;
        let h0: Vec<[Tensor<T>; 1]> = h0.iter().map(|&h0| wide([h0])).collect::<Result<_>>()?;
        let sources = std::array::from_fn(|i| {
            let edge = || match h0.get(i - 2 * P) {
                Some([h0]) => PerLane::Each(elements(h0)),
                None => PerLane::Same(T::ZERO),
            };
            LaneOperand { data: elements(&x[i]), ahead: (i >= 2 * P).then(edge) }
        });
        let start = [PerLane::Same(T::ZERO); P];
        let over = Walk { extent, reverse: !self.reverse, sources, start };
        let walked = walk(kernel, &over)?;
        Ok([walked.outputs.into(), walked.last.into()])
    }
}
