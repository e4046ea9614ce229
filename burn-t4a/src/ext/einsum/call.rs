//! What users write.

use std::sync::Arc;

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, TensorMetadata};
use burn_tensor::{Tensor, TensorPrimitive};
use t4a_algebra::Standard;
use t4a_einsum::{Einsum, EinsumError, Plan, Subscripts};

use super::backend::EinsumOps;
use super::semiring::TensorSemiring;
use crate::ext::complex::Complex;
use crate::ext::error::{ExtError, Result};

/// What is summed over what: text, [`Subscripts`] with labels of any kind, or an [`Einsum`] with
/// sizes, a path or a memory budget.
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
pub struct Operand<B: Backend>(FloatTensor<B>);

impl<B: Backend, const D: usize> From<&Tensor<B, D>> for Operand<B> {
    fn from(tensor: &Tensor<B, D>) -> Self {
        Self(tensor.clone().into_primitive().tensor())
    }
}

impl<B: Backend, const D: usize> From<Tensor<B, D>> for Operand<B> {
    fn from(tensor: Tensor<B, D>) -> Self {
        Self(tensor.into_primitive().tensor())
    }
}

/// Operands of an einsum: an array of tensors of one rank, a tuple of up to eight of any ranks, or
/// a list of [`Operand`]s. Tensors are given by value or by reference.
pub trait Operands<B: Backend> {
    /// The list.
    fn into_operands(self) -> Vec<Operand<B>>;
}

impl<B: Backend, T: Into<Operand<B>>, const N: usize> Operands<B> for [T; N] {
    fn into_operands(self) -> Vec<Operand<B>> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<B: Backend, T: Into<Operand<B>>> Operands<B> for Vec<T> {
    fn into_operands(self) -> Vec<Operand<B>> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuples {
    ($(($($t:ident $x:ident),+))*) => {$(
        impl<Bk: Backend, $($t: Into<Operand<Bk>>),+> Operands<Bk> for ($($t,)+) {
            fn into_operands(self) -> Vec<Operand<Bk>> {
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
/// use burn_t4a::ext::einsum::einsum;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_tensor::Tensor;
/// let m = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
/// let v = Tensor::<BurnT4a, 1>::from_floats([1.0, 10.0], &T4aDevice);
/// let y: Tensor<BurnT4a, 1> = einsum("ij,j->i", (&m, &v))?;
/// y.into_data().assert_eq(&[21.0f32, 43.0].into(), true);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// Explicit and implicit output, `...` with broadcasting, repeated labels (diagonals, also in the
/// output), labels of any number of operands, axes of size 1 that broadcast, and output labels of
/// given size. A scalar has shape `[1]`, as operand and as result.
///
/// Differentiable to any order; one node per pairwise step of the plan.
///
/// Cost: that of [`Plan`], which is cached. On the tape operands and intermediates are kept.
///
/// # Errors
/// Before any arithmetic: [`ExtError::Einsum`] for whatever is wrong with subscripts, shapes, path
/// or budget; [`ExtError::DTypeMismatch`], [`ExtError::DeviceMismatch`], [`ExtError::ResultRank`],
/// [`ExtError::SlicedOnTape`].
pub fn einsum<B: EinsumOps, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<B>,
) -> Result<Tensor<B, D>> {
    semiring_einsum::<Standard, B, D>(expression, operands)
}

/// [`einsum`] over another semiring.
///
/// ```
/// use burn_t4a::ext::einsum::{MinPlus, semiring_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_tensor::Tensor;
/// // The shortest way over one stop.
/// let hop = Tensor::<BurnT4a, 2>::from_floats([[0.0, 5.0, 1.0], [5.0, 0.0, 2.0], [1.0, 2.0, 0.0]], &T4aDevice);
/// let two: Tensor<BurnT4a, 2> = semiring_einsum::<MinPlus, _, _>("ij,jk->ik", [&hop, &hop])?;
/// assert_eq!(two.slice([0..1, 1..2]).into_scalar(), 3.0);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// Gradients: [`MaxPlus`](super::MaxPlus), [`MinPlus`](super::MinPlus), [`MaxMul`](super::MaxMul)
/// and [`MaxMin`](super::MaxMin) pass the cotangent on to the first of the best terms, a
/// subgradient; [`LogSumExp`](super::LogSumExp) to all terms by their share. A sum without a
/// candidate passes nothing on.
///
/// # Errors
/// As [`einsum`].
pub fn semiring_einsum<S: TensorSemiring, B: EinsumOps, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<B>,
) -> Result<Tensor<B, D>> {
    let operands = operands.into_operands();
    let plan = plan::<B, D>(&expression.into_einsum()?, &operands)?;
    let result = B::einsum::<S>(&plan, operands.into_iter().map(|x| x.0).collect())?;
    Ok(Tensor::from_primitive(TensorPrimitive::Float(result)))
}

/// [`einsum`] over complex numbers: four real contractions per pairwise step.
///
/// Conjugation is the caller's: `a.conj()`.
///
/// # Errors
/// As [`einsum`].
pub fn complex_einsum<B: EinsumOps, const D: usize>(
    expression: impl Expression,
    operands: impl ComplexOperands<B>,
) -> Result<Complex<B, D>> {
    let parts = operands.into_parts();
    let all: Vec<Operand<B>> = parts.iter().map(|[re, _]| re.clone()).collect();
    let plan = plan::<B, D>(&expression.into_einsum()?, &all)?;
    let mut slots: Vec<Option<[FloatTensor<B>; 2]>> =
        parts.into_iter().map(|parts| Some(parts.map(|x| x.0))).collect();
    for step in plan.steps()? {
        let product = |operands: &[&FloatTensor<B>]| {
            B::einsum::<Standard>(&step.plan, operands.iter().map(|&x| x.clone()).collect())
        };
        let taken: Vec<_> = step.slots.iter().filter_map(|&slot| slots[slot].take()).collect();
        let next = match &taken[..] {
            [[a, b], [c, d]] => {
                let re = B::float_sub(product(&[a, c])?, product(&[b, d])?);
                [re, B::float_add(product(&[a, d])?, product(&[b, c])?)]
            }
            [[a, b]] => [product(&[a])?, product(&[b])?],
            _ => unreachable!("a step takes one or two tensors"),
        };
        slots.push(Some(next));
    }
    let Some(Some([re, im])) = slots.pop() else { unreachable!("a plan has a last step") };
    let tensor = |x| Tensor::from_primitive(TensorPrimitive::Float(x));
    Complex::new(tensor(re), tensor(im))
}

/// Operands of [`complex_einsum`]: as [`Operands`], of [`Complex`] tensors.
pub trait ComplexOperands<B: Backend> {
    /// Real and imaginary parts.
    fn into_parts(self) -> Vec<[Operand<B>; 2]>;
}

/// Both parts of a complex tensor of any rank.
#[derive(Clone, Debug)]
pub struct ComplexOperand<B: Backend>([Operand<B>; 2]);

impl<B: Backend, const D: usize> From<&Complex<B, D>> for ComplexOperand<B> {
    fn from(z: &Complex<B, D>) -> Self {
        Self([z.re().into(), z.im().into()])
    }
}

impl<B: Backend, T: Into<ComplexOperand<B>>, const N: usize> ComplexOperands<B> for [T; N] {
    fn into_parts(self) -> Vec<[Operand<B>; 2]> {
        self.into_iter().map(|z| z.into().0).collect()
    }
}

impl<B: Backend, T: Into<ComplexOperand<B>>> ComplexOperands<B> for Vec<T> {
    fn into_parts(self) -> Vec<[Operand<B>; 2]> {
        self.into_iter().map(|z| z.into().0).collect()
    }
}

macro_rules! complex_tuples {
    ($(($($t:ident $x:ident),+))*) => {$(
        impl<Bk: Backend, $($t: Into<ComplexOperand<Bk>>),+> ComplexOperands<Bk> for ($($t,)+) {
            fn into_parts(self) -> Vec<[Operand<Bk>; 2]> {
                let ($($x,)+) = self;
                vec![$($x.into().0),+]
            }
        }
    )*};
}
complex_tuples! {
    (A a)
    (A a, B b)
    (A a, B b, C c)
    (A a, B b, C c, D d)
}

/// Checks the operands and plans for them.
fn plan<B: EinsumOps, const D: usize>(
    einsum: &Einsum,
    operands: &[Operand<B>],
) -> Result<Arc<Plan>> {
    const OP: &str = "einsum";
    let Some(Operand(first)) = operands.first() else {
        let expected = einsum.subscripts().operands().max(1);
        return Err(EinsumError::OperandCount { expected, given: 0 }.into());
    };
    let (first, device) = (first.dtype(), B::float_device(first));
    for (argument, Operand(x)) in operands.iter().enumerate() {
        if x.dtype() != first {
            return Err(ExtError::DTypeMismatch { op: OP, first, argument, dtype: x.dtype() });
        }
        let other = B::float_device(x);
        if other != device {
            let (first, device) = (format!("{device:?}"), format!("{other:?}"));
            return Err(ExtError::DeviceMismatch { op: OP, first, argument, device });
        }
    }
    let shape = |(i, Operand(x)): (usize, &Operand<B>)| -> Vec<usize> {
        let shape = x.shape().to_vec();
        let scalar = einsum.subscripts().rank(i) == Some(0) && shape == [1];
        if scalar { Vec::new() } else { shape }
    };
    let shapes: Vec<Vec<usize>> = operands.iter().enumerate().map(shape).collect();
    let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let plan = einsum.plan(&views, first.size())?;
    let required = plan.shape().len().max(1);
    if required != D {
        return Err(ExtError::ResultRank { op: OP, required, given: D });
    }
    Ok(plan)
}
