//! Collective operations: examples of a mapped function exchange values, as with `jax.lax.psum` and its relatives.
//!
//! The axis is that of the map whose backend is `Vmap<B>`. In nested maps, on `Vmap<Vmap<B>>`, [`Own`] is the inner one, and
//! [`Outer<Own>`](Outer) the one around it.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::vmap::collective::{Own, pmean};
//! use burn_t4a_transforms::vmap::{Vmap, vmap};
//!
//! type V = Tensor<Vmap<BurnT4a>, 1>;
//! // Each example minus the mean of all of them.
//! let centred = |x: V| x.clone() - pmean::<Own, _, _>(x).unwrap();
//! let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
//! let y: Tensor<BurnT4a, 2> = vmap(centred).call(x)?;
//! y.into_data().assert_eq(&[[-1.0f32, -10.0], [1.0, 10.0]].into(), false);
//! # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
//! ```

use std::any::TypeId;
use std::marker::PhantomData;

use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::{FloatTensor, IntTensor};
use burn_backend::{Backend, Shape, TensorData, TensorMetadata, get_device_settings};
use burn_t4a::ext::tree::{Leaf, Tree, build, flatten};
use burn_tensor::{Float, Int, Tensor, TensorPrimitive};

use crate::active::with_call;
use crate::backend::Vmap;
use crate::error::VmapError;
use crate::kind::{DataKind, Primitive};
use crate::movement::{MappedTensor, raise};
use crate::tensor::VmapTensor;

/// The map of the backend itself.
#[derive(Clone, Copy, Debug)]
pub enum Own {}

/// An axis `A` of the backend inside of `Vmap`: `Outer<Own>` is the map around the innermost one.
#[derive(Clone, Copy, Debug)]
pub struct Outer<A>(PhantomData<A>);

/// Result of an exchange that is the same for all examples.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum Exchange {
    Sum,
    Mean,
    Max,
    Min,
}

/// An axis of collective operations on `Vmap<B>`: [`Own`], or [`Outer`] in nested maps.
pub trait MapAxis<B: Backend> {
    /// Number of examples.
    ///
    /// # Errors
    /// [`VmapError::Collective`] outside of a call and in a call with chunks.
    fn size() -> Result<usize, VmapError>;

    #[doc(hidden)]
    fn index(device: &B::Device) -> Result<IntTensor<Vmap<B>>, VmapError>;
    #[doc(hidden)]
    fn float(x: FloatTensor<Vmap<B>>, by: Exchange) -> Result<FloatTensor<Vmap<B>>, VmapError>;
    #[doc(hidden)]
    fn int(x: IntTensor<Vmap<B>>, by: Exchange) -> Result<IntTensor<Vmap<B>>, VmapError>;
    #[doc(hidden)]
    fn gather(x: FloatTensor<Vmap<B>>) -> Result<FloatTensor<Vmap<B>>, VmapError>;
    #[doc(hidden)]
    fn select(
        x: FloatTensor<Vmap<B>>,
        sources: &[usize],
    ) -> Result<FloatTensor<Vmap<B>>, VmapError>;
}

/// Removes the first axis, of size 1. An example without axes has the shape `[1]`.
fn without_batch<B: Backend, K: DataKind<B>>(x: Primitive<B, K>) -> Primitive<B, K> {
    let shape = Shape::from(x.shape()[1..].to_vec());
    K::reshape(x, shape)
}

impl<B: Backend> MapAxis<B> for Own {
    fn size() -> Result<usize, VmapError> {
        let found = with_call(TypeId::of::<Vmap<B>>(), |call| (call.size, call.whole));
        match found {
            Some((size, true)) => Ok(size),
            Some((_, false)) => {
                Err(VmapError::Collective { problem: "evaluates its examples in chunks" })
            }
            None => Err(VmapError::Collective { problem: "has ended, or has not begun" }),
        }
    }

    fn index(device: &B::Device) -> Result<IntTensor<Vmap<B>>, VmapError> {
        let dtype = get_device_settings::<B>(device).int_dtype;
        let all = B::int_arange(0..<Self as MapAxis<B>>::size()? as i64, device, dtype);
        let shape = Shape::from([all.shape()[0], 1]);
        Ok(VmapTensor::batched(B::int_reshape(all, shape)))
    }

    fn float(x: FloatTensor<Vmap<B>>, by: Exchange) -> Result<FloatTensor<Vmap<B>>, VmapError> {
        let x = raise::<B, Float>(x, Some(<Self as MapAxis<B>>::size()?));
        let reduced = match by {
            Exchange::Sum => B::float_sum_dim(x, 0),
            Exchange::Mean => B::float_mean_dim(x, 0),
            Exchange::Max => B::float_max_dim(x, 0),
            Exchange::Min => B::float_min_dim(x, 0),
        };
        Ok(VmapTensor::shared(without_batch::<B, Float>(reduced)))
    }

    fn int(x: IntTensor<Vmap<B>>, by: Exchange) -> Result<IntTensor<Vmap<B>>, VmapError> {
        let x = raise::<B, Int>(x, Some(<Self as MapAxis<B>>::size()?));
        let reduced = match by {
            Exchange::Sum => B::int_sum_dim(x, 0),
            Exchange::Mean => B::int_mean_dim(x, 0),
            Exchange::Max => B::int_max_dim(x, 0),
            Exchange::Min => B::int_min_dim(x, 0),
        };
        Ok(VmapTensor::shared(without_batch::<B, Int>(reduced)))
    }

    fn gather(x: FloatTensor<Vmap<B>>) -> Result<FloatTensor<Vmap<B>>, VmapError> {
        Ok(VmapTensor::shared(raise::<B, Float>(x, Some(<Self as MapAxis<B>>::size()?))))
    }

    fn select(
        x: FloatTensor<Vmap<B>>,
        sources: &[usize],
    ) -> Result<FloatTensor<Vmap<B>>, VmapError> {
        let size = <Self as MapAxis<B>>::size()?;
        if sources.len() != size || sources.iter().any(|&from| from >= size) {
            return Err(VmapError::Sources { sources: sources.to_vec(), size });
        }
        let x = raise::<B, Float>(x, Some(size));
        let device = B::float_device(&x);
        let dtype = get_device_settings::<B>(&device).int_dtype;
        let sources = sources.iter().map(|&from| from as i64).collect::<Vec<_>>();
        let data = TensorData::new(sources, [size]).convert_dtype(dtype.into());
        let index = B::int_from_data(data, &device);
        Ok(VmapTensor::batched(B::float_select(x, 0, index)))
    }
}

/// The exchange on the tensors inside.
fn inside<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    exchange: impl FnOnce(Primitive<B, K>) -> Result<Primitive<B, K>, VmapError>,
) -> Result<MappedTensor<B, K>, VmapError> {
    let size = x.size();
    let (x, _) = x.into_inner();
    Ok(VmapTensor::new(exchange(x)?, size))
}

impl<B: Backend, A: MapAxis<B>> MapAxis<Vmap<B>> for Outer<A> {
    fn size() -> Result<usize, VmapError> {
        A::size()
    }

    fn index(device: &B::Device) -> Result<IntTensor<Vmap<Vmap<B>>>, VmapError> {
        Ok(VmapTensor::shared(A::index(device)?))
    }

    fn float(
        x: FloatTensor<Vmap<Vmap<B>>>,
        by: Exchange,
    ) -> Result<FloatTensor<Vmap<Vmap<B>>>, VmapError> {
        inside::<Vmap<B>, Float>(x, |x| A::float(x, by))
    }

    fn int(
        x: IntTensor<Vmap<Vmap<B>>>,
        by: Exchange,
    ) -> Result<IntTensor<Vmap<Vmap<B>>>, VmapError> {
        inside::<Vmap<B>, Int>(x, |x| A::int(x, by))
    }

    fn gather(x: FloatTensor<Vmap<Vmap<B>>>) -> Result<FloatTensor<Vmap<Vmap<B>>>, VmapError> {
        let is_batched = x.is_batched();
        inside::<Vmap<B>, Float>(x, |x| {
            let all = A::gather(x)?;
            Ok(if is_batched {
                <Vmap<B> as FloatTensorOps<_>>::float_swap_dims(all, 0, 1)
            } else {
                all
            })
        })
    }

    fn select(
        x: FloatTensor<Vmap<Vmap<B>>>,
        sources: &[usize],
    ) -> Result<FloatTensor<Vmap<Vmap<B>>>, VmapError> {
        inside::<Vmap<B>, Float>(x, |x| A::select(x, sources))
    }
}

fn reduced<A: MapAxis<B>, B: Backend, T: Tree<Vmap<B>>>(
    x: T,
    by: Exchange,
) -> Result<T, VmapError> {
    let (structure, leaves) = flatten(x);
    let one = |leaf| match leaf {
        Leaf::Float(x) => A::float(x, by).map(Leaf::Float),
        Leaf::Int(x) => A::int(x, by).map(Leaf::Int),
        Leaf::Bool(_) => {
            Err(VmapError::Collective { problem: "has no sum or extreme of booleans" })
        }
    };
    Ok(build(&structure, leaves.into_iter().map(one).collect::<Result<_, _>>()?)?)
}

/// The sum over all examples, for each tensor of a tree. A tensor that examples share counts once for each of them.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, psum};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// // The share of each example in the sum.
/// let share = |x: V| x.clone() / psum::<Own, _, _>(x).unwrap();
/// let y: Tensor<BurnT4a, 2> = vmap(share).call(x)?;
/// y.into_data().assert_eq(&[[0.25f32, 0.25], [0.75, 0.75]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// [`VmapError::Collective`] outside of a call, in a call with chunks, and for booleans.
pub fn psum<A: MapAxis<B>, B: Backend, T: Tree<Vmap<B>>>(x: T) -> Result<T, VmapError> {
    reduced::<A, B, T>(x, Exchange::Sum)
}

/// The mean over all examples, see [`psum`].
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, pmean};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// let centred = |x: V| x.clone() - pmean::<Own, _, _>(x).unwrap();
/// let y: Tensor<BurnT4a, 2> = vmap(centred).call(x)?;
/// y.into_data().assert_eq(&[[-1.0f32, -10.0], [1.0, 10.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// As [`psum`].
pub fn pmean<A: MapAxis<B>, B: Backend, T: Tree<Vmap<B>>>(x: T) -> Result<T, VmapError> {
    reduced::<A, B, T>(x, Exchange::Mean)
}

/// The maximum over all examples, element by element, see [`psum`].
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, pmax};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// let below = |x: V| pmax::<Own, _, _>(x.clone()).unwrap() - x;
/// let y: Tensor<BurnT4a, 2> = vmap(below).call(x)?;
/// y.into_data().assert_eq(&[[2.0f32, 20.0], [0.0, 0.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// As [`psum`].
pub fn pmax<A: MapAxis<B>, B: Backend, T: Tree<Vmap<B>>>(x: T) -> Result<T, VmapError> {
    reduced::<A, B, T>(x, Exchange::Max)
}

/// The minimum over all examples, element by element, see [`psum`].
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, pmin};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// let above = |x: V| x.clone() - pmin::<Own, _, _>(x).unwrap();
/// let y: Tensor<BurnT4a, 2> = vmap(above).call(x)?;
/// y.into_data().assert_eq(&[[0.0f32, 0.0], [2.0, 20.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// As [`psum`].
pub fn pmin<A: MapAxis<B>, B: Backend, T: Tree<Vmap<B>>>(x: T) -> Result<T, VmapError> {
    reduced::<A, B, T>(x, Exchange::Min)
}

/// The number of examples.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, axis_size};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// let scaled = |x: V| x / axis_size::<Own, BurnT4a>().unwrap() as f32;
/// let y: Tensor<BurnT4a, 2> = vmap(scaled).call(x)?;
/// y.into_data().assert_eq(&[[0.5f32, 5.0], [1.5, 15.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// [`VmapError::Collective`] outside of a call and in a call with chunks.
pub fn axis_size<A: MapAxis<B>, B: Backend>() -> Result<usize, VmapError> {
    A::size()
}

/// The number of an example, from 0 on: shape `[1]`.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, axis_index};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// let shifted = |x: V| x + axis_index::<Own, BurnT4a>(&T4aDevice).unwrap().float();
/// let y: Tensor<BurnT4a, 2> = vmap(shifted).call(x)?;
/// y.into_data().assert_eq(&[[1.0f32, 10.0], [4.0, 31.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// [`VmapError::Collective`] outside of a call and in a call with chunks.
pub fn axis_index<A: MapAxis<B>, B: Backend>(
    device: &B::Device,
) -> Result<Tensor<Vmap<B>, 1, Int>, VmapError> {
    A::index(device).map(Tensor::new)
}

/// The values of all examples along a new first axis. `R` is `D + 1`.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, all_gather};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// // All inner products with the other examples.
/// let products = |x: V| {
///     let all: Tensor<Vmap<BurnT4a>, 2> = all_gather::<Own, _, 1, 2>(x.clone()).unwrap();
///     (all * x.unsqueeze::<2>()).sum_dim(1).squeeze_dim::<1>(1)
/// };
/// let y: Tensor<BurnT4a, 2> = vmap(products).call(x)?;
/// y.into_data().assert_eq(&[[101.0f32, 303.0], [303.0, 909.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// [`VmapError::Collective`] outside of a call and in a call with chunks; [`VmapError::Rank`] for another rank of the result.
pub fn all_gather<A: MapAxis<B>, B: Backend, const D: usize, const R: usize>(
    x: Tensor<Vmap<B>, D>,
) -> Result<Tensor<Vmap<B>, R>, VmapError> {
    if R != D + 1 {
        return Err(VmapError::Rank { required: D + 1, given: R });
    }
    let all = A::gather(x.into_primitive().tensor())?;
    Ok(Tensor::from_primitive(TensorPrimitive::Float(all)))
}

/// The value of another example: example i receives that of `sources[i]`. `jax.lax.pshuffle`; with distinct sources a
/// permutation, as `jax.lax.ppermute`.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::collective::{Own, pshuffle};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Tensor<Vmap<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &T4aDevice);
/// // The two examples exchange their values.
/// let exchanged = |x: V| pshuffle::<Own, _, 1>(x, &[1, 0]).unwrap();
/// let y: Tensor<BurnT4a, 2> = vmap(exchanged).call(x)?;
/// y.into_data().assert_eq(&[[3.0f32, 30.0], [1.0, 10.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
///
/// # Errors
/// [`VmapError::Collective`] outside of a call and in a call with chunks; [`VmapError::Sources`] unless there is one source, the
/// number of an example, for each example.
pub fn pshuffle<A: MapAxis<B>, B: Backend, const D: usize>(
    x: Tensor<Vmap<B>, D>,
    sources: &[usize],
) -> Result<Tensor<Vmap<B>, D>, VmapError> {
    let x = A::select(x.into_primitive().tensor(), sources)?;
    Ok(Tensor::from_primitive(TensorPrimitive::Float(x)))
}
