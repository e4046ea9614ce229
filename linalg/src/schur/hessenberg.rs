//! Reduction to Hessenberg form by Householder reflections, `A = Q H Qᴴ`.
//!
//! Reference: G. Golub, C. Van Loan, *Matrix Computations*, algorithm 7.4.2.

use t4a_algebra::c64;

use super::square::{Square, ZERO};

/// Overwrites `a` by `H` and returns `Q`. Cost about 14·n³/3 complex products.
pub(super) fn reduce(a: &mut Square) -> Square {
    let n = a.n();
    let mut q = Square::identity(n);
    let (mut v, mut w) = (vec![ZERO; n], vec![ZERO; n]);
    for k in 0..n.saturating_sub(2) {
        v[k + 1..].copy_from_slice(&a.col(k)[k + 1..]);
        let Some(head) = reflector(&mut v[k + 1..]) else { continue };
        a.col_mut(k)[k + 1] = head;
        a.col_mut(k)[k + 2..].fill(ZERO);
        for j in k + 1..n {
            let x = &mut a.col_mut(j)[k + 1..];
            let dot: c64 = v[k + 1..].iter().zip(&*x).map(|(v, x)| v.conj() * x).sum();
            x.iter_mut().zip(&v[k + 1..]).for_each(|(x, v)| *x -= 2.0 * dot * v);
        }
        reflect_columns(a, &v, k + 1, &mut w);
        reflect_columns(&mut q, &v, k + 1, &mut w);
    }
    q
}

/// Replaces `x` by the unit vector `v` with `(I − 2 v vᴴ) x = β e₁` and returns `β`; `None` if `x` is
/// such a vector.
fn reflector(x: &mut [c64]) -> Option<c64> {
    if x[1..].iter().all(|x| *x == ZERO) {
        return None;
    }
    let size = norm(x);
    x.iter_mut().for_each(|x| *x /= size);
    let phase = match x[0].norm() {
        0.0 => c64::new(1.0, 0.0),
        r => x[0] / r,
    };
    // No cancellation: both summands have one phase.
    x[0] += phase;
    let length = norm(x);
    x.iter_mut().for_each(|x| *x /= length);
    Some(-phase * size)
}

/// `‖x‖`, also where squares leave the range.
fn norm(x: &[c64]) -> f64 {
    let largest = x.iter().map(|x| x.re.abs().max(x.im.abs())).fold(0.0, f64::max);
    match largest.is_normal() {
        true => x.iter().map(|x| (x / largest).norm_sqr()).sum::<f64>().sqrt() * largest,
        false => largest,
    }
}

/// `A ← A (I − 2 v vᴴ)`, `v` zero before `first`.
fn reflect_columns(a: &mut Square, v: &[c64], first: usize, w: &mut [c64]) {
    w.fill(ZERO);
    for (j, v) in v.iter().enumerate().skip(first) {
        w.iter_mut().zip(a.col(j)).for_each(|(w, x)| *w += x * v);
    }
    for (j, v) in v.iter().enumerate().skip(first) {
        let c = 2.0 * v.conj();
        a.col_mut(j).iter_mut().zip(&*w).for_each(|(x, w)| *x -= w * c);
    }
}
