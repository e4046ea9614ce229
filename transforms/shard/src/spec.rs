//! How tensors are split.

use std::fmt;

use burn_t4a_compile::graph::Meta;

use crate::error::{Result, ShardError};
use crate::mesh::Mesh;

/// Which axes of a mesh each axis of a tensor is split over. Axes that are left out are not split, and over
/// axes of the mesh that are not named, the tensor is replicated.
///
/// ```
/// use burn_t4a_shard::Spec;
///
/// // [batch, features]: every device along `data` has a part of the batch.
/// let x = Spec::split(["data", ""]);
/// assert_eq!(x.to_string(), "(data, ·)");
/// assert_eq!(Spec::replicated().to_string(), "()");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    axes: Vec<Vec<String>>,
}

impl Spec {
    /// The whole tensor everywhere.
    pub fn replicated() -> Self {
        Self::default()
    }

    /// For each axis the axes of the mesh that split it: none for `""`, several as `"data model"`, the first
    /// of which makes the largest parts.
    pub fn split<'a>(axes: impl IntoIterator<Item = &'a str>) -> Self {
        let names = |names: &str| names.split_whitespace().map(str::to_owned).collect();
        Self { axes: axes.into_iter().map(names).collect() }
    }

    /// The names of each axis.
    pub(crate) fn names(&self) -> Vec<String> {
        self.axes.iter().map(|names| names.join(" ")).collect()
    }

    /// Checked for a tensor.
    pub(crate) fn on(&self, mesh: &Mesh, leaf: &str, meta: &Meta) -> Result<Split> {
        let (leaf, rank) = (leaf.to_owned(), meta.shape.len());
        if self.axes.len() > rank {
            return Err(ShardError::Rank { leaf, rank, axes: self.axes.len() });
        }
        let mut split = Split::whole(rank);
        for (axis, names) in self.axes.iter().enumerate() {
            for name in names {
                let Some(at) = mesh.axes().iter().position(|(other, _)| other == name) else {
                    let axes = mesh.axes().iter().map(|axis| axis.0.clone()).collect();
                    return Err(ShardError::UnknownAxis { leaf, name: name.clone(), axes });
                };
                if split.uses(at) {
                    return Err(ShardError::Twice { leaf, name: name.clone() });
                }
                split.0[axis].push(at);
            }
            let (size, parts) = (meta.shape[axis], mesh.parts(&split.0[axis]));
            if !size.is_multiple_of(parts) {
                return Err(ShardError::Divide { leaf, axis, size, parts, names: names.clone() });
            }
        }
        Ok(split)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.axes.iter().map(|names| names.join(" ")))
    }
}

fn show(f: &mut impl fmt::Write, axes: impl Iterator<Item = String>) -> fmt::Result {
    f.write_char('(')?;
    for (i, names) in axes.enumerate() {
        let names = if names.is_empty() { "·" } else { &names };
        write!(f, "{}{names}", if i > 0 { ", " } else { "" })?;
    }
    f.write_char(')')
}

/// The axes of the mesh, by number, that split each axis of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split(pub(crate) Vec<Vec<usize>>);

impl Split {
    pub(crate) fn whole(rank: usize) -> Self {
        Self(vec![Vec::new(); rank])
    }

    pub(crate) fn uses(&self, axis: usize) -> bool {
        self.0.iter().any(|axes| axes.contains(&axis))
    }

    /// All axes of the mesh that split it.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.0.concat()
    }

    /// The shape of a part.
    pub(crate) fn local(&self, mesh: &Mesh, shape: &[usize]) -> Vec<usize> {
        shape.iter().zip(&self.0).map(|(n, axes)| n / mesh.parts(axes)).collect()
    }

    pub(crate) fn show(&self, mesh: &Mesh) -> String {
        let names = |axes: &Vec<usize>| {
            axes.iter().map(|&axis| mesh.name(axis)).collect::<Vec<_>>().join(" ")
        };
        let mut text = String::new();
        let _ = show(&mut text, self.0.iter().map(names));
        text
    }
}

/// What makes a part of a tensor another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// The parts along an axis of the mesh become one, along an axis of the tensor.
    Gather { axis: usize, over: usize },
    /// Of each part as many as there are devices along an axis of the mesh: no communication.
    Slice { axis: usize, over: usize },
    /// Zeros but on the first device along an axis of the mesh: what is added by all, once.
    First { over: usize },
}

/// From one split to another: gathered before anything is sliced, the smallest parts first.
pub(crate) fn moves(from: &Split, to: &Split) -> Vec<Move> {
    let common = |axis: usize| {
        let pairs = from.0[axis].iter().zip(&to.0[axis]);
        pairs.take_while(|(a, b)| a == b).count()
    };
    let mut all = Vec::new();
    for (axis, over) in from.0.iter().enumerate() {
        let rest = over[common(axis)..].iter().rev();
        all.extend(rest.map(|&over| Move::Gather { axis, over }));
    }
    for (axis, over) in to.0.iter().enumerate() {
        let rest = over[common(axis)..].iter();
        all.extend(rest.map(|&over| Move::Slice { axis, over }));
    }
    all
}
