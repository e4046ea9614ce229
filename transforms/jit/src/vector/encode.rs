//! Instruction sets: the code of each instruction for AVX2 and AVX-512, f32 and f64.

use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use super::program::{BinaryInst, Predicate, UnaryInst, VectorElement, VectorIsa};
use crate::JitError;

/// Register of a value: a vector, or a mask register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueRegister {
    Vector(u8),
    Mask(u8),
}

/// Instruction set for one element type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    pub(super) isa: VectorIsa,
    pub(super) element: VectorElement,
}

/// Codes in the order AVX2 f32, AVX2 f64, AVX-512 f32, AVX-512 f64.
type Codes = [Code; 4];

/// Machine instructions of a function under construction.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) insts: Vec<Instruction>,
    labels: u64,
    /// Label of the next instruction.
    bound: Option<u64>,
}

/// An instruction, or the error of operands that it does not have.
type Encoded = std::result::Result<Instruction, IcedError>;
pub(super) type Result<T> = std::result::Result<T, JitError>;

pub(super) fn failed(error: impl std::fmt::Display) -> JitError {
    JitError::Backend(error.to_string())
}

impl Listing {
    /// Appends an instruction.
    pub(super) fn push(&mut self, inst: Encoded) -> Result<()> {
        let mut inst = inst.map_err(failed)?;
        if let Some(label) = self.bound.take() {
            inst.set_ip(label);
        }
        self.insts.push(inst);
        Ok(())
    }

    /// New label.
    pub(super) fn label(&mut self) -> u64 {
        self.labels += 1;
        self.labels
    }

    /// Binds a label to the next instruction.
    pub(super) fn bind(&mut self, label: u64) {
        self.bound = Some(label);
    }

    /// Appends a branch to a label.
    pub(super) fn branch(&mut self, code: Code, label: u64) -> Result<()> {
        self.push(Instruction::with_branch(code, label))
    }
}

fn numbered(first: Register, n: u8) -> Register {
    first + u32::from(n)
}

pub(super) fn xmm(n: u8) -> Register {
    numbered(Register::XMM0, n)
}

pub(super) fn k(n: u8) -> Register {
    numbered(Register::K0, n)
}

/// `[base + index · scale + offset]`.
pub(super) fn memory(
    base: Register,
    index: Register,
    scale: usize,
    offset: usize,
) -> MemoryOperand {
    MemoryOperand::new(base, index, scale as u32, offset as i64, 1, false, Register::None)
}

impl Encoding {
    /// Number of elements in a vector.
    pub(super) const fn lanes(self) -> usize {
        self.isa.bytes() / self.element.bytes()
    }

    /// Number of vector registers.
    pub(super) const fn vectors(self) -> usize {
        match self.isa {
            VectorIsa::Avx2 => 16,
            VectorIsa::Avx512 => 32,
        }
    }

    /// Vector register.
    pub(super) fn vector(self, n: u8) -> Register {
        match self.isa {
            VectorIsa::Avx2 => numbered(Register::YMM0, n),
            VectorIsa::Avx512 => numbered(Register::ZMM0, n),
        }
    }

    fn is_512(self) -> bool {
        self.isa == VectorIsa::Avx512
    }

    fn pick(self, codes: Codes) -> Code {
        let element = usize::from(self.element == VectorElement::F64);
        codes[2 * usize::from(self.is_512()) + element]
    }

    pub(super) fn load(self, to: u8, from: MemoryOperand) -> Encoded {
        let code = self.pick([
            Code::VEX_Vmovups_ymm_ymmm256,
            Code::VEX_Vmovupd_ymm_ymmm256,
            Code::EVEX_Vmovups_zmm_k1z_zmmm512,
            Code::EVEX_Vmovupd_zmm_k1z_zmmm512,
        ]);
        Instruction::with2(code, self.vector(to), from)
    }

    pub(super) fn store(self, to: MemoryOperand, from: u8) -> Encoded {
        let code = self.pick([
            Code::VEX_Vmovups_ymmm256_ymm,
            Code::VEX_Vmovupd_ymmm256_ymm,
            Code::EVEX_Vmovups_zmmm512_k1z_zmm,
            Code::EVEX_Vmovupd_zmmm512_k1z_zmm,
        ]);
        Instruction::with2(code, to, self.vector(from))
    }

    pub(super) fn broadcast(self, to: u8, from: MemoryOperand) -> Encoded {
        let code = self.pick([
            Code::VEX_Vbroadcastss_ymm_m32,
            Code::VEX_Vbroadcastsd_ymm_m64,
            Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32,
            Code::EVEX_Vbroadcastsd_zmm_k1z_xmmm64,
        ]);
        Instruction::with2(code, self.vector(to), from)
    }

    pub(super) fn unary(self, f: UnaryInst, to: u8, a: u8) -> Encoded {
        let (to, a) = (self.vector(to), self.vector(a));
        let round = self.pick([
            Code::VEX_Vroundps_ymm_ymmm256_imm8,
            Code::VEX_Vroundpd_ymm_ymmm256_imm8,
            Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
            Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae,
        ]);
        // Rounding modes without the exception of inexact results.
        let mode: u32 = match f {
            UnaryInst::Round => 8,
            UnaryInst::Floor => 9,
            UnaryInst::Ceil => 10,
            UnaryInst::Trunc => 11,
            UnaryInst::Sqrt => {
                let code = self.pick([
                    Code::VEX_Vsqrtps_ymm_ymmm256,
                    Code::VEX_Vsqrtpd_ymm_ymmm256,
                    Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er,
                    Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er,
                ]);
                return Instruction::with2(code, to, a);
            }
        };
        Instruction::with3(round, to, a, mode)
    }

    pub(super) fn binary(self, f: BinaryInst, to: u8, [a, b]: [u8; 2]) -> Encoded {
        macro_rules! codes {
            ($ps:ident $pd:ident $wide_ps:ident $wide_pd:ident) => {
                [Code::$ps, Code::$pd, Code::$wide_ps, Code::$wide_pd]
            };
        }
        let code = self.pick(match f {
            BinaryInst::Add => codes!(VEX_Vaddps_ymm_ymm_ymmm256 VEX_Vaddpd_ymm_ymm_ymmm256
                EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er),
            BinaryInst::Sub => codes!(VEX_Vsubps_ymm_ymm_ymmm256 VEX_Vsubpd_ymm_ymm_ymmm256
                EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er),
            BinaryInst::Mul => codes!(VEX_Vmulps_ymm_ymm_ymmm256 VEX_Vmulpd_ymm_ymm_ymmm256
                EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er),
            BinaryInst::Div => codes!(VEX_Vdivps_ymm_ymm_ymmm256 VEX_Vdivpd_ymm_ymm_ymmm256
                EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er),
            BinaryInst::Greater => codes!(VEX_Vmaxps_ymm_ymm_ymmm256 VEX_Vmaxpd_ymm_ymm_ymmm256
                EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae),
            BinaryInst::Less => codes!(VEX_Vminps_ymm_ymm_ymmm256 VEX_Vminpd_ymm_ymm_ymmm256
                EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae),
            BinaryInst::And => codes!(VEX_Vandps_ymm_ymm_ymmm256 VEX_Vandpd_ymm_ymm_ymmm256
                EVEX_Vandps_zmm_k1z_zmm_zmmm512b32 EVEX_Vandpd_zmm_k1z_zmm_zmmm512b64),
            BinaryInst::Xor => codes!(VEX_Vxorps_ymm_ymm_ymmm256 VEX_Vxorpd_ymm_ymm_ymmm256
                EVEX_Vxorps_zmm_k1z_zmm_zmmm512b32 EVEX_Vxorpd_zmm_k1z_zmm_zmmm512b64),
        });
        Instruction::with3(code, self.vector(to), self.vector(a), self.vector(b))
    }

    pub(super) fn compare(self, f: Predicate, to: ValueRegister, [a, b]: [u8; 2]) -> Encoded {
        let code = self.pick([
            Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
            Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8,
            Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
            Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae,
        ]);
        let predicate: u32 = match f {
            Predicate::Equal => 0x00,
            Predicate::Unordered => 0x03,
            Predicate::NotEqual => 0x04,
            Predicate::Less => 0x11,
            Predicate::LessEqual => 0x12,
            Predicate::GreaterEqual => 0x1d,
            Predicate::Greater => 0x1e,
        };
        let to = match to {
            ValueRegister::Vector(n) => self.vector(n),
            ValueRegister::Mask(n) => k(n),
        };
        Instruction::with4(code, to, self.vector(a), self.vector(b), predicate)
    }

    /// `to ← if mask { a } else { b }`.
    pub(super) fn select(self, to: u8, mask: ValueRegister, [a, b]: [u8; 2]) -> Encoded {
        let code = self.pick([
            Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm,
            Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm,
            Code::EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vblendmpd_zmm_k1z_zmm_zmmm512b64,
        ]);
        let (to, a, b) = (self.vector(to), self.vector(a), self.vector(b));
        match mask {
            ValueRegister::Vector(n) => Instruction::with4(code, to, b, a, self.vector(n)),
            ValueRegister::Mask(n) => {
                let mut inst = Instruction::with3(code, to, b, a)?;
                inst.set_op_mask(k(n));
                Ok(inst)
            }
        }
    }

    /// Mask of the `bool`s at `from`; `spare` is a vector register that is overwritten.
    pub(super) fn load_mask(
        self,
        list: &mut Listing,
        to: ValueRegister,
        from: MemoryOperand,
        spare: u8,
    ) -> Result<()> {
        let f32 = self.element == VectorElement::F32;
        match to {
            ValueRegister::Mask(n) => {
                let code = if f32 {
                    Code::EVEX_Vmovdqu8_xmm_k1z_xmmm128
                } else {
                    Code::EVEX_Vmovq_xmm_xmmm64
                };
                list.push(Instruction::with2(code, xmm(spare), from))?;
                let test = Code::EVEX_Vptestmb_kr_k1_xmm_xmmm128;
                list.push(Instruction::with3(test, k(n), xmm(spare), xmm(spare)))
            }
            ValueRegister::Vector(n) => {
                let (widen, greater) = if f32 {
                    (Code::VEX_Vpmovzxbd_ymm_xmmm64, Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256)
                } else {
                    (Code::VEX_Vpmovzxbq_ymm_xmmm32, Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256)
                };
                let (to, zero) = (self.vector(n), self.vector(spare));
                list.push(Instruction::with2(widen, to, from))?;
                list.push(Instruction::with3(Code::VEX_Vpxor_ymm_ymm_ymmm256, zero, zero, zero))?;
                list.push(Instruction::with3(greater, to, to, zero))
            }
        }
    }

    /// Writes a mask as `bool`s; `spare` are vector registers that are overwritten.
    pub(super) fn store_mask(
        self,
        list: &mut Listing,
        to: MemoryOperand,
        mask: ValueRegister,
        spare: [u8; 2],
    ) -> Result<()> {
        let f32 = self.element == VectorElement::F32;
        let [x, y] = spare.map(xmm);
        match mask {
            ValueRegister::Mask(n) => {
                // Bytes of a set bit are −1, with the absolute value 1.
                list.push(Instruction::with2(Code::EVEX_Vpmovm2b_xmm_kr, x, k(n)))?;
                list.push(Instruction::with2(Code::EVEX_Vpabsb_xmm_k1z_xmmm128, x, x))?;
                let code = if f32 {
                    Code::EVEX_Vmovdqu8_xmmm128_k1z_xmm
                } else {
                    Code::EVEX_Vmovq_xmmm64_xmm
                };
                list.push(Instruction::with2(code, to, x))
            }
            ValueRegister::Vector(n) => {
                // Lanes of −1 or 0, narrowed with saturation.
                let words = Code::VEX_Vpackssdw_xmm_xmm_xmmm128;
                let bytes = Code::VEX_Vpacksswb_xmm_xmm_xmmm128;
                let high = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
                list.push(Instruction::with3(high, y, self.vector(n), 1))?;
                list.push(Instruction::with3(words, x, xmm(n), y))?;
                list.push(Instruction::with3(bytes, x, x, x))?;
                if !f32 {
                    // A 64-bit lane is two bytes here.
                    list.push(Instruction::with3(bytes, x, x, x))?;
                }
                list.push(Instruction::with2(Code::VEX_Vpabsb_xmm_xmmm128, x, x))?;
                let code = if f32 { Code::VEX_Vmovq_xmmm64_xmm } else { Code::VEX_Vmovd_rm32_xmm };
                list.push(Instruction::with2(code, to, x))
            }
        }
    }
}
