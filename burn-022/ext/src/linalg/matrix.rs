//! Implementation of [`Matrix`] for `Tensor<D>` and `Complex<D>`. A scalar per matrix has the shape of the batch,
//! or `[1]` for a single matrix, since Burn has no tensors of rank 0.

use burn_dispatch::Dispatch;
use burn_tensor::{Int, Tensor};
use t4a_linalg::Result;
use t4a_linalg::call::Pair;
use t4a_linalg::user::{Matrix, Ranked, RightHandSide};

use super::Burn;
use super::parts::{self, lower, row};
use crate::complex::Complex;
use crate::operation;
use crate::primitive::{Floats, Indices};
use crate::user::{self, primitive, tensor};

/// Primitives of real matrices, or of complex ones as a pair.
type MatrixPrimitives = Pair<Floats<Dispatch>>;

fn floats<const D: usize>(x: Tensor<D>) -> Floats<Dispatch> {
    Floats(primitive(x))
}

fn real<const D: usize>(value: MatrixPrimitives, drop: usize) -> Tensor<D> {
    tensor(lower(value.re, drop))
}

fn complex<const D: usize>(value: MatrixPrimitives, drop: usize) -> Complex<D> {
    match value.im {
        None => Complex::from_real(tensor(lower(value.re, drop))),
        Some(im) => {
            let pair = Complex::new(tensor(lower(value.re, drop)), tensor(lower(im, drop)));
            pair.unwrap_or_else(|_| unreachable!("the parts come out of one operation"))
        }
    }
}

/// Converts indices to the integer dtype of their device, or keeps 64 bits where the dtype cannot be changed. The
/// route of the factorisation is kept.
fn integers<const D: usize>(index: Indices<Dispatch>) -> Tensor<D, Int> {
    let casts = crate::dispatch::casts_integers(&index.0);
    let route = operation::route(&t4a_diff::Value::Integers(index.clone()));
    let index = Tensor::<D, Int>::from_dispatch(index.0);
    let dtype = index.device().settings().int_dtype;
    let index = if casts { index.cast(dtype) } else { index };
    match route {
        Some(route) => user::routed(index, route),
        None => index,
    }
}

macro_rules! matrix {
    ($($d:literal $vector:literal $number:literal;)*) => {$(
        impl Matrix<Burn> for Tensor<$d> {
            const COMPLEX: bool = false;
            type Vector = Tensor<$vector>;
            type Number = Tensor<$number>;

            fn rows(vectors: Self::Vector) -> MatrixPrimitives {
                Pair::real(row(floats(vectors)))
            }
            fn vectors(rows: MatrixPrimitives) -> Self::Vector {
                real(rows, 1)
            }

            fn into_pair(self) -> MatrixPrimitives {
                Pair::real(floats(self))
            }
            fn from_pair(value: MatrixPrimitives) -> Self {
                real(value, 0)
            }
            fn number(value: MatrixPrimitives) -> Self::Number {
                real(value, 2)
            }
            matrix!(@lower $d $vector $number);
        }

        impl Matrix<Burn> for Complex<$d> {
            const COMPLEX: bool = true;
            type Vector = Complex<$vector>;
            type Number = Complex<$number>;

            fn rows(vectors: Self::Vector) -> MatrixPrimitives {
                let (re, im) = vectors.into_parts();
                Pair::complex(row(floats(re)), row(floats(im)))
            }
            fn vectors(rows: MatrixPrimitives) -> Self::Vector {
                complex(rows, 1)
            }

            fn into_pair(self) -> MatrixPrimitives {
                let (re, im) = self.into_parts();
                Pair::complex(floats(re), floats(im))
            }
            fn from_pair(value: MatrixPrimitives) -> Self {
                complex(value, 0)
            }
            fn number(value: MatrixPrimitives) -> Self::Number {
                complex(value, 2)
            }
            matrix!(@lower $d $vector $number);
        }
    )*};
    (@lower $d:literal $vector:literal $number:literal) => {
        const RANK: usize = $d;
        type Array = Floats<Dispatch>;
        type Single = Tensor<2>;
        type RealVector = Tensor<$vector>;
        type ComplexVector = Complex<$vector>;
        type ComplexMatrix = Complex<$d>;
        type RealNumber = Tensor<$number>;
        type Indices = Tensor<$vector, Int>;
        type Info = Tensor<$number, Int>;

        fn complex_matrix(value: MatrixPrimitives) -> Self::ComplexMatrix {
            complex(value, 0)
        }
        fn real_vector(value: MatrixPrimitives) -> Self::RealVector {
            real(value, 1)
        }
        fn complex_vector(value: MatrixPrimitives) -> Self::ComplexVector {
            complex(value, 1)
        }
        fn real_number(value: MatrixPrimitives) -> Self::RealNumber {
            real(value, 2)
        }
        fn indices(index: Indices<Dispatch>) -> Self::Indices {
            integers(index)
        }
        fn host(indices: Self::Indices) -> Result<t4a_tensor::Tensor<i64>> {
            Ok(parts::host(&Indices::<Dispatch>(indices.into_dispatch()))?)
        }
        fn info(info: &t4a_tensor::Tensor<i32>, like: &Floats<Dispatch>) -> Result<Self::Info> {
            Ok(integers(parts::info(info, like)?))
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

impl<const D: usize> Ranked<Burn> for Tensor<D> {
    type Array = Floats<Dispatch>;
    type Single = Tensor<2>;
    const RANK: usize = D;
    const COMPLEX: bool = false;

    fn into_pair(self) -> MatrixPrimitives {
        Pair::real(floats(self))
    }
    fn from_pair(value: MatrixPrimitives) -> Self {
        real(value, 0)
    }
}

impl<const D: usize> Ranked<Burn> for Complex<D> {
    type Array = Floats<Dispatch>;
    type Single = Tensor<2>;
    const RANK: usize = D;
    const COMPLEX: bool = true;

    fn into_pair(self) -> MatrixPrimitives {
        let (re, im) = self.into_parts();
        Pair::complex(floats(re), floats(im))
    }
    fn from_pair(value: MatrixPrimitives) -> Self {
        complex(value, 0)
    }
}

macro_rules! vectors {
    ($($matrix:literal $vector:literal),*) => {$(
        vectors!(@one Tensor $matrix $vector);
        vectors!(@one Complex $matrix $vector);
    )*};
    (@one $tensor:ident $matrix:literal $vector:literal) => {
        impl RightHandSide<Burn, $tensor<$matrix>> for $tensor<$vector> {
            const VECTOR: bool = true;

            fn into_columns(self) -> MatrixPrimitives {
                <$tensor<$matrix> as Matrix<Burn>>::rows(self).transpose()
            }
            fn from_columns(columns: MatrixPrimitives) -> Self {
                <$tensor<$matrix> as Matrix<Burn>>::vectors(columns.transpose())
            }
        }
    };
}

vectors!(2 1, 3 2, 4 3, 5 4, 6 5, 7 6, 8 7);
