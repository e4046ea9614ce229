//! The state of given bonds that is closest to the product of an operator and a state.
//!
//! Reference: F. Verstraete, J. Cirac, *Renormalization algorithms for quantum-many body systems in two and higher
//! dimensions* (2004).

use t4a_diff::Array;
use t4a_structured::{BondTruncation, FluxOn, GradedTensor, Sector, Svd, einsum};

use super::Mps;
use crate::environment::{grow_left, grow_right, left_edge};
use crate::error::Result;
use crate::mpo::Mpo;
use crate::scalar::edge;

/// Sweeps to the right and back.
const SWEEPS: usize = 2;

impl<S: Sector, A: Array> Mps<S, A> {
    /// Improves `start`, whose centre is site 0, by sweeps of two sites.
    pub(super) fn fit(
        &self,
        operator: &Mpo<S, A>,
        start: Self,
        truncation: BondTruncation,
    ) -> Result<Self> {
        let (x, w, n, mut fitted) = (&self.tensors, operator.tensors(), self.len(), start);
        if n == 1 {
            return Ok(fitted);
        }
        let ends = [&x[n - 1], &fitted.tensors[n - 1]].map(|x| x.spec().legs()[2].clone());
        let last = vec![ends[0].dual(), w[n - 1].spec().legs()[3].dual(), ends[1].clone()];
        let mut left = vec![left_edge(&x[0], &w[0])?];
        let mut right = vec![edge(&x[0], last)?];
        for i in (1..n).rev() {
            let bra = fitted.tensors[i].conj()?;
            right.push(grow_right(&right[n - 1 - i], &x[i], &w[i], &bra)?);
        }
        let pass = (0..n - 1).map(|i| (i, true)).chain((0..n - 1).rev().map(|i| (i, false)));
        for (i, to_right) in pass.cycle().take(SWEEPS * 2 * (n - 1)) {
            let around = [&left[i], &x[i], &x[i + 1], &w[i], &w[i + 1], &right[n - 2 - i]];
            let pair: GradedTensor<S, A> =
                einsum("kab,kpm,mqn,aspc,ctqd,ndz->bstz", &around)?.repartition(2)?;
            let Svd { u, s, vh } = pair.svd_truncated(2, FluxOn::Right, truncation)?.kept;
            if to_right {
                left.truncate(i + 1);
                left.push(grow_left(&left[i], &x[i], &w[i], &u.conj()?)?);
                fitted.replace(i, [u, vh.scale_rows(&s)?.repartition(2)?], i + 1);
            } else {
                let vh = vh.repartition(2)?;
                right.truncate(n - 1 - i);
                right.push(grow_right(&right[n - 2 - i], &x[i + 1], &w[i + 1], &vh.conj()?)?);
                fitted.replace(i, [u.scale_columns(&s)?, vh], i);
            }
        }
        Ok(fitted)
    }
}
