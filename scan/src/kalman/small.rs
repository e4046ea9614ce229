//! Small dense matrices and the covariance prediction of the filter.
//!
//! Matrices are arrays of rows. Common sizes have unrolled loops with matrices in registers; all other sizes use the
//! largest arrays with loops over the used part.

use t4a_algebra::Float;

/// Maximum number of states and of observed components.
pub(super) const MOST: usize = 8;

/// A matrix in the upper left block of an `R × C` array.
pub(super) type SmallMatrix<T, const R: usize, const C: usize> = [[T; C]; R];

pub(super) fn zeros<T: Float, const R: usize, const C: usize>() -> SmallMatrix<T, R, C> {
    [[T::ZERO; C]; R]
}

/// `c_ij ← c_ij + Σ_l a_il b_lj`; the closure returns `(a_il, b_lj)` for i, l, j, which expresses transposes and signs.
#[inline(always)]
pub(super) fn add<T: Float, const R: usize, const C: usize>(
    c: &mut SmallMatrix<T, R, C>,
    [m, k, n]: [usize; 3],
    term: impl Fn(usize, usize, usize) -> (T, T),
) {
    for i in 0..m {
        for l in 0..k {
            for j in 0..n {
                let (a, b) = term(i, l, j);
                c[i][j] = a.mul_add(b, c[i][j]);
            }
        }
    }
}

/// Matrix product: [`add`] to zeros.
#[inline(always)]
pub(super) fn product<T: Float, const R: usize, const C: usize>(
    sizes: [usize; 3],
    term: impl Fn(usize, usize, usize) -> (T, T),
) -> SmallMatrix<T, R, C> {
    let mut c = zeros();
    add(&mut c, sizes, term);
    c
}

/// `c_i ← c_i + Σ_l a_il b_l`.
#[inline(always)]
pub(super) fn add_vector<T: Float, const R: usize>(
    c: &mut [T; R],
    [m, k]: [usize; 2],
    term: impl Fn(usize, usize) -> (T, T),
) {
    for l in 0..k {
        for i in 0..m {
            let (a, b) = term(i, l);
            c[i] = a.mul_add(b, c[i]);
        }
    }
}

/// A matrix loaded from its `r·c` elements.
#[inline(always)]
pub(super) fn load<T: Float, const R: usize, const C: usize>(
    data: &[T],
    [r, c]: [usize; 2],
) -> SmallMatrix<T, R, C> {
    let mut x = zeros();
    for (x, row) in x[..r].iter_mut().zip(data.chunks_exact(c)) {
        x[..c].copy_from_slice(row);
    }
    x
}

/// A vector loaded from its `r` elements.
#[inline(always)]
pub(super) fn load_vector<T: Float, const R: usize>(data: &[T], r: usize) -> [T; R] {
    let mut x = [T::ZERO; R];
    x[..r].copy_from_slice(&data[..r]);
    x
}

/// Stores the elements of a matrix.
#[inline(always)]
pub(super) fn store<T: Float, const R: usize, const C: usize>(
    x: &SmallMatrix<T, R, C>,
    data: &mut [T],
    [r, c]: [usize; 2],
) {
    for (x, row) in x[..r].iter().zip(data.chunks_exact_mut(c)) {
        row.copy_from_slice(&x[..c]);
    }
}

/// `data ← data + x`.
#[inline(always)]
pub(super) fn store_sum<T: Float, const R: usize, const C: usize>(
    x: &SmallMatrix<T, R, C>,
    data: &mut [T],
    [r, c]: [usize; 2],
) {
    for (x, row) in x[..r].iter().zip(data.chunks_exact_mut(c)) {
        for (x, sum) in x.iter().zip(row) {
            *sum = sum.add(*x);
        }
    }
}

/// Replaces S by `S⁻¹` and returns the pivots, whose product is |S|; NaN if S is not positive definite.
#[inline(always)]
fn invert<T: Float, const M: usize>(a: &mut SmallMatrix<T, M, M>, m: usize) -> [T; M] {
    let mut pivots = [T::ONE; M];
    for k in 0..m {
        let pivot = a[k][k];
        let pivot = if pivot > T::ZERO { pivot } else { T::NAN };
        pivots[k] = pivot;
        let scale = pivot.recip();
        for i in 0..m {
            if i == k {
                continue;
            }
            let factor = a[i][k].mul(scale);
            for j in 0..m {
                if j != k {
                    a[i][j] = factor.neg().mul_add(a[k][j], a[i][j]);
                }
            }
            a[i][k] = factor.neg();
        }
        for j in 0..m {
            a[k][j] = if j == k { scale } else { a[k][j].mul(scale) };
        }
    }
    pivots
}

/// Elements of F, Q, H, R and the numbers of steps, states and observed components.
#[derive(Clone, Copy)]
pub(super) struct SystemSlices<'a, T> {
    pub(super) f: &'a [T],
    pub(super) q: &'a [T],
    pub(super) h: &'a [T],
    pub(super) r: &'a [T],
    pub(super) n: usize,
    pub(super) d: usize,
    pub(super) m: usize,
}

/// The system as matrices.
#[derive(Clone, Copy)]
pub(super) struct SystemMatrices<T, const D: usize, const M: usize> {
    pub(super) f: SmallMatrix<T, D, D>,
    pub(super) h: SmallMatrix<T, M, D>,
    q: SmallMatrix<T, D, D>,
    r: SmallMatrix<T, M, M>,
    d: usize,
    m: usize,
}

/// Predicted covariance and its derived matrices.
pub(super) struct Predicted<T, const D: usize, const M: usize> {
    /// `P⁻`.
    pub(super) p: SmallMatrix<T, D, D>,
    /// `G = P⁻ Hᵀ`.
    pub(super) g: SmallMatrix<T, D, M>,
    /// `W = S⁻¹`.
    pub(super) w: SmallMatrix<T, M, M>,
    /// Pivots of the elimination; their product is |S|.
    pub(super) pivots: [T; M],
}

impl<T: Float, const D: usize, const M: usize> SystemMatrices<T, D, M> {
    #[inline(always)]
    pub(super) fn new(given: &SystemSlices<'_, T>) -> Self {
        let SystemSlices { f, q, h, r, d, m, .. } = *given;
        Self {
            f: load(f, [d, d]),
            q: load(q, [d, d]),
            h: load(h, [m, d]),
            r: load(r, [m, m]),
            d,
            m,
        }
    }

    /// Numbers of states and of observed components: compile-time constants except for the largest arrays.
    #[inline(always)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        if D == MOST { (self.d.min(D), self.m.min(M)) } else { (D, M) }
    }

    #[inline(always)]
    pub(super) fn predict(&self, p: &SmallMatrix<T, D, D>) -> Predicted<T, D, M> {
        let ((d, m), Self { f, h, .. }) = (self.sizes(), self);
        let fp: SmallMatrix<T, D, D> = product([d, d, d], |i, l, j| (f[i][l], p[l][j]));
        let mut p = self.q;
        add(&mut p, [d, d, d], |i, l, j| (fp[i][l], f[j][l]));
        let g: SmallMatrix<T, D, M> = product([d, d, m], |i, l, j| (p[i][l], h[j][l]));
        let mut w = self.r;
        add(&mut w, [m, d, m], |i, l, j| (h[i][l], g[l][j]));
        let pivots = invert(&mut w, m);
        Predicted { p, g, w, pivots }
    }

    /// `F x` and `y − H F x`.
    #[inline(always)]
    pub(super) fn innovation(&self, x: &[T; D], y: &[T]) -> ([T; D], [T; M]) {
        let ((d, m), Self { f, h, .. }) = (self.sizes(), self);
        let mut before = [T::ZERO; D];
        add_vector(&mut before, [d, d], |i, l| (f[i][l], x[l]));
        let mut v = load_vector(y, m);
        add_vector(&mut v, [m, d], |i, l| (h[i][l].neg(), before[l]));
        (before, v)
    }
}

/// Calls a method with sizes as constants for common cases: a position with derivatives, observed in one, two or three
/// dimensions.
macro_rules! sized {
    ($given:expr, $this:ident.$method:ident()) => {
        match ($given.d, $given.m) {
            (1, 1) => $this.$method::<1, 1>(),
            (2, 1) => $this.$method::<2, 1>(),
            (3, 1) => $this.$method::<3, 1>(),
            (4, 2) => $this.$method::<4, 2>(),
            (6, 3) => $this.$method::<6, 3>(),
            _ => $this.$method::<{ super::small::MOST }, { super::small::MOST }>(),
        }
    };
}
pub(super) use sized;
