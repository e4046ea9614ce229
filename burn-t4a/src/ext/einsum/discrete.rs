//! Semirings without a derivative: booleans, integers, numbers of optima, K best values.
//!
//! The engine computes them for every backend, but for booleans on devices with kernels over (max, ×). Elements cross as `TensorData`, which costs nothing
//! with `BurnT4a` and a transfer with devices that have memory of their own, and is a fallback elsewhere,
//! which the policy of routes may reject. Results are constants of the tape.

use burn_backend::DType as BurnDType;
use burn_tensor::{BasicOps, Bool, Float, Int, Tensor, TensorPrimitive};
use t4a_algebra::MaxMul;
use t4a_diff::Value;
use t4a_einsum::{
    ArraySemiring, EinsumError, Expression, FloatCancellative, FloatSelective, IntSemiring,
    Operands, Plan,
};
use t4a_tensor::AnyTensor;
use t4a_tensor::route::Route;

use super::call::semiring_einsum;
use super::host::Job;
use super::operand::{FlagOperand, HostOperand, Operand};
use crate::ext::error::Result;
use crate::ext::operation::{Kernel, Operations, Semiring};
use crate::ext::primitive::{Bools, Floats};
use crate::ext::user::routed;

/// Plans for a result with `extra` axes more than labels, elements of `factor` times the size.
fn job<B: Operations, K, const D: usize>(
    op: &'static str,
    expression: impl Expression,
    operands: impl Operands<HostOperand<B, K>>,
    extra: usize,
    factor: usize,
) -> Result<Job<B::Device>> {
    let operands = operands.into_operands().into_iter().map(|x| x.0).collect();
    Job::new(op, expression, operands, B::Device::clone, [D, extra, factor])
}

/// The result of a contraction in the engine, with the backend, and its route.
fn run<B: Operations, K: BasicOps<B>, const D: usize>(
    job: &Job<B::Device>,
    contract: impl FnOnce(&Plan, &[&AnyTensor]) -> Result<AnyTensor, EinsumError>,
) -> Result<(Tensor<B, D, K>, Route)> {
    let (data, route) = job.run(contract)?;
    let dtype = data.dtype;
    let result = match dtype {
        // Stored as the backend stores booleans.
        BurnDType::Bool(_) => Tensor::from_data(data, &job.device),
        _ => Tensor::from_data(data, (&job.device, dtype)),
    };
    Ok((result, route))
}

/// [`einsum`](super::einsum) over (or, and) on booleans: true where an assignment of the summed labels
/// satisfies all operands.
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
    operands: impl Operands<FlagOperand<B>>,
) -> Result<Tensor<B, D, Bool>> {
    let operands = operands.into_operands();
    if B::has_kernel(Kernel::Semiring(Semiring::MaxMul), &[]) {
        // (max, ×) of 0 and 1 is (or, and).
        let operands: Vec<Operand<B>> =
            operands.into_iter().map(FlagOperand::into_floats).collect();
        return Ok(semiring_einsum::<MaxMul, B, D>(expression, operands)?.greater_elem(0.0));
    }
    let operands: Vec<HostOperand<B, Bool>> =
        operands.into_iter().map(FlagOperand::into_host).collect();
    let job = job::<_, _, D>("bool_einsum", expression, operands, 0, 1)?;
    let (flags, route) = run::<B, Bool, D>(&job, Plan::contract_bool)?;
    let flags = B::with_route(Value::Flags(Bools(flags.into_primitive())), route);
    Ok(Tensor::from_primitive(flags.flags().0.clone()))
}

/// [`einsum`](super::einsum) over a semiring of signed integers, exact.
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
    let job = job::<_, _, D>("int_einsum", expression, operands, 0, 1)?;
    let (result, route) = run(&job, Plan::contract_int::<S>)?;
    Ok(routed(result, route))
}

/// [`semiring_einsum`] and how many assignments of the summed labels attain each value.
///
/// The values are those of [`semiring_einsum`], with its gradient. Counts compare values bit for
/// bit: they are exact where sums are, for floats that hold integers, and miss ties such as
/// 0.1 + 0.2 with 0.3. An element that is 0 of the semiring, as a product that underflows, is
/// attained by none. How often an infinite value or NaN is attained cannot be told, because it
/// absorbs what differs; that is an error. (max, min) has no counts for the same reason:
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
    let host: Vec<HostOperand<B, Float>> = operands.iter().map(Operand::to_host).collect();
    // A value and a count.
    let job = job::<_, _, D>("counting_einsum", expression.clone(), host, 0, 4)?;
    let values = semiring_einsum::<S, B, D>(expression, operands)?;
    let (counts, route) = run(&job, Plan::count::<S>)?;
    Ok((values, routed(counts, route)))
}

/// The `K` best values of every sum, best first along a last axis of the result; fewer terms are
/// padded with 0 of the semiring, and values attained twice are listed twice.
///
/// ```
/// use burn_t4a::ext::einsum::{MinPlus, k_best_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
/// // The two shortest ways over one of three stops.
/// let to = Tensor::<BurnT4a, 1>::from_floats([4.0, 1.0, 3.0], &T4aDevice);
/// let from = Tensor::<BurnT4a, 1>::from_floats([1.0, 9.0, 3.0], &T4aDevice);
/// let best: Tensor<BurnT4a, 1> = k_best_einsum::<MinPlus, 2, _, 1>("i,i->", (&to, &from))?;
/// best.into_data().assert_eq(&[5.0f32, 6.0].into(), true);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// `D` is the number of labels of the result plus one. A constant of the tape: gradients of the
/// best value are those of [`semiring_einsum`].
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
    let job = job::<_, _, D>("k_best_einsum", expression, operands, 1, K)?;
    let (best, route) = run::<B, Float, D>(&job, Plan::k_best::<S, K>)?;
    let best = B::with_route(Value::Float(Floats(best.into_primitive().tensor())), route);
    Ok(Tensor::from_primitive(TensorPrimitive::Float(best.float().0.clone())))
}
