//! The functions `einsum`, `semiring_einsum` and `complex_einsum`.

use burn_tensor::Tensor;
use t4a_algebra::Standard;
use t4a_einsum::{ArraySemiring, Expression, Operands};

use super::contract::{contract, contract_pairs};
use super::operand::{ComplexOperand, Operand};
use crate::ext::complex::Complex;
use crate::ext::error::Result;
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;
use crate::ext::user::tensor;

/// Sums of products over labelled axes, as `numpy.einsum`.
///
/// ```
/// use burn_t4a::ext::einsum::einsum;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
/// let m = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
/// let v = Tensor::<BurnT4a, 1>::from_floats([1.0, 10.0], &T4aDevice);
/// let y: Tensor<BurnT4a, 1> = einsum("ij,j->i", (&m, &v))?;
/// y.into_data().assert_eq(&[21.0f32, 43.0].into(), true);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// Supports explicit and implicit output, `...` with broadcasting, repeated labels (diagonals, also in the output),
/// labels in any number of operands, axes of size 1 that broadcast, and output labels of given size. Scalars have
/// shape `[1]`, as operands and results.
///
/// Differentiable to any order, with one node per pairwise step of the plan; once, as a single node, if the plan is
/// sliced to meet its memory limit.
///
/// Cost: that of [`Plan`](super::Plan), which is cached. A tape keeps operands and intermediates; for a sliced
/// plan, operands only.
///
/// # Errors
/// Before any arithmetic: [`ExtError::Einsum`](crate::ext::ExtError::Einsum) for invalid subscripts, shapes, path
/// or memory limit, including a limit that only slices can meet on a backend that runs step by step or for second
/// derivatives; [`ExtError::Mismatch`](crate::ext::ExtError::Mismatch) for different dtypes or devices and for
/// another rank of the result.
pub fn einsum<B: Operations, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<Operand<B>>,
) -> Result<Tensor<B, D>> {
    semiring_einsum::<Standard, B, D>(expression, operands)
}

/// As [`einsum`], over another semiring.
///
/// ```
/// use burn_t4a::ext::einsum::{MinPlus, semiring_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
/// // The shortest path with one intermediate stop.
/// let hop = Tensor::<BurnT4a, 2>::from_floats([[0.0, 5.0, 1.0], [5.0, 0.0, 2.0], [1.0, 2.0, 0.0]], &T4aDevice);
/// let two: Tensor<BurnT4a, 2> = semiring_einsum::<MinPlus, _, _>("ij,jk->ik", [&hop, &hop])?;
/// assert_eq!(two.slice([0..1, 1..2]).into_scalar(), 3.0);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// Gradients: see [the module](super#gradients).
///
/// # Long chains
///
/// On Burn's tape a step with a new leaf takes time proportional to the number of earlier leaves: a vector times
/// 10⁴ matrices, each a leaf, takes 12 s forward and backward, in one einsum or a loop. As slices of one leaf they
/// take 1 s. Multiplied pairwise in a tree they are 14 steps and take 0.03 s:
///
/// ```
/// use burn::backend::Autodiff;
/// use burn_t4a::ext::ExtError;
/// use burn_t4a::ext::einsum::{LogSumExp, semiring_einsum};
/// use burn_t4a::ext::operation::Operations;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::{Tensor, s};
///
/// /// The product of all matrices of a stack, along its first axis.
/// fn product<B: Operations>(mut stack: Tensor<B, 3>) -> Result<Tensor<B, 2>, ExtError> {
///     while stack.dims()[0] > 1 {
///         let even = stack.dims()[0] / 2 * 2;
///         let (left, right) = (stack.clone().slice(s![0..even;2]), stack.clone().slice(s![1..even;2]));
///         let pairs = semiring_einsum::<LogSumExp, B, 3>("tij,tjk->tik", (left, right))?;
///         // With an odd number of matrices the last one is kept for the next round.
///         stack = if even < stack.dims()[0] {
///             Tensor::cat(vec![pairs, stack.slice(s![even..])], 0)
///         } else {
///             pairs
///         };
///     }
///     Ok(stack.squeeze_dim(0))
/// }
///
/// let steps = 10_000;
/// let stack = Tensor::<Autodiff<BurnT4a>, 3>::zeros([steps, 2, 2], &T4aDevice).require_grad();
/// let paths = product(stack.clone())?;
/// // 2⁹⁹⁹⁹ paths between any two states, each with one of four transitions per step.
/// let log_paths = paths.clone().slice(s![0..1, 0..1]).into_scalar();
/// assert!((log_paths / 2f32.ln() - 9999.0).abs() < 0.01);
/// let share = stack.grad(&paths.slice(s![0..1, 0..1]).sum().backward()).unwrap();
/// assert!((share.slice(s![500..501, 0..1, 0..1]).into_scalar() - 0.25).abs() < 1e-3);
/// # Ok::<(), ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`].
pub fn semiring_einsum<S: ArraySemiring, B: Operations, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<Operand<B>>,
) -> Result<Tensor<B, D>> {
    let operand = |x: Operand<B>| (x.described(), Floats(x.0));
    let operands = operands.into_operands().into_iter().map(operand).collect();
    Ok(tensor(contract::<S, B, _, _>(expression, operands, D)?))
}

/// As [`einsum`], over complex numbers. The engine converts the parts of `f32` and `f64` to complex numbers where
/// that is faster, and GPU backends have a kernel for both parts of these; otherwise a pairwise step is four real
/// contractions.
///
/// Operands are not conjugated; pass `a.conj()` where needed. Steps are not sliced: a memory limit, for elements of
/// two parts, is met or an error.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::Complex;
/// use burn_t4a::ext::einsum::complex_einsum;
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// // ⟨v, v⟩ of v = (1, i): the conjugate is explicit.
/// let parts = [[1.0, 0.0], [0.0, 1.0]].map(|x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice));
/// let [re, im] = parts;
/// let v = Complex::new(re, im)?;
/// let norm: Complex<BurnT4a, 1> = complex_einsum("i,i->", (&v.clone().conj(), &v))?;
/// assert_eq!((norm.re().into_scalar(), norm.im().into_scalar()), (2.0, 0.0));
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`].
pub fn complex_einsum<B: Operations, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<ComplexOperand<B>>,
) -> Result<Complex<B, D>> {
    let operand = |x: ComplexOperand<B>| (x.0[0].described(), x.0.map(|part| Floats(part.0)));
    let operands = operands.into_operands().into_iter().map(operand).collect();
    let [re, im] = contract_pairs::<B, _, _>(expression, operands, D)?;
    Complex::new(tensor(re), tensor(im))
}
