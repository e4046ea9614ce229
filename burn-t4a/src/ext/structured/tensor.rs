//! Conversion between structured tensors and Burn tensors.

use std::sync::Arc;

use burn_backend::{AutodiffBackend, Distribution};
use burn_tensor::{Tensor, TensorCreationOptions};
use t4a_diff::{Dual, Eager};
use t4a_structured::{Classes, Layout, Pattern, Result, Sector, Spec};

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
