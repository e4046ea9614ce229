//! Structured tensors and Burn tensors.

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

/// A tensor of a symmetry on a backend.
pub type GradedTensor<B, S> = t4a_structured::GradedTensor<S, Floats<B>>;
/// A tensor of arbitrary known blocks on a backend.
pub type BlockSparseTensor<B> = t4a_structured::BlockSparseTensor<Floats<B>>;
/// A tensor with equal indices on a backend.
pub type DiagTensor<B> = t4a_structured::DiagTensor<Floats<B>>;
/// A tensor of a structure with a tangent beside it.
pub type DualTensor<B, L> = <L as Layout>::Tensor<Dual<Floats<B>>>;

/// What structured tensors on a backend have beside their own methods.
pub trait Structured<B: Operations>: Sized {
    /// The structure.
    type Layout: Layout<Tensor<Floats<B>> = Self>;

    /// The tensor of these elements.
    ///
    /// # Errors
    /// `LengthMismatch`.
    fn from_flat(layout: &Self::Layout, data: Tensor<B, 1>) -> Result<Self> {
        layout.with(Floats::from(data), None)
    }

    /// The tensor of these complex elements.
    ///
    /// # Errors
    /// As [`Structured::from_flat`]; `Invalid` for kinds that are real.
    fn from_complex(layout: &Self::Layout, data: Complex<B, 1>) -> Result<Self> {
        let (re, im) = data.into_parts();
        layout.with(Floats::from(re), Some(Floats::from(im)))
    }

    /// Zeros, of the default type unless the options name one.
    ///
    /// # Errors
    /// `Tensor` for types that are no floats.
    fn zeros(layout: &Self::Layout, options: impl Into<TensorCreationOptions<B>>) -> Result<Self> {
        Self::from_flat(layout, Tensor::zeros([layout.elements()], options))
    }

    /// A tensor of the engine (an identity, an isometry, one that was read from data), on a device.
    ///
    /// # Errors
    /// Those of the memory.
    fn from_engine(
        engine: &<Self::Layout as Layout>::Tensor<Eager>,
        device: &B::Device,
    ) -> Result<Self> {
        let (layout, re, im) = Self::Layout::parts::<Eager>(engine);
        let enter = |x: Eager| -> Result<Floats<B>> {
            let data = T4aTensor::new(parts::engine(x, layout.elements())?)?.into_data()?;
            Ok(Floats(B::float_from_data(data, device)))
        };
        layout.with(enter(re)?, im.map(enter).transpose()?)
    }

    /// Independent elements of a distribution.
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

    /// The elements, the real parts of complex ones.
    fn flat(&self) -> Tensor<B, 1> {
        flat(Self::Layout::parts::<Floats<B>>(self).1)
    }

    /// The structure, and the real parts, and the imaginary ones of a complex tensor.
    fn to_parts(&self) -> (Self::Layout, Vec<Tensor<B, 1>>) {
        let (layout, re, im) = Self::Layout::parts::<Floats<B>>(self);
        (layout, [Some(re), im].into_iter().flatten().map(flat).collect())
    }

    /// The elements as complex numbers; imaginary parts are zeros where there are none.
    fn complex_flat(&self) -> Complex<B, 1> {
        let (_, re, im) = Self::Layout::parts::<Floats<B>>(self);
        complex(flat(re), im.map(flat))
    }

    /// All elements, zeros included, of a real tensor.
    ///
    /// # Errors
    /// `Tensor` for another rank, `Invalid` for a complex tensor.
    fn to_tensor<const D: usize>(&self) -> Result<Tensor<B, D>> {
        Ok(parts::real_dense::<Self::Layout, Floats<B>>(self)?.tensor()?)
    }

    /// All elements, zeros included, as complex numbers.
    ///
    /// # Errors
    /// `Tensor` for another rank.
    fn to_complex<const D: usize>(&self) -> Result<Complex<B, D>> {
        let (re, im) = Self::Layout::dense::<Floats<B>>(self)?;
        Ok(complex(re.tensor()?, im.map(|im| im.tensor()).transpose()?))
    }

    /// The tensor with this tangent, zero if there is none: operations on such tensors are their jvps.
    ///
    /// # Errors
    /// `SpecMismatch` for a tangent of another structure.
    fn with_tangent(&self, tangent: Option<&Self>) -> Result<DualTensor<B, Self::Layout>> {
        parts::with_tangent::<Self::Layout, Floats<B>>(self, tangent)
    }

    /// A tensor and its tangent, apart.
    ///
    /// # Errors
    /// None in practice: parts of a tensor fit its structure.
    fn from_dual(dual: &DualTensor<B, Self::Layout>) -> Result<(Self, Self)> {
        parts::from_dual::<Self::Layout, Floats<B>>(dual)
    }

    /// `f` of the elements, of real and imaginary parts alike: a map that keeps zeros.
    fn map_flat(&self, f: impl Fn(Tensor<B, 1>) -> Tensor<B, 1>) -> Self {
        let on = |x| Floats::from(f(flat(x)));
        parts::map::<Self::Layout, Floats<B>, _>(self, on)
    }

    /// A leaf of the tape.
    fn require_grad(&self) -> Self {
        self.map_flat(Tensor::require_grad)
    }

    /// Cut off from what it was computed from. As in Burn, what requires a gradient goes on to do so.
    fn detach(&self) -> Self {
        self.map_flat(Tensor::detach)
    }

    /// The gradient at a leaf, which has its structure: of a complex tensor ∂L/∂Re + i ∂L/∂Im. None if
    /// neither part has one; a part without one counts as zero.
    fn grad(&self, gradients: &B::Gradients) -> Option<On<B::InnerBackend, Self::Layout>>
    where
        B: AutodiffBackend,
        B::InnerBackend: Operations,
    {
        let of = |x: &Floats<B>| B::grad(&x.0, gradients).map(Floats::<B::InnerBackend>);
        let zeros = |x: &Floats<B>| Floats::from(flat(x.clone()).inner().zeros_like());
        parts::gradient::<Self::Layout, _, _>(self, of, zeros)
    }

    /// The same tensor below the tape.
    fn valid(&self) -> On<B::InnerBackend, Self::Layout>
    where
        B: AutodiffBackend,
        B::InnerBackend: Operations,
    {
        parts::map::<Self::Layout, Floats<B>, _>(self, |x| Floats::from(flat(x).inner()))
    }

    /// A tensor below the tape as a constant on it.
    fn from_inner(below: &On<B::InnerBackend, Self::Layout>) -> Self
    where
        B: AutodiffBackend,
        B::InnerBackend: Operations,
    {
        let above = |x| Floats::from(Tensor::<B, 1>::from_inner(flat(x)));
        parts::map::<Self::Layout, Floats<B::InnerBackend>, _>(below, above)
    }
}

/// The tensor of a structure on a backend.
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
