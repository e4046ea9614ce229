//! Structured tensors as parameters of Burn modules.

use std::fmt;

use burn_backend::{AutodiffBackend, Backend, Distribution};
use burn_core::module::{
    AutodiffModule, Content, DisplaySettings, HasAutodiffModule, Module, ModuleDisplay,
    ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param,
};
use burn_tensor::{Tensor, TensorCreationOptions};
use t4a_structured::{Result, Sector, Spec};

use super::Layout;
use super::tensor::{GradedTensor, Structured};
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;

/// A structured tensor as a field of a module. Its elements are one parameter, or two for a complex tensor, so
/// optimisers, records, gradient clipping and parameter counts apply to it. The structure is not part of a record.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::structured::{Direction, Leg, Spec, Structured, U1, Weights};
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
/// let spec = Spec::new(vec![spin.clone(), spin.dual()], U1(0), 1)?;
/// // A matrix that keeps the magnetisation is diagonal, so that it has two parameters.
/// let weights = Weights::<BurnT4a, _>::normal(&spec, &T4aDevice)?;
/// assert_eq!((weights.params().len(), weights.layout()), (1, &spec));
/// assert_eq!(weights.params()[0].val().dims(), [2]);
/// let dense: Tensor<BurnT4a, 2> = weights.tensor()?.to_tensor()?;
/// dense.slice([0..1, 1..2]).into_data().assert_eq(&[[0.0f32]].into(), false);
/// # Ok::<(), burn_t4a::ext::structured::StructuredError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weights<B: Backend, L> {
    layout: L,
    parts: Vec<Param<Tensor<B, 1>>>,
}

impl<B: Operations, L: Layout> Weights<B, L> {
    /// Creates parameters with the values of a tensor.
    pub fn new<T: Structured<B, Layout = L>>(tensor: &T) -> Self {
        let (layout, parts) = tensor.to_parts();
        Self { layout, parts: parts.into_iter().map(Param::from_tensor).collect() }
    }

    /// The tensor, on the tape.
    ///
    /// # Errors
    /// `LengthMismatch` after loading a record of another structure.
    pub fn tensor(&self) -> Result<L::Tensor<Floats<B>>> {
        let mut parts = self.parts.iter().map(|part| Floats::from(part.val()));
        let re = parts.next().unwrap_or_else(|| unreachable!("a tensor has a part"));
        self.layout.with(re, parts.next())
    }
}

impl<B: Operations, S: Sector> Weights<B, Spec<S>> {
    /// Independent normal elements with variance `2 / (m + n)` in the m × n matrix of each charge (Glorot
    /// initialisation), so that every matrix preserves the norm of vectors on average, independent of the number of
    /// blocks.
    ///
    /// # Errors
    /// `Tensor` for dtypes that are not floats.
    pub fn normal(spec: &Spec<S>, options: impl Into<TensorCreationOptions<B>>) -> Result<Self> {
        let normal = Distribution::Normal(0.0, 1.0);
        let x = Tensor::<B, 1>::random([spec.len()], normal, options);
        let scales = Tensor::from_data(&spec.scales()[..], (&x.device(), x.dtype()));
        Ok(Self::new(&GradedTensor::from_flat(spec, x * scales)?))
    }
}

impl<B: Backend, L> Weights<B, L> {
    /// Structure of the tensor.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Parameters: real parts, then imaginary parts if it is complex.
    pub fn params(&self) -> &[Param<Tensor<B, 1>>] {
        &self.parts
    }
}

impl<B: Backend, L: Layout> Module<B> for Weights<B, L> {
    type Record = Vec<Param<Tensor<B, 1>>>;

    fn visit<V: ModuleVisitor<B>>(&self, visitor: &mut V) {
        self.parts.visit(visitor);
    }
    fn map<M: ModuleMapper<B>>(self, mapper: &mut M) -> Self {
        Self { parts: self.parts.map(mapper), ..self }
    }
    fn load_record(self, record: Self::Record) -> Self {
        Self { parts: self.parts.load_record(record), ..self }
    }
    fn into_record(self) -> Self::Record {
        self.parts.into_record()
    }
    fn to_device(self, device: &B::Device) -> Self {
        Self { parts: self.parts.to_device(device), ..self }
    }
    fn fork(self, device: &B::Device) -> Self {
        Self { parts: self.parts.fork(device), ..self }
    }
    fn collect_devices(&self, devices: Vec<B::Device>) -> Vec<B::Device> {
        self.parts.collect_devices(devices)
    }
}

impl<B: AutodiffBackend, L: Layout> AutodiffModule<B> for Weights<B, L> {
    type InnerModule = Weights<B::InnerBackend, L>;

    fn valid(&self) -> Self::InnerModule {
        Weights { layout: self.layout.clone(), parts: self.parts.valid() }
    }
    fn from_inner(module: Self::InnerModule) -> Self {
        Self { layout: module.layout, parts: AutodiffModule::from_inner(module.parts) }
    }
}

impl<B: AutodiffBackend, L: Layout> HasAutodiffModule<B> for Weights<B::InnerBackend, L> {
    type TrainModule = Weights<B, L>;
}

impl<B: Backend, L: Layout> ModuleDisplayDefault for Weights<B, L> {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(&self.layout.describe()).optional()
    }
    fn num_params(&self) -> usize {
        <Self as Module<B>>::num_params(self)
    }
}

impl<B: Backend, L: Layout> ModuleDisplay for Weights<B, L> {}

impl<B: Backend, L: Layout> fmt::Display for Weights<B, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(DisplaySettings::default()))
    }
}
