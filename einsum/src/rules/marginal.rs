//! Sums with nonzero weights of all terms.

use t4a_algebra::Numeric;

use super::{Differentiable, MatrixProduct, narrowed, nth};
use crate::error::Result;
use crate::memory::filled;

/// Calls `body(element, index in a, index in b, weight)` for all terms of nonzero weight.
#[inline]
fn shares<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    mut body: impl FnMut(usize, usize, usize, T),
) {
    x.elements(|element, at_a, at_b| {
        let c = x.c[element];
        if c == S::ZERO {
            return;
        }
        let places = |k| (at_a + k, at_b + k * x.shape.n);
        let term = |(i, j): (usize, usize)| S::mul(x.a[i], x.b[j]);
        let all = (0..x.shape.k).map(places);
        if S::absorbs(c) {
            let equals = all.filter(|&at| S::absorbs(term(at)));
            let share = nth(equals.clone().count());
            equals.for_each(|(i, j)| body(element, i, j, share));
            return;
        }
        for (i, j) in all {
            let term = term((i, j));
            if term != S::ZERO {
                body(element, i, j, S::marginal(term, c));
            }
        }
    });
}

/// Cotangents of A and B, term by term.
pub(super) fn vjp<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    g: &[T],
) -> Result<[Vec<T>; 2]> {
    let mut ga = filled(x.a.len(), T::Acc::ZERO)?;
    let mut gb = filled(x.b.len(), T::Acc::ZERO)?;
    shares::<S, T>(x, |element, i, j, weight| {
        let (pa, pb) = S::partials(x.a[i], x.b[j]);
        let g = g[element].widen().mul(weight.widen());
        ga[i] = ga[i].add(g.mul(pa.widen()));
        gb[j] = gb[j].add(g.mul(pb.widen()));
    });
    Ok([narrowed(&ga)?, narrowed(&gb)?])
}

/// Tangent of C, term by term.
pub(super) fn jvp<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    da: &[T],
    db: &[T],
) -> Result<Vec<T>> {
    let mut dc = filled(x.c.len(), T::Acc::ZERO)?;
    shares::<S, T>(x, |element, i, j, weight| {
        let (pa, pb) = S::partials(x.a[i], x.b[j]);
        let (from_a, from_b) = (da[i].widen().mul(pa.widen()), db[j].widen().mul(pb.widen()));
        dc[element] = dc[element].add(weight.widen().mul(from_a.add(from_b)));
    });
    narrowed(&dc)
}
