//! Sums and multiples of states.

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector};

use super::Mps;
use crate::error::{NetworksError, Result};

/// Direct sums of the tensors of at least one chain along the bonds; the ends stay bonds of one state.
pub(crate) fn stacked<S: Sector, A: Array>(
    chains: &[&[GradedTensor<S, A>]],
) -> Result<Vec<GradedTensor<S, A>>> {
    let n = chains[0].len();
    let mut sums = Vec::with_capacity(n);
    for i in 0..n {
        let all: Vec<&GradedTensor<S, A>> = chains.iter().map(|chain| &chain[i]).collect();
        if n == 1 {
            let sum = all[1..].iter().try_fold(all[0].clone(), |sum, x| sum.add(x));
            sums.push(sum?);
            break;
        }
        let axes = [0, all[0].spec().legs().len() - 1];
        let axes = match i {
            0 => &axes[1..],
            _ if i == n - 1 => &axes[..1],
            _ => &axes[..],
        };
        sums.push(GradedTensor::direct_sum(&all, axes)?);
    }
    Ok(sums)
}

impl<S: Sector, A: Array> Mps<S, A> {
    /// `c` times the state. Differentiable.
    pub fn scale(&self, c: f64) -> Self {
        let (mut out, at) = (self.clone(), self.center.unwrap_or(0));
        out.tensors[at] = out.tensors[at].scale(c);
        out
    }

    /// `c` times the state; it becomes complex unless `c` and the state are real.
    pub fn scale_complex(&self, c: impl Into<c64>) -> Self {
        let (mut out, at) = (self.clone(), self.center.unwrap_or(0));
        out.tensors[at] = out.tensors[at].scale_complex(c);
        out
    }

    /// The sum, whose bonds are direct sums of both; [`Mps::truncate`] makes them smaller. Differentiable.
    ///
    /// # Errors
    /// `Charge` for states of different charges; `Length`, `Chain` for other sites.
    pub fn add(&self, other: &Self) -> Result<Self> {
        let op = "add";
        other.check_legs(op, (0..self.len()).map(|i| self.physical(i)))?;
        let (required, given) = (self.charge(), other.charge());
        if required != given {
            let (given, required) = (given.to_string(), required.to_string());
            return Err(NetworksError::Charge {
                op,
                what: "the second state".into(),
                given,
                required,
            });
        }
        Ok(Self { tensors: stacked(&[&self.tensors, &other.tensors])?, center: None })
    }
}
