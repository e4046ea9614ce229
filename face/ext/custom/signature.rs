//! Structure, shapes and dtypes of the trees of a rule.

use std::any::type_name;

use burn_backend::{DType, Shape};

use super::error::{CustomError, Result, TensorMismatch};
use crate::ext::operation::{Operand, Operations};
use crate::ext::tree::{self, Leaf, Structure, Tree};

/// Shape and dtype.
type ShapeAndDtype = (Shape, DType);

/// Structure of a tree with shapes and dtypes of its tensors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TreeSignature {
    pub(super) structure: Structure,
    tensors: Vec<ShapeAndDtype>,
}

impl TreeSignature {
    /// Splits a tree into its signature and its tensors.
    pub(super) fn of<B: Operations, T: Tree<B>>(tree: T) -> (Self, Vec<Operand<B>>) {
        let (structure, all) = tree::flatten(tree);
        let tensors = all.iter().map(|leaf| (leaf.shape(), leaf.dtype())).collect();
        let all = all.into_iter().map(Leaf::into_operand).collect();
        (Self { structure, tensors }, all)
    }

    /// Checks that this signature has the structure, shapes and dtypes of its counterpart, except those of integers and booleans.
    /// `R` is the rule, and `what` the role of the tree.
    ///
    /// # Errors
    /// `Structure`, `Tensors`.
    pub(super) fn check<R>(&self, what: &'static str, required: &Self) -> Result<()> {
        let rule = type_name::<R>();
        if self.structure != required.structure {
            let [given, required] = [self, required].map(|x| x.structure.to_string());
            return Err(CustomError::Structure { rule, what, given, required });
        }
        let both = self.tensors.iter().zip(&required.tensors).zip(required.structure.paths());
        let wrong =
            both.filter(|((given, required), _)| required.1.is_float() && given != required);
        let mismatch = |((given, required), path): ((&ShapeAndDtype, &ShapeAndDtype), String)| {
            TensorMismatch { path, given: given.clone(), required: required.clone() }
        };
        let tensors: Vec<TensorMismatch> = wrong.map(mismatch).collect();
        if tensors.is_empty() { Ok(()) } else { Err(CustomError::Tensors { rule, what, tensors }) }
    }
}

/// The tree of a list. `R` is the rule, and `what` the role of the tree.
///
/// # Errors
/// `Tree`.
pub(super) fn built<R, B: Operations, T: Tree<B>>(
    what: &'static str,
    structure: &Structure,
    all: Vec<Operand<B>>,
) -> Result<T> {
    tree::build(structure, all.into_iter().map(Leaf::of_operand).collect())
        .map_err(|error| CustomError::Tree { rule: type_name::<R>(), what, error })
}
