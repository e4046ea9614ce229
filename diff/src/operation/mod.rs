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
//! A frontend executes all operations through this trait, independent of the individual operation: a tape records one
//! node for it, whose rule is [`Operation::vjp`].

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

use crate::array::{Array, Dual, Eager, Kernel, PairParts, Shape};

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

/// Shapes and dtypes of the results, for operands of any kind: checks each kind, then [`Operation::results`].
///
/// # Errors
/// [`TensorError::OperandKind`]; those of the operation. Before any work.
pub fn checked_results<O: Operation>(op: &O, inputs: &[Meta]) -> Result<Vec<Meta>, O::Error> {
    check_kinds(op, inputs)?;
    op.results(inputs)
}

/// Checks that operands have the [kinds](Operation::kind) of an operation.
///
/// # Errors
/// [`TensorError::OperandKind`].
pub fn check_kinds<O: Operation>(op: &O, inputs: &[Meta]) -> Result<(), TensorError> {
    for (operand, &Meta { dtype, .. }) in inputs.iter().enumerate() {
        let required = op.kind(operand);
        if Kind::of(dtype) != Some(required) {
            let (op, required) = (op.name(), required.text());
            return Err(TensorError::OperandKind { op, operand, dtype, required });
        }
    }
    Ok(())
}

/// A differentiable operation.
pub trait Operation: Clone + Debug + Send + Sync + 'static {
    /// The error type of checks, definition and rules.
    type Error: From<TensorError> + Display + Debug + Send;

    /// Name in error messages and tables.
    fn name(&self) -> &'static str;

    /// The kind of an operand. The default is floats for all.
    fn kind(&self, operand: usize) -> Kind {
        let _ = operand;
        Kind::Float
    }

    /// Numbers of operands and of results, index arrays not counted; `None` if the operands determine them. Derivatives
    /// check the lengths of their flags by it. The default is `None`.
    fn arity(&self) -> Option<[usize; 2]> {
        None
    }

    /// Shapes and dtypes of the results, for operands of the [right kinds](Operation::kind); [`checked_results`]
    /// accepts others.
    ///
    /// # Errors
    /// For invalid operands, before any work.
    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, Self::Error>;

    /// Shapes of index arrays returned in addition to the results, such as the permutation of a pivoted factorisation:
    /// the first entries of [`Outcome::extra`], independent of tracking; the remaining entries are residuals. The
    /// default is none.
    fn indices(&self, inputs: &[Meta]) -> Vec<Shape> {
        let _ = inputs;
        Vec::new()
    }

    /// The residuals that the rule needs if these operands are tracked. The default is everything.
    fn keep(&self, tracked: &[bool]) -> Keep {
        let _ = tracked;
        Keep::default().all_inputs().all_results()
    }

    /// The definition in [`Array`] operations. The operands have passed [`Operation::results`].
    ///
    /// # Errors
    /// Errors that depend on values.
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        tracked: &[bool],
    ) -> Result<Outcome<A>, Self::Error>;

    /// Device kernels that the definition uses for such operands, in addition to elementwise operations. The default is
    /// none.
    fn kernels(&self, inputs: &[Meta]) -> Vec<Kernel> {
        let _ = inputs;
        Vec::new()
    }

    /// True if the definition is computed on the host by the engine.
    fn is_on_host(&self) -> bool {
        false
    }

    /// The results on the engine. `tracked` marks the operands whose derivatives are needed.
    ///
    /// # Errors
    /// As [`Operation::portable`]; `OutOfMemory`.
    fn forward(
        &self,
        inputs: &[Value<Eager>],
        tracked: &[bool],
    ) -> Result<Outcome<Eager>, Self::Error> {
        self.portable(inputs, tracked)
    }

    /// Cotangents of the operands that need one.
    ///
    /// # Errors
    /// Operands without a derivative.
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, Self::Error>;

    /// [`Operation::vjp`] on the engine.
    ///
    /// # Errors
    /// As [`Operation::vjp`]; `OutOfMemory`.
    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>, Self::Error> {
        self.vjp(reverse)
    }

    /// The results and their tangents, given operands and tangents.
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
    /// As [`Operation::jvp`]; `OutOfMemory`.
    fn fused_jvp(
        &self,
        inputs: &[Value<Dual<Eager>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Eager>>, Self::Error> {
        self.jvp(inputs, tracked)
    }

    /// Ok if the rule is differentiable; checked before any work if second derivatives are needed.
    ///
    /// # Errors
    /// The reason, if it is not differentiable.
    fn check_second_order(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The operation on a batch of `size` examples; `differ` marks the operands that differ between examples, or whose
    /// cotangents do. `None`, the default, if there is no such operation: the portable definition is then batched
    /// operation by operation.
    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let _ = (size, differ);
        None
    }

    /// Form of the operation on complex numbers, for [`Pairs`]. The default is an error.
    ///
    /// # Errors
    /// The reason, if it is not defined on complex numbers.
    fn on_pairs(&self) -> Result<OnPairs<Self>, Self::Error> {
        let (op, expected) = (self.name(), "real numbers");
        Err(TensorError::DTypeUnsupported { op, dtype: DType::C64, expected }.into())
    }

    /// Product of an operation with [`OnPairs::Bilinear`] by a kernel for complex numbers, conjugated where `conj` is
    /// true, on arrays with [`Array::has_complex_products`]. `None`, the default, if there is no such kernel: [`Pairs`]
    /// then takes products of real arrays.
    ///
    /// # Errors
    /// As [`Operation::portable`].
    fn pair_product<A: Array>(
        &self,
        x: PairParts<'_, A>,
        y: PairParts<'_, A>,
        conj: [bool; 2],
    ) -> Result<Option<[A; 2]>, Self::Error> {
        let _ = (x, y, conj);
        Ok(None)
    }

    /// True if a tape records the operations of the portable definition, rather than one node: it then stores their
    /// residuals.
    fn is_composite(&self) -> bool {
        false
    }
}

/// Cotangents of float operands, for an operation whose residuals are operands only.
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
