//! Log-sum-exp products of batches of matrices, and their cotangents.
//!
//! A product is first computed as `ln Σ exp(a − α) exp(b − β) + α + β` with the maxima α of rows of a and β of columns
//! of b: an exponential per element of the operands and a matrix product. Sums that are so small that terms may be lost
//! are computed again relative to their largest term, with an exponential per term.

use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::extreme::Lanes;
use crate::kernels::log_sum::{
    log_sum_kernel, logarithms_kernel, quotients_kernel, scaled_kernel, shares_kernel,
    weighted_kernel,
};
use crate::launch::{Operand, elements, grid, reach};
use crate::product::{Checked, Semiring, product};

const KERNEL: &str = "log_sum";

/// Rows and columns of a tile, rows and columns per unit, and steps of the sum in shared memory.
const TILE: [usize; 3] = [32, 2, 16];

/// Sums of products of shares below this number are computed again. The arguments of exponentials of its terms are at
/// most 44, so their rounding is that of a sum of this size.
const LEAST: f64 = 1.0 / (1u64 << 63) as f64;

/// Units of a cube of elementwise work.
const UNITS: usize = 256;

/// Maxima of lanes, and contiguous shares `exp(x − maximum)`.
struct Shares {
    most: Operand,
    shares: Operand,
}

impl Shares {
    /// Shares of lanes along axis 2 (rows) or axis 1 (columns) of `x[β, ·, ·]`, which is not empty; writes 0 to `any`.
    fn of<R: Runtime>(
        client: &ComputeClient<R>,
        x: &Operand,
        computed: StorageType,
        axis: usize,
        any: &Operand,
    ) -> Result<Self> {
        let shares = Operand::empty(client, &x.shape, computed);
        let other = 3 - axis;
        let lanes = |x: &Operand| Lanes {
            sizes: [x.shape[0], x.shape[axis], x.shape[other]],
            strides: [x.strides[0], x.strides[axis], x.strides[other]],
        };
        let ([outer, n, inner], [_, to, to_inner]) = (lanes(x).sizes, lanes(&shares).strides);
        let [outer_stride, stride, inner_stride] = lanes(x).strides;
        let all = elements(KERNEL, &[outer, inner])?;
        let most = Operand::empty(client, &[outer, inner], computed);
        // Neighbouring units read neighbouring elements.
        let (per_cube, width) = if stride <= inner_stride { (1, 64) } else { (8, 16) };
        // SAFETY: the caller has checked the indices; cubes after the last lane read lane 0 and write nothing.
        unsafe {
            shares_kernel::launch_unchecked::<R>(
                client,
                grid(all.div_ceil(per_cube)),
                CubeDim::new_2d(per_cube as u32, width as u32),
                x.clone().arg(),
                most.clone().arg(),
                shares.clone().arg(),
                any.clone().arg(),
                all,
                inner,
                n,
                outer_stride,
                inner_stride,
                stride,
                to_inner,
                to,
                InputScalar::new(f64::NEG_INFINITY, computed),
                per_cube,
                width,
                [x.dtype, computed],
            );
        }
        Ok(Self { most, shares })
    }
}

/// A product whose result is not empty, its operands' shares, and the sums of their products.
struct Call<'a, R: Runtime> {
    client: &'a ComputeClient<R>,
    operands: [Operand; 2],
    sizes: [usize; 4],
    computed: StorageType,
    rows: Shares,
    columns: Shares,
    sums: Operand,
    /// 1 if some sums must be computed again.
    any: Operand,
}

impl<'a, R: Runtime> Call<'a, R> {
    fn new(client: &'a ComputeClient<R>, operands: [Operand; 2], checked: Checked) -> Result<Self> {
        let Checked { sizes, computed } = checked;
        let any = Operand::empty(client, &[1], ElemType::UInt(UIntKind::U32).into());
        let [a, b] = &operands;
        let rows = Shares::of(client, a, computed, 2, &any)?;
        let columns = Shares::of(client, b, computed, 1, &any)?;
        let shares = [rows.shares.clone(), columns.shares.clone()];
        let sums = product(client, Semiring::Standard, shares, false, None)?.values;
        Ok(Self { client, operands, sizes, computed, rows, columns, sums, any })
    }

    fn dtypes(&self) -> [StorageType; 2] {
        [self.operands[0].dtype, self.computed]
    }

    /// `LEAST`, −∞ and NaN.
    fn constants(&self) -> [InputScalar; 3] {
        [LEAST, f64::NEG_INFINITY, f64::NAN].map(|x| InputScalar::new(x, self.computed))
    }

    /// Computes elements of `c` that are NaN; their parts `[β, m, n, 2]` if given.
    fn repeat(&self, c: &Operand, parts: Option<&Operand>) {
        let ([batch, m, k, n], [side, own, steps]) = (self.sizes, TILE);
        let tiles = batch * m.div_ceil(side) * n.div_ceil(side);
        let units = (side / own) * (side / own);
        let [a, b] = &self.operands;
        let ([ab, ar, ac], [bb, br, bc]) = (strides(a), strides(b));
        let [_, low, nan] = self.constants();
        let none = || Operand::empty(self.client, &[1], self.computed);
        // SAFETY: operands were checked; indices are masked by their sizes.
        unsafe {
            log_sum_kernel::launch_unchecked::<R>(
                self.client,
                grid(tiles),
                CubeDim::new_1d(units as u32),
                a.clone().arg(),
                b.clone().arg(),
                c.clone().arg(),
                parts.cloned().unwrap_or_else(none).arg(),
                self.any.clone().arg(),
                tiles,
                m,
                k,
                n,
                ab,
                ar,
                ac,
                bb,
                br,
                bc,
                low,
                nan,
                side,
                own,
                steps,
                parts.is_some(),
                self.dtypes(),
            );
        }
    }

    /// `x ⊙ y` in the type of the operands.
    fn scaled(&self, x: &Operand, y: Operand) -> Operand {
        let out = Operand::empty(self.client, &x.shape, self.operands[0].dtype);
        let all = x.shape.iter().product();
        // SAFETY: both are contiguous and of one shape; units after the last element write nothing.
        unsafe {
            scaled_kernel::launch_unchecked::<R>(
                self.client,
                grid(usize::div_ceil(all, UNITS)),
                CubeDim::new_1d(UNITS as u32),
                x.clone().arg(),
                y.arg(),
                out.clone().arg(),
                all,
                self.dtypes(),
            );
        }
        out
    }
}

/// Log-sum-exp product of checked operands.
pub(crate) fn log_sum_product<R: Runtime>(
    client: &ComputeClient<R>,
    operands: [Operand; 2],
    checked: Checked,
) -> Result<Operand> {
    let ([batch, m, k, n], dtype) = (checked.sizes, operands[0].dtype);
    let c = Operand::empty(client, &[batch, m, n], dtype);
    let all = elements(KERNEL, &[batch, m, n])?;
    if all == 0 {
        return Ok(c);
    }
    if k == 0 {
        // No terms: the product over (max, +) is the same.
        return Ok(product(client, Semiring::MaxPlus, operands, false, None)?.values);
    }
    let call = Call::new(client, operands, checked)?;
    let [least, low, nan] = call.constants();
    // SAFETY: sizes were checked; units after the last element return.
    unsafe {
        logarithms_kernel::launch_unchecked::<R>(
            client,
            grid(all.div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            call.sums.clone().arg(),
            call.rows.most.clone().arg(),
            call.columns.most.clone().arg(),
            c.clone().arg(),
            call.any.clone().arg(),
            all,
            m,
            n,
            least,
            low,
            nan,
            call.dtypes(),
        );
    }
    call.repeat(&c, None);
    Ok(c)
}

/// Strides of a batch of matrices.
fn strides(x: &Operand) -> [usize; 3] {
    std::array::from_fn(|axis| x.strides[axis])
}

/// The matrices of a batch, transposed.
fn transposed(x: &Operand) -> Operand {
    let mut x = x.clone();
    x.shape.swap(1, 2);
    x.strides.swap(1, 2);
    x
}

/// Cotangents of `a` and `b` from the cotangent `g` of their log-sum-exp product; both are contiguous.
///
/// With shares `A = exp(a − α)` and `B = exp(b − β)` whose product is s, they are `A ⊙ (g/s) Bᵀ` and `B ⊙ Aᵀ (g/s)`. The
/// product is recomputed. Sums have a fixed order, so results are the same in every run.
///
/// # Errors
/// As [`product`]; `Sizes` and `DType` unless `g` has shape and element type of the product.
pub fn log_sum_cotangents<R: Runtime>(
    client: &ComputeClient<R>,
    [a, b]: [Operand; 2],
    g: Operand,
) -> Result<[Operand; 2]> {
    let checked = Checked::new(&a, &b)?;
    let ([batch, m, k, n], computed) = (checked.sizes, checked.computed);
    if g.shape != [batch, m, n] {
        let (required, given) = ("a cotangent [β, m, n]", [a.shape, g.shape]);
        return Err(CubeError::Sizes { kernel: KERNEL, required, given });
    }
    if g.dtype != a.dtype {
        let dtype = format!("{} and {}", a.dtype, g.dtype);
        return Err(CubeError::DType { kernel: KERNEL, dtype });
    }
    reach(KERNEL, &g.shape, &g.strides)?;
    let all = elements(KERNEL, &[batch, m, n, 2])? / 2;
    if all == 0 || k == 0 {
        // Sums of no terms.
        let zeros =
            |x: Operand, y: Operand| product(client, Semiring::Standard, [x, y], false, None);
        let empty = |shape: [usize; 3]| Operand::empty(client, &shape, a.dtype);
        let left = zeros(empty([batch, m, 0]), empty([batch, 0, k]))?;
        let right = zeros(empty([batch, k, 0]), empty([batch, 0, n]))?;
        return Ok([left.values, right.values]);
    }
    let dtype = a.dtype;
    let call = Call::new(client, [a, b], checked)?;
    let [least, low, nan] = call.constants();
    let q = Operand::empty(client, &[batch, m, n], computed);
    let c = Operand::empty(client, &[batch, m, n], dtype);
    let parts = Operand::empty(client, &[batch, m, n, 2], computed);
    let [gb, gr, gc] = strides(&g);
    // SAFETY: sizes were checked; units after the last element return.
    unsafe {
        quotients_kernel::launch_unchecked::<R>(
            client,
            grid(all.div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            call.sums.clone().arg(),
            call.rows.most.clone().arg(),
            call.columns.most.clone().arg(),
            g.clone().arg(),
            q.clone().arg(),
            c.clone().arg(),
            parts.clone().arg(),
            call.any.clone().arg(),
            all,
            m,
            n,
            gb,
            gr,
            gc,
            least,
            low,
            nan,
            call.dtypes(),
        );
    }
    call.repeat(&c, Some(&parts));
    let (left, right) = (&call.rows.shares, &call.columns.shares);
    let by = |operands| product(client, Semiring::Standard, operands, false, None);
    let results = [
        call.scaled(left, by([q.clone(), transposed(right)])?.values),
        call.scaled(right, by([transposed(left), q])?.values),
    ];
    let [a, b] = &call.operands;
    let ([ab, ar, ac], [bb, br, bc]) = (strides(a), strides(b));
    // The cotangent of b is that of the left operand of the transposed product.
    let sides = [
        (a, [ab, ar, ac], b, [bb, br, bc], [n, 1], [gb, gr, gc], [k, 1], [m, k, n]),
        (b, [bb, bc, br], a, [ab, ac, ar], [1, n], [gb, gc, gr], [1, n], [n, k, m]),
    ];
    let [side, own, steps] = TILE;
    let units = (side / own) * (side / own);
    for ((x, xs, y, ys, cs, gs, os, [p, q, r]), out) in sides.into_iter().zip(&results) {
        let tiles = batch * p.div_ceil(side) * q.div_ceil(side);
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
                call.any.clone().arg(),
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
                low,
                side,
                own,
                steps,
                [dtype, computed],
            );
        }
    }
    Ok(results)
}
