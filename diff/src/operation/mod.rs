//! Operations as values.
//!
//! ```text
//! results    shapes and dtypes, checked before any work
//! portable   the definition in the vocabulary: runs wherever Array is implemented
//! forward    the engine's own way, if it has a better one
//! vjp        the rule in the vocabulary, from what `keep` names; fused_vjp the engine's own
//! jvp        by default the portable definition on duals
//! on_batch   the operation that it is on a batch, if one operation is
//! on_pairs   the form that it has on complex numbers: Pairs is it as an operation
//! ```
//!
//! A face runs an operation through this trait and knows nothing about any single one: a tape records
//! one node for it, whose rule is [`Operation::vjp`].

mod batch;
mod kept;
mod pairs;
mod value;

use std::fmt::{Debug, Display};

use t4a_tensor::{DType, TensorError};

pub use batch::OnBatch;
pub use kept::{Cotangents, Keep, Kept, Outcome, Reverse};
pub use pairs::{OnPairs, Pairs};
pub use value::Value;

use crate::array::{Array, Dual, Eager, Kernel, Shape};

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

/// A differentiable operation.
pub trait Operation: Clone + Debug + Send + Sync + 'static {
    /// The error of checks, definition and rules.
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

    /// The values that the rule needs if these operands are tracked. The default is everything.
    fn keep(&self, tracked: &[bool]) -> Keep {
        let _ = tracked;
        Keep::default().all_inputs().all_results()
    }

    /// The definition in the vocabulary. Operands fit, see [`Operation::results`].
    ///
    /// # Errors
    /// Conditions on values.
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        tracked: &[bool],
    ) -> Result<Outcome<A>, Self::Error>;

    /// Kernels of devices that the definition consists of for such operands, with elementwise operations around
    /// them. The default is none.
    fn kernels(&self, inputs: &[Meta]) -> Vec<Kernel> {
        let _ = inputs;
        Vec::new()
    }

    /// True if the definition is computed in the engine, from the elements.
    fn is_on_host(&self) -> bool {
        false
    }

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
    /// Operands without a derivative.
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

    /// True if the rule can be differentiated again; asked before any work where that is wanted.
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

    /// Form of the operation on complex numbers, for [`Pairs`]. The default is that it is not defined there.
    ///
    /// # Errors
    /// The reason, if it is not defined on complex numbers.
    fn on_pairs(&self) -> Result<OnPairs<Self>, Self::Error> {
        let (op, expected) = (self.name(), "real numbers");
        Err(TensorError::DTypeUnsupported { op, dtype: DType::C64, expected }.into())
    }

    /// True if a tape records the operations that the portable definition consists of, rather than one
    /// node: it then keeps what they return.
    fn is_composite(&self) -> bool {
        false
    }
}

/// Cotangents of operands that are floats, of an operation whose rule keeps operands alone.
///
/// # Errors
/// Those of the rule.
pub fn vjp_of<A: Array, O: Operation>(
    op: &O,
    operands: &[&A],
    cotangents: &[Option<A>],
    wanted: &[bool],
) -> Result<Cotangents<A>, O::Error> {
    let inputs = operands.iter().map(|&x| Some(Value::Float(x.clone())));
    let results = vec![None; cotangents.len()];
    let kept = Kept::from_parts(inputs.collect(), results, Vec::new(), Vec::new());
    op.vjp(&Reverse { kept: &kept, cotangents, hidden: &[], wanted })
}
