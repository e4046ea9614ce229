//! Permutations found by pivoting, one per matrix of a batch.

use t4a_tensor::{Tensor, TensorError};

use crate::error::Result;

/// A permutation `p` per matrix: row `i` of the permuted matrix is row `pᵢ` of the original.
///
/// Pivots are discrete: nothing is differentiated through them.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: usize,
    index: Tensor<i64>,
}

impl Permutation {
    /// From an index tensor `[…, n]` of permutations.
    pub(crate) fn new(n: usize, index: Tensor<i64>) -> Self {
        Self { n, index }
    }

    /// The indices `[…, n]`.
    pub fn index(&self) -> &Tensor<i64> {
        &self.index
    }

    /// Number of rows permuted.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there is nothing to permute.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The indices, one permutation of `n` rows after the other.
    ///
    /// # Errors
    /// `Tensor` if this belongs to another batch or other matrices.
    pub(crate) fn of_rows(&self, op: &'static str, batch: &[usize], n: usize) -> Result<Vec<i64>> {
        let shape = self.index.shape();
        match shape.split_last() {
            Some((&last, leading)) if last == n && leading == batch => Ok(self.index.to_vec()?),
            _ => {
                let required = "a permutation for the rows of each matrix";
                Err(TensorError::shapes(op, shape, batch, required).into())
            }
        }
    }

    /// The permutation that undoes this one.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn inverse(&self) -> Result<Self> {
        let forward = self.index.to_vec()?;
        let mut inverse = vec![0i64; forward.len()];
        if self.n > 0 {
            for (p, q) in forward.chunks_exact(self.n).zip(inverse.chunks_exact_mut(self.n)) {
                p.iter().enumerate().for_each(|(i, &row)| q[row as usize] = i as i64);
            }
        }
        Ok(Self { n: self.n, index: Tensor::from_vec(inverse, self.index.shape())? })
    }

    /// `det P = ±1` of each matrix.
    pub(crate) fn signs(&self) -> Result<Vec<bool>> {
        let forward = self.index.to_vec()?;
        let count = self.index.shape().iter().rev().skip(1).product();
        let odd = |p: &[i64]| {
            // A cycle of length ℓ is ℓ − 1 transpositions.
            let mut seen = vec![false; p.len()];
            let mut transpositions = 0;
            for start in 0..p.len() {
                let mut i = start;
                let mut length = 0;
                while !seen[i] {
                    seen[i] = true;
                    i = p[i] as usize;
                    length += 1;
                }
                transpositions += if length > 0 { length - 1 } else { 0 };
            }
            transpositions % 2 == 1
        };
        Ok((0..count).map(|b| odd(&forward[b * self.n..(b + 1) * self.n])).collect())
    }
}
