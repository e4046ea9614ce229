//! Operations as values: derivatives, text, and the serialised form of one operation of each kind.

mod derivatives;
#[path = "../table/mod.rs"]
mod table;
mod text;
mod values;
