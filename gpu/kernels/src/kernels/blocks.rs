//! Matrix products and copies of parts of flat arrays, described by tables of integers in device memory.

use cubecl::prelude::*;

/// Integers per tile, per matrix of the result, per term and per copy in the tables of both kernels.
pub(crate) const TILE: usize = 3;
pub(crate) const SUM: usize = 7;
pub(crate) const TERM: usize = 7;
pub(crate) const COPY: usize = 6;
/// Integers per axis of a copy.
pub(crate) const AXIS: usize = 3;

/// Integer of a table.
#[cube]
fn word(table: &Tensor<i32>, at: usize) -> usize {
    table[at] as usize
}

/// `C[c] = Σ A[a] B[b]` over the terms of each c. A cube computes a tile of `bm × bn` of one matrix of the result, a
/// unit `tm × tn` elements, with `bk` steps of a term at a time in shared memory. Elements are stored as E and computed
/// as F.
///
/// ```text
/// tile    index of its matrix, first row, first column
/// matrix  offset, rows, columns, strides of rows and columns, first term, one past the last term
/// term    offset and strides of A, offset and strides of B, number of steps
/// ```
#[cube(launch_unchecked)]
pub(crate) fn block_product_kernel<E: Float, F: Float>(
    a: &Tensor<E>,
    b: &Tensor<E>,
    table: &Tensor<i32>,
    c: &mut Tensor<E>,
    tiles: usize,
    sums: usize,
    terms: usize,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] bk: usize,
    #[comptime] tm: usize,
    #[comptime] tn: usize,
    #[comptime] unroll: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    if CUBE_POS >= tiles {
        terminate!();
    }
    let wide = comptime!(bn / tn);
    let high = comptime!(bm / tm);
    let units = comptime!(wide * high);
    let a_loads = comptime!(bm * bk / units);
    let b_loads = comptime!(bk * bn / units);
    // One column more, so that units of a column of the tile use different banks.
    let pitch = comptime!(bk + 1);

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

    let mut sa = SharedMemory::<F>::new(comptime!(bm * (bk + 1)));
    let mut sb = SharedMemory::<F>::new(comptime!(bk * bn));
    let mut totals = Array::<F>::new(comptime!(tm * tn));
    #[unroll]
    for i in 0..comptime!(tm * tn) {
        totals[i] = F::new(0.0);
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
        // Neighbouring units read neighbouring elements.
        let a_along_k = a_column <= a_row;
        let b_along_n = b_column <= b_row;
        let mut k0 = 0usize;
        while k0 < k {
            #[unroll]
            for i in 0..a_loads {
                let e = unit + i * units;
                let row = select(a_along_k, e / bk, e % bm);
                let step = select(a_along_k, e % bk, e / bm);
                let inside = row0 + row < m && k0 + step < k;
                let from = a0 + row * a_row + (k0 + step) * a_column;
                let value = F::cast_from(a[select(inside, from, 0)]);
                sa[row * pitch + step] = select(inside, value, F::new(0.0));
            }
            #[unroll]
            for i in 0..b_loads {
                let e = unit + i * units;
                let step = select(b_along_n, e / bn, e % bk);
                let column = select(b_along_n, e % bn, e / bk);
                let inside = k0 + step < k && column0 + column < n;
                let from = b0 + (k0 + step) * b_row + column * b_column;
                let value = F::cast_from(b[select(inside, from, 0)]);
                sb[step * bn + column] = select(inside, value, F::new(0.0));
            }
            sync_cube();
            #[unroll(unroll)]
            for step in 0..bk {
                let mut left = Array::<F>::new(tm);
                #[unroll]
                for i in 0..tm {
                    left[i] = sa[(y + i * high) * pitch + step];
                }
                #[unroll]
                for j in 0..tn {
                    let right = sb[step * bn + x + j * wide];
                    #[unroll]
                    for i in 0..tm {
                        let slot = comptime!(i * tn + j);
                        totals[slot] = left[i] * right + totals[slot];
                    }
                }
            }
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
        for j in 0..tn {
            let column = column0 + x + j * wide;
            if row < m && column < n {
                c[to + row * c_row + column * c_column] =
                    E::cast_from(totals[comptime!(i * tn + j)]);
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
    // The last copy whose first number is not greater.
    let mut low = 0usize;
    let mut high = copies;
    while high - low > 1 {
        let middle = (low + high) / 2;
        let right = word(table, middle * COPY) <= number;
        low = select(right, middle, low);
        high = select(right, high, middle);
    }
    let copy = low * COPY;
    let mut from = word(table, copy + 1);
    let mut to = word(table, copy + 2);
    let mut rest = number - word(table, copy);
    let rank = word(table, copy + 4);
    let first = axes + word(table, copy + 5) * AXIS;
    let mut axis = rank;
    while axis > 0 {
        axis -= 1;
        let at = first + axis * AXIS;
        let size = word(table, at);
        let index = rest % size;
        rest /= size;
        from += index * word(table, at + 1);
        to += index * word(table, at + 2);
    }
    let value = x[from];
    let negative = table[copy + 3] != 0;
    y[to] = select(negative, E::from_int(0) - value, value);
}
