//! [`Matrices`] over any [`Array`]: real matrices are arrays, complex ones pairs of arrays.
//!
//! Linear systems and singular values inside of a rule are operations on the arrays ([`Array::apply`]), so that a
//! tape records each as one node and dual numbers run its rule. An error is carried in the result and returned at the
//! end of the rule.

mod complex;
mod real;

use t4a_diff::{Array, Value};

use super::{Carrier, ComplexMatrix, Factors, Matrices, RealMatrix};
use crate::error::Result;
use crate::idle::Idle;
use crate::operation::{Over, Part, PartKind, next};
use crate::spectrum::{MatrixFunction, Spectral, SpectralOperation};
use crate::table::{Linalg, MatrixOp};

/// Consecutive arrays of these parts.
fn arrays<A: Array, M: Over<A>>(parts: Vec<Part<M>>) -> Result<Vec<Value<A>>> {
    let mut arrays = Vec::new();
    for part in parts {
        M::write(part, &mut arrays)?;
    }
    Ok(arrays.into_iter().map(Value::Float).collect())
}

/// First result of an operation on matrices of this type.
fn apply<A: Array, M: Over<A>>(
    op: impl Into<MatrixOp>,
    kind: PartKind,
    inputs: &[&M],
) -> Result<Part<M>> {
    let inputs = arrays(inputs.iter().map(|&x| Part::Full(x.clone())).collect())?;
    let op = Linalg { op: op.into(), complex: M::IS_COMPLEX };
    let out = A::apply(&op, &inputs, &vec![false; inputs.len()])?;
    M::read(kind, &mut out.results.into_iter())
}

/// Result of an operation of second derivatives.
fn spectral<A: Array, M: Over<A>>(op: Spectral, parts: Vec<Part<M>>) -> Result<Part<M>> {
    let op = SpectralOperation { op, complex: M::IS_COMPLEX };
    let inputs = arrays(parts)?;
    let out = A::apply(&op, &inputs, &vec![false; inputs.len()])?;
    M::read(op.op.result(), &mut out.results.into_iter())
}

fn gradient<A: Array, M: Over<A>>(
    factors: &Factors<M>,
    carrier: Carrier<'_, M>,
    c: &M::Real,
) -> Result<M> {
    let parts = factors.parts(carrier, Part::Real(c.clone()));
    Ok(spectral(Spectral::Gradient(factors.of), parts)?.into_full())
}

fn tangent<A: Array, M: Over<A>>(
    factors: &Factors<M>,
    carrier: Carrier<'_, M>,
    da: &M,
) -> Result<M::Real> {
    let parts = factors.parts(carrier, Part::Full(da.clone()));
    Ok(spectral(Spectral::Tangent(factors.of), parts)?.into_real())
}

fn unsplit<A: Array, M: Over<A>>(
    gradient: M,
    a: &M,
    factors: Factors<M>,
    vectors: bool,
) -> Result<M> {
    let [u, s, v] = factors.detached();
    let parts = vec![Part::Full(a.clone()), Part::Full(gradient), u, s, v];
    Ok(spectral(Spectral::Unsplit { of: factors.of, vectors }, parts)?.into_full())
}

fn function_slope<A: Array, M: Over<A>>(
    c: &M,
    a: &M,
    factors: Factors<M>,
    f: MatrixFunction,
) -> Result<M> {
    let crowded = f.crowded(&factors.s.detached());
    let sizes = crowded.norms()?;
    let apart = |c: &M, factors: Factors<M>| unsplit(f.slope(&factors, c)?, a, factors, false);
    if sizes.iter().all(|&x| x == 0.0) {
        return apart(c, factors);
    }
    let close = |c: M| {
        let [u, s, v] = factors.detached();
        let parts = vec![Part::Full(a.clone()), Part::Full(c), u, s, v];
        spectral(Spectral::Function(f), parts).map(Part::into_full)
    };
    if sizes.iter().all(|&x| x > 0.0) {
        return close(c.clone());
    }
    // Each matrix of the batch by its own rule.
    let gradient = close(c.mul_real(&crowded))?;
    let idle = Idle::new(crowded);
    Ok(gradient.add(&apart(&idle.cotangent(c), idle.factors(&factors))?))
}

fn settled<A: Array, M: Over<A>>(x: M, a: &M, values: &M::Real, f: MatrixFunction) -> Result<M> {
    let parts = vec![Part::Full(a.clone()), Part::Full(x), Part::Real(values.detached())];
    Ok(spectral(Spectral::Settled(f), parts)?.into_full())
}

fn unsplit_eigenvectors<A: Array, M: Over<A>>(
    gradient: M,
    a: &M,
    values: &M::Complex,
    vectors: &M::Complex,
) -> Result<M> {
    let factors = [values, vectors].map(|x| Part::Complex(x.detached()));
    let parts = [Part::Full(a.clone()), Part::Full(gradient)].into_iter().chain(factors);
    Ok(spectral(Spectral::UnsplitEigenvectors, parts.collect())?.into_full())
}

fn real<A: Array>(arrays: &mut impl Iterator<Item = A>) -> RealMatrix<A> {
    RealMatrix::new(next(arrays))
}

fn complex<A: Array>(arrays: &mut impl Iterator<Item = A>) -> ComplexMatrix<A> {
    ComplexMatrix { re: real(arrays), im: real(arrays) }
}

impl<A: Array> Over<A> for RealMatrix<A> {
    fn read(kind: PartKind, arrays: &mut impl Iterator<Item = A>) -> Result<Part<Self>> {
        Ok(match kind {
            PartKind::Full => Part::Full(real(arrays)),
            PartKind::Real => Part::Real(real(arrays)),
            PartKind::Complex => Part::Complex(complex(arrays)),
        })
    }

    fn write(part: Part<Self>, into: &mut Vec<A>) -> Result<()> {
        match part {
            Part::Full(x) | Part::Real(x) => into.push(x.0?),
            Part::Complex(z) => into.extend([z.re.0?, z.im.0?]),
        }
        Ok(())
    }
}

impl<A: Array> Over<A> for ComplexMatrix<A> {
    fn read(kind: PartKind, arrays: &mut impl Iterator<Item = A>) -> Result<Part<Self>> {
        Ok(match kind {
            PartKind::Full => Part::Full(complex(arrays)),
            PartKind::Real => Part::Real(real(arrays)),
            PartKind::Complex => Part::Complex(complex(arrays)),
        })
    }

    fn write(part: Part<Self>, into: &mut Vec<A>) -> Result<()> {
        match part {
            Part::Real(x) => into.push(x.0?),
            Part::Full(z) | Part::Complex(z) => into.extend([z.re.0?, z.im.0?]),
        }
        Ok(())
    }
}
