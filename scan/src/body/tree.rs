//! Trees of tensors: what a step takes and gives.

use std::fmt;
use std::vec::IntoIter;

use crate::error::{Result, ScanError};

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

/// The leaves of a tree, in order.
#[derive(Debug)]
pub struct Leaves<A>(IntoIter<A>);

impl<A> Leaves<A> {
    pub(super) fn new(all: Vec<A>) -> Self {
        Self(all.into_iter())
    }

    /// The next one.
    ///
    /// # Panics
    /// If there is none: structures have been compared before.
    pub fn take(&mut self) -> A {
        self.0.next().unwrap_or_else(|| unreachable!("as many leaves as the structure has"))
    }
}

/// A tree whose leaves are arrays `A`: `()`, a tensor of a face, tuples, arrays and vectors of trees.
///
/// A struct of yours is one by writing it as the tuple of its fields:
///
/// ```
/// use t4a_scan::Result;
/// use t4a_scan::body::{Leaves, Structure, Tree};
///
/// struct Cell<T> {
///     hidden: T,
///     memory: T,
/// }
///
/// impl<A, T: Tree<A>> Tree<A> for Cell<T> {
///     fn structure(&self) -> Structure {
///         Structure::Node(vec![self.hidden.structure(), self.memory.structure()])
///     }
///     fn leaves(self, all: &mut Vec<A>) {
///         (self.hidden, self.memory).leaves(all);
///     }
///     fn build(structure: &Structure, leaves: &mut Leaves<A>) -> Result<Self> {
///         let (hidden, memory) = Tree::build(structure, leaves)?;
///         Ok(Self { hidden, memory })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tree of float tensors, whose leaves are `{A}`",
    label = "not a `Tree`",
    note = "trees are float tensors, `()`, tuples, arrays and vectors of trees; a struct implements `Tree` by \
            listing its parts; what is no float tensor can be captured by the body"
)]
pub trait Tree<A>: Sized {
    /// How it branches.
    fn structure(&self) -> Structure;
    /// Appends its leaves, in order.
    fn leaves(self, all: &mut Vec<A>);
    /// The tree of these leaves.
    ///
    /// # Errors
    /// [`ScanError::Structure`], [`ScanError::Rank`].
    fn build(structure: &Structure, leaves: &mut Leaves<A>) -> Result<Self>;
}

/// The leaves of a tree.
pub fn flatten<A, T: Tree<A>>(tree: T) -> Vec<A> {
    let mut all = Vec::new();
    tree.leaves(&mut all);
    all
}

/// The next leaf, for a tensor of a face that has this rank.
///
/// # Errors
/// [`ScanError::Structure`] if a leaf is not what is due, [`ScanError::Rank`].
pub fn leaf<A>(
    structure: &Structure,
    leaves: &mut Leaves<A>,
    rank: usize,
    shape: impl FnOnce(&A) -> Vec<usize>,
) -> Result<A> {
    if *structure != Structure::Leaf {
        return mismatch("*".into(), structure);
    }
    let leaf = leaves.take();
    let shape = shape(&leaf);
    if shape.len() == rank { Ok(leaf) } else { Err(ScanError::Rank { shape, rank }) }
}

fn mismatch<T>(required: String, given: &Structure) -> Result<T> {
    Err(ScanError::Structure { what: "a tree", given: given.to_string(), required })
}

impl<A, T: Tree<A>> Tree<A> for Vec<T> {
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<A>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<A>) -> Result<Self> {
        match structure {
            Structure::Node(children) => {
                children.iter().map(|child| T::build(child, leaves)).collect()
            }
            Structure::Leaf => mismatch("(…)".into(), structure),
        }
    }
}

impl<A, T: Tree<A>, const N: usize> Tree<A> for [T; N] {
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<A>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<A>) -> Result<Self> {
        let required = || format!("({N} of them)");
        match Vec::<T>::build(structure, leaves)?.try_into() {
            Ok(all) => Ok(all),
            Err(_) => mismatch(required(), structure),
        }
    }
}

impl<A> Tree<A> for () {
    fn structure(&self) -> Structure {
        Structure::Node(Vec::new())
    }
    fn leaves(self, _: &mut Vec<A>) {}
    fn build(structure: &Structure, _: &mut Leaves<A>) -> Result<Self> {
        match structure {
            Structure::Node(children) if children.is_empty() => Ok(()),
            _ => mismatch("()".into(), structure),
        }
    }
}

macro_rules! tuples {
    ($($count:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<Any, $($t: Tree<Any>),*> Tree<Any> for ($($t,)*) {
            fn structure(&self) -> Structure {
                Structure::Node(vec![$(self.$i.structure()),*])
            }
            fn leaves(self, all: &mut Vec<Any>) {
                $(self.$i.leaves(all);)*
            }
            fn build(structure: &Structure, leaves: &mut Leaves<Any>) -> Result<Self> {
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
