//! Trees of tensors of any kind: what compiled functions take and give.

use burn_backend::{Backend, TensorMetadata};
use burn_t4a::ext::scan::Structure;
use burn_tensor::{Bool, Float, Int, Tensor, TensorPrimitive};

use crate::error::{CompileError, Result};
use crate::tensor::Any;

/// The tensors of a tree, in order.
pub struct Leaves<B: Backend>(std::vec::IntoIter<Any<B>>);

/// A tensor of any kind.
pub struct Leaf<B: Backend>(pub(crate) Any<B>);

impl<B: Backend> Leaves<B> {
    pub(crate) fn new(all: Vec<Any<B>>) -> Self {
        Self(all.into_iter())
    }

    fn take(&mut self) -> Any<B> {
        self.0.next().unwrap_or_else(|| unreachable!("as many leaves as the structure has"))
    }
}

/// A tree of tensors: float, integer and boolean ones, `()`, tuples, arrays and vectors of trees.
///
/// A struct of yours is one by listing its parts, as for `burn_t4a::ext::scan::Tree`; this trait differs
/// from that by leaves of all kinds and by [`Values::On`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tree of tensors of `{B}`",
    note = "trees are tensors, `()`, tuples, arrays and vectors of trees; a struct implements `Values`"
)]
pub trait Values<B: Backend>: Sized {
    /// The same tree on another backend.
    type On<C: Backend>: Values<C>;
    /// How it branches.
    fn structure(&self) -> Structure;
    /// Appends its tensors, in order.
    fn leaves(self, all: &mut Vec<Leaf<B>>);
    /// The tree of these tensors.
    ///
    /// # Errors
    /// [`CompileError::Structure`], [`CompileError::Leaf`].
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self>;
}

pub(crate) fn flatten<B: Backend, T: Values<B>>(tree: T) -> Vec<Any<B>> {
    let mut all = Vec::new();
    tree.leaves(&mut all);
    all.into_iter().map(|leaf| leaf.0).collect()
}

fn mismatch<T>(required: impl Into<String>, given: &Structure) -> Result<T> {
    Err(CompileError::Structure { required: required.into(), given: given.to_string() })
}

macro_rules! tensors {
    ($($kind:ident $any:ident $name:literal: |$x:ident| $into:expr, $from:expr;)*) => {$(
        impl<B: Backend, const D: usize> Values<B> for Tensor<B, D, $kind> {
            type On<C: Backend> = Tensor<C, D, $kind>;
            fn structure(&self) -> Structure {
                Structure::Leaf
            }
            fn leaves(self, all: &mut Vec<Leaf<B>>) {
                let $x = self.into_primitive();
                all.push(Leaf(Any::$any($into)));
            }
            fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
                if *structure != Structure::Leaf {
                    return mismatch("*", structure);
                }
                match leaves.take() {
                    Any::$any($x) if $x.rank() == D => Ok(Self::from_primitive($from)),
                    other => Err(CompileError::Leaf {
                        shape: other.meta().shape.into(),
                        required: format!(concat!($name, " of rank {}"), D),
                    }),
                }
            }
        }
    )*};
}

tensors! {
    Float Float "floats": |x| x.tensor(), TensorPrimitive::Float(x);
    Int Int "integers": |x| x, x;
    Bool Bool "truth values": |x| x, x;
}

impl<B: Backend, T: Values<B>> Values<B> for Vec<T> {
    type On<C: Backend> = Vec<T::On<C>>;
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        match structure {
            Structure::Node(children) => {
                children.iter().map(|child| T::build(child, leaves)).collect()
            }
            Structure::Leaf => mismatch("(…)", structure),
        }
    }
}

impl<B: Backend, T: Values<B>, const N: usize> Values<B> for [T; N] {
    type On<C: Backend> = [T::On<C>; N];
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        match Vec::<T>::build(structure, leaves)?.try_into() {
            Ok(all) => Ok(all),
            Err(_) => mismatch(format!("({N} of them)"), structure),
        }
    }
}

macro_rules! tuples {
    ($($count:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<Back: Backend, $($t: Values<Back>),*> Values<Back> for ($($t,)*) {
            type On<Other: Backend> = ($($t::On<Other>,)*);
            fn structure(&self) -> Structure {
                Structure::Node(vec![$(self.$i.structure()),*])
            }
            fn leaves(self, _all: &mut Vec<Leaf<Back>>) {
                $(self.$i.leaves(_all);)*
            }
            fn build(structure: &Structure, _leaves: &mut Leaves<Back>) -> Result<Self> {
                match structure {
                    Structure::Node(children) if children.len() == $count => {
                        Ok(($($t::build(&children[$i], _leaves)?,)*))
                    }
                    _ => mismatch(format!("({} of them)", $count), structure),
                }
            }
        }
    )*};
}

tuples! {
    0: ;
    1: A 0;
    2: A 0 C 1;
    3: A 0 C 1 D 2;
    4: A 0 C 1 D 2 E 3;
    5: A 0 C 1 D 2 E 3 F 4;
    6: A 0 C 1 D 2 E 3 F 4 G 5;
}
