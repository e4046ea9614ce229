//! Products of elements without a derivative: integers, values with counts, lists of the best values.

use burn_backend::DType;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement};
use t4a_cube::{ElementForm, ElementOperand, element_product, supports};
use t4a_einsum::{EinsumError, FloatSemiring};

use super::{memory, tensor};
use crate::ext::primitive::{ElementParts, Floats, Indices, SemiringArray};

/// The semiring of the kernel.
fn semiring(of: FloatSemiring) -> t4a_cube::Semiring {
    match of {
        FloatSemiring::MaxPlus => t4a_cube::Semiring::MaxPlus,
        FloatSemiring::MinPlus => t4a_cube::Semiring::MinPlus,
        FloatSemiring::MaxMul => t4a_cube::Semiring::MaxMul,
        FloatSemiring::MinMul => t4a_cube::Semiring::MinMul,
        FloatSemiring::MaxMin => t4a_cube::Semiring::MaxMin,
        FloatSemiring::LogSumExp => t4a_cube::Semiring::LogSumExp,
        _ => t4a_cube::Semiring::Standard,
    }
}

/// Kind of the elements, and the tensor of their values.
fn kind<R, F, I, BT>(x: &SemiringArray<CubeBackend<R, F, I, BT>>) -> (ElementForm, &CubeTensor<R>)
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    match &x.parts {
        ElementParts::Integers(x) => (ElementForm::Integers, &x.0),
        ElementParts::Counted(x, _) => (ElementForm::Counted, &x.0),
        ElementParts::Best { values, k, .. } => (ElementForm::Best(*k), &values.0),
    }
}

pub(super) fn has_product<R, F, I, BT>(x: &SemiringArray<CubeBackend<R, F, I, BT>>) -> bool
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    let (kind, values) = kind(x);
    let dtype = values.dtype.into();
    kind.supports(semiring(x.semiring), dtype) && supports(&values.client, dtype)
}

/// The operand of a kernel. Values and counts have a common layout, and lists are contiguous.
fn operand<R, F, I, BT>(x: &SemiringArray<CubeBackend<R, F, I, BT>>) -> ElementOperand
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    let own = |x: &CubeTensor<R>| memory(&into_contiguous(x.clone()));
    match &x.parts {
        ElementParts::Counted(values, Some(counts)) => {
            ElementOperand { values: own(&values.0), counts: Some(own(&counts.0)) }
        }
        ElementParts::Best { values, listed: true, .. } => {
            ElementOperand { values: own(&values.0), counts: None }
        }
        _ => ElementOperand { values: memory(kind(x).1), counts: None },
    }
}

pub(super) fn product<R, F, I, BT>(
    a: &SemiringArray<CubeBackend<R, F, I, BT>>,
    b: &SemiringArray<CubeBackend<R, F, I, BT>>,
) -> Result<SemiringArray<CubeBackend<R, F, I, BT>>, EinsumError>
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    let (kind, beside) = kind(a);
    let operands = [operand(a), operand(b)];
    let c = element_product(&beside.client, kind, semiring(a.semiring), operands)
        .map_err(|error| EinsumError::Backend(error.to_string()))?;
    let wrap = |x: t4a_cube::Operand, dtype: DType| {
        let shape = x.shape.clone();
        tensor(beside, x, &shape, dtype)
    };
    let values = wrap(c.values, beside.dtype);
    let parts = match kind {
        ElementForm::Integers => ElementParts::Integers(Indices(values)),
        ElementForm::Best(k) => ElementParts::Best { values: Floats(values), k, listed: true },
        _ => {
            let counts = c.counts.map(|x| Indices(wrap(x, DType::I32)));
            ElementParts::Counted(Floats(values), counts)
        }
    };
    Ok(SemiringArray { semiring: a.semiring, parts })
}
