//! Definition of an einsum, independent of the crate under test.

use t4a_algebra::{Scalar, Semiring};

use super::case::{Case, LETTERS, Token};

/// A validated einsum with numbered labels.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// Labels of every operand: letters by index, then the axes of the ellipsis from the right.
    pub terms: Vec<Vec<usize>>,
    /// Labels of the result.
    pub output: Vec<usize>,
    /// Size of every label that is used.
    pub sizes: Vec<Option<usize>>,
}

fn elements(shape: &[usize]) -> Option<usize> {
    // At most 2⁴⁸ elements; sizes of 0 count as 1.
    let count = |all: usize, &n: &usize| all.checked_mul(n.max(1)).filter(|&all| all <= 1 << 48);
    let all = shape.iter().try_fold(1, count)?;
    Some(if shape.contains(&0) { 0 } else { all })
}

impl Case {
    /// Labels and sizes; `None` if the case is invalid.
    pub fn meaning(&self) -> Option<Meaning> {
        let twice = |term: &Vec<Token>| term.iter().filter(|t| **t == Token::Dots).count() > 1;
        if self.terms.len() != self.shapes.len() || self.terms.iter().chain(&self.output).any(twice)
        {
            return None;
        }
        let spell = |term: &[Token], width: usize| -> Vec<usize> {
            let axis = |token: &Token| match token {
                Token::Letter(letter) => vec![*letter],
                Token::Dots => (0..width).rev().map(|i| LETTERS + i).collect(),
            };
            term.iter().flat_map(axis).collect()
        };
        let (mut terms, mut widest, mut any_dots) = (Vec::new(), 0, false);
        let mut sizes: Vec<Option<usize>> = vec![None; LETTERS + 8];
        for (term, shape) in self.terms.iter().zip(&self.shapes) {
            let letters = term.iter().filter(|t| **t != Token::Dots).count();
            let dots = letters < term.len();
            any_dots |= dots;
            if shape.len() < letters || (shape.len() > letters && !dots) {
                return None;
            }
            elements(shape)?;
            widest = widest.max(shape.len() - letters);
            let labels = spell(term, shape.len() - letters);
            for (i, (&label, &n)) in labels.iter().zip(shape).enumerate() {
                let own = labels[..i].iter().position(|l| *l == label);
                if own.is_some_and(|other| shape[other] != n) {
                    return None;
                }
                let size = sizes[label].get_or_insert(1);
                if *size == 1 {
                    *size = n;
                } else if n != 1 && n != *size {
                    return None;
                }
            }
            terms.push(labels);
        }
        let output = match &self.output {
            Some(output) if widest > 0 && !output.contains(&Token::Dots) => return None,
            Some(output) => spell(output, widest),
            None => {
                let once = |l: &usize| terms.iter().flatten().filter(|x| *x == l).count() == 1;
                let dots = (0..if any_dots { widest } else { 0 }).rev().map(|i| LETTERS + i);
                dots.chain((0..LETTERS).filter(once)).collect()
            }
        };
        for (i, &(letter, size)) in self.given.iter().enumerate() {
            let kept = output.contains(&letter);
            let fits = match sizes[letter] {
                Some(known) => known == size || (known == 1 && kept),
                None => kept,
            };
            if !fits || self.given[..i].iter().any(|&(l, n)| l == letter && n != size) {
                return None;
            }
            sizes[letter] = Some(size);
        }
        let shape: Option<Vec<usize>> = output.iter().map(|&label| sizes[label]).collect();
        elements(&shape?)?;
        let mut left = terms.len();
        for step in self.path.iter().flatten() {
            let twice = (1..step.len()).any(|i| step[..i].contains(&step[i]));
            if step.is_empty() || twice || step.iter().any(|&i| i >= left) {
                return None;
            }
            left -= step.len() - 1;
        }
        (self.path.is_none() || left == 1).then_some(Meaning { terms, output, sizes })
    }
}

impl Meaning {
    fn size(&self, label: usize) -> usize {
        self.sizes[label].unwrap_or(1)
    }

    /// Shape of the result.
    pub fn shape(&self) -> Vec<usize> {
        self.output.iter().map(|&label| self.size(label)).collect()
    }
}

/// `⊕` over all assignments of the labels, one term at a time; the factors are multiplied from left to right.
pub fn naive<S: Semiring<T>, T: Scalar>(
    meaning: &Meaning,
    shapes: &[Vec<usize>],
    data: &[Vec<T>],
) -> Vec<T> {
    let shape = meaning.shape();
    let mut out = vec![S::ZERO; shape.iter().product()];
    // Labels of the operands, and output-only labels, along which the result is repeated.
    let mut labels: Vec<usize> =
        meaning.terms.iter().flatten().chain(&meaning.output).copied().collect();
    labels.sort_unstable();
    labels.dedup();
    let count: usize = labels.iter().map(|&label| meaning.size(label)).product();
    let mut values = vec![0; meaning.sizes.len()];
    for number in 0..count {
        let mut rest = number;
        for &label in labels.iter().rev() {
            values[label] = rest % meaning.size(label);
            rest /= meaning.size(label);
        }
        let at = |term: &[usize], shape: &[usize]| {
            let axes = term.iter().zip(shape);
            axes.fold(0, |at, (&label, &n)| at * n + if n == 1 { 0 } else { values[label] })
        };
        let factors = meaning.terms.iter().zip(shapes).zip(data);
        let factors = factors.map(|((term, shape), data)| data[at(term, shape)]);
        let to = &mut out[at(&meaning.output, &shape)];
        *to = S::add(*to, factors.fold(S::ONE, S::mul));
    }
    out
}
