//! Operations on complex numbers, represented as pairs of arrays.
//!
//! ```text
//! operands   re₀, im₀, re₁, im₁, …           results   re, im
//! linear     f(re), f(im)
//! bilinear   f(x, y) = f(xᵣ, yᵣ) − f(xᵢ, yᵢ) + i (f(xᵣ, yᵢ) + f(xᵢ, yᵣ))
//!            cotangents x̄ = f*(z̄, y*), where f* is the cotangent of real arrays: bilinear again
//! steps      one after the other
//! ```
//!
//! The engine joins parts of `f32` and `f64` and runs one complex kernel if that is faster. GPU backends have kernels
//! that read both parts: [`Operation::pair_product`].

use t4a_tensor::{AnyTensor, DType, TensorError};

use super::{Cotangents, Keep, Meta, OnBatch, Operation, Outcome, Reverse, Value, vjp_of};
use crate::array::{Array, Dual, Eager, Kernel, PairParts};

/// Form of an operation with one result on complex numbers: [`Operation::on_pairs`].
#[derive(Clone, Debug)]
pub enum OnPairs<O: Operation> {
    /// Linear in one operand with real coefficients. Its rule needs only the cotangent.
    Linear,
    /// Bilinear in two operands with real coefficients.
    Bilinear {
        /// True if [`Operation::forward`] takes complex tensors and is faster than real products for these sizes.
        joined: bool,
        /// The operation that computes the cotangent of operand `i` of real arrays from z̄ and the other operand.
        cotangent: fn(&O, usize) -> Result<O, O::Error>,
        /// True if z̄ replaces operand `i` there; otherwise it is the first operand.
        in_place: bool,
    },
    /// Linear and bilinear steps.
    Steps {
        /// As in [`OnPairs::Bilinear`], for all steps together.
        joined: bool,
        /// Operand slots and operation of each step. Slots number the operands, then the results in order.
        steps: Vec<(Vec<usize>, O)>,
    },
}

/// An operation on complex numbers. Operands and the result are pairs of arrays, real parts before imaginary
/// ones. Cotangents are those of the parts, `∂L/∂Re + i ∂L/∂Im`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pairs<O> {
    /// The operation on real arrays.
    pub op: O,
    /// Conjugation of the first two operands.
    pub conj: [bool; 2],
}

fn both<A>(x: &[A]) -> PairParts<'_, A> {
    [x.first(), x.get(1)]
}

impl<O> Pairs<O> {
    /// Without conjugation.
    pub fn new(op: O) -> Self {
        Self { op, conj: [false; 2] }
    }
}

impl<O: Operation> Pairs<O> {
    fn apply<A: Array>(&self, operands: &[&A]) -> Result<Vec<A>, O::Error> {
        let inputs: Vec<Value<A>> = operands.iter().map(|&x| Value::Float(x.clone())).collect();
        Ok(A::apply(self, &inputs, &vec![false; inputs.len()])?.results)
    }

    /// The operation on real arrays.
    fn real<A: Array>(&self, operands: &[&A]) -> Result<A, O::Error> {
        let inputs: Vec<Value<A>> = operands.iter().map(|&x| Value::Float(x.clone())).collect();
        let out = A::apply(&self.op, &inputs, &vec![false; inputs.len()])?;
        Ok(out.results.into_iter().next().unwrap_or_else(|| unreachable!("one result")))
    }

    /// The bilinear operation by a kernel, or by up to four products of real arrays.
    fn product<A: Array>(
        &self,
        x: PairParts<'_, A>,
        y: PairParts<'_, A>,
    ) -> Result<Vec<A>, O::Error> {
        if x.into_iter().flatten().any(A::has_complex_products)
            && let Some(parts) = self.op.pair_product(x, y, self.conj)?
        {
            return Ok(parts.into());
        }
        let times = |i: usize, j: usize| match (x[i], y[j]) {
            (Some(a), Some(b)) => self.real(&[a, b]).map(Some),
            _ => Ok(None),
        };
        let [s, t] = self.conj;
        // Part by part: both products of a part may still be in the cache when they are added.
        let re = sum(times(0, 0)?, false, times(1, 1)?, s == t);
        let im = sum(times(0, 1)?, t, times(1, 0)?, s);
        match (re, im) {
            (Some(re), Some(im)) => Ok(vec![re, im]),
            (Some(x), None) => Ok(vec![x.clone(), x.full(&x.shape(), 0.0)]),
            (None, Some(x)) => Ok(vec![x.full(&x.shape(), 0.0), x]),
            (None, None) => unreachable!("each factor has a part"),
        }
    }

    /// Cotangents of both parts of an operand of a bilinear operation: `op` of z̄ and the other operand, in this order
    /// or, if `exchanged`, in the reverse one.
    fn cotangent<A: Array>(
        op: Pairs<O>,
        exchanged: bool,
        g: &[Option<A>],
        other: &[A],
    ) -> Result<Cotangents<A>, O::Error> {
        let [c, d] = [&other[0], &other[1]];
        let parts = match g {
            [Some(a), Some(b)] if exchanged => op.apply(&[c, d, a, b])?,
            [Some(a), Some(b)] => op.apply(&[a, b, c, d])?,
            _ if exchanged => op.product([Some(c), Some(d)], [g[0].as_ref(), g[1].as_ref()])?,
            _ => op.product([g[0].as_ref(), g[1].as_ref()], [Some(c), Some(d)])?,
        };
        Ok(parts.into_iter().map(Some).collect())
    }

    /// Cotangents of one operand of a linear operation.
    fn linear<A: Array>(&self, g: &[Option<A>]) -> Result<Cotangents<A>, O::Error> {
        let part = |(g, conj): (&Option<A>, bool)| match g {
            None => Ok(None),
            Some(g) => {
                let g = if conj { g.neg() } else { g.clone() };
                Ok(vjp_of(&self.op, &[], &[Some(g)], &[true])?.pop().flatten())
            }
        };
        g.iter().zip([false, self.conj[0]]).map(part).collect()
    }

    /// Operands, then the results of all steps.
    fn by_steps<A: Array>(
        &self,
        operands: Vec<Vec<A>>,
        steps: &[(Vec<usize>, O)],
    ) -> Result<Vec<Vec<A>>, O::Error> {
        let mut slots = operands;
        for (taken, op) in steps {
            let operands: Vec<&A> = taken.iter().flat_map(|&slot| &slots[slot]).collect();
            let next = Pairs::new(op.clone()).apply(&operands)?;
            slots.push(next);
        }
        Ok(slots)
    }

    /// Cotangents of the operands of steps, whose results are recomputed.
    fn vjp_by_steps<A: Array>(
        &self,
        steps: &[(Vec<usize>, O)],
        reverse: &Reverse<'_, A>,
    ) -> Result<Cotangents<A>, O::Error> {
        let n = reverse.wanted.len() / 2;
        let operand = |i: usize| [0, 1].map(|part| reverse.kept.float(2 * i + part).clone());
        let operands: Vec<Vec<A>> = (0..n).map(|i| self.conjugated(i, operand(i))).collect();
        let slots = self.by_steps(operands, steps)?;
        let mut wanted: Vec<bool> = reverse.wanted.chunks(2).map(|x| x.contains(&true)).collect();
        for (taken, _) in steps {
            wanted.push(taken.iter().any(|&slot| wanted[slot]));
        }
        let mut cotangents: Vec<Option<Cotangents<A>>> = vec![None; slots.len()];
        if let Some(last) = cotangents.last_mut() {
            *last = Some(reverse.cotangents.to_vec());
        }
        for (s, (taken, op)) in steps.iter().enumerate().rev() {
            let Some(g) = cotangents[n + s].take().filter(|_| wanted[n + s]) else { continue };
            let operands: Vec<&A> = taken.iter().flat_map(|&slot| &slots[slot]).collect();
            let wanted: Vec<bool> = taken.iter().flat_map(|&slot| [wanted[slot]; 2]).collect();
            let all = vjp_of(&Pairs::new(op.clone()), &operands, &g, &wanted)?;
            for (&slot, g) in taken.iter().zip(all.chunks(2)) {
                cotangents[slot] = Some(g.to_vec());
            }
        }
        let of = |(i, g): (usize, Option<Cotangents<A>>)| {
            let mut g = g.unwrap_or_else(|| vec![None; 2]);
            if self.conj.get(i) == Some(&true) {
                g[1] = g[1].take().map(|im| im.neg());
            }
            g
        };
        Ok(cotangents.into_iter().take(n).enumerate().flat_map(of).collect())
    }

    /// Operand `i` with its conjugation applied.
    fn conjugated<A: Array>(&self, i: usize, [re, im]: [A; 2]) -> Vec<A> {
        let conj = self.conj.get(i) == Some(&true);
        vec![re, if conj { im.neg() } else { im }]
    }

    /// The complex kernel of the engine.
    fn joined(&self, inputs: &[Value<Eager>]) -> Result<Outcome<Eager>, O::Error> {
        let join = |(i, pair): (usize, &[Value<Eager>])| -> Result<Value<Eager>, O::Error> {
            let (re, im) = (pair[0].float().tensor()?, pair[1].float().tensor()?);
            let conj = self.conj.get(i) == Some(&true);
            Ok(Value::Float(AnyTensor::from_parts(re.clone(), im.clone(), conj)?.into()))
        };
        let operands = inputs.chunks(2).enumerate().map(join);
        let operands = operands.collect::<Result<Vec<_>, O::Error>>()?;
        let out = self.op.forward(&operands, &vec![false; operands.len()])?;
        let result = out.results.into_iter().next();
        let result = result.unwrap_or_else(|| unreachable!("one result")).into_tensor()?;
        Ok(Outcome::new(result.into_parts()?.map(Eager::from).into()))
    }
}

/// The sum of signed terms; a missing term is zero.
fn sum<A: Array>(a: Option<A>, minus_a: bool, b: Option<A>, minus_b: bool) -> Option<A> {
    match (a, b) {
        (Some(a), Some(b)) => Some(match (minus_a, minus_b) {
            (false, false) => a.plus(&b),
            (false, true) => a.minus(&b),
            (true, false) => b.minus(&a),
            (true, true) => a.plus(&b).neg(),
        }),
        (Some(x), None) => Some(if minus_a { x.neg() } else { x }),
        (None, Some(x)) => Some(if minus_b { x.neg() } else { x }),
        (None, None) => None,
    }
}

impl<O: Operation> Operation for Pairs<O> {
    type Error = O::Error;

    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn arity(&self) -> Option<[usize; 2]> {
        self.op.arity().map(|counts| counts.map(|count| 2 * count))
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, O::Error> {
        self.op.on_pairs()?;
        let op = self.name();
        let mut whole = Vec::with_capacity(inputs.len().div_ceil(2));
        for pair in inputs.chunks(2) {
            let (re, im) = (&pair[0], pair.last().unwrap_or(&pair[0]));
            if pair.len() < 2 || re.shape != im.shape {
                let lhs = &re.shape;
                let rhs: &[usize] = if pair.len() < 2 { &[] } else { &im.shape };
                let required = "real and imaginary parts in pairs of one shape";
                return Err(TensorError::shapes(op, lhs, rhs, required).into());
            }
            if re.dtype != im.dtype {
                let (lhs, rhs) = (re.dtype, im.dtype);
                return Err(TensorError::DTypeMismatch { op, lhs, rhs }.into());
            }
            whole.push(re.clone());
        }
        let results = self.op.results(&whole)?;
        Ok(results.into_iter().flat_map(|x| [x.clone(), x]).collect())
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        let (x, y) = tracked.split_at(tracked.len().min(2));
        match self.op.on_pairs() {
            Ok(OnPairs::Linear) => Keep::default(),
            Ok(OnPairs::Bilinear { .. }) => {
                let (x, y) = (x.contains(&true), y.contains(&true));
                let which = [y, y, x, x].into_iter().enumerate().filter(|&(_, kept)| kept);
                Keep::default().inputs(&which.map(|(i, _)| i).collect::<Vec<_>>())
            }
            _ => Keep::default().all_inputs(),
        }
    }

    /// The kernels on real numbers.
    fn kernels(&self, inputs: &[Meta]) -> Vec<Kernel> {
        self.op.kernels(&inputs.iter().step_by(2).cloned().collect::<Vec<_>>())
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>, O::Error> {
        let x: Vec<A> = inputs.iter().map(|x| x.float().clone()).collect();
        let results = match self.op.on_pairs()? {
            OnPairs::Linear => {
                let im = self.real(&[&x[1]])?;
                vec![self.real(&[&x[0]])?, if self.conj[0] { im.neg() } else { im }]
            }
            OnPairs::Bilinear { .. } => self.product(both(&x[..2]), both(&x[2..]))?,
            OnPairs::Steps { steps, .. } => {
                let operand =
                    |(i, x): (usize, &[A])| self.conjugated(i, [x[0].clone(), x[1].clone()]);
                let operands = x.chunks(2).enumerate().map(operand).collect();
                let last = self.by_steps(operands, &steps)?.pop();
                last.unwrap_or_else(|| unreachable!("there are steps"))
            }
        };
        Ok(Outcome::new(results))
    }

    fn forward(
        &self,
        inputs: &[Value<Eager>],
        tracked: &[bool],
    ) -> Result<Outcome<Eager>, O::Error> {
        let joined = match self.op.on_pairs()? {
            OnPairs::Linear => false,
            OnPairs::Bilinear { joined, .. } | OnPairs::Steps { joined, .. } => joined,
        };
        let dtype = inputs.first().map(|x| x.float().dtype());
        match dtype {
            Some(DType::F32 | DType::F64) if joined => self.joined(inputs),
            _ => self.portable(inputs, tracked),
        }
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, O::Error> {
        let &Reverse { kept, cotangents: g, wanted, .. } = reverse;
        match self.op.on_pairs()? {
            OnPairs::Linear => self.linear(g),
            OnPairs::Bilinear { cotangent, in_place, .. } => {
                let of = |i: usize| {
                    if !wanted[2 * i..2 * i + 2].contains(&true) {
                        return Ok(vec![None; 2]);
                    }
                    let other = [2, 3].map(|part| kept.float((2 * i + part) % 4).clone());
                    // The cotangent of x in x y is z̄ y*, in x* y it is z̄* y.
                    let [own, factor] = [self.conj[i], self.conj[1 - i]];
                    let exchanged = in_place && i == 1;
                    let mut conj = [own, own == factor];
                    if exchanged {
                        conj.reverse();
                    }
                    let op = Pairs { op: cotangent(&self.op, i)?, conj };
                    Self::cotangent(op, exchanged, g, &other)
                };
                Ok([of(0)?, of(1)?].concat())
            }
            OnPairs::Steps { steps, .. } => self.vjp_by_steps(&steps, reverse),
        }
    }

    /// Each tangent of a bilinear operation is computed by the operation.
    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>, O::Error> {
        if !matches!(self.op.on_pairs()?, OnPairs::Bilinear { .. }) {
            return self.portable(inputs, tracked);
        }
        let duals: Vec<&Dual<A>> = inputs.iter().map(Value::float).collect();
        let values: Vec<&A> = duals.iter().map(|x| &x.value).collect();
        let tangents = |i: usize| [duals[i].tangent.as_ref(), duals[i + 1].tangent.as_ref()];
        let term = |[dx, y]: [PairParts<'_, A>; 2]| match (dx, y) {
            ([None, None], _) | (_, [None, None]) => Ok(None),
            ([Some(a), Some(b)], [Some(c), Some(d)]) => self.apply(&[a, b, c, d]).map(Some),
            (x, y) => self.product(x, y).map(Some),
        };
        let [x, y] = [0, 2].map(|i| [Some(values[i]), Some(values[i + 1])]);
        let terms = [term([tangents(0), y])?, term([x, tangents(2)])?];
        let mut moving: Option<Vec<A>> = None;
        for term in terms.into_iter().flatten() {
            moving = Some(match moving {
                Some(sum) => sum.into_iter().zip(&term).map(|(a, b)| a.plus(b)).collect(),
                None => term,
            });
        }
        let tangent = |i: usize| moving.as_ref().map(|all| all[i].clone());
        let results = self.apply(&values)?.into_iter().enumerate();
        Ok(Outcome::new(results.map(|(i, value)| Dual { value, tangent: tangent(i) }).collect()))
    }

    fn check_second_order(&self) -> Result<(), O::Error> {
        self.op.check_second_order()
    }

    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let pairs = differ.chunks(2).map(|x| (x[0] == x[x.len() - 1]).then_some(x[0]));
        let batch = self.op.on_batch(size, &pairs.collect::<Option<Vec<_>>>()?)?;
        let twice = |all: Vec<Option<usize>>| all.into_iter().flat_map(|x| [x; 2]).collect();
        Some(match batch.map(|op| Self { op, conj: self.conj }) {
            OnBatch::Front { op, .. } => OnBatch::front(op),
            OnBatch::Joined { operands, results } => {
                OnBatch::Joined { operands: twice(operands), results: twice(results) }
            }
        })
    }

    fn is_composite(&self) -> bool {
        self.op.is_composite()
    }
}
