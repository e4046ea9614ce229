//! Log-sum-exp: the weights of the terms are probabilities, computed by matrix products.
//!
//! With `P = E·F`, `E = exp(a − r)` and `F = exp(b − s)`, shifted by the row maxima r of A and the column maxima s of
//! B, the weight of term k in element (i, j) is `Eᵢₖ·Fₖⱼ / Pᵢⱼ`. With
//! `W = g / P`,
//!
//! ```text
//! ḡₐ = E ∘ (W·Fᵀ)      ḡ_b = F ∘ (Eᵀ·W)      ċ = ((E ∘ ȧ)·F + E·(F ∘ ḃ)) / P
//! ```
//!
//! in `f64`. Elements with P below [`SMALLEST`] use a loop over their terms, so that neither W overflows nor an
//! underflowed term matters. All elements use it if an operand has NaN or +∞, for vectors, and for derivatives above
//! [`LARGEST`]. Terms of +∞ have equal weights.

use t4a_algebra::math::f64 as math;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, LogSumExp, Real, Semiring, Standard};
use t4a_tensor::{Tensor, matmul::matmul};

use super::{MatrixProduct, elements};
use crate::backend::BgemmShape;
use crate::error::Result;
use crate::memory::{filled, mapped, zipped};

/// Underflowed terms have weights below 2⁻¹⁰²² / SMALLEST.
const SMALLEST: f64 = 1e-140;
/// LARGEST / SMALLEST is finite, with a margin for sums.
const LARGEST: f64 = 1e150;

/// `exp(x − most)`; for a list of −∞ the maximum is taken as 0, so all exponentials are 0.
#[inline(always)]
fn exponentials<T: Float>(of: &[T], most: impl Fn(usize) -> f64, into: &mut [f64]) {
    for (i, (to, x)) in into.iter_mut().zip(of).enumerate() {
        let most = most(i);
        let by = if most == f64::NEG_INFINITY { 0.0 } else { most };
        *to = math::exp(x.to_f64() - by);
    }
}

/// `E = exp(a − r)` with the maxima of rows of `width`; returns true if they are below +∞ and not NaN.
struct RowExponentials<'a, T> {
    of: &'a [T],
    width: usize,
    into: &'a mut [f64],
}

impl<T: Float> Loop for RowExponentials<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        const LANES: usize = 8;
        let mut finite = true;
        for (row, into) in self.of.chunks_exact(self.width).zip(self.into.chunks_mut(self.width)) {
            let mut lanes = [f64::NEG_INFINITY; LANES];
            let (groups, rest) = row.as_chunks::<LANES>();
            for group in groups {
                for (most, x) in lanes.iter_mut().zip(group) {
                    *most = Real::max(*most, x.to_f64());
                }
            }
            for (most, x) in lanes.iter_mut().zip(rest) {
                *most = Real::max(*most, x.to_f64());
            }
            let mut most = f64::NEG_INFINITY;
            for lane in lanes {
                most = Real::max(most, lane);
            }
            finite &= most < f64::INFINITY;
            exponentials(row, |_| most, into);
        }
        finite
    }
}

/// `F = exp(b − s)` with the column maxima of matrices `[k, n]`; otherwise as [`RowExponentials`].
struct ColumnExponentials<'a, T> {
    of: &'a [T],
    shape: (usize, usize),
    /// Scratch for n maxima.
    most: Vec<f64>,
    into: &'a mut [f64],
}

impl<T: Float> Loop for ColumnExponentials<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { of, shape: (k, n), mut most, into } = self;
        let mut finite = true;
        for (matrix, into) in of.chunks_exact(k * n).zip(into.chunks_mut(k * n)) {
            most.fill(f64::NEG_INFINITY);
            for row in matrix.chunks_exact(n) {
                for (most, x) in most.iter_mut().zip(row) {
                    *most = Real::max(*most, x.to_f64());
                }
            }
            for &most in &most {
                finite &= most < f64::INFINITY;
            }
            for (row, into) in matrix.chunks_exact(n).zip(into.chunks_mut(n)) {
                exponentials(row, |j| most[j], into);
            }
        }
        finite
    }
}

/// `W = g / P`, or 0 if P is below [`SMALLEST`].
struct Quotients<'a, T> {
    g: &'a [T],
    p: &'a [f64],
    into: &'a mut [f64],
}

/// Properties of the quotients.
struct Quotient {
    /// True if no |g| exceeds [`LARGEST`].
    moderate: bool,
    /// True if no P is below [`SMALLEST`].
    covered: bool,
}

impl<T: Float> Loop for Quotients<'_, T> {
    type Output = Quotient;

    #[inline(always)]
    fn run(self) -> Quotient {
        let mut said = Quotient { moderate: true, covered: true };
        for ((to, g), &p) in self.into.iter_mut().zip(self.g).zip(self.p) {
            let g = g.to_f64();
            said.moderate &= g.abs() <= LARGEST;
            said.covered &= p >= SMALLEST;
            *to = if p < SMALLEST { 0.0 } else { g / p };
        }
        said
    }
}

/// `x ∘ y`, rounded.
struct Hadamard<'a, T, U> {
    x: &'a [f64],
    y: &'a [T],
    into: &'a mut [U],
}

impl<T: Float, U: Float> Loop for Hadamard<'_, T, U> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((to, x), y) in self.into.iter_mut().zip(self.x).zip(self.y) {
            *to = U::from_f64(x * y.to_f64());
        }
    }
}

/// Weights of the terms of every element that is not covered, element by element.
struct Shares<'a, F> {
    terms: &'a Terms,
    covered: Option<&'a [f64]>,
    /// Scratch for the weights of one element.
    room: Vec<f64>,
    /// Called with the index of the element, its row of A, its column of B, and the weights.
    visit: F,
}

impl<F: FnMut(usize, usize, usize, &[f64])> Loop for Shares<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let Terms { shape: BgemmShape { batch, m, k, n }, a, b } = self.terms;
        let mut shares = self.room;
        for row in 0..batch * m {
            for col in row / m * n..(row / m + 1) * n {
                let element = row * n + col % n;
                if self.covered.is_some_and(|p| p[element] >= SMALLEST) {
                    continue;
                }
                let (a, b) = (&a[row * k..][..*k], &b[col * k..][..*k]);
                let mut most = f64::NEG_INFINITY;
                for (share, (&a, &b)) in shares.iter_mut().zip(a.iter().zip(b)) {
                    *share = <LogSumExp as Semiring<f64>>::mul(a, b);
                    most = Real::max(most, *share);
                }
                if most == f64::NEG_INFINITY {
                    continue;
                }
                if most == f64::INFINITY {
                    shares.iter_mut().for_each(|t| *t = f64::from(*t == most));
                } else {
                    for t in &mut shares {
                        *t = math::exp(*t - most);
                    }
                }
                let whole: f64 = shares.iter().sum();
                shares.iter_mut().for_each(|share| *share /= whole);
                (self.visit)(element, row, col, &shares);
            }
        }
    }
}

/// A by rows, `[batch, m, k]`, and B by columns, `[batch, n, k]`.
struct Terms {
    shape: BgemmShape,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Terms {
    fn new<T: Float>(x: &MatrixProduct<'_, T>) -> Result<Self> {
        let BgemmShape { batch, k, n, .. } = x.shape;
        let b = exchanged(wide(&x.b)?, [batch, k, n])?;
        Ok(Self { shape: x.shape, a: wide(&x.a)?, b })
    }

    fn shares(
        &self,
        covered: Option<&[f64]>,
        visit: impl FnMut(usize, usize, usize, &[f64]),
    ) -> Result<()> {
        let room = filled(self.shape.k, 0.0)?;
        dispatch(Shares { terms: self, covered, room, visit });
        Ok(())
    }
}

/// E `[batch, m, k]`, F `[batch, k, n]` and P `[batch, m, n]`.
struct ExpFactors {
    e: Tensor<f64>,
    f: Tensor<f64>,
    p: Tensor<f64>,
}

impl ExpFactors {
    /// `None` if the matrix products are not applicable.
    fn new<T: Float>(x: &MatrixProduct<'_, T>) -> Result<Option<Self>> {
        let BgemmShape { batch, m, k, n } = x.shape;
        if m.min(k).min(n) < 2 || batch == 0 {
            return Ok(None);
        }
        let (mut e, mut f) = (filled(x.a.len(), 0.0)?, filled(x.b.len(), 0.0)?);
        let most = filled(n, 0.0)?;
        let finite = dispatch(RowExponentials { of: &x.a, width: k, into: &mut e })
            && dispatch(ColumnExponentials { of: &x.b, shape: (k, n), most, into: &mut f });
        if !finite {
            return Ok(None);
        }
        let (e, f) = (Tensor::from_vec(e, &[batch, m, k])?, Tensor::from_vec(f, &[batch, k, n])?);
        let p = product(&e, &f)?;
        Ok(Some(Self { e, f, p }))
    }
}

fn product(a: &Tensor<f64>, b: &Tensor<f64>) -> Result<Tensor<f64>> {
    Ok(matmul::<Standard, f64>(a, b)?)
}

fn transposed(x: &Tensor<f64>) -> Result<Tensor<f64>> {
    Ok(x.swap_axes(1, 2)?)
}

fn wide<T: Float>(x: &[T]) -> Result<Vec<f64>> {
    mapped(x, T::to_f64)
}

/// `[batch, rows, cols]` with rows and columns transposed.
fn exchanged(x: Vec<f64>, shape: [usize; 3]) -> Result<Vec<f64>> {
    Ok(transposed(&Tensor::from_vec(x, &shape)?)?.to_vec()?)
}

/// `x ∘ y`, rounded.
fn hadamard<T: Float, U: Float>(x: &Tensor<f64>, y: &[T]) -> Result<Vec<U>> {
    let mut into = filled(y.len(), U::ZERO)?;
    dispatch(Hadamard { x: &elements(x)?, y, into: &mut into });
    Ok(into)
}

/// `g / P` as a tensor of the shape of P, and its properties.
fn quotients<T: Float>(g: &[T], p: &Tensor<f64>) -> Result<(Tensor<f64>, Quotient)> {
    let mut into = filled(g.len(), 0.0)?;
    let said = dispatch(Quotients { g, p: &elements(p)?, into: &mut into });
    Ok((Tensor::from_vec(into, p.shape())?, said))
}

fn add_scaled(to: &mut [f64], g: f64, shares: &[f64]) {
    to.iter_mut().zip(shares).for_each(|(to, share)| *to += g * share);
}

/// Cotangents of A and B.
///
/// Cost: three matrix products in `f64`, mk + kn exponentials.
pub(crate) fn vjp<T: Float>(x: &MatrixProduct<'_, T>, g: &[T]) -> Result<[Vec<T>; 2]> {
    let mut known = None;
    if let Some(ExpFactors { e, f, p }) = ExpFactors::new(x)? {
        let (w, said) = quotients(g, &p)?;
        if said.moderate {
            let from = [product(&w, &transposed(&f)?)?, product(&transposed(&e)?, &w)?];
            if said.covered {
                let [of_a, of_b] = &from;
                return Ok([hadamard(&e, &elements(of_a)?)?, hadamard(&f, &elements(of_b)?)?]);
            }
            known = Some((e, f, p, from));
        }
    }
    // Loop over the terms, for all elements or for those with small P.
    let BgemmShape { batch, k, n, .. } = x.shape;
    let terms = Terms::new(x)?;
    let (mut ga, mut gb) = (filled(terms.a.len(), 0.0)?, filled(terms.b.len(), 0.0)?);
    let covered = known.as_ref().map(|(_, _, p, _)| elements(p)).transpose()?;
    terms.shares(covered.as_deref(), |element, row, col, shares| {
        let g = g[element].to_f64();
        add_scaled(&mut ga[row * k..][..k], g, shares);
        add_scaled(&mut gb[col * k..][..k], g, shares);
    })?;
    let mut gb = exchanged(gb, [batch, n, k])?;
    if let Some((e, f, _, from)) = &known {
        for (g, factor, from) in [(&mut ga, e, &from[0]), (&mut gb, f, &from[1])] {
            let rest: Vec<f64> = hadamard(factor, &elements(from)?)?;
            add_scaled(g, 1.0, &rest);
        }
    }
    Ok([mapped(&ga, T::from_f64)?, mapped(&gb, T::from_f64)?])
}

/// Tangent of C.
///
/// Cost: three matrix products in `f64`, mk + kn exponentials.
pub(crate) fn jvp<T: Float>(x: &MatrixProduct<'_, T>, da: &[T], db: &[T]) -> Result<Vec<T>> {
    let moderate = |x: &[T]| x.iter().all(|x| x.to_f64().abs() <= LARGEST);
    let factors = if moderate(da) && moderate(db) { ExpFactors::new(x)? } else { None };
    let (mut dc, mut covered) = (None, None);
    if let Some(ExpFactors { e, f, p }) = factors {
        let weighted = |x: &Tensor<f64>, by: &[T]| -> Result<Tensor<f64>> {
            Ok(Tensor::from_vec(hadamard(x, by)?, x.shape())?)
        };
        let (from_a, from_b) = (product(&weighted(&e, da)?, &f)?, product(&e, &weighted(&f, db)?)?);
        let sum = zipped(&elements(&from_a)?, &elements(&from_b)?, |a, b| a + b)?;
        let (quotients, said) = quotients(&sum, &p)?;
        if said.covered {
            return mapped(&elements(&quotients)?, T::from_f64);
        }
        (dc, covered) = (Some(quotients.to_vec()?), Some(p));
    }
    let BgemmShape { batch, k, n, .. } = x.shape;
    let mut dc = dc.map_or_else(|| filled(x.c.len(), 0.0), Ok)?;
    let (terms, da, db) = (Terms::new(x)?, wide(da)?, exchanged(wide(db)?, [batch, k, n])?);
    let covered = covered.as_ref().map(elements).transpose()?;
    terms.shares(covered.as_deref(), |element, row, col, shares| {
        let moves = da[row * k..][..k].iter().zip(&db[col * k..][..k]);
        // Terms of weight 0 are skipped, even if their tangent is infinite.
        let terms = shares.iter().zip(moves).filter(|(share, _)| **share != 0.0);
        dc[element] = terms.map(|(share, (da, db))| share * (da + db)).sum();
    })?;
    mapped(&dc, T::from_f64)
}
