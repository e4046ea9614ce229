//! Second derivatives of functions of singular values. For odd `f` these are functions of the Hermitian matrix `[0 A;
//! Aᴴ 0]`, whose eigenvalues are `±S` and 0; second divided differences at these points are exact at ties, and at
//! zero if `f` has a second derivative there. For `m ≥ n`, with `Uᴴ C V = H + K`, Hermitian and skew-Hermitian, `R =
//! (1 − U Uᴴ) C V`, and `H′`, `K′`, `R′` for `E`,
//!
//! ```text
//! D² F(A)[C, E] = U G Vᴴ + L Vᴴ
//! Gᵢⱼ = Σₖ f[σᵢ, σⱼ, σₖ] hᵢₖ h′ₖⱼ − f[σᵢ, σⱼ, −σₖ] kᵢₖ k′ₖⱼ + f[−σᵢ, σⱼ, σₖ] kᵢₖ h′ₖⱼ
//!         + f[σᵢ, −σⱼ, σₖ] hᵢₖ k′ₖⱼ + ½ (f[σᵢ, σⱼ, 0] − f[−σᵢ, σⱼ, 0]) (Rᴴ R′)ᵢⱼ
//! Lⱼ  = Σₖ Rₖ (f[0, σⱼ, σₖ] h′ₖⱼ − f[0, σⱼ, −σₖ] k′ₖⱼ)
//! ```
//!
//! plus the same terms with `C` and `E` exchanged. The distance of points of different signs is at least the larger
//! modulus: only points of one sign use the series of [`hermitian`](crate::hermitian).

#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::hermitian::second::differences;
use crate::hermitian::{Elementary, divided_differences};
use crate::vocabulary::{Matrices, RealMatrices, Region};

use super::function::{kept, odd_tables};

/// Second divided differences of an odd function at the values `S`, their negatives and zero.
pub(crate) trait OddDifferences<R> {
    /// `f[σᵢ, σⱼ, σₖ]`, `f[σᵢ, σⱼ, −σₖ]`, and `f[−σᵢ, σⱼ, σₖ]`, for one `k`.
    fn at(&self, k: usize) -> [R; 3];
    /// `f[σᵢ, σⱼ, 0]` and `f[−σᵢ, σⱼ, 0]`.
    fn at_zero(&self) -> [R; 2];
}

/// `D² F(A)[C, E]` of thin factors with `m ≥ n`. Cost a few products and `8 n` rank-one updates.
pub(crate) fn second<M: Matrices>(
    [u, v]: [&M; 2],
    [c, e]: [&M; 2],
    f: &impl OddDifferences<M::Real>,
) -> M {
    let (m, n, uh) = (u.rows(), v.cols(), u.adjoint());
    let project = |x: &M| {
        let right = x.matmul(v);
        let p = uh.matmul(&right);
        (p.herm(), p.skew(), right.sub(&u.matmul(&p)))
    };
    let ((h, k, r), (h2, k2, r2)) = (project(c), project(e));
    let mut inner = h.scale(0.0);
    for l in 0..n {
        let [plus, minus, mixed] = f.at(l);
        let column = |x: &M| x.slice(0..n, l..l + 1);
        let row = |x: &M| x.slice(l..l + 1, 0..n);
        // Sum over both orders of C and E.
        let both = |[x, x2]: [&M; 2], [y, y2]: [&M; 2], table: &M::Real| {
            let product = column(x).matmul(&row(y2)).add(&column(x2).matmul(&row(y)));
            product.mul_real(table)
        };
        inner = inner.add(&both([&h, &h2], [&h, &h2], &plus));
        inner = inner.sub(&both([&k, &k2], [&k, &k2], &minus));
        inner = inner.add(&both([&k, &k2], [&h, &h2], &mixed));
        inner = inner.add(&both([&h, &h2], [&k, &k2], &mixed.transpose()));
    }
    if m == n {
        return u.matmul(&inner).matmul(&v.adjoint());
    }
    let [plus, minus] = f.at_zero();
    let square = r.adjoint().matmul(&r2);
    let square = square.add(&square.adjoint()).scale(0.5);
    inner = inner.add(&square.mul_real(&plus.sub(&minus)));
    let step = |h: &M, k: &M| h.mul_real(&plus).sub(&k.mul_real(&minus));
    let rest = r.matmul(&step(&h2, &k2)).add(&r2.matmul(&step(&h, &k)));
    u.matmul(&inner).add(&rest).matmul(&v.adjoint())
}

/// First matrix with a zero singular value, if `sign(x) f(|x|)` has no second derivative at 0.
pub(crate) fn bends_at_zero<R: RealMatrices<Real = R>>(
    s: &R,
    limit: &R,
    f: Elementary,
) -> Result<Option<usize>> {
    let bend = f.curvature(&s.constant(1, 1, 0.0)).norms()?;
    let zeros = s.within(limit).norms()?;
    Ok(zeros.iter().zip(bend).position(|(&zeros, bend)| zeros > 0.0 && bend != 0.0))
}

/// The odd function `sign(x) f(|x|)`.
pub(crate) struct Odd<R> {
    s: R,
    f: Elementary,
    limit: R,
    /// First differences at two values, at a value and a negative one, at a value and zero.
    first: R,
    sums: R,
    ratios: R,
}

impl<R: RealMatrices<Real = R>> Odd<R> {
    pub(crate) fn new(s: &R, limit: R, f: Elementary) -> Self {
        let [sums, ratios] = odd_tables(s, &limit, &f);
        Self { s: s.clone(), f, first: divided_differences(s, &f), sums, ratios, limit }
    }

    /// `x/y`, and 0 where all three points are zero.
    fn over(&self, x: &R, y: &R) -> R {
        x.mul(&y.masked_recip(&self.limit))
    }
}

/// The first table where `keep` is 1, else the second.
fn either<R: RealMatrices>(keep: &R, first: &R, second: &R) -> R {
    first.mul(keep).add(&second.mul(&keep.constant(1, 1, 1.0).sub(keep)))
}

impl<R: RealMatrices<Real = R>> OddDifferences<R> for Odd<R> {
    fn at(&self, k: usize) -> [R; 3] {
        let (n, y) = (self.s.cols(), &self.s);
        let (x, z) = (y.transpose(), y.slice(0..1, k..k + 1));
        let row = |table: &R| table.slice(k..k + 1, 0..n);
        let column = |table: &R| table.slice(0..n, k..k + 1);
        let plus = differences(y, &self.first, k, self.f);
        // Divided by the distance of the negative point from the farther of the two others; values are nonincreasing.
        let upper = y.constant(n, n, 1.0).mask(Region::Upper(0));
        let minus = either(
            &upper,
            &self.over(&self.first.sub(&row(&self.sums)), &x.add(&z)),
            &self.over(&self.first.sub(&column(&self.sums)), &y.add(&z)),
        );
        let leading = y.constant(1, k + 1, 1.0).append(&y.constant(1, n - k - 1, 0.0));
        let pair = row(&self.first);
        let mixed = either(
            &leading,
            &self.over(&pair.sub(&column(&self.sums)), &x.add(y)),
            &self.over(&pair.sub(&self.sums), &x.add(&z)),
        );
        [plus, minus, mixed]
    }

    fn at_zero(&self) -> [R; 2] {
        let (n, y) = (self.s.cols(), &self.s);
        let (x, ratios) = (y.transpose(), &self.ratios);
        let upper = y.constant(n, n, 1.0).mask(Region::Upper(0));
        let plus = either(
            &upper,
            &self.over(&self.first.sub(ratios), &x),
            &self.over(&self.first.sub(&ratios.transpose()), y),
        );
        [plus, self.over(&ratios.sub(&ratios.transpose()), &x.add(y))]
    }
}

/// The function that is `x` at the `p` largest values and their negatives, and 0 at the others. Differences are 0
/// within each of the two groups, `−z/((y − z)(x − z))` for one point `z` of the others, and `x/((x − y)(x − z))` for
/// two.
pub(crate) struct Cut<R> {
    s: R,
    keep: R,
    rank: usize,
}

impl<R: RealMatrices<Real = R>> Cut<R> {
    pub(crate) fn new(s: &R, rank: usize) -> Self {
        Self { s: s.clone(), keep: kept(s, rank), rank }
    }

    /// `f[aᵢ, bⱼ, z]` of a column, a row, and a number that is `kept` or not.
    fn differences(&self, [a, b, z]: [&R; 3], kept: bool) -> R {
        let (row, one) = (&self.keep, a.constant(1, 1, 1.0));
        let column = row.transpose();
        let (no_row, no_column) = (one.sub(row), one.sub(&column));
        // Divisors of pairs on both sides of the truncation are nonzero.
        let over = |mask: &R, x: &R, divisors: [&R; 2]| {
            divisors.iter().fold(x.mul(mask), |x, divisor| {
                let safe = divisor.mul(mask).add(&one.sub(mask));
                x.mul(&safe.recip())
            })
        };
        let (ab, az, bz) = (a.sub(b), a.sub(z), b.sub(z));
        let (first, second) = (column.mul(&no_row), no_column.mul(row));
        match kept {
            true => over(&first, b, [&ab, &bz]).sub(&over(&second, a, [&ab, &az])).add(&over(
                &no_column.mul(&no_row),
                z,
                [&az, &bz],
            )),
            false => over(&first, a, [&ab, &az]).sub(&over(&second, b, [&ab, &bz])).sub(&over(
                &column.mul(row),
                z,
                [&az, &bz],
            )),
        }
    }
}

impl<R: RealMatrices<Real = R>> OddDifferences<R> for Cut<R> {
    fn at(&self, k: usize) -> [R; 3] {
        let (y, z) = (&self.s, self.s.slice(0..1, k..k + 1));
        let (x, kept) = (y.transpose(), k < self.rank);
        [[&x, y, &z], [&x, y, &z.neg()], [&x.neg(), y, &z]]
            .map(|points| self.differences(points, kept))
    }

    fn at_zero(&self) -> [R; 2] {
        let (y, z) = (&self.s, self.s.constant(1, 1, 0.0));
        let x = y.transpose();
        [[&x, y, &z], [&x.neg(), y, &z]].map(|points| self.differences(points, false))
    }
}
