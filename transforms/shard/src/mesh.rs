//! Devices in a grid with named axes.

use std::fmt;

use crate::error::{Result, ShardError};
use crate::spec::Split;

/// Grid of devices with named axes; device indices are row-major.
///
/// ```
/// use burn_t4a_transforms::shard::Mesh;
///
/// let mesh = Mesh::new([("data", 2), ("model", 4)])?;
/// assert_eq!(mesh.devices(), 8);
/// assert_eq!(mesh.axes()[1], ("model".to_owned(), 4));
/// # Ok::<(), burn_t4a_transforms::shard::ShardError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    axes: Vec<(String, usize)>,
}

impl Mesh {
    /// Creates a mesh from axis names and sizes.
    ///
    /// # Errors
    /// [`ShardError::Mesh`] for a repeated axis name, an axis of size zero, and a device count that overflows `usize`.
    pub fn new<'a>(axes: impl IntoIterator<Item = (&'a str, usize)>) -> Result<Self> {
        let axes: Vec<(String, usize)> =
            axes.into_iter().map(|(name, size)| (name.to_owned(), size)).collect();
        let mut devices = 1usize;
        for (i, (name, size)) in axes.iter().enumerate() {
            let wrong = |what| ShardError::Mesh { axis: name.clone(), what };
            if axes[..i].iter().any(|(other, _)| other == name) {
                return Err(wrong("is there twice"));
            }
            if *size == 0 {
                return Err(wrong("has no devices"));
            }
            let more = devices.checked_mul(*size);
            devices = more.ok_or_else(|| wrong("makes more devices than can be counted"))?;
        }
        Ok(Self { axes })
    }

    /// Number of devices: the product of the axis sizes.
    pub fn devices(&self) -> usize {
        self.axes.iter().map(|axis| axis.1).product()
    }

    /// Names and sizes of the axes.
    pub fn axes(&self) -> &[(String, usize)] {
        &self.axes
    }

    pub(crate) fn size(&self, axis: usize) -> usize {
        self.axes[axis].1
    }

    pub(crate) fn name(&self, axis: usize) -> &str {
        &self.axes[axis].0
    }

    /// Number of parts of a tensor axis that is split over these mesh axes: the product of their sizes.
    pub(crate) fn parts(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&axis| self.size(axis)).product()
    }

    fn stride(&self, axis: usize) -> usize {
        self.axes[axis + 1..].iter().map(|axis| axis.1).product()
    }

    /// Coordinate of a device along an axis.
    pub(crate) fn coordinate(&self, device: usize, axis: usize) -> usize {
        device / self.stride(axis) % self.size(axis)
    }

    /// Devices that differ from `device` along `axis` only, in order of their coordinate; includes `device`.
    pub(crate) fn row(&self, device: usize, axis: usize) -> impl Iterator<Item = usize> + '_ {
        let first = device - self.coordinate(device, axis) * self.stride(axis);
        (0..self.size(axis)).map(move |i| first + i * self.stride(axis))
    }

    /// Lowest device index that holds the same part of a tensor as `device`.
    pub(crate) fn first(&self, device: usize, split: &Split) -> usize {
        let unused = (0..self.axes.len()).filter(|&axis| !split.uses(axis));
        device - unused.map(|axis| self.coordinate(device, axis) * self.stride(axis)).sum::<usize>()
    }
}

/// Formats as `data 2 × model 4`.
impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, size)) in self.axes.iter().enumerate() {
            write!(f, "{}{name} {size}", if i > 0 { " × " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_grid() {
        let mesh = Mesh::new([("a", 2), ("b", 3), ("c", 2)]).unwrap();
        assert_eq!(mesh.row(7, 0).collect::<Vec<_>>(), [1, 7]);
        assert_eq!(mesh.row(7, 1).collect::<Vec<_>>(), [7, 9, 11]);
        assert_eq!(mesh.row(7, 2).collect::<Vec<_>>(), [6, 7]);
        assert_eq!([0, 1, 2].map(|axis| mesh.coordinate(9, axis)), [1, 1, 1]);
        let split = Split(vec![vec![1], vec![]]);
        assert_eq!([2, 5, 9].map(|device| mesh.first(device, &split)), [2, 4, 2]);
        let twice = Mesh::new([("a", 2), ("a", 2)]);
        assert!(matches!(twice, Err(ShardError::Mesh { what: "is there twice", .. })));
        assert!(matches!(Mesh::new([("a", 0)]), Err(ShardError::Mesh { .. })));
    }

    /// 2³³ · 2³³ is 4 modulo 2⁶⁴, and 2³² · 2³² is 0.
    #[test]
    fn a_product_of_sizes_that_wraps_is_refused() {
        for size in [1 << 33, 1 << 32] {
            match Mesh::new([("a", 2), ("b", size), ("c", size), ("d", 0)]) {
                Err(ShardError::Mesh { axis, what }) => {
                    assert_eq!((&*axis, what), ("c", "makes more devices than can be counted"));
                }
                other => panic!("{other:?}"),
            }
        }
        let most = Mesh::new([("a", usize::MAX), ("b", 1)]).unwrap();
        assert_eq!(most.devices(), usize::MAX);
    }
}
