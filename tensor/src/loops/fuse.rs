//! Merges and orders the axes of several operands for a common traversal.

use smallvec::SmallVec;

use crate::layout::{Dims, Strides};

/// Common axes of `N` operands, outermost first; no axis has size 1, and no two adjacent axes can be merged.
#[derive(Clone, Debug)]
pub struct Fused<const N: usize> {
    /// Sizes.
    pub shape: Dims,
    /// Strides of each operand.
    pub strides: [Strides; N],
}

impl<const N: usize> Fused<N> {
    /// Fuses axes in memory order of operand 0: by decreasing stride.
    ///
    /// The traversal visits every index once, in unspecified order.
    pub fn by_first(shape: &[usize], strides: [&[isize]; N]) -> Self {
        let mut axes: SmallVec<[usize; 6]> =
            (0..shape.len()).filter(|&axis| shape[axis] != 1).collect();
        // Row-major operands are sorted already; the sort is stable, so that ties keep their order.
        axes.sort_by_key(|&axis| std::cmp::Reverse(strides[0][axis].unsigned_abs()));
        let mut fused =
            Self { shape: Dims::new(), strides: std::array::from_fn(|_| Strides::new()) };
        for axis in axes {
            fused.push(shape[axis], std::array::from_fn(|op| strides[op][axis]));
        }
        fused
    }

    /// Appends an inner axis; merges it with the adjacent outer axis if the strides of all operands permit it.
    fn push(&mut self, size: usize, strides: [isize; N]) {
        if let Some(last) = self.shape.len().checked_sub(1) {
            let even = |op: usize| self.strides[op][last] == strides[op] * size as isize;
            if (0..N).all(even) {
                self.shape[last] *= size;
                for (op, stride) in strides.into_iter().enumerate() {
                    self.strides[op][last] = stride;
                }
                return;
            }
        }
        self.shape.push(size);
        for (op, stride) in strides.into_iter().enumerate() {
            self.strides[op].push(stride);
        }
    }

    /// Number of axes left.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_operands_become_one_axis() {
        let f = Fused::by_first(&[2, 1, 3, 4], [&[12, 12, 4, 1], &[12, 0, 4, 1]]);
        assert_eq!((f.shape.as_slice(), f.strides[0].as_slice()), (&[24][..], &[1][..]));
    }

    #[test]
    fn broadcast_axes_stay_apart_and_scalars_vanish() {
        let f = Fused::by_first(&[2, 3, 4], [&[12, 4, 1], &[0, 0, 1]]);
        assert_eq!(f.shape.as_slice(), [6, 4]);
        assert_eq!(f.strides[1].as_slice(), [0, 1]);
        let f = Fused::by_first(&[2, 3], [&[3, 1], &[0, 0]]);
        assert_eq!((f.shape.as_slice(), f.strides[1].as_slice()), (&[6][..], &[0][..]));
    }

    #[test]
    fn order_follows_the_first_operand() {
        let f = Fused::by_first(&[3, 4], [&[1, 3], &[4, 1]]);
        assert_eq!(f.shape.as_slice(), [4, 3]);
        assert_eq!(f.strides[1].as_slice(), [1, 4]);
        assert_eq!(Fused::by_first(&[1, 1], [&[0, 0]]).rank(), 0);
    }
}
