//! Compiled functions against the plain functions.
//!
//! `replay` calls every family of methods on inputs that were not recorded; `contract` tests the validity and
//! portability of recordings; `archive` serialisation; `state` tensors that outlive a call; `fused` groups of
//! elementwise operations; `generated` random ones; `explain` cost and drawing; `scan` bodies of scans; `simplify` the removal of instructions.

mod archive;
mod contract;
mod explain;
mod fused;
mod generated;
mod replay;
mod scan;
mod scan_gradients;
mod simplify;
mod state;
