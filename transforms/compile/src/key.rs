//! Cache key of a program: tree structure with static values, shapes, dtypes and default dtypes. Sizes of named axes
//! are excluded.

use std::fmt;

use burn_backend::{Backend, BoolDType, FloatDType, IntDType, get_device_settings};
use burn_t4a::ext::tree::Structure;

use crate::error::{CompileError, Result};
use crate::tensor::{AnyPrimitive, TensorType};

/// Cache key of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub(crate) structure: Structure,
    /// Kind, shape and dtype of every tensor.
    pub(crate) leaves: Vec<(&'static str, TensorType)>,
    pub(crate) settings: (FloatDType, IntDType, BoolDType),
    /// True if sizes of named axes are excluded; they are stored as 0.
    pub(crate) named: bool,
}

impl Key {
    pub(crate) fn of<B: Backend>(structure: Structure, leaves: &[AnyPrimitive<B>]) -> Self {
        let device = leaves.first().map(AnyPrimitive::device).unwrap_or_default();
        let settings = get_device_settings::<B>(&device);
        let settings = (settings.float_dtype, settings.int_dtype, settings.bool_dtype);
        let leaves = leaves.iter().map(|x| (x.kind(), x.meta())).collect();
        Self { structure, leaves, settings, named: false }
    }

    /// Descriptions of the differences to another key.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        if self.structure != other.structure {
            let one = |(path, now, was): (String, &Structure, &Structure)| match path.as_str() {
                "." => format!("the tree is {now}, was {was}"),
                path => format!("{path} of the tree is {now}, was {was}"),
            };
            return self.structure.differences(&other.structure).into_iter().map(one).collect();
        }
        for ((path, now), was) in self.structure.paths().iter().zip(&self.leaves).zip(&other.leaves)
        {
            if now != was {
                all.push(format!("leaf {path} is {} {}, was {} {}", now.0, now.1, was.0, was.1));
            }
        }
        if self.settings != other.settings {
            let (now, was) = (self.settings, other.settings);
            all.push(format!("default dtypes are {now:?}, were {was:?}"));
        }
        all
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of ", self.structure)?;
        for (i, (kind, meta)) in self.leaves.iter().enumerate() {
            write!(f, "{}{kind} {meta}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// An input axis with a name.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) leaf: usize,
    pub(crate) axis: usize,
    /// Index into [`Names::names`].
    pub(crate) name: usize,
}

/// Named axes of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) names: Vec<String>,
    pub(crate) axes: Vec<Axis>,
}

impl Names {
    pub(crate) fn add(&mut self, leaf: usize, axis: usize, name: &str) {
        let known = self.names.iter().position(|x| x == name);
        let name = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.axes.push(Axis { leaf, axis, name });
    }

    /// Size of each name; an error if its axes differ or do not exist.
    pub(crate) fn sizes(&self, key: &Key) -> Result<Vec<usize>> {
        let mut all: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); self.names.len()];
        for &Axis { leaf, axis, name } in &self.axes {
            let missing = |given: String| CompileError::Axis {
                name: self.names[name].clone(),
                leaf,
                axis,
                given,
            };
            let found = key.leaves.get(leaf);
            let (_, meta) =
                found.ok_or_else(|| missing(format!("there are {} leaves", key.leaves.len())))?;
            let size = meta.shape.get(axis);
            let size = size.ok_or_else(|| missing(format!("its shape is {:?}", meta.shape)))?;
            all[name].push((leaf, axis, *size));
        }
        let one = |(name, sizes): (&String, &Vec<(usize, usize, usize)>)| {
            if sizes.iter().all(|x| x.2 == sizes[0].2) {
                return Ok(sizes[0].2);
            }
            let paths = key.structure.paths();
            let at =
                |&(leaf, axis, size): &(usize, usize, usize)| (paths[leaf].clone(), axis, size);
            let sizes = sizes.iter().map(at).collect();
            Err(CompileError::Sizes { name: name.clone(), sizes })
        };
        self.names.iter().zip(&all).map(one).collect()
    }

    /// Formats the sizes with their names.
    pub(crate) fn describe(&self, sizes: &[usize]) -> String {
        let one = |(name, size): (&String, &usize)| format!("{name} = {size}");
        self.names.iter().zip(sizes).map(one).collect::<Vec<_>>().join(", ")
    }

    /// The key with the sizes of named axes set to 0.
    pub(crate) fn key(&self, key: &Key) -> Key {
        let mut key = Key { named: true, ..key.clone() };
        for &Axis { leaf, axis, .. } in &self.axes {
            key.leaves[leaf].1.shape[axis] = 0;
        }
        key
    }
}
