//! The functions `einsum`, `semiring_einsum` and `complex_einsum`.

use burn_dispatch::Dispatch;
use burn_tensor::Tensor;
use t4a_algebra::Standard;
use t4a_einsum::{ArraySemiring, Expression, Operands};

use super::contract::{contract, contract_pairs};
use super::operand::{ComplexOperand, Operand};
use crate::Complex;
use crate::error::Result;
use crate::primitive::Floats;
use crate::user::tensor;

/// Sums of products over labelled axes, as `numpy.einsum`.
///
/// ```
/// use burn_t4a_022_ext::einsum::einsum;
/// use burn::tensor::{Device, Tensor};
/// let device = Device::flex();
/// let m = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &device);
/// let v = Tensor::<1>::from_floats([1.0, 10.0], &device);
/// let y: Tensor<1> = einsum("ij,j->i", (&m, &v))?;
/// y.into_data().assert_eq(&[21.0f32, 43.0].into(), true);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// Supports explicit and implicit output, `...` with broadcasting, repeated labels (diagonals, also in the output),
/// labels in any number of operands, axes of size 1 that broadcast, and output labels of given size. Scalars have
/// shape `[1]`, as operands and results.
///
/// Differentiable, with one node per pairwise step of the plan; as a single node if the plan is sliced to meet its
/// memory limit.
///
/// Cost: that of [`Plan`](super::Plan), which is cached. A tape keeps operands and intermediates; for a sliced
/// plan, operands only.
///
/// # Errors
/// Before any arithmetic: [`ExtError::Einsum`](crate::ExtError::Einsum) for invalid subscripts, shapes, path or
/// memory limit, including a limit that only slices can meet on a backend that runs step by step;
/// [`ExtError::Mismatch`](crate::ExtError::Mismatch) for different dtypes or devices and for another rank of the
/// result.
pub fn einsum<const D: usize>(
    expression: impl Expression,
    operands: impl Operands<Operand>,
) -> Result<Tensor<D>> {
    semiring_einsum::<Standard, D>(expression, operands)
}

/// As [`einsum`], over another semiring.
///
/// ```
/// use burn_t4a_022_ext::einsum::{MinPlus, semiring_einsum};
/// use burn::tensor::{Device, Tensor};
/// // The shortest path with one intermediate stop.
/// let hop = [[0.0, 5.0, 1.0], [5.0, 0.0, 2.0], [1.0, 2.0, 0.0]];
/// let hop = Tensor::<2>::from_floats(hop, &Device::flex());
/// let two: Tensor<2> = semiring_einsum::<MinPlus, _>("ij,jk->ik", [&hop, &hop])?;
/// assert_eq!(two.slice([0..1, 1..2]).into_scalar::<f32>(), 3.0);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// Gradients: see [the module](super#gradients).
///
/// # Errors
/// As [`einsum`].
pub fn semiring_einsum<S: ArraySemiring, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<Operand>,
) -> Result<Tensor<D>> {
    let operand = |x: Operand| (x.described(), Floats(x.0));
    let operands = operands.into_operands().into_iter().map(operand).collect();
    Ok(tensor(contract::<S, Dispatch, _, _>(expression, operands, D)?))
}

/// As [`einsum`], over complex numbers. The engine converts the parts of `f32` and `f64` to complex numbers where
/// that is faster; otherwise a pairwise step is four real contractions.
///
/// Operands are not conjugated; pass `a.conj()` where needed. Steps are not sliced: a memory limit, for elements of
/// two parts, is met or an error.
///
/// # Errors
/// As [`einsum`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::Complex;
/// use burn_t4a_022_ext::einsum::complex_einsum;
///
/// // ⟨v, v⟩ of v = (1, i): the conjugate is explicit.
/// let parts = [[1.0, 0.0], [0.0, 1.0]].map(|x: [f32; 2]| Tensor::<1>::from_floats(x, &Device::flex()));
/// let [re, im] = parts;
/// let v = Complex::new(re, im)?;
/// let norm: Complex<1> = complex_einsum("i,i->", (&v.clone().conj(), &v))?;
/// assert_eq!((norm.re().into_scalar::<f32>(), norm.im().into_scalar::<f32>()), (2.0, 0.0));
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
pub fn complex_einsum<const D: usize>(
    expression: impl Expression,
    operands: impl Operands<ComplexOperand>,
) -> Result<Complex<D>> {
    let operand = |x: ComplexOperand| (x.0[0].described(), x.0.map(|part| Floats(part.0)));
    let operands = operands.into_operands().into_iter().map(operand).collect();
    let [re, im] = contract_pairs::<Dispatch, _, _>(expression, operands, D)?;
    Complex::new(tensor(re), tensor(im))
}
