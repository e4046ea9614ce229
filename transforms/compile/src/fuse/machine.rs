//! Interpreter of chains of cheap instructions over a block, with one accumulator.
//!
//! ```text
//! accumulator    K vectors of 64 bytes, kept in registers from instruction to instruction
//! instruction    acc ← acc ∘ x,  acc ← x ∘ acc,  acc ← f(acc),  acc ← x,  x ← acc
//! operand x      as many elements in memory, or one scalar for all lanes
//! ```
//!
//! The cost of an instruction is its arithmetic, a load if it has an operand in memory, and one predicted branch per
//! accumulator. Elements are processed by the scalar kernels of the engine, lane by lane, which the compiler
//! vectorises. The accumulator has a vector type, because arrays would be spilled to memory between instructions. A
//! second accumulator was slower: the compiler then moves both at every branch.

use t4a_algebra::simd::{Isa, Loop, dispatch};
use t4a_tensor::kernels::activation as act;
use t4a_tensor::kernels::arithmetic as arith;
use t4a_tensor::kernels::math;
use t4a_tensor::loops::kernel::{Binary, Unary};

use super::kernel::FusedFloat;
use super::{BinaryOp, UnaryOp};

/// A vector type of 64 bytes; two or four registers on targets with shorter vectors.
#[cfg(target_arch = "x86_64")]
mod carrier {
    pub(crate) type F32 = std::arch::x86_64::__m512;
    pub(crate) type F64 = std::arch::x86_64::__m512d;
}
#[cfg(target_arch = "aarch64")]
mod carrier {
    pub(crate) type F32 = std::arch::aarch64::float32x4x4_t;
    pub(crate) type F64 = std::arch::aarch64::float64x2x4_t;
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod carrier {
    pub(crate) type F32 = [f32; 16];
    pub(crate) type F64 = [f64; 8];
}
pub(crate) use carrier::{F32, F64};

/// Vectors per accumulator: a quarter of the AVX-512 registers, and half of the AVX2 registers.
const WIDE: usize = 8;
const NARROW: usize = 4;

/// Vectors of partial sums: the same number of lanes as the engine's sum of a long row, so that results are bitwise
/// equal.
const PARTS: usize = 4;

/// Number of partial sums of a row.
pub(crate) const fn parts<T>() -> usize {
    PARTS * 64 / size_of::<T>()
}

/// An instruction with the address of its operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainInst<T> {
    pub(crate) code: Opcode,
    /// Mask of the address increment: all ones for an operand that advances with the accumulator, else 0.
    pub(crate) moves: usize,
    pub(crate) at: *mut T,
}

/// Number of elements in an accumulator.
pub(crate) fn lanes<T>() -> usize {
    let vectors = if Isa::detect() == Isa::Avx512 { WIDE } else { NARROW };
    vectors * (64 / size_of::<T>())
}

/// Executes a chain over `blocks` consecutive accumulators.
///
/// # Safety
/// Operands that advance can be read, or written by [`Opcode::Store`], for `blocks` accumulators; the others for one
/// number, two for [`Opcode::Clamp`], [`parts`] for [`Opcode::Sum`]. No other thread accesses the elements that are
/// written.
pub(crate) unsafe fn run<T: FusedFloat>(chain: &[ChainInst<T>], blocks: usize) {
    // SAFETY: as the caller promises.
    unsafe { T::chain(chain, blocks) };
}

/// A chain, monomorphised for `W` lanes per vector and `K` vectors per accumulator.
pub(crate) struct ChainRun<'a, T, const W: usize, const K: usize> {
    chain: &'a [ChainInst<T>],
    blocks: usize,
}

/// Executes a chain for an element type with `W` lanes per vector.
///
/// # Safety
/// That of [`run`].
#[inline]
pub(crate) unsafe fn on<T: FusedFloat, const W: usize>(chain: &[ChainInst<T>], blocks: usize) {
    match Isa::detect() {
        Isa::Avx512 => dispatch(ChainRun::<T, W, WIDE> { chain, blocks }),
        _ => dispatch(ChainRun::<T, W, NARROW> { chain, blocks }),
    }
}

#[inline(always)]
fn lanes_of<T: FusedFloat, const W: usize>(x: T::Vector) -> [T; W] {
    const { assert!(size_of::<T::Vector>() == size_of::<[T; W]>()) };
    // SAFETY: both types consist of the same number of floats.
    unsafe { std::mem::transmute_copy(&x) }
}

#[inline(always)]
fn vector<T: FusedFloat, const W: usize>(x: [T; W]) -> T::Vector {
    const { assert!(size_of::<T::Vector>() == size_of::<[T; W]>()) };
    // SAFETY: as above.
    unsafe { std::mem::transmute_copy(&x) }
}

/// `acc ← f(acc)`.
#[inline(always)]
fn map<T: FusedFloat, const W: usize, const K: usize>(
    acc: &mut [T::Vector; K],
    f: impl Fn(T) -> T,
) {
    for acc in acc {
        let mut x = lanes_of::<T, W>(*acc);
        for x in &mut x {
            *x = f(*x);
        }
        *acc = vector(x);
    }
}

/// `acc ← f(acc, x)`.
///
/// # Safety
/// `x` can be read for the whole accumulator.
#[inline(always)]
unsafe fn zip<T: FusedFloat, const W: usize, const K: usize>(
    acc: &mut [T::Vector; K],
    x: *const T,
    f: impl Fn(T, T) -> T,
) {
    for (k, acc) in acc.iter_mut().enumerate() {
        // SAFETY: vector `k` of the operand; the cast type has the alignment of an element.
        let y = unsafe { *x.add(k * W).cast::<[T; W]>() };
        let mut x = lanes_of::<T, W>(*acc);
        for (x, &y) in x.iter_mut().zip(&y) {
            *x = f(*x, y);
        }
        *acc = vector(x);
    }
}

/// Binary kernels with the codes of their forms: `acc ∘ x`, `acc ∘ c`, `x ∘ acc`, `c ∘ acc`; unary kernels with their
/// code.
macro_rules! codes {
    (
        $($f:ident $zip:expr => $vector:ident $number:ident $of_vector:ident $of_number:ident;)*
        $(; $g:ident $map:expr)*
    ) => {
        /// Instruction code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Opcode {
            /// `acc ← x`.
            Load,
            /// `acc ← c`.
            Repeat,
            /// `x ← acc`.
            Store,
            /// `x ← x + acc`, accumulated into [`PARTS`] vectors.
            Sum,
            /// `acc ← min(max(acc, c₀), c₁)`.
            Clamp,
            /// `acc`, times `c` where it is negative.
            Leaky,
            $($vector, $number, $of_vector, $of_number,)*
            $($g,)*
        }

        impl Opcode {
            /// Code of a binary function with its other operand in memory or, if `number`, a scalar. If flipped, the
            /// accumulator is the second operand.
            pub(crate) fn zip(f: BinaryOp, number: bool, flipped: bool) -> Option<Self> {
                match f {
                    $(BinaryOp::$f => Some(match (number, flipped) {
                        (false, false) => Self::$vector,
                        (true, false) => Self::$number,
                        (false, true) => Self::$of_vector,
                        (true, true) => Self::$of_number,
                    }),)*
                    _ => None,
                }
            }

            /// Code of a unary function of the accumulator.
            pub(crate) fn map(f: UnaryOp) -> Option<Self> {
                match f {
                    $(UnaryOp::$g => Some(Self::$g),)*
                    _ => None,
                }
            }

            /// The code of the form with one scalar for all lanes.
            pub(crate) fn of_number(self) -> Self {
                match self {
                    Self::Load => Self::Repeat,
                    $(Self::$vector => Self::$number,)*
                    $(Self::$of_vector => Self::$of_number,)*
                    code => code,
                }
            }
        }

        impl<T: FusedFloat, const W: usize, const K: usize> Loop for ChainRun<'_, T, W, K> {
            type Output = ();
            #[inline(always)]
            fn run(self) {
                let mut acc = [vector([T::ZERO; W]); K];
                for block in 0..self.blocks {
                    let bytes = block * (W * K * size_of::<T>());
                    for one in self.chain {
                        let x = one.at.wrapping_byte_add(bytes & one.moves);
                        // SAFETY: the caller of `run` guarantees the operands required by this code.
                        unsafe {
                            match one.code {
                                Opcode::Load => {
                                    for (k, acc) in acc.iter_mut().enumerate() {
                                        *acc = x.add(k * W).cast::<T::Vector>().read_unaligned();
                                    }
                                }
                                Opcode::Repeat => acc = [vector([*x; W]); K],
                                Opcode::Store => {
                                    for (k, acc) in acc.iter().enumerate() {
                                        x.add(k * W).cast::<T::Vector>().write_unaligned(*acc);
                                    }
                                }
                                Opcode::Sum => {
                                    for (k, acc) in acc.iter().enumerate() {
                                        let x = x.add(k % PARTS * W).cast::<T::Vector>();
                                        let mut sum = lanes_of::<T, W>(x.read_unaligned());
                                        for (sum, x) in sum.iter_mut().zip(lanes_of::<T, W>(*acc)) {
                                            *sum = Binary::apply(arith::Add, *sum, x);
                                        }
                                        x.write_unaligned(vector(sum));
                                    }
                                }
                                Opcode::Clamp => {
                                    let clamp = arith::Clamp { low: *x, high: *x.add(1) };
                                    map::<T, W, K>(&mut acc, |a| Unary::apply(clamp, a));
                                }
                                Opcode::Leaky => {
                                    let leaky = act::LeakyRelu(*x);
                                    map::<T, W, K>(&mut acc, |a| Unary::apply(leaky, a));
                                }
                                $(
                                    Opcode::$vector => {
                                        zip::<T, W, K>(&mut acc, x, |a, x| Binary::apply($zip, a, x));
                                    }
                                    Opcode::$of_vector => {
                                        zip::<T, W, K>(&mut acc, x, |a, x| Binary::apply($zip, x, a));
                                    }
                                    Opcode::$number => {
                                        let c = *x;
                                        map::<T, W, K>(&mut acc, |a| Binary::apply($zip, a, c));
                                    }
                                    Opcode::$of_number => {
                                        let c = *x;
                                        map::<T, W, K>(&mut acc, |a| Binary::apply($zip, c, a));
                                    }
                                )*
                                $(Opcode::$g => map::<T, W, K>(&mut acc, |a| Unary::apply($map, a)),)*
                            }
                        }
                    }
                }
            }
        }
    };
}

codes! {
    Add arith::Add => Add AddNumber AddTo AddToNumber;
    Sub arith::Sub => Sub SubNumber SubFrom SubFromNumber;
    Mul arith::Mul => Mul MulNumber MulBy MulByNumber;
    Div arith::Div => Div DivNumber DivInto DivIntoNumber;
    Max arith::Max => Max MaxNumber MaxOf MaxOfNumber;
    Min arith::Min => Min MinNumber MinOf MinOfNumber;
    ReluBackward act::ReluBackward => Gate GateNumber GateOf GateOfNumber;
    SigmoidBackward act::SigmoidBackward => Logistic LogisticNumber LogisticOf LogisticOfNumber;
    ; Neg arith::Neg
    ; Abs arith::Abs
    ; Sqrt math::Sqrt
    ; Recip arith::Recip
    ; Square arith::Square
    ; Cube arith::Cube
    ; PowHalf arith::PowHalf
    ; Floor math::Floor
    ; Ceil math::Ceil
    ; Round math::Round
    ; Trunc math::Trunc
    ; Sign arith::Sign
    ; Relu act::Relu
}
