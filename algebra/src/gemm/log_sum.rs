//! Products over (log-sum-exp, +), computed as products of exponentials.
//!
//! With rᵢ the maximum of row i of A and sⱼ that of column j of B,
//!
//! ```text
//! cᵢⱼ = ln Σₖ exp(aᵢₖ + bₖⱼ) = rᵢ + sⱼ + ln Σₖ exp(aᵢₖ − rᵢ)·exp(bₖⱼ − sⱼ)
//! ```
//!
//! requires mk + kn exponentials, mn logarithms and one ordinary product in `f64`. Its factors are at most 1, so there
//! is no overflow. Underflow loses less than 2⁻¹⁰²² per term, which is below the last bit of a sum that exceeds
//! [`SMALLEST`]. Elements with a smaller sum, where large entries of a row are paired with small ones of a column and
//! the result is more than 640 below rᵢ + sⱼ, are recomputed term by term, shifted by their own maximum. So are the
//! elements of rows and columns with NaN or +∞, whose factors are set to 0 and whose maximum to +∞, and products with a
//! vector, which would need as many exponentials.
//!
//! k is cut into blocks of [`DEPTH`] independent of the threads, so that results do not depend on their number.

use super::arithmetic::Plain;
use super::partition::{self, OutputBlock};
use super::scratch::{Scratch, StackBuffer};
use super::{Algorithm, Kernel, MatMut, MatRef, Product, Report, driver};
use crate::math::f64 as math;
use crate::simd::{self, Loop};
use crate::{Float, LogSumExp, Semiring, Standard};

/// Rows of A, columns of B and depth of a block: ¾ MiB, 1½ MiB and ½ MiB of `f64`.
const ROWS: usize = 192;
const COLS: usize = 384;
const DEPTH: usize = 512;
/// Multiplications of a block that are done one by one, because packing would take longer.
const FEW: usize = 64;
/// DEPTH·2⁻¹⁰²²·2⁵³ with a margin.
const SMALLEST: f64 = 1e-280;

/// The product over [`LogSumExp`].
pub(crate) const fn kernel<T: Float>() -> Kernel<T> {
    Kernel(product::<T>)
}

/// # Safety
/// The operands must satisfy the contract of [`Product::batch`].
unsafe fn product<T: Float>(p: &Product<'_, T>) -> Report {
    let vector = p.a().rows() == 1 || p.b().cols() == 1;
    // SAFETY: passed on.
    unsafe {
        partition::for_each(p, |block| {
            if vector {
                simd::dispatch(Exactly { block: &block });
            } else {
                blocked(&block);
            }
        });
    }
    Report::new(Algorithm::Exponentials)
}

/// Element (i, j) of a matrix as `f64`.
///
/// # Safety
/// (i, j) must be inside the matrix.
#[inline(always)]
unsafe fn at<T: Float>(m: &MatRef<'_, T>, i: usize, j: usize) -> f64 {
    let at = i as isize * m.row_stride() + j as isize * m.col_stride();
    // SAFETY: by contract.
    unsafe { m.as_ptr().wrapping_offset(at).read() }.to_f64()
}

/// `ln Σₖ exp(aₖ + bₖ)` over row `i` of A and column `j` of B, shifted by the largest term.
///
/// # Safety
/// The row and the column must exist.
#[inline(always)]
unsafe fn exactly<T: Float>(a: &MatRef<'_, T>, b: &MatRef<'_, T>, i: usize, j: usize) -> f64 {
    const LANES: usize = 8;
    // SAFETY: by contract.
    let term = |k| unsafe { <LogSumExp as Semiring<f64>>::mul(at(a, i, k), at(b, k, j)) };
    let mut most = [f64::NEG_INFINITY; LANES];
    let k = a.cols();
    let whole = k - k % LANES;
    for at in (0..whole).step_by(LANES) {
        for l in 0..LANES {
            most[l] = crate::Real::max(most[l], term(at + l));
        }
    }
    let tail = (whole..k).map(term).fold(f64::NEG_INFINITY, crate::Real::max);
    let most = most.into_iter().fold(tail, crate::Real::max);
    if !most.is_finite() {
        return most;
    }
    let mut sums = [0.0; LANES];
    for at in (0..whole).step_by(LANES) {
        for l in 0..LANES {
            sums[l] += math::exp(term(at + l) - most);
        }
    }
    let mut sum = 0.0;
    for at in whole..k {
        sum += math::exp(term(at) - most);
    }
    most + math::ln(sums.into_iter().sum::<f64>() + sum)
}

/// All elements of a block, term by term.
struct Exactly<'a, T> {
    block: &'a OutputBlock<'a, T>,
}

impl<T: Float> Loop for Exactly<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let OutputBlock { a, b, c, accumulate, .. } = self.block;
        for i in 0..c.rows() {
            for j in 0..c.cols() {
                // SAFETY: (i, j) is an element of C.
                unsafe { put(c, (i, j), exactly(a, b, i, j), *accumulate) }
            }
        }
    }
}

/// Writes or adds one element.
///
/// # Safety
/// (i, j) must be inside C, initialised if `add`.
#[inline(always)]
unsafe fn put<T: Float>(c: &MatMut<'_, T>, (i, j): (usize, usize), mut value: f64, add: bool) {
    let at = i as isize * c.row_stride() + j as isize * c.col_stride();
    let to = c.as_mut_ptr().wrapping_offset(at);
    // SAFETY: by contract.
    unsafe {
        if add {
            value = LogSumExp::add(to.read().to_f64(), value);
        }
        to.write(T::from_f64(value));
    }
}

fn blocked<T: Float>(block: &OutputBlock<'_, T>) {
    let OutputBlock { a, b, c, accumulate, .. } = block;
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    let (rows, cols, depth) = (m.min(ROWS), n.min(COLS), k.min(DEPTH));
    let mut stack = StackBuffer::new();
    let len = rows * depth + depth * cols + 2 * rows * cols + rows + cols;
    let mut scratch = Scratch::<f64>::new(len, &mut stack);
    let exp_a = scratch.as_mut_ptr();
    let exp_b = exp_a.wrapping_add(rows * depth);
    let product = exp_b.wrapping_add(depth * cols);
    let total = product.wrapping_add(rows * cols);
    let shift_a = total.wrapping_add(rows * cols);
    let shift_b = shift_a.wrapping_add(rows);

    for jc in (0..n).step_by(COLS) {
        let nc = (n - jc).min(COLS);
        for ic in (0..m).step_by(ROWS) {
            let mc = (m - ic).min(ROWS);
            // SAFETY: the scratch holds the largest block of each, disjointly, and all blocks are inside the operands.
            unsafe {
                for at in 0..mc * nc {
                    total.add(at).write(f64::NEG_INFINITY);
                }
                let total = std::slice::from_raw_parts_mut(total, mc * nc);
                for pc in (0..k).step_by(DEPTH) {
                    let kc = (k - pc).min(DEPTH);
                    let a = a.block((ic, pc), (mc, kc));
                    let b = b.block((pc, jc), (kc, nc));
                    simd::dispatch(Exponentials { of: a, to: exp_a, shift: shift_a });
                    // B is stored transposed, one row per column.
                    if ic == 0 || k > DEPTH {
                        simd::dispatch(Exponentials {
                            of: b.transpose(),
                            to: exp_b,
                            shift: shift_b,
                        });
                    }
                    if mc * kc * nc <= FEW {
                        for at in 0..mc * nc {
                            let (i, j) = (at / nc * kc, at % nc * kc);
                            let term = |k| *exp_a.add(i + k) * *exp_b.add(j + k);
                            product.add(at).write((0..kc).map(term).sum());
                        }
                    } else {
                        driver::run::<Standard, Plain<Standard>, f64>(&OutputBlock {
                            a: MatRef::from_raw_parts(exp_a, (mc, kc), (kc as isize, 1)),
                            b: MatRef::from_raw_parts(exp_b, (kc, nc), (1, kc as isize)),
                            c: MatMut::from_raw_parts(product, (mc, nc), (nc as isize, 1)),
                            accumulate: false,
                            arg: std::ptr::null_mut(),
                            first: 0,
                        });
                    }
                    simd::dispatch(Logarithms {
                        operands: (a, b),
                        product: std::slice::from_raw_parts(product, mc * nc),
                        shifts: (
                            std::slice::from_raw_parts(shift_a, mc),
                            std::slice::from_raw_parts(shift_b, nc),
                        ),
                        total,
                        add: pc > 0,
                    });
                }
                let c = c.alias().block((ic, jc), (mc, nc));
                simd::dispatch(Rounded { total, c, accumulate: *accumulate });
            }
        }
    }
}

/// The maximum of every row, and `exp(x − maximum)` row by row; +∞ and zeros for a row with NaN or +∞.
struct Exponentials<'a, T> {
    of: MatRef<'a, T>,
    to: *mut f64,
    shift: *mut f64,
}

impl<T: Float> Loop for Exponentials<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (rows, cols) = (self.of.rows(), self.of.cols());
        // SAFETY: `to` has room for the elements and `shift` for the rows.
        unsafe {
            // Traversed in memory order.
            if self.of.row_stride().unsigned_abs() < self.of.col_stride().unsigned_abs() {
                for j in 0..cols {
                    for i in 0..rows {
                        self.to.add(i * cols + j).write(at(&self.of, i, j));
                    }
                }
            } else {
                for i in 0..rows {
                    for j in 0..cols {
                        self.to.add(i * cols + j).write(at(&self.of, i, j));
                    }
                }
            }
            for i in 0..rows {
                let row = std::slice::from_raw_parts_mut(self.to.add(i * cols), cols);
                let mut lanes = [f64::NEG_INFINITY; 8];
                let (whole, tail) = row.as_chunks::<8>();
                for chunk in whole {
                    for (most, &x) in lanes.iter_mut().zip(chunk) {
                        // NaN counts as +∞.
                        let x = if x < f64::INFINITY { x } else { f64::INFINITY };
                        *most = if x > *most { x } else { *most };
                    }
                }
                let mut most = lanes.into_iter().fold(f64::NEG_INFINITY, f64::max);
                for &x in tail {
                    most = if x <= most { most } else { x };
                    most = if most < f64::INFINITY { most } else { f64::INFINITY };
                }
                self.shift.add(i).write(most);
                if most == f64::INFINITY {
                    row.fill(0.0);
                    continue;
                }
                // In a row without a finite element the shift is 0: exp(−∞ − 0) = 0.
                let by = if most == f64::NEG_INFINITY { 0.0 } else { most };
                // A loop, not a closure: a closure that is not inlined is not compiled for the caller's instruction
                // set.
                for x in row {
                    *x = math::exp(*x - by);
                }
            }
        }
    }
}

/// Logarithms of the sums plus the shifts; elements with small sums are recomputed term by term.
struct Logarithms<'a, T> {
    operands: (MatRef<'a, T>, MatRef<'a, T>),
    product: &'a [f64],
    shifts: (&'a [f64], &'a [f64]),
    total: &'a mut [f64],
    add: bool,
}

impl<T: Float> Loop for Logarithms<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (of_rows, of_cols) = self.shifts;
        let n = of_cols.len();
        let undefined = |shift: f64| shift == f64::INFINITY;
        let cols_are_defined = !of_cols.iter().any(|&s| undefined(s));
        let rows = self.product.chunks_exact(n).zip(self.total.chunks_exact_mut(n));
        for (i, (sums, total)) in rows.enumerate() {
            let by = of_rows[i];
            let mut low = false;
            if self.add {
                for ((out, &sum), &s) in total.iter_mut().zip(sums).zip(of_cols) {
                    low |= sum < SMALLEST;
                    let new =
                        if sum < SMALLEST { f64::NEG_INFINITY } else { by + s + math::ln(sum) };
                    *out = LogSumExp::add(*out, new);
                }
            } else {
                for ((out, &sum), &s) in total.iter_mut().zip(sums).zip(of_cols) {
                    low |= sum < SMALLEST;
                    *out = by + s + math::ln(sum);
                }
            }
            if !low || (by == f64::NEG_INFINITY && cols_are_defined) {
                continue;
            }
            for ((j, out), (&sum, &s)) in total.iter_mut().enumerate().zip(sums.iter().zip(of_cols))
            {
                let none = by == f64::NEG_INFINITY || s == f64::NEG_INFINITY;
                if sum < SMALLEST && (!none || undefined(by) || undefined(s)) {
                    // SAFETY: row i and column j exist.
                    let new = unsafe { exactly(&self.operands.0, &self.operands.1, i, j) };
                    *out = if self.add { LogSumExp::add(*out, new) } else { new };
                }
            }
        }
    }
}

/// Rounded results, written to C or added to it.
struct Rounded<'a, T> {
    total: &'a [f64],
    c: MatMut<'a, T>,
    accumulate: bool,
}

impl<T: Float> Loop for Rounded<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Rounded { total, c, accumulate } = self;
        for (i, row) in total.chunks_exact(c.cols()).enumerate() {
            let to = c.as_mut_ptr().wrapping_offset(i as isize * c.row_stride());
            // SAFETY: every (i, j) is an element of C.
            unsafe {
                if c.col_stride() == 1 && !accumulate {
                    for (j, &value) in row.iter().enumerate() {
                        to.add(j).write(T::from_f64(value));
                    }
                } else {
                    for (j, &value) in row.iter().enumerate() {
                        put(&c, (i, j), value, accumulate);
                    }
                }
            }
        }
    }
}
