//! Second derivatives, `D² f(A)[C, E] = V W Vᴴ` with
//!
//! ```text
//! Wᵢⱼ = Σₖ f[λᵢ, λⱼ, λₖ] (cᵢₖ eₖⱼ + eᵢₖ cₖⱼ),   c = Vᴴ C V,  e = Vᴴ E V
//! ```
//!
//! with second divided differences of `f`. They are quotients of first differences over the largest of the three
//! gaps; where that is small, the series `f″/2 + p f⁗/48` at the mean, with `p` the sum of squared distances from it.
//! There is no error at ties. With first differences accurate to `ε^(4/5)` the error is of the order `ε^(3/5)`.
//!
//! Reference: N. Higham, *Functions of Matrices*, section 3.2; R. Bhatia, *Matrix Analysis*, theorem V.3.3.

use super::{Elementary, SpectralFunction, divided_differences};
use crate::vocabulary::{Matrices, RealMatrices};

/// `D² f(A)[C, E]` of the Hermitian parts. Cost four products and `n` rank-one updates.
pub(crate) fn second<M: Matrices>(
    values: &M::Real,
    vectors: &M,
    [c, e]: [&M; 2],
    f: Elementary,
) -> M {
    let (n, vh) = (values.cols(), vectors.adjoint());
    let [c, e] = [c, e].map(|x| vh.matmul(&x.herm()).matmul(vectors));
    let first = divided_differences(values, &f);
    let mut sum = c.scale(0.0);
    for k in 0..n {
        let [column, other] = [&c, &e].map(|x| x.slice(0..n, k..k + 1));
        let [row, next] = [&e, &c].map(|x| x.slice(k..k + 1, 0..n));
        let products = column.matmul(&row).add(&other.matmul(&next));
        sum = sum.add(&products.mul_real(&differences(values, &first, k, f)));
    }
    vectors.matmul(&sum).matmul(&vh)
}

/// `f[λᵢ, λⱼ, λₖ]` for one `k`, from the first differences.
pub(crate) fn differences<R: RealMatrices<Real = R>>(
    values: &R,
    first: &R,
    k: usize,
    f: Elementary,
) -> R {
    let n = values.cols();
    let (x, y, z) = (values.transpose(), values, values.slice(0..1, k..k + 1));
    let [xz, yz, xy] = [x.sub(&z), y.sub(&z), x.sub(y)];
    let one = values.constant(1, 1, 1.0);
    // The largest of the three gaps.
    let (of_xz, of_yz) = (xz.abs(), yz.abs());
    let by_xz = yz.within(&of_xz).mul(&xy.within(&of_xz));
    let by_yz = xy.within(&of_yz).mul(&one.sub(&by_xz));
    let by_xy = one.sub(&by_xz).sub(&by_yz);
    let choose = |a: &R, b: &R, c: &R| a.mul(&by_xz).add(&b.mul(&by_yz)).add(&c.mul(&by_xy));
    let (row, column) = (first.slice(k..k + 1, 0..n), first.slice(0..n, k..k + 1));
    let gap = choose(&xz, &yz, &xy);
    let numerator = choose(&first.sub(&row), &first.sub(&column), &column.sub(&row));

    let mean = x.add(y).add(&z).scale(1.0 / 3.0);
    let length = f.length(&mean);
    let close = gap.within(&length.abs().scale(2.5 * values.epsilon().powf(0.2)));
    let apart = one.sub(&close);
    let quotient = numerator.mul(&gap.mul(&apart).add(&close).recip());
    // The mean of distant values may be outside of the domain.
    let mean = mean.mul(&close).add(&values.mul(&apart));
    let inverse = length.masked_recip(&length.scale(0.0));
    let squares = [xz, yz, xy].map(|gap| {
        let ratio = gap.mul(&close).mul(&inverse);
        ratio.mul(&ratio)
    });
    // The squared distances from the mean are a third of the squared gaps.
    let spread = squares[0].add(&squares[1]).add(&squares[2]).scale(1.0 / 144.0);
    let series = f.curvature(&mean).scale(0.5).add(&f.curvature_bend(&mean).mul(&spread));
    quotient.mul(&apart).add(&series.mul(&close))
}
