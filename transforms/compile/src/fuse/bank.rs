//! Registers of a block.

use t4a_algebra::Scalar;

use super::plan::{Arg, Port};
use super::run::Few;
use super::source::OperandAccess;

/// Cache line size in bytes. Registers are aligned to it: vectors that cross a line take two accesses.
const LINE: usize = 64;

/// Register file of a block: first the registers of results, then one per input that cannot be read in place.
pub(super) struct Bank<T> {
    /// Owns the memory; all access is through `base`.
    _memory: Vec<T>,
    base: *mut T,
    lanes: usize,
    /// Register of each input, if it has one.
    of: Few<Option<usize>>,
}

impl<T: Scalar> Bank<T> {
    /// Allocates registers of at least `lanes` elements.
    pub(super) fn new(
        results: usize,
        sources: &[Option<OperandAccess<'_, T>>],
        lanes: usize,
        zero: T,
    ) -> Self {
        let mut count = results;
        let of = sources.iter().map(|source| match source {
            None | Some(OperandAccess::Each(_) | OperandAccess::Row(_)) => None,
            Some(_) => {
                count += 1;
                Some(count - 1)
            }
        });
        let of: Few<Option<usize>> = of.collect();
        let lanes = lanes.next_multiple_of(LINE);
        if count == 0 {
            let memory = Vec::new();
            return Self { _memory: memory, base: std::ptr::null_mut(), lanes, of };
        }
        let mut memory = vec![zero; count * lanes + LINE];
        let offset = memory.as_ptr().align_offset(LINE).min(LINE);
        // SAFETY: the memory has `LINE` elements more than the registers, and `offset` is at most `LINE`.
        let base = unsafe { memory.as_mut_ptr().add(offset) };
        let mut bank = Self { _memory: memory, base, lanes, of };
        for (i, source) in sources.iter().enumerate() {
            if let (Some(source @ OperandAccess::Uniform(_)), Some(r)) = (source, bank.of[i]) {
                source.load(0, bank.register(r));
            }
        }
        bank
    }

    /// Address of a register.
    pub(super) fn at(&self, r: usize) -> *mut T {
        self.base.wrapping_add(r * self.lanes)
    }

    /// Address of the register of an input that cannot be read in place.
    pub(super) fn input(&self, i: usize) -> Option<*mut T> {
        self.of[i].map(|r| self.at(r))
    }

    fn register(&mut self, r: usize) -> &mut [T] {
        // SAFETY: the register is within the memory, which is mutably borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.at(r), self.lanes) }
    }

    /// Loads the inputs whose elements change from block to block.
    pub(super) fn load(
        &mut self,
        sources: &[Option<OperandAccess<'_, T>>],
        inputs: &[Port],
        rows: usize,
        at: usize,
        n: usize,
    ) {
        for (i, (source, port)) in sources.iter().zip(inputs).enumerate() {
            if let (Some(source @ OperandAccess::Walk { .. }), Some(r)) = (source, self.of[i]) {
                let n = if port.row { 1 } else { n };
                source.load(at * n, &mut self.register(r)[..rows * n]);
            }
        }
    }

    /// Mutable register of a result, and read access to the others.
    pub(super) fn split(&mut self, out: usize, len: usize) -> (&mut [T], Others<'_, T>) {
        let own = self.at(out);
        // SAFETY: as in `register`; `Others` gives no access to this register.
        let own = unsafe { std::slice::from_raw_parts_mut(own, len.min(self.lanes)) };
        (own, Others { bank: self, out })
    }

    pub(super) fn others(&self) -> Others<'_, T> {
        Others { bank: self, out: usize::MAX }
    }
}

/// Read access to all registers but one.
pub(super) struct Others<'a, T> {
    bank: &'a Bank<T>,
    out: usize,
}

impl<'a, T: Scalar> Others<'a, T> {
    /// An operand: `len` elements from `lo` on; a register holds them from its start.
    pub(super) fn get(
        &self,
        arg: Arg,
        sources: &[Option<OperandAccess<'a, T>>],
        lo: usize,
        len: usize,
    ) -> &'a [T] {
        let r = match arg {
            Arg::Register(r) => r,
            Arg::Input(i) => match (&sources[i], self.bank.of[i]) {
                (Some(OperandAccess::Each(x)), _) => return &x[lo..lo + len],
                (_, Some(r)) => r,
                _ => unreachable!("an input is of the kind that is asked for"),
            },
        };
        assert!(r != self.out && len <= self.bank.lanes, "a result has a register of its own");
        // SAFETY: the register is within the borrowed memory, and is not the one being written.
        unsafe { std::slice::from_raw_parts(self.bank.at(r), len) }
    }
}
