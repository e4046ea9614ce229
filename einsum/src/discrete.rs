//! Non-differentiable semirings on engine tensors: booleans, integers, number of optima, K best values. The instances
//! for semirings of this workspace are compiled here.

use t4a_algebra::{
    Boolean, Cancellative, Counted, Counting, KBest, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus,
    Scalar, Selective, Semiring, Standard, bf16, f16,
};
use t4a_tensor::{AnyTensor, DType, Element, Tensor, TensorError, with_dtype};

use crate::error::{EinsumError, Result};
use crate::plan::Plan;

fn unsupported<R>(op: &'static str, dtype: DType, expected: &'static str) -> Result<R> {
    Err(TensorError::DTypeUnsupported { op, dtype, expected }.into())
}

fn contract<S: Semiring<T>, T: Element>(plan: &Plan, operands: &[&AnyTensor]) -> Result<Tensor<T>> {
    let typed = operands.iter().map(|x| x.typed::<T>());
    plan.contract::<S, T>(&typed.collect::<Result<Vec<_>, TensorError>>()?)
}

/// The contraction of `map(x)` over the elements x.
fn contract_as<S: Semiring<U>, T: Element, U: Scalar>(
    plan: &Plan,
    operands: &[&AnyTensor],
    map: impl Fn(T) -> U,
) -> Result<Tensor<U>> {
    let operand = |x: &&AnyTensor| -> Result<Tensor<U>> {
        let x = x.typed::<T>()?;
        let elements = x.to_vec()?.into_iter().map(&map).collect();
        Ok(Tensor::from_vec(elements, x.shape())?)
    };
    let operands: Vec<_> = operands.iter().map(operand).collect::<Result<_>>()?;
    plan.contract::<S, U>(&operands.iter().collect::<Vec<_>>())
}

impl Plan {
    /// The (or, and) contraction: true if some assignment of the summed labels satisfies all operands.
    ///
    /// # Errors
    /// As [`Plan::contract`]; `DTypeUnsupported` for dtypes other than bool.
    pub fn contract_bool(&self, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        Ok(contract::<Boolean, bool>(self, operands)?.into())
    }

    /// The exact contraction over a semiring of signed integers.
    ///
    /// # Errors
    /// As [`Plan::contract`]; `DTypeUnsupported` for dtypes other than signed integers.
    pub fn contract_int<S: IntSemiring>(&self, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        S::contract(self, operands)
    }

    /// Number of assignments of the summed labels that attain each value of the contraction over `S`, as `i64`.
    ///
    /// # Errors
    /// As [`Plan::contract`]; `DTypeUnsupported`, [`EinsumError::CountOverflow`].
    pub fn count<S: FloatCancellative>(&self, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        S::count(self, operands)
    }

    /// The `K` best values of every sum in descending order of preference, along a new last axis.
    ///
    /// # Errors
    /// As [`Plan::contract`]; `DTypeUnsupported`.
    pub fn k_best<S: FloatSelective, const K: usize>(
        &self,
        operands: &[&AnyTensor],
    ) -> Result<AnyTensor> {
        let dtype = operands.first().map_or(DType::F32, |x| x.dtype());
        with_dtype!(dtype, T in float => {
            let of = |x: T| KBest::<K, S>::of([x]);
            let lists = contract_as::<KBest<K, S>, T, [T; K]>(self, operands, of)?;
            let shape: Vec<usize> = lists.shape().iter().copied().chain([K]).collect();
            let values = Tensor::from_vec(lists.to_vec()?.into_flattened(), &shape)?;
            Ok(values.with_route(lists.route()).into())
        }, else => unsupported("k_best_einsum", dtype, "a float"))
    }
}

/// A semiring over signed integers: [`Standard`] with wrapping arithmetic, and [`MaxPlus`], [`MinPlus`], [`MaxMul`],
/// [`MinMul`] and [`MaxMin`] with saturation, where `MIN` and `MAX` represent −∞ and +∞. A user-defined semiring needs an
/// empty impl.
pub trait IntSemiring:
    Semiring<i64> + Semiring<i32> + Semiring<i16> + Semiring<i8> + Sized
{
    /// [`Plan::contract_int`].
    ///
    /// # Errors
    /// As [`Plan::contract_int`].
    fn contract(plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        of_integers::<Self>(plan, operands)
    }
}

fn of_integers<S: IntSemiring>(plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
    Ok(match operands.first().map_or(DType::I64, |x| x.dtype()) {
        DType::I64 => contract::<S, i64>(plan, operands)?.into(),
        DType::I32 => contract::<S, i32>(plan, operands)?.into(),
        DType::I16 => contract::<S, i16>(plan, operands)?.into(),
        DType::I8 => contract::<S, i8>(plan, operands)?.into(),
        dtype => return unsupported("int_einsum", dtype, "a signed integer"),
    })
}

/// A selective semiring over floats: every sum equals one of its terms.
pub trait FloatSelective:
    Selective<f64> + Selective<f32> + Selective<f16> + Selective<bf16>
{
}

impl<S: Selective<f64> + Selective<f32> + Selective<f16> + Selective<bf16>> FloatSelective for S {}

/// A semiring over floats whose optimal terms can be counted: [`MaxPlus`], [`MinPlus`], [`MaxMul`], [`MinMul`]. A
/// user-defined semiring needs an empty impl.
pub trait FloatCancellative:
    Cancellative<f64> + Cancellative<f32> + Cancellative<f16> + Cancellative<bf16> + Sized
{
    /// [`Plan::count`].
    ///
    /// # Errors
    /// As [`Plan::count`].
    fn count(plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        counts::<Self>(plan, operands)
    }
}

fn counts<S: FloatCancellative>(plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
    let dtype = operands.first().map_or(DType::F32, |x| x.dtype());
    with_dtype!(dtype, T in float => {
        let one = |x: T| Counting::<S>::of(x, 1);
        let found = contract_as::<Counting<S>, T, Counted<T>>(plan, operands, one)?;
        let count = |x: Counted<T>| x.count().and_then(|count| i64::try_from(count).ok());
        let counts: Option<Vec<i64>> = found.to_vec()?.into_iter().map(count).collect();
        let counts = counts.ok_or(EinsumError::CountOverflow)?;
        // The counts are the second components of the contracted elements.
        Ok(Tensor::from_vec(counts, found.shape())?.with_route(found.route()).into())
    }, else => unsupported("counting_einsum", dtype, "a float"))
}

/// Non-generic instances, compiled in this crate instead of in the caller's.
macro_rules! compiled_here {
    ($($trait:ident::$method:ident = $body:ident: $($semiring:ident),*;)*) => {$($(
        impl $trait for $semiring {
            fn $method(plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
                $body::<Self>(plan, operands)
            }
        }
    )*)*};
}
compiled_here! {
    IntSemiring::contract = of_integers: Standard, MaxPlus, MinPlus, MaxMul, MinMul, MaxMin;
    FloatCancellative::count = counts: MaxPlus, MinPlus, MaxMul, MinMul;
}
