//! Recorded functions against the functions.
//!
//! `replay` calls every family of methods, on inputs that the recording has not seen; `contract` is about
//! what a recording is for and where it may go; `archive` about bytes, `state` about what outlives a call; `fused` about
//! groups of elementwise operations, `scan` about bodies of scans, `simplify` about what is left out.

mod archive;
mod contract;
mod fused;
mod replay;
mod scan;
mod scan_gradients;
mod simplify;
mod state;
