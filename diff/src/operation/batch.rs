//! Operations on a batch of examples.

/// An operation on a batch of examples: [`Operation::on_batch`](super::Operation::on_batch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnBatch<O> {
    /// An operation on arrays with an additional leading axis: on the operands that differ between examples, and on all
    /// results.
    Front {
        /// The operation.
        op: O,
        /// True if hidden results and [`Outcome::extra`](super::Outcome::extra) are those of the examples with the
        /// leading axis. Otherwise a rule runs the operation again; there are no hidden results then.
        residuals: bool,
    },
    /// The same operation: the batch is merged from the left into an existing axis of independent examples. Along that
    /// axis operands of size 1 broadcast. There are no hidden results; [`Outcome::extra`](super::Outcome::extra) is left out,
    /// since its arrays have no batch axis, and a rule that finds none computes them again.
    Joined {
        /// The axis of each operand; `None` if all examples share it.
        operands: Vec<Option<usize>>,
        /// The axis of each result; `None` if it is the same for all examples.
        results: Vec<Option<usize>>,
    },
}

impl<O> OnBatch<O> {
    /// [`OnBatch::Front`] of an operation that is independent of the number of leading axes.
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
