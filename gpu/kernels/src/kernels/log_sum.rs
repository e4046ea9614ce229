//! Cotangents of log-sum-exp products of batches of matrices.

use cubecl::prelude::*;

use super::is_nan;
use super::product::part;

/// `out[β, p, q] = Σᵣ g[β, p, r] exp(x[β, p, q] + y[β, q, r] − c[β, p, r])`, the cotangent of x. A cube computes a
/// tile of `side × side` elements, a unit `own × own` of them.
///
/// `parts[β, p, r, 2]` are the parts of the product c. Terms of +∞ have equal weights, terms of a sum of −∞ have
/// none; a weight of 0 contributes 0 even if g is NaN.
#[cube(launch_unchecked)]
pub(crate) fn weighted_kernel<E: Float, F: Float>(
    x: &Tensor<E>,
    y: &Tensor<E>,
    parts: &Tensor<F>,
    g: &Tensor<E>,
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
    if CUBE_POS >= tiles {
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
                out[to] = E::cast_from(sums[comptime!(i * own + j)]);
            }
        }
    }
}
