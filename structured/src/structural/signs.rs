//! Signs of exchanged fermions.

use crate::sector::Sector;
use crate::spec::Spec;

/// Parities of the legs of blocks.
pub(crate) struct Parities {
    /// By leg and place; empty where nothing is odd.
    odd: Vec<Vec<bool>>,
}

impl Parities {
    pub(crate) fn new<S: Sector>(spec: &Spec<S>) -> Self {
        let odd = match S::FERMIONIC {
            true => spec.legs().iter().map(|leg| leg.parities()).collect(),
            false => Vec::new(),
        };
        Self { odd }
    }

    /// Whether the sector of a block at an axis is odd; blocks are given by their places.
    pub(crate) fn is_odd(&self, block: &[u32], axis: usize) -> bool {
        !self.odd.is_empty() && self.odd[axis][block[axis] as usize]
    }

    /// Number of odd legs among these.
    pub(crate) fn count(&self, block: &[u32], axes: impl IntoIterator<Item = usize>) -> usize {
        axes.into_iter().filter(|&axis| self.is_odd(block, axis)).count()
    }

    /// Whether these axes, put into this order, have an odd number of inversions among odd legs.
    pub(crate) fn inverts(&self, block: &[u32], axes: &[usize]) -> bool {
        if self.odd.is_empty() {
            return false;
        }
        let mut inversions = 0;
        for (i, &a) in axes.iter().enumerate() {
            if self.is_odd(block, a) {
                inversions += self.count(block, axes[i + 1..].iter().copied().filter(|&b| b < a));
            }
        }
        inversions % 2 == 1
    }
}

/// Whether the reversal of `n` odd legs is an odd permutation.
pub(crate) fn reverses(n: usize) -> bool {
    n * n.saturating_sub(1) / 2 % 2 == 1
}
