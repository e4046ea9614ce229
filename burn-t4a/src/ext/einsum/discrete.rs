//! Semirings without a derivative: booleans, integers, numbers of optima, K best values.
//!
//! The engine computes them for every backend. Elements cross as `TensorData`, which costs nothing
//! with `BurnT4a` and a transfer with devices that have memory of their own. Results are constants
//! of the tape.

use std::marker::PhantomData;
use std::sync::Arc;

use burn_backend::{Backend, DType as BurnDType, Shape, TensorData};
use burn_tensor::{BasicOps, Bool, Float, Int, Tensor};
use t4a_algebra::{
    Boolean, Cancellative, Counted, Counting, KBest, Scalar, Selective, Semiring, bf16, f16,
};
use t4a_einsum::{ArraySemiring, EinsumError, Plan};
use t4a_tensor::{AnyTensor, DType, Element, Tensor as EngineTensor, TensorError};

use super::call::{Expression, Operand, Operands, plan, semiring_einsum};
use crate::ext::error::{ExtError, Result};
use crate::ext::operation::Operations;
use crate::v0_21::T4aTensor;

/// The elements of a tensor of any rank of kind `K`.
#[derive(Debug)]
pub struct HostOperand<B: Backend, K> {
    data: TensorData,
    device: B::Device,
    kind: PhantomData<fn() -> K>,
}

impl<B: Backend, K: BasicOps<B>, const D: usize> From<&Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: &Tensor<B, D, K>) -> Self {
        tensor.clone().into()
    }
}

impl<B: Backend, K: BasicOps<B>, const D: usize> From<Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: Tensor<B, D, K>) -> Self {
        let device = tensor.device();
        Self { data: tensor.into_data(), device, kind: PhantomData }
    }
}

impl<B: Backend, K> HostOperand<B, K> {
    /// The same elements in another shape.
    pub(super) fn with_shape(mut self, shape: Shape) -> Self {
        self.data.shape = shape;
        self
    }
}

/// Operands in the engine, and what is to be done with them.
struct Job<B: Backend> {
    plan: Arc<Plan>,
    operands: Vec<AnyTensor>,
    dtype: DType,
    device: B::Device,
}

impl<B: Backend> Job<B> {
    /// Plans for a result with `extra` axes more than labels, elements of `factor` times the size.
    fn new<K, const D: usize>(
        expression: impl Expression,
        operands: impl Operands<HostOperand<B, K>>,
        extra: usize,
        factor: usize,
    ) -> Result<Self> {
        let einsum = expression.into_einsum()?;
        let operands = operands.into_operands();
        let described =
            |x: &HostOperand<B, K>| (x.data.dtype, x.device.clone(), x.data.shape.clone());
        let described: Vec<_> = operands.iter().map(described).collect();
        let plan = plan::<_, D>(&einsum, &described, extra, factor)?;
        let Some(device) = operands.first().map(|x| x.device.clone()) else {
            unreachable!("a plan has operands");
        };
        let enter = |(i, x): (usize, HostOperand<B, K>)| -> Result<AnyTensor> {
            let any = T4aTensor::from_data(x.data)?.into_any();
            Ok(any.reshape(plan.operand_shape(i).unwrap_or(&[]))?)
        };
        let operands: Vec<_> =
            operands.into_iter().enumerate().map(enter).collect::<Result<_>>()?;
        let dtype = operands[0].dtype();
        Ok(Self { plan, operands, dtype, device })
    }

    /// The contraction of `map(x)` over the elements x.
    fn contract<S: Semiring<U>, T: Element, U: Scalar>(
        &self,
        map: impl Fn(T) -> U,
    ) -> Result<EngineTensor<U>> {
        let operand = |x: &AnyTensor| -> Result<EngineTensor<U>> {
            let x = x.typed::<T>()?;
            let elements = x.to_vec()?.into_iter().map(&map).collect();
            Ok(EngineTensor::from_vec(elements, x.shape())?)
        };
        let operands: Vec<_> = self.operands.iter().map(operand).collect::<Result<_>>()?;
        Ok(self.plan.contract::<S, U>(&operands.iter().collect::<Vec<_>>())?)
    }

    fn leave<K: BasicOps<B>, const D: usize>(&self, result: AnyTensor) -> Result<Tensor<B, D, K>> {
        let result = if result.rank() == 0 { result.reshape(&[1])? } else { result };
        let data = T4aTensor::new(result)?.into_data()?;
        let dtype = data.dtype;
        Ok(match dtype {
            // Stored as the backend stores booleans.
            BurnDType::Bool(_) => Tensor::from_data(data, &self.device),
            _ => Tensor::from_data(data, (&self.device, dtype)),
        })
    }

    fn unsupported(&self, op: &'static str, expected: &'static str) -> ExtError {
        TensorError::DTypeUnsupported { op, dtype: self.dtype, expected }.into()
    }
}

/// [`einsum`](super::einsum) over (or, and) on booleans: whether any assignment of the summed labels
/// satisfies all operands.
///
/// ```
/// use burn_t4a::ext::einsum::bool_einsum;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_tensor::{Bool, Tensor};
/// // Who reaches whom in two steps.
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
pub fn bool_einsum<B: Backend, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<B, Bool>>,
) -> Result<Tensor<B, D, Bool>> {
    let job = Job::new::<_, D>(expression, operands, 0, 1)?;
    let result = job.contract::<Boolean, bool, bool>(|x| x)?;
    job.leave(result.into())
}

/// A semiring over signed integers: [`Standard`](super::Standard), which wraps, and
/// [`MaxPlus`](super::MaxPlus), [`MinPlus`](super::MinPlus), [`MaxMul`](super::MaxMul) and
/// [`MaxMin`](super::MaxMin), which saturate. `MIN` and `MAX` are −∞ and +∞ there.
pub trait IntSemiring: Semiring<i64> + Semiring<i32> + Semiring<i16> + Semiring<i8> {}

impl<S: Semiring<i64> + Semiring<i32> + Semiring<i16> + Semiring<i8>> IntSemiring for S {}

/// [`einsum`](super::einsum) over a semiring of signed integers, exact.
///
/// ```
/// use burn_t4a::ext::einsum::{MinPlus, int_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_tensor::{Int, Tensor};
/// let far = i32::MAX;
/// let hop = Tensor::<BurnT4a, 2, Int>::from_data([[0, 5, 1], [5, 0, far], [1, 2, 0]], &T4aDevice);
/// let two: Tensor<BurnT4a, 2, Int> = int_einsum::<MinPlus, _, _>("ij,jk->ik", [&hop, &hop])?;
/// assert_eq!(two.slice([0..1, 1..2]).into_scalar(), 3);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum); `DTypeUnsupported` for unsigned integers.
pub fn int_einsum<S: IntSemiring, B: Backend, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<B, Int>>,
) -> Result<Tensor<B, D, Int>> {
    let job = Job::new::<_, D>(expression, operands, 0, 1)?;
    let result: AnyTensor = match job.dtype {
        DType::I64 => job.contract::<S, i64, i64>(|x| x)?.into(),
        DType::I32 => job.contract::<S, i32, i32>(|x| x)?.into(),
        DType::I16 => job.contract::<S, i16, i16>(|x| x)?.into(),
        DType::I8 => job.contract::<S, i8, i8>(|x| x)?.into(),
        _ => return Err(job.unsupported("int_einsum", "a signed integer")),
    };
    job.leave(result)
}

/// A semiring over floats whose sums are one of their terms: [`MaxPlus`](super::MaxPlus),
/// [`MinPlus`](super::MinPlus), [`MaxMul`](super::MaxMul), [`MaxMin`](super::MaxMin).
pub trait FloatSelective:
    Selective<f64> + Selective<f32> + Selective<f16> + Selective<bf16>
{
}

impl<S: Selective<f64> + Selective<f32> + Selective<f16> + Selective<bf16>> FloatSelective for S {}

/// A semiring over floats whose best terms can be counted: [`MaxPlus`](super::MaxPlus),
/// [`MinPlus`](super::MinPlus), [`MaxMul`](super::MaxMul).
pub trait FloatCancellative:
    Cancellative<f64> + Cancellative<f32> + Cancellative<f16> + Cancellative<bf16>
{
}

impl<S> FloatCancellative for S where
    S: Cancellative<f64> + Cancellative<f32> + Cancellative<f16> + Cancellative<bf16>
{
}

/// Calls `$f::<T>` for the float dtype of the job.
macro_rules! by_float {
    ($job:expr, $op:literal, $t:ident => $body:expr) => {
        t4a_tensor::with_dtype!($job.dtype, $t in float => $body, else => {
            return Err($job.unsupported($op, "a float"))
        })
    };
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
/// let x = burn_tensor::Tensor::<BurnT4a, 1>::from_floats([1.0, 2.0], &burn_t4a::T4aDevice);
/// let _ = counting_einsum::<MaxMin, _, 1>("i->", [&x]);
/// ```
///
/// ```
/// use burn_t4a::ext::einsum::{MaxPlus, counting_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_tensor::Tensor;
/// // Two-colourings of a triangle that cut as many edges as possible.
/// let cut = Tensor::<BurnT4a, 2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &T4aDevice);
/// let (most, ways) = counting_einsum::<MaxPlus, _, 1>("ab,bc,ca->", [&cut, &cut, &cut])?;
/// assert_eq!((most.into_scalar(), ways.into_scalar()), (2.0, 6));
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// # Errors
/// As [`einsum`](super::einsum); [`ExtError::CountOverflow`].
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
    let values = semiring_einsum::<S, B, D>(expression.clone(), operands)?;
    // A value and a count.
    let job = Job::new::<_, D>(expression, host, 0, 4)?;
    let counts = by_float!(job, "counting_einsum", T => job.counts::<S, T>()?);
    Ok((values, job.leave(counts.into())?))
}

impl<B: Backend> Job<B> {
    fn counts<S: Cancellative<T>, T: Element>(&self) -> Result<EngineTensor<i64>> {
        let found = self.contract::<Counting<S>, T, Counted<T>>(|x| Counting::<S>::of(x, 1))?;
        let count = |x: Counted<T>| x.count().and_then(|count| i64::try_from(count).ok());
        let counts: Option<Vec<i64>> = found.to_vec()?.into_iter().map(count).collect();
        let counts = counts.ok_or(ExtError::CountOverflow)?;
        Ok(EngineTensor::from_vec(counts, found.shape())?)
    }

    fn k_best<S: Selective<T>, T: Element, const K: usize>(&self) -> Result<EngineTensor<T>> {
        let lists = self.contract::<KBest<K, S>, T, [T; K]>(|x| KBest::<K, S>::of([x]))?;
        let shape: Vec<usize> = lists.shape().iter().copied().chain([K]).collect();
        Ok(EngineTensor::from_vec(lists.to_vec()?.into_flattened(), &shape)?)
    }
}

/// The `K` best values of every sum, best first along a last axis of the result; fewer terms are
/// padded with 0 of the semiring, and values attained twice are listed twice.
///
/// ```
/// use burn_t4a::ext::einsum::{MinPlus, k_best_einsum};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_tensor::Tensor;
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
pub fn k_best_einsum<S: FloatSelective, const K: usize, B: Backend, const D: usize>(
    expression: impl Expression,
    operands: impl Operands<HostOperand<B, Float>>,
) -> Result<Tensor<B, D>> {
    if K == 0 {
        return Err(EinsumError::Backend("k_best_einsum: K must be at least 1".into()).into());
    }
    let job = Job::new::<_, D>(expression, operands, 1, K)?;
    let best: AnyTensor = by_float!(job, "k_best_einsum", T => job.k_best::<S, T, K>()?.into());
    job.leave(best)
}
