//! Complex tensors from pairs of real ones, and back.

use t4a_algebra::{Field, c32, c64};

use super::AnyTensor;
use crate::dtype::{DType, Element};
use crate::error::{Result, TensorError};
use crate::kernels::arithmetic::{ComplexPart, FromParts, TakePart};
use crate::map::{map, zip};

fn join<C>(re: AnyTensor, im: AnyTensor, conj: bool) -> Result<AnyTensor>
where
    C: Field<Real: Element> + Element,
{
    let (re, im) = (re.into_typed::<C::Real>()?, im.into_typed::<C::Real>()?);
    let kernel = if conj { FromParts::<C>::conjugate() } else { FromParts::new() };
    Ok(zip(kernel, re, im)?.into())
}

fn split<C>(z: AnyTensor) -> Result<[AnyTensor; 2]>
where
    C: Field<Real: Element> + Element,
{
    let (route, z) = (z.route(), z.into_typed::<C>()?);
    let part = |part| -> Result<AnyTensor> {
        Ok(map(TakePart(part), z.clone())?.with_route(route).into())
    };
    Ok([part(ComplexPart::Re)?, part(ComplexPart::Im)?])
}

impl AnyTensor {
    /// `re + i·im` of `f32` or `f64` parts, or `re − i·im` if `conj`.
    ///
    /// # Errors
    /// [`TensorError::DTypeUnsupported`] for other dtypes, [`TensorError::DTypeMismatch`],
    /// [`TensorError::ShapeMismatch`] for shapes that do not broadcast, `OutOfMemory`.
    pub fn from_parts(re: Self, im: Self, conj: bool) -> Result<Self> {
        let op = "complex";
        let (lhs, rhs) = (re.dtype(), im.dtype());
        if lhs != rhs {
            return Err(TensorError::DTypeMismatch { op, lhs, rhs });
        }
        match lhs {
            DType::F32 => join::<c32>(re, im, conj),
            DType::F64 => join::<c64>(re, im, conj),
            dtype => Err(TensorError::DTypeUnsupported { op, dtype, expected: "f32 or f64" }),
        }
    }

    /// Real and imaginary part of a complex tensor, with its route.
    ///
    /// # Errors
    /// [`TensorError::DTypeUnsupported`] for real tensors; `OutOfMemory`.
    pub fn into_parts(self) -> Result<[Self; 2]> {
        match self.dtype() {
            DType::C32 => split::<c32>(self),
            DType::C64 => split::<c64>(self),
            dtype => {
                let (op, expected) = ("complex parts", "a complex dtype");
                Err(TensorError::DTypeUnsupported { op, dtype, expected })
            }
        }
    }
}
