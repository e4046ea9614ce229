//! What the functions of this module take and return: `Tensor<B, D>` or `Complex<B, D>`.

use std::fmt::Debug;

use burn_backend::TensorMetadata;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Shape, TensorData, get_device_settings};
use burn_tensor::{Int, Tensor, TensorPrimitive};
use t4a_linalg::Result;
use t4a_tensor::TensorError;

use super::ops::LinalgOps;
use super::value::Value;
use crate::ext::Complex;

/// A batch of matrices `[…, m, n]` of rank 2 to 8: a real tensor, or a complex one as a pair.
///
/// The associated types are tensors of lower rank over the same backend. A number per matrix has
/// the shape of the batch, `[1]` for a single matrix: Burn has no tensors of rank 0.
pub trait Matrix: Clone + Debug {
    /// Number of axes.
    const RANK: usize;
    /// Whether there is an imaginary part.
    const COMPLEX: bool;
    /// The backend.
    type Backend: LinalgOps;
    /// Vectors `[…, k]` of the type of the matrix.
    type Vector: Clone + Debug;
    /// Real vectors `[…, k]`.
    type RealVector: Clone + Debug;
    /// Complex vectors `[…, k]`.
    type ComplexVector: Clone + Debug;
    /// Complex matrices.
    type ComplexMatrix: Clone + Debug;
    /// Numbers `[…]` of the type of the matrix.
    type Number: Clone + Debug;
    /// Real numbers `[…]`.
    type RealNumber: Clone + Debug;
    /// Indices `[…, k]`.
    type Indices: Clone + Debug;
    /// Status of each matrix, `[…]`.
    type Info: Clone + Debug;

    /// The primitives.
    fn into_value(self) -> Value<Self::Backend>;
    /// The matrices of a result.
    fn from_value(value: Value<Self::Backend>) -> Self;
    /// The complex matrices of a result.
    fn complex_matrix(value: Value<Self::Backend>) -> Self::ComplexMatrix;
    /// Vectors as rows `[…, 1, k]`.
    fn rows(vectors: Self::Vector) -> Value<Self::Backend>;
    /// The vectors of rows.
    fn vectors(rows: Value<Self::Backend>) -> Self::Vector;
    /// The vectors of a result, which are rows there.
    fn real_vector(value: Value<Self::Backend>) -> Self::RealVector;
    /// As [`Matrix::real_vector`].
    fn complex_vector(value: Value<Self::Backend>) -> Self::ComplexVector;
    /// The numbers of a result, which are `1 × 1` matrices there.
    fn number(value: Value<Self::Backend>) -> Self::Number;
    /// As [`Matrix::number`].
    fn real_number(value: Value<Self::Backend>) -> Self::RealNumber;
    /// The indices of an engine tensor `[…, k]`.
    ///
    /// # Errors
    /// `Tensor` for lack of memory.
    fn indices(
        index: &t4a_tensor::Tensor<i64>,
        device: &<Self::Backend as burn_backend::BackendTypes>::Device,
    ) -> Result<Self::Indices>;
    /// Indices as an engine tensor `[…, k]`.
    ///
    /// # Errors
    /// `Tensor` if the backend does not hand out its data.
    fn host(indices: Self::Indices) -> Result<t4a_tensor::Tensor<i64>>;
    /// The status in an engine tensor `[…]`.
    ///
    /// # Errors
    /// As [`Matrix::indices`].
    fn info(
        info: &t4a_tensor::Tensor<i32>,
        device: &<Self::Backend as burn_backend::BackendTypes>::Device,
    ) -> Result<Self::Info>;
}

/// The tensor of a primitive, `drop` axes of size 1 at the place of the matrix left out.
fn lower<B: Backend, const D: usize>(x: FloatTensor<B>, drop: usize) -> Tensor<B, D> {
    let shape = x.shape();
    let mut sizes: Vec<usize> = shape.to_vec();
    for _ in 0..drop {
        // A row `[…, 1, k]`, then a number `[…, 1]`: the axis before the last one, then the last.
        let at = if sizes.len() == shape.num_dims() { sizes.len() - 2 } else { sizes.len() - 1 };
        sizes.remove(at);
    }
    if sizes.is_empty() {
        sizes.push(1);
    }
    let x = if drop == 0 { x } else { B::float_reshape(x, Shape::from(sizes)) };
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

fn real<B: Backend, const D: usize>(value: Value<B>, drop: usize) -> Tensor<B, D> {
    match value {
        Value::Real(x) | Value::Complex { re: x, .. } => lower(x, drop),
    }
}

fn complex<B: Backend, const D: usize>(value: Value<B>, drop: usize) -> Complex<B, D> {
    match value {
        Value::Real(x) => Complex::from_real(lower(x, drop)),
        Value::Complex { re, im } => {
            let pair = Complex::new(lower(re, drop), lower(im, drop));
            pair.unwrap_or_else(|_| unreachable!("the parts come out of one operation"))
        }
    }
}

/// `[…, k]` as `[…, 1, k]`.
fn row<B: Backend, const D: usize>(x: Tensor<B, D>) -> FloatTensor<B> {
    let mut sizes = x.dims().to_vec();
    sizes.insert(D - 1, 1);
    B::float_reshape(x.into_primitive().tensor(), Shape::from(sizes))
}

/// Integers of the engine on a device, at least of rank 1.
fn integers<B: Backend, const D: usize>(
    values: Vec<i64>,
    shape: &[usize],
    device: &B::Device,
) -> Tensor<B, D, Int> {
    let shape = if shape.is_empty() { &[1] } else { shape };
    let dtype = get_device_settings::<B>(device).int_dtype;
    let data = TensorData::new(values, shape.to_vec()).convert_dtype(dtype.into());
    Tensor::from_primitive(B::int_from_data(data, device))
}

macro_rules! matrix {
    ($($d:literal $vector:literal $number:literal;)*) => {$(
        impl<B: LinalgOps> Matrix for Tensor<B, $d> {
            const COMPLEX: bool = false;
            type Vector = Tensor<B, $vector>;
            type Number = Tensor<B, $number>;

            fn rows(vectors: Self::Vector) -> Value<B> {
                Value::Real(row(vectors))
            }
            fn vectors(rows: Value<B>) -> Self::Vector {
                real(rows, 1)
            }

            fn into_value(self) -> Value<B> {
                Value::Real(self.into_primitive().tensor())
            }
            fn from_value(value: Value<B>) -> Self {
                real(value, 0)
            }
            fn number(value: Value<B>) -> Self::Number {
                real(value, 2)
            }
            matrix!(@lower B $d $vector $number);
        }

        impl<B: LinalgOps> Matrix for Complex<B, $d> {
            const COMPLEX: bool = true;
            type Vector = Complex<B, $vector>;
            type Number = Complex<B, $number>;

            fn rows(vectors: Self::Vector) -> Value<B> {
                let (re, im) = vectors.into_parts();
                Value::Complex { re: row(re), im: row(im) }
            }
            fn vectors(rows: Value<B>) -> Self::Vector {
                complex(rows, 1)
            }

            fn into_value(self) -> Value<B> {
                let (re, im) = self.into_parts();
                let (re, im) = (re.into_primitive().tensor(), im.into_primitive().tensor());
                Value::Complex { re, im }
            }
            fn from_value(value: Value<B>) -> Self {
                complex(value, 0)
            }
            fn number(value: Value<B>) -> Self::Number {
                complex(value, 2)
            }
            matrix!(@lower B $d $vector $number);
        }
    )*};
    (@lower $b:ident $d:literal $vector:literal $number:literal) => {
        const RANK: usize = $d;
        type Backend = $b;
        type RealVector = Tensor<$b, $vector>;
        type ComplexVector = Complex<$b, $vector>;
        type ComplexMatrix = Complex<$b, $d>;
        type RealNumber = Tensor<$b, $number>;
        type Indices = Tensor<$b, $vector, Int>;
        type Info = Tensor<$b, $number, Int>;

        fn complex_matrix(value: Value<$b>) -> Self::ComplexMatrix {
            complex(value, 0)
        }
        fn real_vector(value: Value<$b>) -> Self::RealVector {
            real(value, 1)
        }
        fn complex_vector(value: Value<$b>) -> Self::ComplexVector {
            complex(value, 1)
        }
        fn real_number(value: Value<$b>) -> Self::RealNumber {
            real(value, 2)
        }
        fn indices(
            index: &t4a_tensor::Tensor<i64>,
            device: &$b::Device,
        ) -> Result<Self::Indices> {
            Ok(integers(index.to_vec()?, index.shape(), device))
        }
        fn host(indices: Self::Indices) -> Result<t4a_tensor::Tensor<i64>> {
            let shape = indices.dims();
            let read = || TensorError::value("indices", "the backend could not hand out data");
            let data = indices.try_into_data().map_err(|_| read())?;
            Ok(t4a_tensor::Tensor::from_vec(data.iter::<i64>().collect(), &shape)?)
        }
        fn info(info: &t4a_tensor::Tensor<i32>, device: &$b::Device) -> Result<Self::Info> {
            let codes = info.to_vec()?.into_iter().map(i64::from).collect();
            Ok(integers(codes, info.shape(), device))
        }
    };
}

matrix! {
    2 1 1;
    3 2 1;
    4 3 2;
    5 4 3;
    6 5 4;
    7 6 5;
    8 7 6;
}
