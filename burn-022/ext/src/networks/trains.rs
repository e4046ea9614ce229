//! Dense arrays and tensor trains of the engine as Burn tensors.

use burn_dispatch::Dispatch;
use burn_t4a_022::T4aTensor;
use burn_tensor::{Device, Tensor};
use t4a_diff::Array;
use t4a_networks::train::TensorTrain;
use t4a_networks::{NetworksError, Result};
use t4a_tensor::{AnyTensor, Element};

use crate::primitive::Floats;

/// The elements of a Burn tensor as a dense array of the engine, for [`TensorTrain::from_dense`].
///
/// # Errors
/// Those of a transfer and of a conversion.
pub fn to_engine<T: Element, const D: usize>(x: Tensor<D>) -> Result<t4a_tensor::Tensor<T>> {
    Ok(Floats::<Dispatch>::from(x).elements()?.cast(T::DTYPE)?.typed::<T>()?.clone())
}

/// A real dense array of the engine as a Burn tensor, in its type.
///
/// # Errors
/// `Tensor` for another rank; those of a transfer.
pub fn from_engine<T: Element, const D: usize>(
    x: &t4a_tensor::Tensor<T>,
    device: &Device,
) -> Result<Tensor<D>> {
    if x.rank() != D {
        let (op, what, required, given) = ("from_engine", "axes", D, x.rank());
        return Err(NetworksError::Length { op, what, required, given });
    }
    let data = T4aTensor::from_any(AnyTensor::from(x.clone()))?.try_into_data()?;
    let dtype = data.dtype();
    Ok(Tensor::from_data(data, (device, dtype)))
}

/// The cores `[l, d, r]` of a train.
///
/// # Errors
/// Those of a transfer.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::networks::train::{Compression, TensorTrain};
/// use burn_t4a_022_ext::networks::{to_engine, train_from_tensors, train_to_tensors};
///
/// // A matrix is a train of two cores, whose product it is.
/// let x = Tensor::<2>::from_floats([[1.0, 0.5], [0.5, 0.25]], &Device::flex());
/// let (train, _) = TensorTrain::from_dense(&to_engine::<f64, 2>(x.clone())?, &Compression::new())?;
/// let cores: Vec<Tensor<3>> = train_to_tensors(&train, &Device::flex())?;
/// let product = cores[0].clone().squeeze_dim::<2>(0).matmul(cores[1].clone().squeeze_dim::<2>(2));
/// let back = train_from_tensors(cores)?;
/// product.into_data().convert::<f32>().assert_approx_eq::<f32>(&x.into_data(), Default::default());
/// assert!((back.eval(&[1, 1])? - 0.25).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn train_to_tensors(train: &TensorTrain<f64>, device: &Device) -> Result<Vec<Tensor<3>>> {
    train.cores().iter().map(|core| from_engine(core, device)).collect()
}

/// The train of cores `[l, d, r]`, for evaluation, sums and compression on the engine.
///
/// # Errors
/// `Chain` for cores that do not fit; those of a transfer.
pub fn train_from_tensors(cores: impl IntoIterator<Item = Tensor<3>>) -> Result<TensorTrain<f64>> {
    let cores = cores.into_iter().map(to_engine).collect::<Result<_>>()?;
    TensorTrain::new(cores).map_err(|error| {
        let message = error.to_string();
        NetworksError::Chain { op: "train_from_tensors", site: 0, message }
    })
}
