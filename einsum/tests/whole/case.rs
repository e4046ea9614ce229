//! Whole einsums from bytes: subscripts, shapes, sizes, path, budget, and what they mean.
//!
//! [`case`] is a function of its bytes, so that a fuzzer can drive it; [`Case::meaning`] is the
//! definition of an einsum, written without the crate: what is wrong with a case, and sizes and
//! labels of one that is right. [`naive`] adds its terms one by one.

use t4a_algebra::{Scalar, Semiring};

/// Labels are letters from `a` on, then axes under the ellipsis, counted from the right.
const LETTERS: usize = 6;

/// One axis of a term, or the ellipsis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token {
    Letter(usize),
    Dots,
}

/// An einsum that may be wrong in any way.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) terms: Vec<Vec<Token>>,
    pub(crate) output: Option<Vec<Token>>,
    pub(crate) shapes: Vec<Vec<usize>>,
    /// Sizes given for letters.
    pub(crate) given: Vec<(usize, usize)>,
    pub(crate) path: Option<Vec<Vec<usize>>>,
    pub(crate) memory: Option<usize>,
    pub(crate) anneal: bool,
    /// Sizes up to `usize::MAX`: nothing to be contracted term by term.
    pub(crate) absurd: bool,
    /// Chooses the elements.
    pub(crate) seed: u64,
}

/// Labels by number.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    pub(crate) terms: Vec<Vec<usize>>,
    pub(crate) output: Vec<usize>,
    /// Size of every label that occurs.
    pub(crate) sizes: Vec<Option<usize>>,
}

/// Random numbers (Knuth's MMIX generator).
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    pub(crate) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Bytes for [`case`] without a fuzzer.
pub(crate) fn bytes(seed: u64) -> Vec<u8> {
    let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
    (0..160).map(|_| random.next() as u8).collect()
}

/// Bytes one by one, and zeros behind the last.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.0.next().map_or(0, |&byte| byte as usize % n)
    }

    /// Rarely, once in `n`.
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

const SMALL: [usize; 16] = [2, 3, 2, 1, 3, 2, 2, 3, 1, 2, 3, 2, 1, 2, 2, 0];
const ABSURD: [usize; 12] = [
    2,
    1,
    usize::MAX,
    1 << 32,
    0,
    isize::MAX as usize,
    3,
    1 << 62,
    1 << 20,
    usize::MAX - 1,
    1 << 63,
    1 << 31,
];

/// The einsum that some bytes stand for.
pub(crate) fn case(bytes: &[u8]) -> Case {
    let mut bytes = Bytes(bytes.iter());
    let absurd = bytes.one_in(8);
    let letters = 1 + bytes.below(LETTERS);
    let size = |bytes: &mut Bytes<'_>| bytes.of(if absurd { &ABSURD[..] } else { &SMALL });
    let sizes: Vec<usize> = (0..letters + 2).map(|_| size(&mut bytes)).collect();
    let (mut terms, mut shapes) = (Vec::new(), Vec::new());
    for _ in 0..1 + bytes.below(5) {
        let (mut term, mut shape) = (Vec::new(), Vec::new());
        let dots = if bytes.one_in(8) { Some(bytes.below(4)) } else { None };
        for axis in 0..bytes.below(5) {
            if dots == Some(axis) {
                term.push(Token::Dots);
                for from_right in (0..bytes.below(3)).rev() {
                    shape.push(if bytes.one_in(8) { 1 } else { sizes[letters + from_right] });
                }
            }
            let letter = bytes.below(letters);
            term.push(Token::Letter(letter));
            shape.push(match bytes.below(64) {
                0..5 => 1,
                5 => size(&mut bytes),
                _ => sizes[letter],
            });
        }
        if bytes.one_in(128) {
            term.push(Token::Dots);
        }
        if bytes.one_in(128) {
            shape.push(2);
        }
        terms.push(term);
        shapes.push(shape);
    }
    if bytes.one_in(128) {
        shapes.pop();
    }
    let any_dots = terms.iter().flatten().any(|token| *token == Token::Dots);
    let output = if bytes.below(4) == 0 {
        None
    } else {
        let mut output: Vec<Token> =
            (0..bytes.below(4)).map(|_| Token::Letter(bytes.below(letters))).collect();
        if any_dots != bytes.one_in(32) {
            output.insert(bytes.below(output.len() + 1), Token::Dots);
        }
        Some(output)
    };
    let named = |letter: usize| terms.iter().flatten().any(|&t| t == Token::Letter(letter));
    let mut given = Vec::new();
    for letter in 0..letters {
        let unknown =
            output.as_ref().is_some_and(|o| o.contains(&Token::Letter(letter))) && !named(letter);
        if unknown != bytes.one_in(32) {
            given.push((letter, if bytes.one_in(16) { size(&mut bytes) } else { sizes[letter] }));
        }
    }
    let path = match bytes.below(8) {
        0..3 => None,
        3 => Some(vec![(0..terms.len()).collect()]),
        4 => {
            let number = |bytes: &mut Bytes<'_>| bytes.of(&[0, 1, 2, 7, usize::MAX]);
            let step = |bytes: &mut Bytes<'_>| (0..bytes.below(4)).map(|_| number(bytes)).collect();
            Some((0..bytes.below(5)).map(|_| step(&mut bytes)).collect())
        }
        _ => {
            let mut left = terms.len();
            let mut steps = Vec::new();
            while left > 1 {
                let a = bytes.below(left);
                let b = (a + 1 + bytes.below(left - 1)) % left;
                steps.push(vec![a, b]);
                left -= 1;
            }
            Some(steps)
        }
    };
    let memory = match bytes.below(8) {
        0..4 => None,
        4 => Some(bytes.of(&[0, 1, 8, usize::MAX, usize::MAX / 2, 1 << 40])),
        _ => Some(8 * bytes.below(64)),
    };
    let anneal = bytes.one_in(64);
    let seed = (0..4).fold(1, |seed, _| seed << 8 | bytes.below(256) as u64);
    Case { terms, output, shapes, given, path, memory, anneal, absurd, seed }
}

fn elements(shape: &[usize]) -> Option<usize> {
    // At most 2⁴⁸, counting what is not 0 even if something is.
    let count = |all: usize, &n: &usize| all.checked_mul(n.max(1)).filter(|&all| all <= 1 << 48);
    let all = shape.iter().try_fold(1, count)?;
    Some(if shape.contains(&0) { 0 } else { all })
}

impl Case {
    /// The subscripts as text.
    pub(crate) fn text(&self) -> String {
        let term = |term: &Vec<Token>| -> String {
            let token = |token: &Token| match token {
                Token::Letter(letter) => ((b'a' + *letter as u8) as char).to_string(),
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

    /// Labels and sizes, if nothing is wrong.
    pub(crate) fn meaning(&self) -> Option<Meaning> {
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
    pub(crate) fn shape(&self) -> Vec<usize> {
        self.output.iter().map(|&label| self.size(label)).collect()
    }
}

/// `⊕` over every assignment of the labels, one term at a time; the factors are multiplied from the
/// left.
pub(crate) fn naive<S: Semiring<T>, T: Scalar>(
    meaning: &Meaning,
    shapes: &[Vec<usize>],
    data: &[Vec<T>],
) -> Vec<T> {
    let shape = meaning.shape();
    let mut out = vec![S::ZERO; shape.iter().product()];
    // Labels of an operand, and those that repeat the result.
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
