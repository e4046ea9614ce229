//! LU factorisation with complete pivoting that stops at a rank or a tolerance, and the cross interpolation
//! of a matrix by its pivots.
//!
//! ```text
//! A = [P B; C D] after exchanges of rows and columns, r pivots
//! L U ≈ A           L = [L₁; L₂] unit lower trapezoidal, U = [U₁ U₂]
//! A ≈ C P⁻¹ R       C = A[:, pivots], R = A[pivots, :]: exact in the rows and columns of pivots
//! C P⁻¹ = L L₁⁻¹,   P⁻¹ R = U₁⁻¹ U,   P = L₁ U₁
//! ```
//!
//! The error of both is the Schur complement `D − C P⁻¹ B`, whose largest element is the next pivot.
//! Reference: Y. Núñez Fernández et al., SciPost Phys. 18, 104 (2025), section 3.

use t4a_algebra::{Field, Numeric, Real};
use t4a_linalg::LinalgScalar;
use t4a_linalg::triangular::{Triangle, TriangleOp, solve_triangular};
use t4a_tensor::Tensor;

use super::matrix::magnitude;
use super::{Result, TrainError};

/// The rank at which a factorisation stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    /// The first pivot of at most this magnitude is rejected.
    pub(crate) absolute: f64,
    /// The same relative to the first pivot.
    pub(crate) relative: f64,
    /// Largest number of pivots.
    pub(crate) rank: usize,
}

/// `A ≈ L U` with the rows and columns of its pivots.
///
/// ```
/// use t4a_networks::train::RankRevealingLu;
/// use t4a_tensor::Tensor;
/// // Rank 2: a[i, j] = i + j.
/// let a = Tensor::from_fn(&[4, 5], |k| (k / 5 + k % 5) as f64)?;
/// let lu = RankRevealingLu::new(&a, 1e-12, usize::MAX)?;
/// assert_eq!((lu.rank(), lu.rows()[0], lu.cols()[0]), (2, 3, 4));
/// assert!(lu.error() < 1e-12);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RankRevealingLu<T: LinalgScalar> {
    /// `L` below and `U` on and above the diagonal, in the order of the permuted rows and columns.
    packed: Vec<T>,
    rows: Vec<usize>,
    cols: Vec<usize>,
    rank: usize,
    pivots: Vec<f64>,
    error: f64,
}

impl<T: LinalgScalar> RankRevealingLu<T> {
    /// Factors a matrix `[m, n]` until the next pivot is at most `tolerance` times the first one, or until there
    /// are `max_rank` pivots.
    ///
    /// Cost `m·n·r` multiply-adds.
    ///
    /// # Errors
    /// `Linalg` (`NotMatrix`); `Value` for a tolerance that is negative or NaN; `NonFinite` with the index of an
    /// element that is NaN or infinite.
    pub fn new(a: &Tensor<T>, tolerance: f64, max_rank: usize) -> Result<Self> {
        let op = "rank_revealing_lu";
        let &[m, n] = a.shape() else {
            let shape = a.shape().to_vec();
            return Err(t4a_linalg::LinalgError::NotMatrix { op, shape }.into());
        };
        if tolerance.is_nan() || tolerance < 0.0 {
            let message = format!("the tolerance must be ≥ 0, given {tolerance}");
            return Err(TrainError::value(op, message));
        }
        let data = a.to_vec()?;
        if let Some(at) = data.iter().position(|&x| !magnitude(x).is_finite()) {
            let (point, value) = (vec![at / n, at % n], format!("{:?}", data[at]));
            return Err(TrainError::NonFinite { op, point, value });
        }
        let stop = Stop { absolute: 0.0, relative: tolerance, rank: max_rank };
        Ok(Self::factor(data, [m, n], stop))
    }

    /// Factors finite elements in row-major order.
    pub(crate) fn factor(mut a: Vec<T>, [m, n]: [usize; 2], stop: Stop) -> Self {
        let mut rows: Vec<usize> = (0..m).collect();
        let mut cols: Vec<usize> = (0..n).collect();
        let most = stop.rank.min(m).min(n);
        let mut pivots = Vec::with_capacity(most);
        let mut error = 0.0;
        // The largest element of each row of the Schur complement.
        let largest =
            |row: &[T]| row.iter().map(|&x| size(x)).fold(<T::R as Numeric>::ZERO, greater);
        let mut peaks: Vec<T::R> =
            if n == 0 { vec![] } else { a.chunks_exact(n).map(largest).collect() };
        while pivots.len() < m.min(n) {
            let k = pivots.len();
            let (i, peak) = first_largest(&peaks[k..]);
            let j = k + a[(k + i) * n..][k..n].iter().position(|&x| size(x) == peak).unwrap_or(0);
            let value = a[(k + i) * n + j];
            let height = magnitude(value);
            let limit = stop.absolute.max(stop.relative * pivots.first().unwrap_or(&0.0));
            if k == most || height <= limit || height == 0.0 {
                error = height;
                break;
            }
            exchange(&mut a, [m, n], [k, k + i], [k, j]);
            rows.swap(k, k + i);
            cols.swap(k, j);
            peaks.swap(k, k + i);
            pivots.push(height);
            let (upper, lower) = a.split_at_mut((k + 1) * n);
            let pivot_row = &upper[k * n..][k + 1..];
            for (row, peak) in lower.chunks_exact_mut(n).zip(&mut peaks[k + 1..]) {
                let factor = Field::div(row[k], value);
                row[k] = factor;
                let tail = &mut row[k + 1..];
                if factor != T::ZERO {
                    let minus = Numeric::neg(factor);
                    tail.iter_mut().zip(pivot_row).for_each(|(x, &p)| {
                        *x = Numeric::add(*x, Numeric::mul(minus, p));
                    });
                }
                *peak = largest(tail);
            }
        }
        let rank = pivots.len();
        rows_and_columns(&mut a, n, rank);
        Self { packed: a, rows, cols, rank, pivots, error }
    }

    /// Number of pivots.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Rows of the pivots, in their order.
    pub fn rows(&self) -> &[usize] {
        &self.rows[..self.rank]
    }

    /// Columns of the pivots, in their order.
    pub fn cols(&self) -> &[usize] {
        &self.cols[..self.rank]
    }

    /// Magnitudes of the pivots.
    pub fn pivots(&self) -> &[f64] {
        &self.pivots
    }

    /// `max |A − L U|`: the largest element of the Schur complement, and 0 at full rank.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// `L` in the order of the rows of `A`, `[m, r]`.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn lower(&self) -> Result<Tensor<T>> {
        let (m, r) = (self.rows.len(), self.rank);
        let mut out = vec![T::ZERO; m * r];
        for (i, &row) in self.rows.iter().enumerate() {
            out[row * r..][..r].copy_from_slice(&self.lower_row(i));
        }
        Ok(Tensor::from_vec(out, &[m, r])?)
    }

    /// `U` in the order of the columns of `A`, `[r, n]`.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn upper(&self) -> Result<Tensor<T>> {
        let (n, r) = (self.cols.len(), self.rank);
        let mut out = vec![T::ZERO; r * n];
        for k in 0..r {
            for j in k..n {
                out[k * n + self.cols[j]] = self.packed[k * n + j];
            }
        }
        Ok(Tensor::from_vec(out, &[r, n])?)
    }

    /// `C P⁻¹ = L L₁⁻¹`, `[m, r]`: the unit matrix in the rows of the pivots.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn left_interpolation(&self) -> Result<Tensor<T>> {
        let (m, r) = (self.rows.len(), self.rank);
        let mut out = vec![T::ZERO; m * r];
        (0..r).for_each(|k| out[self.rows[k] * r + k] = T::ONE);
        if r > 0 && m > r {
            let rows = |range: std::ops::Range<usize>| {
                range.flat_map(|i| self.lower_row(i)).collect::<Vec<T>>()
            };
            let corner = Tensor::from_vec(rows(0..r), &[r, r])?;
            let below = Tensor::from_vec(rows(r..m), &[m - r, r])?.permute(&[1, 0])?;
            let triangle = Triangle { upper: false, unit: true, op: TriangleOp::Transpose };
            let x = solve_triangular(&corner, &below, triangle)?.permute(&[1, 0])?.to_vec()?;
            for (i, line) in x.chunks_exact(r).enumerate() {
                out[self.rows[r + i] * r..][..r].copy_from_slice(line);
            }
        }
        Ok(Tensor::from_vec(out, &[m, r])?)
    }

    /// `P⁻¹ R = U₁⁻¹ U`, `[r, n]`: the unit matrix in the columns of the pivots.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn right_interpolation(&self) -> Result<Tensor<T>> {
        let (n, r) = (self.cols.len(), self.rank);
        let mut out = vec![T::ZERO; r * n];
        (0..r).for_each(|k| out[k * n + self.cols[k]] = T::ONE);
        if r > 0 && n > r {
            let block = |from: usize, to: usize| {
                let row = |k: usize| self.packed[k * n..][from..to].to_vec();
                Tensor::from_vec((0..r).flat_map(row).collect(), &[r, to - from])
            };
            let x = solve_triangular(&block(0, r)?, &block(r, n)?, Triangle::UPPER)?.to_vec()?;
            for (k, line) in x.chunks_exact(n - r).enumerate() {
                line.iter().enumerate().for_each(|(j, &v)| out[k * n + self.cols[r + j]] = v);
            }
        }
        Ok(Tensor::from_vec(out, &[r, n])?)
    }

    /// Row `i` of `L` in pivoted order.
    fn lower_row(&self, i: usize) -> Vec<T> {
        let n = self.cols.len();
        let entry = |k: usize| match k.cmp(&i) {
            std::cmp::Ordering::Less => self.packed[i * n + k],
            std::cmp::Ordering::Equal => T::ONE,
            std::cmp::Ordering::Greater => T::ZERO,
        };
        (0..self.rank).map(entry).collect()
    }
}

/// The largest of the real and the imaginary part: as good as the modulus for pivots, and without a root.
#[inline(always)]
fn size<T: LinalgScalar>(x: T) -> T::R {
    if T::IS_COMPLEX { greater(Real::abs(x.re()), Real::abs(x.im())) } else { Real::abs(x.re()) }
}

/// The larger of two numbers that are not NaN.
#[inline(always)]
fn greater<R: PartialOrd>(a: R, b: R) -> R {
    if b > a { b } else { a }
}

fn first_largest<R: Copy + PartialOrd>(values: &[R]) -> (usize, R) {
    let mut best = 0;
    for (i, v) in values.iter().enumerate() {
        if *v > values[best] {
            best = i;
        }
    }
    (best, values[best])
}

/// Exchanges two rows and two columns.
fn exchange<T: Copy>(a: &mut [T], [m, n]: [usize; 2], rows: [usize; 2], cols: [usize; 2]) {
    if rows[0] != rows[1] {
        let (upper, lower) = a.split_at_mut(rows[1] * n);
        upper[rows[0] * n..][..n].swap_with_slice(&mut lower[..n]);
    }
    if cols[0] != cols[1] {
        (0..m).for_each(|i| a.swap(i * n + cols[0], i * n + cols[1]));
    }
}

/// Clears what is left of the Schur complement, which no factor has.
fn rows_and_columns<T: LinalgScalar>(a: &mut [T], n: usize, rank: usize) {
    if n > 0 {
        a.chunks_exact_mut(n).skip(rank).for_each(|row| row[rank..].fill(T::ZERO));
    }
}
