//! Registers and stack slots of the values of one iteration, in the order of its instructions.
//!
//! A value without a register is stored in a stack slot, or read again if it is in memory already. If all registers are in
//! use, the value with the farthest next use loses its register (Belady 1966).

use super::encode::{Encoding, ValueRegister};
use super::program::{VectorId, VectorInst, VectorIsa, VectorProgram};

/// Mask registers; k0 cannot be used as a mask.
const MASKS: std::ops::Range<u8> = 1..8;

/// Action that makes a value available in a register, or frees the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterMove {
    /// Stores the register in a slot.
    Save { slot: usize, from: ValueRegister },
    /// Loads the register from a slot.
    Restore { slot: usize, to: ValueRegister },
    /// Executes the definition of the copy again.
    Repeat { value: VectorId, to: ValueRegister },
}

/// Instructions that use each value, in ascending order.
pub(super) fn uses(program: &VectorProgram) -> Vec<Vec<usize>> {
    let mut uses = vec![Vec::new(); program.insts.len()];
    for (at, inst) in program.insts.iter().enumerate() {
        for arg in inst.args() {
            let all: &mut Vec<usize> = &mut uses[arg.0 as usize];
            if all.last() != Some(&at) {
                all.push(at);
            }
        }
    }
    uses
}

/// RegisterState state of an iteration over `unroll` vectors. Each value has a copy per vector; uniform values have one.
pub(super) struct RegisterState<'a> {
    program: &'a VectorProgram,
    uses: &'a [Vec<usize>],
    unroll: usize,
    /// Registers of uniform values for the whole loop.
    pinned: &'a [Option<u8>],
    place: Vec<Option<ValueRegister>>,
    slot: Vec<Option<usize>>,
    /// True if masks have registers of their own.
    has_masks: bool,
    free_vectors: Vec<u8>,
    free_masks: Vec<u8>,
    /// Copies whose registers are used by the current instruction.
    busy: Vec<usize>,
    /// Temporary registers of the current instruction.
    spare: Vec<u8>,
    /// Slots in use so far.
    pub(super) slots: usize,
    /// Number of transfers.
    pub(super) transfers: usize,
}

impl<'a> RegisterState<'a> {
    /// `reserved`: number of vector registers, the last ones, with values of the whole loop.
    pub(super) fn new(
        program: &'a VectorProgram,
        uses: &'a [Vec<usize>],
        encoding: Encoding,
        unroll: usize,
        pinned: &'a [Option<u8>],
        reserved: usize,
    ) -> Self {
        let copies = program.insts.len() * unroll;
        let vectors = encoding.vectors() - reserved;
        let has_masks = encoding.isa == VectorIsa::Avx512;
        let masks = if has_masks { MASKS } else { 0..0 };
        Self {
            program,
            uses,
            unroll,
            pinned,
            place: vec![None; copies],
            slot: vec![None; copies],
            has_masks,
            free_vectors: (0..vectors as u8).rev().collect(),
            free_masks: masks.rev().collect(),
            busy: Vec::new(),
            spare: Vec::new(),
            slots: 0,
            transfers: 0,
        }
    }

    fn copy(&self, value: VectorId, u: usize) -> usize {
        let uniform = self.program.insts[value.0 as usize].is_uniform();
        value.0 as usize * self.unroll + if uniform { 0 } else { u }
    }

    /// Next use of a copy at or after instruction `at`.
    fn next(&self, copy: usize, at: usize) -> usize {
        let uses = &self.uses[copy / self.unroll];
        uses.get(uses.partition_point(|&use_at| use_at < at)).copied().unwrap_or(usize::MAX)
    }

    /// A free register of the class, after the transfers that free it.
    fn register(
        &mut self,
        mask: bool,
        at: usize,
        transfers: &mut Vec<RegisterMove>,
    ) -> Option<ValueRegister> {
        let free = if mask { &mut self.free_masks } else { &mut self.free_vectors };
        if let Some(n) = free.pop() {
            return Some(if mask { ValueRegister::Mask(n) } else { ValueRegister::Vector(n) });
        }
        let held = |copy: &usize| {
            self.place[*copy].is_some_and(|place| matches!(place, ValueRegister::Mask(_)) == mask)
                && !self.busy.contains(copy)
        };
        let copy = (0..self.place.len()).filter(held).max_by_key(|&copy| self.next(copy, at))?;
        let place = self.place[copy].take()?;
        let inst = &self.program.insts[copy / self.unroll];
        let repeats = inst.is_uniform() || matches!(inst, VectorInst::Load(_));
        if !repeats && self.slot[copy].is_none() {
            self.slot[copy] = Some(self.slots);
            transfers.push(RegisterMove::Save { slot: self.slots, from: place });
            self.slots += 1;
            self.transfers += 1;
        }
        Some(place)
    }

    /// Register of an operand of instruction `at`. `None` if one instruction needs more registers than there are.
    pub(super) fn read(
        &mut self,
        value: VectorId,
        u: usize,
        at: usize,
        transfers: &mut Vec<RegisterMove>,
    ) -> Option<ValueRegister> {
        if let Some(n) = self.pinned[value.0 as usize] {
            return Some(ValueRegister::Vector(n));
        }
        let copy = self.copy(value, u);
        self.busy.push(copy);
        if let Some(place) = self.place[copy] {
            return Some(place);
        }
        let mask = self.in_mask_register(value);
        let to = self.register(mask, at, transfers)?;
        transfers.push(match self.slot[copy] {
            Some(slot) => RegisterMove::Restore { slot, to },
            None => RegisterMove::Repeat { value, to },
        });
        self.transfers += 1;
        self.place[copy] = Some(to);
        Some(to)
    }

    fn in_mask_register(&self, value: VectorId) -> bool {
        self.has_masks && self.program.insts[value.0 as usize].is_mask()
    }

    /// A vector register for the current instruction only.
    pub(super) fn temporary(&mut self, at: usize, transfers: &mut Vec<RegisterMove>) -> Option<u8> {
        match self.register(false, at, transfers)? {
            ValueRegister::Vector(n) => {
                self.spare.push(n);
                Some(n)
            }
            ValueRegister::Mask(_) => None,
        }
    }

    /// Frees the registers of operands that are not used after instruction `at`, before its result is allocated.
    pub(super) fn release(&mut self, u: usize, at: usize) {
        let busy = std::mem::take(&mut self.busy);
        for copy in busy {
            let uniform = self.program.insts[copy / self.unroll].is_uniform();
            let last = self.uses[copy / self.unroll].last().is_none_or(|&last| last <= at);
            if last && (!uniform || u + 1 == self.unroll) {
                self.free(copy);
            }
        }
    }

    fn free(&mut self, copy: usize) {
        match self.place[copy].take() {
            Some(ValueRegister::Vector(n)) => self.free_vectors.push(n),
            Some(ValueRegister::Mask(n)) => self.free_masks.push(n),
            None => {}
        }
    }

    /// Register of the result of instruction `at`.
    pub(super) fn write(
        &mut self,
        u: usize,
        at: usize,
        transfers: &mut Vec<RegisterMove>,
    ) -> Option<ValueRegister> {
        let value = VectorId(u32::try_from(at).ok()?);
        let mask = self.in_mask_register(value);
        let place = self.register(mask, at, transfers)?;
        let copy = self.copy(value, u);
        self.place[copy] = Some(place);
        Some(place)
    }

    /// Ends instruction `at`: frees temporary registers and an unused result.
    pub(super) fn end(&mut self, u: usize, at: usize) {
        self.busy.clear();
        let spare = std::mem::take(&mut self.spare);
        self.free_vectors.extend(spare);
        if self.uses[at].is_empty() {
            self.free(at * self.unroll + u);
        }
    }
}
