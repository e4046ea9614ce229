//! Settings that come from the environment: read once, at the first use.

use std::env;
use std::ffi::OsString;

use thiserror::Error;

/// A variable of the environment with a value that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}: expected {expected}, given {given:?}")]
pub struct Invalid {
    /// The variable.
    pub name: &'static str,
    /// What it may be.
    pub expected: &'static str,
    /// What it is.
    pub given: OsString,
}

/// A variable of the environment that holds a setting.
#[derive(Clone, Copy, Debug)]
pub struct Variable<T> {
    name: &'static str,
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
}

impl<T> Variable<T> {
    /// The variable `name`, read by `parse`; `expected` is what it takes, in words.
    pub const fn new(
        name: &'static str,
        expected: &'static str,
        parse: fn(&str) -> Option<T>,
    ) -> Self {
        Self { name, expected, parse }
    }

    /// Its value, if it is set.
    ///
    /// # Errors
    /// If it has a value that means nothing.
    pub fn read(&self) -> Result<Option<T>, Invalid> {
        let Some(given) = env::var_os(self.name) else { return Ok(None) };
        match given.to_str().and_then(|text| (self.parse)(text.trim())) {
            Some(value) => Ok(Some(value)),
            None => Err(Invalid { name: self.name, expected: self.expected, given }),
        }
    }

    /// Its value, for a first use, where there is nobody to return an error to: a value that means
    /// nothing counts as none, and one line on the standard error output says so.
    pub fn get(&self) -> Option<T> {
        self.read().unwrap_or_else(|error| {
            eprintln!("{error}: ignored");
            None
        })
    }
}

/// A number of bytes: digits, and `KiB`, `MiB` or `GiB` if these are meant.
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
        // Whatever the machine, this one is set and is no number.
        let path = Variable::new("PATH", "a number of bytes", bytes);
        let error = path.read().unwrap_err().to_string();
        assert!(error.starts_with("PATH: expected a number of bytes, given"), "{error}");
        assert_eq!(path.get(), None);
    }
}
