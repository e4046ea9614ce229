//! Batched matrix products over semirings.

use cubecl::prelude::*;

/// ⊗ and ⊕ of a semiring. A term that is NaN, such as −∞ + ∞, is ignored, because the zero of the semiring absorbs.
#[cube]
pub(crate) trait Ring: 'static + Send + Sync {
    /// `a ⊗ b`.
    fn term<F: Float>(a: F, b: F) -> F;
    /// `sum ⊕ term`.
    fn join<F: Float>(sum: F, term: F) -> F;
    /// Returns true if the term replaces the sum.
    fn wins<F: Float>(sum: F, term: F) -> bool;
}

pub(crate) struct Standard;
#[cube]
impl Ring for Standard {
    fn term<F: Float>(a: F, b: F) -> F {
        a * b
    }
    fn join<F: Float>(sum: F, term: F) -> F {
        sum + term
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

pub(crate) struct MaxPlus;
#[cube]
impl Ring for MaxPlus {
    fn term<F: Float>(a: F, b: F) -> F {
        a + b
    }
    fn join<F: Float>(sum: F, term: F) -> F {
        select(term > sum, term, sum)
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

pub(crate) struct MinPlus;
#[cube]
impl Ring for MinPlus {
    fn term<F: Float>(a: F, b: F) -> F {
        a + b
    }
    fn join<F: Float>(sum: F, term: F) -> F {
        select(term < sum, term, sum)
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term < sum
    }
}

pub(crate) struct MaxMul;
#[cube]
impl Ring for MaxMul {
    fn term<F: Float>(a: F, b: F) -> F {
        a * b
    }
    fn join<F: Float>(sum: F, term: F) -> F {
        select(term > sum, term, sum)
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

pub(crate) struct MaxMin;
#[cube]
impl Ring for MaxMin {
    fn term<F: Float>(a: F, b: F) -> F {
        select(b < a, b, a)
    }
    fn join<F: Float>(sum: F, term: F) -> F {
        select(term > sum, term, sum)
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

/// (log-sum-exp, +): `sum` is the largest term so far, and [`part`] the weight of a term relative to it.
pub(crate) struct LogSumExp;
#[cube]
impl Ring for LogSumExp {
    fn term<F: Float>(a: F, b: F) -> F {
        a + b
    }
    fn join<F: Float>(sum: F, term: F) -> F {
        select(term > sum, term, sum)
    }
    fn wins<F: Float>(sum: F, term: F) -> bool {
        term > sum
    }
}

/// `exp(term − most)` for `most ≥ term`: 1 for equal numbers, including +∞, and 0 for terms of −∞ and NaN, such as
/// −∞ + ∞.
#[cube]
pub(super) fn part<F: Float>(term: F, most: F, zero: F) -> F {
    let ratio = select(term == most, F::new(1.0), (term - most).exp());
    select(term > zero, ratio, F::new(0.0))
}

/// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]`. A cube computes a tile of `bm × bn`, a unit `tm × tn` elements, with
/// `bk` steps at a time in shared memory. Elements are stored as E and computed as F.
///
/// With `track`, `places` receives the first k whose term equals the sum, and `k` if the sum is the zero of the
/// semiring. With `mask`, sums are NaN if `rows` or `columns` contain the index of a first NaN.
///
/// With `shared`, over log-sum-exp, one pass computes the largest term and `Σ exp(t − it)`. With `track` as well,
/// both are written to `parts[β, m, n, 2]`.
#[cube(launch_unchecked)]
pub(crate) fn product_kernel<E: Float, F: Float, S: Ring>(
    a: &Tensor<E>,
    b: &Tensor<E>,
    rows: &Tensor<i32>,
    columns: &Tensor<i32>,
    c: &mut Tensor<E>,
    places: &mut Tensor<i32>,
    parts: &mut Tensor<F>,
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
    #[comptime] shared: bool,
    #[comptime] mask: bool,
    #[comptime] a_along_k: bool,
    #[comptime] b_along_n: bool,
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

    let across = (n + bn - 1) / bn;
    let down = (m + bm - 1) / bm;
    let column0 = (CUBE_POS % across) * bn;
    let row0 = ((CUBE_POS / across) % down) * bm;
    let batch = CUBE_POS / (across * down);
    let unit = UNIT_POS as usize;
    let x = unit % wide;
    let y = unit / wide;
    let zero = zero.get::<F>();

    let mut sa = SharedMemory::<F>::new(comptime!(bm * (bk + 1)));
    let mut sb = SharedMemory::<F>::new(comptime!(bk * bn));
    let mut sums = Array::<F>::new(comptime!(tm * tn));
    let mut at = Array::<u32>::new(comptime!(if track { tm * tn } else { 1 }));
    let mut totals = Array::<F>::new(comptime!(if shared { tm * tn } else { 1 }));
    #[unroll]
    for i in 0..comptime!(tm * tn) {
        sums[i] = zero;
        if comptime!(track) {
            at[i] = k as u32;
        }
        if comptime!(shared) {
            totals[i] = F::new(0.0);
        }
    }

    let mut k0 = 0usize;
    while k0 < k {
        #[unroll]
        for i in 0..a_loads {
            let e = unit + i * units;
            let row = if comptime!(a_along_k) { e / bk } else { e % bm };
            let step = if comptime!(a_along_k) { e % bk } else { e / bm };
            let inside = row0 + row < m && k0 + step < k;
            let from = batch * a_batch + (row0 + row) * a_row + (k0 + step) * a_column;
            let value = F::cast_from(a[select(inside, from, 0)]);
            sa[row * pitch + step] = select(inside, value, zero);
        }
        #[unroll]
        for i in 0..b_loads {
            let e = unit + i * units;
            let step = if comptime!(b_along_n) { e / bn } else { e % bk };
            let column = if comptime!(b_along_n) { e % bn } else { e / bk };
            let inside = k0 + step < k && column0 + column < n;
            let from = batch * b_batch + (k0 + step) * b_row + (column0 + column) * b_column;
            let value = F::cast_from(b[select(inside, from, 0)]);
            sb[step * bn + column] = select(inside, value, zero);
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
                    let term = S::term::<F>(left[i], right);
                    if comptime!(shared) {
                        let higher = S::wins::<F>(sums[slot], term);
                        let most = select(higher, term, sums[slot]);
                        let ratio = part::<F>(select(higher, sums[slot], term), most, zero);
                        let total = totals[slot];
                        totals[slot] = select(higher, total * ratio + F::new(1.0), total + ratio);
                        sums[slot] = most;
                    } else if comptime!(track) {
                        let wins = S::wins::<F>(sums[slot], term);
                        sums[slot] = select(wins, term, sums[slot]);
                        at[slot] = select(wins, (k0 + step) as u32, at[slot]);
                    } else {
                        sums[slot] = S::join::<F>(sums[slot], term);
                    }
                }
            }
        }
        sync_cube();
        k0 += bk;
    }

    #[unroll]
    for i in 0..tm {
        let row = row0 + y + i * high;
        #[unroll]
        for j in 0..tn {
            let column = column0 + x + j * wide;
            if row < m && column < n {
                let slot = comptime!(i * tn + j);
                let to = (batch * m + row) * n + column;
                let mut sum = sums[slot];
                let mut place = 0u32;
                if comptime!(track) {
                    place = at[slot];
                }
                let mut most = sum;
                if comptime!(shared) {
                    let infinite = sum == zero || sum == F::new(0.0) - zero;
                    sum = select(infinite, sum, totals[slot].ln() + sum);
                }
                if comptime!(mask) {
                    let by_row = rows[batch * m + row] as u32;
                    let by_column = columns[batch * n + column] as u32;
                    let first = select(by_column < by_row, by_column, by_row);
                    let none = first >= k as u32;
                    sum = select(none, sum, nan.get::<F>());
                    most = select(none, most, nan.get::<F>());
                    place = select(none, place, first);
                }
                c[to] = E::cast_from(sum);
                if comptime!(track && shared) {
                    parts[2 * to] = most;
                    parts[2 * to + 1] = totals[slot];
                } else if comptime!(track) {
                    places[to] = place as i32;
                }
            }
        }
    }
}
