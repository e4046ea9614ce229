//! The primitives of [`Traced`](crate::Traced): a tensor of the inner backend, and which value of which
//! recording it is.

use std::fmt;
use std::sync::Arc;

use burn_backend::quantization::QuantScheme;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor, QuantizedTensor};
use burn_backend::{
    Backend, DType, QTensorPrimitive, Shape, TensorData, TensorMetadata, get_device_settings,
    try_read_sync,
};
use burn_t4a::ext::tree::{self, Leaf, Structure, Tree};

use crate::error::Result;
use crate::recording::Recording;

/// A tensor of any kind of a backend.
pub enum Any<B: Backend> {
    /// Floats.
    Float(FloatTensor<B>),
    /// Integers.
    Int(IntTensor<B>),
    /// Truth values.
    Bool(BoolTensor<B>),
    /// Quantized floats.
    Quantized(Box<QuantizedTensor<B>>),
}

impl<B: Backend> Clone for Any<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Float(x) => Self::Float(x.clone()),
            Self::Int(x) => Self::Int(x.clone()),
            Self::Bool(x) => Self::Bool(x.clone()),
            Self::Quantized(x) => Self::Quantized(x.clone()),
        }
    }
}

/// Shape and dtype of a value of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its dtype.
    pub dtype: DType,
}

impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype.name(), self.shape)
    }
}

impl Meta {
    fn of(x: &impl TensorMetadata) -> Self {
        Self { shape: x.shape().to_vec(), dtype: x.dtype() }
    }
}

impl<B: Backend> From<Leaf<B>> for Any<B> {
    fn from(leaf: Leaf<B>) -> Self {
        match leaf {
            Leaf::Float(x) => Self::Float(x),
            Leaf::Int(x) => Self::Int(x),
            Leaf::Bool(x) => Self::Bool(x),
        }
    }
}

impl<B: Backend> From<Any<B>> for Leaf<B> {
    /// Quantized floats are dequantized.
    fn from(x: Any<B>) -> Self {
        match x {
            Any::Float(x) => Self::Float(x),
            Any::Int(x) => Self::Int(x),
            Any::Bool(x) => Self::Bool(x),
            Any::Quantized(x) => {
                let dtype = get_device_settings::<B>(&B::q_device(&x)).float_dtype;
                Self::Float(B::dequantize(*x, dtype))
            }
        }
    }
}

/// The tensors of a tree and its structure.
pub(crate) fn flatten<B: Backend, T: Tree<B>>(tree: T) -> (Structure, Vec<Any<B>>) {
    let (structure, leaves) = tree::flatten(tree);
    (structure, leaves.into_iter().map(Any::from).collect())
}

/// The tree of this structure with these tensors.
pub(crate) fn build<B: Backend, T: Tree<B>>(structure: &Structure, all: Vec<Any<B>>) -> Result<T> {
    Ok(tree::build(structure, all.into_iter().map(Leaf::from).collect())?)
}

impl<B: Backend> Any<B> {
    /// Its shape and dtype.
    pub fn meta(&self) -> Meta {
        match self {
            Self::Float(x) => Meta::of(x),
            Self::Int(x) => Meta::of(x),
            Self::Bool(x) => Meta::of(x),
            Self::Quantized(x) => Meta::of(&**x),
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "float",
            Self::Int(_) => "int",
            Self::Bool(_) => "bool",
            Self::Quantized(_) => "quantized",
        }
    }

    /// Where it is.
    pub fn device(&self) -> B::Device {
        match self {
            Self::Float(x) => B::float_device(x),
            Self::Int(x) => B::int_device(x),
            Self::Bool(x) => B::bool_device(x),
            Self::Quantized(x) => B::q_device(x),
        }
    }

    /// Its elements.
    ///
    /// # Errors
    /// The backend's.
    pub fn data(self) -> Result<TensorData, String> {
        let data = match self {
            Self::Float(x) => try_read_sync(B::float_into_data(x)),
            Self::Int(x) => try_read_sync(B::int_into_data(x)),
            Self::Bool(x) => try_read_sync(B::bool_into_data(x)),
            Self::Quantized(x) => try_read_sync(B::q_into_data(*x)),
        };
        let data = data.ok_or_else(|| "data cannot be read synchronously here".to_owned())?;
        data.map_err(|error| format!("{error:?}"))
    }

    /// Whether a tape of the inner backend follows it.
    pub(crate) fn is_tracked(&self) -> bool {
        matches!(self, Self::Float(x) if B::float_is_require_grad(x))
    }
}

/// One of the four kinds of tensors.
pub trait Kind<B: Backend>: Send + Sync + 'static {
    /// The inner backend's tensor.
    type Primitive: TensorMetadata + 'static;
    /// As a tensor of any kind.
    fn erase(x: Self::Primitive) -> Any<B>;
    /// The tensor, if it is of this kind.
    fn restore(x: Any<B>) -> Option<Self::Primitive>;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $variant:ident $primitive:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl<B: Backend> Kind<B> for $name {
            type Primitive = $primitive<B>;
            fn erase(x: $primitive<B>) -> Any<B> {
                Any::$variant(x.into())
            }
            fn restore(x: Any<B>) -> Option<$primitive<B>> {
                match x {
                    Any::$variant(x) => Some(kinds!(@restore $variant x)),
                    _ => None,
                }
            }
        }
    )*};
    (@restore Quantized $x:ident) => { *$x };
    (@restore $variant:ident $x:ident) => { $x };
}

kinds! {
    /// Floats.
    FloatKind Float FloatTensor;
    /// Integers.
    IntKind Int IntTensor;
    /// Truth values.
    BoolKind Bool BoolTensor;
    /// Quantized floats.
    QuantizedKind Quantized QuantizedTensor;
}

/// A value of a recording.
pub(crate) struct Node<B: Backend> {
    pub(crate) recording: Arc<Recording<B>>,
    pub(crate) id: usize,
}

impl<B: Backend> Clone for Node<B> {
    fn clone(&self) -> Self {
        Self { recording: self.recording.clone(), id: self.id }
    }
}

/// A tensor of [`Traced`](crate::Traced): one of the inner backend, computed as always, and its place in
/// the recording that is under way, if it depends on what is recorded.
pub struct TracedTensor<B: Backend, K: Kind<B>> {
    pub(crate) primitive: K::Primitive,
    pub(crate) node: Option<Node<B>>,
}

impl<B: Backend, K: Kind<B>> TracedTensor<B, K> {
    /// A tensor of the inner backend that no recording knows: a constant of those that meet it.
    pub fn constant(primitive: K::Primitive) -> Self {
        Self { primitive, node: None }
    }

    /// The tensor of the inner backend.
    pub fn into_inner(self) -> K::Primitive {
        self.primitive
    }
}

impl<B: Backend, K: Kind<B>> Clone for TracedTensor<B, K> {
    fn clone(&self) -> Self {
        Self { primitive: self.primitive.clone(), node: self.node.clone() }
    }
}

impl<B: Backend, K: Kind<B>> fmt::Debug for TracedTensor<B, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.node.as_ref().map(|node| node.id);
        f.debug_struct("TracedTensor")
            .field("primitive", &self.primitive)
            .field("value", &value)
            .finish()
    }
}

impl<B: Backend, K: Kind<B>> TensorMetadata for TracedTensor<B, K> {
    fn dtype(&self) -> DType {
        self.primitive.dtype()
    }
    fn shape(&self) -> Shape {
        self.primitive.shape()
    }
    fn rank(&self) -> usize {
        self.primitive.rank()
    }
}

impl<B: Backend> QTensorPrimitive for TracedTensor<B, QuantizedKind> {
    fn scheme(&self) -> &QuantScheme {
        self.primitive.scheme()
    }
}
