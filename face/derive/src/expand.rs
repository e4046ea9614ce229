//! Code generation for `#[derive(Tree)]`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, Index, Member, Result, Type,
    TypeParamBound, parse2,
};

/// Version of Burn whose trait is implemented.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BurnVersion {
    /// Burn 0.21: backends are type parameters.
    Backends,
    /// Burn 0.22: one type dispatches to all backends.
    Dispatch,
}

impl BurnVersion {
    /// Path of the module that defines the trait.
    fn module(self) -> TokenStream {
        match self {
            Self::Backends => quote!(::burn_t4a::ext::tree),
            Self::Dispatch => quote!(::burn_t4a_022_ext::tree),
        }
    }
}

pub(crate) fn expand(input: TokenStream, line: BurnVersion) -> TokenStream {
    let item = parse2::<DeriveInput>(input).and_then(|input| implementation(&input, line));
    item.unwrap_or_else(|error| error.to_compile_error())
}

/// A field: its accessor, its name in the structure, and whether it is a static value.
struct DerivedField {
    member: Member,
    name: String,
    local: Ident,
    fixed: bool,
    ty: Type,
}

impl DerivedField {
    fn new((i, field): (usize, &Field)) -> Result<Self> {
        let mut fixed = false;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("tree")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("fixed") {
                    return Err(meta.error("fields know `#[tree(fixed)]`"));
                }
                fixed = true;
                Ok(())
            })?;
        }
        let member = match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index::from(i)),
        };
        let name = match &member {
            Member::Named(name) => name.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(_) => i.to_string(),
        };
        Ok(Self { member, name, local: format_ident!("field_{i}"), fixed, ty: field.ty.clone() })
    }
}

/// Type given by `#[tree(backend = Type)]` on the struct.
fn named_backend(input: &DeriveInput) -> Result<Option<Type>> {
    let mut backend = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("tree")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("backend") {
                return Err(meta.error("structs know `#[tree(backend = Type)]`"));
            }
            backend = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(backend)
}

fn is_backend(bound: &TypeParamBound) -> bool {
    match bound {
        TypeParamBound::Trait(bound) => {
            let last = bound.path.segments.last();
            last.is_some_and(|last| last.ident.to_string().ends_with("Backend"))
        }
        _ => false,
    }
}

/// Returns true if an identifier occurs in the tokens, including nested groups.
fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(other) => other == *name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        _ => false,
    })
}

fn implementation(input: &DeriveInput, line: BurnVersion) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.span(), "`Tree` can be derived for structs only"));
    };
    let parts =
        data.fields.iter().enumerate().map(DerivedField::new).collect::<Result<Vec<_>>>()?;
    let module = line.module();
    let name = &input.ident;

    if let Some(lifetime) = input.generics.lifetimes().next() {
        let message = "a tree owns its tensors: `Tree` cannot be derived for references";
        return Err(Error::new(lifetime.span(), message));
    }
    let backends = input.generics.type_params().filter(|ty| ty.bounds.iter().any(is_backend));
    let backends: Vec<&Ident> = backends.map(|ty| &ty.ident).collect();
    if let Some(second) = backends.get(1) {
        return Err(Error::new(second.span(), "a tree has one backend"));
    }
    let backend = backends.first().copied();
    let fixed = named_backend(input)?;
    let on: TokenStream = match (line, backend, &fixed) {
        (BurnVersion::Dispatch, None, None) => quote!(::burn_t4a_022_ext::tree::Dispatch),
        (BurnVersion::Dispatch, ..) => {
            return Err(Error::new(name.span(), "trees of Burn 0.22 have no backend to name"));
        }
        (BurnVersion::Backends, Some(backend), None) => quote!(#backend),
        (BurnVersion::Backends, None, Some(ty)) => quote!(#ty),
        (BurnVersion::Backends, None, None) => {
            let message = "the backend is missing: a type parameter `B: Backend`, or `#[tree(backend = Type)]`";
            return Err(Error::new(name.span(), message));
        }
        (BurnVersion::Backends, Some(_), Some(ty)) => {
            return Err(Error::new(ty.span(), "the backend is a type parameter already"));
        }
    };

    // A type parameter is a tree if a field that is not fixed mentions it.
    let is_tree = |parameter: &Ident| {
        let trees = parts.iter().filter(|part| !part.fixed);
        let types = trees.map(|DerivedField { ty, .. }| quote!(#ty));
        Some(parameter) != backend && types.into_iter().any(|ty| mentions(ty, parameter))
    };
    let mut generics = input.generics.clone();
    let mut elsewhere = Vec::new();
    for parameter in &mut generics.params {
        match parameter {
            GenericParam::Type(ty) if is_tree(&ty.ident) => {
                ty.bounds.push(syn::parse_quote!(#module::Tree<#on>));
                let ty = &ty.ident;
                elsewhere.push(quote!(<#ty as #module::Tree<#on>>::On<OtherBackend>));
            }
            GenericParam::Type(ty) if Some(&ty.ident) == backend => {
                elsewhere.push(quote!(OtherBackend));
            }
            GenericParam::Type(ty) => {
                let ty = &ty.ident;
                elsewhere.push(quote!(#ty));
            }
            GenericParam::Const(size) => {
                let size = &size.ident;
                elsewhere.push(quote!(#size));
            }
            GenericParam::Lifetime(_) => {}
        }
    }
    let counterpart = match (line, backend) {
        (BurnVersion::Dispatch, _) => TokenStream::new(),
        (_, None) => quote! {
            type On<OtherBackend: ::burn_t4a::ext::tree::Backend> = #module::OneBackend<OtherBackend>;
        },
        (_, Some(_)) => quote! {
            type On<OtherBackend: ::burn_t4a::ext::tree::Backend> = #name<#(#elsewhere),*>;
        },
    };

    let text = name.to_string();
    let names: Vec<_> = parts.iter().map(|part| &part.name).collect();
    let locals: Vec<_> = parts.iter().map(|part| &part.local).collect();
    let structures = parts.iter().map(|DerivedField { member, name, fixed, .. }| match fixed {
        true => quote!((#name.into(), #module::Structure::fixed(self.#member.clone()))),
        false => quote!((#name.into(), #module::Tree::<#on>::structure(&self.#member))),
    });
    let leaves = parts.iter().filter(|part| !part.fixed).map(
        |DerivedField { member, .. }| quote!(#module::Tree::<#on>::leaves(self.#member, all);),
    );
    let builds = parts.iter().map(|DerivedField { member, local, fixed, .. }| match fixed {
        true => quote!(#member: #local.value()?),
        false => quote!(#member: #module::Tree::<#on>::build(#local, leaves)?),
    });
    let built = match data.fields {
        Fields::Unit => quote!(Self {}),
        _ => quote!(Self { #(#builds),* }),
    };
    let (parameters, arguments, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_variables)]
        impl #parameters #module::Tree<#on> for #name #arguments #clause {
            #counterpart

            fn structure(&self) -> #module::Structure {
                #module::Structure::Struct {
                    name: #text.into(),
                    fields: ::std::vec![#(#structures),*],
                }
            }
            fn leaves(self, all: &mut ::std::vec::Vec<#module::Leaf<#on>>) {
                #(#leaves)*
            }
            fn build(
                structure: &#module::Structure,
                leaves: &mut #module::Leaves<#on>,
            ) -> ::std::result::Result<Self, #module::TreeError> {
                let [#(#locals),*] = structure.fields(#text, [#(#names),*])?;
                ::std::result::Result::Ok(#built)
            }
        }
    })
}
