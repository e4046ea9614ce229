//! Settings that come from the environment: read once, at the first use.

use std::fmt::Display;

/// The value of the variable `name`, if it is set and `parse` takes it. Another value counts as none,
/// and one line on the standard error output says so: there is nobody to return an error to.
pub(crate) fn setting<T>(
    name: &str,
    expected: impl Display,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let given = std::env::var_os(name)?;
    let value = given.to_str().and_then(|text| parse(text.trim()));
    if value.is_none() {
        eprintln!("{name} is ignored: expected {expected}, given {given:?}");
    }
    value
}
