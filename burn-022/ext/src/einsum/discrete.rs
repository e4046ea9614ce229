//! Einsum without derivatives: booleans, integers, counts of optima, K best values.
//!
//! The engine computes these for every backend. Elements are exchanged as `TensorData`: free with the engine, a
//! transfer for devices with their own memory, and a fallback elsewhere that the route policy may reject. Results
//! are constants of the tape.

use burn_backend::DType as BurnDType;
use burn_dispatch::Dispatch;
use burn_tensor::kind::Basic;
use burn_tensor::{Bool, Device, Float, Int, Tensor};
use t4a_einsum::{
    ArraySemiring, EinsumError, Expression, FloatCancellative, FloatSelective, IntSemiring,
    Operands, Plan,
};
use t4a_tensor::AnyTensor;
use t4a_tensor::route::Route;

use super::call::semiring_einsum;
use super::host::HostContraction;
use super::operand::{HostOperand, Operand};
use crate::error::Result;
use crate::operation::{Operations, flags, float};
use crate::user::routed;

/// Plans a contraction whose result has `extra` axes beyond its labels and elements `factor` times as large.
fn job<K, const D: usize>(
    op: &'static str,
    expression: impl Expression,
    operands: impl Operands<HostOperand<K>>,
    extra: usize,
    factor: usize,
) -> Result<HostContraction<Device>> {
    let operands = operands.into_operands().into_iter().map(|x| x.0).collect();
    // Constants may be combined with tensors on a tape.
    let place = |device: &Device| device.clone().inner();
    HostContraction::new(op, expression, operands, place, [D, extra, factor])
}

/// Runs a planned contraction in the engine; returns the result on the backend, and its route.
fn run<K: Basic, const D: usize>(
    job: &HostContraction<Device>,
    contract: impl FnOnce(&Plan, &[&AnyTensor]) -> Result<AnyTensor, EinsumError>,
) -> Result<(Tensor<D, K>, Route)> {
    let (data, route) = job.run(contract)?;
    let dtype = data.dtype();
    let result = match dtype {
        // Stored in the boolean format of the backend.
        BurnDType::Bool(_) => Tensor::from_data(data, &job.device),
        _ => Tensor::from_data(data, (&job.device, dtype)),
    };
    Ok((result, route))
}

/// As [`einsum`](super::einsum), over (or, and): true where an assignment of the summed labels satisfies all
/// operands.
///
/// ```
/// use burn_t4a_022_ext::einsum::bool_einsum;
/// use burn::tensor::{Bool, Device, Tensor};
/// // Reachability in two steps.
/// let step = [[false, true, false], [false, false, true], [false, false, false]];
/// let step = Tensor::<2, Bool>::from_data(step, &Device::flex());
/// let two: Tensor<2, Bool> = bool_einsum("ij,jk->ik", [&step, &step])?;
/// let reached: Vec<bool> = two.into_data().iter().collect();
/// assert_eq!(reached, [false, false, true, false, false, false, false, false, false]);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum).
pub fn bool_einsum<const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<Bool>>,
) -> Result<Tensor<D, Bool>> {
    let job = job::<_, D>("bool_einsum", expression, operands, 0, 1)?;
    let (any, route) = run::<Bool, D>(&job, Plan::contract_bool)?;
    Ok(Tensor::from_dispatch(Dispatch::with_route(flags(any), route).flags().0.clone()))
}

/// As [`einsum`](super::einsum), over a semiring of signed integers, exact.
///
/// ```
/// use burn_t4a_022_ext::einsum::{MinPlus, int_einsum};
/// use burn::tensor::{Device, Int, Tensor};
/// let far = i32::MAX;
/// let hop = Tensor::<2, Int>::from_data([[0, 5, 1], [5, 0, far], [1, 2, 0]], &Device::flex());
/// let two: Tensor<2, Int> = int_einsum::<MinPlus, _>("ij,jk->ik", [&hop, &hop])?;
/// assert_eq!(two.slice([0..1, 1..2]).into_scalar::<i32>(), 3);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum); `DTypeUnsupported` for unsigned integers.
pub fn int_einsum<S: IntSemiring, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<Int>>,
) -> Result<Tensor<D, Int>> {
    let job = job::<_, D>("int_einsum", expression, operands, 0, 1)?;
    let (result, route) = run(&job, Plan::contract_int::<S>)?;
    Ok(routed(result, route))
}

/// As [`semiring_einsum`], with the number of assignments of the summed labels that attain each value.
///
/// The values are those of [`semiring_einsum`], with its gradient. Values are compared bitwise: counts are exact if
/// sums are, as for floats that hold integers, and miss ties such as 0.1 + 0.2 and 0.3. The count of an element
/// equal to the semiring's zero, such as a product that underflows, is 0. The count of an infinite value or NaN is
/// undefined, because it absorbs different terms; that is an error. (max, min) has no counts for the same reason:
///
/// ```compile_fail
/// use burn_t4a_022_ext::einsum::{MaxMin, counting_einsum};
/// let x = burn_tensor::Tensor::<1>::from_floats([1.0, 2.0], &burn_tensor::Device::flex());
/// let _ = counting_einsum::<MaxMin, 1>("i->", [&x]);
/// ```
///
/// ```
/// use burn_t4a_022_ext::einsum::{MaxPlus, counting_einsum};
/// use burn::tensor::{Device, Tensor};
/// // Two-colourings of a triangle that cut as many edges as possible.
/// let cut = Tensor::<2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &Device::flex());
/// let (most, ways) = counting_einsum::<MaxPlus, 1>("ab,bc,ca->", [&cut, &cut, &cut])?;
/// assert_eq!((most.into_scalar::<f32>(), ways.into_scalar::<i64>()), (2.0, 6));
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum); [`EinsumError::CountOverflow`].
pub fn counting_einsum<S, const D: usize>(
    expression: impl Expression + Clone,
    operands: impl Operands<Operand>,
) -> Result<(Tensor<D>, Tensor<D, Int>)>
where
    S: ArraySemiring + FloatCancellative,
{
    let operands = operands.into_operands();
    let host: Vec<HostOperand<Float>> = operands.iter().map(Operand::to_host).collect();
    // A value and a count.
    let job = job::<_, D>("counting_einsum", expression.clone(), host, 0, 4)?;
    let values = semiring_einsum::<S, D>(expression, operands)?;
    let (counts, route) = run(&job, Plan::count::<S>)?;
    Ok((values, routed(counts, route)))
}

/// The `K` best values of every sum, best first, along a last axis of the result. Missing values are padded with
/// the zero of the semiring; values attained twice are listed twice.
///
/// ```
/// use burn_t4a_022_ext::einsum::{MinPlus, k_best_einsum};
/// use burn::tensor::{Device, Tensor};
/// // The two shortest paths over one of three stops.
/// let to = Tensor::<1>::from_floats([4.0, 1.0, 3.0], &Device::flex());
/// let from = Tensor::<1>::from_floats([1.0, 9.0, 3.0], &Device::flex());
/// let best: Tensor<1> = k_best_einsum::<MinPlus, 2, 1>("i,i->", (&to, &from))?;
/// best.into_data().assert_eq(&[5.0f32, 6.0].into(), true);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// `D` is the number of labels of the result plus one. The result is a constant of the tape; [`semiring_einsum`]
/// gives the gradient of the best value.
///
/// Cost: at most K ln K times the multiply-adds of the plan.
///
/// # Errors
/// As [`einsum`](super::einsum).
pub fn k_best_einsum<S: FloatSelective, const K: usize, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<Float>>,
) -> Result<Tensor<D>> {
    if K == 0 {
        return Err(EinsumError::Backend("k_best_einsum: K must be at least 1".into()).into());
    }
    let job = job::<_, D>("k_best_einsum", expression, operands, 1, K)?;
    let (best, route) = run::<Float, D>(&job, Plan::k_best::<S, K>)?;
    Ok(Tensor::from_dispatch(Dispatch::with_route(float(best), route).float().0.clone()))
}
