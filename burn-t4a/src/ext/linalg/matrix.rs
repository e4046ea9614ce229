//! Implementation of [`Matrix`] for `Tensor<B, D>` and `Complex<B, D>`. A scalar per matrix has the shape of the
//! batch, or `[1]` for a single matrix, since Burn has no tensors of rank 0.

use burn_backend::get_device_settings;
use burn_tensor::{Int, Tensor};
use t4a_linalg::Result;
use t4a_linalg::call::Pair;
use t4a_linalg::user::{Matrix, Ranked, RightHandSide};

use super::Burn;
use super::parts::{self, lower, row};
use crate::ext::Complex;
use crate::ext::operation::{Operand, Operations};
use crate::ext::primitive::{Floats, Indices};
use crate::ext::user::{routed, tensor};

/// Primitives of real matrices, or of complex ones as a pair.
type MatrixPrimitives<B> = Pair<Floats<B>>;

fn floats<B: Operations, const D: usize>(x: Tensor<B, D>) -> Floats<B> {
    Floats(x.into_primitive().tensor())
}

fn real<B: Operations, const D: usize>(value: MatrixPrimitives<B>, drop: usize) -> Tensor<B, D> {
    tensor(lower(value.re, drop))
}

fn complex<B: Operations, const D: usize>(
    value: MatrixPrimitives<B>,
    drop: usize,
) -> Complex<B, D> {
    match value.im {
        None => Complex::from_real(tensor(lower(value.re, drop))),
        Some(im) => {
            let pair = Complex::new(tensor(lower(value.re, drop)), tensor(lower(im, drop)));
            pair.unwrap_or_else(|_| unreachable!("the parts come out of one operation"))
        }
    }
}

/// Converts indices to the integer dtype of their device; the route of the factorisation is kept.
fn integers<B: Operations, const D: usize>(index: Indices<B>) -> Tensor<B, D, Int> {
    let dtype = get_device_settings::<B>(&B::int_device(&index.0)).int_dtype;
    let index = Operand::<B>::Integers(index);
    let route = B::route(&index);
    let cast = B::int_cast(index.integers().0.clone(), dtype);
    match route {
        Some(route) => routed(Tensor::from_primitive(cast), route),
        None => Tensor::from_primitive(cast),
    }
}

macro_rules! matrix {
    ($($d:literal $vector:literal $number:literal;)*) => {$(
        impl<B: Operations> Matrix<Burn> for Tensor<B, $d> {
            const COMPLEX: bool = false;
            type Vector = Tensor<B, $vector>;
            type Number = Tensor<B, $number>;

            fn rows(vectors: Self::Vector) -> MatrixPrimitives<B> {
                Pair::real(row(floats(vectors)))
            }
            fn vectors(rows: MatrixPrimitives<B>) -> Self::Vector {
                real(rows, 1)
            }

            fn into_pair(self) -> MatrixPrimitives<B> {
                Pair::real(floats(self))
            }
            fn from_pair(value: MatrixPrimitives<B>) -> Self {
                real(value, 0)
            }
            fn number(value: MatrixPrimitives<B>) -> Self::Number {
                real(value, 2)
            }
            matrix!(@lower B $d $vector $number);
        }

        impl<B: Operations> Matrix<Burn> for Complex<B, $d> {
            const COMPLEX: bool = true;
            type Vector = Complex<B, $vector>;
            type Number = Complex<B, $number>;

            fn rows(vectors: Self::Vector) -> MatrixPrimitives<B> {
                let (re, im) = vectors.into_parts();
                Pair::complex(row(floats(re)), row(floats(im)))
            }
            fn vectors(rows: MatrixPrimitives<B>) -> Self::Vector {
                complex(rows, 1)
            }

            fn into_pair(self) -> MatrixPrimitives<B> {
                let (re, im) = self.into_parts();
                Pair::complex(floats(re), floats(im))
            }
            fn from_pair(value: MatrixPrimitives<B>) -> Self {
                complex(value, 0)
            }
            fn number(value: MatrixPrimitives<B>) -> Self::Number {
                complex(value, 2)
            }
            matrix!(@lower B $d $vector $number);
        }
    )*};
    (@lower $b:ident $d:literal $vector:literal $number:literal) => {
        const RANK: usize = $d;
        type Array = Floats<$b>;
        type Single = Tensor<$b, 2>;
        type RealVector = Tensor<$b, $vector>;
        type ComplexVector = Complex<$b, $vector>;
        type ComplexMatrix = Complex<$b, $d>;
        type RealNumber = Tensor<$b, $number>;
        type Indices = Tensor<$b, $vector, Int>;
        type Info = Tensor<$b, $number, Int>;

        fn complex_matrix(value: MatrixPrimitives<$b>) -> Self::ComplexMatrix {
            complex(value, 0)
        }
        fn real_vector(value: MatrixPrimitives<$b>) -> Self::RealVector {
            real(value, 1)
        }
        fn complex_vector(value: MatrixPrimitives<$b>) -> Self::ComplexVector {
            complex(value, 1)
        }
        fn real_number(value: MatrixPrimitives<$b>) -> Self::RealNumber {
            real(value, 2)
        }
        fn indices(index: Indices<$b>) -> Self::Indices {
            integers(index)
        }
        fn host(indices: Self::Indices) -> Result<t4a_tensor::Tensor<i64>> {
            Ok(parts::host(&Indices::<$b>(indices.into_primitive()))?)
        }
        fn info(info: &t4a_tensor::Tensor<i32>, like: &Floats<$b>) -> Result<Self::Info> {
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

impl<B: Operations, const D: usize> Ranked<Burn> for Tensor<B, D> {
    type Array = Floats<B>;
    type Single = Tensor<B, 2>;
    const RANK: usize = D;
    const COMPLEX: bool = false;

    fn into_pair(self) -> MatrixPrimitives<B> {
        Pair::real(floats(self))
    }
    fn from_pair(value: MatrixPrimitives<B>) -> Self {
        real(value, 0)
    }
}

impl<B: Operations, const D: usize> Ranked<Burn> for Complex<B, D> {
    type Array = Floats<B>;
    type Single = Tensor<B, 2>;
    const RANK: usize = D;
    const COMPLEX: bool = true;

    fn into_pair(self) -> MatrixPrimitives<B> {
        let (re, im) = self.into_parts();
        Pair::complex(floats(re), floats(im))
    }
    fn from_pair(value: MatrixPrimitives<B>) -> Self {
        complex(value, 0)
    }
}

macro_rules! vectors {
    ($($matrix:literal $vector:literal),*) => {$(
        vectors!(@one Tensor $matrix $vector);
        vectors!(@one Complex $matrix $vector);
    )*};
    (@one $tensor:ident $matrix:literal $vector:literal) => {
        impl<B: Operations> RightHandSide<Burn, $tensor<B, $matrix>> for $tensor<B, $vector> {
            const VECTOR: bool = true;

            fn into_columns(self) -> MatrixPrimitives<B> {
                <$tensor<B, $matrix> as Matrix<Burn>>::rows(self).transpose()
            }
            fn from_columns(columns: MatrixPrimitives<B>) -> Self {
                <$tensor<B, $matrix> as Matrix<Burn>>::vectors(columns.transpose())
            }
        }
    };
}

vectors!(2 1, 3 2, 4 3, 5 4, 6 5, 7 6, 8 7);
