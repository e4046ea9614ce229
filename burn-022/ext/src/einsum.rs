//! Einsum over semirings on tensors of Burn 0.22, with gradients.
//!
//! Contractions are operations of [`t4a_einsum`], see [`Contraction`]: on the tape every pairwise step of
//! the plan is one node.
//!
//! Burn has no tensors of rank 0: a scalar has shape `[1]` here, as operand and as result.

use std::sync::Arc;

use burn_backend::{DType, Shape, TensorMetadata};
use burn_dispatch::{Dispatch, DispatchDevice, DispatchTensor};
use burn_tensor::Tensor;
pub use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Standard};
use t4a_diff::Value;
pub use t4a_einsum::{ArraySemiring, Contraction, Custom, FloatSemiring};
pub use t4a_einsum::{Cost, Einsum, EinsumError, Label, Optimizer, Path, Plan, Subscripts};
pub use t4a_einsum::{FloatCancellative, FloatSelective, IntSemiring};

use crate::error::{ExtError, Result};
use crate::operation::Operations;
use crate::primitive::Floats;
use crate::user;

/// What is summed over what: text, [`Subscripts`] with labels of any kind, or an [`Einsum`] with
/// sizes, a path or a memory budget.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what is summed over what",
    label = "expected text such as \"ij,jk->ik\", `Subscripts` or an `Einsum`"
)]
pub trait Expression {
    /// The einsum that this stands for.
    ///
    /// # Errors
    /// The parser's, with the position.
    fn into_einsum(self) -> Result<Einsum, EinsumError>;
}

impl Expression for &str {
    fn into_einsum(self) -> Result<Einsum, EinsumError> {
        Einsum::new(self)
    }
}

impl Expression for Subscripts {
    fn into_einsum(self) -> Result<Einsum, EinsumError> {
        Ok(self.into())
    }
}

impl Expression for Einsum {
    fn into_einsum(self) -> Result<Einsum, EinsumError> {
        Ok(self)
    }
}

impl Expression for &Einsum {
    fn into_einsum(self) -> Result<Einsum, EinsumError> {
        Ok(self.clone())
    }
}

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
}

/// Operands of an einsum: an array, a slice or a vector of tensors of one rank, a tuple of up to eight of
/// any ranks, or a list of [`Operand`]s. Tensors are given by value or by reference.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of operands",
    label = "expected an array of tensors of one rank, or a tuple",
    note = "operands are float tensors; those of several ranks go into a tuple: `(&a, &b)` in the place of `[&a, &b]`"
)]
pub trait Operands {
    /// The list.
    fn into_operands(self) -> Vec<Operand>;
}

impl<T: Into<Operand>, const N: usize> Operands for [T; N] {
    fn into_operands(self) -> Vec<Operand> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<'a, T> Operands for &'a [T]
where
    Operand: From<&'a T>,
{
    fn into_operands(self) -> Vec<Operand> {
        self.iter().map(Operand::from).collect()
    }
}

impl<T: Into<Operand>> Operands for Vec<T> {
    fn into_operands(self) -> Vec<Operand> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuples {
    ($(($($t:ident $x:ident),+))*) => {$(
        impl<$($t: Into<Operand>),+> Operands for ($($t,)+) {
            fn into_operands(self) -> Vec<Operand> {
                let ($($x,)+) = self;
                vec![$($x.into()),+]
            }
        }
    )*};
}
tuples! {
    (A a)
    (A a, B b)
    (A a, B b, C c)
    (A a, B b, C c, D d)
    (A a, B b, C c, D d, E e)
    (A a, B b, C c, D d, E e, F f)
    (A a, B b, C c, D d, E e, F f, G g)
    (A a, B b, C c, D d, E e, F f, G g, H h)
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
    operands: impl Operands,
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
/// Gradients: [`MaxPlus`], [`MinPlus`], [`MaxMul`] and [`MaxMin`] pass the cotangent on to the first of
/// the best terms, a subgradient; [`LogSumExp`] to all terms by their share. What is 0 of the semiring
/// has no candidate and passes nothing on. NaN comes out wherever it goes in and wins against every
/// number.
///
/// # Errors
/// As [`einsum`].
pub fn semiring_einsum<S: ArraySemiring, const D: usize>(
    expression: impl Expression,
    operands: impl Operands,
) -> Result<Tensor<D>> {
    let operands = operands.into_operands();
    let described: Vec<_> = operands.iter().map(Operand::described).collect();
    let plan = plan::<D>(&expression.into_einsum()?, &described)?;
    let op = Contraction { plan, semiring: S::TAG };
    let inputs: Vec<_> = operands.into_iter().map(|x| Value::Float(Floats(x.0))).collect();
    // Checked when the plan was made for them.
    let out = Dispatch::run(&op, &inputs, &vec![false; inputs.len()])?;
    let result = out.results.into_iter().next();
    Ok(user::tensor(result.unwrap_or_else(|| unreachable!("one result"))))
}

/// Checks the operands, given by dtype, device and shape, and plans for them.
fn plan<const D: usize>(
    einsum: &Einsum,
    operands: &[(DType, DispatchDevice, Shape)],
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
    let views: Vec<&[usize]> = operands
        .iter()
        .enumerate()
        .map(|(i, (_, _, shape))| -> &[usize] {
            let scalar = einsum.subscripts().rank(i) == Some(0) && **shape == [1];
            if scalar { &[] } else { shape }
        })
        .collect();
    let plan = einsum.plan(&views, first.size())?;
    let required = plan.shape().len().max(1);
    if required != D {
        return Err(ExtError::ResultRank { op: OP, required, given: D });
    }
    Ok(plan)
}
