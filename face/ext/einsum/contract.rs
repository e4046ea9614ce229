//! Contractions of float tensors of a backend: plans an einsum for its operands and runs it as an operation.

use burn_backend::DType;
use t4a_diff::{Pairs, Value};
use t4a_einsum::{ArraySemiring, Contraction, Expression, FloatSemiring};

use crate::ext::error::{ExtError, Result};
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;

/// An operand: dtype, device and shape, and its primitives.
pub(super) type DescribedOperand<V, S, P> = ((DType, V, S), P);

/// Contracts over a semiring; the result must have the given rank.
pub(super) fn contract<S, B, V, Sizes>(
    expression: impl Expression,
    operands: Vec<DescribedOperand<V, Sizes, Floats<B>>>,
    rank: usize,
) -> Result<Floats<B>>
where
    S: ArraySemiring,
    B: Operations,
    V: std::fmt::Debug + PartialEq,
    Sizes: std::ops::Deref<Target = [usize]>,
{
    let (described, operands): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
    let bytes = |dtype: &DType| dtype.size();
    let plan =
        expression.into_einsum()?.plan_for::<_, _, _, ExtError>(&described, bytes, rank, 0)?;
    let op = Contraction { plan, semiring: S::TAG };
    let inputs: Vec<_> = operands.into_iter().map(Value::Float).collect();
    // The operands were checked when the plan was made.
    let out = B::run(&op, &inputs, &vec![false; inputs.len()])?;
    let result = out.results.into_iter().next();
    Ok(result.unwrap_or_else(|| unreachable!("one result")))
}

/// Contracts complex numbers given as pairs of real and imaginary part; the result must have the given rank.
pub(super) fn contract_pairs<B, V, Sizes>(
    expression: impl Expression,
    operands: Vec<DescribedOperand<V, Sizes, [Floats<B>; 2]>>,
    rank: usize,
) -> Result<[Floats<B>; 2]>
where
    B: Operations,
    V: std::fmt::Debug + PartialEq,
    Sizes: std::ops::Deref<Target = [usize]>,
{
    let (described, operands): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
    let bytes = |dtype: &DType| 2 * dtype.size();
    let plan =
        expression.into_einsum()?.plan_for::<_, _, _, ExtError>(&described, bytes, rank, 0)?;
    plan.check_unsliced()?;
    let op = Pairs::new(Contraction { plan, semiring: FloatSemiring::Standard });
    let inputs: Vec<_> = operands.into_iter().flatten().map(Value::Float).collect();
    let out = B::run(&op, &inputs, &vec![false; inputs.len()])?;
    out.results.try_into().map_err(|_| unreachable!("a pair"))
}
