//! Passes of an operation outside of Burn's traits, and the arrays that the operands and results of its instruction hold.

/// Array of an operation, by its kind and index: its value, its tangent or its cotangent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationArray {
    /// An operand.
    Operand(usize),
    /// A result.
    Result(usize),
    /// A residual with a derivative.
    Hidden(usize),
    /// A returned index array, or a residual without a derivative.
    Extra(usize),
}

/// Function of an operation that an instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationPass {
    /// The results.
    Forward,
    /// The results and their tangents.
    Jvp,
    /// The cotangents of operands.
    Vjp,
}

/// Pass of an operation, and the arrays that the operands and the results of its instruction hold.
#[derive(Clone, Debug)]
pub(crate) struct PassArrays {
    pub(crate) pass: OperationPass,
    pub(crate) operands: Vec<OperationArray>,
    pub(crate) results: Vec<OperationArray>,
}
