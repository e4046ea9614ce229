//! Products of complex numbers, which are pairs of tensors.

use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use t4a_cube::{CubeError, OperandParts, ProductTable, complex_block_products, complex_product};

use super::{empty, launched, memory, table, tensor};
use crate::ext::operation::{BlockProducts, PairParts};

/// The tensors of an operand in one layout: contiguous if `flat`, or if their strides differ.
fn operand<R: CubeRuntime>(parts: PairParts<'_, CubeTensor<R>>, flat: bool) -> OperandParts {
    let differ = matches!(parts, [Some(re), Some(im)] if re.meta.strides() != im.meta.strides());
    let part = |x: &CubeTensor<R>| match flat || differ {
        true => memory(&into_contiguous(x.clone())),
        false => memory(x),
    };
    parts.map(|x| x.map(part))
}

/// A tensor of one of the operands.
fn beside<'a, R: CubeRuntime>(
    operands: &[PairParts<'a, CubeTensor<R>>; 2],
) -> Option<&'a CubeTensor<R>> {
    operands.iter().flatten().flatten().next().copied()
}

/// Unwraps the result of a launch; `None` if the device has too little shared memory for the tile.
fn fitting<T>(result: t4a_cube::Result<T>) -> Option<T> {
    match result {
        Err(CubeError::Tile { .. }) => None,
        result => Some(launched(result)),
    }
}

/// `c[β, m, n] = Σₖ a[β, m, k] b[β, k, n]`: real and imaginary part.
pub(super) fn matmul<R: CubeRuntime>(
    operands: [PairParts<'_, CubeTensor<R>>; 2],
    conj: [bool; 2],
) -> Option<[CubeTensor<R>; 2]> {
    let beside = beside(&operands)?;
    let operands = operands.map(|parts| operand(parts, false));
    let parts = fitting(complex_product(&beside.client, operands, conj, None))?;
    Some(parts.map(|part| {
        let shape = part.shape.clone();
        tensor(beside, part, &shape, beside.dtype)
    }))
}

/// Products of parts of flat arrays: real and imaginary part.
pub(super) fn block_products<R: CubeRuntime>(
    operands: [PairParts<'_, CubeTensor<R>>; 2],
    conj: [bool; 2],
    of: &BlockProducts,
) -> Option<[CubeTensor<R>; 2]> {
    let beside = beside(&operands)?;
    let parts = [empty(beside, of.len), empty(beside, of.len)];
    let table = table(beside, &of.tables, || ProductTable::new(&beside.client, of));
    let operands = operands.map(|parts| operand(parts, true));
    let to = parts.each_ref().map(memory);
    fitting(complex_block_products(&beside.client, operands, conj, &table, to))?;
    Some(parts)
}
