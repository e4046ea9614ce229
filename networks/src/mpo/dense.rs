//! Dense matrices of operators.

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_structured::Sector;

use super::Mpo;
use crate::error::{NetworksError, Result};
use crate::scalar::numbers;

impl<S: Sector, A: Array> Mpo<S, A> {
    /// The dense matrix, real and imaginary part row-major: `[d, d]` in the order of the bases of the sites, the last
    /// site fastest.
    ///
    /// # Errors
    /// `TooLarge` beyond 4096 states.
    pub fn to_matrix(&self) -> Result<Vec<c64>> {
        let op = "to_matrix";
        let n = self.len();
        let d = (0..n)
            .try_fold(1usize, |d, i| d.checked_mul(self.physical(i).dim()).filter(|&d| d <= 4096));
        if d.is_none() {
            return Err(NetworksError::TooLarge { op, what: "states", limit: 4096 });
        }
        // [out…, in…, right] of the sites so far as a dense array of (out, in) and right states.
        let (mut rows, mut sofar) = (1usize, vec![c64::ONE]);
        for x in &self.tensors {
            let (re, im) = x.to_dense()?;
            let (re, im) = (numbers(&re)?, im.map(|im| numbers(&im)));
            let im = im.transpose()?;
            let at = |k: usize| c64::new(re[k], im.as_ref().map_or(0.0, |im| im[k]));
            let shape = x.spec().shape();
            let [l, q, p, r] = [shape[0], shape[1], shape[2], shape[3]];
            let mut next = vec![c64::ZERO; rows * q * rows * p * r];
            for (i, j) in (0..rows).flat_map(|i| (0..rows).map(move |j| (i, j))) {
                for (a, k) in (0..l).flat_map(|a| (0..q * p * r).map(move |k| (a, k))) {
                    let (out, into, b) = (k / (p * r), k / r % p, k % r);
                    let to = ((i * q + out) * rows * p + j * p + into) * r + b;
                    next[to] += sofar[(i * rows + j) * l + a] * at(a * q * p * r + k);
                }
            }
            (rows, sofar) = (rows * q, next);
        }
        Ok(sofar)
    }
}
