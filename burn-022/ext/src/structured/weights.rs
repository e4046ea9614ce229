//! Structured tensors as parameters of Burn modules.

use std::fmt;

use burn_core::module::{
    Content, DisplaySettings, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper,
    ModuleVisitor, Param,
};
use burn_dispatch::Dispatch;
use burn_tensor::{Device, Distribution, Tensor, TensorCreationOptions};
use t4a_structured::{Result, Sector, Spec};

use super::Layout;
use super::tensor::{GradedTensor, Structured};
use crate::primitive::Floats;

/// A structured tensor as a field of a module. Its elements are one parameter, or two for a complex tensor, so
/// optimisers, records, gradient clipping and parameter counts apply to it. The structure is not part of a record.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::structured::{Classes, DiagTensor, Structured, Weights};
///
/// #[derive(Module, Debug)]
/// struct Scale {
///     weights: Weights<Classes>,
/// }
/// let data = Tensor::<1>::from_floats([1.0, 2.0, 3.0], &Device::flex());
/// let diagonal = DiagTensor::from_flat(&Classes { payload: vec![3], classes: vec![0, 0] }, data)?;
/// let scale = Scale { weights: Weights::new(&diagonal) };
/// assert_eq!(scale.num_params(), 3);
/// assert_eq!(scale.weights.tensor()?.to_tensor::<2>()?.dims(), [3, 3]);
/// # Ok::<(), burn_t4a_022_ext::structured::StructuredError>(())
/// ```
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::structured::{Direction, Leg, Spec, Structured, U1, Weights};
///
/// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
/// let spec = Spec::new(vec![spin.clone(), spin.dual()], U1(0), 1)?;
/// // A matrix that keeps the magnetisation is diagonal, so that it has two parameters.
/// let weights = Weights::normal(&spec, &Device::flex())?;
/// assert_eq!((weights.params().len(), weights.layout()), (1, &spec));
/// assert_eq!(weights.params()[0].val().dims(), [2]);
/// let dense: Tensor<2> = weights.tensor()?.to_tensor()?;
/// dense.slice([0..1, 1..2]).into_data().assert_eq(&[[0.0f32]].into(), false);
/// # Ok::<(), burn_t4a_022_ext::structured::StructuredError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weights<L> {
    layout: L,
    parts: Vec<Param<Tensor<1>>>,
}

impl<L: Layout> Weights<L> {
    /// Creates parameters with the values of a tensor.
    pub fn new<T: Structured<Layout = L>>(tensor: &T) -> Self {
        let (layout, parts) = tensor.to_parts();
        Self { layout, parts: parts.into_iter().map(Param::from_tensor).collect() }
    }

    /// The tensor, on the tape.
    ///
    /// # Errors
    /// `LengthMismatch` after loading a record of another structure.
    pub fn tensor(&self) -> Result<L::Tensor<Floats<Dispatch>>> {
        let mut parts = self.parts.iter().map(|part| Floats::from(part.val()));
        let re = parts.next().unwrap_or_else(|| unreachable!("a tensor has a part"));
        self.layout.with(re, parts.next())
    }

    /// Structure of the tensor.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Parameters: real parts, then imaginary parts if it is complex.
    pub fn params(&self) -> &[Param<Tensor<1>>] {
        &self.parts
    }

    fn with(self, parts: impl FnOnce(Vec<Param<Tensor<1>>>) -> Vec<Param<Tensor<1>>>) -> Self {
        Self { layout: self.layout, parts: parts(self.parts) }
    }
}

impl<S: Sector> Weights<Spec<S>> {
    /// Independent normal elements with variance `2 / (m + n)` in the m × n matrix of each charge (Glorot
    /// initialisation), so that every matrix preserves the norm of vectors on average, independent of the number of
    /// blocks.
    ///
    /// # Errors
    /// `Tensor` for dtypes that are not floats.
    pub fn normal(spec: &Spec<S>, options: impl Into<TensorCreationOptions>) -> Result<Self> {
        let x = Tensor::<1>::random([spec.len()], Distribution::Normal(0.0, 1.0), options);
        let scales = Tensor::from_data(&spec.scales()[..], (&x.device(), x.dtype()));
        Ok(Self::new(&GradedTensor::from_flat(spec, x * scales)?))
    }
}

impl<L: Layout> Module for Weights<L> {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.parts.visit(visitor);
    }
    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        self.with(|parts| parts.map(mapper))
    }
    fn to_device(self, device: &Device) -> Self {
        self.with(|parts| parts.to_device(device))
    }
    fn fork(self, device: &Device) -> Self {
        self.with(|parts| parts.fork(device))
    }
    fn train(self) -> Self {
        self.with(Module::train)
    }
    fn valid(&self) -> Self {
        self.clone().with(|parts| parts.valid())
    }
    fn materialize(self) -> Self {
        self.with(Module::materialize)
    }
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.parts.collect_devices(devices)
    }
}

impl<L: Layout> ModuleDisplayDefault for Weights<L> {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(&self.layout.describe()).optional()
    }
    fn num_params(&self) -> usize {
        Module::num_params(self)
    }
}

impl<L: Layout> ModuleDisplay for Weights<L> {}

impl<L: Layout> fmt::Display for Weights<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(DisplaySettings::default()))
    }
}
