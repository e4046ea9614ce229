//! Graded diagonal tensors: one real number for each state of a leg, such as singular values and eigenvalues.
//!
//! ```text
//! values     sectors ascending, then states        dᵢ of the map  Σ |i⟩ dᵢ ⟨i|
//! ```
//!
//! [`GradedTensor::scale_bond`] multiplies a leg by such a tensor in O(number of stored entries).

use std::fmt;

use t4a_diff::{Array, Flags};
use t4a_tensor::DType;

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::leg::Leg;
use crate::operation::{FrobeniusNorm, ScaleBond, apply, one};
use crate::sector::Sector;
use crate::spec::Spec;

/// Diagonal tensor on a leg: one real number per state. Elementwise functions of it are differentiable.
///
/// ```
/// use t4a_linalg::krylov::Vector;
/// use t4a_structured::{Direction, FluxOn, GradedTensor, Leg, Spec, U1};
/// use t4a_tensor::DType;
/// use t4a_tensor::random::Generator;
///
/// let leg = |d| Leg::new([(U1(0), 3), (U1(1), 2)], d);
/// let spec = Spec::new(vec![leg(Direction::Out)?, leg(Direction::In)?], U1(0), 1)?;
/// let a = GradedTensor::random(spec, DType::F64, false, &Generator::new(1))?;
/// let svd = a.svd(1, FluxOn::Right)?;
/// // a⁻¹ = V s⁻¹ Uᴴ
/// let vh = svd.vh.scale_bond(0, &svd.s.inverse(1e-14)?)?;
/// let inverse = vh.dagger()?.contract(&svd.u.dagger()?, &[1], &[0])?;
/// let one = a.contract(&inverse, &[1], &[0])?;
/// let identity = GradedTensor::identity(&[leg(Direction::Out)?], DType::F64)?;
/// assert!(Vector::norm(&one.sub(&identity)?)? < 1e-10);
/// # Ok::<(), t4a_structured::StructuredError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bond<S, A> {
    leg: Leg<S>,
    values: A,
}

impl<S: Sector, A: Array> Bond<S, A> {
    /// Diagonal tensor with `leg.dim()` values, by ascending sectors.
    ///
    /// # Errors
    /// `LengthMismatch`; `Tensor` for a dtype that is not a float.
    pub fn new(leg: Leg<S>, values: A) -> Result<Self> {
        let op = "bond";
        let (required, given) = (leg.dim(), values.shape().iter().product());
        if values.shape() != [required] {
            return Err(StructuredError::LengthMismatch { op, required, given });
        }
        if !values.dtype().is_float() {
            return Err(crate::kernels::unsupported(op, values.dtype()));
        }
        Ok(Self::of(leg, values))
    }

    /// As [`Bond::new`], without checks.
    pub(super) fn of(leg: Leg<S>, values: A) -> Self {
        Self { leg, values }
    }

    /// The leg; it is outgoing on the right factor of a factorisation.
    pub fn leg(&self) -> &Leg<S> {
        &self.leg
    }

    /// Values, flat, by ascending sectors.
    pub fn values(&self) -> &A {
        &self.values
    }

    /// Values as f64, by sector.
    ///
    /// # Errors
    /// Errors of reading the array.
    pub fn numbers(&self) -> Result<Vec<(S, Vec<f64>)>> {
        let wide = self.values.elements()?.cast(DType::F64)?;
        let mut rest = &wide.typed::<f64>()?.to_vec()?[..];
        let mut all = Vec::with_capacity(self.leg.sectors().len());
        for &(sector, dim) in self.leg.sectors() {
            let (own, behind) = rest.split_at_checked(dim).unwrap_or((rest, &[]));
            all.push((sector, own.to_vec()));
            rest = behind;
        }
        Ok(all)
    }

    /// Applies an elementwise function, which must keep the shape.
    ///
    /// # Errors
    /// `Shape`.
    pub fn map(&self, f: impl Fn(&A) -> A) -> Result<Self> {
        let values = f(&self.values);
        if values.shape() != self.values.shape() {
            let (required, given) = (self.values.shape(), values.shape());
            return Err(StructuredError::Shape { op: "map of a bond", required, given });
        }
        Ok(Self::of(self.leg.clone(), values))
    }

    /// `c d`.
    pub fn scale(&self, c: f64) -> Self {
        Self::of(self.leg.clone(), self.values.scale(c))
    }

    /// Pseudo-inverse: `1 / dᵢ` where `|dᵢ|` exceeds `cutoff` times the largest modulus, else 0.
    ///
    /// # Errors
    /// `Invalid` for a cutoff that is negative or not finite.
    pub fn inverse(&self, cutoff: f64) -> Result<Self> {
        if !(cutoff.is_finite() && cutoff >= 0.0) {
            let message = format!("the cutoff {cutoff}; a finite number of at least 0 is required");
            return Err(StructuredError::Invalid { op: "inverse of a bond", message });
        }
        let x = &self.values;
        if self.leg.dim() == 0 {
            return Ok(self.clone());
        }
        let size = x.detach().abs();
        let least = size.max(0).scale(cutoff).expand(&size.shape());
        let kept = size.greater(&least);
        let small = kept.not();
        Ok(Self::of(self.leg.clone(), x.fill(&small, 1.0).recip().fill(&small, 0.0)))
    }

    /// `√dᵢ`. The derivative at 0 is 0.
    ///
    /// # Errors
    /// `Invalid` for a negative value, with its sector.
    pub fn sqrt(&self) -> Result<Self> {
        for (sector, values) in self.numbers()? {
            if let Some(value) = values.iter().find(|&&value| value < 0.0) {
                let message = format!("the value {value} in sector {sector} has no real root");
                return Err(StructuredError::Invalid { op: "sqrt of a bond", message });
            }
        }
        let zero = self.values.equals(0.0);
        let root = self.values.fill(&zero, 1.0).sqrt().fill(&zero, 0.0);
        Ok(Self::of(self.leg.clone(), root))
    }

    /// `√Σ d²`, an array of one element. The derivative at 0 is 0.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn norm(&self) -> Result<A> {
        one(&FrobeniusNorm { complex: false }, &[&self.values])
    }

    /// `d / ‖d‖`.
    ///
    /// # Errors
    /// `Invalid` for a norm that is 0 or not finite.
    pub fn normalised(&self) -> Result<Self> {
        let norm = self.norm()?;
        let size = norm.elements()?.cast(DType::F64)?.typed::<f64>()?.to_vec()?[0];
        if !(size.is_finite() && size > 0.0) {
            let message = format!("values of norm {size} cannot be normalised");
            return Err(StructuredError::Invalid { op: "normalised", message });
        }
        let values = self.values.div(&norm.expand(&self.values.shape()));
        Ok(Self::of(self.leg.clone(), values))
    }

    /// Probabilities `pᵢ = dᵢ² / Σ d²` of a bond of singular values (entanglement spectrum).
    ///
    /// # Errors
    /// As [`Bond::normalised`].
    pub fn probabilities(&self) -> Result<Self> {
        self.normalised()?.map(|x| x.mul(x))
    }

    /// Von Neumann entropy `−Σ p ln p` of the [probabilities](Bond::probabilities), an array of one element.
    ///
    /// # Errors
    /// As [`Bond::normalised`].
    pub fn entropy(&self) -> Result<A> {
        let p = self.probabilities()?.values;
        let zero = p.equals(0.0);
        Ok(p.mul(&p.fill(&zero, 1.0).ln()).sum(0).neg())
    }

    /// Rényi entropy `ln(Σ pᵅ) / (1 − α)`, an array of one element; order 1 is [`Bond::entropy`].
    ///
    /// # Errors
    /// As [`Bond::normalised`]; `Invalid` for an order that is not positive and finite.
    pub fn renyi_entropy(&self, order: f64) -> Result<A> {
        if !(order.is_finite() && order > 0.0) {
            let message = format!("the order {order}; a positive number is required");
            return Err(StructuredError::Invalid { op: "renyi_entropy", message });
        }
        if order == 1.0 {
            return self.entropy();
        }
        let p = self.probabilities()?.values;
        let zero = p.equals(0.0);
        let power = p.fill(&zero, 1.0).pow(order).fill(&zero, 0.0);
        Ok(power.sum(0).ln().scale(1.0 / (1.0 - order)))
    }

    /// Elementwise product `dᵢ eᵢ` with a bond on the same leg or its dual.
    ///
    /// # Errors
    /// `LegMismatch`; `DType`.
    pub fn mul(&self, other: &Self) -> Result<Self> {
        let op = "product of bonds";
        if self.leg.sectors() != other.leg.sectors() {
            let (lhs, rhs) = (self.leg.to_string(), other.leg.to_string());
            let required = "the same sectors";
            return Err(StructuredError::LegMismatch { op, axis: 0, lhs, other: 0, rhs, required });
        }
        self.check_dtype(op, &other.values)?;
        Ok(Self::of(self.leg.clone(), self.values.mul(&other.values)))
    }

    /// The map `Σ |i⟩ dᵢ ⟨i|` as a tensor with the leg and its dual. [`GradedTensor::contract`] with it equals
    /// [`GradedTensor::scale_bond`].
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn to_tensor(&self) -> Result<GradedTensor<S, A>> {
        let spec = Spec::new(vec![self.leg.clone(), self.leg.dual()], S::TRIVIAL, 1)?;
        let diagonal = one(&spec.diagonal(), &[&self.values])?;
        GradedTensor::new(spec, diagonal, None)?.as_matrices("bond")
    }

    fn check_dtype(&self, op: &'static str, other: &A) -> Result<()> {
        let (required, given) = (self.values.dtype(), other.dtype());
        match required == given {
            true => Ok(()),
            false => Err(StructuredError::DType { op, required, given }),
        }
    }

    /// Checks that an axis is the leg of this bond or its dual.
    pub(super) fn check(&self, spec: &Spec<S>, axis: usize) -> Result<()> {
        let (op, rank) = ("scale_bond", spec.legs().len());
        let leg = spec.legs().get(axis).ok_or(StructuredError::Axis { op, axis, rank })?;
        if leg.sectors() == self.leg.sectors() {
            return Ok(());
        }
        Err(StructuredError::LegMismatch {
            op,
            axis,
            lhs: leg.to_string(),
            other: 0,
            rhs: self.leg.to_string(),
            required: "the sectors of the bond",
        })
    }
}

impl<S: Sector, A: Array> fmt::Display for Bond<S, A> {
    /// Prints the leg, then the values of each sector on one line.
    ///
    /// ```text
    /// out {0: 2, 1: 1}
    /// 0: 0.8000 0.1000
    /// 1: 0.6000
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.leg)?;
        for (sector, values) in self.numbers().map_err(|_| fmt::Error)? {
            write!(f, "\n{sector}:")?;
            values.iter().try_for_each(|value| write!(f, " {value:.4}"))?;
        }
        Ok(())
    }
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Multiplies each entry by the value of its state on leg `axis`, which is the leg of the bond or its dual.
    ///
    /// # Errors
    /// `Axis`; `LegMismatch` for another leg; `DType`.
    pub fn scale_bond(&self, axis: usize, s: &Bond<S, A>) -> Result<Self> {
        s.check(&self.spec, axis)?;
        s.check_dtype("scale_bond", &self.re)?;
        let op = ScaleBond { complex: self.im.is_some(), ..self.spec.numbers(axis)? };
        let operands: Vec<&A> = self.arrays().into_iter().chain([s.values()]).collect();
        Self::of_results(self.spec.clone(), apply(&op, &operands)?)
    }

    /// [`GradedTensor::scale_bond`] of the last leg: scales the columns of a left factor.
    ///
    /// # Errors
    /// As [`GradedTensor::scale_bond`].
    pub fn scale_columns(&self, s: &Bond<S, A>) -> Result<Self> {
        self.scale_bond(self.spec.legs().len().saturating_sub(1), s)
    }

    /// [`GradedTensor::scale_bond`] of the first leg: scales the rows of a right factor.
    ///
    /// # Errors
    /// As [`GradedTensor::scale_bond`].
    pub fn scale_rows(&self, s: &Bond<S, A>) -> Result<Self> {
        self.scale_bond(0, s)
    }
}
