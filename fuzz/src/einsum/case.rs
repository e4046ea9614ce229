//! Decoding of a complete einsum from bytes.

use std::sync::Arc;

use t4a_einsum::{Einsum, EinsumError, Optimizer, Path, Plan};

use crate::input::{ABSURD, Input};

/// Number of distinct letters.
pub(super) const LETTERS: usize = 6;
/// Characters of the letters, ascending, as the labels of an implicit output are.
const ALPHABETS: [[char; LETTERS]; 2] =
    [['a', 'b', 'c', 'd', 'e', 'f'], ['1', 'A', 'a', 'z', 'é', 'Ω']];
/// Characters that are invalid in subscripts, or change their meaning.
const NOISE: [char; 12] =
    [',', '.', '-', '>', ' ', '\n', ';', '\0', '\u{7f}', 'ß', '\u{2003}', '🦀'];
const SMALL: [usize; 16] = [2, 3, 2, 1, 3, 2, 2, 3, 1, 2, 3, 2, 1, 2, 2, 0];

/// An axis of a term, or the ellipsis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token {
    /// A letter by its index.
    Letter(usize),
    /// The ellipsis.
    Dots,
}

/// An einsum that may be invalid in any way.
#[derive(Clone, Debug)]
pub struct Case {
    /// Axes of each operand, as written.
    pub terms: Vec<Vec<Token>>,
    /// Axes of the result, as written.
    pub output: Option<Vec<Token>>,
    /// Shapes of the operands.
    pub shapes: Vec<Vec<usize>>,
    /// Sizes given for letters.
    pub given: Vec<(usize, usize)>,
    /// Contraction path, as lists of operands.
    pub path: Option<Vec<Vec<usize>>>,
    /// Memory budget in bytes.
    pub memory: Option<usize>,
    /// True if the path is optimised by annealing.
    pub anneal: bool,
    /// True for sizes up to `usize::MAX`: the terms are not summed one by one.
    pub absurd: bool,
    /// Seed of the elements.
    pub seed: u64,
    alphabet: [char; LETTERS],
}

impl Case {
    /// Decodes an einsum from bytes.
    pub fn read(input: &mut Input<'_>) -> Self {
        // Choices that consume few bytes are first, which keeps cases short.
        let absurd = input.once_in(8);
        let alphabet = input.pick(&ALPHABETS);
        let seed = (0..4).fold(1, |seed, _| seed << 8 | u64::from(input.byte()));
        let (budget, sixteenths) = (input.below(8), input.below(16));
        let memory = match budget {
            0 => Some(input.pick(&[0, 1, 8, usize::MAX, usize::MAX / 2, 1 << 40])),
            _ => None,
        };
        let anneal = input.once_in(64);
        let operands = 1 + input.below(5);
        let path = path(input, operands);
        let letters = 1 + input.below(LETTERS);
        let sizes: Vec<usize> = (0..letters + 2).map(|_| size(input, absurd)).collect();
        let (mut terms, mut shapes) = (Vec::new(), Vec::new());
        for _ in 0..operands {
            let (term, shape) = operand(input, letters, &sizes, absurd);
            terms.push(term);
            shapes.push(shape);
        }
        if input.once_in(128) {
            shapes.pop();
        }
        let output = result(input, letters, &terms);
        let mut given = Vec::new();
        for letter in 0..letters {
            let token = Token::Letter(letter);
            let unknown = output.as_ref().is_some_and(|output| output.contains(&token))
                && !terms.iter().flatten().any(|&other| other == token);
            if unknown != input.once_in(32) {
                let other = input.once_in(16);
                given.push((letter, if other { size(input, absurd) } else { sizes[letter] }));
            }
        }
        let mut case =
            Self { terms, output, shapes, given, path, memory, anneal, absurd, seed, alphabet };
        if budget > 4 {
            // A fraction of the required memory, so that labels are sliced.
            case.memory = case.plan().ok().map(|p| p.cost().bytes(8) as usize / 16 * sixteenths);
        }
        case
    }

    /// Formats the subscripts.
    pub fn text(&self) -> String {
        let term = |term: &Vec<Token>| -> String {
            let token = |token: &Token| match token {
                Token::Letter(letter) => self.alphabet[*letter].to_string(),
                Token::Dots => "...".to_string(),
            };
            term.iter().map(token).collect()
        };
        let inputs = self.terms.iter().map(term).collect::<Vec<_>>().join(",");
        match &self.output {
            Some(output) => format!("{inputs}->{}", term(output)),
            None => inputs,
        }
    }

    /// The subscripts with inserted characters.
    pub(super) fn noisy_text(&self, input: &mut Input<'_>) -> String {
        let mut text: Vec<char> = self.text().chars().collect();
        for _ in 0..1 + input.below(3) {
            text.insert(input.below(text.len() + 1), input.pick(&NOISE));
        }
        text.into_iter().collect()
    }

    fn einsum(&self) -> Result<Einsum, EinsumError> {
        let mut einsum = Einsum::new(&self.text())?;
        for &(letter, size) in &self.given {
            einsum = einsum.size(self.alphabet[letter], size);
        }
        if let Some(steps) = &self.path {
            einsum = einsum.path(Path::new(steps.clone()));
        }
        if let Some(bytes) = self.memory {
            einsum = einsum.memory(bytes);
        }
        Ok(if self.anneal { einsum.optimizer(Optimizer::TreeSa) } else { einsum })
    }

    /// Contraction plan for elements of eight bytes.
    ///
    /// # Errors
    /// Those of an invalid case.
    pub fn plan(&self) -> Result<Arc<Plan>, EinsumError> {
        let views: Vec<&[usize]> = self.shapes.iter().map(Vec::as_slice).collect();
        self.einsum()?.plan(&views, 8)
    }
}

fn size(input: &mut Input<'_>, absurd: bool) -> usize {
    if absurd && input.once_in(2) { input.pick(&ABSURD) } else { input.pick(&SMALL) }
}

/// Axes and shape of an operand; sizes usually match those of its labels.
fn operand(
    input: &mut Input<'_>,
    letters: usize,
    sizes: &[usize],
    absurd: bool,
) -> (Vec<Token>, Vec<usize>) {
    let (mut term, mut shape) = (Vec::new(), Vec::new());
    let dots = if input.once_in(8) { Some(input.below(4)) } else { None };
    for axis in 0..input.below(5) {
        if dots == Some(axis) {
            term.push(Token::Dots);
            for from_right in (0..input.below(3)).rev() {
                shape.push(if input.once_in(8) { 1 } else { sizes[letters + from_right] });
            }
        }
        let letter = input.below(letters);
        term.push(Token::Letter(letter));
        shape.push(match input.below(64) {
            0..5 => 1,
            5 => size(input, absurd),
            _ => sizes[letter],
        });
    }
    if input.once_in(128) {
        term.push(Token::Dots);
    }
    if input.once_in(128) {
        shape.push(2);
    }
    (term, shape)
}

fn result(input: &mut Input<'_>, letters: usize, terms: &[Vec<Token>]) -> Option<Vec<Token>> {
    if input.once_in(4) {
        return None;
    }
    let count = input.below(4);
    let mut output: Vec<Token> = (0..count).map(|_| Token::Letter(input.below(letters))).collect();
    if terms.iter().flatten().any(|token| *token == Token::Dots) != input.once_in(32) {
        output.insert(input.below(output.len() + 1), Token::Dots);
    }
    Some(output)
}

/// A path: none, one step for all operands, invalid steps, or pairs.
fn path(input: &mut Input<'_>, operands: usize) -> Option<Vec<Vec<usize>>> {
    match input.below(8) {
        0..3 => None,
        3 => Some(vec![(0..operands).collect()]),
        4 => {
            let mut step = || -> Vec<usize> {
                (0..input.below(4)).map(|_| input.pick(&[0, 1, 2, 7, usize::MAX])).collect()
            };
            let steps = [step(), step(), step(), step()];
            Some(steps[..input.below(5)].to_vec())
        }
        _ => {
            let pair = |left: usize| {
                let a = input.below(left);
                vec![a, (a + 1 + input.below(left - 1)) % left]
            };
            Some((2..=operands).rev().map(pair).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Random;

    #[test]
    fn right_and_wrong_cases_are_both_common() {
        let (cases, mut right, mut sliced) = (2000, 0, 0);
        for seed in 0..cases {
            let case = Case::read(&mut Input::new(&Random::new(seed).bytes(160)));
            let Some(_) = case.meaning() else { continue };
            right += 1;
            sliced += u64::from(case.plan().is_ok_and(|plan| !plan.sliced().is_empty()));
        }
        assert!(right > cases / 4 && right < cases * 9 / 10, "{right} of {cases}");
        assert!(sliced > cases / 50, "{sliced} of {cases}");
    }
}
