//! Batched matrix products over semirings.

use cubecl::prelude::*;

use super::is_nan;
use super::tile::{Four, NumberParts, accumulate, has_nan, load_tile, place, store_tile};

/// ⊗ and ⊕ of a semiring. A term that is NaN, such as −∞ + ∞, is ignored, because the zero of the semiring absorbs.
#[cube]
pub(crate) trait Ring: 'static + Send + Sync {
    /// `sum ⊕ a ⊗ b` of four elements. With `native`, extrema are those of the device, which must ignore NaN; of equal
    /// zeros of different sign either is the result.
    fn add<F: Float>(
        sum: Vector<F, Four>,
        a: Vector<F, Four>,
        b: Vector<F, Four>,
        #[comptime] native: bool,
    ) -> Vector<F, Four>;
    /// `a ⊗ b`.
    fn term<F: Float>(a: F, b: F) -> F;
    /// Returns true if the term replaces the sum.
    fn wins<F: Float>(sum: F, term: F) -> bool;
}

/// The larger one, and `x` if `y` is NaN.
#[cube]
fn larger<F: Float>(
    x: Vector<F, Four>,
    y: Vector<F, Four>,
    #[comptime] native: bool,
) -> Vector<F, Four> {
    if comptime!(native) { max(x, y) } else { select_many(y.greater_than(x), y, x) }
}

/// The smaller one, and `x` if `y` is NaN.
#[cube]
fn smaller<F: Float>(
    x: Vector<F, Four>,
    y: Vector<F, Four>,
    #[comptime] native: bool,
) -> Vector<F, Four> {
    if comptime!(native) { min(x, y) } else { select_many(y.less_than(x), y, x) }
}

pub(crate) struct Standard;
#[cube]
impl Ring for Standard {
    fn add<F: Float>(
        sum: Vector<F, Four>,
        a: Vector<F, Four>,
        b: Vector<F, Four>,
        #[comptime] _native: bool,
    ) -> Vector<F, Four> {
        sum + a * b
    }
    fn term<F: Float>(a: F, b: F) -> F {
        a * b
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

pub(crate) struct MaxPlus;
#[cube]
impl Ring for MaxPlus {
    fn add<F: Float>(
        sum: Vector<F, Four>,
        a: Vector<F, Four>,
        b: Vector<F, Four>,
        #[comptime] native: bool,
    ) -> Vector<F, Four> {
        larger::<F>(sum, a + b, native)
    }
    fn term<F: Float>(a: F, b: F) -> F {
        a + b
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

pub(crate) struct MinPlus;
#[cube]
impl Ring for MinPlus {
    fn add<F: Float>(
        sum: Vector<F, Four>,
        a: Vector<F, Four>,
        b: Vector<F, Four>,
        #[comptime] native: bool,
    ) -> Vector<F, Four> {
        smaller::<F>(sum, a + b, native)
    }
    fn term<F: Float>(a: F, b: F) -> F {
        a + b
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term < sum
    }
}

pub(crate) struct MaxMul;
#[cube]
impl Ring for MaxMul {
    fn add<F: Float>(
        sum: Vector<F, Four>,
        a: Vector<F, Four>,
        b: Vector<F, Four>,
        #[comptime] native: bool,
    ) -> Vector<F, Four> {
        larger::<F>(sum, a * b, native)
    }
    fn term<F: Float>(a: F, b: F) -> F {
        a * b
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

pub(crate) struct MinMul;
#[cube]
impl Ring for MinMul {
    fn add<F: Float>(
        sum: Vector<F, Four>,
        a: Vector<F, Four>,
        b: Vector<F, Four>,
        #[comptime] native: bool,
    ) -> Vector<F, Four> {
        smaller::<F>(sum, a * b, native)
    }
    fn term<F: Float>(a: F, b: F) -> F {
        a * b
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term < sum
    }
}

pub(crate) struct MaxMin;
#[cube]
impl Ring for MaxMin {
    fn add<F: Float>(
        sum: Vector<F, Four>,
        a: Vector<F, Four>,
        b: Vector<F, Four>,
        #[comptime] native: bool,
    ) -> Vector<F, Four> {
        larger::<F>(sum, smaller::<F>(a, b, native), native)
    }
    fn term<F: Float>(a: F, b: F) -> F {
        select(b < a, b, a)
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

/// Records the block in which a line has its first NaN. Units of a cube that write one flag write the same number.
#[cube]
fn record(flags: &mut SharedMemory<i32>, line: usize, block: i32) {
    if flags[line] < 0 {
        flags[line] = block;
    }
}

/// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]`. A cube computes a tile of `bm × bn`, a unit `tm × tn` elements, with two
/// blocks of `bk` steps in shared memory: it loads the next block while it computes. Elements are stored as E
/// and computed as F. Operands whose vectors have four elements are read in whole vectors.
///
/// Complex numbers have two tensors per operand, with the same strides, or one if a part is zero.
///
/// With `mask`, sums over lines with NaN are NaN. This and `track` are for real numbers.
///
/// With `track`, `places` receives the block of the first term that equals the sum, −1 if the sum is the zero of the
/// semiring, and −2 − i if i is the block of the first NaN. [`place_kernel`] replaces them by indices of steps.
#[cube(launch_unchecked)]
pub(crate) fn product_kernel<E: Float, F: Float, NA: Size, NB: Size, S: Ring>(
    a: &Sequence<Tensor<Vector<E, NA>>>,
    b: &Sequence<Tensor<Vector<E, NB>>>,
    c: &mut Sequence<Tensor<E>>,
    places: &mut Tensor<i32>,
    tiles: usize,
    m: usize,
    k: usize,
    n: usize,
    a_batch: usize,
    a_row: usize,
    a_column: usize,
    b_batch: usize,
    b_row: usize,
    b_column: usize,
    zero: InputScalar,
    nan: InputScalar,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] bk: usize,
    #[comptime] tm: usize,
    #[comptime] tn: usize,
    #[comptime] track: bool,
    #[comptime] mask: bool,
    #[comptime] a_along_k: bool,
    #[comptime] b_along_n: bool,
    #[comptime] unroll: bool,
    #[comptime] native: bool,
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
    let a_loads = comptime!(bm * steps / units);
    let b_loads = comptime!(bk * columns / units);
    let a_parts = comptime!(numbers[0].parts);
    let b_parts = comptime!(numbers[1].parts);
    let parts = comptime!(NumberParts::parts_of_product(numbers));
    let a_size = comptime!(a_parts * bm * (steps + 1));
    let b_size = comptime!(b_parts * bk * (columns + 1));

    let across = (n + bn - 1) / bn;
    let down = (m + bm - 1) / bm;
    let column0 = (CUBE_POS % across) * bn;
    let row0 = ((CUBE_POS / across) % down) * bm;
    let batch = CUBE_POS / (across * down);
    let unit = UNIT_POS as usize;
    let x = unit % wide;
    let y = unit / wide;
    let zero = zero.get::<F>();
    let a0 = batch * a_batch + row0 * a_row;
    let b0 = batch * b_batch + column0 * b_column;
    let rows_left = m - row0;
    let columns_left = n - column0;

    let mut sa = SharedMemory::<Vector<F, Four>>::new(comptime!(2 * a_size));
    let mut sb = SharedMemory::<Vector<F, Four>>::new(comptime!(2 * b_size));
    let mut row_flags = SharedMemory::<i32>::new(comptime!(if mask { bm } else { 1 }));
    let mut column_flags = SharedMemory::<i32>::new(comptime!(if mask { bn } else { 1 }));
    let mut next_a = Array::<Vector<F, Four>>::new(comptime!(a_parts * a_loads));
    let mut next_b = Array::<Vector<F, Four>>::new(comptime!(b_parts * b_loads));
    let mut sums = Array::<Vector<F, Four>>::new(comptime!(parts * tm * vectors));
    let mut before = Array::<Vector<F, Four>>::new(comptime!(if track { tm * vectors } else { 1 }));
    let mut at = Array::<i32>::new(comptime!(if track { tm * tn } else { 1 }));
    #[unroll]
    for i in 0..comptime!(parts * tm * vectors) {
        sums[i] = Vector::<F, Four>::new(zero);
    }
    if comptime!(track) {
        #[unroll]
        for i in 0..comptime!(tm * tn) {
            at[i] = -1;
        }
    }
    if comptime!(mask) {
        let mut line = unit;
        while line < bm {
            row_flags[line] = -1;
            line += units;
        }
        let mut line = unit;
        while line < bn {
            column_flags[line] = -1;
            line += units;
        }
        sync_cube();
    }

    load_tile::<E, F, NA>(
        &mut next_a,
        a,
        a0,
        a_row,
        a_column,
        rows_left,
        k,
        zero,
        unit,
        a_along_k,
        bm,
        steps,
        units,
    );
    load_tile::<E, F, NB>(
        &mut next_b,
        b,
        b0,
        b_row,
        b_column,
        k,
        columns_left,
        zero,
        unit,
        b_along_n,
        bk,
        columns,
        units,
    );
    let mut k0 = 0usize;
    while k0 < k {
        let block = i32::cast_from(k0 / bk);
        if comptime!(mask) {
            #[unroll]
            for i in 0..a_loads {
                if has_nan::<F>(next_a[i]) {
                    let (row, _) = place(unit + i * units, a_along_k, bm, steps);
                    record(&mut row_flags, row, block);
                }
            }
            #[unroll]
            for i in 0..b_loads {
                let loaded = next_b[i];
                if has_nan::<F>(loaded) {
                    let (_, vector) = place(unit + i * units, b_along_n, bk, columns);
                    #[unroll]
                    for l in 0..4usize {
                        if is_nan::<F>(loaded[l]) {
                            record(&mut column_flags, 4 * vector + l, block);
                        }
                    }
                }
            }
        }
        // From the remainder the compiler knows the range of indices, and adds constants to addresses in the loads.
        let stage = k0 / bk % 2;
        let a_start = stage * a_size;
        let b_start = stage * b_size;
        store_tile::<F>(&mut sa, a_start, &next_a, unit, a_along_k, bm, steps, units, a_parts);
        store_tile::<F>(&mut sb, b_start, &next_b, unit, b_along_n, bk, columns, units, b_parts);
        // The other block was read before the preceding barrier, so the next pass may write it.
        sync_cube();
        k0 += bk;
        if k0 < k {
            load_tile::<E, F, NA>(
                &mut next_a,
                a,
                a0 + k0 * a_column,
                a_row,
                a_column,
                rows_left,
                k - k0,
                zero,
                unit,
                a_along_k,
                bm,
                steps,
                units,
            );
            load_tile::<E, F, NB>(
                &mut next_b,
                b,
                b0 + k0 * b_row,
                b_row,
                b_column,
                k - k0,
                columns_left,
                zero,
                unit,
                b_along_n,
                bk,
                columns,
                units,
            );
        }
        if comptime!(track) {
            #[unroll]
            for i in 0..comptime!(tm * vectors) {
                before[i] = sums[i];
            }
        }
        accumulate::<F, S>(
            &mut sums, &sa, &sb, a_start, b_start, x, y, wide, high, tm, vectors, steps, unroll,
            native, numbers,
        );
        if comptime!(track) {
            #[unroll]
            for i in 0..comptime!(tm * vectors) {
                let sum = sums[i];
                let earlier = before[i];
                #[unroll]
                for l in 0..4usize {
                    let slot = comptime!(4 * i + l);
                    at[slot] = select(S::wins::<F>(earlier[l], sum[l]), block, at[slot]);
                }
            }
        }
    }
    if comptime!(mask) {
        sync_cube();
    }

    #[unroll]
    for i in 0..tm {
        let row = y + i * high;
        #[unroll]
        for j in 0..vectors {
            #[unroll]
            for l in 0..4usize {
                let column = 4 * (x + j * wide) + l;
                if row < rows_left && column < columns_left {
                    let to = (batch * m + row0 + row) * n + column0 + column;
                    #[unroll]
                    for part in 0..parts {
                        let sum = sums[comptime!((part * tm + i) * vectors + j)];
                        let mut value = sum[l];
                        let mut place = 0i32;
                        if comptime!(track) {
                            place = at[comptime!(4 * (i * vectors + j) + l)];
                        }
                        if comptime!(mask) {
                            let by_row = row_flags[row];
                            let by_column = column_flags[column];
                            let earlier = select(by_column < by_row, by_column, by_row);
                            let later = select(by_column < by_row, by_row, by_column);
                            let first = select(earlier < 0, later, earlier);
                            value = select(first < 0, value, nan.get::<F>());
                            place = select(first < 0, place, -2 - first);
                        }
                        let values = c.index_mut(part);
                        values[to] = E::cast_from(value);
                        if comptime!(track) {
                            places[to] = place;
                        }
                    }
                }
            }
        }
    }
}

/// Replaces the blocks of `places`, which [`product_kernel`] has written, by indices of steps: that of the first term
/// that no other one of the block exceeds, of the first NaN, or k for none. A unit computes one of them.
///
/// With `exact`, sums are not rounded, so the first term that equals the sum ends the search.
#[cube(launch_unchecked)]
pub(crate) fn place_kernel<E: Float, F: Float, S: Ring>(
    a: &Tensor<E>,
    b: &Tensor<E>,
    c: &Tensor<E>,
    places: &mut Tensor<i32>,
    all: usize,
    m: usize,
    k: usize,
    n: usize,
    a_batch: usize,
    a_row: usize,
    a_column: usize,
    b_batch: usize,
    b_row: usize,
    b_column: usize,
    #[comptime] bk: usize,
    #[comptime] exact: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let at = ABSOLUTE_POS;
    if at >= all {
        terminate!();
    }
    let row = at / n % m;
    let from_a = at / (m * n) * a_batch + row * a_row;
    let from_b = at / (m * n) * b_batch + at % n * b_column;
    let block = places[at];
    let with_nan = block < -1;
    let mut found = k;
    if block != -1 {
        let mut step = select(with_nan, -2 - block, block) as usize * bk;
        let end = select(step + bk < k, step + bk, k);
        found = step;
        let mut best = S::term::<F>(
            F::cast_from(a[from_a + step * a_column]),
            F::cast_from(b[from_b + step * b_row]),
        );
        let value = F::cast_from(c[at]);
        while step < end {
            let left = F::cast_from(a[from_a + step * a_column]);
            let right = F::cast_from(b[from_b + step * b_row]);
            let term = S::term::<F>(left, right);
            if with_nan {
                if is_nan::<F>(left) || is_nan::<F>(right) {
                    found = step;
                    step = end;
                }
            } else if comptime!(exact) {
                if term == value {
                    found = step;
                    step = end;
                }
            } else if S::wins::<F>(best, term) || is_nan::<F>(best) {
                best = term;
                found = step;
            }
            step += 1;
        }
    }
    places[at] = found as i32;
}
