//! Conversion of arrays to matrices and back; complex matrices are pairs of arrays.

use t4a_diff::{Array, Eager};
use t4a_tensor::AnyTensor;

use super::{Part, PartKind};
use crate::error::Result;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// Matrices over arrays: [`RealMatrix`](crate::vocabulary::RealMatrix) and
/// [`ComplexMatrix`](crate::vocabulary::ComplexMatrix) over any arrays, engine tensors of one type over the engine's
/// arrays.
pub trait Over<A: Array>: Matrices {
    /// Reads a part, consuming as many arrays as it has.
    ///
    /// # Errors
    /// For arrays that are not matrices, or of another dtype.
    fn read(kind: PartKind, arrays: &mut impl Iterator<Item = A>) -> Result<Part<Self>>;

    /// Appends the arrays of a part.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    fn write(part: Part<Self>, into: &mut Vec<A>) -> Result<()>;
}

/// Next array of the iterator.
pub(crate) fn next<A>(arrays: &mut impl Iterator<Item = A>) -> A {
    arrays.next().unwrap_or_else(|| unreachable!("as many arrays as the kinds have"))
}

/// Reads a part from optional arrays; missing ones are zero, `None` if all are missing.
pub(crate) fn given<A: Array, M: Over<A>>(
    kind: PartKind,
    arrays: Vec<Option<A>>,
) -> Result<Option<Part<M>>> {
    let Some(like) = arrays.iter().flatten().next().cloned() else { return Ok(None) };
    let zeros = || like.full(&like.shape(), 0.0);
    let mut whole = arrays.into_iter().map(|x| x.unwrap_or_else(zeros));
    M::read(kind, &mut whole).map(Some)
}

fn read<T: LinalgScalar>(arrays: &mut impl Iterator<Item = Eager>) -> Result<Batched<T>> {
    if T::IS_COMPLEX {
        let (re, im) = (read::<T::R>(arrays)?, read::<T::R>(arrays)?);
        return Ok(Batched::from_parts(&re, &im));
    }
    Ok(Batched::new(next(arrays).tensor()?.typed::<T>()?))
}

fn write<T: LinalgScalar>(x: Batched<T>, into: &mut Vec<Eager>) -> Result<()> {
    let x = x.into_tensor()?;
    if T::IS_COMPLEX {
        // The parts are split for the caller; the route remains that of the kernel.
        let (route, x) = (x.route(), Batched::new(&x));
        for part in [x.re(), x.im()] {
            into.push(Eager::from(AnyTensor::from(part.into_tensor()?.with_route(route))));
        }
        return Ok(());
    }
    into.push(Eager::from(AnyTensor::from(x)));
    Ok(())
}

impl<T: LinalgScalar> Over<Eager> for Batched<T> {
    fn read(kind: PartKind, arrays: &mut impl Iterator<Item = Eager>) -> Result<Part<Self>> {
        Ok(match kind {
            PartKind::Full => Part::Full(read(arrays)?),
            PartKind::Real => Part::Real(read(arrays)?),
            PartKind::Complex => Part::Complex(read(arrays)?),
        })
    }

    fn write(part: Part<Self>, into: &mut Vec<Eager>) -> Result<()> {
        match part {
            Part::Full(x) => write(x, into),
            Part::Real(x) => write(x, into),
            Part::Complex(x) => write(x, into),
        }
    }
}
