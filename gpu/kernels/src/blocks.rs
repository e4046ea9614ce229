//! Products and copies of parts of flat arrays: tables and launches.

use cubecl::ir::{ElemType, IntKind};
use cubecl::prelude::*;
use t4a_diff::array::{BlockCopy, BlockProducts, BlockSum, BlockTerm, FlatMatrix};

use crate::error::{CubeError, Result};
use crate::kernels::blocks::{
    AXIS, COPY, ROWS, SIDE, SUM, TERM, TILE, TURN, block_copy_kernel, block_product_kernel,
    block_turn_kernel,
};
use crate::kernels::tile::NumberParts;
use crate::launch::{Operand, arguments, elements, grid, reach};
use crate::product::{OperandParts, Tile, complex_operands, computed, is_software};

const PRODUCTS: &str = "block_products";
const COPIES: &str = "block_copies";

/// Units of a cube of [`block_copies`].
const UNITS: usize = 256;

fn words(x: FlatMatrix) -> [usize; 3] {
    [x.offset, x.strides[0], x.strides[1]]
}

/// One past the last element of a matrix of these sizes.
fn end(x: FlatMatrix, sizes: [usize; 2]) -> Result<usize> {
    if sizes.contains(&0) {
        return Ok(0);
    }
    let FlatMatrix { offset, strides: [row, column] } = x;
    reach(PRODUCTS, &[sizes[0], sizes[1], 2], &[row, column, offset])?;
    Ok(offset + (sizes[0] - 1) * row + (sizes[1] - 1) * column + 1)
}

/// Table of [`block_products`] in device memory.
#[derive(Clone, Debug)]
pub struct ProductTable {
    words: Operand,
    tile: Tile,
    tiles: usize,
    sums: usize,
    terms: usize,
    /// Required lengths of A, B and C.
    lens: [usize; 3],
}

/// A table of integers in device memory, which is not empty.
fn upload<R: Runtime>(
    client: &ComputeClient<R>,
    kernel: &'static str,
    words: &[usize],
) -> Result<Operand> {
    let bytes = words.iter().map(|&word| {
        let word = i32::try_from(word);
        word.map(i32::to_ne_bytes).map_err(|_| CubeError::TooLarge { kernel, elements: usize::MAX })
    });
    let mut bytes: Vec<[u8; 4]> = bytes.collect::<Result<_>>()?;
    bytes.resize(bytes.len().max(1), [0; 4]);
    let handle = client.create_from_slice(bytes.as_flattened());
    let dtype = ElemType::Int(IntKind::I32).into();
    Ok(Operand { handle, shape: vec![bytes.len()], strides: vec![1], dtype })
}

impl ProductTable {
    /// Table of these products.
    ///
    /// # Errors
    /// `TooLarge`; `Sizes` for a matrix outside of the result.
    pub fn new<R: Runtime>(client: &ComputeClient<R>, products: &BlockProducts) -> Result<Self> {
        let BlockProducts { len, sums, .. } = products;
        // The tile of the matrix with the most elements, where most of the work is.
        let large = sums.iter().map(|sum| sum.sizes).max_by_key(|[m, n]| m.saturating_mul(*n));
        let tile = large.map_or(Tile::SMALL, |[m, n]| Tile::of(m, n));
        let (mut tiles, mut of_sums, mut of_terms) = (Vec::new(), Vec::new(), Vec::new());
        let mut lens = [0, 0, *len];
        for (i, BlockSum { to, sizes: [m, n], terms }) in sums.iter().enumerate() {
            let (m, n) = (*m, *n);
            let last = end(*to, [m, n])?;
            if last > *len {
                let required = "matrices inside of the result";
                let given = [vec![last], vec![*len]];
                return Err(CubeError::Sizes { kernel: PRODUCTS, required, given });
            }
            for row in (0..m).step_by(tile.sizes[0]) {
                tiles.extend((0..n).step_by(tile.sizes[1]).flat_map(|column| [i, row, column]));
            }
            let [offset, row, column] = words(*to);
            let first = of_terms.len() / TERM;
            of_sums.extend([offset, m, n, row, column, first, first + terms.len()]);
            for BlockTerm { factors: [a, b], steps } in terms {
                lens[0] = lens[0].max(end(*a, [m, *steps])?);
                lens[1] = lens[1].max(end(*b, [*steps, n])?);
                of_terms.extend(words(*a).into_iter().chain(words(*b)).chain([*steps]));
            }
        }
        let (count, at) = (tiles.len() / TILE, tiles.len());
        let terms = at + of_sums.len();
        debug_assert_eq!(of_sums.len(), sums.len() * SUM);
        let all: Vec<usize> = tiles.into_iter().chain(of_sums).chain(of_terms).collect();
        elements(PRODUCTS, &[all.len()])?;
        let words = upload(client, PRODUCTS, &all)?;
        Ok(Self { words, tile, tiles: count, sums: at, terms, lens })
    }
}

/// Checks that the operands are flat arrays of at least these lengths.
fn contain<const N: usize>(
    kernel: &'static str,
    required: &'static str,
    operands: [&Operand; N],
    lens: &[usize; N],
) -> Result<()> {
    for (x, &len) in operands.into_iter().zip(lens) {
        let is_flat = matches!(&x.shape[..], [n] if *n >= len && (x.strides[..] == [1] || *n <= 1));
        if !is_flat {
            let given = [vec![len], x.shape.clone()];
            return Err(CubeError::Sizes { kernel, required, given });
        }
    }
    Ok(())
}

/// Computes the sums of the table in one launch: matrices of `c`, whose other elements remain.
///
/// `f16` and `bf16` are computed in `f32`, `f32` in full precision.
///
/// # Errors
/// `Sizes` for arrays that are not flat or too short, `DType`, `Tile`.
pub fn block_products<R: Runtime>(
    client: &ComputeClient<R>,
    [a, b]: [Operand; 2],
    table: &ProductTable,
    c: Operand,
) -> Result<Operand> {
    launch_products(client, [&[a], &[b]], [NumberParts::REAL; 2], table, std::slice::from_ref(&c))?;
    Ok(c)
}

/// [`block_products`] of complex numbers, conjugated where `conj` is true: real and imaginary part of `c`.
///
/// # Errors
/// As [`block_products`]; `Sizes` if no operand has both parts.
pub fn complex_block_products<R: Runtime>(
    client: &ComputeClient<R>,
    operands: [OperandParts; 2],
    conj: [bool; 2],
    table: &ProductTable,
    c: [Operand; 2],
) -> Result<[Operand; 2]> {
    let (numbers, [a, b]) = complex_operands(PRODUCTS, operands, conj)?;
    launch_products(client, [&a, &b], numbers, table, &c)?;
    Ok(c)
}

/// Launches the kernel for the parts of the operands and of the result.
fn launch_products<R: Runtime>(
    client: &ComputeClient<R>,
    [a, b]: [&[Operand]; 2],
    numbers: [NumberParts; 2],
    table: &ProductTable,
    c: &[Operand],
) -> Result<()> {
    let ProductTable { words, tile, tiles, sums, terms, lens } = table;
    for c in c {
        let required = "flat arrays that contain the matrices";
        contain(PRODUCTS, required, [&a[0], &b[0], c], lens)?;
    }
    let computed = computed(PRODUCTS, [&a[0], &b[0]])?;
    tile.check(client, NumberParts::parts_of_product(numbers) * computed.size())?;
    if *tiles == 0 {
        return Ok(());
    }
    let ([bm, bn, bk], [tm, tn], dtype) = (tile.sizes, tile.unit, a[0].dtype);
    // SAFETY: the tile was checked; the matrices of the table lie in the arrays.
    unsafe {
        block_product_kernel::launch_unchecked::<R>(
            client,
            grid(*tiles),
            CubeDim::new_1d(tile.units() as u32),
            1,
            arguments(a),
            arguments(b),
            words.clone().arg(),
            arguments(c),
            *tiles,
            *sums,
            *terms,
            bm,
            bn,
            bk,
            tm,
            tn,
            !is_software(client),
            numbers,
            [dtype, computed],
        );
    }
    Ok(())
}

/// Least size of both axes of a copy that is moved in tiles.
const TURNED: usize = 16;

/// Table of [`block_copies`] in device memory: copies, transposed copies, axes.
#[derive(Clone, Debug)]
pub struct CopyTable {
    words: Operand,
    elements: usize,
    copies: usize,
    tiles: usize,
    turns: usize,
    /// Required lengths of x and y.
    lens: [usize; 2],
}

/// Axes p and q along which neighbours in x and in y lie, if they differ and are long.
fn turned(axes: &[[usize; 3]]) -> Option<[usize; 2]> {
    let along = |i: usize| axes.iter().position(|axis| axis[i] == 1 && axis[0] >= TURNED);
    let [p, q] = [along(1)?, along(2)?];
    (p != q).then_some([p, q])
}

impl CopyTable {
    /// Table of these copies, which must not write an element twice.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn new<R: Runtime>(client: &ComputeClient<R>, copies: &[BlockCopy]) -> Result<Self> {
        let (mut of_copies, mut of_turns, mut of_axes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut total, mut tiles, mut lens) = (0, 0, [0; 2]);
        for BlockCopy { offsets, negative, axes } in copies {
            let sizes: Vec<usize> = axes.iter().map(|axis| axis[0]).collect();
            let count = elements(COPIES, &sizes)?;
            if count == 0 {
                continue;
            }
            for (i, len) in lens.iter_mut().enumerate() {
                let sizes: Vec<usize> = sizes.iter().copied().chain([2]).collect();
                let strides = axes.iter().map(|axis| axis[i + 1]).chain([offsets[i]]);
                reach(COPIES, &sizes, &strides.collect::<Vec<_>>())?;
                let last: usize = axes.iter().map(|axis| (axis[0] - 1) * axis[i + 1]).sum();
                *len = (*len).max(offsets[i] + last + 1);
            }
            let first = of_axes.len() / AXIS;
            let head = |number, rank| {
                [number, offsets[0], offsets[1], usize::from(*negative), rank, first]
            };
            if let Some([p, q]) = turned(axes) {
                of_turns.extend(head(tiles, axes.len() - 2));
                of_turns.extend([axes[p][0], axes[p][2], axes[q][0], axes[q][1]]);
                let others = axes.iter().enumerate().filter(|(i, _)| ![p, q].contains(i));
                of_axes.extend(others.flat_map(|(_, axis)| *axis));
                let of_tile = axes[p][0].div_ceil(SIDE) * axes[q][0].div_ceil(SIDE);
                tiles += of_tile * (count / (axes[p][0] * axes[q][0]));
            } else {
                of_copies.extend(head(total, axes.len()));
                of_axes.extend(axes.iter().flatten());
                total = elements(COPIES, &[total + count])?;
            }
        }
        let (copies, turns) = (of_copies.len() / COPY, of_turns.len() / TURN);
        let words: Vec<usize> = of_copies.into_iter().chain(of_turns).chain(of_axes).collect();
        elements(COPIES, &[words.len()])?;
        let words = upload(client, COPIES, &words)?;
        Ok(Self { words, elements: total, copies, tiles, turns, lens })
    }
}

/// Copies the blocks of the table from `x` to `y` in one launch, and another for transposed blocks; other elements of
/// `y` remain.
///
/// # Errors
/// `Sizes` for arrays that are not flat or too short, `DType` for two types of elements.
pub fn block_copies<R: Runtime>(
    client: &ComputeClient<R>,
    x: Operand,
    table: &CopyTable,
    y: Operand,
) -> Result<Operand> {
    let CopyTable { words, elements, copies, tiles, turns, lens } = table;
    contain(COPIES, "flat arrays that contain the blocks", [&x, &y], lens)?;
    if x.dtype != y.dtype {
        let dtype = format!("{} and {}", x.dtype, y.dtype);
        return Err(CubeError::DType { kernel: COPIES, dtype });
    }
    let (dtype, start) = (x.dtype, copies * COPY);
    let axes = start + turns * TURN;
    // SAFETY: the blocks of the table lie in the arrays.
    unsafe {
        if *elements > 0 {
            block_copy_kernel::launch_unchecked::<R>(
                client,
                grid(elements.div_ceil(UNITS)),
                CubeDim::new_1d(UNITS as u32),
                x.clone().arg(),
                words.clone().arg(),
                y.clone().arg(),
                *elements,
                *copies,
                axes,
                UNITS,
                dtype,
            );
        }
        if *tiles > 0 {
            block_turn_kernel::launch_unchecked::<R>(
                client,
                grid(*tiles),
                CubeDim::new_2d(SIDE as u32, ROWS as u32),
                x.arg(),
                words.clone().arg(),
                y.clone().arg(),
                *tiles,
                start,
                *turns,
                axes,
                dtype,
            );
        }
    }
    Ok(y)
}
