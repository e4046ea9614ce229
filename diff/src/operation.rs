//! Operations as values.
//!
//! ```text
//! results    shapes and dtypes, checked before any work
//! portable   the definition in the vocabulary: runs wherever Array is implemented
//! forward    the engine's own way, if it has a better one
//! vjp        the rule in the vocabulary, from what `keep` names; fused_vjp the engine's own
//! jvp        by default the portable definition on duals
//! on_batch   the operation that it is on a batch, if one operation is
//! ```
//!
//! A face runs an operation through this trait and knows nothing about any single one: a tape records
//! one node for it, whose rule is [`Operation::vjp`].

use std::fmt::{Debug, Display};

use t4a_tensor::{DType, TensorError};

use crate::array::{Array, Dual, Eager, Shape};

/// Shape and dtype of an operand or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Sizes of the axes.
    pub shape: Shape,
    /// The element type.
    pub dtype: DType,
}

/// Kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Value::Float`].
    Float,
    /// [`Value::Integers`].
    Integers,
    /// [`Value::Flags`].
    Flags,
}

impl Kind {
    /// The kind of arrays of this dtype; `None` for complex ones, which are pairs of floats.
    pub fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::Bool => Some(Kind::Flags),
            _ if dtype.is_int() => Some(Kind::Integers),
            _ if dtype.is_float() => Some(Kind::Float),
            _ => None,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Kind::Float => "floats",
            Kind::Integers => "integers",
            Kind::Flags => "truth values",
        }
    }
}

/// Shapes and dtypes of the results of operands of any kind: checks each kind, then [`Operation::results`].
///
/// # Errors
/// [`TensorError::OperandKind`]; those of the operation. Before any work.
pub fn checked_results<O: Operation>(op: &O, inputs: &[Meta]) -> Result<Vec<Meta>, O::Error> {
    for (operand, &Meta { dtype, .. }) in inputs.iter().enumerate() {
        let required = op.kind(operand);
        if Kind::of(dtype) != Some(required) {
            let (op, required) = (op.name(), required.text());
            return Err(TensorError::OperandKind { op, operand, dtype, required }.into());
        }
    }
    op.results(inputs)
}

/// An operand, or what a rule needs beyond operands and results.
#[derive(Clone, Debug)]
pub enum Value<A: Array> {
    /// Floats, which may have a derivative.
    Float(A),
    /// Indices.
    Integers(A::Integers),
    /// Truth values.
    Flags(A::Flags),
}

impl<A: Array> Value<A> {
    /// The floats.
    ///
    /// # Panics
    /// If it is something else: an operation fixes what its operands are.
    #[track_caller]
    pub fn float(&self) -> &A {
        match self {
            Value::Float(x) => x,
            other => unreachable!("floats are required, given {other:?}"),
        }
    }

    /// The indices.
    ///
    /// # Panics
    /// As [`Value::float`].
    #[track_caller]
    pub fn integers(&self) -> &A::Integers {
        match self {
            Value::Integers(x) => x,
            other => unreachable!("integers are required, given {other:?}"),
        }
    }

    /// The truth values.
    ///
    /// # Panics
    /// As [`Value::float`].
    #[track_caller]
    pub fn flags(&self) -> &A::Flags {
        match self {
            Value::Flags(x) => x,
            other => unreachable!("truth values are required, given {other:?}"),
        }
    }
}

impl<A: Array> Value<A> {
    /// With this tangent, if it is a float.
    pub fn dual(self, tangent: Option<A>) -> Value<Dual<A>> {
        match self {
            Value::Float(value) => Value::Float(Dual { value, tangent }),
            Value::Integers(x) => Value::Integers(x),
            Value::Flags(x) => Value::Flags(x),
        }
    }
}

impl<A: Array> Value<Dual<A>> {
    /// Without its tangent.
    pub fn below(self) -> Value<A> {
        match self {
            Value::Float(x) => Value::Float(x.value),
            Value::Integers(x) => Value::Integers(x),
            Value::Flags(x) => Value::Flags(x),
        }
    }

    /// Whether it has a tangent.
    pub fn moves(&self) -> bool {
        matches!(self, Value::Float(Dual { tangent: Some(_), .. }))
    }
}

/// Which operands and results a rule needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    inputs: u64,
    results: u64,
}

impl Keep {
    /// These operands, below 64.
    pub fn inputs(mut self, which: &[usize]) -> Self {
        self.inputs |= which.iter().fold(0, |set, i| set | 1 << i);
        self
    }

    /// All operands, however many.
    pub fn all_inputs(mut self) -> Self {
        self.inputs = u64::MAX;
        self
    }

    /// All results, however many.
    pub fn all_results(mut self) -> Self {
        self.results = u64::MAX;
        self
    }

    /// These results, below 64.
    pub fn results(mut self, which: &[usize]) -> Self {
        self.results |= which.iter().fold(0, |set, i| set | 1 << i);
        self
    }

    fn holds(set: u64, i: usize) -> bool {
        set == u64::MAX || (i < 64 && set >> i & 1 == 1)
    }
}

/// What an operation returns, and what its rule needs beyond operands and results.
#[derive(Clone, Debug)]
pub struct Outcome<A: Array> {
    /// The results.
    pub results: Vec<A>,
    /// What the rule needs of the computation and has a derivative as well, such as the factors with
    /// which a system was solved; only where an operand is tracked.
    pub hidden: Vec<A>,
    /// What has no derivative: places of maxima, permutations.
    pub extra: Vec<Value<A>>,
}

impl<A: Array> Outcome<A> {
    /// Results alone.
    pub fn new(results: Vec<A>) -> Self {
        Self { results, hidden: Vec::new(), extra: Vec::new() }
    }

    /// The same values of another implementor.
    ///
    /// # Errors
    /// Those of the maps.
    pub fn try_map<C: Array, E>(
        self,
        value: impl Fn(Value<A>) -> Result<Value<C>, E>,
        float: impl Fn(A) -> Result<C, E>,
    ) -> Result<Outcome<C>, E> {
        Ok(Outcome {
            results: self.results.into_iter().map(&float).collect::<Result<_, E>>()?,
            hidden: self.hidden.into_iter().map(&float).collect::<Result<_, E>>()?,
            extra: self.extra.into_iter().map(value).collect::<Result<_, E>>()?,
        })
    }
}

impl<A: Array> From<A> for Outcome<A> {
    fn from(result: A) -> Self {
        Self::new(vec![result])
    }
}

/// What was kept for the rule of an operation.
#[derive(Clone, Debug)]
pub struct Kept<A: Array> {
    inputs: Vec<Option<Value<A>>>,
    results: Vec<Option<A>>,
    /// [`Outcome::hidden`].
    pub hidden: Vec<A>,
    /// [`Outcome::extra`].
    pub extra: Vec<Value<A>>,
}

impl<A: Array> Kept<A> {
    /// Keeps what the rule needs.
    pub fn new(keep: Keep, inputs: &[Value<A>], out: &Outcome<A>) -> Self {
        let inputs = inputs.iter().enumerate();
        let results = out.results.iter().enumerate();
        let input = |(i, x): (usize, &Value<A>)| Keep::holds(keep.inputs, i).then(|| x.clone());
        let result = |(i, y): (usize, &A)| Keep::holds(keep.results, i).then(|| y.clone());
        Self {
            inputs: inputs.map(input).collect(),
            results: results.map(result).collect(),
            hidden: out.hidden.clone(),
            extra: out.extra.clone(),
        }
    }

    /// From operands and results by place, `None` where they are not kept.
    pub fn from_parts(
        inputs: Vec<Option<Value<A>>>,
        results: Vec<Option<A>>,
        hidden: Vec<A>,
        extra: Vec<Value<A>>,
    ) -> Self {
        Self { inputs, results, hidden, extra }
    }

    /// All operands by place.
    pub fn inputs(&self) -> &[Option<Value<A>>] {
        &self.inputs
    }

    /// All results by place.
    pub fn results(&self) -> &[Option<A>] {
        &self.results
    }

    /// Operand `i`.
    ///
    /// # Panics
    /// If [`Operation::keep`] does not name it.
    #[track_caller]
    pub fn input(&self, i: usize) -> &Value<A> {
        self.given(i).unwrap_or_else(|| unreachable!("operand {i} is not kept"))
    }

    /// The floats of operand `i`. Panics as [`Kept::input`].
    #[track_caller]
    pub fn float(&self, i: usize) -> &A {
        self.input(i).float()
    }

    /// Operand `i`, if there is one and it was kept.
    pub fn given(&self, i: usize) -> Option<&Value<A>> {
        self.inputs.get(i)?.as_ref()
    }

    /// Result `i`.
    ///
    /// # Panics
    /// If [`Operation::keep`] does not name it.
    #[track_caller]
    pub fn result(&self, i: usize) -> &A {
        let kept = self.results.get(i).and_then(Option::as_ref);
        kept.unwrap_or_else(|| unreachable!("result {i} is not kept"))
    }

    /// The same values of another implementor.
    ///
    /// # Errors
    /// Those of the maps.
    pub fn try_map<C: Array, E>(
        &self,
        value: impl Fn(&Value<A>) -> Result<Value<C>, E>,
        float: impl Fn(&A) -> Result<C, E>,
    ) -> Result<Kept<C>, E> {
        let inputs = self.inputs.iter().map(|x| x.as_ref().map(&value).transpose());
        let results = self.results.iter().map(|y| y.as_ref().map(&float).transpose());
        Ok(Kept {
            inputs: inputs.collect::<Result<_, E>>()?,
            results: results.collect::<Result<_, E>>()?,
            hidden: self.hidden.iter().map(&float).collect::<Result<_, E>>()?,
            extra: self.extra.iter().map(&value).collect::<Result<_, E>>()?,
        })
    }
}

/// What a rule works with: what was kept, cotangents of the results of which at least one is given, and
/// which operands want a cotangent.
#[derive(Clone, Copy, Debug)]
pub struct Reverse<'a, A: Array> {
    /// What [`Operation::keep`] names.
    pub kept: &'a Kept<A>,
    /// Of the results; `None` is zero.
    pub cotangents: &'a [Option<A>],
    /// Of the hidden results, as far as there are any; in derivatives of derivatives only.
    pub hidden: &'a [Option<A>],
    /// Which operands want a cotangent; others are ignored.
    pub wanted: &'a [bool],
}

impl<A: Array> Reverse<'_, A> {
    /// The cotangent of an only result.
    pub fn cotangent(&self) -> &A {
        let only = self.cotangents.first().and_then(Option::as_ref);
        only.unwrap_or_else(|| unreachable!("one cotangent is given"))
    }
}

/// What an operation is on a batch of examples: [`Operation::on_batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnBatch<O> {
    /// An operation on arrays with one more axis in front: of the operands that differ between examples, and
    /// of all results.
    Front {
        /// The operation.
        op: O,
        /// Whether hidden results and [`Outcome::extra`] are those of the examples with the axis in front.
        /// Otherwise a rule runs the operation once more; there are no hidden results then.
        residuals: bool,
    },
    /// The operation itself: the batch joins an axis of independent examples that it has anyway, from the
    /// left. Along that axis operands of size 1 broadcast. Nothing is hidden or extra.
    Joined {
        /// The axis of each operand; `None` if all examples share it.
        operands: Vec<Option<usize>>,
        /// The axis of each result; `None` if it is the same for all examples.
        results: Vec<Option<usize>>,
    },
}

impl<O> OnBatch<O> {
    /// [`OnBatch::Front`] of an operation that treats leading axes alike.
    pub fn front(op: O) -> Self {
        Self::Front { op, residuals: true }
    }

    /// The same with another type of operation.
    pub fn map<P>(self, f: impl FnOnce(O) -> P) -> OnBatch<P> {
        match self {
            Self::Front { op, residuals } => OnBatch::Front { op: f(op), residuals },
            Self::Joined { operands, results } => OnBatch::Joined { operands, results },
        }
    }
}

/// Cotangents of the operands; `None` is zero.
pub type Cotangents<A> = Vec<Option<A>>;

/// A differentiable operation.
pub trait Operation: Clone + Debug + Send + Sync + 'static {
    /// What can go wrong.
    type Error: From<TensorError> + Display + Debug + Send;

    /// Its name in errors and tables.
    fn name(&self) -> &'static str;

    /// The kind of an operand. The default is floats for all.
    fn kind(&self, operand: usize) -> Kind {
        let _ = operand;
        Kind::Float
    }

    /// Shapes and dtypes of the results, of operands of the [right kinds](Operation::kind);
    /// [`checked_results`] of others.
    ///
    /// # Errors
    /// For operands that do not fit: before any work.
    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, Self::Error>;

    /// Shapes of the indices that it returns beside its results, as the permutation of a pivoted
    /// factorisation: the first of [`Outcome::extra`], whatever is tracked; what follows there is for the rule
    /// alone. The default is none.
    fn indices(&self, inputs: &[Meta]) -> Vec<Shape> {
        let _ = inputs;
        Vec::new()
    }

    /// What the rule needs if these operands are tracked. The default is everything.
    fn keep(&self, tracked: &[bool]) -> Keep {
        let _ = tracked;
        Keep::default().all_inputs().all_results()
    }

    /// The definition in the vocabulary. Operands fit, see [`Operation::results`].
    ///
    /// # Errors
    /// What depends on values.
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        tracked: &[bool],
    ) -> Result<Outcome<A>, Self::Error>;

    /// The results on the engine. `tracked`: whose derivative will be asked for.
    ///
    /// # Errors
    /// As [`Operation::portable`]; memory.
    fn forward(
        &self,
        inputs: &[Value<Eager>],
        tracked: &[bool],
    ) -> Result<Outcome<Eager>, Self::Error> {
        self.portable(inputs, tracked)
    }

    /// Cotangents of the operands that want one.
    ///
    /// # Errors
    /// Where there is no derivative.
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, Self::Error>;

    /// [`Operation::vjp`] on the engine.
    ///
    /// # Errors
    /// As there; memory.
    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>, Self::Error> {
        self.vjp(reverse)
    }

    /// The results with their tangents, of operands with theirs.
    ///
    /// # Errors
    /// As [`Operation::vjp`].
    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>, Self::Error> {
        self.portable(inputs, tracked)
    }

    /// [`Operation::jvp`] on the engine.
    ///
    /// # Errors
    /// As there; memory.
    fn fused_jvp(
        &self,
        inputs: &[Value<Dual<Eager>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Eager>>, Self::Error> {
        self.jvp(inputs, tracked)
    }

    /// Whether its rule can be differentiated again; asked before any work where that is wanted.
    ///
    /// # Errors
    /// If it cannot, and why.
    fn check_second_order(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The operation on a batch of so many examples; `differ`: which operands differ between them, or have
    /// cotangents that do. `None` if there is none for these, as the default says: the portable definition then
    /// runs on batches.
    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let _ = (size, differ);
        None
    }

    /// Whether a tape records the operations that the portable definition consists of, rather than one
    /// node: it then keeps what they return.
    fn is_composite(&self) -> bool {
        false
    }
}
