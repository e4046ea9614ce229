//! Elementary functions on `f32` and `f64`, branch-free so that loops over them vectorise.

pub mod f32;
pub mod f64;
