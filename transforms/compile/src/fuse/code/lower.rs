//! Instructions of a part as vector instructions. Every function has the bits of the engine's kernel: the comment beside
//! it is the scalar expression of the kernel.

use t4a_jit::{
    BinaryInst, OperandId, Predicate, UnaryInst, VectorElement, VectorId, VectorInst, VectorProgram,
};

use super::super::kernel::FusedFloat;
use super::super::{BinaryOp, Compare, Elementwise, UnaryOp};
use super::operand::CodedOperand;

/// True if there is vector code for the function.
pub(super) fn has_code(what: Elementwise) -> bool {
    match what {
        Elementwise::Unary(f) => matches!(
            f,
            UnaryOp::Neg
                | UnaryOp::Abs
                | UnaryOp::Sqrt
                | UnaryOp::Recip
                | UnaryOp::Square
                | UnaryOp::Cube
                | UnaryOp::PowHalf
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Round
                | UnaryOp::Trunc
                | UnaryOp::Sign
                | UnaryOp::Relu
        ),
        Elementwise::Binary(f) | Elementwise::Scalar(f, _) => matches!(
            f,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Div
                | BinaryOp::Max
                | BinaryOp::Min
                | BinaryOp::ReluBackward
                | BinaryOp::SigmoidBackward
        ),
        Elementwise::Clamp(..)
        | Elementwise::Leaky(_)
        | Elementwise::Compare(_)
        | Elementwise::CompareScalar(..)
        | Elementwise::Select
        | Elementwise::Fill(_)
        | Elementwise::Indicator => true,
        Elementwise::Reduce(..) => false,
    }
}

/// Program of a part under construction. Each place in memory is one operand, and is read once.
pub(super) struct Lowering<T> {
    pub(super) program: VectorProgram,
    pub(super) places: Vec<(CodedOperand, OperandId)>,
    reads: Vec<(CodedOperand, VectorId)>,
    constants: Vec<(u64, VectorId)>,
    float: std::marker::PhantomData<T>,
}

impl<T: FusedFloat> Lowering<T> {
    pub(super) fn new() -> Self {
        let element = if size_of::<T>() == 4 { VectorElement::F32 } else { VectorElement::F64 };
        Self {
            program: VectorProgram::new(element),
            places: Vec::new(),
            reads: Vec::new(),
            constants: Vec::new(),
            float: std::marker::PhantomData,
        }
    }

    /// Operand of a place.
    pub(super) fn operand(&mut self, place: CodedOperand) -> OperandId {
        if let Some((_, id)) = self.places.iter().find(|(one, _)| *one == place) {
            return *id;
        }
        let id = self.program.operand();
        self.places.push((place, id));
        id
    }

    /// Value of a place.
    pub(super) fn read(&mut self, place: CodedOperand) -> VectorId {
        if let Some((_, id)) = self.reads.iter().find(|(one, _)| *one == place) {
            return *id;
        }
        let operand = self.operand(place);
        let id = self.program.push(match place {
            CodedOperand::Flags(_) => VectorInst::LoadMask(operand),
            CodedOperand::Scalar(_) | CodedOperand::RowScalar(_) => VectorInst::Uniform(operand),
            _ => VectorInst::Load(operand),
        });
        self.reads.push((place, id));
        id
    }

    fn bits(&mut self, bits: u64) -> VectorId {
        if let Some((_, id)) = self.constants.iter().find(|(one, _)| *one == bits) {
            return *id;
        }
        let id = self.program.push(VectorInst::Constant(bits));
        self.constants.push((bits, id));
        id
    }

    fn constant(&mut self, x: T) -> VectorId {
        self.bits(x.bit_pattern())
    }

    /// Sign bit.
    const fn sign() -> u64 {
        1 << (8 * size_of::<T>() - 1)
    }

    fn apply(&mut self, f: BinaryInst, a: VectorId, b: VectorId) -> VectorId {
        self.program.push(VectorInst::Binary(f, [a, b]))
    }

    fn compare(&mut self, f: Predicate, a: VectorId, b: VectorId) -> VectorId {
        self.program.push(VectorInst::Compare(f, [a, b]))
    }

    fn select(&mut self, mask: VectorId, a: VectorId, b: VectorId) -> VectorId {
        self.program.push(VectorInst::Select(mask, [a, b]))
    }

    /// Function of these values, vectors or masks, in the order of the instruction.
    pub(super) fn each(&mut self, what: Elementwise, args: &[VectorId]) -> VectorId {
        match (what, args) {
            (Elementwise::Unary(f), &[x]) => self.unary(f, x),
            (Elementwise::Binary(f), &[x, y]) => self.binary(f, x, y, false),
            (Elementwise::Scalar(f, c), &[x]) => {
                let c = T::from_f64(c);
                let y = self.constant(c);
                self.binary(f, x, y, !c.is_nan())
            }
            (Elementwise::Clamp(low, high), &[x]) => {
                // x < low ? low : x, and then x > high ? high : x.
                let low = self.constant(T::from_f64(low));
                let x = self.apply(BinaryInst::Greater, low, x);
                let high = self.constant(T::from_f64(high));
                self.apply(BinaryInst::Less, high, x)
            }
            (Elementwise::Leaky(slope), &[x]) => {
                // x < 0 ? c x : x.
                let (zero, c) = (self.constant(T::ZERO), self.constant(T::from_f64(slope)));
                let (negative, scaled) =
                    (self.compare(Predicate::Less, x, zero), self.apply(BinaryInst::Mul, x, c));
                self.select(negative, scaled, x)
            }
            (Elementwise::Compare(f), &[x, y]) => self.compare(predicate(f), x, y),
            (Elementwise::CompareScalar(f, c), &[x]) => {
                let c = self.constant(T::from_f64(c));
                self.compare(predicate(f), x, c)
            }
            (Elementwise::Select, &[x, flags, y]) => self.select(flags, y, x),
            (Elementwise::Fill(c), &[x, flags]) => {
                let c = self.constant(T::from_f64(c));
                self.select(flags, c, x)
            }
            (Elementwise::Indicator, &[flags]) => {
                let (one, zero) = (self.constant(T::ONE), self.constant(T::ZERO));
                self.select(flags, one, zero)
            }
            _ => unreachable!("{what:?} has code for its operands"),
        }
    }

    fn unary(&mut self, f: UnaryOp, x: VectorId) -> VectorId {
        let of = |this: &mut Self, f| this.program.push(VectorInst::Unary(f, x));
        match f {
            UnaryOp::Neg => {
                let sign = self.bits(Self::sign());
                self.apply(BinaryInst::Xor, x, sign)
            }
            UnaryOp::Abs => {
                let rest = self.bits(Self::sign() - 1);
                self.apply(BinaryInst::And, x, rest)
            }
            UnaryOp::Sqrt => of(self, UnaryInst::Sqrt),
            UnaryOp::Floor => of(self, UnaryInst::Floor),
            UnaryOp::Ceil => of(self, UnaryInst::Ceil),
            UnaryOp::Round => of(self, UnaryInst::Round),
            UnaryOp::Trunc => of(self, UnaryInst::Trunc),
            UnaryOp::Recip => {
                let one = self.constant(T::ONE);
                self.apply(BinaryInst::Div, one, x)
            }
            UnaryOp::Square => self.apply(BinaryInst::Mul, x, x),
            UnaryOp::Cube => {
                let square = self.apply(BinaryInst::Mul, x, x);
                self.apply(BinaryInst::Mul, square, x)
            }
            UnaryOp::PowHalf => {
                // x = −∞ ? ∞ : √(x + 0).
                let zero = self.constant(T::ZERO);
                let sum = self.apply(BinaryInst::Add, x, zero);
                let root = self.program.push(VectorInst::Unary(UnaryInst::Sqrt, sum));
                let (low, high) = (self.constant(T::NEG_INFINITY), self.constant(T::INFINITY));
                let is_low = self.compare(Predicate::Equal, x, low);
                self.select(is_low, high, root)
            }
            UnaryOp::Sign => {
                // x > 0 ? 1 : x < 0 ? −1 : x + 0.
                let (zero, one) = (self.constant(T::ZERO), self.constant(T::ONE));
                let minus = self.constant(T::ONE.neg());
                let sum = self.apply(BinaryInst::Add, x, zero);
                let negative = self.compare(Predicate::Less, x, zero);
                let below = self.select(negative, minus, sum);
                let positive = self.compare(Predicate::Greater, x, zero);
                self.select(positive, one, below)
            }
            UnaryOp::Relu => {
                // x < 0 ? 0 : x.
                let zero = self.constant(T::ZERO);
                self.apply(BinaryInst::Greater, zero, x)
            }
            _ => unreachable!("{f:?} has code"),
        }
    }

    /// `ordered`: `y` is not NaN.
    fn binary(&mut self, f: BinaryOp, x: VectorId, y: VectorId, ordered: bool) -> VectorId {
        match f {
            BinaryOp::Add => self.apply(BinaryInst::Add, x, y),
            BinaryOp::Sub => self.apply(BinaryInst::Sub, x, y),
            BinaryOp::Mul => self.apply(BinaryInst::Mul, x, y),
            BinaryOp::Div => self.apply(BinaryInst::Div, x, y),
            BinaryOp::Max | BinaryOp::Min => {
                // y > x ? y : x, and all bits set if y is NaN.
                let f = if f == BinaryOp::Max { BinaryInst::Greater } else { BinaryInst::Less };
                let extreme = self.apply(f, y, x);
                if ordered {
                    return extreme;
                }
                let is_nan = self.compare(Predicate::Unordered, y, y);
                let all = self.bits(u64::MAX >> (64 - 8 * size_of::<T>()));
                self.select(is_nan, all, extreme)
            }
            BinaryOp::ReluBackward => {
                // x ≤ 0 ? 0 : y.
                let zero = self.constant(T::ZERO);
                let off = self.compare(Predicate::LessEqual, x, zero);
                self.select(off, zero, y)
            }
            BinaryOp::SigmoidBackward => {
                // (y x) (1 − x).
                let one = self.constant(T::ONE);
                let (product, rest) =
                    (self.apply(BinaryInst::Mul, y, x), self.apply(BinaryInst::Sub, one, x));
                self.apply(BinaryInst::Mul, product, rest)
            }
            _ => unreachable!("{f:?} has code"),
        }
    }
}

fn predicate(f: Compare) -> Predicate {
    match f {
        Compare::Equal => Predicate::Equal,
        Compare::NotEqual => Predicate::NotEqual,
        Compare::Greater => Predicate::Greater,
        Compare::GreaterEqual => Predicate::GreaterEqual,
        Compare::Less => Predicate::Less,
        Compare::LessEqual => Predicate::LessEqual,
    }
}
