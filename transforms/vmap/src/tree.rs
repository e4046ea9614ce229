//! Trees of tensors of every kind: what goes into a mapped function and comes out of it.

use std::vec::IntoIter;

use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{Backend, Shape, TensorMetadata};
use burn_t4a::ext::scan::Structure;
use burn_tensor::{Bool, Float, Int, Tensor, TensorPrimitive};

use crate::backend::Vmap;
use crate::error::VmapError;
use crate::kind::Kind;

/// A tensor of some kind.
#[derive(Clone, Debug)]
pub enum Leaf<B: Backend> {
    /// Floats.
    Float(FloatTensor<B>),
    /// Integers.
    Int(IntTensor<B>),
    /// Truth values.
    Bool(BoolTensor<B>),
}

/// Runs an expression with `K` as the kind of a leaf, and makes it a leaf of that kind again.
macro_rules! on_kind {
    ($leaf:expr, $x:ident: $k:ident => $body:expr) => {
        match $leaf {
            $crate::tree::Leaf::Float($x) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Float;
                $crate::tree::Leaf::Float($body)
            }
            $crate::tree::Leaf::Int($x) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Int;
                $crate::tree::Leaf::Int($body)
            }
            $crate::tree::Leaf::Bool($x) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Bool;
                $crate::tree::Leaf::Bool($body)
            }
        }
    };
}

pub(crate) use on_kind;

impl<B: Backend> Leaf<B> {
    /// Its shape.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Float(x) => x.shape(),
            Self::Int(x) => x.shape(),
            Self::Bool(x) => x.shape(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "float",
            Self::Int(_) => "int",
            Self::Bool(_) => "bool",
        }
    }
}

impl<B: Backend> Leaf<Vmap<B>> {
    /// Whether it differs between examples.
    pub fn is_batched(&self) -> bool {
        match self {
            Self::Float(x) => x.is_batched(),
            Self::Int(x) => x.is_batched(),
            Self::Bool(x) => x.is_batched(),
        }
    }
}

/// The tensors of a tree, in order.
pub struct Leaves<B: Backend>(IntoIter<(Leaf<B>, Option<usize>)>);

impl<B: Backend> From<Vec<Leaf<B>>> for Leaves<B> {
    fn from(all: Vec<Leaf<B>>) -> Self {
        Self::new(all.into_iter().map(|leaf| (leaf, None)).collect())
    }
}

impl<B: Backend> Leaves<B> {
    /// With an axis of size 1 that may be left out: a number is `[1]` in Burn, a batch of them `[b, 1]` or `[b]`.
    pub(crate) fn new(all: Vec<(Leaf<B>, Option<usize>)>) -> Self {
        Self(all.into_iter())
    }

    /// The next one, of this rank.
    fn take(&mut self, rank: usize) -> Leaf<B> {
        let (leaf, idle) =
            self.0.next().unwrap_or_else(|| unreachable!("as many leaves as the structure has"));
        let mut shape = leaf.shape().to_vec();
        match idle {
            Some(axis) if shape.len() == rank + 1 => {
                shape.remove(axis);
                on_kind!(leaf, x: K => <K as Kind<B>>::reshape(x, Shape::from(shape)))
            }
            _ => leaf,
        }
    }
}

/// A tree of tensors: `()`, a tensor of any kind, tuples, arrays and vectors of trees.
///
/// The trees of `scan` hold floats alone, which have tangents; here integers and truth values are inputs and
/// outputs as well. A struct of yours is a tree by being written as the tuple of its fields:
///
/// ```
/// use burn_t4a::ext::scan::Structure;
/// use burn_t4a_vmap::{Leaf, Leaves, Tensors, VmapError};
/// use burn_tensor::{Int, Tensor, backend::Backend};
///
/// struct Labelled<B: Backend> {
///     image: Tensor<B, 3>,
///     label: Tensor<B, 1, Int>,
/// }
///
/// impl<B: Backend> Tensors<B> for Labelled<B> {
///     fn structure(&self) -> Structure {
///         Structure::Node(vec![Structure::Leaf, Structure::Leaf])
///     }
///     fn leaves(self, all: &mut Vec<Leaf<B>>) {
///         (self.image, self.label).leaves(all);
///     }
///     fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, VmapError> {
///         let (image, label) = Tensors::build(structure, leaves)?;
///         Ok(Self { image, label })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tree of tensors of `{B}`",
    label = "not `Tensors`",
    note = "trees are tensors of any kind, `()`, tuples, arrays and vectors of trees; a struct implements `Tensors` \
            by listing its parts; what is no tensor can be captured by the mapped function"
)]
pub trait Tensors<B: Backend>: Sized {
    /// How it branches.
    fn structure(&self) -> Structure;
    /// Appends its tensors, in order.
    fn leaves(self, all: &mut Vec<Leaf<B>>);
    /// The tree of these tensors.
    ///
    /// # Errors
    /// [`VmapError::Structure`], [`VmapError::Leaf`].
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, VmapError>;
}

fn mismatch<T>(required: impl Into<String>, given: &Structure) -> Result<T, VmapError> {
    let (required, given) = (required.into(), given.to_string());
    Err(VmapError::Structure { what: "a tree of tensors", required, given })
}

macro_rules! tensors {
    ($($kind:ident $name:literal: $x:ident => $into:expr, $from:expr;)*) => {$(
        impl<B: Backend, const D: usize> Tensors<B> for Tensor<B, D, $kind> {
            fn structure(&self) -> Structure {
                Structure::Leaf
            }
            fn leaves(self, all: &mut Vec<Leaf<B>>) {
                let $x = self.into_primitive();
                all.push(Leaf::$kind($into));
            }
            fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, VmapError> {
                if *structure != Structure::Leaf {
                    return mismatch("*", structure);
                }
                match leaves.take(D) {
                    Leaf::$kind($x) if $x.rank() == D => Ok(Self::from_primitive($from)),
                    leaf => {
                        let (given, shape) = (leaf.kind(), leaf.shape());
                        Err(VmapError::Leaf { kind: $name, rank: D, given, shape })
                    }
                }
            }
        }
    )*};
}

tensors! {
    Float "float": x => x.tensor(), TensorPrimitive::Float(x);
    Int "int": x => x, x;
    Bool "bool": x => x, x;
}

impl<B: Backend, T: Tensors<B>> Tensors<B> for Vec<T> {
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, VmapError> {
        match structure {
            Structure::Node(all) => all.iter().map(|child| T::build(child, leaves)).collect(),
            Structure::Leaf => mismatch("(…)", structure),
        }
    }
}

impl<B: Backend, T: Tensors<B>, const N: usize> Tensors<B> for [T; N] {
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, VmapError> {
        match Vec::<T>::build(structure, leaves)?.try_into() {
            Ok(all) => Ok(all),
            Err(_) => mismatch(format!("({N} of them)"), structure),
        }
    }
}

impl<B: Backend> Tensors<B> for () {
    fn structure(&self) -> Structure {
        Structure::Node(Vec::new())
    }
    fn leaves(self, _: &mut Vec<Leaf<B>>) {}
    fn build(structure: &Structure, _: &mut Leaves<B>) -> Result<Self, VmapError> {
        match structure {
            Structure::Node(children) if children.is_empty() => Ok(()),
            _ => mismatch("()", structure),
        }
    }
}

macro_rules! tuples {
    ($($count:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<Back: Backend, $($t: Tensors<Back>),*> Tensors<Back> for ($($t,)*) {
            fn structure(&self) -> Structure {
                Structure::Node(vec![$(self.$i.structure()),*])
            }
            fn leaves(self, all: &mut Vec<Leaf<Back>>) {
                $(self.$i.leaves(all);)*
            }
            fn build(structure: &Structure, leaves: &mut Leaves<Back>) -> Result<Self, VmapError> {
                match structure {
                    Structure::Node(children) if children.len() == $count => {
                        Ok(($($t::build(&children[$i], leaves)?,)*))
                    }
                    _ => mismatch(format!("({} of them)", $count), structure),
                }
            }
        }
    )*};
}

tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
}
