//! What users write.

use std::fmt::Debug;
use std::sync::Arc;

use burn_backend::ops::FloatTensorOps;
use burn_backend::{DType, Shape, TensorMetadata};
use burn_dispatch::{Dispatch, DispatchDevice, DispatchTensor};
use burn_tensor::{Float, Tensor};
use t4a_algebra::Standard;
use t4a_diff::Value;
use t4a_einsum::{
    ArraySemiring, Contraction, Einsum, EinsumError, Expression, Operands, Plan, contract_complex,
};

use super::discrete::HostOperand;
use crate::Complex;
use crate::error::{ExtError, Result};
use crate::operation::Operations;
use crate::primitive::Floats;
use crate::user;

/// A float tensor of any rank, for lists of operands of different ranks.
#[derive(Clone, Debug)]
pub struct Operand(DispatchTensor);

impl<const D: usize> From<&Tensor<D>> for Operand {
    fn from(tensor: &Tensor<D>) -> Self {
        tensor.clone().into()
    }
}

impl<const D: usize> From<Tensor<D>> for Operand {
    fn from(tensor: Tensor<D>) -> Self {
        Self(user::primitive(tensor))
    }
}

impl Operand {
    /// Dtype, device below the tape, and shape: constants take part in what is differentiated.
    fn described(&self) -> (DType, DispatchDevice, Shape) {
        (self.0.dtype(), self.0.device().inner(), self.0.shape())
    }

    /// The elements, with the gradient left behind.
    pub(super) fn to_host(&self) -> HostOperand<Float> {
        let shape = self.0.shape();
        let flat = Dispatch::float_reshape(self.0.clone(), [shape.num_elements()].into());
        HostOperand::from(Tensor::<1>::from_dispatch(flat)).with_shape(shape)
    }
}

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
/// Cost: that of [`Plan`], which is cached. On the tape operands and intermediates are kept, of a
/// sliced plan operands only.
///
/// # Errors
/// Before any arithmetic: [`ExtError::Einsum`] for whatever is wrong with subscripts, shapes, path
/// or budget, among it a budget that only slices keep on a backend that runs step by step;
/// [`ExtError::DTypeMismatch`], [`ExtError::DeviceMismatch`], [`ExtError::ResultRank`].
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
    let plan = plan::<_, D>(&expression.into_einsum()?, &described, 0, 1)?;
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
    let plan = plan::<_, D>(&expression.into_einsum()?, &described, 0, 2)?;
    let operands = parts.into_iter().map(|parts| parts.0.map(|x| Floats::<Dispatch>(x.0)));
    let [re, im] = contract_complex(&plan, operands.collect())?;
    Complex::new(user::tensor(re), user::tensor(im))
}

/// Both parts of a complex tensor of any rank.
#[derive(Clone, Debug)]
pub struct ComplexOperand([Operand; 2]);

impl<const D: usize> From<&Complex<D>> for ComplexOperand {
    fn from(z: &Complex<D>) -> Self {
        Self([z.re().into(), z.im().into()])
    }
}

/// Checks the operands, given by dtype, device and shape, and plans for them: for a result with
/// `extra` axes more than labels, and elements of `factor` times the size.
pub(super) fn plan<'a, Device: PartialEq + Debug, const D: usize>(
    einsum: &Einsum,
    operands: &'a [(DType, Device, Shape)],
    extra: usize,
    factor: usize,
) -> Result<Arc<Plan>> {
    const OP: &str = "einsum";
    let Some((first, device, _)) = operands.first() else {
        let expected = einsum.subscripts().operands().max(1);
        return Err(EinsumError::OperandCount { expected, given: 0 }.into());
    };
    for (argument, (dtype, other, _)) in operands.iter().enumerate() {
        if dtype != first {
            return Err(ExtError::DTypeMismatch { op: OP, first: *first, argument, dtype: *dtype });
        }
        if other != device {
            let (first, device) = (format!("{device:?}"), format!("{other:?}"));
            return Err(ExtError::DeviceMismatch { op: OP, first, argument, device });
        }
    }
    let view = |(i, (_, _, shape)): (usize, &'a (DType, Device, Shape))| -> &'a [usize] {
        let scalar = einsum.subscripts().rank(i) == Some(0) && **shape == [1];
        if scalar { &[] } else { shape }
    };
    let views: Vec<&[usize]> = operands.iter().enumerate().map(view).collect();
    let plan = einsum.plan(&views, first.size().saturating_mul(factor))?;
    let required = (plan.shape().len() + extra).max(1);
    if required != D {
        return Err(ExtError::ResultRank { op: OP, required, given: D });
    }
    Ok(plan)
}
