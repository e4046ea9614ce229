//! Sums in which every term has a share.

use t4a_algebra::Numeric;

use super::{Differentiable, Matrices, narrowed};

/// Calls `body(element, place in a, place in b, weight)` for all terms that have a share.
#[inline]
fn shares<S: Differentiable<T>, T: Numeric>(
    x: &Matrices<'_, T>,
    mut body: impl FnMut(usize, usize, usize, T),
) {
    x.elements(|element, at_a, at_b| {
        let c = x.c[element];
        if c == S::ZERO {
            return;
        }
        for k in 0..x.shape.k {
            let (i, j) = (at_a + k, at_b + k * x.shape.n);
            let term = S::mul(x.a[i], x.b[j]);
            if term != S::ZERO {
                body(element, i, j, S::marginal(term, c));
            }
        }
    });
}

/// Cotangents of A and B, term by term.
pub(super) fn vjp<S: Differentiable<T>, T: Numeric>(x: &Matrices<'_, T>, g: &[T]) -> [Vec<T>; 2] {
    let (mut ga, mut gb) = (vec![T::Acc::ZERO; x.a.len()], vec![T::Acc::ZERO; x.b.len()]);
    shares::<S, T>(x, |element, i, j, weight| {
        let (pa, pb) = S::partials(x.a[i], x.b[j]);
        let g = g[element].widen().mul(weight.widen());
        ga[i] = ga[i].add(g.mul(pa.widen()));
        gb[j] = gb[j].add(g.mul(pb.widen()));
    });
    [narrowed(ga), narrowed(gb)]
}

/// Tangent of C, term by term.
pub(super) fn jvp<S: Differentiable<T>, T: Numeric>(
    x: &Matrices<'_, T>,
    da: &[T],
    db: &[T],
) -> Vec<T> {
    let mut dc = vec![T::Acc::ZERO; x.c.len()];
    shares::<S, T>(x, |element, i, j, weight| {
        let (pa, pb) = S::partials(x.a[i], x.b[j]);
        let (from_a, from_b) = (da[i].widen().mul(pa.widen()), db[j].widen().mul(pb.widen()));
        dc[element] = dc[element].add(weight.widen().mul(from_a.add(from_b)));
    });
    narrowed(dc)
}
