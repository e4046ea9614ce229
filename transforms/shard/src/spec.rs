//! Partition specs of tensors.

use std::fmt;

use burn_t4a_compile::graph::TensorType;

use crate::error::{Result, ShardError};
use crate::mesh::Mesh;

/// Partition of a tensor: for each tensor axis, the mesh axes that split it. Tensor axes without an entry are not
/// split; the tensor is replicated along mesh axes that are not named.
///
/// ```
/// use burn_t4a_transforms::shard::PartitionSpec;
///
/// // [batch, features]: every device along `data` has a part of the batch.
/// let x = PartitionSpec::split(["data", ""]);
/// assert_eq!(x.to_string(), "(data, ·)");
/// assert_eq!(PartitionSpec::replicated().to_string(), "()");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionSpec {
    axes: Vec<Vec<String>>,
}

impl PartitionSpec {
    /// The full tensor on every device.
    pub fn replicated() -> Self {
        Self::default()
    }

    /// Mesh axes per tensor axis, as names separated by spaces: `""` for none, `"data model"` for two. The first name
    /// is the outermost (major) split.
    pub fn split<'a>(axes: impl IntoIterator<Item = &'a str>) -> Self {
        let names = |names: &str| names.split_whitespace().map(str::to_owned).collect();
        Self { axes: axes.into_iter().map(names).collect() }
    }

    /// Mesh axis names per tensor axis, separated by spaces.
    pub(crate) fn names(&self) -> Vec<String> {
        self.axes.iter().map(|names| names.join(" ")).collect()
    }

    /// Resolves the spec for a mesh and a tensor.
    pub(crate) fn on(&self, mesh: &Mesh, leaf: &str, meta: &TensorType) -> Result<Split> {
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

impl fmt::Display for PartitionSpec {
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

/// Indices of the mesh axes that split each tensor axis, major to minor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split(pub(crate) Vec<Vec<usize>>);

impl Split {
    pub(crate) fn whole(rank: usize) -> Self {
        Self(vec![Vec::new(); rank])
    }

    pub(crate) fn uses(&self, axis: usize) -> bool {
        self.0.iter().any(|axes| axes.contains(&axis))
    }

    /// All mesh axes that split the tensor.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.0.concat()
    }

    /// Shape of the local shard.
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

/// One step of a change of partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// All-gather over mesh axis `over`, concatenated along tensor axis `axis`.
    Gather { axis: usize, over: usize },
    /// Local slice of tensor axis `axis` by the coordinate along mesh axis `over`: no communication.
    Slice { axis: usize, over: usize },
    /// Replaces the operand by zeros except on the first device along `over`, so that a sum over devices counts it
    /// once.
    First { over: usize },
}

/// Moves from one split to another: all gathers precede all slices, and minor splits are gathered first.
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
