//! Derivatives of the Cholesky factorisation.
//!
//! With `Φ(X)` the lower triangle of `X` with halved diagonal: `dL = L Φ(L⁻¹ dA L⁻ᴴ)` and
//! `Ā = L⁻ᴴ P L⁻¹`, `P = herm(Φ(Lᴴ L̄))` with a real diagonal. Triangular solves only.
//!
//! Reference: I. Murray 2016, eq. (8) and (9).

use crate::triangular::Triangle;
use crate::vocabulary::{Matrices, Region};

/// Lower triangle with half of the real part of the diagonal.
fn phi<M: Matrices>(x: &M) -> M {
    let diagonal = M::from_re(&x.mask(Region::Diagonal).re());
    x.mask(Region::Lower(-1)).add(&diagonal.scale(0.5))
}

/// `Ā`, Hermitian, from the cotangent of `L`. The strict upper triangle of `L̄` is ignored.
pub fn vjp<M: Matrices>(l: &M, l_cotangent: &M) -> M {
    let overlap = l.adjoint().matmul(&l_cotangent.mask(Region::Lower(0)));
    let p = overlap.hermitian_from_lower().scale(0.5);
    let left = l.solve_triangular(&p, Triangle::LOWER.adjoint());
    l.solve_triangular_right(&left, Triangle::LOWER)
}

/// `dL` along `(dA + dAᴴ)/2`.
pub fn jvp<M: Matrices>(l: &M, da: &M) -> M {
    let left = l.solve_triangular(&da.herm(), Triangle::LOWER);
    l.matmul(&phi(&l.solve_triangular_right(&left, Triangle::LOWER.adjoint())))
}
