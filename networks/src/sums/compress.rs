//! The two sweeps that make a chain of strings: to the right over suffixes, and back over the operators of
//! the bonds.

use hashbrown::HashMap;
use t4a_algebra::c64;
use t4a_structured::{Sector, StructuredError};

use super::OP;
use super::rank::{Row, factors};
use super::strings::{END, Strings};
use crate::error::Result;
use crate::sites::Sites;

/// One site of the operator: `left` state of a bond, operator of the basis, `right` state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) left: u32,
    pub(crate) basis: u32,
    pub(crate) right: u32,
    pub(crate) coefficient: c64,
}

/// Entries by site, and the charges of the states of each bond, those at the ends included.
#[derive(Debug)]
pub(crate) struct SparseChain<S> {
    pub(crate) sites: Vec<Vec<Entry>>,
    pub(crate) bonds: Vec<Vec<S>>,
}

/// Numbers things in the order in which they occur.
#[derive(Default)]
struct Numbers<K> {
    numbers: HashMap<K, u32>,
    keys: Vec<K>,
}

impl<K: Copy + Eq + std::hash::Hash> Numbers<K> {
    fn get(&mut self, key: K) -> u32 {
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        number
    }
}

/// Rows of a matrix of entries, sums of those that occur twice.
fn rows(count: usize, entries: impl Iterator<Item = (u32, u32, c64)>) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![Vec::new(); count];
    let mut at: HashMap<(u32, u32), usize> = HashMap::new();
    for (i, j, x) in entries {
        let row = &mut rows[i as usize];
        let k = *at.entry((i, j)).or_insert(row.len());
        if k == row.len() {
            row.push((j, x));
        } else {
            // Sums of numbers that cancel up to rounding are zero.
            let sum = row[k].1 + x;
            let cancelled = sum.norm() <= 1e-15 * (row[k].1.norm() + x.norm());
            row[k].1 = if cancelled { c64::ZERO } else { sum };
        }
    }
    rows.iter_mut().for_each(|row| row.retain(|(_, x)| *x != c64::ZERO));
    rows
}

/// States of each bond are operators on its left that are linearly independent; the rest of the sum is a combination
/// of suffixes for each.
pub(crate) fn to_right<S: Sector>(
    sites: &Sites<S>,
    strings: &Strings<S>,
    charge: S,
) -> Result<SparseChain<S>> {
    let n = sites.len();
    let mut chain = SparseChain { sites: Vec::new(), bonds: vec![vec![S::TRIVIAL]] };
    let mut rest: Vec<(u32, u32, c64)> =
        strings.terms.iter().map(|&(string, x)| (0, string, x)).collect();
    for at in 0..n {
        let symbols = &strings.symbols[strings.kinds[at]];
        let (mut left, mut right) = (Numbers::<(u32, u32)>::default(), Numbers::<u32>::default());
        let mut entries = Vec::with_capacity(rest.len());
        for &(state, string, x) in &rest {
            let suffix = strings.suffixes[string as usize];
            let here = string != END && suffix.site as usize == at;
            let (symbol, behind) = if here { (suffix.symbol, suffix.rest) } else { (0, string) };
            for &(basis, factor) in &symbols.combinations[symbol as usize] {
                entries.push((left.get((state, basis)), right.get(behind), x * factor));
            }
        }
        let rows = rows(left.keys.len(), entries.into_iter());
        let found = factors(&rows, right.keys.len());
        let bond = chain.bonds[at].clone();
        let mut charges = Vec::new();
        for &pivot in &found.pivots {
            let (state, basis) = left.keys[pivot as usize];
            let (a, b) = (bond[state as usize], symbols.basis(basis).0);
            let overflow =
                || StructuredError::ChargeOverflow { op: OP, sectors: format!("{a} and {b}") };
            charges.push(a.fuse(b).ok_or_else(overflow)?);
        }
        let entry = |&(row, right, coefficient): &(u32, u32, c64)| {
            let (left, basis) = left.keys[row as usize];
            Entry { left, basis, right, coefficient }
        };
        chain.sites.push(found.entries.iter().map(entry).collect());
        chain.bonds.push(charges);
        rest.clear();
        for (k, row) in found.rows.iter().enumerate() {
            rest.extend(row.iter().map(|&(j, x)| (k as u32, right.keys[j as usize], x)));
        }
    }
    if rest.is_empty() {
        // The sum is zero: bonds of one state without an entry.
        chain.sites.iter_mut().for_each(Vec::clear);
        chain.bonds[1..n].iter_mut().for_each(|bond| *bond = vec![S::TRIVIAL]);
        chain.bonds[n] = vec![charge];
        return Ok(chain);
    }
    // One string is left, the end.
    let factor = rest[0].2;
    chain.sites[n - 1].iter_mut().for_each(|entry| entry.coefficient *= factor);
    Ok(chain)
}

/// States of each bond whose operators on the right are linearly dependent are combined. With those on the left
/// independent, the bond dimension is the rank of the operator.
pub(crate) fn to_left<S: Sector>(chain: &mut SparseChain<S>) {
    for at in (1..chain.sites.len()).rev() {
        let mut right = Numbers::<(u32, u32)>::default();
        let entries: Vec<(u32, u32, c64)> = chain.sites[at]
            .iter()
            .map(|entry| (entry.left, right.get((entry.basis, entry.right)), entry.coefficient))
            .collect();
        if entries.is_empty() {
            return;
        }
        let rows = rows(chain.bonds[at].len(), entries.into_iter());
        let found = factors(&rows, right.keys.len());
        let mut kept = Vec::new();
        for (k, row) in found.rows.iter().enumerate() {
            kept.extend(row.iter().map(|&(j, coefficient)| {
                let (basis, to) = right.keys[j as usize];
                Entry { left: k as u32, basis, right: to, coefficient }
            }));
        }
        chain.sites[at] = kept;
        chain.bonds[at] = found.pivots.iter().map(|&k| chain.bonds[at][k as usize]).collect();
        // The combinations go to the left.
        let mut combined: Vec<Vec<(u32, c64)>> = vec![Vec::new(); rows.len()];
        for &(row, place, x) in &found.entries {
            combined[row as usize].push((place, x));
        }
        let mut sums: Numbers<(u32, u32, u32)> = Numbers::default();
        let mut values: Vec<c64> = Vec::new();
        for entry in &chain.sites[at - 1] {
            for &(right, x) in &combined[entry.right as usize] {
                let k = sums.get((entry.left, entry.basis, right)) as usize;
                values.resize(sums.keys.len(), c64::ZERO);
                values[k] += entry.coefficient * x;
            }
        }
        let all = sums.keys.iter().zip(values).filter(|(_, x)| *x != c64::ZERO);
        let entry = |(&(left, basis, right), coefficient): (&(u32, u32, u32), c64)| Entry {
            left,
            basis,
            right,
            coefficient,
        };
        chain.sites[at - 1] = all.map(entry).collect();
    }
}
