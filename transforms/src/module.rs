//! Modules on the backend of a transformation: parameters move, nothing else does.
//!
//! ```text
//! lift      M<B>          →  M<D>         D around B; parameters are shared, without a copy
//! stack     [M<B>; n]     →  M<Vmap<B>>   an ensemble: one module with a batch of parameters
//! member    M<Vmap<B>>, i →  M<B>         one of them
//! ```
//!
//! A module for another backend is made from its configuration, as [`Module`] has no general way there; that
//! is the template, of which everything but the parameters stays. It draws parameters of its own, so it is made
//! outside of a mapped function, or where [`Random`](crate::vmap::Random) allows that.
//!
//! ```
//! use burn_core::module::{Module, Param};
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::module::{lift, stack};
//! use burn_t4a_transforms::vmap::{Vmap, vmap};
//! use burn_tensor::{Tensor, backend::Backend};
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
use burn_t4a_jvp::{Jvp, JvpTensor};
use burn_t4a_vmap::{Vmap, VmapTensor};
use burn_tensor::{Bool, Int, Tensor, TensorPrimitive};
use thiserror::Error;

/// A backend around another one: what a tensor of that one is here.
pub trait Around<B: Backend>: Backend<Device = <B as BackendTypes>::Device> {
    /// Floats: constants of derivatives, shared by examples.
    fn float(x: FloatTensor<B>) -> FloatTensor<Self>;
    /// Integers.
    fn int(x: IntTensor<B>) -> IntTensor<Self>;
    /// Truth values.
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

/// What keeps parameters of one module out of another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// Modules with different numbers of parameters.
    #[error("{required} parameters are required, given {given}")]
    Count {
        /// Of the template, or of the first module.
        required: usize,
        /// Of the other one.
        given: usize,
    },
    /// A parameter of another kind or shape.
    #[error("parameter {index}: required {required}, given {given}")]
    Parameter {
        /// Its number, in the order in which modules are visited.
        index: usize,
        /// What the template has there.
        required: ParameterKind,
        /// What is given.
        given: ParameterKind,
    },
    /// An ensemble of nobody.
    #[error("an ensemble has at least one module")]
    Empty,
    /// A member that there is not.
    #[error("member {index} of {count}")]
    Member {
        /// Its number.
        index: usize,
        /// How many there are.
        count: usize,
    },
}

/// The kind and shape of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterKind {
    /// `float`, `int` or `bool`.
    pub name: &'static str,
    /// Its shape.
    pub shape: Vec<usize>,
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.shape)
    }
}

/// A parameter.
#[derive(Clone, Debug)]
enum Parameter<B: Backend> {
    Float(FloatTensor<B>),
    Int(IntTensor<B>),
    Bool(BoolTensor<B>),
}

impl<B: Backend> Parameter<B> {
    fn kind(&self) -> ParameterKind {
        let (name, shape) = match self {
            Self::Float(x) => ("float", x.shape()),
            Self::Int(x) => ("int", x.shape()),
            Self::Bool(x) => ("bool", x.shape()),
        };
        ParameterKind { name, shape: shape.to_vec() }
    }
}

/// The parameters of a module, in order.
struct Read<B: Backend>(Vec<(ParamId, Parameter<B>)>);

impl<B: Backend> ModuleVisitor<B> for Read<B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let x = param.val().into_primitive().tensor();
        self.0.push((param.id, Parameter::Float(x)));
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<B, D, Int>>) {
        self.0.push((param.id, Parameter::Int(param.val().into_primitive())));
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<B, D, Bool>>) {
        self.0.push((param.id, Parameter::Bool(param.val().into_primitive())));
    }
}

fn read<B: Backend, M: Module<B>>(module: &M) -> Vec<(ParamId, Parameter<B>)> {
    let mut all = Read(Vec::new());
    module.visit(&mut all);
    all.0
}

/// Puts parameters in the place of those of a module, in order.
struct Write<B: Backend>(IntoIter<(ParamId, Parameter<B>)>);

macro_rules! write {
    ($method:ident, $kind:ident, $t:ty, $x:ident => $tensor:expr) => {
        fn $method<const D: usize>(&mut self, param: Param<$t>) -> Param<$t> {
            let (_, old, mapper) = param.consume();
            let Some((id, Parameter::$kind($x))) = self.0.next() else {
                unreachable!("parameters have been compared")
            };
            Param::from_mapped_value(id, $tensor(&old), mapper)
        }
    };
}

impl<B: Backend> ModuleMapper<B> for Write<B> {
    write!(map_float, Float, Tensor<B, D>, x => |old: &Tensor<B, D>| {
        let x: Tensor<B, D> = Tensor::from_primitive(TensorPrimitive::Float(x));
        if old.is_require_grad() { x.require_grad() } else { x }
    });
    write!(map_int, Int, Tensor<B, D, Int>, x => |_: &_| Tensor::from_primitive(x));
    write!(map_bool, Bool, Tensor<B, D, Bool>, x => |_: &_| Tensor::from_primitive(x));
}

/// Whether each of these goes where one of those is.
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
    parameters: Vec<(ParamId, Parameter<B>)>,
) -> Result<M, ModuleError> {
    let kinds = |all: &[(ParamId, Parameter<B>)]| -> Vec<ParameterKind> {
        all.iter().map(|(_, x)| x.kind()).collect()
    };
    compare(kinds(&read(&template)).into_iter(), kinds(&parameters).into_iter())?;
    Ok(template.map(&mut Write(parameters.into_iter())))
}

/// A module on the backend around its own: the template with the parameters of `module`, and their ids.
///
/// Float parameters are leaves with a gradient where those of the template are.
///
/// # Errors
/// [`ModuleError::Count`], [`ModuleError::Parameter`].
pub fn lift<B: Backend, D: Around<B>, M: Module<B>, N: Module<D>>(
    module: &M,
    template: N,
) -> Result<N, ModuleError> {
    let above = |(id, x)| {
        let x = match x {
            Parameter::Float(x) => Parameter::Float(D::float(x)),
            Parameter::Int(x) => Parameter::Int(D::int(x)),
            Parameter::Bool(x) => Parameter::Bool(D::bool(x)),
        };
        (id, x)
    };
    write(template, read(module).into_iter().map(above).collect())
}

/// Runs an expression for each kind of a parameter, with its operations.
macro_rules! of_kind {
    ($x:expr, $y:ident, $reshape:ident, $slice:ident => $body:expr) => {
        match $x {
            Parameter::Float($y) => {
                let ($reshape, $slice) = (B::float_reshape, B::float_slice);
                Parameter::Float($body)
            }
            Parameter::Int($y) => {
                let ($reshape, $slice) = (B::int_reshape, B::int_slice);
                Parameter::Int($body)
            }
            Parameter::Bool($y) => {
                let ($reshape, $slice) = (B::bool_reshape, B::bool_slice);
                Parameter::Bool($body)
            }
        }
    };
}

/// An ensemble: the template with the parameters of all modules as a batch, and the ids of the first.
///
/// Cost: one copy of the parameters.
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
        compare(first.iter().map(|(_, x)| x.kind()), other.iter().map(|(_, x)| x.kind()))?;
    }
    let mut others: Vec<_> = others.into_iter().map(Vec::into_iter).collect();
    let batch = first.into_iter().map(|(id, x)| {
        let own = others.iter_mut().filter_map(|all| all.next()).map(|(_, x)| x);
        (id, batch::<B>([x].into_iter().chain(own).collect()))
    });
    write(template, batch.collect())
}

fn batch<B: Backend>(all: Vec<Parameter<B>>) -> Parameter<Vmap<B>> {
    macro_rules! of {
        ($kind:ident, $reshape:ident, $cat:ident) => {{
            let one = |x: Parameter<B>| match x {
                Parameter::$kind(x) => {
                    let shape: Shape = [1].into_iter().chain(x.shape().iter().copied()).collect();
                    B::$reshape(x, shape)
                }
                _ => unreachable!("parameters have been compared"),
            };
            Parameter::$kind(VmapTensor::batched(B::$cat(all.into_iter().map(one).collect(), 0)))
        }};
    }
    match all[0] {
        Parameter::Float(_) => of!(Float, float_reshape, float_cat),
        Parameter::Int(_) => of!(Int, int_reshape, int_cat),
        Parameter::Bool(_) => of!(Bool, bool_reshape, bool_cat),
    }
}

/// Member `index` of an ensemble: the template with its parameters. What members share is what each has.
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
    write(template, all)
}
