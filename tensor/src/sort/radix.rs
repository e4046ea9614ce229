//! Sorts words: by comparison if they are few, else digit by digit.
//!
//! The digit sort (least significant first) is stable, so the index below a tagged key needs no
//! pass: it is in order from the start. Digits that are equal in all words cost nothing.

use std::mem::MaybeUninit;

use super::keys::Word;
use crate::error::Result;
use crate::loops::parallel::{self, SendPtr};
use crate::storage::Buffer;

/// Words per pass from which digits beat comparisons (bench `index`, rows `sort`).
const DIGITS_FROM: usize = 160;
/// Words from which one sort is worth several threads.
const PARALLEL_FROM: usize = 1 << 17;

/// Words whose places are found before any of them is stored: a table entry after a store to an
/// unknown place has to wait for it, which takes longer than all the rest (bench `backend`, row
/// `sort 1024² rows`).
const GROUP: usize = 8;

/// Uninitialised memory for words.
pub(super) struct Scratch<W> {
    buffer: Buffer,
    len: usize,
    word: std::marker::PhantomData<W>,
}

impl<W: Word> Scratch<W> {
    pub(super) fn new(len: usize) -> Result<Self> {
        let buffer = Buffer::alloc(len.saturating_mul(size_of::<W>()))?;
        Ok(Self { buffer, len, word: std::marker::PhantomData })
    }

    pub(super) fn words(&mut self) -> &mut [MaybeUninit<W>] {
        let Some(ptr) = self.buffer.as_mut_ptr() else { return &mut [] };
        // SAFETY: a fresh block of `len` words, aligned to at least 16 bytes, with one owner.
        unsafe { std::slice::from_raw_parts_mut(ptr.cast(), self.len) }
    }
}

/// Sorts words whose bits below `low` are in ascending order already wherever the bits above agree.
pub(super) fn sort<W: Word>(words: &mut [W], low: u32, threads: bool) -> Result<()> {
    let passes = (W::BITS - low).div_ceil(8) as usize;
    if words.len() < DIGITS_FROM * passes {
        words.sort_unstable();
        return Ok(());
    }
    let mut scratch = Scratch::<W>::new(words.len())?;
    let spare = scratch.words();
    // SAFETY: `spare` is written before it is read, pass by pass.
    let spare = unsafe { std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), words.len()) };
    let parts =
        if threads && words.len() >= PARALLEL_FROM { parallel::threads().min(16) } else { 1 };
    let mut counts = vec![[0; 256]; parts];
    let (mut from, mut to) = (words, spare);
    let mut swapped = false;
    for pass in 0..passes {
        if distribute(from, to, low + 8 * pass as u32, &mut counts) {
            std::mem::swap(&mut from, &mut to);
            swapped = !swapped;
        }
    }
    if swapped {
        to.copy_from_slice(from);
    }
    Ok(())
}

/// For every digit, how many words have it; then where the next of them goes.
type Digits = [usize; 256];

/// Stable distribution by one digit, with a table for every part of the words. Does nothing and
/// returns `false` if all words have the same digit.
fn distribute<W: Word>(from: &[W], to: &mut [W], shift: u32, tables: &mut [Digits]) -> bool {
    let parts = tables.len();
    let len = from.len().div_ceil(parts);
    let part = |p: usize| &from[(p * len).min(from.len())..((p + 1) * len).min(from.len())];
    let slots = SendPtr(tables.as_mut_ptr());
    parallel::for_each(parts, parts > 1, &|p| {
        // SAFETY: one table per part.
        count(part(p), shift, unsafe { &mut *slots.get().add(p) });
    });
    let common = from[0].digit(shift);
    if tables.iter().map(|table| table[common]).sum::<usize>() == from.len() {
        return false;
    }
    // Where each part writes each digit.
    let mut next = 0;
    for digit in 0..256 {
        for table in tables.iter_mut() {
            next += std::mem::replace(&mut table[digit], next);
        }
    }
    debug_assert_eq!(next, from.len());
    let slots = SendPtr(tables.as_mut_ptr());
    let dst = SendPtr(to.as_mut_ptr());
    parallel::for_each(parts, parts > 1, &|p| {
        // SAFETY: one table per part; the counts add up to the length, so that every word has a
        // place of its own inside of `to`.
        unsafe { scatter(part(p), shift, &mut *slots.get().add(p), dst.get()) };
    });
    true
}

fn count<W: Word>(words: &[W], shift: u32, table: &mut Digits) {
    table.fill(0);
    for word in words {
        table[word.digit(shift)] += 1;
    }
}

/// # Safety
/// Every place that the table comes to is inside of `dst`.
unsafe fn scatter<W: Word>(words: &[W], shift: u32, next: &mut Digits, dst: *mut W) {
    let mut take = |word: W| {
        let next = &mut next[word.digit(shift)];
        *next += 1;
        *next - 1
    };
    let groups = words.chunks_exact(GROUP);
    let rest = groups.remainder();
    // SAFETY: the caller's promise.
    unsafe {
        for group in groups {
            let places: [usize; GROUP] = std::array::from_fn(|i| take(group[i]));
            for (&word, place) in group.iter().zip(places) {
                *dst.add(place) = word;
            }
        }
        for &word in rest {
            *dst.add(take(word)) = word;
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
                sort(&mut words, 0, true).unwrap();
                assert!(words == want, "{len} {mask:x}");
            }
        }
    }
}
