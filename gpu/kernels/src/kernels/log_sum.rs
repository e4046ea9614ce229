//! Log-sum-exp products of batches of matrices, and their cotangents.

use cubecl::prelude::*;

use super::is_nan;

/// `exp(term − most)` for `most ≥ term`: 1 for equal numbers, including +∞, and 0 for terms of −∞ and NaN, such as
/// −∞ + ∞.
#[cube]
pub(super) fn part<F: Float>(term: F, most: F, zero: F) -> F {
    let ratio = select(term == most, F::new(1.0), (term - most).exp());
    select(term > zero, ratio, F::new(0.0))
}

/// The largest element of each lane, NaN if it contains NaN, and `exp(x − it)` of its elements, 0 if it is not finite.
/// Writes 0 to `any`. Each lane has `width` units, each cube `lanes` lanes.
#[cube(launch_unchecked)]
pub(crate) fn shares_kernel<E: Float, F: Float>(
    x: &Tensor<E>,
    most: &mut Tensor<F>,
    shares: &mut Tensor<F>,
    any: &mut Tensor<u32>,
    all: usize,
    inner: usize,
    n: usize,
    outer_stride: usize,
    inner_stride: usize,
    stride: usize,
    shares_inner: usize,
    shares_stride: usize,
    low: InputScalar,
    #[comptime] lanes: usize,
    #[comptime] width: usize,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    if ABSOLUTE_POS == 0 {
        any[0] = 0;
    }
    let lane = CUBE_POS * lanes + UNIT_POS_X as usize;
    let own = select(lane < all, lane, 0);
    let base = (own / inner) * outer_stride + (own % inner) * inner_stride;
    let to = (own / inner) * inner * n + (own % inner) * shares_inner;
    let low = low.get::<F>();
    let mut best = low;
    let mut t = UNIT_POS_Y as usize;
    while t < n {
        let y = F::cast_from(x[base + t * stride]);
        best = select(y > best || is_nan::<F>(y), y, best);
        t += width;
    }
    let mut bests = SharedMemory::<F>::new(comptime!(lanes * width));
    let slot = UNIT_POS_X as usize + UNIT_POS_Y as usize * lanes;
    bests[slot] = best;
    sync_cube();
    let mut reach = comptime!(width / 2).runtime();
    while reach > 0 {
        if (UNIT_POS_Y as usize) < reach {
            let y = bests[slot + reach * lanes];
            let x = bests[slot];
            bests[slot] = select(y > x || is_nan::<F>(y), y, x);
        }
        sync_cube();
        reach /= 2;
    }
    if lane < all {
        best = bests[UNIT_POS_X as usize];
        let high = F::new(0.0) - low;
        let mut t = UNIT_POS_Y as usize;
        while t < n {
            let y = F::cast_from(x[base + t * stride]);
            let share = select(best > low && best < high, (y - best).exp(), F::new(0.0));
            shares[to + t * shares_stride] = share;
            t += width;
        }
        if UNIT_POS_Y == 0 {
            most[lane] = best;
        }
    }
}

/// Returns true if the maxima of a row and a column show that all terms are −∞.
#[cube]
fn is_none<F: Float>(row: F, column: F, low: F) -> bool {
    (row == low && !is_nan::<F>(column)) || (column == low && !is_nan::<F>(row))
}

/// `ln s + α + β` for each sum s of products of shares of a row and a column with maxima α and β. Sums below `least`,
/// which may have lost terms, as those of lines with +∞ or NaN, become NaN, for [`log_sum_kernel`], and `any` becomes 1.
#[cube(launch_unchecked)]
pub(crate) fn logarithms_kernel<E: Float, F: Float>(
    sums: &Tensor<F>,
    row_most: &Tensor<F>,
    column_most: &Tensor<F>,
    c: &mut Tensor<E>,
    any: &mut Tensor<u32>,
    all: usize,
    m: usize,
    n: usize,
    least: InputScalar,
    low: InputScalar,
    nan: InputScalar,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let at = ABSOLUTE_POS;
    if at >= all {
        terminate!();
    }
    let low = low.get::<F>();
    let row = row_most[at / n];
    let column = column_most[at / (m * n) * n + at % n];
    let sum = sums[at];
    let none = is_none::<F>(row, column, low);
    let whole = sum >= least.get::<F>();
    let value = select(whole, row + column + sum.ln(), nan.get::<F>());
    c[at] = E::cast_from(select(none, low, value));
    if !none && !whole {
        any[0] = 1;
    }
}

/// `q = g / s` for each sum s of products of shares, with c = 0. Where [`logarithms_kernel`] writes NaN, and for
/// quotients that are not finite, q is 0 and c is NaN, for [`log_sum_kernel`], and `any` becomes 1.
#[cube(launch_unchecked)]
pub(crate) fn quotients_kernel<E: Float, F: Float>(
    sums: &Tensor<F>,
    row_most: &Tensor<F>,
    column_most: &Tensor<F>,
    g: &Tensor<E>,
    q: &mut Tensor<F>,
    c: &mut Tensor<E>,
    parts: &mut Tensor<F>,
    any: &mut Tensor<u32>,
    all: usize,
    m: usize,
    n: usize,
    g_batch: usize,
    g_row: usize,
    g_column: usize,
    least: InputScalar,
    low: InputScalar,
    nan: InputScalar,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let at = ABSOLUTE_POS;
    if at >= all {
        terminate!();
    }
    let low = low.get::<F>();
    let (line, column) = (at / n, at % n);
    let batch = line / m;
    let from = batch * g_batch + line % m * g_row + column * g_column;
    let none = is_none::<F>(row_most[line], column_most[batch * n + column], low);
    let sum = sums[at];
    let quotient = F::cast_from(g[from]) / sum;
    let finite = quotient < F::new(1e30) && quotient > F::new(-1e30);
    let whole = finite && sum >= least.get::<F>();
    q[at] = select(whole && !none, quotient, F::new(0.0));
    c[at] = E::cast_from(select(whole || none, F::new(0.0), nan.get::<F>()));
    // Relative to +∞ all weights are 0.
    parts[2 * at] = F::new(0.0) - low;
    parts[2 * at + 1] = F::new(1.0);
    if !none && !whole {
        any[0] = 1;
    }
}

/// `out = x ⊙ y`.
#[cube(launch_unchecked)]
pub(crate) fn scaled_kernel<E: Float, F: Float>(
    x: &Tensor<F>,
    y: &Tensor<F>,
    out: &mut Tensor<E>,
    all: usize,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let at = ABSOLUTE_POS;
    if at < all {
        out[at] = E::cast_from(x[at] * y[at]);
    }
}

/// Replaces NaN in `c[β, m, n]` by the log-sum-exp product, relative to the largest term of each sum, unless `any` is 0.
/// A cube computes a tile of `side × side` elements, a unit `own × own` of them, if there is a NaN among them. With
/// `details`, writes the largest term and the sum relative to it.
#[cube(launch_unchecked)]
pub(crate) fn log_sum_kernel<E: Float, F: Float>(
    a: &Tensor<E>,
    b: &Tensor<E>,
    c: &mut Tensor<E>,
    parts: &mut Tensor<F>,
    any: &Tensor<u32>,
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
    low: InputScalar,
    nan: InputScalar,
    #[comptime] side: usize,
    #[comptime] own: usize,
    #[comptime] steps: usize,
    #[comptime] details: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    if CUBE_POS >= tiles || any[0] == 0 {
        terminate!();
    }
    let wide = comptime!(side / own);
    let units = comptime!(wide * wide);
    let loads = comptime!(side * steps / units);
    let pitch = comptime!(steps + 1);
    let across = (n + side - 1) / side;
    let down = (m + side - 1) / side;
    let batch = CUBE_POS / (across * down);
    let row0 = (CUBE_POS / across) % down * side;
    let column0 = CUBE_POS % across * side;
    let unit = UNIT_POS as usize;
    let left = unit % wide;
    let top = unit / wide;
    let low = low.get::<F>();

    let mut wanted = Array::<bool>::new(comptime!(own * own));
    let mut here = SharedMemory::<u32>::new(1usize);
    if unit == 0 {
        here[0] = 0;
    }
    sync_cube();
    #[unroll]
    for i in 0..own {
        let row = row0 + top + i * wide;
        #[unroll]
        for j in 0..own {
            let column = column0 + left + j * wide;
            let slot = comptime!(i * own + j);
            let inside = row < m && column < n;
            let at = select(inside, (batch * m + row) * n + column, 0);
            wanted[slot] = inside && is_nan::<E>(c[at]);
            if wanted[slot] {
                here[0] = 1;
            }
        }
    }
    sync_cube();
    if here[0] == 0 {
        terminate!();
    }

    let mut sa = SharedMemory::<F>::new(comptime!(side * (steps + 1)));
    let mut sb = SharedMemory::<F>::new(comptime!(side * (steps + 1)));
    let mut most = Array::<F>::new(comptime!(own * own));
    let mut totals = Array::<F>::new(comptime!(own * own));
    let mut defined = Array::<bool>::new(comptime!(own * own));
    #[unroll]
    for i in 0..comptime!(own * own) {
        most[i] = low;
        totals[i] = F::new(0.0);
        defined[i] = true.runtime();
    }
    let mut k0 = 0usize;
    while k0 < k {
        #[unroll]
        for i in 0..loads {
            let e = unit + i * units;
            let line = e / steps;
            let step = e % steps;
            let inside = row0 + line < m && k0 + step < k;
            let from = batch * a_batch + (row0 + line) * a_row + (k0 + step) * a_column;
            let value = F::cast_from(a[select(inside, from, 0)]);
            sa[line * pitch + step] = select(inside, value, low);
            let inside = column0 + line < n && k0 + step < k;
            let from = batch * b_batch + (k0 + step) * b_row + (column0 + line) * b_column;
            let value = F::cast_from(b[select(inside, from, 0)]);
            sb[line * pitch + step] = select(inside, value, low);
        }
        sync_cube();
        for step in 0..steps {
            #[unroll]
            for i in 0..own {
                let x = sa[(top + i * wide) * pitch + step];
                #[unroll]
                for j in 0..own {
                    let y = sb[(left + j * wide) * pitch + step];
                    let slot = comptime!(i * own + j);
                    let term = x + y;
                    let high = most[slot];
                    let higher = term > high;
                    let larger = select(higher, term, high);
                    let ratio = part::<F>(select(higher, high, term), larger, low);
                    let total = totals[slot];
                    totals[slot] = select(higher, total * ratio + F::new(1.0), total + ratio);
                    most[slot] = larger;
                    defined[slot] = defined[slot] && !is_nan::<F>(x) && !is_nan::<F>(y);
                }
            }
        }
        sync_cube();
        k0 += steps;
    }

    #[unroll]
    for i in 0..own {
        let row = row0 + top + i * wide;
        #[unroll]
        for j in 0..own {
            let slot = comptime!(i * own + j);
            if wanted[slot] {
                let to = (batch * m + row) * n + column0 + left + j * wide;
                let high = select(defined[slot], most[slot], nan.get::<F>());
                let infinite = high == low || high == F::new(0.0) - low;
                c[to] = E::cast_from(select(infinite, high, totals[slot].ln() + high));
                if comptime!(details) {
                    parts[2 * to] = high;
                    parts[2 * to + 1] = totals[slot];
                }
            }
        }
    }
}

/// Adds `Σᵣ g[β, p, r] exp(x[β, p, q] + y[β, q, r] − c[β, p, r])` to `out[β, p, q]`, the cotangent of x, unless `any` is
/// 0. A cube computes a tile of `side × side` elements, a unit `own × own` of them.
///
/// `parts[β, p, r, 2]` are the parts of the product c. Terms of +∞ have equal weights, terms of a sum of −∞ have
/// none; a weight of 0 contributes 0 even if g is NaN.
#[cube(launch_unchecked)]
pub(crate) fn weighted_kernel<E: Float, F: Float>(
    x: &Tensor<E>,
    y: &Tensor<E>,
    parts: &Tensor<F>,
    g: &Tensor<E>,
    any: &Tensor<u32>,
    out: &mut Tensor<E>,
    tiles: usize,
    p: usize,
    q: usize,
    r: usize,
    x_batch: usize,
    x_row: usize,
    x_column: usize,
    y_batch: usize,
    y_row: usize,
    y_column: usize,
    c_row: usize,
    c_column: usize,
    g_batch: usize,
    g_row: usize,
    g_column: usize,
    out_row: usize,
    out_column: usize,
    low: InputScalar,
    #[comptime] side: usize,
    #[comptime] own: usize,
    #[comptime] steps: usize,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    if CUBE_POS >= tiles || any[0] == 0 {
        terminate!();
    }
    let wide = comptime!(side / own);
    let units = comptime!(wide * wide);
    let loads = comptime!(side * steps / units);
    let pitch = comptime!(steps + 1);
    let across = (q + side - 1) / side;
    let down = (p + side - 1) / side;
    let batch = CUBE_POS / (across * down);
    let row0 = (CUBE_POS / across) % down * side;
    let column0 = CUBE_POS % across * side;
    let unit = UNIT_POS as usize;
    let left = unit % wide;
    let top = unit / wide;
    let low = low.get::<F>();
    let zero = F::new(0.0);

    let mut sy = SharedMemory::<F>::new(comptime!(side * (steps + 1)));
    let mut most = SharedMemory::<F>::new(comptime!(side * (steps + 1)));
    let mut scales = SharedMemory::<F>::new(comptime!(side * (steps + 1)));
    let mut terms = Array::<F>::new(comptime!(own * own));
    let mut sums = Array::<F>::new(comptime!(own * own));
    #[unroll]
    for i in 0..own {
        let row = row0 + top + i * wide;
        #[unroll]
        for j in 0..own {
            let column = column0 + left + j * wide;
            let from = batch * x_batch + row * x_row + column * x_column;
            let slot = comptime!(i * own + j);
            terms[slot] = F::cast_from(x[select(row < p && column < q, from, 0)]);
            sums[slot] = zero;
        }
    }

    let mut r0 = 0usize;
    while r0 < r {
        #[unroll]
        for i in 0..loads {
            let e = unit + i * units;
            let line = e / steps;
            let step = e % steps;
            let slot = line * pitch + step;
            let here = column0 + line < q && r0 + step < r;
            let from = batch * y_batch + (column0 + line) * y_row + (r0 + step) * y_column;
            sy[slot] = select(here, F::cast_from(y[select(here, from, 0)]), low);
            let here = row0 + line < p && r0 + step < r;
            let from = 2 * (batch * p * r + (row0 + line) * c_row + (r0 + step) * c_column);
            most[slot] = select(here, parts[select(here, from, 0)], low);
            let total = parts[select(here, from + 1, 1)];
            let from = batch * g_batch + (row0 + line) * g_row + (r0 + step) * g_column;
            let weight = F::cast_from(g[select(here, from, 0)]) / total;
            scales[slot] = select(here && most[slot] != low, weight, zero);
        }
        sync_cube();
        for step in 0..steps {
            #[unroll]
            for i in 0..own {
                let slot = (top + i * wide) * pitch + step;
                let high = most[slot];
                let scale = scales[slot];
                #[unroll]
                for j in 0..own {
                    let own_slot = comptime!(i * own + j);
                    let term = terms[own_slot] + sy[(left + j * wide) * pitch + step];
                    let share = select(is_nan::<F>(high), high, part::<F>(term, high, low));
                    sums[own_slot] += select(share == zero, zero, share * scale);
                }
            }
        }
        sync_cube();
        r0 += steps;
    }

    #[unroll]
    for i in 0..own {
        let row = row0 + top + i * wide;
        #[unroll]
        for j in 0..own {
            let column = column0 + left + j * wide;
            if row < p && column < q {
                let to = batch * p * q + row * out_row + column * out_column;
                let before = F::cast_from(out[to]);
                out[to] = E::cast_from(before + sums[comptime!(i * own + j)]);
            }
        }
    }
}
