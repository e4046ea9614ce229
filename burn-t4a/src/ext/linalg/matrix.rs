//! What the functions of this module take and return: `Tensor<B, D>` or `Complex<B, D>`.

use std::fmt::Debug;

use burn_backend::{Backend, get_device_settings};
use burn_tensor::{Int, Tensor, TensorPrimitive};
use t4a_diff::{Array, Integers};
use t4a_linalg::Result;
use t4a_linalg::call::Pair;
use t4a_tensor::{AnyTensor, DType};

use crate::ext::Complex;
use crate::ext::operation::Operations;
use crate::ext::primitive::{Floats, Indices};

/// The primitives of real matrices, or of complex ones as a pair.
type Value<B> = Pair<Floats<B>>;

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
    type Backend: Operations;
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
    fn into_pair(self) -> Value<Self::Backend>;
    /// The matrices of a result.
    fn from_pair(value: Value<Self::Backend>) -> Self;
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
    /// The indices `[…, k]` of a result.
    fn indices(index: Indices<Self::Backend>) -> Self::Indices;
    /// Indices as an engine tensor `[…, k]`.
    ///
    /// # Errors
    /// `Tensor` if the backend does not hand out its data.
    fn host(indices: Self::Indices) -> Result<t4a_tensor::Tensor<i64>>;
    /// The status in an engine tensor `[…]`, on the device of `like`.
    ///
    /// # Errors
    /// `Tensor` for lack of memory.
    fn info(info: &t4a_tensor::Tensor<i32>, like: &Floats<Self::Backend>) -> Result<Self::Info>;
}

fn tensor<B: Operations, const D: usize>(x: Floats<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x.0))
}

pub(super) fn floats<B: Operations, const D: usize>(x: Tensor<B, D>) -> Floats<B> {
    Floats(x.into_primitive().tensor())
}

/// The tensor of a primitive, `drop` axes of size 1 at the place of the matrix left out: of a row
/// `[…, 1, k]` the last but one, of a number `[…, 1, 1]` both.
fn lower<B: Operations, const D: usize>(x: Floats<B>, drop: usize) -> Tensor<B, D> {
    if drop == 0 {
        return tensor(x);
    }
    let mut sizes = x.shape();
    let last = sizes.pop().filter(|_| drop == 1);
    sizes.pop();
    sizes.extend(last);
    tensor(x.reshape(&sizes))
}

pub(super) fn real<B: Operations, const D: usize>(value: Value<B>, drop: usize) -> Tensor<B, D> {
    lower(value.re, drop)
}

pub(super) fn complex<B: Operations, const D: usize>(
    value: Value<B>,
    drop: usize,
) -> Complex<B, D> {
    match value.im {
        None => Complex::from_real(lower(value.re, drop)),
        Some(im) => {
            let pair = Complex::new(lower(value.re, drop), lower(im, drop));
            pair.unwrap_or_else(|_| unreachable!("the parts come out of one operation"))
        }
    }
}

/// `[…, k]` as `[…, 1, k]`.
fn row<B: Operations, const D: usize>(x: Tensor<B, D>) -> Floats<B> {
    let mut sizes = x.dims().to_vec();
    sizes.insert(D - 1, 1);
    floats(x).reshape(&sizes)
}

/// Indices in the integer type of their device.
fn integers<B: Backend, const D: usize>(index: Indices<B>) -> Tensor<B, D, Int> {
    let dtype = get_device_settings::<B>(&B::int_device(&index.0)).int_dtype;
    Tensor::from_primitive(B::int_cast(index.0, dtype))
}

macro_rules! matrix {
    ($($d:literal $vector:literal $number:literal;)*) => {$(
        impl<B: Operations> Matrix for Tensor<B, $d> {
            const COMPLEX: bool = false;
            type Vector = Tensor<B, $vector>;
            type Number = Tensor<B, $number>;

            fn rows(vectors: Self::Vector) -> Value<B> {
                Pair::real(row(vectors))
            }
            fn vectors(rows: Value<B>) -> Self::Vector {
                real(rows, 1)
            }

            fn into_pair(self) -> Value<B> {
                Pair::real(floats(self))
            }
            fn from_pair(value: Value<B>) -> Self {
                real(value, 0)
            }
            fn number(value: Value<B>) -> Self::Number {
                real(value, 2)
            }
            matrix!(@lower B $d $vector $number);
        }

        impl<B: Operations> Matrix for Complex<B, $d> {
            const COMPLEX: bool = true;
            type Vector = Complex<B, $vector>;
            type Number = Complex<B, $number>;

            fn rows(vectors: Self::Vector) -> Value<B> {
                let (re, im) = vectors.into_parts();
                Pair::complex(row(re), row(im))
            }
            fn vectors(rows: Value<B>) -> Self::Vector {
                complex(rows, 1)
            }

            fn into_pair(self) -> Value<B> {
                let (re, im) = self.into_parts();
                Pair::complex(floats(re), floats(im))
            }
            fn from_pair(value: Value<B>) -> Self {
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
        fn indices(index: Indices<$b>) -> Self::Indices {
            integers(index)
        }
        fn host(indices: Self::Indices) -> Result<t4a_tensor::Tensor<i64>> {
            let index = Indices::<$b>(indices.into_primitive()).elements()?.cast(DType::I64)?;
            Ok(index.typed()?.clone())
        }
        fn info(info: &t4a_tensor::Tensor<i32>, like: &Floats<$b>) -> Result<Self::Info> {
            let info = like.indices(AnyTensor::from(info.clone()).cast(DType::I64)?);
            // A single matrix has the status `[1]`.
            let sizes = info.shape();
            Ok(integers(if sizes.is_empty() { info.reshape(&[1]) } else { info }))
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
