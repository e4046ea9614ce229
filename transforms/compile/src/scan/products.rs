//! Matrix products over the arena.
//!
//! ```text
//! sizes up to 4   sizes known at compile time; the products of a batch one by one
//! n = 1           dot products of four rows of A at a time
//! m = 1           blocks of columns that fit into registers
//! others          matrix product of the engine
//! ```

use t4a_algebra::Standard;
use t4a_algebra::gemm::{BatchAxis, MatMut, MatRef, Product};
use t4a_algebra::simd::{Loop, dispatch};

use super::kernel::{ArenaInst, KernelFn};
use crate::fuse::kernel::FusedFloat;

/// Maximum number of elements of a matrix with sizes known at compile time.
const FEW: usize = 16;

/// Sizes of a batch of products `[m, k] · [k, n]`. An operand with step 0 is shared by the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) batch: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    /// Distances between consecutive matrices of the batch, of A and of B.
    pub(super) steps: [usize; 2],
    /// True if B is stored as its transpose.
    pub(super) transposed: bool,
}

impl Sizes {
    /// Sizes for operands of these shapes; `None` if an operand is broadcast along some, but not all batch axes.
    pub(super) fn new(a: &[usize], b: &[usize]) -> Option<Self> {
        let ([of_a @ .., m, k], [of_b @ .., l, n]) = (a, b) else { return None };
        let count = |axes: &[usize]| axes.iter().product::<usize>();
        let [all_a, all_b] = [count(of_a), count(of_b)];
        if k != l || (of_a != of_b && all_a != 1 && all_b != 1) {
            return None;
        }
        let step = |all: usize, n: usize| if all == 1 { 0 } else { n };
        let steps = [step(all_a, m * k), step(all_b, k * n)];
        Some(Self { batch: all_a.max(all_b), m: *m, k: *k, n: *n, steps, transposed: false })
    }

    /// Merges the batch axis into rows or columns if an operand is shared. With `stays`, A is loop-invariant, and its product
    /// with a column is that of a row with the transpose of A.
    pub(super) fn merged(self, stays: bool) -> Self {
        let Self { batch, m, k, n, steps: [a, b], .. } = self;
        let large = stays && m * k > FEW;
        if a == 0 && n == 1 && (batch > 1 || large) {
            // The columns of all products are the rows of one matrix.
            return Self { batch: 1, m: batch, k, n: m, steps: [0, 0], transposed: true };
        }
        // The rows of all products are the rows of one matrix.
        if b == 0 && batch > 1 { Self { batch: 1, m: batch * m, ..self } } else { self }
    }

    /// The sizes after the transpose of B has been stored.
    pub(super) fn turned(self) -> Self {
        Self { transposed: false, ..self }
    }

    /// Number of elements of A, of B and of the result.
    pub(super) fn lens(&self) -> [usize; 3] {
        let Self { batch, m, k, n, steps: [a, b], .. } = *self;
        let of = |step: usize, n: usize| (batch - 1) * step + n;
        [of(a, m * k), of(b, k * n), batch * m * n]
    }

    /// Kernel for these sizes.
    pub(super) fn kernel<T: FusedFloat>(&self) -> KernelFn<T> {
        macro_rules! table {
            ($($m:literal $k:literal $n:literal;)*) => {
                match (self.m, self.k, self.n) {
                    _ if self.transposed => other::<T>,
                    $(($m, $k, $n) => few::<T, $m, $k, $n>,)*
                    (_, _, 1) => column::<T>,
                    (1, _, _) => row::<T>,
                    _ => other::<T>,
                }
            };
        }
        table! {
            1 1 1; 1 1 2; 1 1 3; 1 1 4; 2 1 1; 2 1 2; 3 1 1; 3 1 3; 4 1 1; 4 1 4;
            1 2 1; 1 2 2; 1 2 3; 1 2 4; 2 2 1; 2 2 2; 3 2 1; 3 2 3; 4 2 1; 4 2 4; 2 2 3; 3 2 2; 2 2 4; 4 2 2;
            1 3 1; 1 3 2; 1 3 3; 2 3 1; 2 3 2; 2 3 3; 3 3 1; 3 3 2; 3 3 3;
            1 4 1; 1 4 2; 1 4 4; 2 4 1; 2 4 2; 2 4 4; 4 4 1; 4 4 2; 4 4 4;
        }
    }
}

/// Product with sizes known at compile time.
unsafe fn few<T: FusedFloat, const M: usize, const K: usize, const N: usize>(
    arena: *mut T,
    i: &ArenaInst<T>,
) {
    let Sizes { batch, steps, .. } = i.sizes;
    for t in 0..batch {
        // SAFETY: ranges of the instruction; the result overlaps no operand.
        unsafe {
            let (a, b) = (arena.add(i.a + t * steps[0]), arena.add(i.b + t * steps[1]));
            let out = arena.add(i.out + t * M * N);
            for r in 0..M {
                for c in 0..N {
                    let mut total = (*a.add(r * K)).mul(*b.add(c));
                    for k in 1..K {
                        total = (*a.add(r * K + k)).mul(*b.add(k * N + c)).add(total);
                    }
                    *out.add(r * N + c) = total;
                }
            }
        }
    }
}

/// Operands and result of one product of a batch.
struct One<'a, T> {
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [T],
}

/// # Safety
/// As for [`KernelFn`].
unsafe fn one<'a, T>(arena: *mut T, i: &ArenaInst<T>, t: usize) -> One<'a, T> {
    let Sizes { m, k, n, steps, .. } = i.sizes;
    // SAFETY: ranges of the instruction; the result overlaps no operand.
    unsafe {
        One {
            a: std::slice::from_raw_parts(arena.add(i.a + t * steps[0]), m * k),
            b: std::slice::from_raw_parts(arena.add(i.b + t * steps[1]), k * n),
            out: std::slice::from_raw_parts_mut(arena.add(i.out + t * m * n), m * n),
        }
    }
}

/// `out[m] = a[m, k] · b[k]`.
struct Column<'a, T>(One<'a, T>);

impl<T: FusedFloat> Loop for Column<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let One { a, b, out } = self.0;
        if b.len() < 16 { rows::<T, 4>(a, b, out) } else { rows::<T, 16>(a, b, out) }
    }
}

/// Number of lanes of the sums in products of rows with a vector.
#[inline(always)]
fn rows<T: FusedFloat, const LANES: usize>(a: &[T], x: &[T], out: &mut [T]) {
    let k = x.len();
    let (mut rows, mut outs) = (a.chunks_exact(4 * k), out.chunks_exact_mut(4));
    for (rows, out) in rows.by_ref().zip(outs.by_ref()) {
        out.copy_from_slice(&dots::<T, LANES, 4>(rows, x));
    }
    for (row, out) in rows.remainder().chunks_exact(k).zip(outs.into_remainder()) {
        [*out] = dots::<T, LANES, 1>(row, x);
    }
}

/// Products of `R` rows with a vector.
#[inline(always)]
fn dots<T: FusedFloat, const LANES: usize, const R: usize>(rows: &[T], x: &[T]) -> [T; R] {
    let k = x.len();
    let mut sums = [[T::ZERO; LANES]; R];
    let whole = k / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        let x = &x[at..at + LANES];
        for (r, sums) in sums.iter_mut().enumerate() {
            let row = &rows[r * k + at..][..LANES];
            for ((sum, &a), &x) in sums.iter_mut().zip(row).zip(x) {
                *sum = a.mul_add(x, *sum);
            }
        }
    }
    let mut out = [T::ZERO; R];
    for (r, (out, sums)) in out.iter_mut().zip(&mut sums).enumerate() {
        let rest = rows[r * k + whole..][..k - whole].iter().zip(&x[whole..]);
        for (sum, (&a, &x)) in sums.iter_mut().zip(rest) {
            *sum = a.mul_add(x, *sum);
        }
        let mut half = LANES / 2;
        while half > 0 {
            for j in 0..half {
                sums[j] = sums[j].add(sums[j + half]);
            }
            half /= 2;
        }
        *out = sums[0];
    }
    out
}

unsafe fn column<T: FusedFloat>(arena: *mut T, i: &ArenaInst<T>) {
    for t in 0..i.sizes.batch {
        // SAFETY: as the caller promises.
        dispatch(Column(unsafe { one(arena, i, t) }));
    }
}

/// `out[n] = a[k] · b[k, n]`.
struct RowProduct<'a, T>(One<'a, T>);

impl<T: FusedFloat> Loop for RowProduct<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let One { a, b, out } = self.0;
        let n = out.len();
        let mut from = 0;
        macro_rules! widths {
            ($($width:literal)*) => {
                $(while n - from >= $width {
                    let mut sums = [T::ZERO; $width];
                    for (l, &a) in a.iter().enumerate() {
                        let row = &b[l * n + from..][..$width];
                        for (sum, &b) in sums.iter_mut().zip(row) {
                            *sum = a.mul_add(b, *sum);
                        }
                    }
                    out[from..from + $width].copy_from_slice(&sums);
                    from += $width;
                })*
            };
        }
        widths!(32 16 8 4 2 1);
    }
}

unsafe fn row<T: FusedFloat>(arena: *mut T, i: &ArenaInst<T>) {
    for t in 0..i.sizes.batch {
        // SAFETY: as the caller promises.
        dispatch(RowProduct(unsafe { one(arena, i, t) }));
    }
}

/// Matrix product of the engine.
unsafe fn other<T: FusedFloat>(arena: *mut T, i: &ArenaInst<T>) {
    let Sizes { batch, m, k, n, steps, transposed } = i.sizes;
    let of_b = if transposed { (1, k as isize) } else { (n as isize, 1) };
    // SAFETY: ranges of the instruction; the result overlaps no operand.
    let (a, b, c) = unsafe {
        (
            MatRef::from_raw_parts(arena.add(i.a).cast_const(), (m, k), (k as isize, 1)),
            MatRef::from_raw_parts(arena.add(i.b).cast_const(), (k, n), of_b),
            MatMut::from_raw_parts(arena.add(i.out), (m, n), (n as isize, 1)),
        )
    };
    let axis =
        BatchAxis { size: batch, a: steps[0] as isize, b: steps[1] as isize, c: (m * n) as isize };
    let Ok(product) = Product::new(a, b, c) else { unreachable!("shapes agree") };
    let axes = [axis];
    // SAFETY: as above, for every matrix of the batch.
    let mut all = unsafe { product.batch(&axes) };
    all.run::<Standard>();
}
