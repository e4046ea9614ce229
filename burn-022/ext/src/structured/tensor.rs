//! Structured tensors and Burn tensors.

use std::sync::Arc;

use burn_dispatch::Dispatch;
use burn_t4a_022::T4aTensor;
use burn_tensor::{Device, Distribution, Gradients, Tensor, TensorCreationOptions};
use t4a_diff::{Dual, Eager};
use t4a_structured::{Classes, Layout, Pattern, Result, Sector, Spec};

use super::parts;
use crate::Complex;
use crate::primitive::Floats;
use crate::user::tensor;

/// A tensor of a symmetry on Burn.
pub type GradedTensor<S> = t4a_structured::GradedTensor<S, Floats<Dispatch>>;
/// A tensor of arbitrary known blocks on Burn.
pub type BlockSparseTensor = t4a_structured::BlockSparseTensor<Floats<Dispatch>>;
/// A tensor with equal indices on Burn.
pub type DiagTensor = t4a_structured::DiagTensor<Floats<Dispatch>>;
/// A tensor of a structure with a tangent beside it.
pub type DualTensor<L> = <L as Layout>::Tensor<Dual<Floats<Dispatch>>>;

/// What structured tensors on Burn have beside their own methods.
pub trait Structured: Sized {
    /// The structure.
    type Layout: Layout<Tensor<Floats<Dispatch>> = Self>;

    /// The tensor of these elements.
    ///
    /// # Errors
    /// `LengthMismatch`.
    fn from_flat(layout: &Self::Layout, data: Tensor<1>) -> Result<Self> {
        layout.with(Floats::<Dispatch>::from(data), None)
    }

    /// The tensor of these complex elements.
    ///
    /// # Errors
    /// As [`Structured::from_flat`]; `Invalid` for kinds that are real.
    fn from_complex(layout: &Self::Layout, data: Complex<1>) -> Result<Self> {
        let (re, im) = data.into_parts();
        layout.with(Floats::<Dispatch>::from(re), Some(Floats::<Dispatch>::from(im)))
    }

    /// Zeros, of the default type unless the options name one.
    ///
    /// # Errors
    /// `Tensor` for types that are no floats.
    fn zeros(layout: &Self::Layout, options: impl Into<TensorCreationOptions>) -> Result<Self> {
        Self::from_flat(layout, Tensor::zeros([layout.elements()], options))
    }

    /// A tensor of the engine (an identity, an isometry, one that was read from data), on a device.
    ///
    /// # Errors
    /// Those of the memory.
    fn from_engine(
        engine: &<Self::Layout as Layout>::Tensor<Eager>,
        device: &Device,
    ) -> Result<Self> {
        let (layout, re, im) = Self::Layout::parts::<Eager>(engine);
        let enter = |x: Eager| -> Result<Floats<Dispatch>> {
            let data = T4aTensor::new(parts::engine(x, layout.elements())?)?.into_data()?;
            let dtype = data.dtype();
            Ok(Floats::from(Tensor::<1>::from_data(data, (device, dtype))))
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
        options: impl Into<TensorCreationOptions>,
    ) -> Result<Self> {
        Self::from_flat(layout, Tensor::random([layout.elements()], distribution, options))
    }

    /// The elements, the real parts of complex ones.
    fn flat(&self) -> Tensor<1> {
        flat(Self::Layout::parts::<Floats<Dispatch>>(self).1)
    }

    /// The structure, and the real parts, and the imaginary ones of a complex tensor.
    fn to_parts(&self) -> (Self::Layout, Vec<Tensor<1>>) {
        let (layout, re, im) = Self::Layout::parts::<Floats<Dispatch>>(self);
        (layout, [Some(re), im].into_iter().flatten().map(flat).collect())
    }

    /// The elements as complex numbers; imaginary parts are zeros where there are none.
    fn complex_flat(&self) -> Complex<1> {
        let (_, re, im) = Self::Layout::parts::<Floats<Dispatch>>(self);
        complex(flat(re), im.map(flat))
    }

    /// All elements, zeros included, of a real tensor.
    ///
    /// # Errors
    /// `Tensor` for another rank, `Invalid` for a complex tensor.
    fn to_tensor<const D: usize>(&self) -> Result<Tensor<D>> {
        Ok(parts::real_dense::<Self::Layout, Floats<Dispatch>>(self)?.tensor()?)
    }

    /// All elements, zeros included, as complex numbers.
    ///
    /// # Errors
    /// `Tensor` for another rank.
    fn to_complex<const D: usize>(&self) -> Result<Complex<D>> {
        let (re, im) = Self::Layout::dense::<Floats<Dispatch>>(self)?;
        Ok(complex(re.tensor()?, im.map(|im| im.tensor()).transpose()?))
    }

    /// The tensor with this tangent, zero if there is none: operations on such tensors are their jvps.
    ///
    /// # Errors
    /// `SpecMismatch` for a tangent of another structure.
    fn with_tangent(&self, tangent: Option<&Self>) -> Result<DualTensor<Self::Layout>> {
        parts::with_tangent::<Self::Layout, Floats<Dispatch>>(self, tangent)
    }

    /// A tensor and its tangent, apart.
    ///
    /// # Errors
    /// None in practice: parts of a tensor fit its structure.
    fn from_dual(dual: &DualTensor<Self::Layout>) -> Result<(Self, Self)> {
        parts::from_dual::<Self::Layout, Floats<Dispatch>>(dual)
    }

    /// `f` of the elements, of real and imaginary parts alike: a map that keeps zeros.
    fn map_flat(&self, f: impl Fn(Tensor<1>) -> Tensor<1>) -> Self {
        let on = |x| Floats::from(f(flat(x)));
        parts::map::<Self::Layout, Floats<Dispatch>, _>(self, on)
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
    fn grad(&self, gradients: &Gradients) -> Option<Self> {
        let of = |x: &Floats<Dispatch>| {
            let x = Tensor::<1>::from_dispatch(x.0.clone());
            x.grad(gradients).map(|x| Floats::<Dispatch>(x.into_dispatch()))
        };
        let zeros = |x: &Floats<Dispatch>| Floats::from(flat(x.clone()).inner().zeros_like());
        parts::gradient::<Self::Layout, _, _>(self, of, zeros)
    }

    /// The same tensor below the tape.
    fn valid(&self) -> Self {
        parts::map::<Self::Layout, Floats<Dispatch>, _>(self, |x| Floats::from(flat(x).inner()))
    }

    /// A tensor below the tape as a constant on it.
    fn from_inner(below: &Self) -> Self {
        let above = |x| Floats::from(Tensor::<1>::from_inner(flat(x)));
        parts::map::<Self::Layout, Floats<Dispatch>, _>(below, above)
    }
}

fn flat(x: Floats<Dispatch>) -> Tensor<1> {
    tensor(parts::flat(x))
}

fn complex<const D: usize>(re: Tensor<D>, im: Option<Tensor<D>>) -> Complex<D> {
    match im {
        Some(im) => parts::accept(Complex::new(re, im)),
        None => Complex::from_real(re),
    }
}

impl<S: Sector> Structured for GradedTensor<S> {
    type Layout = Spec<S>;
}

impl Structured for BlockSparseTensor {
    type Layout = Arc<Pattern>;
}

impl Structured for DiagTensor {
    type Layout = Classes;
}
