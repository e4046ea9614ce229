//! Specification of the mapped axes.

use std::fmt;

use burn_t4a::ext::tree::Structure;

use crate::error::VmapError;

/// Mapped axes of the leaves of a tree: one for all leaves, or one per subtree.
///
/// ```
/// use burn_t4a_transforms::vmap::Axes;
/// let axes = Axes::from((0, None, [1, -1]));
/// assert_eq!(axes.to_string(), "(0, none, (1, -1))");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Axes {
    /// This axis of every leaf; negative values count from the end.
    At(isize),
    /// No axis: inputs shared by all examples, outputs that do not depend on the example.
    None,
    /// One entry per subtree.
    Each(Vec<Axes>),
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(axis) => axis.fmt(f),
            Self::None => f.write_str("none"),
            Self::Each(all) => {
                f.write_str("(")?;
                for (i, axes) in all.iter().enumerate() {
                    write!(f, "{}{axes}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl From<i32> for Axes {
    fn from(axis: i32) -> Self {
        Self::At(axis as isize)
    }
}

impl From<Option<i32>> for Axes {
    fn from(axis: Option<i32>) -> Self {
        axis.map_or(Self::None, Self::from)
    }
}

impl<A: Into<Axes>> From<Vec<A>> for Axes {
    fn from(all: Vec<A>) -> Self {
        Self::Each(all.into_iter().map(Into::into).collect())
    }
}

impl<A: Into<Axes>, const N: usize> From<[A; N]> for Axes {
    fn from(all: [A; N]) -> Self {
        Self::Each(all.into_iter().map(Into::into).collect())
    }
}

macro_rules! tuples {
    ($($($t:ident $i:tt)*;)*) => {$(
        impl<$($t: Into<Axes>),*> From<($($t,)*)> for Axes {
            fn from(all: ($($t,)*)) -> Self {
                Self::Each(vec![$(all.$i.into()),*])
            }
        }
    )*};
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
}

impl Axes {
    /// The mapped axis of every leaf; an error if the specification is not a prefix of the tree.
    pub(crate) fn of_leaves(
        &self,
        what: &'static str,
        structure: &Structure,
    ) -> Result<Vec<Option<isize>>, VmapError> {
        let mut all = Vec::new();
        if self.walk(structure, &mut all) {
            return Ok(all);
        }
        let (axes, structure) = (self.to_string(), structure.to_string());
        Err(VmapError::Axes { what, axes, structure })
    }

    fn walk(&self, structure: &Structure, all: &mut Vec<Option<isize>>) -> bool {
        let children = structure.children();
        match (self, structure) {
            (Self::Each(_), Structure::Leaf | Structure::Static(_)) => false,
            (Self::Each(axes), _) if axes.len() == children.len() => {
                axes.iter().zip(children).all(|(axes, child)| axes.walk(child, all))
            }
            (Self::Each(_), _) => false,
            (Self::At(axis), Structure::Leaf) => {
                all.push(Some(*axis));
                true
            }
            (Self::None, Structure::Leaf) => {
                all.push(None);
                true
            }
            _ => children.iter().all(|child| self.walk(child, all)),
        }
    }
}

/// Index of a possibly negative axis; `None` if it is out of range.
pub(crate) fn resolve(axis: isize, rank: usize) -> Option<usize> {
    let from_start = if axis < 0 { axis + rank as isize } else { axis };
    usize::try_from(from_start).ok().filter(|&axis| axis < rank)
}
