//! Signs of exchanged fermions.

use crate::sector::Sector;
use crate::spec::Spec;

/// Parities of the sectors of each leg.
pub(crate) struct Parities {
    /// For each leg and sector, true if odd; empty if no sector is odd.
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

    /// True if the sector of a block on an axis is odd; a block is given by its sector indices.
    pub(crate) fn is_odd(&self, block: &[u32], axis: usize) -> bool {
        !self.odd.is_empty() && self.odd[axis][block[axis] as usize]
    }

    /// Number of odd legs among `axes`.
    pub(crate) fn count(&self, block: &[u32], axes: impl IntoIterator<Item = usize>) -> usize {
        axes.into_iter().filter(|&axis| self.is_odd(block, axis)).count()
    }

    /// True if bringing the axes into this order exchanges odd legs an odd number of times.
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

/// True if the reversal of `n` odd legs is an odd permutation.
pub(crate) fn reverses(n: usize) -> bool {
    n * n.saturating_sub(1) / 2 % 2 == 1
}
