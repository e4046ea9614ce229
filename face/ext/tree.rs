//! Trees of tensors (pytrees in JAX): arguments and results of scans and of function transformations.
//!
//! A tree is a tensor of any kind, `()`, a tuple, array, vector or option of trees, a `BTreeMap` from names to
//! trees, a [`Static`] value, or a struct of trees with [`#[derive(Tree)]`](derive@Tree).
//!
#![cfg_attr(
    burn_line = "0.21",
    doc = "
```
use burn::tensor::{Int, Tensor};
use burn_t4a::ext::tree::{build, build_floats, flatten, flatten_floats};
use burn_t4a::{BurnT4a, T4aDevice};

let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
let (structure, leaves) = flatten::<BurnT4a, _>((of([1.0, 2.0]), vec![of([3.0, 4.0])]));
assert_eq!(structure.paths(), [\".0\", \".1.0\"]);
assert!(leaves.iter().all(|leaf| leaf.kind() == \"floats\" && leaf.shape()[..] == [2]));
let (a, b): (Tensor<BurnT4a, 1>, Vec<Tensor<BurnT4a, 1>>) = build(&structure, leaves)?;
// Of float tensors only.
let (structure, mut floats) = flatten_floats::<BurnT4a, _>((a, b))?;
floats.reverse();
let (a, _): (Tensor<BurnT4a, 1>, Vec<Tensor<BurnT4a, 1>>) = build_floats(&structure, floats)?;
a.into_data().assert_eq(&[3.0f32, 4.0].into(), false);
let index = Tensor::<BurnT4a, 1, Int>::from_ints([0], &T4aDevice);
let error = flatten_floats::<BurnT4a, _>((of([1.0, 2.0]), index)).unwrap_err();
assert!(error.to_string().contains(\".1\"), \"{error}\");
# Ok::<(), burn_t4a::ext::tree::TreeError>(())
```"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
#[cfg(burn_line = "0.21")]
use std::marker::PhantomData;
use std::vec::IntoIter;

use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{DType, Shape, TensorMetadata};

#[doc(hidden)]
pub use burn_backend::Backend;
#[cfg(burn_line = "0.22")]
#[doc(hidden)]
pub use burn_dispatch::Dispatch;
#[cfg(burn_line = "0.22")]
pub use burn_t4a_derive::DispatchTree as Tree;
#[cfg(burn_line = "0.21")]
pub use burn_t4a_derive::Tree;
use t4a_diff::Value;
pub use t4a_diff::tree::{StaticValue, Structure, TreeError};

use crate::ext::operation::{Operand, Operations};
use crate::ext::primitive::{Bools, Floats, Indices};

/// Leaf of a tree: a tensor of any kind.
#[derive(Clone, Debug)]
pub enum Leaf<B: Backend> {
    /// Float tensor.
    Float(FloatTensor<B>),
    /// Integer tensor.
    Int(IntTensor<B>),
    /// Boolean tensor.
    Bool(BoolTensor<B>),
}

impl<B: Backend> Leaf<B> {
    /// Shape of the tensor.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Float(x) => x.shape(),
            Self::Int(x) => x.shape(),
            Self::Bool(x) => x.shape(),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Float(x) => x.dtype(),
            Self::Int(x) => x.dtype(),
            Self::Bool(x) => x.dtype(),
        }
    }

    /// The operand of an operation.
    pub(crate) fn into_operand(self) -> Operand<B>
    where
        B: Operations,
    {
        match self {
            Self::Float(x) => Value::Float(Floats(x)),
            Self::Int(x) => Value::Integers(Indices(x)),
            Self::Bool(x) => Value::Flags(Bools(x)),
        }
    }

    /// The leaf of an operand.
    pub(crate) fn of_operand(x: Operand<B>) -> Self
    where
        B: Operations,
    {
        match x {
            Value::Float(x) => Self::Float(x.0),
            Value::Integers(x) => Self::Int(x.0),
            Value::Flags(x) => Self::Bool(x.0),
        }
    }

    /// Reshapes the tensor to a shape with as many elements.
    fn reshape(self, shape: Shape) -> Self {
        match self {
            Self::Float(x) => Self::Float(B::float_reshape(x, shape)),
            Self::Int(x) => Self::Int(B::int_reshape(x, shape)),
            Self::Bool(x) => Self::Bool(B::bool_reshape(x, shape)),
        }
    }

    /// Kind of the tensor as a word for messages: `floats`, `integers` or `booleans`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "floats",
            Self::Int(_) => "integers",
            Self::Bool(_) => "booleans",
        }
    }
}

/// Iterator over the remaining leaves while a tree is built.
#[derive(Debug)]
pub struct Leaves<B: Backend>(IntoIter<(Leaf<B>, Option<usize>)>);

impl<B: Backend> From<Vec<Leaf<B>>> for Leaves<B> {
    fn from(all: Vec<Leaf<B>>) -> Self {
        Self::with_unit_axes(all.into_iter().map(|leaf| (leaf, None)))
    }
}

impl<B: Backend> Leaves<B> {
    /// Leaves with an optional extra axis of size 1, which is removed if the tensor type has one axis less. Burn
    /// represents a scalar by shape `[1]`, so a batch of scalars has shape `[b, 1]` or `[b]`.
    pub fn with_unit_axes(all: impl IntoIterator<Item = (Leaf<B>, Option<usize>)>) -> Self {
        Self(all.into_iter().collect::<Vec<_>>().into_iter())
    }

    fn next(&mut self, structure: &Structure) -> Result<(Leaf<B>, Option<usize>), TreeError> {
        let next = if *structure == Structure::Leaf { self.0.next() } else { None };
        next.map_or_else(|| structure.mismatch("*"), Ok)
    }

    /// Takes the next leaf, of any kind and rank.
    ///
    /// # Errors
    /// [`TreeError::Structure`] unless `structure` is a leaf and one is left.
    pub fn any(&mut self, structure: &Structure) -> Result<Leaf<B>, TreeError> {
        Ok(self.next(structure)?.0)
    }

    /// Takes the next leaf as a tensor of this kind and rank; `accept` returns `None` for leaves of another kind.
    ///
    /// # Errors
    /// [`TreeError::Structure`] unless `structure` is a leaf and one is left; [`TreeError::Leaf`] for another kind
    /// or rank.
    pub fn take<T>(
        &mut self,
        structure: &Structure,
        kind: &'static str,
        rank: usize,
        accept: impl FnOnce(Leaf<B>) -> Option<T>,
    ) -> Result<T, TreeError> {
        let (mut leaf, unit) = self.next(structure)?;
        let mut shape = leaf.shape().to_vec();
        if let Some(axis) = unit
            && shape.len() == rank + 1
            && shape[axis] == 1
        {
            shape.remove(axis);
            leaf = leaf.reshape(Shape::from(shape.clone()));
        }
        let given = leaf.kind();
        let tensor = if shape.len() == rank { accept(leaf) } else { None };
        tensor.ok_or(TreeError::Leaf { kind, rank, given, shape })
    }
}

/// A tree of tensors of backend `B`.
///
/// Structs implement it by [`#[derive(Tree)]`](derive@Tree). A manual implementation delegates `structure`,
/// `leaves` and `build` to the tuple of the fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of tensors of `{B}`",
    label = "not a `Tree`",
    note = "trees are tensors, `()`, tuples, arrays, vectors and options of trees, and `Static` values",
    note = "a struct becomes a tree by `#[derive(Tree)]`, with `#[tree(fixed)]` on fields that hold no tensors; \
            a closure can also capture what is not a tree"
)]
pub trait Tree<
    #[cfg(burn_line = "0.21")] B: Backend,
    #[cfg(burn_line = "0.22")] B: Backend = Dispatch,
>: Sized
{
    /// The same tree on another backend; [`OneBackend`] for types that exist on one backend only.
    #[cfg(burn_line = "0.21")]
    type On<C: Backend>: Tree<C>;

    /// Structure of the tree: everything except the tensors.
    fn structure(&self) -> Structure;

    /// Appends the leaves in the order of [`Structure::paths`].
    fn leaves(self, all: &mut Vec<Leaf<B>>);

    /// Builds the tree of this structure from the next leaves.
    ///
    /// # Errors
    /// [`TreeError`] if structure, kinds or ranks do not match the type.
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError>;
}

/// Splits a tree into its structure and its leaves in order (`tree_flatten` in JAX).
pub fn flatten<B: Backend, T: Tree<B>>(tree: T) -> (Structure, Vec<Leaf<B>>) {
    let structure = tree.structure();
    let mut all = Vec::new();
    tree.leaves(&mut all);
    (structure, all)
}

/// As [`flatten`], for a tree of float tensors only.
///
/// # Errors
/// [`TreeError::NotFloats`] with the path of the first leaf of another kind.
pub fn flatten_floats<B: Backend, T: Tree<B>>(
    tree: T,
) -> Result<(Structure, Vec<FloatTensor<B>>), TreeError> {
    let (structure, all) = flatten(tree);
    let float = |(i, leaf): (usize, Leaf<B>)| match leaf {
        Leaf::Float(x) => Ok(x),
        other => {
            let path = structure.paths().get(i).cloned().unwrap_or_default();
            Err(TreeError::NotFloats { path, kind: other.kind() })
        }
    };
    let all = all.into_iter().enumerate().map(float).collect::<Result<_, _>>()?;
    Ok((structure, all))
}

/// Builds a tree from its structure and leaves (`tree_unflatten` in JAX).
///
/// # Errors
/// As [`Tree::build`].
pub fn build<B: Backend, T: Tree<B>>(
    structure: &Structure,
    leaves: Vec<Leaf<B>>,
) -> Result<T, TreeError> {
    T::build(structure, &mut Leaves::from(leaves))
}

/// As [`build`], from float tensors.
///
/// # Errors
/// As [`Tree::build`].
pub fn build_floats<B: Backend, T: Tree<B>>(
    structure: &Structure,
    leaves: Vec<FloatTensor<B>>,
) -> Result<T, TreeError> {
    build(structure, leaves.into_iter().map(Leaf::Float).collect())
}

/// A value in a tree that is not a tensor. It is part of the structure: trees with different values have different
/// structures, and a compiled function is recorded once per value.
///
#[cfg_attr(
    burn_line = "0.21",
    doc = "
```
use burn_t4a::ext::tree::{Static, Tree};
use burn_t4a::BurnT4a;

let structure = <_ as Tree<BurnT4a>>::structure(&(Static(3), ()));
assert_eq!(structure.to_string(), \"(3, ())\");
```"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Static<T>(pub T);

impl<B: Backend, T> Tree<B> for Static<T>
where
    T: Clone + PartialEq + fmt::Debug + Send + Sync + 'static,
{
    #[cfg(burn_line = "0.21")]
    type On<C: Backend> = Self;

    fn structure(&self) -> Structure {
        Structure::fixed(self.0.clone())
    }
    fn leaves(self, _: &mut Vec<Leaf<B>>) {}
    fn build(structure: &Structure, _: &mut Leaves<B>) -> Result<Self, TreeError> {
        structure.value().map(Self)
    }
}

/// Placeholder without values for the counterpart of a single-backend tree on other backends.
#[cfg(burn_line = "0.21")]
#[derive(Clone, Copy, Debug)]
pub struct OneBackend<C>(PhantomData<C>, std::convert::Infallible);

#[cfg(burn_line = "0.21")]
impl<B: Backend> Tree<B> for OneBackend<B> {
    type On<C: Backend> = OneBackend<C>;

    fn structure(&self) -> Structure {
        match self.1 {}
    }
    fn leaves(self, _: &mut Vec<Leaf<B>>) {
        match self.1 {}
    }
    fn build(structure: &Structure, _: &mut Leaves<B>) -> Result<Self, TreeError> {
        structure.mismatch("a tree that exists on other backends")
    }
}

impl<B: Backend, T: Tree<B>> Tree<B> for Vec<T> {
    #[cfg(burn_line = "0.21")]
    type On<C: Backend> = Vec<T::On<C>>;

    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
        match structure {
            Structure::Node(children) => {
                children.iter().map(|child| T::build(child, leaves)).collect()
            }
            _ => structure.mismatch("(…)"),
        }
    }
}

impl<B: Backend, T: Tree<B>, const N: usize> Tree<B> for [T; N] {
    #[cfg(burn_line = "0.21")]
    type On<C: Backend> = [T::On<C>; N];

    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
        structure.node(N)?;
        let all: Result<[T; N], _> = Vec::<T>::build(structure, leaves)?.try_into();
        all.or_else(|_| structure.mismatch(format!("a node of {N}")))
    }
}

impl<B: Backend, T: Tree<B>> Tree<B> for Option<T> {
    #[cfg(burn_line = "0.21")]
    type On<C: Backend> = Option<T::On<C>>;

    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
        match structure {
            Structure::Node(children) if children.is_empty() => Ok(None),
            _ => Ok(Some(T::build(&structure.node(1)?[0], leaves)?)),
        }
    }
}

impl<B: Backend, T: Tree<B>> Tree<B> for BTreeMap<String, T> {
    #[cfg(burn_line = "0.21")]
    type On<C: Backend> = BTreeMap<String, T::On<C>>;

    fn structure(&self) -> Structure {
        let fields = self.iter().map(|(name, tree)| (name.clone().into(), tree.structure()));
        Structure::Struct { name: "BTreeMap".into(), fields: fields.collect() }
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_values().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
        match structure {
            Structure::Struct { name, fields } if name == "BTreeMap" => {
                let field = |(name, tree): &(Cow<'static, str>, Structure)| {
                    Ok((name.to_string(), T::build(tree, leaves)?))
                };
                fields.iter().map(field).collect()
            }
            _ => structure.mismatch("BTreeMap { … }"),
        }
    }
}

macro_rules! tuples {
    ($($count:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<Back: Backend, $($t: Tree<Back>),*> Tree<Back> for ($($t,)*) {
            #[cfg(burn_line = "0.21")]
            type On<Other: Backend> = ($($t::On<Other>,)*);

            fn structure(&self) -> Structure {
                Structure::Node(vec![$(self.$i.structure()),*])
            }
            fn leaves(self, _all: &mut Vec<Leaf<Back>>) {
                $(self.$i.leaves(_all);)*
            }
            fn build(
                structure: &Structure,
                _leaves: &mut Leaves<Back>,
            ) -> Result<Self, TreeError> {
                let _children = structure.node($count)?;
                Ok(($($t::build(&_children[$i], _leaves)?,)*))
            }
        }
    )*};
}

tuples! {
    0: ;
    1: T0 0;
    2: T0 0 T1 1;
    3: T0 0 T1 1 T2 2;
    4: T0 0 T1 1 T2 2 T3 3;
    5: T0 0 T1 1 T2 2 T3 3 T4 4;
    6: T0 0 T1 1 T2 2 T3 3 T4 4 T5 5;
    7: T0 0 T1 1 T2 2 T3 3 T4 4 T5 5 T6 6;
    8: T0 0 T1 1 T2 2 T3 3 T4 4 T5 5 T6 6 T7 7;
}
