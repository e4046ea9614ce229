//! The structure of trees of arrays, the arguments and results of functions.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use t4a_algebra::message::{differing, short};
use thiserror::Error;

/// The structure of a tree: everything except its arrays.
///
/// ```
/// use t4a_diff::tree::Structure;
///
/// let pair = Structure::Node(vec![Structure::Leaf, Structure::Leaf]);
/// let state = Structure::Struct {
///     name: "State".into(),
///     fields: vec![("carry".into(), pair), ("steps".into(), Structure::fixed(3))],
/// };
/// assert_eq!(state.to_string(), "State { carry: (*, *), steps: 3 }");
/// assert_eq!(state.paths(), [".carry.0", ".carry.1"]);
/// let of = |steps| Structure::Node(vec![Structure::Leaf, Structure::fixed(steps)]);
/// let (three, four) = (of(3), of(4));
/// let (path, a, b) = three.differences(&four).remove(0);
/// assert_eq!((path.as_str(), a.to_string(), b.to_string()), (".1", "3".into(), "4".into()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Structure {
    /// An array.
    Leaf,
    /// A tuple, an array, a vector or an option of subtrees; `()` and `None` have no subtree.
    Node(Vec<Structure>),
    /// A struct with named fields in the order of their declaration; a name may be a number.
    Struct {
        /// The name of the type.
        name: Cow<'static, str>,
        /// Names and subtrees.
        fields: Vec<(Cow<'static, str>, Structure)>,
    },
    /// A value that is not an array. Structures are equal only if their static values are.
    Static(StaticValue),
}

/// A shared value of any type that can be compared and printed.
#[derive(Clone)]
pub struct StaticValue(Arc<dyn Comparable>);

trait Comparable: Any + fmt::Debug + Send + Sync {
    fn equals(&self, other: &dyn Comparable) -> bool;
}

impl<T: PartialEq + fmt::Debug + Send + Sync + 'static> Comparable for T {
    fn equals(&self, other: &dyn Comparable) -> bool {
        (other as &dyn Any).downcast_ref::<T>() == Some(self)
    }
}

impl StaticValue {
    /// The value, if it has type `T`.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }
}

impl PartialEq for StaticValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl fmt::Debug for StaticValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Structure {
    /// Prints `*` for a leaf and parentheses for a node; static values are printed with `Debug`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf => f.write_str("*"),
            Self::Node(children) => {
                f.write_str("(")?;
                for (i, child) in children.iter().enumerate() {
                    let separator = if i > 0 { ", " } else { "" };
                    write!(f, "{separator}{child}")?;
                }
                f.write_str(")")
            }
            Self::Struct { name, fields } => {
                write!(f, "{name} {{")?;
                for (i, (name, field)) in fields.iter().enumerate() {
                    let separator = if i > 0 { "," } else { "" };
                    write!(f, "{separator} {name}: {field}")?;
                }
                f.write_str(" }")
            }
            Self::Static(value) => fmt::Debug::fmt(value, f),
        }
    }
}

impl Structure {
    /// A value that is not an array.
    pub fn fixed<T: PartialEq + fmt::Debug + Send + Sync + 'static>(value: T) -> Self {
        Self::Static(StaticValue(Arc::new(value)))
    }

    /// The subtrees of a node or a struct, in order; empty for a leaf and for a static value.
    pub fn children(&self) -> Vec<&Structure> {
        self.branches().into_iter().map(|(_, child)| child).collect()
    }

    /// The subtrees with their names: field names, or indices in a node.
    fn branches(&self) -> Vec<(Cow<'_, str>, &Structure)> {
        match self {
            Self::Leaf | Self::Static(_) => Vec::new(),
            Self::Node(children) => {
                let numbered = children.iter().enumerate();
                numbered.map(|(i, child)| (i.to_string().into(), child)).collect()
            }
            Self::Struct { fields, .. } => {
                fields.iter().map(|(name, field)| (name.as_ref().into(), field)).collect()
            }
        }
    }

    /// The path of every leaf, in order: `.carry.0`, or `.` where the tree is a leaf.
    pub fn paths(&self) -> Vec<String> {
        fn walk(structure: &Structure, at: &str, all: &mut Vec<String>) {
            if *structure == Structure::Leaf {
                all.push(path(at));
            }
            for (name, child) in structure.branches() {
                walk(child, &format!("{at}.{name}"), all);
            }
        }
        let mut all = Vec::new();
        walk(self, "", &mut all);
        all
    }

    /// The paths where two structures differ, with the subtrees there; static values have paths as leaves do.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Vec<(String, &'a Self, &'a Self)> {
        fn walk<'a>(
            a: &'a Structure,
            b: &'a Structure,
            at: &str,
            all: &mut Vec<(String, &'a Structure, &'a Structure)>,
        ) {
            let (of_a, of_b) = (a.branches(), b.branches());
            let branch_alike = match (a, b) {
                (Structure::Node(_), Structure::Node(_)) => true,
                (Structure::Struct { name: a, .. }, Structure::Struct { name: b, .. }) => a == b,
                _ => false,
            };
            if branch_alike && of_a.iter().map(|x| &x.0).eq(of_b.iter().map(|x| &x.0)) {
                for ((name, a), (_, b)) in of_a.into_iter().zip(of_b) {
                    walk(a, b, &format!("{at}.{name}"), all);
                }
            } else if a != b {
                all.push((path(at), a, b));
            }
        }
        let mut all = Vec::new();
        walk(self, other, "", &mut all);
        all
    }

    /// The subtrees of a node with `count` children.
    ///
    /// # Errors
    /// [`TreeError::Structure`].
    pub fn node(&self, count: usize) -> Result<&[Structure], TreeError> {
        match self {
            Self::Node(children) if children.len() == count => Ok(children),
            _ => self.mismatch(match count {
                0 => "()".into(),
                _ => format!("a node of {count}"),
            }),
        }
    }

    /// The subtrees of a struct with this name and these fields.
    ///
    /// # Errors
    /// [`TreeError::Structure`].
    pub fn fields<const N: usize>(
        &self,
        of: &str,
        names: [&str; N],
    ) -> Result<[&Structure; N], TreeError> {
        if let Self::Struct { name, fields } = self
            && name == of
            && fields.iter().map(|(name, _)| name.as_ref()).eq(names)
        {
            return Ok(std::array::from_fn(|i| &fields[i].1));
        }
        self.mismatch(format!("{of} {{ {} }}", names.join(", ")))
    }

    /// The static value.
    ///
    /// # Errors
    /// [`TreeError::Structure`] unless its type is `T`.
    pub fn value<T: Clone + 'static>(&self) -> Result<T, TreeError> {
        if let Self::Static(value) = self
            && let Some(value) = value.get::<T>()
        {
            return Ok(value.clone());
        }
        self.mismatch(format!("a static {}", std::any::type_name::<T>()))
    }

    /// The error of a structure that differs from the required one.
    ///
    /// # Errors
    /// [`TreeError::Structure`], always.
    pub fn mismatch<T>(&self, required: impl Into<String>) -> Result<T, TreeError> {
        Err(TreeError::Structure { required: required.into(), given: self.to_string() })
    }
}

/// The path of a subtree; that of the whole tree is `.`.
fn path(at: &str) -> String {
    if at.is_empty() { ".".into() } else { at.into() }
}

/// A tree does not have the structure that a type or a transformation requires.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The structure differs.
    #[error(
        "a tree of structure {required} is required, given {given}",
        required = differing(.required, .given), given = differing(.given, .required)
    )]
    Structure {
        /// The required structure.
        required: String,
        /// The structure of the tree.
        given: String,
    },
    /// A leaf has another kind or rank.
    #[error(
        "a tensor of {kind} and rank {rank} is required, given {given} of shape {shape:?}",
        shape = short(.shape)
    )]
    Leaf {
        /// Floats, integers or booleans, as the type requires.
        kind: &'static str,
        /// The rank of the type.
        rank: usize,
        /// The kind of the leaf.
        given: &'static str,
        /// The shape of the leaf.
        shape: Vec<usize>,
    },
    /// A leaf is not differentiable, but all leaves must be.
    #[error(
        "leaf {path} holds {kind}: only trees of floats and static values are accepted here",
        path = short(.path)
    )]
    NotFloats {
        /// The path of the leaf, such as `.0.1`.
        path: String,
        /// Integers or booleans.
        kind: &'static str,
    },
}
