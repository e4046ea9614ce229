//! Linear algebra on Burn tensors: derivatives of every function against finite differences, against the portable
//! definition and in second order; tangents; ties and gauges; errors and status.

mod cases;
mod compositions;
mod derivatives;
mod gauge;
mod second;
mod status;
mod table;
mod tangents;
