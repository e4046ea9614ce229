//! Log-sum-exp: the shares of the terms are probabilities, and take matrix products.
//!
//! With `P = E·Fᵀ`, `E = exp(a − r)` and `F = exp(b − s)` shifted by the maxima r of the rows of A
//! and s of the columns of B, the share of term k in element (i, j) is `Eᵢₖ·Fⱼₖ / Pᵢⱼ`. With
//! `W = g / P`,
//!
//! ```text
//! ḡₐ = E ∘ (W·F)      ḡ_b = F ∘ (Wᵀ·E)      ċ = ((E ∘ ȧ)·Fᵀ + E·(F ∘ ḃ)ᵀ) / P
//! ```
//!
//! in `f64`. Elements with a P below [`SMALLEST`] take the loop over their terms, so that neither
//! W overflows nor a lost term matters; so does everything if there is NaN or +∞ among the
//! operands, a vector, or a derivative above [`LARGEST`]. Terms of +∞ share equally.

use t4a_algebra::math::f64 as math;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, LogSumExp, Real, Semiring, Standard};
use t4a_tensor::{Tensor, matmul::matmul};

use super::{MatrixProduct, elements};
use crate::backend::BgemmShape;
use crate::error::Result;
use crate::memory::{filled, mapped, zipped};

/// Lost terms weigh less than 2⁻¹⁰²² / SMALLEST.
const SMALLEST: f64 = 1e-140;
/// LARGEST / SMALLEST is finite, with room for sums.
const LARGEST: f64 = 1e150;

/// `x ← exp(x − max)` over rows of `width`.
struct Exponentials<'a> {
    of: &'a mut [f64],
    width: usize,
}

impl Loop for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.of.chunks_exact_mut(self.width) {
            let most = row.iter().fold(f64::NEG_INFINITY, |most, &x| Real::max(most, x));
            // A row of −∞ alone: exp(−∞ − 0) = 0.
            let by = if most == f64::NEG_INFINITY { 0.0 } else { most };
            // No closure: one that is not inlined is not compiled for the caller's vectors.
            for x in row {
                *x = math::exp(*x - by);
            }
        }
    }
}

/// The shares of the terms of every element that is not covered, one after another.
struct Shares<'a, F> {
    terms: &'a Terms,
    covered: Option<&'a [f64]>,
    /// Room for the shares of one element.
    room: Vec<f64>,
    /// Gets the number of the element, its row of A, its column of B, and the shares.
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

/// E, F and P.
struct Factors {
    e: Tensor<f64>,
    f: Tensor<f64>,
    p: Tensor<f64>,
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

fn narrow<T: Float>(x: &[f64]) -> Result<Vec<T>> {
    mapped(x, T::from_f64)
}

/// `[batch, rows, cols]` with rows and columns exchanged.
fn exchanged(x: Vec<f64>, shape: [usize; 3]) -> Result<Vec<f64>> {
    Ok(transposed(&Tensor::from_vec(x, &shape)?)?.to_vec()?)
}

fn are_moderate(x: &[f64]) -> bool {
    x.iter().all(|x| x.abs() <= LARGEST)
}

impl Terms {
    fn new<T: Float>(x: &MatrixProduct<'_, T>) -> Result<Self> {
        let BgemmShape { batch, k, n, .. } = x.shape;
        let b = exchanged(wide(&x.b)?, [batch, k, n])?;
        Ok(Self { shape: x.shape, a: wide(&x.a)?, b })
    }

    /// If the products apply.
    fn factors(&self) -> Result<Option<Factors>> {
        let BgemmShape { batch, m, k, n } = self.shape;
        let below = |x: &[f64]| x.iter().all(|&x| x < f64::INFINITY);
        if m.min(k).min(n) < 2 || !below(&self.a) || !below(&self.b) {
            return Ok(None);
        }
        let [e, f] = [(&self.a, m), (&self.b, n)].map(|(of, rows)| -> Result<_> {
            let mut of = mapped(of, |x| x)?;
            dispatch(Exponentials { of: &mut of, width: k });
            Ok(Tensor::from_vec(of, &[batch, rows, k])?)
        });
        let (e, f) = (e?, f?);
        let p = product(&e, &transposed(&f)?)?;
        Ok(Some(Factors { e, f, p }))
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

/// `g / P`, or 0 where P is small.
fn divided(g: &[f64], p: &[f64]) -> Result<Vec<f64>> {
    zipped(g, p, |g, p| if p < SMALLEST { 0.0 } else { g / p })
}

/// `x ∘ y`.
fn hadamard(x: &[f64], y: &[f64]) -> Result<Vec<f64>> {
    zipped(x, y, |x, y| x * y)
}

fn add_scaled(to: &mut [f64], g: f64, shares: &[f64]) {
    to.iter_mut().zip(shares).for_each(|(to, share)| *to += g * share);
}

/// Cotangents of A and B.
///
/// Cost: three matrix products in `f64`, mk + kn exponentials.
pub(super) fn vjp<T: Float>(x: &MatrixProduct<'_, T>, g: &[T]) -> Result<[Vec<T>; 2]> {
    let BgemmShape { batch, k, n, .. } = x.shape;
    let (terms, g) = (Terms::new(x)?, wide(g)?);
    let factors = if are_moderate(&g) { terms.factors()? } else { None };
    let (mut ga, mut gb, covered);
    if let Some(Factors { e, f, p }) = &factors {
        let known = elements(p)?;
        let w = Tensor::from_vec(divided(&g, &known)?, p.shape())?;
        ga = hadamard(&elements(e)?, &elements(&product(&w, f)?)?)?;
        gb = hadamard(&elements(f)?, &elements(&product(&transposed(&w)?, e)?)?)?;
        covered = Some(known);
    } else {
        ga = filled(terms.a.len(), 0.0)?;
        gb = filled(terms.b.len(), 0.0)?;
        covered = None;
    }
    terms.shares(covered.as_deref(), |element, row, col, shares| {
        add_scaled(&mut ga[row * k..][..k], g[element], shares);
        add_scaled(&mut gb[col * k..][..k], g[element], shares);
    })?;
    Ok([narrow(&ga)?, narrow(&exchanged(gb, [batch, n, k])?)?])
}

/// Tangent of C.
///
/// Cost: three matrix products in `f64`, mk + kn exponentials.
pub(super) fn jvp<T: Float>(x: &MatrixProduct<'_, T>, da: &[T], db: &[T]) -> Result<Vec<T>> {
    let BgemmShape { batch, k, n, .. } = x.shape;
    let (terms, da) = (Terms::new(x)?, wide(da)?);
    let db = exchanged(wide(db)?, [batch, k, n])?;
    let moderate = are_moderate(&da) && are_moderate(&db);
    let factors = if moderate { terms.factors()? } else { None };
    let (mut dc, covered);
    if let Some(Factors { e, f, p }) = &factors {
        let known = elements(p)?;
        let weighted = |x: &Tensor<f64>, by: &[f64]| -> Result<Tensor<f64>> {
            Ok(Tensor::from_vec(hadamard(&elements(x)?, by)?, x.shape())?)
        };
        let from_a = product(&weighted(e, &da)?, &transposed(f)?)?;
        let from_b = product(e, &transposed(&weighted(f, &db)?)?)?;
        let (from_a, from_b) = (elements(&from_a)?, elements(&from_b)?);
        dc = divided(&zipped(&from_a, &from_b, |a, b| a + b)?, &known)?;
        covered = Some(known);
    } else {
        dc = filled(x.c.len(), 0.0)?;
        covered = None;
    }
    terms.shares(covered.as_deref(), |element, row, col, shares| {
        let moves = da[row * k..][..k].iter().zip(&db[col * k..][..k]);
        // Terms without a share do not count, however they move.
        let terms = shares.iter().zip(moves).filter(|(share, _)| **share != 0.0);
        dc[element] = terms.map(|(share, (da, db))| share * (da + db)).sum();
    })?;
    narrow(&dc)
}
