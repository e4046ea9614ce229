//! Dense vectors of states.

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_structured::Sector;

use super::Mps;
use crate::error::{NetworksError, Result};
use crate::scalar::numbers;

/// States of a dense vector.
const MOST_STATES: usize = 1 << 20;

impl<S: Sector, A: Array> Mps<S, A> {
    /// The amplitudes of all basis states in the order of the bases of the sites, the last site fastest.
    ///
    /// # Errors
    /// `TooLarge` beyond 2²⁰ states.
    pub fn to_vector(&self) -> Result<Vec<c64>> {
        let (op, limit) = ("to_vector", MOST_STATES);
        let dims = (0..self.len()).map(|i| self.physical(i).dim());
        let d = dims.into_iter().try_fold(1usize, |d, n| d.checked_mul(n).filter(|&d| d <= limit));
        if d.is_none() {
            return Err(NetworksError::TooLarge { op, what: "states", limit });
        }
        // [states of the sites so far, bond].
        let (mut rows, mut sofar) = (1usize, vec![c64::ONE]);
        for x in &self.tensors {
            let (re, im) = x.to_dense()?;
            let (re, im) = (numbers(&re)?, im.as_ref().map(numbers).transpose()?);
            let at = |k: usize| c64::new(re[k], im.as_ref().map_or(0.0, |im| im[k]));
            let shape = x.spec().shape();
            let (l, width) = (shape[0], shape[1] * shape[2]);
            let mut next = vec![c64::ZERO; rows * width];
            for i in 0..rows {
                for (a, k) in (0..l).flat_map(|a| (0..width).map(move |k| (a, k))) {
                    next[i * width + k] += sofar[i * l + a] * at(a * width + k);
                }
            }
            (rows, sofar) = (rows * shape[1], next);
        }
        Ok(sofar)
    }
}
