//! Contractions in the engine of tensors that were read from their backend.

use std::fmt::Debug;
use std::sync::Arc;

use burn_backend::{DType, Shape, TensorData};
use t4a_einsum::{EinsumError, Expression, Plan};
use t4a_tensor::AnyTensor;
use t4a_tensor::route::{Path, Reason, Route};

use crate::ext::error::{ExtError, Result};
use crate::ext::line::{T4aTensor, data_dtype};

/// Elements, shape and device of a tensor.
#[derive(Debug)]
pub(super) struct Host<V> {
    pub(super) data: TensorData,
    pub(super) shape: Shape,
    pub(super) device: V,
    /// True if the tensor is an engine tensor.
    pub(super) native: bool,
}

/// Planned contraction with operands in the engine.
pub(super) struct HostContraction<V> {
    plan: Arc<Plan>,
    operands: Vec<AnyTensor>,
    pub(super) device: V,
}

impl<V: Clone> HostContraction<V> {
    /// Plans a contraction whose result has rank `rank`, with `extra` axes beyond the labels of the output and
    /// elements `factor` times as large.
    ///
    /// `place` returns the device of a tensor without its tape.
    pub(super) fn new<P: Debug + PartialEq>(
        op: &'static str,
        expression: impl Expression,
        operands: Vec<Host<V>>,
        place: impl Fn(&V) -> P,
        [rank, extra, factor]: [usize; 3],
    ) -> Result<Self> {
        let described: Vec<_> = operands
            .iter()
            .map(|x| (data_dtype(&x.data), place(&x.device), x.shape.clone()))
            .collect();
        let bytes = |dtype: &DType| dtype.size().saturating_mul(factor);
        let einsum = expression.into_einsum()?;
        let plan = einsum.plan_for::<_, _, _, ExtError>(&described, bytes, rank, extra)?;
        if operands.iter().any(|x| !x.native) {
            Route::fallback(op, Path::HostData, Reason::OpUnsupported)?;
        }
        let Some(device) = operands.first().map(|x| x.device.clone()) else {
            unreachable!("a plan has operands");
        };
        let enter = |(i, x): (usize, Host<V>)| -> Result<AnyTensor> {
            let any = T4aTensor::try_from_data(x.data)?.into_any();
            Ok(any.reshape(plan.operand_shape(i).unwrap_or(&[]))?)
        };
        let operands = operands.into_iter().enumerate().map(enter).collect::<Result<_>>()?;
        Ok(Self { plan, operands, device })
    }

    /// Runs the contraction; returns the elements of the result and its route.
    pub(super) fn run(
        &self,
        contract: impl FnOnce(&Plan, &[&AnyTensor]) -> Result<AnyTensor, EinsumError>,
    ) -> Result<(TensorData, Route)> {
        let operands: Vec<&AnyTensor> = self.operands.iter().collect();
        let result = contract(&self.plan, &operands)?;
        let route = result.route();
        let result = if result.rank() == 0 { result.reshape(&[1])? } else { result };
        Ok((T4aTensor::from_any(result)?.try_into_data()?, route))
    }
}
