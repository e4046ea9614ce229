//! Subscripts: labels of every operand and of the result.
//!
//! ```text
//! "bij,bjk->bik"    explicit output
//! "ij,jk"           implicit: labels that occur once, in alphabetical order
//! "...ij,jk->...ik" axes under the ellipsis broadcast from the right
//! ```

use std::fmt;
use std::str::FromStr;

use crate::error::{EinsumError, Result};
use crate::label::Label;

/// Labels are letters, digits and all visible non-ASCII characters; networks of hundreds of tensors need more labels
/// than letters.
fn is_label(c: char) -> bool {
    c.is_ascii_alphanumeric() || (!c.is_ascii() && !c.is_control() && !c.is_whitespace())
}

/// One axis of a term, or the ellipsis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SubscriptToken {
    Label(Label),
    Ellipsis,
}

/// Labels of one operand or of the result.
pub(crate) type SubscriptTerm = Vec<SubscriptToken>;

/// Labels of the operands and, unless implicit, of the result.
///
/// ```
/// use t4a_einsum::Subscripts;
/// let from_text: Subscripts = "ab,bc->ac".parse()?;
/// let from_labels = Subscripts::new([['a', 'b'], ['b', 'c']], ['a', 'c']);
/// assert_eq!(from_text, from_labels);
/// # Ok::<(), t4a_einsum::EinsumError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subscripts {
    pub(crate) inputs: Vec<SubscriptTerm>,
    pub(crate) output: Option<SubscriptTerm>,
}

fn term<L: Into<Label>>(labels: impl IntoIterator<Item = L>) -> SubscriptTerm {
    labels.into_iter().map(|label| SubscriptToken::Label(label.into())).collect()
}

impl Subscripts {
    /// Subscripts from labels of any type: `char`, `i32`, `i64`, `u32`, `usize` or [`Label`].
    pub fn new<L, I>(
        inputs: impl IntoIterator<Item = I>,
        output: impl IntoIterator<Item = L>,
    ) -> Self
    where
        L: Into<Label>,
        I: IntoIterator<Item = L>,
    {
        Self { inputs: inputs.into_iter().map(term).collect(), output: Some(term(output)) }
    }

    /// Subscripts with the implicit output: labels that occur once, ascending.
    pub fn implicit<L, I>(inputs: impl IntoIterator<Item = I>) -> Self
    where
        L: Into<Label>,
        I: IntoIterator<Item = L>,
    {
        Self { inputs: inputs.into_iter().map(term).collect(), output: None }
    }

    /// Adds an operand.
    #[must_use]
    pub fn operand<L: Into<Label>>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.inputs.push(term(labels));
        self
    }

    /// Sets the labels of the result.
    #[must_use]
    pub fn output<L: Into<Label>>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.output = Some(term(labels));
        self
    }

    /// Number of operands.
    pub fn operands(&self) -> usize {
        self.inputs.len()
    }

    /// Number of axes of operand `i`; `None` with an ellipsis.
    pub fn rank(&self, i: usize) -> Option<usize> {
        let term = self.inputs.get(i)?;
        (!term.contains(&SubscriptToken::Ellipsis)).then_some(term.len())
    }
}

impl Default for Subscripts {
    /// No operands and an implicit output; the start of a builder.
    fn default() -> Self {
        Self { inputs: Vec::new(), output: None }
    }
}

impl FromStr for Subscripts {
    type Err = EinsumError;

    fn from_str(text: &str) -> Result<Self> {
        let mut inputs = vec![SubscriptTerm::new()];
        let mut output: Option<SubscriptTerm> = None;
        let mut chars = text.char_indices().peekable();
        while let Some((position, c)) = chars.next() {
            let behind_arrow = output.is_some();
            let current = match &mut output {
                Some(term) => term,
                // The list is never empty: it starts with one term.
                None => {
                    let last = inputs.len() - 1;
                    &mut inputs[last]
                }
            };
            match c {
                c if c.is_whitespace() => {}
                ',' if behind_arrow => return Err(EinsumError::OutputTerms { position }),
                ',' => inputs.push(SubscriptTerm::new()),
                '-' => {
                    if chars.next_if(|&(_, c)| c == '>').is_none() || behind_arrow {
                        return Err(EinsumError::Arrow { position });
                    }
                    output = Some(SubscriptTerm::new());
                }
                '.' => {
                    let dots = (0..2).all(|_| chars.next_if(|&(_, c)| c == '.').is_some());
                    if !dots || current.contains(&SubscriptToken::Ellipsis) {
                        return Err(EinsumError::Ellipsis { position });
                    }
                    current.push(SubscriptToken::Ellipsis);
                }
                c if is_label(c) => current.push(SubscriptToken::Label(Label::Char(c))),
                found => return Err(EinsumError::UnexpectedCharacter { position, found }),
            }
        }
        Ok(Self { inputs, output })
    }
}

impl fmt::Display for Subscripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = |f: &mut fmt::Formatter<'_>, term: &SubscriptTerm| {
            for token in term {
                match token {
                    SubscriptToken::Label(Label::Char(c)) => write!(f, "{c}")?,
                    SubscriptToken::Label(label) => write!(f, "[{label}]")?,
                    SubscriptToken::Ellipsis => write!(f, "...")?,
                }
            }
            Ok(())
        };
        for (i, term) in self.inputs.iter().enumerate() {
            if i > 0 {
                write!(f, ",")?;
            }
            write(f, term)?;
        }
        match &self.output {
            Some(term) => {
                write!(f, "->")?;
                write(f, term)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mistakes_are_located() {
        let parse = |text: &str| text.parse::<Subscripts>().unwrap_err();
        assert_eq!(parse("ij,j;"), EinsumError::UnexpectedCharacter { position: 4, found: ';' });
        assert_eq!(parse("ij-k"), EinsumError::Arrow { position: 2 });
        assert_eq!(parse("i->j->k"), EinsumError::Arrow { position: 4 });
        assert_eq!(parse("i..j"), EinsumError::Ellipsis { position: 1 });
        assert_eq!(parse("...i..."), EinsumError::Ellipsis { position: 4 });
        assert_eq!(parse("i->i,j"), EinsumError::OutputTerms { position: 4 });
        assert_eq!(parse("é,é->é!"), EinsumError::UnexpectedCharacter { position: 9, found: '!' });
    }

    #[test]
    fn digits_and_unassigned_characters_are_labels() {
        let s: Subscripts = "i1,1\u{3a2}->i\u{3a2}".parse().unwrap();
        assert_eq!(s, Subscripts::new([['i', '1'], ['1', '\u{3a2}']], ['i', '\u{3a2}']));
    }

    #[test]
    fn empty_terms_are_scalars() {
        let s: Subscripts = ",->".parse().unwrap();
        assert_eq!((s.operands(), s.output), (2, Some(vec![])));
        assert_eq!("".parse::<Subscripts>().unwrap().operands(), 1);
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in ".*") {
            let _ = text.parse::<Subscripts>();
        }

        #[test]
        fn text_of_subscripts_parses_to_itself(text in "(\\.\\.\\.)?[a-zα-ω]{0,3}(,[A-Z]{0,3}(\\.\\.\\.)?){0,3}(->(\\.\\.\\.)?[a-z]{0,3})?") {
            let s: Subscripts = text.parse().unwrap();
            prop_assert_eq!(s.to_string().parse::<Subscripts>().unwrap(), s);
        }

        #[test]
        fn near_misses_never_panic(text in "[a-c.,>-]{0,12}") {
            if let Ok(s) = text.parse::<Subscripts>() {
                prop_assert_eq!(s.to_string().parse::<Subscripts>().unwrap(), s);
            }
        }
    }
}
