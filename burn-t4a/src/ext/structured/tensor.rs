//! Conversion between structured tensors and Burn tensors.

use std::sync::Arc;

use burn_backend::{AutodiffBackend, Distribution};
use burn_tensor::{Tensor, TensorCreationOptions};
use t4a_diff::{Dual, Eager};
use t4a_structured::{Bond, Classes, Forbidden, Layout, Leg, Pattern, Result, Sector, Spec};

use super::parts;
use crate::ext::Complex;
use crate::ext::line::T4aTensor;
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;
use crate::ext::user::tensor;

/// A tensor graded by a symmetry, on a backend.
pub type GradedTensor<B, S> = t4a_structured::GradedTensor<S, Floats<B>>;
/// A tensor with a given set of nonzero blocks, on a backend.
pub type BlockSparseTensor<B> = t4a_structured::BlockSparseTensor<Floats<B>>;
/// A diagonal tensor, on a backend.
pub type DiagTensor<B> = t4a_structured::DiagTensor<Floats<B>>;
/// A structured tensor of dual numbers: values and tangents.
pub type DualTensor<B, L> = <L as Layout>::Tensor<Dual<Floats<B>>>;

/// Methods of structured tensors on a Burn backend, in addition to those of `t4a_structured`.
pub trait Structured<B: Operations>: Sized {
    /// Structure of the tensor.
    type Layout: Layout<Tensor<Floats<B>> = Self>;

    /// Creates a tensor from its structure and elements of rank 1.
    ///
    /// # Errors
    /// `LengthMismatch` if the number of elements differs from that of the structure.
    fn from_flat(layout: &Self::Layout, data: Tensor<B, 1>) -> Result<Self> {
        layout.with(Floats::from(data), None)
    }

    /// Creates a complex tensor from its structure and complex elements of rank 1.
    ///
    /// # Errors
    /// As [`Structured::from_flat`]; `Invalid` for tensor types that are real only.
    fn from_complex(layout: &Self::Layout, data: Complex<B, 1>) -> Result<Self> {
        let (re, im) = data.into_parts();
        layout.with(Floats::from(re), Some(Floats::from(im)))
    }

    /// Creates a real tensor from a dense one, the inverse of [`to_tensor`](Self::to_tensor). Entries outside of the
    /// structure are rejected or dropped. The states of a leg are ordered by ascending sectors. Differentiable.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_t4a::ext::structured::{Direction, Forbidden, GradedTensor, Leg, Spec, Structured, U1};
    /// use burn_t4a::{BurnT4a, T4aDevice};
    ///
    /// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
    /// let spec = Spec::new(vec![spin.clone(), spin.dual()], U1(0), 1)?;
    /// // A matrix that keeps the magnetisation is diagonal.
    /// let dense = Tensor::<BurnT4a, 2>::from_floats([[3.0, 0.5], [0.0, -3.0]], &T4aDevice);
    /// let graded = GradedTensor::from_tensor(&spec, dense.clone(), Forbidden::Project)?;
    /// graded.flat().into_data().assert_eq(&[3.0f32, -3.0].into(), false);
    /// let error = GradedTensor::from_tensor(&spec, dense, Forbidden::Error(0.0)).unwrap_err();
    /// assert!(error.to_string().contains("the entry at [0, 1] is 0.5"), "{error}");
    /// # Ok::<(), burn_t4a::ext::structured::StructuredError>(())
    /// ```
    ///
    /// # Errors
    /// `Shape`; `FluxViolation` or `NotStored` with the first entry outside of the structure that exceeds the tolerance.
    fn from_tensor<const D: usize>(
        layout: &Self::Layout,
        dense: Tensor<B, D>,
        forbidden: Forbidden,
    ) -> Result<Self> {
        layout.of_dense(&Floats::from(dense), None, forbidden)
    }

    /// Creates a tensor of zeros, of the default dtype unless the options have one.
    ///
    /// # Errors
    /// `Tensor` for dtypes that are not floats.
    fn zeros(layout: &Self::Layout, options: impl Into<TensorCreationOptions<B>>) -> Result<Self> {
        Self::from_flat(layout, Tensor::zeros([layout.elements()], options))
    }

    /// Copies an engine tensor (an identity, an isometry, deserialised data) to a device.
    ///
    /// # Errors
    /// Errors of memory allocation.
    fn from_engine(
        engine: &<Self::Layout as Layout>::Tensor<Eager>,
        device: &B::Device,
    ) -> Result<Self> {
        let (layout, re, im) = Self::Layout::parts::<Eager>(engine);
        let enter = |x: Eager| -> Result<Floats<B>> {
            let data =
                T4aTensor::from_any(parts::engine(x, layout.elements())?)?.try_into_data()?;
            Ok(Floats(B::float_from_data(data, device)))
        };
        layout.with(enter(re)?, im.map(enter).transpose()?)
    }

    /// Copies the values to a tensor of the engine.
    ///
    /// # Errors
    /// Errors of reading the elements.
    fn to_engine(&self) -> Result<<Self::Layout as Layout>::Tensor<Eager>> {
        parts::on_engine::<Self::Layout, Floats<B>>(self)
    }

    /// Creates a tensor of independent random elements of a distribution.
    ///
    /// # Errors
    /// As [`Structured::zeros`].
    fn random(
        layout: &Self::Layout,
        distribution: Distribution,
        options: impl Into<TensorCreationOptions<B>>,
    ) -> Result<Self> {
        Self::from_flat(layout, Tensor::random([layout.elements()], distribution, options))
    }

    /// Elements in rank 1; for a complex tensor the real parts.
    fn flat(&self) -> Tensor<B, 1> {
        flat(Self::Layout::parts::<Floats<B>>(self).1)
    }

    /// Structure, and elements: one real tensor, or real and imaginary parts of a complex tensor.
    fn to_parts(&self) -> (Self::Layout, Vec<Tensor<B, 1>>) {
        let (layout, re, im) = Self::Layout::parts::<Floats<B>>(self);
        (layout, [Some(re), im].into_iter().flatten().map(flat).collect())
    }

    /// Elements as complex numbers; imaginary parts of a real tensor are zero.
    fn complex_flat(&self) -> Complex<B, 1> {
        let (_, re, im) = Self::Layout::parts::<Floats<B>>(self);
        complex(flat(re), im.map(flat))
    }

    /// Dense array of a real tensor, zeros included.
    ///
    /// # Errors
    /// `Tensor` if `D` is not the rank, `Invalid` for a complex tensor.
    fn to_tensor<const D: usize>(&self) -> Result<Tensor<B, D>> {
        Ok(parts::real_dense::<Self::Layout, Floats<B>>(self)?.tensor()?)
    }

    /// Dense array as complex numbers, zeros included.
    ///
    /// # Errors
    /// `Tensor` if `D` is not the rank.
    fn to_complex<const D: usize>(&self) -> Result<Complex<B, D>> {
        let (re, im) = Self::Layout::dense::<Floats<B>>(self)?;
        Ok(complex(re.tensor()?, im.map(|im| im.tensor()).transpose()?))
    }

    /// Attaches a tangent; `None` means zero. Operations on such tensors compute their jvps.
    ///
    /// # Errors
    /// `SpecMismatch` if the tangent has another structure.
    fn with_tangent(&self, tangent: Option<&Self>) -> Result<DualTensor<B, Self::Layout>> {
        parts::with_tangent::<Self::Layout, Floats<B>>(self, tangent)
    }

    /// Splits a tensor of dual numbers into value and tangent.
    ///
    /// # Errors
    /// None in practice, because both parts have the structure of the tensor.
    fn from_dual(dual: &DualTensor<B, Self::Layout>) -> Result<(Self, Self)> {
        parts::from_dual::<Self::Layout, Floats<B>>(dual)
    }

    /// Applies `f` to the elements; for complex tensors to real and imaginary part. `f` must map zero to zero.
    fn map_flat(&self, f: impl Fn(Tensor<B, 1>) -> Tensor<B, 1>) -> Self {
        let on = |x| Floats::from(f(flat(x)));
        parts::map::<Self::Layout, Floats<B>, _>(self, on)
    }

    /// Marks the tensor as a leaf of the tape.
    fn require_grad(&self) -> Self {
        self.map_flat(Tensor::require_grad)
    }

    /// Detaches the tensor from the tape. As in Burn, a tensor that requires a gradient still does afterwards.
    fn detach(&self) -> Self {
        self.map_flat(Tensor::detach)
    }

    /// Gradient at a leaf, with its structure: ∂L/∂Re + i ∂L/∂Im for a complex tensor. `None` if neither part has a
    /// gradient; a single missing part counts as zero.
    fn grad(&self, gradients: &B::Gradients) -> Option<On<B::InnerBackend, Self::Layout>>
    where
        B: AutodiffBackend,
        B::InnerBackend: Operations,
    {
        let of = |x: &Floats<B>| B::grad(&x.0, gradients).map(Floats::<B::InnerBackend>);
        let zeros = |x: &Floats<B>| Floats::from(flat(x.clone()).inner().zeros_like());
        parts::gradient::<Self::Layout, _, _>(self, of, zeros)
    }

    /// The tensor on the inner backend, without the tape.
    fn valid(&self) -> On<B::InnerBackend, Self::Layout>
    where
        B: AutodiffBackend,
        B::InnerBackend: Operations,
    {
        parts::map::<Self::Layout, Floats<B>, _>(self, |x| Floats::from(flat(x).inner()))
    }

    /// Converts a tensor of the inner backend to a constant on the tape.
    fn from_inner(below: &On<B::InnerBackend, Self::Layout>) -> Self
    where
        B: AutodiffBackend,
        B::InnerBackend: Operations,
    {
        let above = |x| Floats::from(Tensor::<B, 1>::from_inner(flat(x)));
        parts::map::<Self::Layout, Floats<B::InnerBackend>, _>(below, above)
    }
}

/// Values of a [`Bond`] (singular values, eigenvalues, weights) as Burn tensors.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::structured::{
///     BurnBond, Direction, FluxOn, GradedTensor, Leg, Spec, Structured, U1,
/// };
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// // A state of two spins, √p |↓↑⟩ + √(1 − p) |↑↓⟩ with p = 0.36.
/// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
/// let spec = Spec::new(vec![spin.clone(), spin], U1(0), 1)?;
/// let state = GradedTensor::from_flat(&spec, Tensor::<BurnT4a, 1>::from_floats([0.6, 0.8], &T4aDevice))?;
/// let s = state.svd(1, FluxOn::Right)?.s;
/// let squares = s.to_values().powi_scalar(2).sum();
/// squares.into_data().assert_approx_eq::<f32>(&[1.0f32].into(), Default::default());
/// // −Σ p ln p.
/// let entropy = -(0.36f32 * 0.36f32.ln() + 0.64 * 0.64f32.ln());
/// s.entropy_of_order(1.0)?.into_data().assert_approx_eq::<f32>(&[entropy].into(), Default::default());
/// # Ok::<(), burn_t4a::ext::structured::StructuredError>(())
/// ```
pub trait BurnBond<B: Operations, S: Sector>: Sized {
    /// Bond with these `leg.dim()` values, by ascending sectors.
    ///
    /// # Errors
    /// `LengthMismatch`.
    fn from_values(leg: Leg<S>, values: Tensor<B, 1>) -> Result<Self>;

    /// The `leg.dim()` values, by ascending sectors. Differentiable.
    fn to_values(&self) -> Tensor<B, 1>;

    /// Entanglement entropy of a bond of singular values, shape `[1]`: `−Σ p ln p` with `p = d² / Σ d²` for order 1 (von
    /// Neumann), else `ln(Σ pᵅ) / (1 − α)` (Rényi). Differentiable.
    ///
    /// # Errors
    /// `Invalid` for an order that is not positive and finite, and for values whose norm is 0 or not finite.
    fn entropy_of_order(&self, order: f64) -> Result<Tensor<B, 1>>;
}

impl<B: Operations, S: Sector> BurnBond<B, S> for Bond<S, Floats<B>> {
    fn from_values(leg: Leg<S>, values: Tensor<B, 1>) -> Result<Self> {
        Self::new(leg, Floats::from(values))
    }
    fn to_values(&self) -> Tensor<B, 1> {
        flat(self.values().clone())
    }
    fn entropy_of_order(&self, order: f64) -> Result<Tensor<B, 1>> {
        Ok(flat(self.renyi_entropy(order)?))
    }
}

/// The tensor type of a structure on a backend.
type On<B, L> = <L as Layout>::Tensor<Floats<B>>;

fn flat<B: Operations>(x: Floats<B>) -> Tensor<B, 1> {
    tensor(parts::flat(x))
}

fn complex<B: Operations, const D: usize>(
    re: Tensor<B, D>,
    im: Option<Tensor<B, D>>,
) -> Complex<B, D> {
    match im {
        Some(im) => parts::accept(Complex::new(re, im)),
        None => Complex::from_real(re),
    }
}

impl<B: Operations, S: Sector> Structured<B> for GradedTensor<B, S> {
    type Layout = Spec<S>;
}

impl<B: Operations> Structured<B> for BlockSparseTensor<B> {
    type Layout = Arc<Pattern>;
}

impl<B: Operations> Structured<B> for DiagTensor<B> {
    type Layout = Classes;
}
