//! One iteration of a loop: the instructions of a program for consecutive vectors.

use iced_x86::{Code, Instruction, Register};

use super::allocate::{RegisterMove, RegisterState};
use super::emit::LoopFunction;
use super::encode::{Result, ValueRegister, k, memory};
use super::program::{BinaryInst, SUM_BYTES, VectorId, VectorInst};

impl LoopFunction<'_> {
    /// One iteration.
    pub(super) fn body(&mut self, unroll: usize) -> Result<Option<()>> {
        let (program, pinned) = (self.program, self.pinned.clone());
        let sums_in_memory = program
            .insts
            .iter()
            .zip(&self.sums)
            .any(|(inst, sum)| matches!(inst, VectorInst::Sum(..)) && sum.is_none());
        if sums_in_memory {
            let mask = (SUM_BYTES / self.encoding.element.bytes() - 1) as i32;
            self.list.push(Instruction::with2(Code::Mov_r64_rm64, Register::R11, Register::RAX))?;
            self.list.push(Instruction::with2(Code::And_rm64_imm8, Register::R11, mask))?;
        }
        let mut state =
            RegisterState::new(program, self.uses, self.encoding, unroll, &pinned, self.reserved);
        for at in 0..program.insts.len() {
            if program.insts[at].is_uniform() {
                // Uniform values are read by their users.
                continue;
            }
            for u in 0..unroll {
                if self.inst(&mut state, at, u)?.is_none() {
                    return Ok(None);
                }
                state.end(u, at);
            }
        }
        self.slots = self.slots.max(state.slots);
        self.transfers += state.transfers;
        Ok(Some(()))
    }

    fn transfer(&mut self, all: &mut Vec<RegisterMove>, u: usize) -> Result<()> {
        for one in all.drain(..) {
            let slot = |slot: usize| {
                memory(Register::RSP, Register::None, 1, slot * self.encoding.isa.bytes())
            };
            match one {
                RegisterMove::Save { slot: at, from: ValueRegister::Vector(n) } => {
                    self.list.push(self.encoding.store(slot(at), n))?;
                }
                RegisterMove::Save { slot: at, from: ValueRegister::Mask(n) } => {
                    self.list.push(Instruction::with2(Code::VEX_Kmovw_m16_kr, slot(at), k(n)))?;
                }
                RegisterMove::Restore { slot: at, to: ValueRegister::Vector(n) } => {
                    self.list.push(self.encoding.load(n, slot(at)))?;
                }
                RegisterMove::Restore { slot: at, to: ValueRegister::Mask(n) } => {
                    self.list.push(Instruction::with2(Code::VEX_Kmovw_kr_km16, k(n), slot(at)))?;
                }
                RegisterMove::Repeat { value: VectorId(value), to } => {
                    let inst = self.program.insts[value as usize];
                    match (inst, to) {
                        (VectorInst::Load(operand), ValueRegister::Vector(n)) => {
                            let size = self.encoding.element.bytes();
                            let from = self.vector(operand, u, size)?;
                            self.list.push(self.encoding.load(n, from))?;
                        }
                        (inst, ValueRegister::Vector(n)) => self.broadcast(inst, n)?,
                        (_, ValueRegister::Mask(_)) => unreachable!("masks are saved"),
                    }
                }
            }
        }
        Ok(())
    }

    /// Instruction `at` for vector `u`.
    fn inst(&mut self, state: &mut RegisterState<'_>, at: usize, u: usize) -> Result<Option<()>> {
        let (inst, encoding) = (self.program.insts[at], self.encoding);
        let mut moves = Vec::new();
        let mut args = [ValueRegister::Vector(0); 3];
        for (place, value) in args.iter_mut().zip(inst.args()) {
            let Some(found) = state.read(value, u, at, &mut moves) else { return Ok(None) };
            *place = found;
        }
        let vector = |place: ValueRegister| match place {
            ValueRegister::Vector(n) => n,
            ValueRegister::Mask(_) => unreachable!("the program has been checked"),
        };
        // Temporary registers are allocated before operands are released.
        let mut spare = [0; 2];
        let count = match inst {
            VectorInst::LoadMask(_) => 1,
            VectorInst::StoreMask(..) => 2,
            VectorInst::Sum(..) if self.sums[at].is_none() => 1,
            _ => 0,
        };
        for one in &mut spare[..count] {
            let Some(n) = state.temporary(at, &mut moves) else { return Ok(None) };
            *one = n;
        }
        self.transfer(&mut moves, u)?;
        let size = encoding.element.bytes();
        match inst {
            VectorInst::Store(operand, _) => {
                let to = self.vector(operand, u, size)?;
                self.list.push(encoding.store(to, vector(args[0])))?;
            }
            VectorInst::StoreMask(operand, _) => {
                let to = self.vector(operand, u, 1)?;
                encoding.store_mask(&mut self.list, to, args[0], spare)?;
            }
            VectorInst::Sum(operand, _) => match self.sums[at] {
                Some(first) => {
                    let n = first + u as u8;
                    self.list.push(encoding.binary(BinaryInst::Add, n, [n, vector(args[0])]))?;
                }
                None => {
                    let sums = self.sum(operand, u)?;
                    self.list.push(encoding.load(spare[0], sums))?;
                    let both = [spare[0], vector(args[0])];
                    self.list.push(encoding.binary(BinaryInst::Add, spare[0], both))?;
                    self.list.push(encoding.store(sums, spare[0]))?;
                }
            },
            _ => {}
        }
        state.release(u, at);
        if inst.is_write() {
            return Ok(Some(()));
        }
        let Some(to) = state.write(u, at, &mut moves) else { return Ok(None) };
        self.transfer(&mut moves, u)?;
        let own = |to: ValueRegister| vector(to);
        match inst {
            VectorInst::Load(operand) => {
                let from = self.vector(operand, u, size)?;
                self.list.push(encoding.load(own(to), from))?;
            }
            VectorInst::LoadMask(operand) => {
                let from = self.vector(operand, u, 1)?;
                encoding.load_mask(&mut self.list, to, from, spare[0])?;
            }
            VectorInst::Unary(f, _) => {
                self.list.push(encoding.unary(f, own(to), vector(args[0])))?;
            }
            VectorInst::Binary(f, _) => {
                let both = [vector(args[0]), vector(args[1])];
                self.list.push(encoding.binary(f, own(to), both))?;
            }
            VectorInst::Compare(f, _) => {
                let both = [vector(args[0]), vector(args[1])];
                self.list.push(encoding.compare(f, to, both))?;
            }
            VectorInst::Select(..) => {
                let both = [vector(args[1]), vector(args[2])];
                self.list.push(encoding.select(own(to), args[0], both))?;
            }
            VectorInst::Constant(_)
            | VectorInst::Uniform(_)
            | VectorInst::Store(..)
            | VectorInst::StoreMask(..)
            | VectorInst::Sum(..) => unreachable!("these have no register here"),
        }
        Ok(Some(()))
    }
}
