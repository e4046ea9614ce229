//! Classes of backend methods by the operand elements that a result element depends on.

/// Dependence of the results of a backend method on its operands. Interpreters derive rules from it, such as the
/// partition over devices; the enum is exhaustive, so that a new class is a compile error in each of them. Static
/// arguments are those of [`Instruction::words`](crate::graph::Instruction::words).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MethodClass {
    /// On operand elements at the same index; axes of size 1 are repeated.
    Elementwise,
    /// On elements along one axis of operands of otherwise equal shapes. The axis is the first argument after them.
    AlongAxis,
    /// Reductions along the axis of argument 1, which stays with size 1.
    SumAxis,
    MeanAxis,
    MaxAxis,
    MinAxis,
    /// Reductions of all elements.
    SumAll,
    MeanAll,
    MaxAll,
    MinAll,
    /// `[…, m, k] · [k, n]` with repeated batch axes.
    Matmul,
    /// `x[…, k] · w[k, n] + b[n]`.
    Linear,
    /// Cotangent of x of a linear layer. Operands: w and the cotangent of the result.
    LinearInput,
    /// Cotangent of w of a linear layer. Operands: x and the cotangent of the result.
    LinearWeight,
    /// Cotangent of b of a linear layer. Operand: the cotangent of the result.
    LinearBias,
    /// Exchange of the last two axes.
    Transpose,
    /// Exchange of the axes of arguments 1 and 2.
    SwapDims,
    /// Axes in the order of argument 1.
    Permute,
    /// The elements in row-major order, in the shape of argument 1.
    Reshape,
    /// Repetition along new leading axes and axes of size 1, to the shape of argument 1.
    Expand,
    /// The slices of argument 1.
    Slice,
    /// Replacement of the slices of argument 1 by the second operand.
    SliceAssign,
    /// Reversal of the axes of argument 1.
    Flip,
    /// Concatenation along the axis of the last argument.
    Concatenate,
    /// The indices of the second operand, of rank 1, along the axis of argument 1.
    Select,
    /// Gather and scatter along the axis of argument 0, with operands of otherwise equal shapes.
    GatherAxis,
    /// Windows along the axis of argument 1, as a new last axis.
    Unfold,
    /// Rows of weights `[words, features]` by indices of any rank.
    Embedding,
    /// Cotangent of the weights of an embedding. Operands: weights, cotangent `[…, features]` and indices `[…]`.
    EmbeddingWeight,
    /// The first operand and the results have a batch axis, axis 0; the other operands are weights.
    Convolution,
    /// Cotangent of the input of a convolution. Operands: input, weight and cotangent of the result.
    ConvolutionInput,
    /// Cotangent of the input of a transposed convolution. Operands: weight and cotangent of the result.
    ConvTransposeInput,
    /// Cotangent of weight or bias of a convolution. Operands: input, weight or bias, and cotangent of the result.
    ConvolutionWeight,
    /// Axis 0 of the results is a batch axis, and so is that of each operand with this size.
    Batched,
    /// On elements along the last axis of the first operand; the other operands are weights.
    LayerNorm,
    /// On elements at any index.
    General,
}
