//! Instructions by name. Methods of floats, integers and booleans that differ in their prefix only have one expansion.

use super::text::{ModuleText, Ssa, Type};
use super::{ExportError, elementwise, products, reductions, shapes};
use crate::tensor::TensorType;
use crate::words::Word;

/// An instruction that is being written.
pub(super) struct InstructionParts<'a> {
    /// Name of the method without the prefix of its kind.
    pub(super) name: &'a str,
    pub(super) words: &'a [Word],
    pub(super) operands: &'a [Ssa],
    /// Shapes and dtypes of the results.
    pub(super) results: &'a [TensorType],
}

impl InstructionParts<'_> {
    /// Type of the first result.
    ///
    /// # Errors
    /// `Type`.
    pub(super) fn of(&self) -> Result<Type, ExportError> {
        Type::of(&self.results[0])
    }

    /// Shape of the first result.
    pub(super) fn shape(&self) -> &[usize] {
        &self.results[0].shape
    }
}

/// Results of an instruction; `None` if it has no expansion.
///
/// # Errors
/// `Type`.
pub(super) fn write(
    text: &mut ModuleText,
    name: &str,
    words: &[Word],
    operands: &[Ssa],
    results: &[TensorType],
) -> Result<Option<Vec<Ssa>>, ExportError> {
    let prefixes = ["float_", "int_", "bool_", "bitwise_"];
    let short = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let given = InstructionParts { name: short, words, operands, results };
    let families = [elementwise::write, shapes::write, reductions::write, products::write];
    for family in families {
        if let Some(values) = family(text, &given)? {
            let mut all = Vec::new();
            for (value, meta) in values.iter().zip(results) {
                let value = text.convert(value, Type::of(meta)?);
                all.push(text.reshape(&value, &meta.shape));
            }
            return Ok(Some(all));
        }
    }
    Ok(None)
}
