//! A chain over the memory of a task.

use super::bank::Bank;
use super::chain::{Chain, Place};
use super::kernel::Lane;
use super::machine::{self, Code, Inst};
use super::plan::Arg;
use super::source::Source;

/// An operand that is not at the same place for all rows: where the first one is, and the steps to the first
/// row of a block and from row to row of it.
struct Moving<T> {
    inst: usize,
    base: *mut T,
    block: usize,
    row: usize,
}

/// A chain whose operands are addresses.
pub(super) struct Links<T> {
    insts: Vec<Inst<T>>,
    moving: Vec<Moving<T>>,
    by_row: bool,
    /// The same over copies, for the elements beyond the last whole accumulator.
    rest: Vec<Inst<T>>,
    /// Instructions whose operand is copied before, and after: the copy, and the instruction.
    before: Vec<(*mut T, usize)>,
    after: Vec<(*mut T, usize)>,
    _copies: Vec<T>,
    lanes: usize,
}

/// The memory of a task.
pub(super) struct Memory<'a, T> {
    pub(super) bank: &'a Bank<T>,
    pub(super) sources: &'a [Option<Source<'a, T>>],
    pub(super) outputs: &'a [*mut T],
    pub(super) numbers: &'a [T],
}

impl<T: Lane> Memory<'_, T> {
    /// Where an operand is, its steps for a block and a row, and whether it is one number.
    fn find(&self, place: Place, n: usize) -> (*mut T, usize, usize, bool) {
        let input = |i: usize, n: usize| match &self.sources[i] {
            Some(Source::Each(x)) => (x.as_ptr().cast_mut(), n, n, false),
            Some(Source::Uniform(x)) => (std::ptr::from_ref(x).cast_mut(), 0, 0, true),
            _ => {
                let of = self.bank.input(i);
                (of.unwrap_or_else(|| unreachable!("walks have registers")), 0, n, false)
            }
        };
        match place {
            Place::Nowhere => (std::ptr::null_mut(), 0, 0, true),
            Place::Number(k) => (std::ptr::from_ref(&self.numbers[k]).cast_mut(), 0, 0, true),
            Place::Vector(Arg::Register(r)) => (self.bank.at(r), 0, n, false),
            Place::Vector(Arg::Input(i)) => input(i, n),
            Place::Row(Arg::Register(r)) => (self.bank.at(r), 0, 1, true),
            Place::Row(Arg::Input(i)) => {
                let (at, block, row, _) = input(i, 1);
                (at, block, row, true)
            }
            Place::Output(o) => (self.outputs[o], n, n, false),
        }
    }
}

impl<T: Lane> Links<T> {
    /// The chain over this memory, with `n` elements in a row.
    pub(super) fn new(chain: &Chain, memory: &Memory<'_, T>, n: usize) -> Self {
        let lanes = machine::lanes::<T>();
        // Copies by the place of the operand.
        let mut places: Vec<Place> = Vec::new();
        let (mut insts, mut moving) = (Vec::new(), Vec::new());
        let (mut before, mut after, mut copy_of) = (Vec::new(), Vec::new(), Vec::new());
        for (inst, step) in chain.steps.iter().enumerate() {
            let (base, block, row, single) = memory.find(step.at, n);
            let code = if single { step.code.of_number() } else { step.code };
            let moves = if single { 0 } else { usize::MAX };
            insts.push(Inst { code, moves, at: base });
            if (block, row) != (0, 0) {
                moving.push(Moving { inst, base, block, row });
            }
            let mut copy = None;
            if !single {
                let known = places.iter().position(|place| *place == step.at);
                let k = known.unwrap_or(places.len());
                if known.is_none() {
                    places.push(step.at);
                    if code != Code::Store {
                        before.push((k, inst));
                    }
                }
                if code == Code::Store {
                    after.push((k, inst));
                }
                copy = Some(k);
            }
            copy_of.push(copy);
        }
        let mut copies = vec![T::ZERO; places.len() * lanes];
        let first = copies.as_mut_ptr();
        let copy = |k: usize| first.wrapping_add(k * lanes);
        let rest = insts.iter().zip(copy_of).map(|(one, k)| match k {
            Some(k) => Inst { at: copy(k), ..*one },
            None => *one,
        });
        let rest = rest.collect();
        let all =
            |all: Vec<(usize, usize)>| all.into_iter().map(|(k, inst)| (copy(k), inst)).collect();
        let (before, after) = (all(before), all(after));
        Self { insts, moving, by_row: chain.by_row, rest, before, after, _copies: copies, lanes }
    }

    /// Runs the chain on rows `at..at + rows` of `n` elements.
    ///
    /// # Safety
    /// All operands have these rows, and nobody else has what is written.
    pub(super) unsafe fn run(&mut self, at: usize, rows: usize, n: usize) {
        let (times, len) = if self.by_row { (rows, n) } else { (1, rows * n) };
        for row in 0..times {
            for one in &self.moving {
                self.insts[one.inst].at = one.base.wrapping_add(at * one.block + row * one.row);
            }
            // SAFETY: as the caller promises.
            unsafe { self.elements(len) };
        }
    }

    /// # Safety
    /// All operands have `len` elements.
    unsafe fn elements(&mut self, len: usize) {
        let whole = len / self.lanes;
        // SAFETY: whole accumulators of the operands.
        unsafe { machine::run(&self.insts, whole) };
        let (done, left) = (whole * self.lanes, len % self.lanes);
        if left == 0 {
            return;
        }
        for (one, rest) in self.insts.iter().zip(&mut self.rest) {
            if one.moves == 0 {
                rest.at = one.at;
            }
        }
        // SAFETY: the last elements of the operands, and as many of copies of a whole accumulator.
        unsafe {
            for &(copy, inst) in &self.before {
                copy.copy_from_nonoverlapping(self.insts[inst].at.add(done), left);
            }
            machine::run(&self.rest, 1);
            for &(copy, inst) in &self.after {
                self.insts[inst].at.add(done).copy_from_nonoverlapping(copy, left);
            }
        }
    }
}
