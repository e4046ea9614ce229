//! Whole einsums, right and wrong ones: subscripts, shapes, given sizes, path, budget.
//!
//! ```text
//! case          an einsum from bytes
//! meaning       what is wrong with it, or its labels and sizes, and its terms one by one
//! check         planned if and only if nothing is wrong; values of every semiring
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

/// Runs a case.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let case = Case::read(&mut input);
    if input.once_in(8) {
        // Text that parses is written as text that parses to the same.
        if let Ok(subscripts) = case.noisy_text(&mut input).parse::<Subscripts>() {
            assert_eq!(subscripts.to_string().parse(), Ok(subscripts));
        }
    }
    check::check(&case);
}
