//! Einsum without derivatives: booleans, integers, counts of optima, K best values.
//!
//! Devices with kernels compute these for semirings of this workspace, for booleans over (max, ×); the engine computes
//! everything else, on every backend. Elements are then exchanged as `TensorData`: free with `BurnT4a`, a transfer for
//! devices with their own memory, and a fallback elsewhere that the route policy may reject. Results are constants of
//! the tape.

use std::any::TypeId;

use burn_backend::tensor::Device;
use burn_backend::{DType as BurnDType, Shape};
use burn_tensor::{BasicOps, Bool, Float, Int, Tensor, TensorPrimitive};
use t4a_algebra::{MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard};
use t4a_diff::{Integers, Value};
use t4a_einsum::{
    ArraySemiring, EinsumError, Expression, FloatCancellative, FloatSelective, FloatSemiring,
    IntSemiring, Operands, Plan,
};
use t4a_tensor::AnyTensor;
use t4a_tensor::route::Route;

use super::call::semiring_einsum;
use super::host::HostContraction;
use super::operand::{HostOperand, Operand};
use crate::ext::error::{ExtError, Result};
use crate::ext::operation::{Kernel, Operations, Semiring};
use crate::ext::primitive::{Bools, ElementParts, Floats, Indices, SemiringArray};
use crate::ext::user::{routed, tensor};

/// The semiring as a value, if it is one of this workspace.
fn known<S: 'static>() -> Option<FloatSemiring> {
    let all = [
        (TypeId::of::<Standard>(), FloatSemiring::Standard),
        (TypeId::of::<MaxPlus>(), FloatSemiring::MaxPlus),
        (TypeId::of::<MinPlus>(), FloatSemiring::MinPlus),
        (TypeId::of::<MaxMul>(), FloatSemiring::MaxMul),
        (TypeId::of::<MinMul>(), FloatSemiring::MinMul),
        (TypeId::of::<MaxMin>(), FloatSemiring::MaxMin),
    ];
    all.into_iter().find(|(id, _)| *id == TypeId::of::<S>()).map(|(_, semiring)| semiring)
}

/// Operands of a contraction on their device: dtype, device and shape, and the elements.
type DeviceOperands<B> = Vec<((BurnDType, Device<B>, Shape), SemiringArray<B>)>;

/// Operands as elements of a semiring, if the device has a kernel for these.
fn for_device<B: Operations, K: BasicOps<B>, S: 'static>(
    operands: &[HostOperand<B, K>],
    parts: impl Fn(K::Primitive) -> ElementParts<B>,
) -> Option<DeviceOperands<B>> {
    let semiring = known::<S>()?;
    let array = |x: &HostOperand<B, K>| SemiringArray { semiring, parts: parts(x.0.clone()) };
    let all: DeviceOperands<B> = operands.iter().map(|x| (x.described(), array(x))).collect();
    all.first().is_some_and(|(_, x)| B::has_element_product(x)).then_some(all)
}

/// Contraction on the device, with a result of rank `rank` as in [`job`].
fn on_device<B: Operations>(
    expression: impl Expression,
    operands: DeviceOperands<B>,
    [rank, extra, factor]: [usize; 3],
) -> Result<SemiringArray<B>> {
    let (described, operands): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
    let bytes = |dtype: &BurnDType| dtype.size().saturating_mul(factor);
    let einsum = expression.into_einsum()?;
    let plan = einsum.plan_for::<_, _, _, ExtError>(&described, bytes, rank, extra)?;
    Ok(plan.contract_elements(operands)?)
}

/// True if a count exceeds 31 bits or is unknown; reads one boolean from the device.
fn has_large<B: Operations>(counts: &Indices<B>) -> bool {
    let count = counts.shape().iter().product();
    if count == 0 {
        return false;
    }
    let counts = Tensor::<B, 1, Int>::from_primitive(counts.reshape(&[count]).0);
    counts.lower_elem(0).any().into_data().iter::<bool>().any(|large| large)
}

/// Plans a contraction whose result has `extra` axes beyond its labels and elements `factor` times as large.
fn job<B, K, const D: usize>(
    op: &'static str,
    expression: impl Expression,
    operands: Vec<HostOperand<B, K>>,
    extra: usize,
    factor: usize,
) -> Result<HostContraction<B::Device>>
where
    B: Operations,
    K: BasicOps<B>,
{
    let operands = operands.into_iter().map(HostOperand::read).collect();
    HostContraction::new(op, expression, operands, B::Device::clone, [D, extra, factor])
}

/// Runs a planned contraction in the engine; returns the result on the backend, and its route.
fn run<B: Operations, K: BasicOps<B>, const D: usize>(
    job: &HostContraction<B::Device>,
    contract: impl FnOnce(&Plan, &[&AnyTensor]) -> Result<AnyTensor, EinsumError>,
) -> Result<(Tensor<B, D, K>, Route)> {
    let (data, route) = job.run(contract)?;
    let dtype = data.dtype;
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
/// use burn_t4a::ext::einsum::bool_einsum;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::{Bool, Tensor};
/// // Reachability in two steps.
/// let step = [[false, true, false], [false, false, true], [false, false, false]];
/// let step = Tensor::<BurnT4a, 2, Bool>::from_data(step, &T4aDevice);
/// let two: Tensor<BurnT4a, 2, Bool> = bool_einsum("ij,jk->ik", [&step, &step])?;
/// let reached: Vec<bool> = two.into_data().iter().collect();
/// assert_eq!(reached, [false, false, true, false, false, false, false, false, false]);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum).
pub fn bool_einsum<B: Operations, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<B, Bool>>,
) -> Result<Tensor<B, D, Bool>> {
    let operands = operands.into_operands();
    if B::has_kernel(Kernel::Semiring(Semiring::MaxMul), &[]) {
        // (max, ×) of 0 and 1 is (or, and).
        let operands: Vec<Operand<B>> =
            operands.into_iter().map(HostOperand::into_floats).collect();
        return Ok(semiring_einsum::<MaxMul, B, D>(expression, operands)?.greater_elem(0.0));
    }
    let job = job::<_, _, D>("bool_einsum", expression, operands, 0, 1)?;
    let (flags, route) = run::<B, Bool, D>(&job, Plan::contract_bool)?;
    let flags = B::with_route(Value::Flags(Bools(flags.into_primitive())), route);
    Ok(Tensor::from_primitive(flags.flags().0.clone()))
}

/// As [`einsum`](super::einsum), over a semiring of signed integers, exact.
///
/// ```
/// use burn_t4a::ext::einsum::{MinPlus, int_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::{Int, Tensor};
/// let far = i32::MAX;
/// let hop = Tensor::<BurnT4a, 2, Int>::from_data([[0, 5, 1], [5, 0, far], [1, 2, 0]], &T4aDevice);
/// let two: Tensor<BurnT4a, 2, Int> = int_einsum::<MinPlus, _, _>("ij,jk->ik", [&hop, &hop])?;
/// assert_eq!(two.slice([0..1, 1..2]).into_scalar(), 3);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum); `DTypeUnsupported` for unsigned integers.
pub fn int_einsum<S: IntSemiring, B: Operations, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<B, Int>>,
) -> Result<Tensor<B, D, Int>> {
    let operands = operands.into_operands();
    let integers = |x| ElementParts::Integers(Indices(x));
    if let Some(operands) = for_device::<B, Int, S>(&operands, integers) {
        let result = on_device(expression, operands, [D, 0, 1])?;
        let ElementParts::Integers(result) = result.parts else { unreachable!("integers") };
        return Ok(Tensor::from_primitive(result.0));
    }
    let job = job::<_, _, D>("int_einsum", expression, operands, 0, 1)?;
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
/// use burn_t4a::{BurnT4a, ext::einsum::{MaxMin, counting_einsum}};
/// let x = burn::tensor::Tensor::<BurnT4a, 1>::from_floats([1.0, 2.0], &burn_t4a::T4aDevice);
/// let _ = counting_einsum::<MaxMin, _, 1>("i->", [&x]);
/// ```
///
/// ```
/// use burn_t4a::ext::einsum::{MaxPlus, counting_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
/// // Two-colourings of a triangle that cut as many edges as possible.
/// let cut = Tensor::<BurnT4a, 2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &T4aDevice);
/// let (most, ways) = counting_einsum::<MaxPlus, _, 1>("ab,bc,ca->", [&cut, &cut, &cut])?;
/// assert_eq!((most.into_scalar(), ways.into_scalar()), (2.0, 6));
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum); [`EinsumError::CountOverflow`].
pub fn counting_einsum<S, B, const D: usize>(
    expression: impl Expression + Clone,
    operands: impl Operands<Operand<B>>,
) -> Result<(Tensor<B, D>, Tensor<B, D, Int>)>
where
    S: ArraySemiring + FloatCancellative,
    B: Operations,
{
    let operands = operands.into_operands();
    let host: Vec<HostOperand<B, Float>> = operands.iter().map(Operand::elements).collect();
    let values = |x: TensorPrimitive<B>| ElementParts::Counted(Floats(x.tensor()), None);
    if let Some(on) = for_device::<B, Float, S>(&host, values) {
        let found = on_device(expression.clone(), on, [D, 0, 4])?;
        if let ElementParts::Counted(x, Some(counts)) = &found.parts
            && !has_large(counts)
        {
            let counts = B::int_cast(counts.0.clone(), x.ints());
            let values = semiring_einsum::<S, B, D>(expression, operands)?;
            return Ok((values, Tensor::from_primitive(counts)));
        }
    }
    // A value and a count.
    let job = job::<_, _, D>("counting_einsum", expression.clone(), host, 0, 4)?;
    let values = semiring_einsum::<S, B, D>(expression, operands)?;
    let (counts, route) = run(&job, Plan::count::<S>)?;
    Ok((values, routed(counts, route)))
}

/// The `K` best values of every sum, best first, along a last axis of the result. Missing values are padded with
/// the zero of the semiring; values attained twice are listed twice.
///
/// ```
/// use burn_t4a::ext::einsum::{MinPlus, k_best_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
/// // The two shortest paths over one of three stops.
/// let to = Tensor::<BurnT4a, 1>::from_floats([4.0, 1.0, 3.0], &T4aDevice);
/// let from = Tensor::<BurnT4a, 1>::from_floats([1.0, 9.0, 3.0], &T4aDevice);
/// let best: Tensor<BurnT4a, 1> = k_best_einsum::<MinPlus, 2, _, 1>("i,i->", (&to, &from))?;
/// best.into_data().assert_eq(&[5.0f32, 6.0].into(), true);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// `D` is the number of labels of the result plus one. The result is a constant of the tape; [`semiring_einsum`]
/// gives the gradient of the best value.
///
/// Cost: at most K ln K times the multiply-adds of the plan.
///
/// # Errors
/// As [`einsum`](super::einsum).
pub fn k_best_einsum<S: FloatSelective, const K: usize, B: Operations, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<B, Float>>,
) -> Result<Tensor<B, D>> {
    if K == 0 {
        return Err(EinsumError::Backend("k_best_einsum: K must be at least 1".into()).into());
    }
    let operands = operands.into_operands();
    let values = |x: TensorPrimitive<B>| {
        let values = Floats(B::float_detach(x.tensor()));
        ElementParts::Best { values, k: K, listed: false }
    };
    if let Some(operands) = for_device::<B, Float, S>(&operands, values) {
        let best = on_device(expression, operands, [D, 1, K])?;
        let ElementParts::Best { values, .. } = best.parts else { unreachable!("lists") };
        return Ok(tensor(values));
    }
    let job = job::<_, _, D>("k_best_einsum", expression, operands, 1, K)?;
    let (best, route) = run::<B, Float, D>(&job, Plan::k_best::<S, K>)?;
    let best = B::with_route(Value::Float(Floats(best.into_primitive().tensor())), route);
    Ok(Tensor::from_primitive(TensorPrimitive::Float(best.float().0.clone())))
}
