//! Reading several tensors at once: one after the other, since nothing is pending on a CPU.

use burn_backend::ops::TransactionOps;

use super::BurnT4a;

impl TransactionOps<BurnT4a> for BurnT4a {}
