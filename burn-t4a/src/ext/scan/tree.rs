//! Trees of tensors: what a step takes and gives.

use std::fmt;
use std::vec::IntoIter;

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, TensorMetadata};
use burn_tensor::{Tensor, TensorPrimitive};

use super::error::{Result, ScanError};

/// How a tree branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// A tensor.
    Leaf,
    /// Subtrees in order.
    Node(Vec<Structure>),
}

impl fmt::Display for Structure {
    /// `*` for a leaf, parentheses for a node.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf => f.write_str("*"),
            Self::Node(children) => {
                f.write_str("(")?;
                for (i, child) in children.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    child.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}

impl Structure {
    /// Where each leaf is: `.1.0`, or `.` if there is nothing but it.
    pub fn paths(&self) -> Vec<String> {
        fn walk(structure: &Structure, at: &str, all: &mut Vec<String>) {
            match structure {
                Structure::Leaf => all.push(if at.is_empty() { ".".into() } else { at.into() }),
                Structure::Node(children) => {
                    for (i, child) in children.iter().enumerate() {
                        walk(child, &format!("{at}.{i}"), all);
                    }
                }
            }
        }
        let mut all = Vec::new();
        walk(self, "", &mut all);
        all
    }
}

/// The tensors of a tree, in order.
pub struct Leaves<B: Backend>(IntoIter<FloatTensor<B>>);

impl<B: Backend> Leaves<B> {
    pub(super) fn new(all: Vec<FloatTensor<B>>) -> Self {
        Self(all.into_iter())
    }

    /// The next one.
    ///
    /// # Panics
    /// If there is none: structures have been compared before.
    pub fn take(&mut self) -> FloatTensor<B> {
        self.0.next().unwrap_or_else(|| unreachable!("as many leaves as the structure has"))
    }
}

/// A tree of float tensors: `()`, a tensor, tuples, arrays and vectors of trees.
///
/// A struct of yours is one by writing it as the tuple of its fields:
///
/// ```
/// use burn_t4a::ext::scan::{Leaves, Result, Structure, Tree};
/// use burn_tensor::{Tensor, backend::Backend};
///
/// struct Cell<B: Backend> {
///     hidden: Tensor<B, 2>,
///     memory: Tensor<B, 2>,
/// }
///
/// impl<B: Backend> Tree<B> for Cell<B> {
///     fn structure(&self) -> Structure {
///         Structure::Node(vec![self.hidden.structure(), self.memory.structure()])
///     }
///     fn leaves(self, all: &mut Vec<burn_t4a::ext::scan::Leaf<B>>) {
///         (self.hidden, self.memory).leaves(all);
///     }
///     fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
///         let (hidden, memory) = Tree::build(structure, leaves)?;
///         Ok(Self { hidden, memory })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tree of float tensors of `{B}`",
    label = "not a `Tree`",
    note = "trees are float tensors, `()`, tuples, arrays and vectors of trees; a struct implements `Tree` by \
            listing its parts; what is no float tensor can be captured by the body"
)]
pub trait Tree<B: Backend>: Sized {
    /// How it branches.
    fn structure(&self) -> Structure;
    /// Appends its tensors, in order.
    fn leaves(self, all: &mut Vec<FloatTensor<B>>);
    /// The tree of these tensors.
    ///
    /// # Errors
    /// [`ScanError::Structure`], [`ScanError::Rank`].
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self>;
}

/// A leaf: the float primitive of a backend.
pub type Leaf<B> = FloatTensor<B>;

/// The tensors of a tree.
pub(super) fn flatten<B: Backend, T: Tree<B>>(tree: T) -> Vec<FloatTensor<B>> {
    let mut all = Vec::new();
    tree.leaves(&mut all);
    all
}

fn mismatch<T>(required: String, given: &Structure) -> Result<T> {
    Err(ScanError::Structure { what: "a tree", given: given.to_string(), required })
}

impl<B: Backend, const D: usize> Tree<B> for Tensor<B, D> {
    fn structure(&self) -> Structure {
        Structure::Leaf
    }
    fn leaves(self, all: &mut Vec<FloatTensor<B>>) {
        all.push(self.into_primitive().tensor());
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        if *structure != Structure::Leaf {
            return mismatch("*".into(), structure);
        }
        let leaf = leaves.take();
        let shape = leaf.shape();
        if shape.num_dims() != D {
            return Err(ScanError::Rank { shape, rank: D });
        }
        Ok(Self::from_primitive(TensorPrimitive::Float(leaf)))
    }
}

impl<B: Backend, T: Tree<B>> Tree<B> for Vec<T> {
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<FloatTensor<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        match structure {
            Structure::Node(children) => {
                children.iter().map(|child| T::build(child, leaves)).collect()
            }
            Structure::Leaf => mismatch("(…)".into(), structure),
        }
    }
}

impl<B: Backend, T: Tree<B>, const N: usize> Tree<B> for [T; N] {
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<FloatTensor<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        let required = || format!("({N} of them)");
        match Vec::<T>::build(structure, leaves)?.try_into() {
            Ok(all) => Ok(all),
            Err(_) => mismatch(required(), structure),
        }
    }
}

impl<B: Backend> Tree<B> for () {
    fn structure(&self) -> Structure {
        Structure::Node(Vec::new())
    }
    fn leaves(self, _: &mut Vec<FloatTensor<B>>) {}
    fn build(structure: &Structure, _: &mut Leaves<B>) -> Result<Self> {
        match structure {
            Structure::Node(children) if children.is_empty() => Ok(()),
            _ => mismatch("()".into(), structure),
        }
    }
}

macro_rules! tuples {
    ($($count:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<Back: Backend, $($t: Tree<Back>),*> Tree<Back> for ($($t,)*) {
            fn structure(&self) -> Structure {
                Structure::Node(vec![$(self.$i.structure()),*])
            }
            fn leaves(self, all: &mut Vec<FloatTensor<Back>>) {
                $(self.$i.leaves(all);)*
            }
            fn build(structure: &Structure, leaves: &mut Leaves<Back>) -> Result<Self> {
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
