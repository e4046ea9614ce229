//! Executable memory of a program, and its execution.

use iced_x86::{BlockEncoder, BlockEncoderOptions, InstructionBlock};
use memmap2::{Mmap, MmapMut};

use super::emit::{constants, emit};
use super::encode::{Encoding, failed};
use super::program::{SUM_BYTES, VectorInst, VectorIsa, VectorProgram};
use crate::JitError;

/// Arguments: addresses of the operands, number of elements, constants.
type VectorEntry = unsafe extern "sysv64" fn(*const *mut u8, usize, *const u64);

/// Largest vector in bytes.
const VECTOR: usize = 64;

/// Access to an operand.
#[derive(Clone, Copy, Debug, Default)]
struct OperandUse {
    /// Size of an element that advances with the loop; 0 for uniform values and partial sums.
    size: usize,
    written: bool,
}

/// Machine code of a program.
#[derive(Debug)]
pub struct VectorCode {
    /// Code of a function of type [`VectorEntry`]; not writable.
    memory: Mmap,
    constants: Vec<u64>,
    operands: Vec<OperandUse>,
    lanes: usize,
    /// Number of partial sums if the program has any, else 1.
    period: usize,
}

impl VectorCode {
    /// Compiles a program.
    ///
    /// Cost: about 1 µs per instruction, and 10 µs for the memory.
    ///
    /// # Errors
    /// [`JitError::Backend`] if the machine does not have the instruction set, or has no memory for the code;
    /// [`JitError::Program`] for values and operands that do not exist, and for masks in the place of vectors.
    pub fn new(program: &VectorProgram, isa: VectorIsa) -> Result<Self, JitError> {
        program.check()?;
        let supported = match isa {
            VectorIsa::Avx2 => is_x86_feature_detected!("avx2"),
            VectorIsa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        };
        if !supported {
            return Err(JitError::Backend(format!("this machine has no {isa:?}")));
        }
        let encoding = Encoding { isa, element: program.element };
        let insts = emit(program, encoding)?;
        let block = InstructionBlock::new(&insts, 0);
        let code = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE).map_err(failed)?;
        let mut memory = MmapMut::map_anon(code.code_buffer.len()).map_err(failed)?;
        memory[..code.code_buffer.len()].copy_from_slice(&code.code_buffer);
        let memory = memory.make_exec().map_err(failed)?;
        let mut operands = vec![OperandUse::default(); program.operand_count()];
        let mut period = 1;
        for inst in &program.insts {
            let Some(operand) = inst.operand() else { continue };
            let access = &mut operands[operand.0 as usize];
            match inst {
                VectorInst::Load(_) => access.size = program.element.bytes(),
                VectorInst::LoadMask(_) => access.size = 1,
                VectorInst::Store(..) => {
                    *access = OperandUse { size: program.element.bytes(), written: true };
                }
                VectorInst::StoreMask(..) => *access = OperandUse { size: 1, written: true },
                VectorInst::Sum(..) => period = SUM_BYTES / program.element.bytes(),
                _ => {}
            }
        }
        let constants = constants(program);
        Ok(Self { memory, constants, operands, lanes: encoding.lanes(), period })
    }

    /// Size of the code in bytes.
    pub fn size(&self) -> usize {
        self.memory.len()
    }

    /// Executes the loop over `elements` elements.
    ///
    /// # Panics
    /// If there are fewer addresses than operands, or if the program has sums and `elements` is not a multiple of the
    /// number of partial sums.
    ///
    /// # Safety
    /// The operands that advance can be read, or written by stores, for `elements` elements; uniform ones for one
    /// element; partial sums for [`SUM_BYTES`]. No operand that is written overlaps another one, and no other thread
    /// accesses it. Every `bool` that is read is 0 or 1.
    pub unsafe fn run(&self, operands: &[*mut u8], elements: usize) {
        assert!(operands.len() >= self.operands.len(), "an address of every operand");
        assert!(elements.is_multiple_of(self.period), "full periods of the partial sums");
        let left = elements % self.lanes;
        let whole = elements - left;
        // SAFETY: the memory holds a complete function of this type, which keeps to its calling convention.
        let entry: VectorEntry = unsafe { std::mem::transmute(self.memory.as_ptr()) };
        if whole > 0 {
            // SAFETY: as the caller promises; the constants are those of the program.
            unsafe { entry(operands.as_ptr(), whole, self.constants.as_ptr()) };
        }
        if left > 0 {
            // SAFETY: as above.
            unsafe { self.last(entry, operands, whole, left) };
        }
    }

    /// Executes the elements beyond the last full vector, on copies.
    ///
    /// # Safety
    /// That of [`run`](Self::run); the operands have `left` elements from `done` on, fewer than a vector.
    unsafe fn last(&self, entry: VectorEntry, operands: &[*mut u8], done: usize, left: usize) {
        #[repr(align(64))]
        #[derive(Clone, Copy)]
        struct TailVector([u8; VECTOR]);
        /// Operands whose copies are on the stack.
        const FEW: usize = 16;
        let count = self.operands.len();
        let mut small = [TailVector([0; VECTOR]); FEW];
        let mut large = Vec::new();
        let copies: &mut [TailVector] = if count <= FEW {
            &mut small[..count]
        } else {
            large.resize(count, TailVector([0; VECTOR]));
            &mut large
        };
        let mut few = [std::ptr::null_mut(); FEW];
        let mut many = Vec::new();
        let addresses: &mut [*mut u8] = if count <= FEW {
            &mut few[..count]
        } else {
            many.resize(count, std::ptr::null_mut());
            &mut many
        };
        addresses.copy_from_slice(&operands[..count]);
        for ((access, copy), address) in self.operands.iter().zip(&mut *copies).zip(&mut *addresses)
        {
            if access.size == 0 {
                continue;
            }
            let from = address.wrapping_add(done * access.size);
            *address = copy.0.as_mut_ptr();
            if !access.written {
                // SAFETY: the operand has `left` elements there, fewer than a vector.
                unsafe { address.copy_from_nonoverlapping(from, left * access.size) };
            }
        }
        // SAFETY: every operand that advances is a copy with the size of a vector.
        unsafe { entry(addresses.as_ptr(), self.lanes, self.constants.as_ptr()) };
        for ((access, copy), to) in self.operands.iter().zip(&*copies).zip(operands) {
            if access.written {
                let to = to.wrapping_add(done * access.size);
                // SAFETY: as above.
                unsafe { to.copy_from_nonoverlapping(copy.0.as_ptr(), left * access.size) };
            }
        }
    }
}
