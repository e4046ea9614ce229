//! Linear algebra on Burn tensors: derivatives of every function against differences, against the
//! portable default and in second order; tangents; ties and gauges; errors and status.

mod cases;
mod compositions;
mod derivatives;
mod gauge;
mod second;
mod status;
mod table;
mod tangents;
