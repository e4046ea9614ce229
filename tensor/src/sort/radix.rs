//! Sorts words: by comparison for short lists, else by radix sort.
//!
//! The radix sort (least significant digit first) is stable, so the index below a tagged key needs no pass: it is
//! sorted already. Digits that are equal in all words are skipped.

use std::slice::IterMut;

use super::keys::RadixWord;
use crate::error::Result;
use crate::loops::parallel;
use crate::storage::collect;

/// Number of words per pass above which the radix sort is faster than comparisons (bench `index`, rows `sort`).
const DIGITS_FROM: usize = 160;

/// Number of words whose positions are computed before any of them is stored: a table load after a store to an unknown
/// address would stall, which dominates the cost (bench `backend`, row `sort 1024² rows`).
const GROUP: usize = 8;

/// Number of passes that sort words above a bit, and number of spare words that they need.
fn passes<W: RadixWord>(len: usize, low: u32) -> (usize, usize) {
    let passes = (W::BITS - low).div_ceil(8) as usize;
    (passes, if len < DIGITS_FROM * passes { 0 } else { len })
}

/// Number of spare words that [`sort`] needs for up to `len` words.
pub(super) fn spare<W: RadixWord>(len: usize, low: u32) -> usize {
    passes::<W>(len, low).1
}

/// Sorts the words; the result is in one of the two slices. Bits below `low` are in ascending order already where the
/// bits above agree; `other` has at least [`spare`] words.
pub(super) fn sort<'a, W: RadixWord>(
    words: &'a mut [W],
    other: &'a mut [W],
    low: u32,
    threads: bool,
) -> Result<&'a mut [W]> {
    let (passes, spare) = passes::<W>(words.len(), low);
    if spare == 0 {
        words.sort_unstable();
        return Ok(words);
    }
    let parts = if threads && parallel::worthwhile(words.len() / 2, 1) {
        parallel::threads().min(16)
    } else {
        1
    };
    let mut tables = collect("sort", parts, std::iter::repeat_n([0; 256], parts))?;
    let (mut from, mut to) = (words, &mut other[..spare]);
    for pass in 0..passes {
        if distribute(from, to, low + 8 * pass as u32, &mut tables)? {
            std::mem::swap(&mut from, &mut to);
        }
    }
    Ok(from)
}

/// Histogram of the digits.
type Digits = [usize; 256];

/// Stable distribution by one digit, with a table for every part of the words. Returns `false` without any work if all
/// words have the same digit.
fn distribute<W: RadixWord>(
    from: &[W],
    to: &mut [W],
    shift: u32,
    tables: &mut [Digits],
) -> Result<bool> {
    let parts = tables.len();
    let len = from.len().div_ceil(parts);
    let part = |p: usize| &from[(p * len).min(from.len())..((p + 1) * len).min(from.len())];
    parallel::for_each_mut(tables, parts > 1, |p, table| count(part(p), shift, table));
    let common = from[0].digit(shift);
    if tables.iter().map(|table| table[common]).sum::<usize>() == from.len() {
        return Ok(false);
    }
    if let [table] = tables {
        scatter(from, shift, table, to);
        return Ok(true);
    }
    // The result consists of runs of words of equal digits, each divided among the parts.
    let none = || std::array::from_fn(|_| [].iter_mut());
    let mut runs: Vec<[IterMut<'_, W>; 256]> = collect("sort", parts, (0..parts).map(|_| none()))?;
    let mut rest = to;
    for digit in 0..256 {
        for (runs, table) in runs.iter_mut().zip(&*tables) {
            let (run, others) = std::mem::take(&mut rest).split_at_mut(table[digit]);
            runs[digit] = run.iter_mut();
            rest = others;
        }
    }
    parallel::for_each_mut(&mut runs, true, |p, runs| scatter_into(part(p), shift, runs));
    Ok(true)
}

fn count<W: RadixWord>(words: &[W], shift: u32, table: &mut Digits) {
    table.fill(0);
    for word in words {
        table[word.digit(shift)] += 1;
    }
}

/// Stores every word after those of lower digits and earlier ones of the same digit.
fn scatter<W: RadixWord>(words: &[W], shift: u32, table: &mut Digits, to: &mut [W]) {
    let mut next = 0;
    for count in table.iter_mut() {
        next += std::mem::replace(count, next);
    }
    let mut take = |word: W| {
        let next = &mut table[word.digit(shift)];
        *next += 1;
        *next - 1
    };
    let (groups, rest) = words.as_chunks::<GROUP>();
    for group in groups {
        for (place, &word) in group.map(&mut take).into_iter().zip(group) {
            to[place] = word;
        }
    }
    for &word in rest {
        to[take(word)] = word;
    }
}

/// Stores every word in the run of its digit.
fn scatter_into<W: RadixWord>(words: &[W], shift: u32, runs: &mut [IterMut<'_, W>; 256]) {
    let mut take = |word: W| runs[word.digit(shift)].next();
    let (groups, rest) = words.as_chunks::<GROUP>();
    for group in groups {
        for (place, &word) in group.map(&mut take).into_iter().zip(group) {
            if let Some(place) = place {
                *place = word;
            }
        }
    }
    for &word in rest {
        if let Some(place) = take(word) {
            *place = word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Mix;

    #[test]
    fn digits_and_comparisons_agree() {
        let mut rng = Mix(3);
        for len in [1, 100, 5_000, 300_000] {
            for mask in [u64::MAX, 0xff00, 0, 0xffff_ffff_0000_0000] {
                let mut words: Vec<u64> = (0..len).map(|_| rng.next() & mask).collect();
                let mut want = words.clone();
                want.sort();
                let mut other = vec![0; spare::<u64>(len, 0)];
                let sorted = sort(&mut words, &mut other, 0, true).unwrap();
                assert!(sorted == want, "{len} {mask:x}");
            }
        }
    }
}
