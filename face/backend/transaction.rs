//! Reading several tensors at once, one after the other, since nothing is pending on a CPU; and what
//! several devices do together, of which there is one.

#[cfg(burn_line = "0.22")]
use burn_backend::distributed::DistributedOps;
use burn_backend::ops::TransactionOps;

use super::BurnT4a;

impl TransactionOps<BurnT4a> for BurnT4a {}

#[cfg(burn_line = "0.22")]
impl DistributedOps<BurnT4a> for BurnT4a {}
