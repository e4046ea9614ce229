//! Matrices that depend on two parameters to first order in each, in double precision, by naive loops.

use t4a_algebra::c64;

/// Row-major `m × n` matrix.
#[derive(Clone, Debug)]
pub(super) struct Mat {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) x: Vec<c64>,
}

impl Mat {
    pub(super) fn from_fn(m: usize, n: usize, f: impl Fn(usize, usize) -> c64) -> Self {
        Self { m, n, x: (0..m * n).map(|i| f(i / n, i % n)).collect() }
    }

    pub(super) fn diagonal(x: &[c64]) -> Self {
        let at = |i: usize, j: usize| if i == j { x[i] } else { c64::new(0.0, 0.0) };
        Self::from_fn(x.len(), x.len(), at)
    }

    pub(super) fn unit(n: usize) -> Self {
        Self::diagonal(&vec![c64::new(1.0, 0.0); n])
    }

    pub(super) fn at(&self, i: usize, j: usize) -> c64 {
        self.x[i * self.n + j]
    }

    pub(super) fn times(&self, rhs: &Self) -> Self {
        assert_eq!(self.n, rhs.m);
        Self::from_fn(self.m, rhs.n, |i, j| (0..self.n).map(|k| self.at(i, k) * rhs.at(k, j)).sum())
    }

    /// `A + c B`.
    pub(super) fn plus(&self, c: f64, rhs: &Self) -> Self {
        assert_eq!((self.m, self.n), (rhs.m, rhs.n));
        Self::from_fn(self.m, self.n, |i, j| self.at(i, j) + rhs.at(i, j) * c)
    }

    pub(super) fn scaled(&self, c: f64) -> Self {
        Self::from_fn(self.m, self.n, |i, j| self.at(i, j) * c)
    }

    pub(super) fn adjoint(&self) -> Self {
        Self::from_fn(self.n, self.m, |i, j| self.at(j, i).conj())
    }

    pub(super) fn herm(&self) -> Self {
        self.plus(1.0, &self.adjoint()).scaled(0.5)
    }

    pub(super) fn norm(&self) -> f64 {
        self.x.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt()
    }

    /// `Re⟨A, B⟩`.
    pub(super) fn inner(&self, rhs: &Self) -> f64 {
        self.x.iter().zip(&rhs.x).map(|(a, b)| (a.conj() * b).re).sum()
    }

    /// Gauss–Jordan elimination with pivoting.
    fn inverse(&self) -> Self {
        let n = self.n;
        let (mut a, mut b) = (self.clone(), Self::unit(n));
        for k in 0..n {
            let size = |i: &usize| a.at(*i, k).norm();
            let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j))).unwrap();
            for x in [&mut a, &mut b] {
                (0..n).for_each(|j| x.x.swap(k * n + j, pivot * n + j));
            }
            let p = a.at(k, k);
            for x in [&mut a, &mut b] {
                (0..n).for_each(|j| x.x[k * n + j] /= p);
            }
            for i in (0..n).filter(|&i| i != k) {
                let f = a.at(i, k);
                for x in [&mut a, &mut b] {
                    (0..n).for_each(|j| {
                        let y = x.x[k * n + j];
                        x.x[i * n + j] -= f * y;
                    });
                }
            }
        }
        b
    }
}

/// `X(s, t) = X₀ + s X₁ + t X₂ + s t X₃` up to higher orders, and for each of the four terms the sum of the norms of
/// its summands.
#[derive(Clone, Debug)]
pub(super) struct Jet {
    pub(super) terms: [Mat; 4],
    pub(super) sizes: [f64; 4],
}

/// Pairs of terms that contribute to each term of a product.
const PRODUCTS: [&[(usize, usize)]; 4] =
    [&[(0, 0)], &[(0, 1), (1, 0)], &[(0, 2), (2, 0)], &[(0, 3), (1, 2), (2, 1), (3, 0)]];

impl Jet {
    pub(super) fn new(terms: [Mat; 4]) -> Self {
        let sizes = [0, 1, 2, 3].map(|i| terms[i].norm());
        Self { terms, sizes }
    }

    pub(super) fn unit(n: usize) -> Self {
        let zero = Mat::unit(n).scaled(0.0);
        Self::new([Mat::unit(n), zero.clone(), zero.clone(), zero])
    }

    fn each(&self, f: impl Fn(&Mat) -> Mat, c: f64) -> Self {
        Self { terms: [0, 1, 2, 3].map(|i| f(&self.terms[i])), sizes: self.sizes.map(|x| c * x) }
    }

    pub(super) fn adjoint(&self) -> Self {
        self.each(Mat::adjoint, 1.0)
    }

    pub(super) fn scaled(&self, c: f64) -> Self {
        self.each(|x| x.scaled(c), c.abs())
    }

    pub(super) fn herm(&self) -> Self {
        self.each(Mat::herm, 1.0)
    }

    /// `[0 A; Aᴴ 0]`.
    pub(super) fn dilation(&self) -> Self {
        let whole = |a: &Mat| {
            let m = a.m;
            Mat::from_fn(m + a.n, m + a.n, |i, j| match (i < m, j < m) {
                (true, false) => a.at(i, j - m),
                (false, true) => a.at(j, i - m).conj(),
                _ => c64::new(0.0, 0.0),
            })
        };
        self.each(whole, 2.0)
    }

    pub(super) fn plus(&self, c: f64, rhs: &Self) -> Self {
        Self {
            terms: [0, 1, 2, 3].map(|i| self.terms[i].plus(c, &rhs.terms[i])),
            sizes: [0, 1, 2, 3].map(|i| self.sizes[i] + c.abs() * rhs.sizes[i]),
        }
    }

    pub(super) fn times(&self, rhs: &Self) -> Self {
        let term = |pairs: &[(usize, usize)]| {
            let products = pairs.iter().map(|&(i, j)| self.terms[i].times(&rhs.terms[j]));
            products.reduce(|a, b| a.plus(1.0, &b)).unwrap()
        };
        let size = |pairs: &[(usize, usize)]| {
            pairs.iter().map(|&(i, j)| self.sizes[i] * rhs.sizes[j]).sum()
        };
        Self { terms: PRODUCTS.map(term), sizes: PRODUCTS.map(size) }
    }

    pub(super) fn inverse(&self) -> Self {
        let b = self.terms[0].inverse();
        let [b1, b2] = [1, 2].map(|i| b.times(&self.terms[i]).times(&b).scaled(-1.0));
        let b3 = b.times(&self.terms[3]).times(&b).scaled(-1.0);
        let b3 = b3.plus(-1.0, &b1.times(&self.terms[2]).times(&b));
        let b3 = b3.plus(-1.0, &b2.times(&self.terms[1]).times(&b));
        Self::new([b, b1, b2, b3])
    }

    /// `eˣ` by the series of `x/2ᵏ` and repeated squaring.
    pub(super) fn exp(&self) -> Self {
        let n = self.terms[0].n;
        let squares = (self.terms[0].norm().log2() + 2.0).max(0.0) as i32;
        let x = self.scaled(0.5f64.powi(squares));
        let (mut sum, mut term) = (Self::unit(n), Self::unit(n));
        for k in 1..24 {
            term = term.times(&x).scaled(1.0 / f64::from(k));
            sum = sum.plus(1.0, &term);
        }
        (0..squares).fold(sum, |sum, _| sum.times(&sum))
    }

    /// Projector onto the eigenvectors of a Hermitian matrix with positive eigenvalues, by Newton's iteration for the
    /// matrix sign.
    pub(super) fn projector(&self) -> Self {
        let mut sign = self.clone();
        for _ in 0..64 {
            let next = sign.plus(1.0, &sign.inverse()).scaled(0.5);
            let moved = [0, 1, 2, 3].map(|i| next.terms[i].plus(-1.0, &sign.terms[i]).norm());
            let still = (0..4).all(|i| moved[i] <= 4.0 * f64::EPSILON * next.terms[i].norm());
            sign = next;
            if still {
                break;
            }
        }
        let unit = Self::unit(self.terms[0].n);
        Self::new(unit.plus(1.0, &sign).scaled(0.5).terms)
    }
}
