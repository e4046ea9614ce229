//! Graded tensors: a structure and a flat array of any implementor of [`Array`]: engine tensors, dual numbers
//! (forward mode), or primitives of a tape (reverse mode).
//!
//! ```text
//! mod       fields, sums, norms
//! moves     permute, fuse, split, trace, conj, contract
//! dense     conversion to and from dense arrays, random entries
//! bond      graded diagonal tensors: values, inverses, roots, entropies
//! construct construction from blocks and elements, direct sums, δ
//! complex   real and imaginary parts, complex scalars
//! krylov    vectors of Lanczos and other Krylov methods
//! factor    svd, qr, lq, eigh, eig by coupled sectors, truncation over all sectors
//! inverse   inverses, pseudo-inverses, linear systems
//! polar     polar decompositions
//! null      orthogonal complements
//! function  exponentials, roots and logarithms of maps
//! named     named legs
//! network   einsum with an optimised contraction order
//! display   printing of legs, blocks and fill
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
use crate::operation::{FrobeniusNorm, InnerProduct, apply, one};
use crate::sector::Sector;
use crate::spec::Spec;

/// Tensor with an abelian symmetry: its structure, and all symmetry-allowed entries in one flat array. Complex
/// tensors have two real arrays, so that gradients are those of the real and imaginary parts.
///
/// Serialised data contains the legs; reading it enumerates the combinations of sectors of the row legs, of the
/// column legs and of fused legs, each times the number of legs. More than 2²⁰ + 8·elements·(1 + legs) of them are an
/// error on writing and on reading, and so are fusions nested more than 100 times.
#[derive(Clone, Debug)]
pub struct GradedTensor<S, A = Eager> {
    spec: Spec<S>,
    re: A,
    im: Option<A>,
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Tensor of a structure and its entries: real parts, and imaginary parts of a complex tensor.
    ///
    /// # Errors
    /// `LengthMismatch`; `DType` for parts of different dtypes; `Tensor` for a dtype that is not a float.
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

    /// Structure: legs, flux and blocks.
    pub fn spec(&self) -> &Spec<S> {
        &self.spec
    }

    /// Real parts of the stored entries, flat.
    pub fn re(&self) -> &A {
        &self.re
    }

    /// Imaginary parts of the stored entries, `None` for a real tensor.
    pub fn im(&self) -> Option<&A> {
        self.im.as_ref()
    }

    /// Splits into the structure and the arrays.
    pub fn into_parts(self) -> (Spec<S>, A, Option<A>) {
        (self.spec, self.re, self.im)
    }

    /// Tensor of the one (real) or two (complex) results of an operation.
    fn of_results(spec: Spec<S>, results: Vec<A>) -> Result<Self> {
        let mut results = results.into_iter();
        let Some(re) = results.next() else { unreachable!("an operation has a result") };
        Self::new(spec, re, results.next())
    }

    /// Real parts, and imaginary parts of a complex tensor.
    fn arrays(&self) -> Vec<&A> {
        [Some(&self.re), self.im.as_ref()].into_iter().flatten().collect()
    }

    /// Applies a function to each array; the structure is unchanged.
    fn map(&self, f: impl Fn(&A) -> A) -> Self {
        Self { spec: self.spec.clone(), re: f(&self.re), im: self.im.as_ref().map(f) }
    }

    /// Zero tensor of structure `spec`, with the dtype of `self`, real or complex as `self`.
    pub fn zeros_of(&self, spec: &Spec<S>) -> Self {
        let zeros = |x: &A| x.full(&[spec.len()], 0.0);
        Self { spec: spec.clone(), re: zeros(&self.re), im: self.im.as_ref().map(zeros) }
    }

    /// Imaginary parts; zeros for a real tensor.
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

    /// `a + b` of tensors with equal structures.
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

    /// `a − b` of tensors with equal structures.
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
    /// Errors of the allocation.
    pub fn norm_squared(&self) -> Result<A> {
        let own = self.arrays();
        let op = InnerProduct { complex: self.im.is_some() };
        one(&op, &[&own[..], &own[..]].concat())
    }

    /// `√Σ |a|²`, an array of one element. The derivative at 0 is 0.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn norm(&self) -> Result<A> {
        one(&FrobeniusNorm { complex: self.im.is_some() }, &self.arrays())
    }

    /// `Σ a* b` over entries, real and imaginary part. For fermions this is not a contraction.
    ///
    /// # Errors
    /// `SpecMismatch`, `DType`.
    pub fn inner(&self, other: &Self) -> Result<(A, Option<A>)> {
        self.check_same("inner", other)?;
        if self.im.is_none() && other.im.is_none() {
            return Ok((one(&InnerProduct { complex: false }, &[&self.re, &other.re])?, None));
        }
        let operands = [&self.re, &self.imaginary(), &other.re, &other.imaginary()];
        let mut results = apply(&InnerProduct { complex: true }, &operands)?.into_iter();
        let Some(re) = results.next() else { unreachable!("a pair") };
        Ok((re, results.next()))
    }

    /// Block as an array of its shape, given by the sector index on each leg: real part, and imaginary part of a
    /// complex tensor. `None` if the symmetry forbids the block.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn block(&self, places: &[u32]) -> Result<Option<(A, Option<A>)>> {
        let Some(block) = self.spec.block(places) else { return Ok(None) };
        let plan = self.spec.extract(block);
        let one = |x: &A| one(&plan, &[x]).map(|x| x.reshape(block.shape()));
        Ok(Some((one(&self.re)?, self.im.as_ref().map(one).transpose()?)))
    }
}
