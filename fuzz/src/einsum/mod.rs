//! Complete einsums, valid and invalid: subscripts, shapes, given sizes, path, memory budget.
//!
//! ```text
//! case          decoding of an einsum from bytes
//! meaning       validation, labels and sizes, and the terms of the sum one by one
//! check         a plan exists if and only if the case is valid; values in every semiring
//! derivatives   conservation, transposition, step by step
//! ```

mod case;
mod check;
mod derivatives;
mod meaning;

pub use case::{Case, Token};
pub use meaning::{Meaning, naive};
use t4a_einsum::Subscripts;

use crate::input::Input;

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let case = Case::read(&mut input);
    if input.once_in(8) {
        // Formatting and parsing of valid subscripts round-trips.
        if let Ok(subscripts) = case.noisy_text(&mut input).parse::<Subscripts>() {
            assert_eq!(subscripts.to_string().parse(), Ok(subscripts));
        }
    }
    check::check(&case);
}
