//! Terms as strings: one operator of one charge per site, ascending, without identities.
//!
//! ```text
//! c†₃ c₀   →   sign · (c F)₀ F₁ F₂ (c†)₃
//! string   →   (site, operator) → (site, operator) → … → end: a suffix has one number, whatever stands before it
//! ```

use hashbrown::HashMap;
use t4a_algebra::c64;
use t4a_structured::{Sector, StructuredError};

use super::symbols::Symbols;
use super::{OP, Sum, Term};
use crate::error::{NetworksError, Result};
use crate::sites::{LocalMatrix, Sites};

/// Parts of one term of one charge per site.
const MOST_PARTS: usize = 1 << 16;
/// Coefficients below this part of the largest are rounding errors of parts that cancel.
const CANCELLED: f64 = 1e-13;

/// The end of a string.
pub(crate) const END: u32 = 0;

/// The rest of a string from an operator on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Suffix {
    pub(crate) site: u32,
    pub(crate) symbol: u32,
    pub(crate) rest: u32,
}

/// A sum as strings with coefficients.
#[derive(Debug)]
pub(crate) struct Strings<S> {
    /// By number, the first of which is the end.
    pub(crate) suffixes: Vec<Suffix>,
    numbers: HashMap<Suffix, u32>,
    /// Of each kind of site, and the kind of each site.
    pub(crate) symbols: Vec<Symbols<S>>,
    pub(crate) kinds: Vec<usize>,
    /// Strings and coefficients, none twice.
    pub(crate) terms: Vec<(u32, c64)>,
}

/// The matrices of a term by ascending site.
struct Product {
    coefficient: c64,
    /// Matrix and number of fermion operators, modulo 2, of the sites that the term has.
    sites: Vec<(usize, LocalMatrix, bool)>,
    odd: bool,
}

impl<S: Sector> Strings<S> {
    pub(crate) fn new(sum: &Sum<S>, charge: S, odd_allowed: bool) -> Result<Self> {
        let end = Suffix { site: u32::MAX, symbol: 0, rest: END };
        let (kinds, symbols) = kinds(&sum.sites);
        let mut strings = Self {
            suffixes: vec![end],
            numbers: HashMap::new(),
            symbols,
            kinds,
            terms: Vec::new(),
        };
        let mut found: HashMap<u32, (c64, S, usize)> = HashMap::new();
        let mut order: Vec<u32> = Vec::new();
        let mut parity = (!odd_allowed).then_some(false);
        for (number, term) in sum.terms.iter().enumerate() {
            term.check_finite()?;
            let product = product(&sum.sites, term)?;
            if *parity.get_or_insert(product.odd) != product.odd {
                let [given, required] = if product.odd { ["odd", "even"] } else { ["even", "odd"] };
                let term = term.text();
                return Err(NetworksError::Parity { op: OP, term, given, required });
            }
            for (string, coefficient, charge) in strings.parts(&sum.sites, term, product)? {
                let entry = found.entry(string).or_insert_with(|| {
                    order.push(string);
                    (c64::ZERO, charge, number)
                });
                entry.0 += coefficient;
            }
        }
        let largest = sum.terms.iter().map(|term| term.coefficient.norm()).fold(0.0, f64::max);
        for string in order {
            let (coefficient, given, number) = found[&string];
            if coefficient.norm() <= CANCELLED * largest {
                continue;
            }
            if given != charge {
                return Err(NetworksError::Charge {
                    op: OP,
                    what: format!("a part of {}", sum.terms[number].text()),
                    given: given.to_string(),
                    required: charge.to_string(),
                });
            }
            strings.terms.push((string, coefficient));
        }
        Ok(strings)
    }

    fn number(&mut self, suffix: Suffix) -> u32 {
        let next = self.suffixes.len() as u32;
        let number = *self.numbers.entry(suffix).or_insert(next);
        if number == next {
            self.suffixes.push(suffix);
        }
        number
    }

    /// The strings of a product with their coefficients and charges.
    fn parts(
        &mut self,
        sites: &Sites<S>,
        term: &Term,
        product: Product,
    ) -> Result<Vec<(u32, c64, S)>> {
        let mut parts = vec![(END, product.coefficient, S::TRIVIAL)];
        for (at, matrix, _) in product.sites.into_iter().rev() {
            let site = sites.at(OP, at)?;
            let mut longer = Vec::new();
            for (charge, part) in site.components(&matrix)? {
                let symbols = &mut self.symbols[self.kinds[at]];
                let Some((symbol, factor)) = symbols.intern(charge, &part) else { continue };
                for &(rest, coefficient, total) in &parts {
                    let overflow = || StructuredError::ChargeOverflow {
                        op: OP,
                        sectors: format!("{charge} and {total}"),
                    };
                    let total = charge.fuse(total).ok_or_else(overflow)?;
                    let string = match symbol {
                        0 => rest,
                        _ => self.number(Suffix { site: at as u32, symbol, rest }),
                    };
                    longer.push((string, coefficient * factor, total));
                }
            }
            parts = longer;
            if parts.len() > MOST_PARTS {
                let (what, limit) = ("parts of one charge of a term", MOST_PARTS);
                return Err(NetworksError::TooLarge { op: OP, what, limit });
            }
        }
        debug_assert!(!term.factors.is_empty() || parts.len() == 1);
        Ok(parts)
    }
}

/// Kinds of sites: those that are shared are one.
fn kinds<S: Sector>(sites: &Sites<S>) -> (Vec<usize>, Vec<Symbols<S>>) {
    let (mut seen, mut symbols): (Vec<*const _>, Vec<_>) = (Vec::new(), Vec::new());
    let mut kind = |site: &std::sync::Arc<crate::sites::Site<S>>| {
        let pointer = std::sync::Arc::as_ptr(site);
        seen.iter().position(|&other| other == pointer).unwrap_or_else(|| {
            seen.push(pointer);
            symbols.push(Symbols::new(site.dim()));
            seen.len() - 1
        })
    };
    let kinds = sites.shared().iter().map(&mut kind).collect();
    (kinds, symbols)
}

/// A term sorted by sites, with the sign of the exchanges and the operators `F` between fermion operators.
fn product<S: Sector>(sites: &Sites<S>, term: &Term) -> Result<Product> {
    let mut factors = Vec::with_capacity(term.factors.len());
    for (name, at) in &term.factors {
        let site = sites.at(OP, *at)?;
        let matrix = site.matrix(name).ok_or_else(|| site.unknown(OP, *at, name))?;
        let odd = site.parity(matrix).unwrap_or(false);
        factors.push((*at, matrix.clone(), odd));
    }
    if term.adjoint {
        factors.reverse();
        factors.iter_mut().for_each(|(_, matrix, _)| *matrix = matrix.adjoint());
    }
    let mut negative = false;
    for (i, (a, _, odd)) in factors.iter().enumerate() {
        let passed = factors[i + 1..].iter().filter(|(b, _, other)| a > b && *odd && *other);
        negative ^= passed.count() % 2 == 1;
    }
    factors.sort_by_key(|&(at, ..)| at);
    let mut own: Vec<(usize, LocalMatrix, bool)> = Vec::new();
    for (at, matrix, odd) in factors {
        match own.last_mut() {
            Some(last) if last.0 == at => *last = (at, last.1.mul(&matrix), last.2 != odd),
            _ => own.push((at, matrix, odd)),
        }
    }
    let odd = own.iter().fold(false, |sum, &(.., odd)| sum != odd);
    // From the left on: whether the operators behind a site are odd together.
    let (mut behind, mut next, mut all) = (odd, own.into_iter().peekable(), Vec::new());
    let mut at = 0;
    while let Some(&(first, ..)) = next.peek() {
        let present = (first == at).then(|| next.next()).flatten();
        behind ^= present.as_ref().is_some_and(|&(.., odd)| odd);
        let site = sites.at(OP, at)?;
        let string = behind && site.has_fermions();
        let matrix = match (present, string) {
            (Some((_, matrix, _)), true) => Some(matrix.mul(&site.own("F"))),
            (Some((_, matrix, _)), false) => Some(matrix),
            (None, true) => Some(site.own("F")),
            (None, false) => None,
        };
        all.extend(matrix.map(|matrix| (at, matrix, false)));
        at += 1;
    }
    let sign = if negative { -1.0 } else { 1.0 };
    Ok(Product { coefficient: term.coefficient * sign, sites: all, odd })
}
