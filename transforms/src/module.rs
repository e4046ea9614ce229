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

use std::fmt;
use std::vec::IntoIter;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{AutodiffBackend, Backend, BackendTypes, Shape, Slice, TensorMetadata};
use burn_core::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn_t4a::ext::tree::{Leaf, Leaves, Structure, Tree, TreeError};
use burn_t4a_jvp::{Jvp, JvpTensor};
use burn_t4a_vmap::{Vmap, VmapTensor};
use burn_tensor::{Bool, Int, Tensor, TensorPrimitive};
use t4a_algebra::message::short;
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

/// Error of a transfer of parameters between modules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The modules have different numbers of parameters.
    #[error("{required} parameters are required, given {given}")]
    Count {
        /// Number of parameters of the template, or of the first module.
        required: usize,
        /// Number of parameters of the other module.
        given: usize,
    },
    /// A parameter differs in kind or shape.
    #[error(
        "parameter {index}: required {required}, given {given}",
        required = short(.required), given = short(.given)
    )]
    Parameter {
        /// Index of the parameter in visiting order.
        index: usize,
        /// Kind and shape in the template.
        required: ParameterKind,
        /// Kind and shape of the given parameter.
        given: ParameterKind,
    },
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

/// Kind and shape of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterKind {
    /// `float`, `int` or `bool`.
    pub name: &'static str,
    /// Size of each axis.
    pub shape: Vec<usize>,
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.shape)
    }
}

fn kind<B: Backend>(x: &Leaf<B>) -> ParameterKind {
    let name = match x {
        Leaf::Float(_) => "float",
        Leaf::Int(_) => "int",
        Leaf::Bool(_) => "bool",
    };
    ParameterKind { name, shape: x.shape().to_vec() }
}

/// Collects the parameters of a module in order.
struct Read<B: Backend>(Vec<(ParamId, Leaf<B>)>);

impl<B: Backend> ModuleVisitor<B> for Read<B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let x = param.val().into_primitive().tensor();
        self.0.push((param.id, Leaf::Float(x)));
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<B, D, Int>>) {
        self.0.push((param.id, Leaf::Int(param.val().into_primitive())));
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<B, D, Bool>>) {
        self.0.push((param.id, Leaf::Bool(param.val().into_primitive())));
    }
}

fn read<B: Backend, M: Module<B>>(module: &M) -> Vec<(ParamId, Leaf<B>)> {
    let mut all = Read(Vec::new());
    module.visit(&mut all);
    all.0
}

/// Replaces the parameters of a module in order.
struct Write<B: Backend> {
    parameters: IntoIter<(ParamId, Leaf<B>)>,
    /// True if floats require a gradient where those of the module do.
    leaves: bool,
}

macro_rules! write {
    ($($method:ident $kind:ident $t:ty: |$all:ident, $old:ident, $x:ident| $new:expr;)*) => {$(
        fn $method<const D: usize>(&mut self, param: Param<$t>) -> Param<$t> {
            let ($all, (_, $old, mapper)) = (self, param.consume());
            let Some((id, Leaf::$kind($x))) = $all.parameters.next() else {
                unreachable!("parameters have been compared")
            };
            Param::from_mapped_value(id, $new, mapper)
        }
    )*};
}

impl<B: Backend> ModuleMapper<B> for Write<B> {
    write! {
        map_float Float Tensor<B, D>: |all, old, x| {
            let x: Tensor<B, D> = Tensor::from_primitive(TensorPrimitive::Float(x));
            if all.leaves && old.is_require_grad() { x.require_grad() } else { x }
        };
        map_int Int Tensor<B, D, Int>: |all, _old, x| Tensor::from_primitive(x);
        map_bool Bool Tensor<B, D, Bool>: |all, _old, x| Tensor::from_primitive(x);
    }
}

/// Checks that the given parameters match the required ones in number, kind and shape.
fn compare(
    required: impl ExactSizeIterator<Item = ParameterKind>,
    given: impl ExactSizeIterator<Item = ParameterKind>,
) -> Result<(), ModuleError> {
    if required.len() != given.len() {
        return Err(ModuleError::Count { required: required.len(), given: given.len() });
    }
    for (index, (required, given)) in required.zip(given).enumerate() {
        if required != given {
            return Err(ModuleError::Parameter { index, required, given });
        }
    }
    Ok(())
}

fn write<B: Backend, M: Module<B>>(
    template: M,
    parameters: Vec<(ParamId, Leaf<B>)>,
    leaves: bool,
) -> Result<M, ModuleError> {
    let kinds = |all: &[(ParamId, Leaf<B>)]| -> Vec<ParameterKind> {
        all.iter().map(|(_, x)| kind(x)).collect()
    };
    compare(kinds(&read(&template)).into_iter(), kinds(&parameters).into_iter())?;
    Ok(template.map(&mut Write { parameters: parameters.into_iter(), leaves }))
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
/// [`ModuleError::Count`], [`ModuleError::Parameter`].
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
    write(template, read(module).into_iter().map(above).collect(), true)
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
/// # Ok::<(), burn_t4a_transforms::module::ModuleError>(())
/// ```
///
/// # Errors
/// [`ModuleError::Empty`], [`ModuleError::Count`], [`ModuleError::Parameter`].
pub fn stack<B: Backend, M: Module<B>, N: Module<Vmap<B>>>(
    modules: &[M],
    template: N,
) -> Result<N, ModuleError> {
    let mut all = modules.iter().map(read);
    let first = all.next().ok_or(ModuleError::Empty)?;
    let others: Vec<_> = all.collect();
    for other in &others {
        compare(first.iter().map(|(_, x)| kind(x)), other.iter().map(|(_, x)| kind(x)))?;
    }
    let mut others: Vec<_> = others.into_iter().map(Vec::into_iter).collect();
    let batch = first.into_iter().map(|(id, x)| {
        let own = others.iter_mut().filter_map(|all| all.next()).map(|(_, x)| x);
        (id, batch::<B>([x].into_iter().chain(own).collect()))
    });
    write(template, batch.collect(), true)
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
/// [`ModuleError::Member`], [`ModuleError::Count`], [`ModuleError::Parameter`].
pub fn member<B: Backend, M: Module<Vmap<B>>, N: Module<B>>(
    ensemble: &M,
    index: usize,
    template: N,
) -> Result<N, ModuleError> {
    let mut all = Vec::new();
    for (id, x) in read(ensemble) {
        let x = of_kind!(x, y, reshape, slice => {
            let (count, shape) = (y.size(), y.shape());
            let (y, _) = y.into_inner();
            match count {
                None => y,
                Some(count) if index >= count => return Err(ModuleError::Member { index, count }),
                Some(_) => {
                    let one = Slice::new(index as isize, Some(index as isize + 1), 1);
                    reshape(slice(y, &[one]), shape)
                }
            }
        });
        all.push((id, x));
    }
    write(template, all, true)
}

/// Parameters of a module as a tree, for transformations and scans.
///
/// A module itself is not a tree, because Burn has no conversion of a module to another backend. Its parameters are,
/// and [`Parameters::onto`] writes them to a template on that backend.
///
/// ```
/// use burn::module::{Module, Param};
/// use burn::tensor::{Tensor, backend::Backend};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::grad;
/// use burn_t4a_transforms::module::Parameters;
///
/// #[derive(Module, Debug)]
/// struct Scale<B: Backend> {
///     by: Param<Tensor<B, 1>>,
/// }
/// impl<B: Backend> Scale<B> {
///     fn new(by: f32) -> Self {
///         Self { by: Param::from_tensor(Tensor::full([1], by, &Default::default())) }
///     }
/// }
///
/// let scale = Scale::<BurnT4a>::new(3.0);
/// // d(by³)/d by at 3.
/// let gradient = grad(
///     |parameters: Parameters<_>| {
///         let scale = parameters.onto(Scale::new(0.0)).expect("the template fits");
///         scale.by.val().powi_scalar(3)
///     },
///     Parameters::of(&scale),
/// )?;
/// let gradient = gradient.onto(Scale::<BurnT4a>::new(0.0))?;
/// assert_eq!(gradient.by.val().into_scalar(), 27.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parameters<B: Backend>(Vec<(ParamId, Leaf<B>)>);

impl<B: Backend> Parameters<B> {
    /// Parameters of a module in visiting order, with their ids. Nothing is copied.
    pub fn of<M: Module<B>>(module: &M) -> Self {
        Self(read(module))
    }

    /// The template, with these parameters and their ids; the parameters stay on their tape.
    ///
    /// # Errors
    /// [`ModuleError::Count`], [`ModuleError::Parameter`].
    pub fn onto<M: Module<B>>(self, template: M) -> Result<M, ModuleError> {
        write(template, self.0, false)
    }
}

const PARAMETERS: &str = "Parameters";

impl<B: Backend> Tree<B> for Parameters<B> {
    type On<C: Backend> = Parameters<C>;

    fn structure(&self) -> Structure {
        let ids: Vec<ParamId> = self.0.iter().map(|(id, _)| *id).collect();
        let leaves = (0..ids.len()).map(|i| (i.to_string().into(), Structure::Leaf));
        let fields = [("ids".into(), Structure::fixed(ids))].into_iter().chain(leaves).collect();
        Structure::Struct { name: PARAMETERS.into(), fields }
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        all.extend(self.0.into_iter().map(|(_, x)| x));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
        let (ids, fields) = match structure {
            Structure::Struct { name, fields } if name == PARAMETERS && !fields.is_empty() => {
                (fields[0].1.value::<Vec<ParamId>>()?, &fields[1..])
            }
            _ => return structure.mismatch("Parameters { ids, … }"),
        };
        let parameter = |(id, (_, field)): (ParamId, &(_, Structure))| Ok((id, leaves.any(field)?));
        ids.into_iter().zip(fields).map(parameter).collect::<Result<_, _>>().map(Self)
    }
}
