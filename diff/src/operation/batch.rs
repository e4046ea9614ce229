//! Operations on a batch of examples.

/// An operation on a batch of examples: [`Operation::on_batch`](super::Operation::on_batch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnBatch<O> {
    /// An operation on arrays with one more axis in front: of the operands that differ between examples, and
    /// of all results.
    Front {
        /// The operation.
        op: O,
        /// True if hidden results and [`Outcome::extra`](super::Outcome::extra) are those of the examples with the axis in front.
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
