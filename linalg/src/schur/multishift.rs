//! Multishift QR iteration on a large complex Hessenberg matrix.
//!
//! A sweep chases a chain of bulges, one for each shift and two rows apart, down the diagonal. Its rotations are
//! those of successive single-shift sweeps. They act on a window around the chain first, and on the rest of the
//! matrix by products with the accumulated rotation. Between sweeps a window at the end is made triangular:
//! eigenvalues whose spike element is negligible have converged (aggressive early deflation), the others are the next
//! shifts.
//!
//! Reference: K. Braman, R. Byers, R. Mathias 2002, parts I and II; LAPACK `zlaqr0`, `zlaqr3`, `ztrexc`.

use std::ops::Range;

use faer::Par;
use t4a_algebra::c64;
use t4a_linalg_kernels::Kernels;

use super::hessenberg::{reduce, reflector};
use super::iteration::{self, Rotation, negligible, size, tiny};
use super::square::{SquareMatrix, ZERO};

/// Size of active blocks from which several shifts are used. Bench: `linalg`, rows `schur`.
pub(super) const LARGE: usize = 120;

/// The matrix to triangularise, the unitary factor, and workspace of products.
struct SchurReduction<'a> {
    h: &'a mut SquareMatrix,
    q: &'a mut SquareMatrix,
    buffer: Vec<c64>,
}

/// Overwrites the Hessenberg matrix `h` with its triangular factor and `q` with `q` times the unitary one; `false`
/// without convergence. The norm of `h` must be far from both ends of the range.
pub(super) fn triangularise(h: &mut SquareMatrix, q: &mut SquareMatrix) -> bool {
    let n = h.n();
    let tiny = tiny(h);
    let mut r = SchurReduction { h, q, buffer: Vec::new() };
    let (mut end, mut steps) = (n, 0);
    while end > 0 {
        let start = (1..end).rev().find(|&k| negligible(r.h, k, tiny)).unwrap_or(0);
        if start > 0 {
            r.h[(start, start - 1)] = ZERO;
        }
        if end - start <= LARGE {
            if !r.finish(start..end) {
                return false;
            }
            (end, steps) = (start, 0);
            continue;
        }
        steps += 1;
        if steps > 30 * n {
            return false;
        }
        let count = shifts(end - start);
        let Some((converged, mut shifts)) = r.deflate(start..end, count, tiny) else {
            return false;
        };
        end -= converged;
        if converged > 0 {
            steps = 0;
        }
        // Enough of the window has converged to repeat the deflation before a sweep.
        if 7 * converged > count || end - start <= LARGE {
            continue;
        }
        if steps > 0 && steps % 6 == 0 {
            // Exceptional shifts break cycles of the iteration.
            let other = |k: usize| r.h[(k, k)] + 0.75 * size(r.h[(k, k - 1)]);
            shifts = (end - count..end).map(other).collect();
        }
        r.sweep(start..end, &shifts);
    }
    true
}

/// Number of shifts for an active block of size n, and size of the deflation window.
fn shifts(n: usize) -> usize {
    match n {
        0..=149 => 10,
        150..=589 => (n as f64 / (n as f64).log2()) as usize,
        _ => 64,
    }
}

/// Copy of a diagonal block.
fn window(h: &SquareMatrix, range: &Range<usize>) -> SquareMatrix {
    let start = range.start;
    let mut block = SquareMatrix::zeros(range.len());
    for j in range.clone() {
        block.col_mut(j - start).copy_from_slice(&h.col(j)[range.clone()]);
    }
    block
}

impl SchurReduction<'_> {
    /// Writes a diagonal block transformed by `w`, and transforms the rest of its rows and columns.
    fn turn(&mut self, range: Range<usize>, block: &SquareMatrix, w: &SquareMatrix) {
        let n = self.h.n();
        for j in range.clone() {
            self.h.col_mut(j)[range.clone()].copy_from_slice(block.col(j - range.start));
        }
        if range.end < n {
            let columns = range.end..n;
            self.buffer.clear();
            for j in columns.clone() {
                self.buffer.extend_from_slice(&self.h.col(j)[range.clone()]);
            }
            let from =
                faer::MatRef::from_column_major_slice(&self.buffer, range.len(), columns.len());
            let to = self.h.as_mut().submatrix_mut(
                range.start,
                columns.start,
                range.len(),
                columns.len(),
            );
            <c64 as Kernels>::matmul(to, w.adjoint().as_ref(), from, Par::Seq);
        }
        for (x, rows) in [(&mut *self.h, range.start), (&mut *self.q, n)] {
            if rows == 0 {
                continue;
            }
            self.buffer.clear();
            for j in range.clone() {
                self.buffer.extend_from_slice(&x.col(j)[..rows]);
            }
            let from = faer::MatRef::from_column_major_slice(&self.buffer, rows, range.len());
            let to = x.as_mut().submatrix_mut(0, range.start, rows, range.len());
            <c64 as Kernels>::matmul(to, from, w.as_ref(), Par::Seq);
        }
    }

    /// Triangularises a small block.
    fn finish(&mut self, range: Range<usize>) -> bool {
        if range.len() < 2 {
            return true;
        }
        let (mut block, mut w) = (window(self.h, &range), SquareMatrix::identity(range.len()));
        if !iteration::triangularise(&mut block, &mut w) {
            return false;
        }
        self.turn(range, &block, &w);
        true
    }

    /// Number of eigenvalues at the end that have converged, and the shifts; `None` without convergence of the
    /// window.
    fn deflate(
        &mut self,
        range: Range<usize>,
        count: usize,
        tiny: f64,
    ) -> Option<(usize, Vec<c64>)> {
        let last = range.end - count..range.end;
        let (mut t, mut v) = (window(self.h, &last), SquareMatrix::identity(count));
        if !iteration::triangularise(&mut t, &mut v) {
            return None;
        }
        // The active block is larger than the window, so the window has a preceding column.
        let spike = self.h[(last.start, last.start - 1)];
        let (mut kept, mut tested) = (count, 0);
        while tested < kept {
            let end = kept - 1;
            let value = match size(t[(end, end)]) {
                0.0 => size(spike),
                value => value,
            };
            if size(spike) * size(v[(0, end)]) <= tiny.max(f64::EPSILON * value) {
                kept -= 1;
            } else {
                (tested..end).rev().for_each(|k| swap(&mut t, &mut v, k));
                tested += 1;
            }
        }
        let shifts = (0..kept).map(|k| t[(k, k)]).collect();
        if kept == count {
            return Some((0, shifts));
        }
        if kept > 1 {
            gather(&mut t, &mut v, kept);
        }
        self.h[(last.start, last.start - 1)] =
            if kept == 0 { ZERO } else { spike * v[(0, 0)].conj() };
        self.turn(last, &t, &v);
        Some((count - kept, shifts))
    }

    /// Sweep with all shifts from the first row of a block to its last.
    fn sweep(&mut self, range: Range<usize>, shifts: &[c64]) {
        let (first, last) = (range.start, range.end - 1);
        let span = 2 * shifts.len().saturating_sub(1);
        let stride = (2 * shifts.len()).max(8);
        let steps = last - first + span;
        for group in (0..steps).step_by(stride) {
            let group = group..(group + stride).min(steps);
            // Rotations of rows k and k + 1 affect columns k − 1 to k + 1 and rows up to k + 2.
            let low = first + group.start.saturating_sub(span);
            let high = (first + group.end - 1).min(last - 1);
            let rows = low.saturating_sub(1).max(first)..(high + 2).min(last) + 1;
            let (mut block, mut w) = (window(self.h, &rows), SquareMatrix::identity(rows.len()));
            for step in group {
                for (i, &shift) in shifts.iter().enumerate() {
                    let Some(k) = (first + step).checked_sub(2 * i) else { break };
                    if k < first {
                        break;
                    }
                    if k < last {
                        let shift = (k == first).then_some(shift);
                        rotate(&mut block, &mut w, k - rows.start, shift);
                    }
                }
            }
            self.turn(rows, &block, &w);
        }
    }
}

/// Rotates rows and columns `k` and `k + 1`: starts a bulge from its shift, or chases it.
fn rotate(h: &mut SquareMatrix, w: &mut SquareMatrix, k: usize, shift: Option<c64>) {
    let n = h.n();
    let rotation = match shift {
        Some(shift) => Rotation::of(h[(k, k)] - shift, h[(k + 1, k)]).0,
        None => {
            let (rotation, r) = Rotation::of(h[(k, k - 1)], h[(k + 1, k - 1)]);
            h[(k, k - 1)] = r;
            h[(k + 1, k - 1)] = ZERO;
            rotation
        }
    };
    (k..n).for_each(|j| rotation.left(h.col_mut(j), k));
    let rows = (k + 3).min(n);
    let (x, y) = h.neighbours(k);
    rotation.right(&mut x[..rows], &mut y[..rows]);
    let (x, y) = w.neighbours(k);
    rotation.right(x, y);
}

/// Exchanges two neighbouring diagonal entries of a triangular matrix.
fn swap(t: &mut SquareMatrix, v: &mut SquareMatrix, k: usize) {
    let (first, second) = (t[(k, k)], t[(k + 1, k + 1)]);
    let (rotation, _) = Rotation::of(t[(k, k + 1)], second - first);
    (k + 2..t.n()).for_each(|j| rotation.left(t.col_mut(j), k));
    let (x, y) = t.neighbours(k);
    rotation.right(&mut x[..k], &mut y[..k]);
    t[(k, k)] = second;
    t[(k + 1, k + 1)] = first;
    let (x, y) = v.neighbours(k);
    rotation.right(x, y);
}

/// Rotates the leading `kept` eigenvalues so that only the first has a spike element, and reduces their block to
/// Hessenberg form.
fn gather(t: &mut SquareMatrix, v: &mut SquareMatrix, kept: usize) {
    let n = t.n();
    let mut u: Vec<c64> = (0..kept).map(|i| v[(0, i)].conj()).collect();
    if reflector(&mut u).is_some() {
        for j in 0..n {
            let x = &mut t.col_mut(j)[..kept];
            let dot: c64 = u.iter().zip(&*x).map(|(u, x)| u.conj() * x).sum();
            x.iter_mut().zip(&u).for_each(|(x, u)| *x -= 2.0 * dot * u);
        }
        for x in [&mut *t, &mut *v] {
            for i in 0..n {
                let dot: c64 = u.iter().enumerate().map(|(j, u)| x[(i, j)] * u).sum();
                u.iter().enumerate().for_each(|(j, u)| x[(i, j)] -= 2.0 * dot * u.conj());
            }
        }
    }
    let mut block = window(t, &(0..kept));
    let w = reduce(&mut block);
    // Within the window: rows next to the block, and all of V.
    let mut inside = SchurReduction { h: t, q: v, buffer: Vec::new() };
    inside.turn(0..kept, &block, &w);
}
