//! Matrix products and copies of parts of flat arrays, described by tables of integers in device memory.

use cubecl::prelude::*;

use super::product::Standard;
use super::tile::{Four, NumberParts, accumulate, load_tile, store_tile};

/// Integers per tile, per matrix of the result, per term and per copy in the tables of both kernels.
pub(crate) const TILE: usize = 3;
pub(crate) const SUM: usize = 7;
pub(crate) const TERM: usize = 7;
pub(crate) const COPY: usize = 6;
/// Integers per axis of a copy.
pub(crate) const AXIS: usize = 3;
/// Integers per transposed copy.
pub(crate) const TURN: usize = 10;
/// Rows and columns of a tile of a transposed copy, and rows that its units move at a time.
pub(crate) const SIDE: usize = 32;
pub(crate) const ROWS: usize = 8;

/// Integer of a table.
#[cube]
fn word(table: &Tensor<i32>, at: usize) -> usize {
    table[at] as usize
}

/// `C[c] = Σ A[a] B[b]` over the terms of each c. A cube computes a tile of `bm × bn` of one matrix of the result, a
/// unit `tm × tn` elements, with `bk` steps of a term at a time in shared memory. Elements are stored as E and computed
/// as F; complex numbers have two tensors, or one if a part is zero.
///
/// ```text
/// tile    index of its matrix, first row, first column
/// matrix  offset, rows, columns, strides of rows and columns, first term, one past the last term
/// term    offset and strides of A, offset and strides of B, number of steps
/// ```
#[cube(launch_unchecked)]
pub(crate) fn block_product_kernel<E: Float, F: Float, N: Size>(
    a: &Sequence<Tensor<Vector<E, N>>>,
    b: &Sequence<Tensor<Vector<E, N>>>,
    table: &Tensor<i32>,
    c: &mut Sequence<Tensor<E>>,
    tiles: usize,
    sums: usize,
    terms: usize,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] bk: usize,
    #[comptime] tm: usize,
    #[comptime] tn: usize,
    #[comptime] unroll: bool,
    #[comptime] numbers: [NumberParts; 2],
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    if CUBE_POS >= tiles {
        terminate!();
    }
    let wide = comptime!(bn / tn);
    let high = comptime!(bm / tm);
    let units = comptime!(wide * high);
    let steps = comptime!(bk / 4);
    let columns = comptime!(bn / 4);
    let vectors = comptime!(tn / 4);

    let tile = CUBE_POS * TILE;
    let sum = sums + word(table, tile) * SUM;
    let row0 = word(table, tile + 1);
    let column0 = word(table, tile + 2);
    let m = word(table, sum + 1);
    let n = word(table, sum + 2);
    let last = word(table, sum + 6);
    let unit = UNIT_POS as usize;
    let x = unit % wide;
    let y = unit / wide;

    let zero = F::new(0.0);
    let a_parts = comptime!(numbers[0].parts);
    let b_parts = comptime!(numbers[1].parts);
    let parts = comptime!(NumberParts::parts_of_product(numbers));
    let mut sa = SharedMemory::<Vector<F, Four>>::new(comptime!(a_parts * bm * (steps + 1)));
    let mut sb = SharedMemory::<Vector<F, Four>>::new(comptime!(b_parts * bk * (columns + 1)));
    let mut next_a = Array::<Vector<F, Four>>::new(comptime!(a_parts * bm * steps / units));
    let mut next_b = Array::<Vector<F, Four>>::new(comptime!(b_parts * bk * columns / units));
    let mut totals = Array::<Vector<F, Four>>::new(comptime!(parts * tm * vectors));
    #[unroll]
    for i in 0..comptime!(parts * tm * vectors) {
        totals[i] = Vector::<F, Four>::new(zero);
    }

    let mut term = word(table, sum + 5);
    while term < last {
        let at = terms + term * TERM;
        let a_row = word(table, at + 1);
        let a_column = word(table, at + 2);
        let b_row = word(table, at + 4);
        let b_column = word(table, at + 5);
        let k = word(table, at + 6);
        let a0 = word(table, at) + row0 * a_row;
        let b0 = word(table, at + 3) + column0 * b_column;
        let a_along_k = a_column <= a_row;
        let b_along_n = b_column <= b_row;
        let mut k0 = 0usize;
        while k0 < k {
            load_tile::<E, F, N>(
                &mut next_a,
                a,
                a0 + k0 * a_column,
                a_row,
                a_column,
                m - row0,
                k - k0,
                zero,
                unit,
                a_along_k,
                bm,
                steps,
                units,
            );
            load_tile::<E, F, N>(
                &mut next_b,
                b,
                b0 + k0 * b_row,
                b_row,
                b_column,
                k - k0,
                n - column0,
                zero,
                unit,
                b_along_n,
                bk,
                columns,
                units,
            );
            store_tile::<F>(&mut sa, 0, &next_a, unit, a_along_k, bm, steps, units, a_parts);
            store_tile::<F>(&mut sb, 0, &next_b, unit, b_along_n, bk, columns, units, b_parts);
            sync_cube();
            accumulate::<F, Standard>(
                &mut totals,
                &sa,
                &sb,
                0,
                0,
                x,
                y,
                wide,
                high,
                tm,
                vectors,
                steps,
                unroll,
                false,
                numbers,
            );
            sync_cube();
            k0 += bk;
        }
        term += 1;
    }

    let to = word(table, sum);
    let c_row = word(table, sum + 3);
    let c_column = word(table, sum + 4);
    #[unroll]
    for i in 0..tm {
        let row = row0 + y + i * high;
        #[unroll]
        for j in 0..vectors {
            #[unroll]
            for l in 0..4usize {
                let column = column0 + 4 * (x + j * wide) + l;
                if row < m && column < n {
                    #[unroll]
                    for part in 0..parts {
                        let total = totals[comptime!((part * tm + i) * vectors + j)];
                        let values = c.index_mut(part);
                        values[to + row * c_row + column * c_column] = E::cast_from(total[l]);
                    }
                }
            }
        }
    }
}

/// `y[to + Σ i s′] = ± x[from + Σ i s]` over the copies. A unit moves the element of its number, counted over all copies.
///
/// ```text
/// copy  first number, offset in x, offset in y, 1 if it negates, number of axes, index of its first axis
/// axis  size, stride in x, stride in y; the last one is the fastest
/// ```
#[cube(launch_unchecked)]
pub(crate) fn block_copy_kernel<E: Numeric>(
    x: &Tensor<E>,
    table: &Tensor<i32>,
    y: &mut Tensor<E>,
    elements: usize,
    copies: usize,
    axes: usize,
    #[comptime] units: usize,
    #[define(E)] _dtype: StorageType,
) {
    let number = CUBE_POS * units + UNIT_POS as usize;
    if number >= elements {
        terminate!();
    }
    let copy = copy_of(table, 0, number, copies, COPY);
    let first = axes + word(table, copy + 5) * AXIS;
    let (from, to) = offsets(table, copy, number - word(table, copy), first);
    let value = x[from];
    let negative = table[copy + 3] != 0;
    y[to] = select(negative, E::from_int(0) - value, value);
}

/// Start of the last copy whose first number is not greater than `number`, among copies of `words` integers each from
/// `start` on.
#[cube]
fn copy_of(
    table: &Tensor<i32>,
    start: usize,
    number: usize,
    copies: usize,
    #[comptime] words: usize,
) -> usize {
    let mut low = 0usize;
    let mut high = copies;
    while high - low > 1 {
        let middle = (low + high) / 2;
        let right = word(table, start + middle * words) <= number;
        low = select(right, middle, low);
        high = select(right, high, middle);
    }
    start + low * words
}

/// Indices in x and y of element `number` along the axes of a copy, the first of which starts at `first`.
#[cube]
fn offsets(table: &Tensor<i32>, copy: usize, number: usize, first: usize) -> (usize, usize) {
    let mut from = word(table, copy + 1);
    let mut to = word(table, copy + 2);
    let mut rest = number;
    let mut axis = word(table, copy + 4);
    while axis > 0 {
        axis -= 1;
        let at = first + axis * AXIS;
        let size = word(table, at);
        let index = rest % size;
        rest /= size;
        from += index * word(table, at + 1);
        to += index * word(table, at + 2);
    }
    (from, to)
}

/// The same for copies in which neighbours in x and neighbours in y lie along different axes, p and q. A cube moves a
/// tile of `SIDE × SIDE` elements through shared memory, so that both are accessed along neighbours.
///
/// ```text
/// copy  first tile, offset in x, offset in y, 1 if it negates, number of other axes, index of the first of them,
///       size of p, stride of p in y, size of q, stride of q in x
/// ```
#[cube(launch_unchecked)]
pub(crate) fn block_turn_kernel<E: Numeric>(
    x: &Tensor<E>,
    table: &Tensor<i32>,
    y: &mut Tensor<E>,
    tiles: usize,
    start: usize,
    copies: usize,
    axes: usize,
    #[define(E)] _dtype: StorageType,
) {
    if CUBE_POS >= tiles {
        terminate!();
    }
    let copy = copy_of(table, start, CUBE_POS, copies, TURN);
    let p_size = word(table, copy + 6);
    let p_stride = word(table, copy + 7);
    let q_size = word(table, copy + 8);
    let q_stride = word(table, copy + 9);
    let p_tiles = (p_size + SIDE - 1) / SIDE;
    let q_tiles = (q_size + SIDE - 1) / SIDE;
    let number = CUBE_POS - word(table, copy);
    let p0 = number % p_tiles * SIDE;
    let q0 = number / p_tiles % q_tiles * SIDE;
    let first = axes + word(table, copy + 5) * AXIS;
    let (from, to) = offsets(table, copy, number / (p_tiles * q_tiles), first);
    let negative = table[copy + 3] != 0;
    let across = UNIT_POS_X as usize;
    let down = UNIT_POS_Y as usize;
    // One column more, so that units of a column use different banks.
    let mut tile = SharedMemory::<E>::new(comptime!(SIDE * (SIDE + 1)));
    #[unroll]
    for i in 0..comptime!(SIDE / ROWS) {
        let row = down + i * ROWS;
        if p0 + across < p_size && q0 + row < q_size {
            let value = x[from + p0 + across + (q0 + row) * q_stride];
            tile[row * (SIDE + 1) + across] = select(negative, E::from_int(0) - value, value);
        }
    }
    sync_cube();
    #[unroll]
    for i in 0..comptime!(SIDE / ROWS) {
        let row = down + i * ROWS;
        if q0 + across < q_size && p0 + row < p_size {
            y[to + q0 + across + (p0 + row) * p_stride] = tile[across * (SIDE + 1) + row];
        }
    }
}
