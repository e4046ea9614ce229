//! Operands of machine code: their places in a plan, and their addresses.

use super::super::bank::Bank;
use super::super::kernel::FusedFloat;
use super::super::links::ThreadMemory;
use super::super::machine::parts;
use super::super::plan::Arg;
use super::super::run::OutputBuffer;
use super::super::source::OperandAccess;

/// Place of an operand. Registers and inputs have one element per element of the part's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodedOperand {
    /// Floats.
    Floats(Arg),
    /// Booleans.
    Flags(Arg),
    /// One float per row, for the whole row.
    RowScalar(Arg),
    /// One float for all rows.
    Scalar(usize),
    /// Output of floats or booleans.
    Output(usize),
    /// Output of booleans.
    FlagOutput(usize),
    /// Partial sums of a reduction.
    Sums(usize),
}

/// Address of an operand as a function of the row, in bytes.
#[derive(Clone, Copy)]
pub(in super::super) struct CodedSite {
    base: *mut u8,
    /// Stride per row from the start of the data to the start of a block, and stride per row within a block.
    block: usize,
    row: usize,
}

impl CodedSite {
    fn new<U>(base: *mut U, block: usize, row: usize) -> Self {
        Self { base: base.cast(), block: block * size_of::<U>(), row: row * size_of::<U>() }
    }

    /// Address for row `row` of the block that starts at row `at`.
    pub(super) fn of(&self, at: usize, row: usize) -> *mut u8 {
        self.base.wrapping_add(at * self.block + row * self.row)
    }

    /// Elements of an input or a register, `n` per row.
    fn elements<U: t4a_algebra::Scalar>(
        arg: Arg,
        n: usize,
        bank: &Bank<U>,
        sources: &[Option<OperandAccess<'_, U>>],
    ) -> Self {
        match arg {
            Arg::Register(r) => Self::new(bank.at(r), 0, n),
            Arg::Input(i) => match &sources[i] {
                Some(OperandAccess::Each(x)) => Self::new(x.as_ptr().cast_mut(), n, n),
                Some(OperandAccess::Row(x)) => Self::new(x.as_ptr().cast_mut(), 0, 0),
                _ => {
                    let at = bank.input(i).unwrap_or_else(|| unreachable!("walks have registers"));
                    Self::new(at, 0, n)
                }
            },
        }
    }

    /// Address of a place in the memory of a thread; `n` elements per row.
    pub(super) fn find<T: FusedFloat>(
        place: CodedOperand,
        n: usize,
        memory: &ThreadMemory<'_, T>,
        flags: (&Bank<bool>, &[Option<OperandAccess<'_, bool>>]),
    ) -> Self {
        let output = |o: usize| -> OutputBuffer { memory.outputs[o] };
        match place {
            CodedOperand::Floats(arg) => Self::elements(arg, n, memory.bank, memory.sources),
            CodedOperand::Flags(arg) => Self::elements(arg, n, flags.0, flags.1),
            CodedOperand::RowScalar(arg) => Self::elements(arg, 1, memory.bank, memory.sources),
            CodedOperand::Scalar(i) => match &memory.sources[i] {
                Some(OperandAccess::Each(x) | OperandAccess::Row(x)) => {
                    Self::new(x.as_ptr().cast_mut(), 0, 0)
                }
                Some(OperandAccess::Uniform(x)) => {
                    Self::new(std::ptr::from_ref(x).cast_mut(), 0, 0)
                }
                _ => unreachable!("a single number is no walk"),
            },
            CodedOperand::Output(o) => Self::new(output(o).at::<T>(), n, n),
            CodedOperand::FlagOutput(o) => Self::new(output(o).at::<bool>(), n, n),
            CodedOperand::Sums(k) => Self::new(memory.sums.wrapping_add(k * parts::<T>()), 0, 0),
        }
    }
}
