//! What users write.

use burn_backend::DType;
use burn_dispatch::Dispatch;
use burn_tensor::Tensor;
use t4a_algebra::Standard;
use t4a_diff::Value;
use t4a_einsum::{ArraySemiring, Contraction, Expression, Operands, contract_complex};

use super::operand::{ComplexOperand, Operand};
use crate::Complex;
use crate::error::{ExtError, Result};
use crate::operation::Operations;
use crate::primitive::Floats;
use crate::user;

/// Sums of products over labelled axes.
///
/// ```
/// use burn_t4a_022_ext::einsum::einsum;
/// use burn_tensor::{Device, Tensor};
/// let device = Device::flex();
/// let m = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &device);
/// let v = Tensor::<1>::from_floats([1.0, 10.0], &device);
/// let y: Tensor<1> = einsum("ij,j->i", (&m, &v))?;
/// y.into_data().assert_eq(&[21.0f32, 43.0].into(), true);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// Explicit and implicit output, `...` with broadcasting, repeated labels (diagonals, also in the
/// output), labels of any number of operands, axes of size 1 that broadcast, and output labels of
/// given size. A scalar has shape `[1]`, as operand and as result.
///
/// Differentiable, one node per pairwise step of the plan; as a single node if the plan is sliced to its
/// budget.
///
/// Cost: that of [`Plan`](super::Plan), which is cached. On the tape operands and intermediates are kept, of a
/// sliced plan operands only.
///
/// # Errors
/// Before any arithmetic: [`ExtError::Einsum`] for whatever is wrong with subscripts, shapes, path
/// or budget, among it a budget that only slices keep on a backend that runs step by step;
/// [`ExtError::Mismatch`] for dtypes, devices and the rank of the result.
pub fn einsum<const D: usize>(
    expression: impl Expression,
    operands: impl Operands<Operand>,
) -> Result<Tensor<D>> {
    semiring_einsum::<Standard, D>(expression, operands)
}

/// [`einsum`] over another semiring.
///
/// ```
/// use burn_t4a_022_ext::einsum::{MinPlus, semiring_einsum};
/// use burn_tensor::{Device, Tensor};
/// // The shortest way over one stop.
/// let hop = [[0.0, 5.0, 1.0], [5.0, 0.0, 2.0], [1.0, 2.0, 0.0]];
/// let hop = Tensor::<2>::from_floats(hop, &Device::flex());
/// let two: Tensor<2> = semiring_einsum::<MinPlus, _>("ij,jk->ik", [&hop, &hop])?;
/// assert_eq!(two.slice([0..1, 1..2]).into_scalar::<f32>(), 3.0);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// Gradients: [`MaxPlus`](super::MaxPlus), [`MinPlus`](super::MinPlus),
/// [`MaxMul`](super::MaxMul) and [`MaxMin`](super::MaxMin) pass the cotangent on to the first of
/// the best terms, a subgradient; [`LogSumExp`](super::LogSumExp) to all terms by their share. What is 0 of the semiring
/// has no candidate and passes nothing on. NaN comes out wherever it goes in and wins against every
/// number.
///
/// # Errors
/// As [`einsum`].
pub fn semiring_einsum<S: ArraySemiring, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<Operand>,
) -> Result<Tensor<D>> {
    let operands = operands.into_operands();
    let described: Vec<_> = operands.iter().map(Operand::described).collect();
    let bytes = |dtype: &DType| dtype.size();
    let plan = expression.into_einsum()?.plan_for::<_, _, _, ExtError>(&described, bytes, D, 0)?;
    let op = Contraction { plan, semiring: S::TAG };
    let inputs: Vec<_> = operands.into_iter().map(|x| Value::Float(Floats(x.0))).collect();
    // Checked when the plan was made for them.
    let out = Dispatch::run(&op, &inputs, &vec![false; inputs.len()])?;
    let result = out.results.into_iter().next();
    Ok(user::tensor(result.unwrap_or_else(|| unreachable!("one result"))))
}

/// [`einsum`] over complex numbers: four real contractions per pairwise step.
///
/// Conjugation is the caller's: `a.conj()`. Steps are not sliced: a budget, of elements of two parts,
/// is kept or refused.
///
/// # Errors
/// As [`einsum`].
pub fn complex_einsum<const D: usize>(
    expression: impl Expression,
    operands: impl Operands<ComplexOperand>,
) -> Result<Complex<D>> {
    let parts = operands.into_operands();
    let described: Vec<_> = parts.iter().map(|x| x.0[0].described()).collect();
    let bytes = |dtype: &DType| 2 * dtype.size();
    let plan = expression.into_einsum()?.plan_for::<_, _, _, ExtError>(&described, bytes, D, 0)?;
    let operands = parts.into_iter().map(|parts| parts.0.map(|x| Floats::<Dispatch>(x.0)));
    let [re, im] = contract_complex(&plan, operands.collect())?;
    Complex::new(user::tensor(re), user::tensor(im))
}
