//! Operands described by a frontend's own dtypes and devices: checks and plans.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use crate::einsum::Einsum;
use crate::error::{EinsumError, MismatchError};
use crate::plan::Plan;

const OP: &str = "einsum";

/// Checks that all operands, each given by dtype, device and further data, have one dtype and one device.
///
/// [`MismatchError::DType`], [`MismatchError::Device`], for the first operand that differs.
/// [`MismatchError::DType`], [`MismatchError::Device`], of the first operand that differs.
pub fn agree<T, D, S>(op: &'static str, operands: &[(T, D, S)]) -> Result<(), MismatchError<T>>
where
    T: Clone + Debug + PartialEq,
    D: Debug + PartialEq,
{
    let Some((first, device, _)) = operands.first() else {
        return Ok(());
    };
    for (argument, (dtype, other, _)) in operands.iter().enumerate() {
        if dtype != first {
            let (first, dtype) = (first.clone(), dtype.clone());
            return Err(MismatchError::DType { op, first, argument, dtype });
        }
        if other != device {
            let (first, device) = (format!("{device:?}"), format!("{other:?}"));
            return Err(MismatchError::Device { op, first, argument, device });
        }
    }
    Ok(())
}

impl Einsum {
    /// The plan for operands given by dtype, device and shape, with elements of `bytes`, whose result becomes a tensor
    /// of rank `rank`: its labels followed by `extra` axes, at least one axis in total. A scalar may have shape `[1]`.
    ///
    /// # Errors
    /// [`MismatchError`] for operands that do not agree and for a result of another rank; the errors of
    /// [`Einsum::plan`].
    pub fn plan_for<T, D, S, E>(
        &self,
        operands: &[(T, D, S)],
        bytes: impl FnOnce(&T) -> usize,
        rank: usize,
        extra: usize,
    ) -> Result<Arc<Plan>, E>
    where
        T: Clone + Debug + PartialEq,
        D: Debug + PartialEq,
        S: Deref<Target = [usize]>,
        E: From<EinsumError> + From<MismatchError<T>>,
    {
        let subscripts = self.subscripts();
        let Some((dtype, ..)) = operands.first() else {
            let expected = subscripts.operands().max(1);
            return Err(EinsumError::OperandCount { expected, given: 0 }.into());
        };
        agree(OP, operands)?;
        let mut views: Vec<&[usize]> = Vec::with_capacity(operands.len());
        for (operand, (_, _, shape)) in operands.iter().enumerate() {
            let scalar = subscripts.rank(operand) == Some(0) && **shape == [1];
            views.push(if scalar { &[] } else { shape });
        }
        let plan = self.plan(&views, bytes(dtype))?;
        let required = (plan.shape().len() + extra).max(1);
        if required != rank {
            return Err(MismatchError::ResultRank { op: OP, required, given: rank }.into());
        }
        Ok(plan)
    }
}
