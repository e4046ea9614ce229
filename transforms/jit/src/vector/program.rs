//! Instructions over vectors in static single assignment form.

use crate::JitError;

/// Vector instruction sets of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorIsa {
    /// 256-bit vectors, and masks in vector registers.
    Avx2,
    /// 512-bit vectors, and mask registers (AVX-512 F, BW, DQ, VL).
    Avx512,
}

impl VectorIsa {
    /// Size of a vector in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Avx2 => 32,
            Self::Avx512 => 64,
        }
    }
}

/// Element types of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorElement {
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
}

impl VectorElement {
    /// Size of an element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

/// Index of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorId(pub(crate) u32);

impl VectorId {
    /// Index of the instruction that defines the value.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of an operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandId(pub(crate) u32);

impl OperandId {
    /// Position of the address in a call.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Functions of one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryInst {
    /// `√a`.
    Sqrt,
    /// Nearest integer, ties to even.
    Round,
    /// `⌊a⌋`.
    Floor,
    /// `⌈a⌉`.
    Ceil,
    /// Integer part.
    Trunc,
}

/// Functions of two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryInst {
    /// `a + b`.
    Add,
    /// `a − b`.
    Sub,
    /// `a · b`.
    Mul,
    /// `a / b`.
    Div,
    /// `if a > b { a } else { b }`.
    Greater,
    /// `if a < b { a } else { b }`.
    Less,
    /// Bitwise and.
    And,
    /// Bitwise exclusive or.
    Xor,
}

/// Comparisons; those of NaN are false, except for [`NotEqual`](Self::NotEqual) and [`Unordered`](Self::Unordered).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// `a = b`.
    Equal,
    /// `a ≠ b`.
    NotEqual,
    /// `a > b`.
    Greater,
    /// `a ≥ b`.
    GreaterEqual,
    /// `a < b`.
    Less,
    /// `a ≤ b`.
    LessEqual,
    /// `a` or `b` is NaN.
    Unordered,
}

/// Instruction: the definition of a value, or a write to memory.
///
/// Values are vectors or masks. Operands with one element per lane advance with the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorInst {
    /// Bit pattern of one number for all lanes.
    Constant(u64),
    /// One number in memory for all lanes.
    Uniform(OperandId),
    /// One number per lane.
    Load(OperandId),
    /// Mask of one `bool` per lane.
    LoadMask(OperandId),
    /// Function of a vector.
    Unary(UnaryInst, VectorId),
    /// Function of two vectors.
    Binary(BinaryInst, [VectorId; 2]),
    /// Mask of a comparison of two vectors.
    Compare(Predicate, [VectorId; 2]),
    /// `if mask { a } else { b }`: mask, `a`, `b`.
    Select(VectorId, [VectorId; 2]),
    /// Writes one number per lane.
    Store(OperandId, VectorId),
    /// Writes one `bool` per lane.
    StoreMask(OperandId, VectorId),
    /// Adds element `i` to the partial sum `i mod n`, where the `n` partial sums have [`SUM_BYTES`] bytes.
    Sum(OperandId, VectorId),
}

/// Size of the partial sums of [`VectorInst::Sum`] in bytes.
pub const SUM_BYTES: usize = 256;

impl VectorInst {
    /// Values that are read.
    pub(crate) fn args(&self) -> impl Iterator<Item = VectorId> {
        let of = |all: &[VectorId]| {
            let mut args = [None; 3];
            args.iter_mut().zip(all).for_each(|(to, &id)| *to = Some(id));
            args.into_iter().flatten()
        };
        match *self {
            Self::Constant(_) | Self::Uniform(_) | Self::Load(_) | Self::LoadMask(_) => of(&[]),
            Self::Unary(_, a) | Self::Store(_, a) | Self::StoreMask(_, a) | Self::Sum(_, a) => {
                of(&[a])
            }
            Self::Binary(_, ab) | Self::Compare(_, ab) => of(&ab),
            Self::Select(mask, [a, b]) => of(&[mask, a, b]),
        }
    }

    /// True if the result is a mask.
    pub(crate) fn is_mask(&self) -> bool {
        matches!(self, Self::LoadMask(_) | Self::Compare(..))
    }

    /// True if the instruction writes to memory, and defines no value.
    pub(crate) fn is_write(&self) -> bool {
        matches!(self, Self::Store(..) | Self::StoreMask(..) | Self::Sum(..))
    }

    /// True for one number for all lanes.
    pub(crate) fn is_uniform(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Uniform(_))
    }

    /// Operand in memory, if any.
    pub(crate) fn operand(&self) -> Option<OperandId> {
        match *self {
            Self::Uniform(at) | Self::Load(at) | Self::LoadMask(at) => Some(at),
            Self::Store(at, _) | Self::StoreMask(at, _) | Self::Sum(at, _) => Some(at),
            _ => None,
        }
    }
}

/// Loop body over vectors.
#[derive(Clone, Debug)]
pub struct VectorProgram {
    pub(crate) element: VectorElement,
    pub(crate) operands: u32,
    pub(crate) insts: Vec<VectorInst>,
}

impl VectorProgram {
    /// Empty program.
    pub const fn new(element: VectorElement) -> Self {
        Self { element, operands: 0, insts: Vec::new() }
    }

    /// Adds an operand; the operand `i` is the `i`-th pointer of a call.
    ///
    /// # Panics
    /// If there are 2³² operands already.
    pub fn operand(&mut self) -> OperandId {
        let id = OperandId(self.operands);
        self.operands = self.operands.checked_add(1).expect("fewer than 2³² operands");
        id
    }

    /// Appends an instruction, and returns the value that it defines. Writes define a value that cannot be read.
    ///
    /// # Panics
    /// If there are 2³² instructions already.
    pub fn push(&mut self, inst: VectorInst) -> VectorId {
        let id = u32::try_from(self.insts.len()).expect("fewer than 2³² instructions");
        self.insts.push(inst);
        VectorId(id)
    }

    /// Number of operands.
    pub const fn operand_count(&self) -> usize {
        self.operands as usize
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.insts.len()
    }

    /// True if there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.insts.is_empty()
    }

    /// Checks that values are defined before they are read, that masks and vectors are not confused, and that operands
    /// exist.
    pub(crate) fn check(&self) -> Result<(), JitError> {
        let error = |at: usize, what: &str| JitError::Program(format!("instruction {at} {what}"));
        for (at, inst) in self.insts.iter().enumerate() {
            if inst.operand().is_some_and(|id| id.0 >= self.operands) {
                return Err(error(at, "uses an operand that does not exist"));
            }
            for (k, arg) in inst.args().enumerate() {
                let source = self.insts[..at].get(arg.0 as usize);
                let Some(source) = source.filter(|source| !source.is_write()) else {
                    return Err(error(at, "reads a value that is not defined before it"));
                };
                let mask = match inst {
                    VectorInst::Select(..) => k == 0,
                    VectorInst::StoreMask(..) => true,
                    _ => false,
                };
                if source.is_mask() != mask {
                    return Err(error(at, "reads a mask as a vector, or a vector as a mask"));
                }
            }
        }
        Ok(())
    }
}
