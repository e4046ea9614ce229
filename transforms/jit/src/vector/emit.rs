//! Loops of a program.
//!
//! ```text
//! rdi  addresses of the operands    r8 … r15, rbx  addresses that the loops use (not r11)
//! rsi  number of elements           rcx            other addresses
//! rdx  constants                    r11            position in partial sums
//! rax  index of the element         rsp            stack slots, aligned to a vector
//! ```

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::allocate::uses;
use super::encode::{Encoding, Listing, Result, memory};
use super::program::{OperandId, SUM_BYTES, VectorInst, VectorProgram};
use crate::JitError;

/// Registers for addresses; those from `SAVED` on belong to the caller.
const ADDRESSES: [Register; 8] = [
    Register::R8,
    Register::R9,
    Register::R10,
    Register::RBX,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
const SAVED: usize = 3;

/// Maximum number of instructions of a body with 4 and with 2 vectors per iteration.
const UNROLLED: [(usize, usize); 2] = [(4, 48), (2, 96)];

/// Constants of a program in the order of their first occurrence.
pub(super) fn constants(program: &VectorProgram) -> Vec<u64> {
    let mut all = Vec::new();
    for inst in &program.insts {
        if let VectorInst::Constant(bits) = inst
            && !all.contains(bits)
        {
            all.push(*bits);
        }
    }
    all
}

/// Function under construction.
pub(super) struct LoopFunction<'a> {
    pub(super) program: &'a VectorProgram,
    pub(super) encoding: Encoding,
    pub(super) uses: &'a [Vec<usize>],
    constants: &'a [u64],
    pub(super) list: Listing,
    /// Registers of operand addresses.
    addresses: Vec<Option<Register>>,
    /// Registers of uniform values.
    pub(super) pinned: Vec<Option<u8>>,
    /// First register of the partial sums of each instruction, if they are in registers.
    pub(super) sums: Vec<Option<u8>>,
    /// Number of pinned registers.
    pub(super) reserved: usize,
    pub(super) slots: usize,
    pub(super) transfers: usize,
}

/// Instructions of the whole function: the variant with the most vectors per iteration that needs no transfers, or the
/// one with the fewest.
pub(super) fn emit(program: &VectorProgram, encoding: Encoding) -> Result<Vec<Instruction>> {
    let uses = uses(program);
    let constants = constants(program);
    let of = |unroll, pins| {
        LoopFunction::new(program, encoding, &uses, &constants, unroll, pins).emit(unroll)
    };
    let uniforms = program.insts.iter().filter(|inst| inst.is_uniform()).count();
    for (unroll, most) in UNROLLED {
        if program.insts.len() <= most
            && let Some((insts, 0)) = of(unroll, uniforms)?
        {
            return Ok(insts);
        }
    }
    let mut best: Option<(Vec<Instruction>, usize)> = None;
    for pins in [uniforms, uniforms / 2, 0] {
        if let Some(one) = of(1, pins)?
            && best.as_ref().is_none_or(|best| one.1 < best.1)
        {
            best = Some(one);
        }
        if matches!(best, Some((_, 0))) {
            break;
        }
    }
    let none = || JitError::Program("an instruction needs more registers than there are".into());
    best.map(|(insts, _)| insts).ok_or_else(none)
}

impl<'a> LoopFunction<'a> {
    fn new(
        program: &'a VectorProgram,
        encoding: Encoding,
        uses: &'a [Vec<usize>],
        constants: &'a [u64],
        unroll: usize,
        pins: usize,
    ) -> Self {
        let count = program.insts.len();
        let mut one = Self {
            program,
            encoding,
            uses,
            constants,
            list: Listing::default(),
            addresses: vec![None; program.operand_count()],
            pinned: vec![None; count],
            sums: vec![None; count],
            reserved: 0,
            slots: 0,
            transfers: 0,
        };
        let mut uniforms: Vec<usize> = (0..count)
            .filter(|&at| program.insts[at].is_uniform() && !uses[at].is_empty())
            .collect();
        uniforms.sort_by_key(|&at| std::cmp::Reverse(uses[at].len()));
        // Registers that the instructions of one vector need at least.
        let room = encoding.vectors() - 6;
        for at in uniforms.into_iter().take(pins.min(room)) {
            one.pinned[at] = Some(one.reserve(1));
        }
        if unroll * encoding.isa.bytes() == SUM_BYTES {
            for at in 0..count {
                let fits = one.reserved + unroll <= room;
                if matches!(program.insts[at], VectorInst::Sum(..)) && fits {
                    one.sums[at] = Some(one.reserve(unroll));
                }
            }
        }
        let mut registers = ADDRESSES.into_iter();
        for (at, inst) in program.insts.iter().enumerate() {
            let again = !inst.is_uniform() && one.sums[at].is_none();
            if let (true, Some(OperandId(operand))) = (again, inst.operand())
                && one.addresses[operand as usize].is_none()
            {
                one.addresses[operand as usize] = registers.next();
            }
        }
        one
    }

    /// Reserves consecutive registers at the upper end; returns the first one.
    fn reserve(&mut self, count: usize) -> u8 {
        self.reserved += count;
        (self.encoding.vectors() - self.reserved) as u8
    }

    /// Address of an operand in a register.
    fn address(&mut self, OperandId(operand): OperandId) -> Result<Register> {
        if let Some(register) = self.addresses[operand as usize] {
            return Ok(register);
        }
        self.load_address(Register::RCX, operand)?;
        Ok(Register::RCX)
    }

    fn load_address(&mut self, to: Register, operand: u32) -> Result<()> {
        let from = memory(Register::RDI, Register::None, 1, 8 * operand as usize);
        self.list.push(Instruction::with2(Code::Mov_r64_rm64, to, from))
    }

    /// Vector `u` of an operand with `size` bytes per element.
    pub(super) fn vector(
        &mut self,
        operand: OperandId,
        u: usize,
        size: usize,
    ) -> Result<MemoryOperand> {
        let base = self.address(operand)?;
        Ok(memory(base, Register::RAX, size, u * self.encoding.lanes() * size))
    }

    /// Partial sums that vector `u` is added to.
    pub(super) fn sum(&mut self, operand: OperandId, u: usize) -> Result<MemoryOperand> {
        let base = self.address(operand)?;
        Ok(memory(
            base,
            Register::R11,
            self.encoding.element.bytes(),
            u * self.encoding.isa.bytes(),
        ))
    }

    pub(super) fn broadcast(&mut self, inst: VectorInst, to: u8) -> Result<()> {
        let from = match inst {
            VectorInst::Constant(bits) => {
                let at = self.constants.iter().position(|&one| one == bits).unwrap_or_default();
                memory(Register::RDX, Register::None, 1, 8 * at)
            }
            VectorInst::Uniform(operand) => memory(self.address(operand)?, Register::None, 1, 0),
            _ => unreachable!("uniform values are constants and numbers in memory"),
        };
        self.list.push(self.encoding.broadcast(to, from))
    }

    /// The function and its number of transfers; `None` if an instruction needs more registers than there are.
    fn emit(mut self, unroll: usize) -> Result<Option<(Vec<Instruction>, usize)>> {
        let lanes = self.encoding.lanes() as i32;
        let wide = unroll as i32 * lanes;
        let [main, rest, single, end] = [(); 4].map(|()| self.list.label());
        for at in 0..self.program.insts.len() {
            if let Some(register) = self.pinned[at] {
                self.broadcast(self.program.insts[at], register)?;
            }
        }
        self.move_sums(false)?;
        for operand in 0..self.addresses.len() {
            if let Some(register) = self.addresses[operand] {
                self.load_address(register, operand as u32)?;
            }
        }
        self.list.push(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX))?;
        if unroll > 1 {
            let next = memory(Register::RAX, Register::None, 1, wide as usize);
            self.list.push(Instruction::with2(Code::Lea_r64_m, Register::RCX, next))?;
            self.list.push(Instruction::with2(Code::Cmp_rm64_r64, Register::RCX, Register::RSI))?;
            self.list.branch(Code::Ja_rel32_64, rest)?;
            self.list.bind(main);
            if self.body(unroll)?.is_none() {
                return Ok(None);
            }
            self.list.push(Instruction::with2(Code::Add_rm64_imm32, Register::RAX, wide))?;
            self.list.push(Instruction::with2(Code::Lea_r64_m, Register::RCX, next))?;
            self.list.push(Instruction::with2(Code::Cmp_rm64_r64, Register::RCX, Register::RSI))?;
            self.list.branch(Code::Jbe_rel32_64, main)?;
            self.list.bind(rest);
        }
        // Partial sums in registers are those of full iterations.
        if self.sums.iter().all(Option::is_none) {
            self.list.push(Instruction::with2(Code::Cmp_rm64_r64, Register::RAX, Register::RSI))?;
            self.list.branch(Code::Jae_rel32_64, end)?;
            self.list.bind(single);
            if self.body(1)?.is_none() {
                return Ok(None);
            }
            self.list.push(Instruction::with2(Code::Add_rm64_imm32, Register::RAX, lanes))?;
            self.list.push(Instruction::with2(Code::Cmp_rm64_r64, Register::RAX, Register::RSI))?;
            self.list.branch(Code::Jb_rel32_64, single)?;
            self.list.bind(end);
        }
        self.move_sums(true)?;
        let transfers = self.transfers;
        self.framed().map(|insts| Some((insts, transfers)))
    }

    /// Loads or stores the partial sums in registers.
    fn move_sums(&mut self, store: bool) -> Result<()> {
        for at in 0..self.program.insts.len() {
            let (Some(first), VectorInst::Sum(operand, _)) =
                (self.sums[at], self.program.insts[at])
            else {
                continue;
            };
            let bytes = self.encoding.isa.bytes();
            let base = self.address(operand)?;
            for u in 0..SUM_BYTES / bytes {
                let (sums, register) =
                    (memory(base, Register::None, 1, u * bytes), first + u as u8);
                self.list.push(if store {
                    self.encoding.store(sums, register)
                } else {
                    self.encoding.load(register, sums)
                })?;
            }
        }
        Ok(())
    }

    /// The function with saved registers and stack slots.
    fn framed(mut self) -> Result<Vec<Instruction>> {
        let mut saved = vec![Register::RBP];
        let own = &ADDRESSES[SAVED..];
        saved.extend(own.iter().filter(|register| self.addresses.contains(&Some(**register))));
        let body = std::mem::take(&mut self.list.insts);
        // Labels bound to the next instruction are bound to the first one of the epilogue.
        let mut start = Listing::default();
        for &register in &saved {
            start.push(Instruction::with1(Code::Push_r64, register))?;
        }
        start.push(Instruction::with2(Code::Mov_r64_rm64, Register::RBP, Register::RSP))?;
        if self.slots > 0 {
            let size = (self.slots * self.encoding.isa.bytes()) as i32;
            start.push(Instruction::with2(Code::Sub_rm64_imm32, Register::RSP, size))?;
            let align = -(self.encoding.isa.bytes() as i32);
            start.push(Instruction::with2(Code::And_rm64_imm8, Register::RSP, align))?;
        }
        let mut insts = start.insts;
        insts.extend(body);
        self.list.push(Instruction::with2(Code::Mov_r64_rm64, Register::RSP, Register::RBP))?;
        for &register in saved.iter().rev() {
            self.list.push(Instruction::with1(Code::Pop_r64, register))?;
        }
        self.list.push(Ok(Instruction::with(Code::VEX_Vzeroupper)))?;
        self.list.push(Ok(Instruction::with(Code::Retnq)))?;
        insts.extend(self.list.insts);
        Ok(insts)
    }
}
