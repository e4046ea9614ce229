//! Einsums against the definition as loops, published numbers and finite differences; plans, settings and errors.

mod complex;
mod derivatives;
mod errors;
mod known;
mod networks;
mod operations;
mod optima;
mod oracle;
mod planning;
mod settings;
mod slices;
mod tiers;
