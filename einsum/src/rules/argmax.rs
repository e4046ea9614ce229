//! Selective sums, which equal one of their terms: max and min.
//!
//! The cotangent is passed only to the first term that equals the sum. This is a subgradient: max-plus contractions are
//! convex. Among several NaN the first one is the argmax.

use std::ops::ControlFlow;

use t4a_algebra::Numeric;
use t4a_algebra::gemm::NO_ARGMAX;

use super::{Differentiable, MatrixProduct, narrowed, scaled};
use crate::error::Result;
use crate::memory::filled;

/// Equal, or both NaN.
#[inline]
#[allow(clippy::eq_op)]
pub(crate) fn same<T: PartialEq>(a: T, b: T) -> bool {
    a == b || (a != a && b != b)
}

/// Calls `body(element, index in a, index in b)` with the argmax of every element that has one.
#[inline]
fn terms<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    mut body: impl FnMut(usize, usize, usize),
) {
    let n = x.shape.n;
    if let Some(argmax) = &x.argmax {
        return x.elements(|element, at_a, at_b| {
            let k = argmax[element];
            if k != NO_ARGMAX {
                body(element, at_a + k as usize, at_b + k as usize * n);
            }
        });
    }
    x.elements(|element, at_a, at_b| {
        let c = x.c[element];
        if c == S::ZERO {
            return;
        }
        let _ = (0..x.shape.k).try_for_each(|k| {
            let (i, j) = (at_a + k, at_b + k * n);
            if !same(S::mul(x.a[i], x.b[j]), c) {
                return ControlFlow::Continue(());
            }
            body(element, i, j);
            ControlFlow::Break(())
        });
    });
}

/// Cotangents of A and B.
///
/// Cost: mn scattered additions with a known argmax, mnk comparisons without.
pub(super) fn vjp<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    g: &[T],
) -> Result<[Vec<T>; 2]> {
    let mut ga = filled(x.a.len(), T::Acc::ZERO)?;
    let mut gb = filled(x.b.len(), T::Acc::ZERO)?;
    terms::<S, T>(x, |element, i, j| {
        let (pa, pb) = S::partials(x.a[i], x.b[j]);
        ga[i] = ga[i].add(scaled(g[element], pa));
        gb[j] = gb[j].add(scaled(g[element], pb));
    });
    Ok([narrowed(&ga)?, narrowed(&gb)?])
}

/// Tangent of C.
pub(super) fn jvp<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    da: &[T],
    db: &[T],
) -> Result<Vec<T>> {
    let mut dc = filled(x.c.len(), T::ZERO)?;
    terms::<S, T>(x, |element, i, j| {
        let (pa, pb) = S::partials(x.a[i], x.b[j]);
        dc[element] = T::narrow(scaled(da[i], pa).add(scaled(db[j], pb)));
    });
    Ok(dc)
}
