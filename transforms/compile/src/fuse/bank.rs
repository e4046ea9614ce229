//! Registers of a block.

use t4a_algebra::Scalar;

use super::plan::{Arg, Port};
use super::source::Source;

/// Bytes of a cache line, on which registers begin: vectors that cross one cost twice.
const LINE: usize = 64;

/// Registers: those of results, then one per input that is not read where it lies.
pub(super) struct Bank<T> {
    /// Owns the registers; all access is by `base`.
    _memory: Vec<T>,
    base: *mut T,
    lanes: usize,
    /// The register of each input that has one.
    of: Vec<Option<usize>>,
}

impl<T: Scalar> Bank<T> {
    /// Registers of `lanes` elements and more.
    pub(super) fn new(
        results: usize,
        sources: &[Option<Source<'_, T>>],
        lanes: usize,
        zero: T,
    ) -> Self {
        let mut count = results;
        let of = sources.iter().map(|source| match source {
            None | Some(Source::Each(_) | Source::Row(_)) => None,
            Some(_) => {
                count += 1;
                Some(count - 1)
            }
        });
        let of: Vec<Option<usize>> = of.collect();
        let lanes = lanes.next_multiple_of(LINE);
        let mut memory = vec![zero; count * lanes + LINE];
        let offset = memory.as_ptr().align_offset(LINE).min(LINE);
        // SAFETY: the memory has a line more than the registers.
        let base = unsafe { memory.as_mut_ptr().add(offset) };
        let mut bank = Self { _memory: memory, base, lanes, of };
        for (i, source) in sources.iter().enumerate() {
            if let (Some(source @ Source::Uniform(_)), Some(r)) = (source, bank.of[i]) {
                source.load(0, bank.register(r));
            }
        }
        bank
    }

    /// Where a register begins.
    pub(super) fn at(&self, r: usize) -> *mut T {
        self.base.wrapping_add(r * self.lanes)
    }

    /// The register of an input that is not read where it lies.
    pub(super) fn input(&self, i: usize) -> Option<*mut T> {
        self.of[i].map(|r| self.at(r))
    }

    fn register(&mut self, r: usize) -> &mut [T] {
        // SAFETY: a register of the memory, which is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.at(r), self.lanes) }
    }

    /// Loads what moves.
    pub(super) fn load(
        &mut self,
        sources: &[Option<Source<'_, T>>],
        inputs: &[Port],
        rows: usize,
        at: usize,
        n: usize,
    ) {
        for (i, (source, port)) in sources.iter().zip(inputs).enumerate() {
            if let (Some(source @ Source::Walk { .. }), Some(r)) = (source, self.of[i]) {
                let n = if port.row { 1 } else { n };
                source.load(at * n, &mut self.register(r)[..rows * n]);
            }
        }
    }

    /// The register for a result, and the others as operands.
    pub(super) fn split(&mut self, out: usize, len: usize) -> (&mut [T], Others<'_, T>) {
        let own = self.at(out);
        // SAFETY: as in `register`; the others do not give it away.
        let own = unsafe { std::slice::from_raw_parts_mut(own, len.min(self.lanes)) };
        (own, Others { bank: self, out })
    }

    pub(super) fn others(&self) -> Others<'_, T> {
        Others { bank: self, out: usize::MAX }
    }
}

/// Registers to read: all but one.
pub(super) struct Others<'a, T> {
    bank: &'a Bank<T>,
    out: usize,
}

impl<'a, T: Scalar> Others<'a, T> {
    /// An operand: `len` elements from `lo` on, which are the first ones of a register.
    pub(super) fn get(
        &self,
        arg: Arg,
        sources: &[Option<Source<'a, T>>],
        lo: usize,
        len: usize,
    ) -> &'a [T] {
        let r = match arg {
            Arg::Register(r) => r,
            Arg::Input(i) => match (&sources[i], self.bank.of[i]) {
                (Some(Source::Each(x)), _) => return &x[lo..lo + len],
                (_, Some(r)) => r,
                _ => unreachable!("an input is of the kind that is asked for"),
            },
        };
        assert!(r != self.out && len <= self.bank.lanes, "a result has a register of its own");
        // SAFETY: a register of the memory, which is borrowed, and not the one that is written.
        unsafe { std::slice::from_raw_parts(self.bank.at(r), len) }
    }
}
