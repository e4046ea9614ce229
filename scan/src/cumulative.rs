//! Cumulative sums, products, extrema and log-sum-exp with derivatives. Each vjp is a linear recurrence.

use t4a_diff::array::{Cumulation, Kernel};
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Flags, Keep, Kept, Meta, OnBatch, Operation, Outcome, Reverse,
    Value,
};
use t4a_tensor::{Result, TensorError};

use crate::operand;
use crate::recurrence::{LinearRecurrence, before, zero};
use crate::running::{Running, running};

/// `y_t = x_0 ⊕ … ⊕ x_t` along an axis, from its end with `reverse`.
///
/// With `complex` (sums and products) x and y are pairs of real and imaginary parts.
///
/// Rules; the index of the sums increases with time:
///
/// ```text
/// sum          x̄_t = Σ_{s ≥ t} ȳ_s
/// product      g_t = ȳ_t + x*_{t+1} g_{t+1},          x̄_t = y*_{t−1} g_t; no division, so zeros do not matter
/// max, min     g_t = ȳ_t + [y_{t+1} = y_t] g_{t+1},   x̄_t = [y_t ≠ y_{t−1}] g_t: the first of equal ones
/// log-sum-exp  g_t = ȳ_t + e^(y_t − y_{t+1}) g_{t+1}, x̄_t = e^(x_t − y_t) g_t
/// ```
///
/// If log-sum-exp is −∞ its derivative is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cumulative {
    /// The cumulative operation.
    pub kind: Running,
    /// The axis of accumulation.
    pub axis: usize,
    /// Accumulate from the end of the axis.
    pub reverse: bool,
    /// Operand and result are pairs of real and imaginary parts.
    pub complex: bool,
}

impl Cumulative {
    /// A real forward accumulation.
    pub fn new(kind: Running, axis: usize) -> Self {
        Self { kind, axis, reverse: false, complex: false }
    }

    /// The recurrence of the vjp.
    fn recurrence(&self) -> LinearRecurrence {
        let &Self { axis, reverse, complex, .. } = self;
        LinearRecurrence { axis, reverse, initial: false, complex }
    }

    /// Operands of the recurrence that computes the product: `y_t = x_t y_{t−1} + 0` with initial value 1.
    fn product_operands<A: Array>(&self, x: &[A]) -> (LinearRecurrence, Vec<A>) {
        let one = |(i, x): (usize, &A)| zero(x, self.axis).shift(if i == 0 { 1.0 } else { 0.0 });
        let zeros = x.iter().map(|x| x.full(&x.shape(), 0.0));
        let start = x.iter().enumerate().map(one);
        let operands = x.iter().cloned().chain(zeros).chain(start).collect();
        (LinearRecurrence { initial: true, ..self.recurrence() }, operands)
    }

    /// The kernel of the array type, for maximum, minimum and log-sum-exp.
    fn cumulation(&self) -> Option<Cumulation> {
        match self.kind {
            Running::Max => Some(Cumulation::Max),
            Running::Min => Some(Cumulation::Min),
            Running::LogSumExp => Some(Cumulation::LogSumExp),
            Running::Sum | Running::Product => None,
        }
    }

    /// `x ⊕ y` for maximum, minimum and log-sum-exp.
    fn join<A: Array>(&self, x: &A, y: &A) -> A {
        match self.kind {
            Running::LogSumExp => log_add_exp(x, y),
            Running::Max => x.replace(&y.greater(x).or(&y.is_nan()), y),
            _ => x.replace(&x.greater(y).or(&y.is_nan()), y),
        }
    }

    /// Scan by doubling (Hillis and Steele): in pass k each element is combined with the element 2ᵏ before it.
    fn doubling<A: Array>(&self, x: &A) -> A {
        let (axis, n) = (self.axis, x.shape()[self.axis]);
        let x = if self.reverse { x.flip(&[axis]) } else { x.clone() };
        let (mut y, mut reach) = (x, 1);
        while reach < n {
            let joined =
                self.join(&y.narrow(axis, 0, n - reach), &y.narrow(axis, reach, n - reach));
            y = A::cat(&[y.narrow(axis, 0, reach), joined], axis);
            reach *= 2;
        }
        if self.reverse { y.flip(&[axis]) } else { y }
    }

    /// 1 where `y_t = y_{t−1}` in time order, else 0; requires at least one element.
    fn unchanged<A: Array>(&self, y: &A) -> A {
        let (axis, n) = (self.axis, y.shape()[self.axis]);
        let (low, high) = (y.narrow(axis, 0, n - 1), y.narrow(axis, 1, n - 1));
        let same = low.equal(&high).or(&low.is_nan().and(&high.is_nan()));
        let (same, first) = (low.indicator(&same), zero(&y.detach(), axis));
        A::cat(&if self.reverse { [same, first] } else { [first, same] }, axis)
    }

    /// Cotangents of the recurrence that computes the product, with its vjp given by `run`.
    fn product_vjp<A: Array>(
        &self,
        reverse: &Reverse<'_, A>,
        run: impl FnOnce(&LinearRecurrence, &Reverse<'_, A>) -> Result<Cotangents<A>>,
    ) -> Result<Cotangents<A>> {
        let n = reverse.wanted.len();
        let x: Vec<A> = (0..n).map(|i| reverse.kept.float(i).clone()).collect();
        let y = (0..n).map(|i| reverse.kept.result(i).clone()).collect();
        let (op, operands) = self.product_operands(&x);
        let operands: Vec<Value<A>> = operands.into_iter().map(Value::Float).collect();
        let wanted: Vec<bool> = (0..operands.len()).map(|i| i < n).collect();
        let kept = Kept::new(op.keep(&wanted), &operands, &Outcome::new(y));
        let mut all = run(&op, &Reverse { kept: &kept, wanted: &wanted, ..*reverse })?;
        all.truncate(n);
        Ok(all)
    }

    /// `a_t` and the weight of `x_t` in `ẏ_t = a_t ẏ_{t−1} + w_t ẋ_t`, of log-sum-exp.
    fn shares<A: Array>(&self, x: &A, y: &A) -> [A; 2] {
        let minus_infinity = zero(y, self.axis).shift(f64::NEG_INFINITY);
        let earlier = before(y, &minus_infinity, self.axis, self.reverse);
        let share = |part: &A| {
            let nothing = part.equals(f64::NEG_INFINITY);
            part.sub(y).fill(&part.equal(y), 0.0).exp().fill(&nothing, 0.0)
        };
        [share(&earlier), share(x)]
    }
}

/// `ln(eˣ + e^y)`; where it is −∞ its derivative is 0.
pub(crate) fn log_add_exp<A: Array>(x: &A, y: &A) -> A {
    let m = x.replace(&y.greater(x), y).detach();
    let infinite = m.equals(f64::INFINITY).or(&m.equals(f64::NEG_INFINITY));
    let m = m.fill(&infinite, 0.0);
    let sum = x.sub(&m).exp().add(&y.sub(&m).exp());
    let none = sum.equals(0.0);
    sum.fill(&none, 1.0).ln().add(&m).fill(&none, f64::NEG_INFINITY)
}

impl Operation for Cumulative {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([1 + usize::from(self.complex); 2])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        if self.complex && !matches!(self.kind, Running::Sum | Running::Product) {
            return Err(TensorError::value(op, "sums and products alone are complex"));
        }
        operand::count(op, inputs, 1 + self.complex as usize)?;
        operand::floats(op, inputs)?;
        operand::axis(op, self.axis, &inputs[0].shape)?;
        operand::same_shape(op, inputs, "real and imaginary parts of one shape")?;
        Ok(inputs.to_vec())
    }

    fn keep(&self, _: &[bool]) -> Keep {
        match self.kind {
            Running::Sum => Keep::default(),
            Running::Max | Running::Min => Keep::default().results(&[0]),
            _ => Keep::default().all_inputs().all_results(),
        }
    }

    fn kernels(&self, inputs: &[Meta]) -> Vec<Kernel> {
        match self.kind {
            Running::Sum => vec![Kernel::RunningSum],
            Running::Product => self.recurrence().kernels(inputs),
            // The derivatives are linear recurrences.
            _ => match self.cumulation() {
                Some(of) => vec![Kernel::Cumulative(of), Kernel::Recurrence],
                None => Vec::new(),
            },
        }
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let x: Vec<A> = inputs.iter().map(|x| x.float().clone()).collect();
        if x[0].shape()[self.axis] == 0 {
            return Ok(Outcome::new(x));
        }
        let flip = |x: &A| if self.reverse { x.flip(&[self.axis]) } else { x.clone() };
        Ok(Outcome::new(match self.kind {
            Running::Sum => x.iter().map(|x| flip(&flip(x).cumsum(self.axis))).collect(),
            Running::Product => {
                let (op, operands) = self.product_operands(&x);
                op.of(operands)?
            }
            _ => {
                let kernel =
                    self.cumulation().and_then(|of| x[0].cumulative(of, self.axis, self.reverse));
                vec![kernel.unwrap_or_else(|| self.doubling(&x[0]))]
            }
        }))
    }

    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<Outcome<Eager>> {
        if self.kind == Running::Product && self.complex {
            return self.portable(inputs, tracked);
        }
        let of = |x: &Value<Eager>| {
            let x = x.float().tensor()?;
            Ok(Eager::from(running(self.kind, x, self.axis, self.reverse)?))
        };
        Ok(Outcome::new(inputs.iter().map(of).collect::<Result<_>>()?))
    }

    fn on_batch(&self, _: usize, _: &[bool]) -> Option<OnBatch<Self>> {
        Some(OnBatch::front(Self { axis: self.axis + 1, ..*self }))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let kept = reverse.kept;
        let given = reverse.cotangents.iter().flatten().next();
        let given = given.unwrap_or_else(|| unreachable!("one cotangent is given"));
        if given.shape()[self.axis] == 0 {
            return Ok(vec![Some(given.clone()); reverse.wanted.len()]);
        }
        let op = self.recurrence();
        Ok(vec![Some(match self.kind {
            Running::Sum => {
                let back = Self { reverse: !self.reverse, complex: false, ..*self };
                let sum = |g: &Option<A>| {
                    let Some(g) = g else { return Ok(None) };
                    let sums = A::apply(&back, &[Value::Float(g.clone())], &[false])?.results;
                    Ok(sums.into_iter().next())
                };
                return reverse.cotangents.iter().map(sum).collect();
            }
            Running::Product => return self.product_vjp(reverse, LinearRecurrence::vjp),
            Running::Max | Running::Min => {
                let unchanged = self.unchanged(kept.result(0));
                let later = unchanged.equals(1.0);
                op.adjoint(&[unchanged], vec![given.clone()])?.swap_remove(0).fill(&later, 0.0)
            }
            Running::LogSumExp => {
                let [a, w] = self.shares(kept.float(0), kept.result(0));
                op.adjoint(&[a], vec![given.clone()])?.swap_remove(0).mul(&w)
            }
        })])
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        match self.kind {
            Running::Product => self.product_vjp(reverse, LinearRecurrence::fused_vjp),
            _ => self.vjp(reverse),
        }
    }

    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>> {
        let Dual { value: x, tangent } = inputs[0].float();
        let linear = matches!(self.kind, Running::Sum | Running::Product);
        let (Some(tangent), false, false) = (tangent, linear, x.shape()[self.axis] == 0) else {
            return self.portable(inputs, tracked);
        };
        let y = A::apply(self, &[Value::Float(x.clone())], &[false])?.results.swap_remove(0);
        let (a, force) = match self.kind {
            Running::LogSumExp => {
                let [a, w] = self.shares(x, &y);
                (a, w.mul(tangent))
            }
            _ => {
                let unchanged = self.unchanged(&y);
                (unchanged.clone(), tangent.fill(&unchanged.equals(1.0), 0.0))
            }
        };
        let tangent = self.recurrence().of(vec![a, force])?.swap_remove(0);
        Ok(Dual::new(y, tangent).into())
    }
}
