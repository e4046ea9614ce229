//! Conversion of modules between the backends of transformations; only the parameters are converted.
//!
//! ```text
//! lift      M<B>          →  M<D>         D wraps B; parameters are shared, without a copy
//! stack     [M<B>; n]     →  M<Vmap<B>>   an ensemble: one module with batched parameters
//! member    M<Vmap<B>>, i →  M<B>         one member of an ensemble
//! Parameters  parameters of a module as a tree, for transformations and scans
//! ```
//!
//! Burn's [`Module`] has no general conversion to another backend, so the module on the target backend is created from
//! its configuration. It is the template: everything except its parameters is kept. Its creation draws initial
//! parameters, so it must be created outside of a mapped function, or where [`Random`](crate::vmap::Random) allows
//! draws.
//!
//! ```
//! use burn::module::{Module, Param};
//! use burn::tensor::{Tensor, backend::Backend};
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::module::{lift, stack};
//! use burn_t4a_transforms::vmap::{Vmap, vmap};
//!
//! #[derive(Module, Debug)]
//! struct Scale<B: Backend> {
//!     by: Param<Tensor<B, 1>>,
//! }
//! impl<B: Backend> Scale<B> {
//!     fn new(by: f32) -> Self {
//!         Self { by: Param::from_tensor(Tensor::full([1], by, &Default::default())) }
//!     }
//! }
//!
//! type B = BurnT4a;
//! let x = Tensor::<B, 2>::ones([5, 3], &T4aDevice);
//! // One module, many examples.
//! let scale: Scale<Vmap<B>> = lift(&Scale::<B>::new(2.0), Scale::new(0.0))?;
//! let y: Tensor<B, 2> = vmap(|x: Tensor<_, 1>| x * scale.by.val()).call(x.clone())?;
//! assert_eq!(y.dims(), [5, 3]);
//! // Many modules, the same examples.
//! let members = [Scale::<B>::new(2.0), Scale::new(3.0)];
//! let ensemble: Scale<Vmap<B>> = stack(&members, Scale::new(0.0))?;
//! let scaled = vmap(|x: Tensor<Vmap<B>, 1>| x * ensemble.by.val()).in_axes(None).size(2);
//! let y: Tensor<B, 2> = scaled.call(Tensor::<B, 1>::ones([3], &T4aDevice))?;
//! y.into_data().assert_eq(&[[2.0f32; 3], [3.0; 3]].into(), false);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{AutodiffBackend, Backend, BackendTypes, Shape, Slice, TensorMetadata};
use burn_core::module::Module;
pub use burn_t4a::ext::module::{ModuleError, ParameterKind, Parameters};
use burn_t4a::ext::tree::Leaf;
use burn_t4a_jvp::{Jvp, JvpTensor};
use burn_t4a_vmap::{Vmap, VmapTensor};
use thiserror::Error;

/// A backend that wraps `B`: conversion of the tensors of `B`.
pub trait Around<B: Backend>: Backend<Device = <B as BackendTypes>::Device> {
    /// Converts a float tensor: a constant for derivatives, shared by all examples.
    fn float(x: FloatTensor<B>) -> FloatTensor<Self>;
    /// Converts an integer tensor.
    fn int(x: IntTensor<B>) -> IntTensor<Self>;
    /// Converts a boolean tensor.
    fn bool(x: BoolTensor<B>) -> BoolTensor<Self>;
}

impl<B: Backend> Around<B> for Vmap<B> {
    fn float(x: FloatTensor<B>) -> FloatTensor<Self> {
        VmapTensor::shared(x)
    }
    fn int(x: IntTensor<B>) -> IntTensor<Self> {
        VmapTensor::shared(x)
    }
    fn bool(x: BoolTensor<B>) -> BoolTensor<Self> {
        VmapTensor::shared(x)
    }
}

impl<B: Backend> Around<B> for Jvp<B> {
    fn float(x: FloatTensor<B>) -> FloatTensor<Self> {
        JvpTensor::constant(x)
    }
    fn int(x: IntTensor<B>) -> IntTensor<Self> {
        x
    }
    fn bool(x: BoolTensor<B>) -> BoolTensor<Self> {
        x
    }
}

impl<B: Backend, C: CheckpointStrategy> Around<B> for Autodiff<B, C> {
    fn float(x: FloatTensor<B>) -> FloatTensor<Self> {
        Self::from_inner(x)
    }
    fn int(x: IntTensor<B>) -> IntTensor<Self> {
        x
    }
    fn bool(x: BoolTensor<B>) -> BoolTensor<Self> {
        x
    }
}

/// Error of an ensemble.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EnsembleError {
    /// The modules have other parameters than the template or the first module.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The ensemble has no members.
    #[error("an ensemble has at least one module")]
    Empty,
    /// The index of a member is out of range.
    #[error("member {index} of {count}")]
    Member {
        /// Index of the member.
        index: usize,
        /// Number of members.
        count: usize,
    },
}

/// Converts a module to a backend that wraps its own: the template, with the parameters of `module` and their ids.
///
/// Float parameters require a gradient where those of the template do.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::jvp::Jvp;
/// use burn_t4a_transforms::module::lift;
///
/// type B = BurnT4a;
/// let layer = LinearConfig::new(3, 2).init::<B>(&T4aDevice);
/// let template = LinearConfig::new(3, 2).init::<Jvp<B>>(&T4aDevice);
/// let lifted = lift(&layer, template)?;
/// let y = layer.forward(Tensor::<B, 2>::ones([1, 3], &T4aDevice));
/// let z = lifted.forward(Tensor::<Jvp<B>, 2>::ones([1, 3], &T4aDevice));
/// z.into_data().assert_eq(&y.into_data(), true);
/// # Ok::<(), burn_t4a_transforms::module::ModuleError>(())
/// ```
///
/// # Errors
/// [`ModuleError`], if the template has other parameters.
pub fn lift<B: Backend, D: Around<B>, M: Module<B>, N: Module<D>>(
    module: &M,
    template: N,
) -> Result<N, ModuleError> {
    let above = |(id, x)| {
        let x = match x {
            Leaf::Float(x) => Leaf::Float(D::float(x)),
            Leaf::Int(x) => Leaf::Int(D::int(x)),
            Leaf::Bool(x) => Leaf::Bool(D::bool(x)),
        };
        (id, x)
    };
    Parameters::of(module).into_iter().map(above).collect::<Parameters<D>>().load_into(template)
}

/// Evaluates an expression for each kind of parameter, with the operations of that kind.
macro_rules! of_kind {
    ($x:expr, $y:ident, $reshape:ident, $slice:ident => $body:expr) => {
        match $x {
            Leaf::Float($y) => {
                let ($reshape, $slice) = (B::float_reshape, B::float_slice);
                Leaf::Float($body)
            }
            Leaf::Int($y) => {
                let ($reshape, $slice) = (B::int_reshape, B::int_slice);
                Leaf::Int($body)
            }
            Leaf::Bool($y) => {
                let ($reshape, $slice) = (B::bool_reshape, B::bool_slice);
                Leaf::Bool($body)
            }
        }
    };
}

/// Stacks modules into an ensemble: the template, with the parameters of all modules as a batch and the ids of the
/// first.
///
/// Cost: one copy of the parameters.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::module::{member, stack};
/// use burn_t4a_transforms::vmap::Vmap;
///
/// type B = BurnT4a;
/// let config = LinearConfig::new(3, 2);
/// let layers = [config.init::<B>(&T4aDevice), config.init(&T4aDevice)];
/// let ensemble = stack(&layers, config.init::<Vmap<B>>(&T4aDevice))?;
/// let second = member(&ensemble, 1, config.init::<B>(&T4aDevice))?;
/// second.weight.val().into_data().assert_eq(&layers[1].weight.val().into_data(), true);
/// # Ok::<(), burn_t4a_transforms::module::EnsembleError>(())
/// ```
///
/// # Errors
/// [`EnsembleError::Empty`], [`EnsembleError::Module`].
pub fn stack<B: Backend, M: Module<B>, N: Module<Vmap<B>>>(
    modules: &[M],
    template: N,
) -> Result<N, EnsembleError> {
    let mut all = modules.iter().map(Parameters::of);
    let first = all.next().ok_or(EnsembleError::Empty)?;
    let others: Vec<_> = all.collect();
    for other in &others {
        other.check(&first)?;
    }
    let mut others: Vec<_> = others.into_iter().map(Parameters::into_iter).collect();
    let batch = first.into_iter().map(|(id, x)| {
        let own = others.iter_mut().filter_map(|all| all.next()).map(|(_, x)| x);
        (id, batch::<B>([x].into_iter().chain(own).collect()))
    });
    Ok(batch.collect::<Parameters<_>>().load_into(template)?)
}

fn batch<B: Backend>(all: Vec<Leaf<B>>) -> Leaf<Vmap<B>> {
    macro_rules! of {
        ($kind:ident, $reshape:ident, $cat:ident) => {{
            let one = |x: Leaf<B>| match x {
                Leaf::$kind(x) => {
                    let shape: Shape = [1].into_iter().chain(x.shape().iter().copied()).collect();
                    B::$reshape(x, shape)
                }
                _ => unreachable!("parameters have been compared"),
            };
            Leaf::$kind(VmapTensor::batched(B::$cat(all.into_iter().map(one).collect(), 0)))
        }};
    }
    match all[0] {
        Leaf::Float(_) => of!(Float, float_reshape, float_cat),
        Leaf::Int(_) => of!(Int, int_reshape, int_cat),
        Leaf::Bool(_) => of!(Bool, bool_reshape, bool_cat),
    }
}

/// Member `index` of an ensemble: the template, with the parameters of that member. Shared parameters are those of
/// every member.
///
/// # Errors
/// [`EnsembleError::Member`], [`EnsembleError::Module`].
pub fn member<B: Backend, M: Module<Vmap<B>>, N: Module<B>>(
    ensemble: &M,
    index: usize,
    template: N,
) -> Result<N, EnsembleError> {
    let mut all = Vec::new();
    for (id, x) in Parameters::of(ensemble) {
        let x = of_kind!(x, y, reshape, slice => {
            let (count, shape) = (y.size(), y.shape());
            let (y, _) = y.into_inner();
            match count {
                None => y,
                Some(count) if index >= count => return Err(EnsembleError::Member { index, count }),
                Some(_) => {
                    let one = Slice::new(index as isize, Some(index as isize + 1), 1);
                    reshape(slice(y, &[one]), shape)
                }
            }
        });
        all.push((id, x));
    }
    Ok(all.into_iter().collect::<Parameters<B>>().load_into(template)?)
}
