//! Every rule against finite differences, and first and second derivatives in four ways against each other.

mod float;
mod layers;
mod operations;
mod rows;
mod user;
