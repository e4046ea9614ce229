//! Matrix products with two short dimensions, as of an operator on few states with a tensor of many: operands are
//! read once, without packing (bench `graded`).

use t4a_algebra::Numeric;
use t4a_algebra::gemm::{MatMut, MatRef};
use t4a_algebra::simd::{self, Loop};

use crate::plan::SHORT;

/// Minimum length of the long dimension.
const LONG: usize = 16;

/// Row-major matrix with a row stride of `pitch` elements.
#[derive(Clone, Copy)]
struct StridedRows<P> {
    at: P,
    pitch: usize,
}

/// Computes the product if its shape is supported; returns true if so.
pub(super) fn multiply<T: Numeric>(
    a: &MatRef<'_, T>,
    b: &MatRef<'_, T>,
    c: &MatMut<'_, T>,
    accumulate: bool,
) -> bool {
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    let row_major = |rs: isize, cs: isize, cols: usize| {
        (cs == 1 || cols == 1).then_some(rs).filter(|&rs| rs >= cols as isize)
    };
    if k.max(n) <= SHORT && m >= LONG && !accumulate && k > 0 {
        let from = row_major(a.row_stride(), a.col_stride(), k);
        let to = row_major(c.row_stride(), c.col_stride(), n);
        if let (Some(from), Some(to)) = (from, to) {
            let a = StridedRows { at: a.as_ptr(), pitch: from as usize };
            let to = StridedRows { at: c.as_mut_ptr(), pitch: to as usize };
            down(
                (m, k, n),
                a,
                |l, j| (b.as_ptr(), l as isize * b.row_stride() + j as isize * b.col_stride()),
                to,
            );
            return true;
        }
    }
    if k.max(m) <= SHORT && n >= LONG && !accumulate && k > 0 {
        let from = row_major(b.col_stride(), b.row_stride(), k);
        let to = row_major(c.col_stride(), c.row_stride(), m);
        if let (Some(from), Some(to)) = (from, to) {
            let b = StridedRows { at: b.as_ptr(), pitch: from as usize };
            let to = StridedRows { at: c.as_mut_ptr(), pitch: to as usize };
            down(
                (n, k, m),
                b,
                |l, i| (a.as_ptr(), i as isize * a.row_stride() + l as isize * a.col_stride()),
                to,
            );
            return true;
        }
    }
    if m.max(n) <= SHORT && k >= LONG {
        let left = row_major(a.col_stride(), a.row_stride(), m);
        let right = row_major(b.row_stride(), b.col_stride(), n);
        if let (Some(left), Some(right)) = (left, right) {
            let left = StridedRows { at: a.as_ptr(), pitch: left as usize };
            let right = StridedRows { at: b.as_ptr(), pitch: right as usize };
            across((m, k, n), left, right, c, accumulate);
            return true;
        }
    }
    false
}

/// `C = A B` with many rows; B is held in registers.
fn down<T: Numeric>(
    (m, k, n): (usize, usize, usize),
    a: StridedRows<*const T>,
    b: impl Fn(usize, usize) -> (*const T, isize),
    c: StridedRows<*mut T>,
) {
    let mut small = [[T::ZERO; SHORT]; SHORT];
    for (l, row) in small.iter_mut().enumerate().take(k) {
        for (j, x) in row.iter_mut().enumerate().take(n) {
            let (at, offset) = b(l, j);
            // SAFETY: (l, j) is an element of B.
            *x = unsafe { at.offset(offset).read() };
        }
    }
    macro_rules! by_sizes {
        ($($k:literal)*) => {
            match k {
                $($k if n <= 4 => simd::dispatch(Down::<T, $k, 4> { m, n, a, b: &small, c }),
                $k => simd::dispatch(Down::<T, $k, 8> { m, n, a, b: &small, c }),)*
                _ => unreachable!("short sides"),
            }
        };
    }
    by_sizes!(1 2 3 4 5 6 7 8);
}

struct Down<'a, T, const K: usize, const W: usize> {
    m: usize,
    n: usize,
    a: StridedRows<*const T>,
    b: &'a [[T; SHORT]; SHORT],
    c: StridedRows<*mut T>,
}

impl<T: Numeric, const K: usize, const W: usize> Loop for Down<'_, T, K, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { m, n, a, b, c } = self;
        let mut small = [[T::ZERO; W]; K];
        for (to, from) in small.iter_mut().zip(b) {
            to.copy_from_slice(&from[..W]);
        }
        // W elements are written per row; those after the row's own are overwritten by the next row.
        let whole = (m - 1) * c.pitch + n;
        let safe = if whole >= W { ((whole - W) / c.pitch + 1).min(m) } else { 0 };
        // Elements between the rows belong to other views and must not be overwritten.
        let safe = if c.pitch == n || n == W { safe } else { 0 };
        let row = |i: usize| {
            let from = a.at.wrapping_add(i * a.pitch);
            let mut sum = [T::ZERO; W];
            for l in 0..K {
                // SAFETY: row i has K elements.
                let x = unsafe { from.wrapping_add(l).read() };
                for j in 0..W {
                    sum[j] =
                        if l == 0 { x.mul(small[l][j]) } else { x.mul_add(small[l][j], sum[j]) };
                }
            }
            sum
        };
        for i in 0..safe {
            // SAFETY: at least W elements of C follow.
            unsafe { c.at.wrapping_add(i * c.pitch).cast::<[T; W]>().write_unaligned(row(i)) }
        }
        for i in safe..m {
            for (j, &x) in row(i).iter().enumerate().take(n) {
                // SAFETY: (i, j) is an element of C.
                unsafe { c.at.wrapping_add(i * c.pitch + j).write(x) }
            }
        }
    }
}

/// `C = Aᵀ B` with many rows of A and B; C is held in registers.
fn across<T: Numeric>(
    (m, k, n): (usize, usize, usize),
    a: StridedRows<*const T>,
    b: StridedRows<*const T>,
    c: &MatMut<'_, T>,
    accumulate: bool,
) {
    macro_rules! by_sizes {
        ($($m:literal)*) => {
            match m {
                $($m if n <= 4 => store(simd::dispatch(TransposedProduct::<T, $m, 4> { k, n, a, b }), n, c, accumulate),
                $m => store(simd::dispatch(TransposedProduct::<T, $m, 8> { k, n, a, b }), n, c, accumulate),)*
                _ => unreachable!("short sides"),
            }
        };
    }
    by_sizes!(1 2 3 4 5 6 7 8);
}

fn store<T: Numeric, const M: usize, const W: usize>(
    sums: [[T; W]; M],
    n: usize,
    c: &MatMut<'_, T>,
    accumulate: bool,
) {
    for (i, row) in sums.iter().enumerate() {
        for (j, &x) in row.iter().enumerate().take(n) {
            let at = i as isize * c.row_stride() + j as isize * c.col_stride();
            let at = c.as_mut_ptr().wrapping_offset(at);
            // SAFETY: (i, j) is an element of C, which is initialised if `accumulate`.
            unsafe { at.write(if accumulate { at.read().add(x) } else { x }) }
        }
    }
}

struct TransposedProduct<T, const M: usize, const W: usize> {
    k: usize,
    n: usize,
    a: StridedRows<*const T>,
    b: StridedRows<*const T>,
}

impl<T: Numeric, const M: usize, const W: usize> Loop for TransposedProduct<T, M, W> {
    type Output = [[T; W]; M];

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { k, n, a, b } = self;
        // W elements are read per row; those after the row's own are ignored.
        let whole = (k - 1) * b.pitch + n;
        let safe = if whole >= W { ((whole - W) / b.pitch + 1).min(k) } else { 0 };
        let mut sums = [[[T::ZERO; W]; M]; 2];
        let add = |sums: &mut [[T; W]; M], l: usize, y: [T; W]| {
            for i in 0..M {
                // SAFETY: row l has M elements.
                let x = unsafe { a.at.wrapping_add(l * a.pitch + i).read() };
                for j in 0..W {
                    sums[i][j] = x.mul_add(y[j], sums[i][j]);
                }
            }
        };
        // SAFETY: at least W elements of B follow.
        let read =
            |l: usize| unsafe { b.at.wrapping_add(l * b.pitch).cast::<[T; W]>().read_unaligned() };
        // Two independent accumulators hide the latency of the multiply-add.
        let pairs = safe / 2 * 2;
        for l in (0..pairs).step_by(2) {
            let [even, odd] = &mut sums;
            add(even, l, read(l));
            add(odd, l + 1, read(l + 1));
        }
        for l in pairs..k {
            let mut y = [T::ZERO; W];
            for (j, y) in y.iter_mut().enumerate().take(n) {
                // SAFETY: (l, j) is an element of B.
                *y = unsafe { b.at.wrapping_add(l * b.pitch + j).read() };
            }
            add(&mut sums[0], l, y);
        }
        let [mut even, odd] = sums;
        for (even, odd) in even.iter_mut().zip(odd) {
            for (even, odd) in even.iter_mut().zip(odd) {
                *even = even.add(odd);
            }
        }
        even
    }
}
