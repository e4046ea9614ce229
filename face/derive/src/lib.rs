//! `#[derive(Tree)]` for both lines of Burn: a struct whose fields are trees of tensors is one itself.
//!
//! The crates of the backends re-export it as `ext::tree::Tree` and `tree::Tree`, beside the trait.

#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;

use expand::{Line, expand};

/// Implements `burn_t4a::ext::tree::Tree` for a struct, field by field.
///
/// The struct has one type parameter with the bound `Backend`, or names its only backend by
/// `#[tree(backend = Type)]`. A field with `#[tree(fixed)]` holds a value that is not a tree: it becomes a part of the
/// structure, as in `Static`, and its type implements `Clone`, `PartialEq`, `Debug`, `Send` and `Sync`. Other type
/// parameters that occur in the type of a field are trees.
///
/// Errors: enums, unions and references in the struct's parameters are rejected at compile time.
#[proc_macro_derive(Tree, attributes(tree))]
pub fn tree(input: TokenStream) -> TokenStream {
    expand(input.into(), Line::Backends).into()
}

/// Implements `burn_t4a_022_ext::tree::Tree` for a struct, field by field.
///
/// A field with `#[tree(fixed)]` holds a value that is not a tree: it becomes a part of the structure, as in `Static`,
/// and its type implements `Clone`, `PartialEq`, `Debug`, `Send` and `Sync`. Type parameters that occur in the type of
/// another field are trees.
#[proc_macro_derive(DispatchTree, attributes(tree))]
pub fn dispatch_tree(input: TokenStream) -> TokenStream {
    expand(input.into(), Line::Dispatch).into()
}
