//! `#[derive(Tree)]` for Burn 0.21 and 0.22: implements the trait `Tree` for structs whose fields are trees of
//! tensors.
//!
//! Re-exported beside the trait, as `burn_t4a::ext::tree::Tree` and `burn_t4a_022_ext::tree::Tree`.

#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;

use expand::{BurnVersion, expand};

/// Implements `burn_t4a::ext::tree::Tree` for a struct, field by field.
///
/// The struct has one type parameter with the bound `Backend`, or names its only backend by
/// `#[tree(backend = Type)]`. A field with `#[tree(fixed)]` holds a value that is not a tree. It becomes a part of
/// the structure, as in `Static`; its type implements `Clone`, `PartialEq`, `Debug`, `Send` and `Sync`. Other type
/// parameters that occur in the type of a field must be trees.
///
/// Enums, unions and structs with lifetime parameters are rejected at compile time.
#[proc_macro_derive(Tree, attributes(tree))]
pub fn tree(input: TokenStream) -> TokenStream {
    expand(input.into(), BurnVersion::Backends).into()
}

/// Implements `burn_t4a_022_ext::tree::Tree` for a struct, field by field.
///
/// A field with `#[tree(fixed)]` holds a value that is not a tree. It becomes a part of the structure, as in
/// `Static`; its type implements `Clone`, `PartialEq`, `Debug`, `Send` and `Sync`. Type parameters that occur in
/// the type of another field must be trees.
#[proc_macro_derive(DispatchTree, attributes(tree))]
pub fn dispatch_tree(input: TokenStream) -> TokenStream {
    expand(input.into(), BurnVersion::Dispatch).into()
}
