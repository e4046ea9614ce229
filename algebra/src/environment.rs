//! Settings from environment variables, read once at first use.

use std::env;
use std::ffi::OsString;

use crate::message::short;
use thiserror::Error;

/// An environment variable has an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}: expected {expected}, given {given:?}", given = short(.given))]
pub struct Invalid {
    /// Name of the variable.
    pub name: &'static str,
    /// Description of the accepted values.
    pub expected: &'static str,
    /// The given value.
    pub given: OsString,
}

/// A setting in an environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable<T> {
    name: &'static str,
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Variable<T> {
    /// The variable `name`, parsed by `parse`; `expected` describes the accepted values in error messages.
    pub const fn new(
        name: &'static str,
        expected: &'static str,
        parse: fn(&str) -> Option<T>,
    ) -> Self {
        Self { name, expected, parse }
    }

    /// The value, if the variable is set.
    ///
    /// # Errors
    /// If the value is invalid.
    pub fn read(&self) -> Result<Option<T>, Invalid> {
        let Some(given) = env::var_os(self.name) else { return Ok(None) };
        match given.to_str().and_then(|text| (self.parse)(text.trim())) {
            Some(value) => Ok(Some(value)),
            None => Err(Invalid { name: self.name, expected: self.expected, given }),
        }
    }

    /// The value, for callers that cannot return an error: an invalid value is ignored, with one line on the standard
    /// error output.
    pub fn get(&self) -> Option<T> {
        self.read().unwrap_or_else(|error| {
            eprintln!("{error}: ignored");
            None
        })
    }
}

/// A number of bytes: digits with an optional unit `KiB`, `MiB` or `GiB`.
pub fn bytes(text: &str) -> Option<usize> {
    let unit = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let (number, unit) = unit
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1));
    number.trim().parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_units() {
        for (text, want) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("3MiB", Some(3 << 20)),
            ("2 GiB", Some(2 << 30)),
            ("1KiB", Some(1024)),
            ("", None),
            ("GiB", None),
            ("-1", None),
            ("1.5GiB", None),
            ("4 GB", None),
            ("99999999999999999999", None),
            ("99999999999999GiB", None),
        ] {
            assert_eq!(bytes(text), want, "{text}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_no_error() {
        let variable = Variable::new("T4A_NO_SUCH_SETTING", "bytes", bytes);
        assert_eq!((variable.read(), variable.get()), (Ok(None), None));
        // `PATH` is set on every machine and is not a number.
        let path = Variable::new("PATH", "a number of bytes", bytes);
        let error = path.read().unwrap_err().to_string();
        assert!(error.starts_with("PATH: expected a number of bytes, given"), "{error}");
        assert_eq!(path.get(), None);
    }
}
