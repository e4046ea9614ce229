//! Transactions (reading several tensors at once) and collectives. A transaction reads one tensor after the other,
//! because operations are synchronous on this backend; collectives have one participant, the only device.

#[cfg(burn_line = "0.22")]
use burn_backend::distributed::DistributedOps;
use burn_backend::ops::TransactionOps;

use super::BurnT4a;

impl TransactionOps<BurnT4a> for BurnT4a {}

#[cfg(burn_line = "0.22")]
impl DistributedOps<BurnT4a> for BurnT4a {}
