//! Graded tensors: a structure and a flat array, over any implementor of the vocabulary of arrays. On the
//! engine they compute, on duals they carry tangents, on the primitives of a tape they are recorded.
//!
//! ```text
//! mod       parts, sums, norms
//! move      permute, fuse, split, trace, conj, contract
//! dense     to and from dense arrays, random entries
//! bond      graded diagonal tensors: values, inverses, roots, entropies
//! construct of blocks, of elements, direct sums, δ
//! complex   real and imaginary parts, complex numbers
//! krylov    vectors of Lanczos and its relatives
//! factor    svd, qr, lq, eigh, eig by coupled sectors, truncation over all of them
//! inverse   inverses, pseudo-inverses, systems of equations
//! polar     isometries and positive factors
//! null      orthogonal complements
//! function  exponentials, roots and logarithms of maps
//! named     names of legs
//! network   einsum with an order found for it
//! display   legs, blocks and fill as a picture
//! data      serde
//! ```

mod bond;
mod complex;
mod construct;
pub(crate) mod data;
mod dense;
mod display;
mod factor;
mod function;
mod inverse;
mod krylov;
mod moves;
mod named;
mod network;
mod null;
mod polar;
mod truncate;

pub use bond::Bond;
pub use dense::Forbidden;
pub use factor::{Eig, Eigh, FluxOn, Lq, Qr, Svd};
pub use named::Named;
pub use network::einsum;
pub use polar::Polar;
pub use truncate::{BondTruncation, Truncated};

use t4a_diff::{Array, Eager};

use crate::error::{Result, StructuredError};
use crate::operation::{Inner, Norm, apply, one};
use crate::sector::Sector;
use crate::spec::Spec;

/// A tensor of a symmetry: its structure, and all allowed entries in one flat array. Complex entries are a
/// pair of arrays, so that gradients are those of real and imaginary parts.
///
/// As data of `serde` it has its legs, and combinations of their sectors are listed when it is read: those of the row
/// legs, of the column legs and of fused legs, each times the number of legs. To write or read more of them than
/// 2²⁰ + 8·elements·(1 + legs) is an error, and so are legs fused more than 100 times.
#[derive(Clone, Debug)]
pub struct GradedTensor<S, A = Eager> {
    spec: Spec<S>,
    re: A,
    im: Option<A>,
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// A tensor of its parts: real parts, and imaginary ones if it is complex.
    ///
    /// # Errors
    /// `LengthMismatch`; `DType` for parts of different types; `Tensor` for what is not a float.
    pub fn new(spec: Spec<S>, re: A, im: Option<A>) -> Result<Self> {
        let op = "graded tensor";
        for x in [Some(&re), im.as_ref()].into_iter().flatten() {
            if x.shape() != [spec.len()] {
                let (required, given) = (spec.len(), x.shape().iter().product());
                return Err(StructuredError::LengthMismatch { op, required, given });
            }
            if !x.dtype().is_float() {
                return Err(crate::kernels::unsupported(op, x.dtype()));
            }
            if x.dtype() != re.dtype() {
                let (required, given) = (re.dtype(), x.dtype());
                return Err(StructuredError::DType { op, required, given });
            }
        }
        Ok(Self { spec, re, im })
    }

    /// Legs, charge and blocks.
    pub fn spec(&self) -> &Spec<S> {
        &self.spec
    }

    /// The real parts of all allowed entries.
    pub fn re(&self) -> &A {
        &self.re
    }

    /// The imaginary parts, if it is complex.
    pub fn im(&self) -> Option<&A> {
        self.im.as_ref()
    }

    /// The structure and the arrays.
    pub fn into_parts(self) -> (Spec<S>, A, Option<A>) {
        (self.spec, self.re, self.im)
    }

    /// A tensor of the one or two results of an operation.
    fn of_results(spec: Spec<S>, results: Vec<A>) -> Result<Self> {
        let mut results = results.into_iter();
        let Some(re) = results.next() else { unreachable!("an operation has a result") };
        Self::new(spec, re, results.next())
    }

    /// The real parts, and the imaginary ones if there are any.
    fn arrays(&self) -> Vec<&A> {
        [Some(&self.re), self.im.as_ref()].into_iter().flatten().collect()
    }

    /// The same structure over other arrays.
    fn map(&self, f: impl Fn(&A) -> A) -> Self {
        Self { spec: self.spec.clone(), re: f(&self.re), im: self.im.as_ref().map(f) }
    }

    /// Zeros of this structure, of the type of this tensor.
    pub fn zeros_of(&self, spec: &Spec<S>) -> Self {
        let zeros = |x: &A| x.full(&[spec.len()], 0.0);
        Self { spec: spec.clone(), re: zeros(&self.re), im: self.im.as_ref().map(zeros) }
    }

    /// The imaginary parts, zeros for a real tensor.
    fn imaginary(&self) -> A {
        let zeros = || self.re.full(&[self.spec.len()], 0.0);
        self.im.clone().unwrap_or_else(zeros)
    }

    fn check_same(&self, op: &'static str, other: &Self) -> Result<()> {
        if self.spec != other.spec {
            let (lhs, rhs) = (self.spec.to_string(), other.spec.to_string());
            return Err(StructuredError::SpecMismatch { op, lhs, rhs });
        }
        if self.re.dtype() != other.re.dtype() {
            let (required, given) = (self.re.dtype(), other.re.dtype());
            return Err(StructuredError::DType { op, required, given });
        }
        Ok(())
    }

    /// `a + b`, of one structure.
    ///
    /// # Errors
    /// `SpecMismatch`, `DType`.
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.check_same("add", other)?;
        let im = match (&self.im, &other.im) {
            (Some(a), Some(b)) => Some(a.add(b)),
            (Some(x), None) | (None, Some(x)) => Some(x.clone()),
            (None, None) => None,
        };
        Ok(Self { spec: self.spec.clone(), re: self.re.add(&other.re), im })
    }

    /// `a − b`, of one structure.
    ///
    /// # Errors
    /// As [`GradedTensor::add`].
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.check_same("sub", other)?;
        self.add(&other.scale(-1.0))
    }

    /// `c a`.
    pub fn scale(&self, c: f64) -> Self {
        self.map(|x| x.scale(c))
    }

    /// `Σ |a|²`, an array of one element.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn norm_squared(&self) -> Result<A> {
        let own = self.arrays();
        let op = Inner { complex: self.im.is_some() };
        one(&op, &[&own[..], &own[..]].concat())
    }

    /// `√Σ |a|²`, an array of one element; its derivative at 0 is 0.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn norm(&self) -> Result<A> {
        one(&Norm { complex: self.im.is_some() }, &self.arrays())
    }

    /// `Σ a* b` over entries, which for fermions is no contraction; real and imaginary part.
    ///
    /// # Errors
    /// `SpecMismatch`, `DType`.
    pub fn inner(&self, other: &Self) -> Result<(A, Option<A>)> {
        self.check_same("inner", other)?;
        if self.im.is_none() && other.im.is_none() {
            return Ok((one(&Inner { complex: false }, &[&self.re, &other.re])?, None));
        }
        let operands = [&self.re, &self.imaginary(), &other.re, &other.imaginary()];
        let mut results = apply(&Inner { complex: true }, &operands)?.into_iter();
        let Some(re) = results.next() else { unreachable!("a pair") };
        Ok((re, results.next()))
    }

    /// A block as an array of its shape: sectors as places in their legs; none if the symmetry forbids it.
    /// Real part, and imaginary part of a complex tensor.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn block(&self, places: &[u32]) -> Result<Option<(A, Option<A>)>> {
        let Some(block) = self.spec.block(places) else { return Ok(None) };
        let plan = self.spec.extract(block);
        let one = |x: &A| one(&plan, &[x]).map(|x| x.reshape(block.shape()));
        Ok(Some((one(&self.re)?, self.im.as_ref().map(one).transpose()?)))
    }
}
