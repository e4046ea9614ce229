//! Permutations found by pivoting, one per matrix of a batch.

use t4a_tensor::{Tensor, TensorError};

use crate::error::Result;

/// A permutation `p` per matrix: row `i` of the permuted matrix is row `pᵢ` of the original.
///
/// Pivots are discrete, hence constant for derivatives.
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

    /// Permutation from indices `[…, n]`, each of `0 … n − 1` once.
    ///
    /// # Errors
    /// `Tensor` if this is not a permutation.
    pub fn from_index(index: &Tensor<i64>) -> Result<Self> {
        let n = last("permutation", index)?;
        let mut seen = vec![false; n];
        for p in index.to_vec()?.chunks_exact(n.max(1)) {
            seen.fill(false);
            for &i in p {
                match usize::try_from(i).ok().and_then(|i| seen.get_mut(i)) {
                    Some(seen) if !*seen => *seen = true,
                    _ => {
                        let message = format!("each of 0 … {} is required once: {p:?}", n - 1);
                        return Err(TensorError::value("permutation", message).into());
                    }
                }
            }
        }
        Ok(Self::new(n, index.clone()))
    }

    /// Permutation of `m` rows from pivots `[…, k]`: rows `i` and `pivotᵢ ≥ i` are exchanged, in order of `i`. Rows
    /// are counted from 0, as in SciPy's `lu_factor`; LAPACK's `ipiv` and PyTorch's pivots are counted from 1, so
    /// subtract 1 first.
    ///
    /// # Errors
    /// `Tensor` for pivots out of range or less than `i`.
    pub fn from_pivots(pivots: &Tensor<i64>, m: usize) -> Result<Self> {
        let k = last("pivots", pivots)?;
        let data = pivots.to_vec()?;
        let batch = &pivots.shape()[..pivots.rank() - 1];
        let count: usize = batch.iter().product();
        let mut index = Vec::with_capacity(count * m);
        for b in 0..count {
            let mut order: Vec<i64> = (0..m as i64).collect();
            for (i, &pivot) in data[b * k..(b + 1) * k].iter().enumerate() {
                match usize::try_from(pivot) {
                    Ok(pivot) if i <= pivot && pivot < m => order.swap(i, pivot),
                    _ => {
                        let message = format!("pivot {i} of {m} rows is {pivot}");
                        return Err(TensorError::value("pivots", message).into());
                    }
                }
            }
            index.extend(order);
        }
        let shape: Vec<usize> = batch.iter().copied().chain([m]).collect();
        Ok(Self::new(m, Tensor::from_vec(index, &shape)?))
    }

    /// The same permutations, broadcast to a larger batch.
    pub(crate) fn expanded(&self, batch: &[usize]) -> Result<Self> {
        let shape: Vec<usize> = batch.iter().copied().chain([self.n]).collect();
        Ok(Self::new(self.n, self.index.expand(&shape)?))
    }

    /// Indices `[…, n]`.
    pub fn index(&self) -> &Tensor<i64> {
        &self.index
    }

    /// Number of rows permuted.
    pub fn len(&self) -> usize {
        self.n
    }

    /// True if the permutations have length 0.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Indices of consecutive permutations of `n` rows each.
    ///
    /// # Errors
    /// `Tensor` if the batch or the number of rows differs.
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

    /// Inverse permutation.
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

    /// Sign of each permutation, `det P = ±1`; true for −1.
    pub(crate) fn signs(&self) -> Result<Vec<bool>> {
        let forward = self.index.to_vec()?;
        let count = self.index.shape().iter().rev().skip(1).product();
        let odd = |p: &[i64]| {
            // A cycle of length ℓ consists of ℓ − 1 transpositions.
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

/// Size of the last axis.
fn last(op: &'static str, index: &Tensor<i64>) -> Result<usize> {
    match index.shape().last() {
        Some(&n) => Ok(n),
        None => Err(TensorError::shape(op, &[], "indices […, n] are required").into()),
    }
}
