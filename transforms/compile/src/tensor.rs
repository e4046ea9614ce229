//! Tensor primitives of [`Traced`](crate::Traced): a tensor of the inner backend and its value in a recording.

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

/// A backend tensor of any kind.
pub enum AnyPrimitive<B: Backend> {
    /// Float tensor.
    Float(FloatTensor<B>),
    /// Integer tensor.
    Int(IntTensor<B>),
    /// Boolean tensor.
    Bool(BoolTensor<B>),
    /// Quantized float tensor.
    Quantized(Box<QuantizedTensor<B>>),
}

impl<B: Backend> Clone for AnyPrimitive<B> {
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
pub struct TensorType {
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Element type.
    pub dtype: DType,
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype.name(), self.shape)
    }
}

impl TensorType {
    fn of(x: &impl TensorMetadata) -> Self {
        Self { shape: x.shape().to_vec(), dtype: x.dtype() }
    }
}

impl<B: Backend> From<Leaf<B>> for AnyPrimitive<B> {
    fn from(leaf: Leaf<B>) -> Self {
        match leaf {
            Leaf::Float(x) => Self::Float(x),
            Leaf::Int(x) => Self::Int(x),
            Leaf::Bool(x) => Self::Bool(x),
        }
    }
}

impl<B: Backend> From<AnyPrimitive<B>> for Leaf<B> {
    /// Quantized tensors are dequantized.
    fn from(x: AnyPrimitive<B>) -> Self {
        match x {
            AnyPrimitive::Float(x) => Self::Float(x),
            AnyPrimitive::Int(x) => Self::Int(x),
            AnyPrimitive::Bool(x) => Self::Bool(x),
            AnyPrimitive::Quantized(x) => {
                let dtype = get_device_settings::<B>(&B::q_device(&x)).float_dtype;
                Self::Float(B::dequantize(*x, dtype))
            }
        }
    }
}

/// Flattens a tree into its structure and its tensors.
pub(crate) fn flatten<B: Backend, T: Tree<B>>(tree: T) -> (Structure, Vec<AnyPrimitive<B>>) {
    let (structure, leaves) = tree::flatten(tree);
    (structure, leaves.into_iter().map(AnyPrimitive::from).collect())
}

/// Builds a tree from a structure and its tensors.
pub(crate) fn build<B: Backend, T: Tree<B>>(
    structure: &Structure,
    all: Vec<AnyPrimitive<B>>,
) -> Result<T> {
    Ok(tree::build(structure, all.into_iter().map(Leaf::from).collect())?)
}

impl<B: Backend> AnyPrimitive<B> {
    /// Shape and dtype.
    pub fn meta(&self) -> TensorType {
        match self {
            Self::Float(x) => TensorType::of(x),
            Self::Int(x) => TensorType::of(x),
            Self::Bool(x) => TensorType::of(x),
            Self::Quantized(x) => TensorType::of(&**x),
        }
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        match self {
            Self::Float(x) => x.shape().num_elements(),
            Self::Int(x) => x.shape().num_elements(),
            Self::Bool(x) => x.shape().num_elements(),
            Self::Quantized(x) => x.shape().num_elements(),
        }
    }

    /// Name of the tensor kind: `float`, `int`, `bool` or `quantized`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "float",
            Self::Int(_) => "int",
            Self::Bool(_) => "bool",
            Self::Quantized(_) => "quantized",
        }
    }

    /// Device of the tensor.
    pub fn device(&self) -> B::Device {
        match self {
            Self::Float(x) => B::float_device(x),
            Self::Int(x) => B::int_device(x),
            Self::Bool(x) => B::bool_device(x),
            Self::Quantized(x) => B::q_device(x),
        }
    }

    /// Copies the elements to the host.
    ///
    /// # Errors
    /// Those of the backend, and devices that cannot be read synchronously.
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

    /// True if an autodiff tape of the inner backend tracks the tensor.
    pub(crate) fn is_tracked(&self) -> bool {
        matches!(self, Self::Float(x) if B::float_is_require_grad(x))
    }
}

/// Type-level tensor kind: float, integer, boolean or quantized.
pub trait PrimitiveKind<B: Backend>: Send + Sync + 'static {
    /// Tensor primitive of the inner backend.
    type Primitive: TensorMetadata + 'static;
    /// Converts to a tensor of any kind.
    fn erase(x: Self::Primitive) -> AnyPrimitive<B>;
    /// Converts back; `None` if the kind differs.
    fn restore(x: AnyPrimitive<B>) -> Option<Self::Primitive>;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $variant:ident $primitive:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl<B: Backend> PrimitiveKind<B> for $name {
            type Primitive = $primitive<B>;
            fn erase(x: $primitive<B>) -> AnyPrimitive<B> {
                AnyPrimitive::$variant(x.into())
            }
            fn restore(x: AnyPrimitive<B>) -> Option<$primitive<B>> {
                match x {
                    AnyPrimitive::$variant(x) => Some(kinds!(@restore $variant x)),
                    _ => None,
                }
            }
        }
    )*};
    (@restore Quantized $x:ident) => { *$x };
    (@restore $variant:ident $x:ident) => { $x };
}

kinds! {
    /// Float tensors.
    FloatKind Float FloatTensor;
    /// Integer tensors.
    IntKind Int IntTensor;
    /// Boolean tensors.
    BoolKind Bool BoolTensor;
    /// Quantized float tensors.
    QuantizedKind Quantized QuantizedTensor;
}

/// A value of a recording.
pub(crate) struct ValueNode<B: Backend> {
    pub(crate) recording: Arc<Recording<B>>,
    pub(crate) id: usize,
}

impl<B: Backend> Clone for ValueNode<B> {
    fn clone(&self) -> Self {
        Self { recording: self.recording.clone(), id: self.id }
    }
}

/// Tensor primitive of [`Traced`](crate::Traced): a tensor of the inner backend, computed eagerly, and its value in the
/// active recording, if it depends on recorded values.
pub struct TracedTensor<B: Backend, K: PrimitiveKind<B>> {
    pub(crate) primitive: K::Primitive,
    pub(crate) node: Option<ValueNode<B>>,
}

impl<B: Backend, K: PrimitiveKind<B>> TracedTensor<B, K> {
    /// Wraps a tensor of the inner backend without a recording; recordings that use it treat it as a constant.
    pub fn constant(primitive: K::Primitive) -> Self {
        Self { primitive, node: None }
    }

    /// Unwraps the tensor of the inner backend.
    pub fn into_inner(self) -> K::Primitive {
        self.primitive
    }
}

impl<B: Backend, K: PrimitiveKind<B>> Clone for TracedTensor<B, K> {
    fn clone(&self) -> Self {
        Self { primitive: self.primitive.clone(), node: self.node.clone() }
    }
}

impl<B: Backend, K: PrimitiveKind<B>> fmt::Debug for TracedTensor<B, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.node.as_ref().map(|node| node.id);
        f.debug_struct("TracedTensor")
            .field("primitive", &self.primitive)
            .field("value", &value)
            .finish()
    }
}

impl<B: Backend, K: PrimitiveKind<B>> TensorMetadata for TracedTensor<B, K> {
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
