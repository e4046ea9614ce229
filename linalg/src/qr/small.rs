//! Householder QR of matrices with at most eight rows and columns.
//!
//! Columns are padded with zeros to eight elements, so that all loops over rows have constant length and stay in
//! registers: a matrix of 8 × 8 takes less time than the checks and the blocking of a call of faer (bench `linalg`).
//!
//! Reference: Golub, Van Loan, Matrix Computations (2013), 5.1 and 5.2.

use std::array::from_fn;

use t4a_algebra::simd::Loop;
use t4a_algebra::{Field, Float, Numeric};

use crate::scalar::{LinalgScalar, min_positive, real};

/// Largest number of rows and columns.
pub(super) const SIZE: usize = 8;

type Column<T> = [T; SIZE];

/// `Σᵢ conj(vᵢ) xᵢ`, summed pairwise.
#[inline(always)]
fn dot<T: LinalgScalar>(v: &Column<T>, x: &Column<T>) -> T {
    let mut terms: Column<T> = from_fn(|i| Numeric::mul(Field::conj(v[i]), x[i]));
    for half in [4, 2, 1] {
        for i in 0..half {
            terms[i] = Numeric::add(terms[i], terms[i + half]);
        }
    }
    terms[0]
}

/// Reflector `I − τ v vᴴ`.
#[derive(Clone, Copy)]
struct Reflector<T: LinalgScalar> {
    v: Column<T>,
    tau: T::R,
}

impl<T: LinalgScalar> Reflector<T> {
    #[inline(always)]
    fn apply(&self, x: &mut Column<T>) {
        let factor = Numeric::mul(real(self.tau), dot(&self.v, x));
        for i in 0..SIZE {
            x[i] = Numeric::sub(x[i], Numeric::mul(self.v[i], factor));
        }
    }
}

/// Overwrites `q` (`m` rows) and `r` (`min(m, n)` rows or more), both column-major, with the factors of the `m × n`
/// matrix `a`; the diagonal of `R` is real and ≥ 0. `false` if a column is so small that squares of its elements
/// underflow; the results are then not usable.
pub(super) struct SmallQr<'a, T> {
    pub(super) a: &'a [T],
    pub(super) rows: usize,
    pub(super) q: &'a mut [T],
    pub(super) r: &'a mut [T],
}

impl<T: LinalgScalar> Loop for SmallQr<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let m = self.rows;
        let n = self.a.len() / m;
        let k = m.min(n);
        let width = self.q.len() / m;
        let mut x = [[T::ZERO; SIZE]; SIZE];
        for (x, a) in x.iter_mut().zip(self.a.chunks_exact(m)) {
            x[..m].copy_from_slice(a);
        }
        let zero = <T::R as Numeric>::ZERO;
        let least = Numeric::mul(min_positive::<T>(), Numeric::from_f64(2f64.powi(64)));
        let mut reflectors = [Reflector { v: [T::ZERO; SIZE], tau: zero }; SIZE];
        // Phases of the diagonal of R.
        let mut phases = [T::ONE; SIZE];
        for j in 0..k {
            let mut v = x[j];
            v[..j].fill(T::ZERO);
            let square = dot(&v, &v).re();
            if square < least {
                if v.iter().all(|&x| x == T::ZERO) {
                    continue;
                }
                return false;
            }
            let norm = Float::sqrt(square);
            let size = v[j].modulus();
            let phase = match size > zero {
                true => Field::div(v[j], real(size)),
                false => T::ONE,
            };
            // v − β e for β = −phase · norm: no cancellation.
            v[j] = Numeric::add(v[j], Numeric::mul(phase, real(norm)));
            let tau = Field::recip(Numeric::mul(norm, Numeric::add(norm, size)));
            reflectors[j] = Reflector { v, tau };
            for x in &mut x[j + 1..n] {
                reflectors[j].apply(x);
            }
            phases[j] = Numeric::neg(phase);
            x[j][j] = real(norm);
        }
        let height = self.r.len() / n;
        for (j, (r, x)) in self.r.chunks_exact_mut(height).zip(&x).enumerate() {
            for i in 0..(j + 1).min(k) {
                r[i] = if i == j { x[i] } else { Numeric::mul(x[i], Field::conj(phases[i])) };
            }
        }
        // Q = H₀ … Hₖ₋₁ D, from the last reflector to the first, which leave the columns before theirs unchanged.
        let mut y = [[T::ZERO; SIZE]; SIZE];
        for (j, y) in y.iter_mut().enumerate() {
            y[j] = phases[j];
        }
        for j in (0..k).rev() {
            for y in &mut y[j..width] {
                reflectors[j].apply(y);
            }
        }
        for (q, y) in self.q.chunks_exact_mut(m).zip(&y) {
            q.copy_from_slice(&y[..m]);
        }
        true
    }
}
