//! Loads and steps of tiles of matrix products. Shared memory holds vectors of four elements: of consecutive steps for
//! the left operand, of consecutive columns for the right one.
//!
//! Complex numbers are real and imaginary parts in two tensors. A tile then has two parts, one after the other, in
//! shared memory, in the registers of loads, and in those of sums.

use cubecl::prelude::*;

use super::is_nan;
use super::product::Ring;

/// Elements per vector in shared memory.
pub(crate) type Four = Const<4>;

/// Parts of the numbers of an operand, real parts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberParts {
    /// Index of the first part: 1 if the real parts are zero.
    pub(crate) first: usize,
    /// Number of parts.
    pub(crate) parts: usize,
    /// True if the numbers are conjugated.
    pub(crate) conj: bool,
}

impl NumberParts {
    /// Real numbers.
    pub(crate) const REAL: Self = Self { first: 0, parts: 1, conj: false };

    /// Number of parts of a product.
    pub(crate) fn parts_of_product([a, b]: [Self; 2]) -> usize {
        a.parts.max(b.parts)
    }

    /// Part of a product to which the product of part `p` of a and part `q` of b belongs.
    fn target([a, b]: [Self; 2], p: usize, q: usize) -> usize {
        (a.first + p) ^ (b.first + q)
    }

    /// True if the product of these parts is subtracted: i² = −1, and a conjugate has −i.
    fn subtracts([a, b]: [Self; 2], p: usize, q: usize) -> bool {
        let (p, q) = (a.first + p == 1, b.first + q == 1);
        (p && q) ^ (p && a.conj) ^ (q && b.conj)
    }
}

/// Elements `from + l * stride` for `l < left`, and `zero` for others.
#[cube]
pub(super) fn load<E: Numeric, F: Float, N: Size>(
    x: &Tensor<Vector<E, N>>,
    from: usize,
    stride: usize,
    left: usize,
    zero: F,
) -> Vector<F, Four> {
    let mut loaded = Vector::<F, Four>::new(zero);
    let width = N::value();
    if comptime!(width == 4) {
        // Consecutive elements, of which all or none are inside.
        if left > 0 {
            loaded = Vector::<F, Four>::cast_from(x[from / 4]);
        }
    } else {
        #[unroll]
        for l in 0..4 {
            let inside = l < left;
            let element = x[select(inside, from + l * stride, 0)];
            loaded[l] = select(inside, F::cast_from(element[0]), zero);
        }
    }
    loaded
}

/// `n − at`, and 0 if `at` is beyond n or `inside` is false.
#[cube]
pub(super) fn left(at: usize, n: usize, inside: bool) -> usize {
    select(inside && at < n, n - at, 0)
}

/// Returns true if an element is NaN.
#[cube]
pub(super) fn has_nan<F: Float>(x: Vector<F, Four>) -> bool {
    is_nan::<F>(x[0]) || is_nan::<F>(x[1]) || is_nan::<F>(x[2]) || is_nan::<F>(x[3])
}

/// Row and vector of element `e` of a tile. Neighbouring units read neighbouring elements: of a row if it is stored
/// `along` its columns.
#[cube]
pub(super) fn place(
    e: usize,
    along: bool,
    #[comptime] rows: usize,
    #[comptime] vectors: usize,
) -> (usize, usize) {
    (select(along, e / vectors, e % rows), select(along, e % vectors, e / rows))
}

/// Reads a unit's share of a tile of each part, whose first element is `x[from]` and which has `m` rows and `n` columns
/// inside.
#[cube]
pub(super) fn load_tile<E: Numeric, F: Float, N: Size>(
    next: &mut Array<Vector<F, Four>>,
    x: &Sequence<Tensor<Vector<E, N>>>,
    from: usize,
    row_stride: usize,
    column_stride: usize,
    m: usize,
    n: usize,
    zero: F,
    unit: usize,
    along: bool,
    #[comptime] rows: usize,
    #[comptime] vectors: usize,
    #[comptime] units: usize,
) {
    let loads = comptime!(rows * vectors / units);
    let parts = comptime!(x.len());
    #[unroll]
    for i in 0..loads {
        let (row, vector) = place(unit + i * units, along, rows, vectors);
        let first = from + row * row_stride + 4 * vector * column_stride;
        let inside = left(4 * vector, n, row < m);
        #[unroll]
        for part in 0..parts {
            let slot = comptime!(part * loads + i);
            next[slot] = load::<E, F, N>(x.index(part), first, column_stride, inside, zero);
        }
    }
}

/// Writes a unit's share of a tile of each part to shared memory from index `start`. Rows have `vectors` vectors and one
/// more, so that neighbouring rows use different banks.
#[cube]
pub(super) fn store_tile<F: Float>(
    tile: &mut SharedMemory<Vector<F, Four>>,
    start: usize,
    next: &Array<Vector<F, Four>>,
    unit: usize,
    along: bool,
    #[comptime] rows: usize,
    #[comptime] vectors: usize,
    #[comptime] units: usize,
    #[comptime] parts: usize,
) {
    let loads = comptime!(rows * vectors / units);
    #[unroll]
    for i in 0..loads {
        let (row, vector) = place(unit + i * units, along, rows, vectors);
        let to = start + row * comptime!(vectors + 1) + vector;
        #[unroll]
        for part in 0..parts {
            let slot = comptime!(part * loads + i);
            tile[to + comptime!(part * rows * (vectors + 1))] = next[slot];
        }
    }
}

/// Four times x, or −x.
#[cube]
fn filled<F: Float>(x: F, #[comptime] negative: bool) -> Vector<F, Four> {
    if comptime!(negative) { Vector::<F, Four>::new(-x) } else { Vector::<F, Four>::new(x) }
}

/// Adds the products of the tiles in shared memory from indices `a_start` and `b_start` to the sums of a unit: rows
/// `y + i * high`, vectors of columns `x + j * wide`, with `sums[(part * rows + i) * vectors + j]`. Rows of the left tile
/// are those of the product, with `steps` vectors; rows of the right tile are steps. [`store_tile`] has written both.
#[cube]
pub(super) fn accumulate<F: Float, S: Ring>(
    sums: &mut Array<Vector<F, Four>>,
    sa: &SharedMemory<Vector<F, Four>>,
    sb: &SharedMemory<Vector<F, Four>>,
    a_start: usize,
    b_start: usize,
    x: usize,
    y: usize,
    #[comptime] wide: usize,
    #[comptime] high: usize,
    #[comptime] rows: usize,
    #[comptime] vectors: usize,
    #[comptime] steps: usize,
    #[comptime] unroll: bool,
    #[comptime] native: bool,
    #[comptime] numbers: [NumberParts; 2],
) {
    let pitch = comptime!(steps + 1);
    let width = comptime!(wide * vectors + 1);
    let a_parts = comptime!(numbers[0].parts);
    let b_parts = comptime!(numbers[1].parts);
    let line0 = a_start + y * pitch;
    let column0 = b_start + x;
    #[unroll(unroll)]
    for step in 0..steps {
        let mut lines = Array::<Vector<F, Four>>::new(comptime!(a_parts * rows));
        #[unroll]
        for i in 0..comptime!(a_parts * rows) {
            lines[i] = sa[line0 + comptime!(i * high * pitch) + step];
        }
        #[unroll]
        for l in 0..4usize {
            #[unroll]
            for j in 0..vectors {
                #[unroll]
                for q in 0..b_parts {
                    let part0 = comptime!(q * 4 * steps * width + j * wide);
                    let right = sb[column0 + (4 * step + l) * width + part0];
                    #[unroll]
                    for i in 0..comptime!(a_parts * rows) {
                        let p = comptime!(i / rows);
                        let part = comptime!(NumberParts::target(numbers, p, q));
                        let slot = comptime!((part * rows + i % rows) * vectors + j);
                        let line = lines[i];
                        let negative = comptime!(NumberParts::subtracts(numbers, p, q));
                        let left = filled::<F>(line[l], negative);
                        sums[slot] = S::add::<F>(sums[slot], left, right, native);
                    }
                }
            }
        }
    }
}
