//! Dense arrays and tensor trains of the engine as Burn tensors.

use burn_tensor::{Tensor, TensorPrimitive};
use t4a_diff::Array;
use t4a_networks::train::TensorTrain;
use t4a_networks::{NetworksError, Result};
use t4a_tensor::{AnyTensor, Element};

use crate::ext::line::T4aTensor;
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;

/// The elements of a Burn tensor as a dense array of the engine, for [`TensorTrain::from_dense`].
///
/// # Errors
/// Those of a transfer and of a conversion.
pub fn to_engine<T: Element, B: Operations, const D: usize>(
    x: Tensor<B, D>,
) -> Result<t4a_tensor::Tensor<T>> {
    Ok(Floats::from(x).elements()?.cast(T::DTYPE)?.typed::<T>()?.clone())
}

/// A real dense array of the engine as a Burn tensor, in its type.
///
/// # Errors
/// `Tensor` for another rank; those of a transfer.
pub fn from_engine<T: Element, B: Operations, const D: usize>(
    x: &t4a_tensor::Tensor<T>,
    device: &B::Device,
) -> Result<Tensor<B, D>> {
    if x.rank() != D {
        let (op, what, required, given) = ("from_engine", "axes", D, x.rank());
        return Err(NetworksError::Length { op, what, required, given });
    }
    let data = T4aTensor::from_any(AnyTensor::from(x.clone()))?.try_into_data()?;
    Ok(Tensor::from_primitive(TensorPrimitive::Float(B::float_from_data(data, device))))
}

/// The cores `[l, d, r]` of a train.
///
/// # Errors
/// Those of a transfer.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::networks::train::{Compression, TensorTrain};
/// use burn_t4a::ext::networks::{to_engine, train_from_tensors, train_to_tensors};
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// // A matrix is a train of two cores, whose product it is.
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 0.5], [0.5, 0.25]], &T4aDevice);
/// let (train, _) = TensorTrain::from_dense(&to_engine::<f64, _, 2>(x.clone())?, &Compression::new())?;
/// let cores: Vec<Tensor<BurnT4a, 3>> = train_to_tensors(&train, &T4aDevice)?;
/// let product = cores[0].clone().squeeze_dim::<2>(0).matmul(cores[1].clone().squeeze_dim::<2>(2));
/// let back = train_from_tensors(cores)?;
/// product.into_data().convert::<f32>().assert_approx_eq::<f32>(&x.into_data(), Default::default());
/// assert!((back.eval(&[1, 1])? - 0.25).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn train_to_tensors<B: Operations>(
    train: &TensorTrain<f64>,
    device: &B::Device,
) -> Result<Vec<Tensor<B, 3>>> {
    train.cores().iter().map(|core| from_engine(core, device)).collect()
}

/// The train of cores `[l, d, r]`, for evaluation, sums and compression on the engine.
///
/// # Errors
/// `Chain` for cores that do not fit; those of a transfer.
pub fn train_from_tensors<B: Operations>(
    cores: impl IntoIterator<Item = Tensor<B, 3>>,
) -> Result<TensorTrain<f64>> {
    let cores = cores.into_iter().map(to_engine).collect::<Result<_>>()?;
    TensorTrain::new(cores).map_err(|error| {
        let message = error.to_string();
        NetworksError::Chain { op: "train_from_tensors", site: 0, message }
    })
}
