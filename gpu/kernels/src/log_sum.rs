//! Cotangents of log-sum-exp products of batches of matrices.

use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::kernels::log_sum::weighted_kernel;
use crate::launch::{Operand, grid, reach};
use crate::product::{Checked, Semiring, product};

const KERNEL: &str = "log_sum_cotangents";

/// Rows and columns of a tile, rows and columns per unit, and steps of the sum in shared memory.
const TILE: [usize; 3] = [32, 2, 16];

/// Cotangents of `a` and `b` from the cotangent `g` of their log-sum-exp product; both are contiguous.
///
/// The product is recomputed. Sums have a fixed order, so results are the same in every run.
///
/// # Errors
/// As [`product`]; `Sizes` and `DType` unless `g` has shape and element type of the product.
pub fn log_sum_cotangents<R: Runtime>(
    client: &ComputeClient<R>,
    [a, b]: [Operand; 2],
    g: Operand,
) -> Result<[Operand; 2]> {
    let Checked { sizes: [batch, m, k, n], computed } = Checked::new(&a, &b)?;
    if g.shape != [batch, m, n] {
        let (required, given) = ("a cotangent [β, m, n]", [a.shape, g.shape]);
        return Err(CubeError::Sizes { kernel: KERNEL, required, given });
    }
    if g.dtype != a.dtype {
        let dtype = format!("{} and {}", a.dtype, g.dtype);
        return Err(CubeError::DType { kernel: KERNEL, dtype });
    }
    reach(KERNEL, &g.shape, &g.strides)?;
    let dtype = a.dtype;
    let product = product(client, Semiring::LogSumExp, [a.clone(), b.clone()], true, None)?;
    let parts = product.parts.unwrap_or(product.values);
    reach(KERNEL, &parts.shape, &parts.strides)?;
    let results = [[batch, m, k], [batch, k, n]].map(|s| Operand::empty(client, &s, dtype));
    let strides = |x: &Operand| -> [usize; 3] { std::array::from_fn(|axis| x.strides[axis]) };
    let ([ab, ar, ac], [bb, br, bc], [gb, gr, gc]) = (strides(&a), strides(&b), strides(&g));
    // The cotangent of b is that of the left operand of the transposed product.
    let sides = [
        (&a, [ab, ar, ac], &b, [bb, br, bc], [n, 1], [gb, gr, gc], [k, 1], [m, k, n]),
        (&b, [bb, bc, br], &a, [ab, ac, ar], [1, n], [gb, gc, gr], [1, n], [n, k, m]),
    ];
    let [side, own, steps] = TILE;
    let units = (side / own) * (side / own);
    for ((x, xs, y, ys, cs, gs, os, [p, q, r]), out) in sides.into_iter().zip(&results) {
        let tiles = batch * p.div_ceil(side) * q.div_ceil(side);
        if tiles == 0 {
            continue;
        }
        // SAFETY: operands were checked; indices are masked by their sizes.
        unsafe {
            weighted_kernel::launch_unchecked::<R>(
                client,
                grid(tiles),
                CubeDim::new_1d(units as u32),
                x.clone().arg(),
                y.clone().arg(),
                parts.clone().arg(),
                g.clone().arg(),
                out.clone().arg(),
                tiles,
                p,
                q,
                r,
                xs[0],
                xs[1],
                xs[2],
                ys[0],
                ys[1],
                ys[2],
                cs[0],
                cs[1],
                gs[0],
                gs[1],
                gs[2],
                os[0],
                os[1],
                InputScalar::new(f64::NEG_INFINITY, computed),
                side,
                own,
                steps,
                [dtype, computed],
            );
        }
    }
    Ok(results)
}
