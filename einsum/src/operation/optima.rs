//! Optimal assignments of the summed labels over a selective semiring: the first one, their number, the K best values.

use std::marker::PhantomData;
use std::sync::Arc;

use t4a_algebra::{KBest, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Selective, Semiring};
use t4a_diff::array::Integers;
use t4a_diff::{Array, Cotangents, Dual, Eager, Meta, OnBatch, Operation, Outcome, Reverse, Value};
use t4a_tensor::{AnyTensor, DType, Tensor, TensorError};

use super::tag::{FloatSemiring, Tag};
use super::{Contraction, entered_all};
use crate::error::Result;
use crate::plan::Plan;

/// The most values of [`Optima::Best`].
pub const MOST_BEST: usize = 16;
/// The most assignments: all their numbers are `f64`.
const MOST_ASSIGNMENTS: f64 = 9_007_199_254_740_992.0;

/// Properties of the optimal assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Optima {
    /// Number of the first optimal assignment of the summed labels of [`Plan::labels`], the last one fastest; −1 where the
    /// value is the zero of the semiring. Over (max, min) of one of the optimal assignments.
    Argmax,
    /// Number of optimal assignments. Not over (max, min).
    Count,
    /// The best values in descending order of preference, on a new last axis; values attained twice are there
    /// twice, and missing ones are the zero of the semiring.
    Best {
        /// Number of values, 1 to [`MOST_BEST`].
        k: usize,
    },
}

/// Optimal values of a contraction and [`Optima`] of them: argmax and count are `i64` of the shape of the result.
///
/// There is no derivative. Assignments are compared in `f64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OptimalAssignments {
    /// Labels, shapes and contraction order.
    #[cfg_attr(feature = "serde", serde(with = "crate::data"))]
    pub plan: Arc<Plan>,
    /// A selective semiring.
    pub semiring: FloatSemiring,
    /// The property.
    pub of: Optima,
}

/// Evaluates an expression with the type of a selective semiring.
macro_rules! selective {
    ($op:expr, $s:ident => $body:expr) => {
        match $op.semiring {
            FloatSemiring::MaxPlus => {
                type $s = MaxPlus;
                $body
            }
            FloatSemiring::MinPlus => {
                type $s = MinPlus;
                $body
            }
            FloatSemiring::MaxMul => {
                type $s = MaxMul;
                $body
            }
            FloatSemiring::MinMul => {
                type $s = MinMul;
                $body
            }
            FloatSemiring::MaxMin => {
                type $s = MaxMin;
                $body
            }
            _ => Err($op.refused("its sums are none of their terms")),
        }
    };
}

/// Values with the numbers of assignments: ⊕ prefers the better value, then the smaller number; ⊗ adds numbers.
#[derive(Clone, Copy)]
struct Numbered<S>(PhantomData<S>);

impl<S: Selective<f64>> Semiring<[f64; 2]> for Numbered<S> {
    const ZERO: [f64; 2] = [S::ZERO, -1.0];
    const ONE: [f64; 2] = [S::ONE, 0.0];

    #[inline]
    fn add(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        let tie = !S::better(a[0], b[0]);
        if S::better(b[0], a[0]) || (tie && b[1] < a[1]) { b } else { a }
    }

    #[inline]
    fn mul(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        let value = S::mul(a[0], b[0]);
        if S::better(value, S::ZERO) { [value, a[1] + b[1]] } else { Self::ZERO }
    }
}

impl OptimalAssignments {
    fn refused(&self, reason: &str) -> crate::EinsumError {
        let text = format!("{:?} over {}: {reason}", self.of, self.semiring.label());
        TensorError::value("optimal_assignments", text).into()
    }

    fn contraction(&self) -> Contraction {
        Contraction { plan: self.plan.clone(), semiring: self.semiring }
    }

    /// Steps of the summed labels by number; 0 for labels of the result.
    fn steps(&self) -> Result<Vec<f64>> {
        let network = &self.plan.network;
        let mut steps = vec![0.0; network.sizes.len()];
        let mut count = 1.0;
        for (id, step) in steps.iter_mut().enumerate().rev() {
            if !network.output.iter().any(|&kept| kept as usize == id) {
                *step = count;
                count *= network.sizes[id] as f64;
            }
        }
        match count <= MOST_ASSIGNMENTS {
            true => Ok(steps),
            false => Err(self.refused(&format!("{count:e} assignments, at most 2^53"))),
        }
    }

    /// Elements with their share of the number of the assignment: each label is counted in the first operand that has it.
    fn numbered<S: Selective<f64>>(&self, operands: &[AnyTensor]) -> Result<Vec<Tensor<[f64; 2]>>> {
        let mut steps = self.steps()?;
        let mut all = Vec::with_capacity(operands.len());
        for (x, axes) in operands.iter().zip(&self.plan.network.axes) {
            let of = |id: Option<_>| {
                id.map_or(0.0, |id: crate::network::LabelId| {
                    std::mem::take(&mut steps[id as usize])
                })
            };
            let steps: Vec<f64> = axes.iter().copied().map(of).collect();
            let shape = x.shape();
            let mut index = vec![0usize; shape.len()];
            let mut elements = Vec::with_capacity(shape.iter().product());
            for value in x.typed::<f64>()?.to_vec()? {
                let number: f64 = index.iter().zip(&steps).map(|(&i, step)| i as f64 * step).sum();
                elements.push(Numbered::<S>::mul([value, number], [S::ONE, 0.0]));
                for axis in (0..shape.len()).rev() {
                    index[axis] += 1;
                    if index[axis] < shape[axis] {
                        break;
                    }
                    index[axis] = 0;
                }
            }
            all.push(Tensor::from_vec(elements, shape)?);
        }
        Ok(all)
    }

    fn argmax<S: Selective<f64>>(&self, operands: &[AnyTensor]) -> Result<AnyTensor> {
        let operands = self.numbered::<S>(operands)?;
        let found =
            self.plan.contract::<Numbered<S>, [f64; 2]>(&operands.iter().collect::<Vec<_>>())?;
        let numbers = found.to_vec()?.into_iter().map(|[_, number]| number as i64).collect();
        Ok(Tensor::from_vec(numbers, found.shape())?.into())
    }

    fn best<S: Selective<f64>, const K: usize>(
        &self,
        k: usize,
        operands: &[AnyTensor],
    ) -> Result<AnyTensor> {
        let lists = |x: &AnyTensor| -> Result<Tensor<[f64; K]>> {
            let elements = x.typed::<f64>()?.to_vec()?.into_iter();
            let elements = elements.map(|x| KBest::<K, S>::of([x])).collect();
            Ok(Tensor::from_vec(elements, x.shape())?)
        };
        let operands: Vec<_> = operands.iter().map(lists).collect::<Result<_>>()?;
        let operands: Vec<&Tensor<[f64; K]>> = operands.iter().collect();
        let found = self.plan.contract::<KBest<K, S>, [f64; K]>(&operands)?;
        let values = found.to_vec()?.into_iter().flat_map(|all| all.into_iter().take(k)).collect();
        let shape: Vec<usize> = found.shape().iter().copied().chain([k]).collect();
        Ok(Tensor::from_vec(values, &shape)?.into())
    }
}

fn without_derivative<R>(op: &OptimalAssignments) -> Result<R> {
    Err(op.refused("there is no derivative"))
}

impl Operation for OptimalAssignments {
    type Error = crate::EinsumError;

    fn name(&self) -> &'static str {
        "optimal_assignments"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        self.contraction().arity()
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let mut results = self.contraction().results(inputs)?;
        match (self.of, self.semiring) {
            (_, FloatSemiring::Standard | FloatSemiring::LogSumExp) => {
                return Err(self.refused("its sums are none of their terms"));
            }
            (Optima::Count, FloatSemiring::MaxMin) => {
                return Err(self.refused("optimal terms do not stay distinct"));
            }
            (Optima::Best { k }, _) if !(1..=MOST_BEST).contains(&k) => {
                return Err(self.refused(&format!("1 to {MOST_BEST} values")));
            }
            (Optima::Best { k }, _) => results[0].shape.push(k),
            _ => {}
        }
        Ok(results)
    }

    fn indices(&self, _: &[Meta]) -> Vec<Vec<usize>> {
        match self.of {
            Optima::Best { .. } => Vec::new(),
            _ => vec![self.plan.shape()],
        }
    }

    fn is_on_host(&self) -> bool {
        true
    }

    /// By the engine; the results are constants of the implementor.
    fn portable<A: Array>(&self, inputs: &[Value<A>], tracked: &[bool]) -> Result<Outcome<A>> {
        let like = inputs[0].float();
        let host = |x: &Value<A>| Ok(Value::Float(Eager::from(x.float().elements()?)));
        let inputs: Vec<Value<Eager>> = inputs.iter().map(host).collect::<Result<_>>()?;
        self.forward(&inputs, tracked)?.try_map(
            |x| Ok(Value::Integers(like.indices(x.integers().elements()?))),
            |x| Ok(like.constant(x.elements()?)),
        )
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let op = self.contraction();
        let operands = entered_all(&op, inputs.iter().map(Value::float))?;
        let given: Vec<&AnyTensor> = operands.iter().map(AsRef::as_ref).collect();
        let wide: Vec<AnyTensor> =
            given.iter().map(|&x| x.clone().cast(DType::F64)).collect::<Result<_, _>>()?;
        if let Optima::Best { k } = self.of {
            let found = selective!(self, S => match k {
                ..=4 => self.best::<S, 4>(k, &wide),
                _ => self.best::<S, MOST_BEST>(k, &wide),
            })?;
            return Ok(Eager::from(found.cast(given[0].dtype())?).into());
        }
        let numbers = match (self.of, self.semiring) {
            (Optima::Argmax, _) => selective!(self, S => self.argmax::<S>(&wide))?,
            (_, FloatSemiring::MaxPlus) => self.plan.count::<MaxPlus>(&given)?,
            (_, FloatSemiring::MinPlus) => self.plan.count::<MinPlus>(&given)?,
            (_, FloatSemiring::MaxMul) => self.plan.count::<MaxMul>(&given)?,
            (_, FloatSemiring::MinMul) => self.plan.count::<MinMul>(&given)?,
            _ => return Err(self.refused("optimal terms do not stay distinct")),
        };
        let value = Eager::from(self.semiring.contract(&self.plan, &given)?);
        Ok(Outcome { extra: vec![Value::Integers(numbers.into())], ..Outcome::from(value) })
    }

    fn vjp<A: Array>(&self, _: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        without_derivative(self)
    }

    fn jvp<A: Array>(&self, _: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        without_derivative(self)
    }

    fn check_second_order(&self) -> Result<()> {
        without_derivative(self)
    }

    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let plan = self.plan.batched(size, differ).ok()?;
        Some(OnBatch::front(Self { plan, ..*self }))
    }
}
