//! One semiring per file.

mod standard;

pub use standard::Standard;
