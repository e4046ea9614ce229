//! Single-shift QR iteration on a complex Hessenberg matrix.
//!
//! A sweep from row `m` to `hi` iterates over the columns: each column is multiplied by all preceding rotations from
//! the left, then combined with its neighbour, so that memory is accessed in order.
//!
//! Reference: LAPACK `zlahqr`; M. Ahues, F. Tisseur 1997 (deflation); G. Golub, C. Van Loan, *Matrix
//! Computations*, section 7.5.

use t4a_algebra::c64;

use super::divided::quotient;
use super::square::{SquareMatrix, ZERO};

/// `[c, s; −s̄, c]`.
#[derive(Clone, Copy)]
pub(super) struct Rotation {
    c: f64,
    s: c64,
}

impl Rotation {
    /// The rotation with `G (f, g) = (r, 0)`, and `r`.
    pub(super) fn of(f: c64, g: c64) -> (Self, c64) {
        let (f_abs, g_abs) = (f.norm(), g.norm());
        if g_abs == 0.0 {
            return (Self { c: 1.0, s: ZERO }, f);
        }
        if f_abs == 0.0 {
            return (Self { c: 0.0, s: g.conj() / g_abs }, c64::new(g_abs, 0.0));
        }
        let length = f_abs.hypot(g_abs);
        let phase = f / f_abs;
        (Self { c: f_abs / length, s: phase * (g.conj() / length) }, phase * length)
    }

    pub(super) fn left(self, x: &mut [c64], k: usize) {
        let (a, b) = (x[k], x[k + 1]);
        x[k] = self.c * a + self.s * b;
        x[k + 1] = self.c * b - self.s.conj() * a;
    }

    pub(super) fn right(self, x: &mut [c64], y: &mut [c64]) {
        let conj = self.s.conj();
        for (x, y) in x.iter_mut().zip(y) {
            let (a, b) = (*x, *y);
            *x = self.c * a + conj * b;
            *y = self.c * b - self.s * a;
        }
    }
}

/// `|re| + |im|`.
pub(super) fn size(x: c64) -> f64 {
    x.re.abs() + x.im.abs()
}

/// Overwrites the Hessenberg matrix `h` with its triangular factor and `q` with `q` times the unitary one; `false`
/// without convergence. The norm of `h` must be far from both ends of the range.
pub(super) fn triangularise(h: &mut SquareMatrix, q: &mut SquareMatrix) -> bool {
    let n = h.n();
    let tiny = tiny(h);
    let mut rotations = Vec::with_capacity(n);
    let (mut hi, mut steps) = (n.saturating_sub(1), 0);
    while hi > 0 {
        let lo = (1..=hi).rev().find(|&k| negligible(h, k, tiny)).unwrap_or(0);
        if lo > 0 {
            h[(lo, lo - 1)] = ZERO;
        }
        if lo == hi {
            (hi, steps) = (hi - 1, 0);
            continue;
        }
        steps += 1;
        if steps > 30 * n.max(10) {
            return false;
        }
        let shift = match steps % 20 {
            // Exceptional shifts, when the standard ones cycle.
            10 => h[(lo, lo)] + 0.75 * size(h[(lo + 1, lo)]),
            0 => h[(hi, hi)] + 0.75 * size(h[(hi, hi - 1)]),
            _ => wilkinson(h, hi),
        };
        sweep(h, q, lo, hi, shift, &mut rotations);
    }
    true
}

/// Elements below this are negligible for a matrix of this norm.
pub(super) fn tiny(h: &SquareMatrix) -> f64 {
    f64::MIN_POSITIVE / f64::EPSILON * h.n() as f64 * h.largest()
}

/// True if the element below diagonal entry `k − 1` is negligible.
pub(super) fn negligible(h: &SquareMatrix, k: usize, tiny: f64) -> bool {
    let below = size(h[(k, k - 1)]);
    if below <= tiny {
        return true;
    }
    let mut scale = size(h[(k - 1, k - 1)]) + size(h[(k, k)]);
    if scale == 0.0 {
        let above = if k >= 2 { size(h[(k - 1, k - 2)]) } else { 0.0 };
        let behind = if k + 1 < h.n() { size(h[(k + 1, k)]) } else { 0.0 };
        scale = above + behind;
    }
    if below > f64::EPSILON * scale {
        return false;
    }
    let above = size(h[(k - 1, k)]);
    let (ab, ba) = (below.max(above), below.min(above));
    let (gap, last) = (size(h[(k - 1, k - 1)] - h[(k, k)]), size(h[(k, k)]));
    let (aa, bb) = (last.max(gap), last.min(gap));
    let sum = aa + ab;
    ba * (ab / sum) <= tiny.max(f64::EPSILON * (bb * (aa / sum)))
}

/// Wilkinson shift: the eigenvalue of the last `2 × 2` block that is closer to its last entry.
fn wilkinson(h: &SquareMatrix, hi: usize) -> c64 {
    let last = h[(hi, hi)];
    let u = h[(hi - 1, hi)].sqrt() * h[(hi, hi - 1)].sqrt();
    if u == ZERO {
        return last;
    }
    let x = 0.5 * (h[(hi - 1, hi - 1)] - last);
    let scale = size(u).max(size(x));
    let mut y = scale * ((x / scale).powi(2) + (u / scale).powi(2)).sqrt();
    if x.re * y.re + x.im * y.im < 0.0 {
        y = -y;
    }
    last - u * quotient(u, x + y)
}

fn sweep(
    h: &mut SquareMatrix,
    q: &mut SquareMatrix,
    lo: usize,
    hi: usize,
    shift: c64,
    rotations: &mut Vec<Rotation>,
) {
    let n = h.n();
    // Start at the last row where two consecutive subdiagonal elements are small.
    let small = |m: usize| {
        let first = h[(m, m)] - shift;
        let scale = size(first) + size(h[(m + 1, m)]);
        let (first, second) = (size(first) / scale, size(h[(m + 1, m)]) / scale);
        let diagonal = size(h[(m, m)]) + size(h[(m + 1, m + 1)]);
        size(h[(m, m - 1)]) * second <= f64::EPSILON * first * diagonal
    };
    let start = (lo + 1..hi).rev().find(|&m| small(m)).unwrap_or(lo);
    rotations.clear();
    for k in start..hi {
        let (rotation, r) = match k == start {
            true => Rotation::of(h[(k, k)] - shift, h[(k + 1, k)]),
            false => Rotation::of(h[(k, k - 1)], h[(k + 1, k - 1)]),
        };
        if k > start {
            h[(k, k - 1)] = r;
            h[(k + 1, k - 1)] = ZERO;
        } else if start > lo {
            h[(k, k - 1)] *= rotation.c;
        }
        rotations.push(rotation);
        let (x, y) = h.neighbours(k);
        rotation.left(x, k);
        rotations.iter().enumerate().for_each(|(i, rotation)| rotation.left(y, start + i));
        let rows = (k + 3).min(hi + 1);
        rotation.right(&mut x[..rows], &mut y[..rows]);
        let (x, y) = q.neighbours(k);
        rotation.right(x, y);
    }
    for j in hi + 1..n {
        let x = h.col_mut(j);
        rotations.iter().enumerate().for_each(|(i, rotation)| rotation.left(x, start + i));
    }
}
