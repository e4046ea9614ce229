//! Trees that exist on every backend, and how they enter and leave a transformation.

use std::vec::IntoIter;

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, TensorMetadata};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::{Structure, Tree};
use burn_tensor::{Tensor, TensorPrimitive};

use crate::backend::Jvp;
use crate::error::{JvpError, Result};
use crate::primitive::JvpTensor;

/// A tensor of a tree: the float primitive of a backend.
pub type Leaf<B> = FloatTensor<B>;

/// The tensors of which a tree is made, in order.
pub struct Parts<B: Backend>(IntoIter<Leaf<B>>);

/// A tree with a counterpart on every other backend: what a transformation hands to its function.
///
/// A struct of yours says what it is there, and is made as the tuple of its fields:
///
/// ```
/// use burn_backend::Backend;
/// use burn_t4a::ext::scan::{self, Leaf, Leaves, Structure, Tree};
/// use burn_t4a_jvp::{Lift, Parts, Result};
/// use burn_tensor::Tensor;
///
/// struct Cell<B: Backend> {
///     hidden: Tensor<B, 2>,
///     memory: Tensor<B, 2>,
/// }
///
/// impl<B: Backend> Tree<Leaf<B>> for Cell<B> {
///     fn structure(&self) -> Structure {
///         Structure::Node(vec![self.hidden.structure(), self.memory.structure()])
///     }
///     fn leaves(self, all: &mut Vec<Leaf<B>>) {
///         (self.hidden, self.memory).leaves(all);
///     }
///     fn build(structure: &Structure, leaves: &mut Leaves<B>) -> scan::Result<Self> {
///         let (hidden, memory) = Tree::build(structure, leaves)?;
///         Ok(Self { hidden, memory })
///     }
/// }
///
/// impl<B: Backend> Lift<B> for Cell<B> {
///     type On<C: Backend> = Cell<C>;
///
///     fn made(structure: &Structure, parts: &mut Parts<B>) -> Result<Self> {
///         let (hidden, memory) = Lift::made(structure, parts)?;
///         Ok(Self { hidden, memory })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tree with a counterpart on other backends than `{B}`",
    label = "not a `Lift`",
    note = "float tensors, tuples, arrays and vectors of trees are; a struct implements `Tree`, and `Lift` \
            by naming itself on another backend"
)]
pub trait Lift<B: Backend>: Tree<Floats<B>> {
    /// The same tree on another backend.
    type On<C: Backend>: Lift<C>;

    /// The tree of these tensors.
    ///
    /// # Errors
    /// [`JvpError::Tree`], [`JvpError::Rank`].
    fn made(structure: &Structure, parts: &mut Parts<B>) -> Result<Self>;
}

fn mismatch<T>(required: String, given: &Structure) -> Result<T> {
    Err(JvpError::Tree { required, given: given.to_string() })
}

impl<B: Backend, const D: usize> Lift<B> for Tensor<B, D> {
    type On<C: Backend> = Tensor<C, D>;

    fn made(structure: &Structure, parts: &mut Parts<B>) -> Result<Self> {
        let Some(leaf) = parts.0.next().filter(|_| *structure == Structure::Leaf) else {
            return mismatch("*".into(), structure);
        };
        let shape = leaf.shape();
        match shape.num_dims() == D {
            true => Ok(Self::from_primitive(TensorPrimitive::Float(leaf))),
            false => Err(JvpError::Rank { shape, rank: D }),
        }
    }
}

impl<B: Backend, T: Lift<B>> Lift<B> for Vec<T> {
    type On<C: Backend> = Vec<T::On<C>>;

    fn made(structure: &Structure, parts: &mut Parts<B>) -> Result<Self> {
        match structure {
            Structure::Node(children) => children.iter().map(|x| T::made(x, parts)).collect(),
            Structure::Leaf => mismatch("(…)".into(), structure),
        }
    }
}

impl<B: Backend, T: Lift<B>, const N: usize> Lift<B> for [T; N] {
    type On<C: Backend> = [T::On<C>; N];

    fn made(structure: &Structure, parts: &mut Parts<B>) -> Result<Self> {
        match Vec::<T>::made(structure, parts)?.try_into() {
            Ok(all) => Ok(all),
            Err(_) => mismatch(format!("({N} of them)"), structure),
        }
    }
}

impl<B: Backend> Lift<B> for () {
    type On<C: Backend> = ();

    fn made(structure: &Structure, _: &mut Parts<B>) -> Result<Self> {
        match structure {
            Structure::Node(children) if children.is_empty() => Ok(()),
            _ => mismatch("()".into(), structure),
        }
    }
}

macro_rules! tuples {
    ($($count:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<Back: Backend, $($t: Lift<Back>),*> Lift<Back> for ($($t,)*) {
            type On<Other: Backend> = ($($t::On<Other>,)*);

            fn made(structure: &Structure, parts: &mut Parts<Back>) -> Result<Self> {
                match structure {
                    Structure::Node(children) if children.len() == $count => {
                        Ok(($($t::made(&children[$i], parts)?,)*))
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

/// The tensors of a tree, in order.
pub fn leaves<B: Backend, T: Tree<Floats<B>>>(tree: T) -> Vec<Leaf<B>> {
    let mut all: Vec<Floats<B>> = Vec::new();
    tree.leaves(&mut all);
    all.into_iter().map(|leaf| leaf.0).collect()
}

/// The tree of these tensors.
///
/// # Errors
/// [`JvpError::Tree`], [`JvpError::Rank`].
pub fn build<B: Backend, T: Lift<B>>(structure: &Structure, leaves: Vec<Leaf<B>>) -> Result<T> {
    T::made(structure, &mut Parts(leaves.into_iter()))
}

/// A tree under `Jvp` that does not move: how a function gets at tensors of the level below it.
///
/// # Errors
/// As [`build`], for trees that contradict themselves.
pub fn constant<B: Backend, T: Lift<B>>(tree: T) -> Result<T::On<Jvp<B>>> {
    let structure = tree.structure();
    build(&structure, leaves(tree).into_iter().map(JvpTensor::constant).collect())
}
