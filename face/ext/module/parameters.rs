//! Parameters of a module as a list and as a tree, for every version of Burn.

use std::fmt;
use std::vec::IntoIter;

use burn_backend::Backend;
use burn_core::module::ParamId;
use t4a_algebra::message::short;
use thiserror::Error;

use crate::ext::tree::{Leaf, Leaves, Structure, Tree, TreeError};

/// Error of a transfer of parameters between modules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The modules have different numbers of parameters.
    #[error("{required} parameters are required, given {given}")]
    Count {
        /// Number of parameters of the template, or of the first module.
        required: usize,
        /// Number of parameters of the other module.
        given: usize,
    },
    /// A parameter differs in kind or shape.
    #[error(
        "parameter {index}: required {required}, given {given}",
        required = short(.required), given = short(.given)
    )]
    Parameter {
        /// Index of the parameter in visiting order.
        index: usize,
        /// Kind and shape in the template.
        required: ParameterKind,
        /// Kind and shape of the given parameter.
        given: ParameterKind,
    },
}

/// Kind and shape of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterKind {
    /// `floats`, `integers` or `booleans`.
    pub name: &'static str,
    /// Size of each axis.
    pub shape: Vec<usize>,
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.shape)
    }
}

/// Parameters of a module in visiting order, with their ids: a tree.
///
/// A module itself is not a tree, because Burn 0.21 has no conversion of a module to another backend.
/// [`onto`](Self::onto) and [`load_into`](Self::load_into) write the parameters to a template: a module of the same
/// configuration, everything else of which is kept.
#[derive(Clone, Debug)]
pub struct Parameters<
    #[cfg(burn_line = "0.21")] B: Backend,
    #[cfg(burn_line = "0.22")] B: Backend = crate::ext::tree::Dispatch,
>(Vec<(ParamId, Leaf<B>)>);

impl<B: Backend> Parameters<B> {
    /// Checks that these parameters match the required ones in number, kind and shape.
    ///
    /// # Errors
    /// [`ModuleError`].
    pub fn check(&self, required: &Self) -> Result<(), ModuleError> {
        if required.0.len() != self.0.len() {
            return Err(ModuleError::Count { required: required.0.len(), given: self.0.len() });
        }
        let kind = |x: &Leaf<B>| ParameterKind { name: x.kind(), shape: x.shape().to_vec() };
        for (index, ((_, required), (_, given))) in required.0.iter().zip(&self.0).enumerate() {
            let (required, given) = (kind(required), kind(given));
            if required != given {
                return Err(ModuleError::Parameter { index, required, given });
            }
        }
        Ok(())
    }
}

impl<B: Backend> FromIterator<(ParamId, Leaf<B>)> for Parameters<B> {
    fn from_iter<I: IntoIterator<Item = (ParamId, Leaf<B>)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl<B: Backend> IntoIterator for Parameters<B> {
    type Item = (ParamId, Leaf<B>);
    type IntoIter = IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

const PARAMETERS: &str = "Parameters";

impl<B: Backend> Tree<B> for Parameters<B> {
    #[cfg(burn_line = "0.21")]
    type On<C: Backend> = Parameters<C>;

    fn structure(&self) -> Structure {
        let ids: Vec<ParamId> = self.0.iter().map(|(id, _)| *id).collect();
        let leaves = (0..ids.len()).map(|i| (i.to_string().into(), Structure::Leaf));
        let fields = [("ids".into(), Structure::fixed(ids))].into_iter().chain(leaves).collect();
        Structure::Struct { name: PARAMETERS.into(), fields }
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        all.extend(self.0.into_iter().map(|(_, x)| x));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
        let (ids, fields) = match structure {
            Structure::Struct { name, fields } if name == PARAMETERS && !fields.is_empty() => {
                (fields[0].1.value::<Vec<ParamId>>()?, &fields[1..])
            }
            _ => return structure.mismatch("Parameters { ids, … }"),
        };
        let parameter = |(id, (_, field)): (ParamId, &(_, Structure))| Ok((id, leaves.any(field)?));
        ids.into_iter().zip(fields).map(parameter).collect::<Result<_, _>>().map(Self)
    }
}
