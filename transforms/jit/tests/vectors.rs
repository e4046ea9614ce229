//! Random vector programs against an interpreter of single elements.
#![cfg(target_arch = "x86_64")]

use proptest::prelude::*;
use t4a_jit::{
    BinaryInst, JitError, OperandId, Predicate, SUM_BYTES, UnaryInst, VectorCode, VectorElement,
    VectorId, VectorInst, VectorIsa, VectorProgram,
};

/// A float type with the scalar meaning of the instructions.
trait Element: Copy + PartialOrd + Default + std::fmt::Debug {
    const ELEMENT: VectorElement;
    const SIGN: u64;
    fn of(x: f64) -> Self;
    fn bits(self) -> u64;
    fn with_bits(bits: u64) -> Self;
    fn unary(f: UnaryInst, a: Self) -> Self;
    fn arithmetic(f: BinaryInst, a: Self, b: Self) -> Self;
}

macro_rules! element {
    ($t:ident, $bits:ident, $element:ident) => {
        impl Element for $t {
            const ELEMENT: VectorElement = VectorElement::$element;
            const SIGN: u64 = 1 << ($bits::BITS - 1);
            fn of(x: f64) -> Self {
                x as $t
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            fn with_bits(bits: u64) -> Self {
                $t::from_bits(bits as $bits)
            }
            fn unary(f: UnaryInst, a: Self) -> Self {
                match f {
                    UnaryInst::Sqrt => a.sqrt(),
                    UnaryInst::Round => a.round_ties_even(),
                    UnaryInst::Floor => a.floor(),
                    UnaryInst::Ceil => a.ceil(),
                    UnaryInst::Trunc => a.trunc(),
                }
            }
            fn arithmetic(f: BinaryInst, a: Self, b: Self) -> Self {
                match f {
                    BinaryInst::Add => a + b,
                    BinaryInst::Sub => a - b,
                    BinaryInst::Mul => a * b,
                    BinaryInst::Div => a / b,
                    BinaryInst::Greater => {
                        if a > b {
                            a
                        } else {
                            b
                        }
                    }
                    BinaryInst::Less => {
                        if a < b {
                            a
                        } else {
                            b
                        }
                    }
                    BinaryInst::And => Self::with_bits(a.bits() & b.bits()),
                    BinaryInst::Xor => Self::with_bits(a.bits() ^ b.bits()),
                }
            }
        }
    };
}

element!(f32, u32, F32);
element!(f64, u64, F64);

fn holds<T: PartialOrd>(f: Predicate, a: T, b: T) -> bool {
    match f {
        Predicate::Equal => a == b,
        Predicate::NotEqual => a != b,
        Predicate::Greater => a > b,
        Predicate::GreaterEqual => a >= b,
        Predicate::Less => a < b,
        Predicate::LessEqual => a <= b,
        Predicate::Unordered => a.partial_cmp(&b).is_none(),
    }
}

/// True for equal bits, and for any two NaN.
fn same<T: Element>(x: T, y: T) -> bool {
    let is_nan = |x: T| holds(Predicate::Unordered, x, x);
    x.bits() == y.bits() || (is_nan(x) && is_nan(y))
}

/// Memory of an operand.
#[derive(Clone, Debug)]
enum Array<T> {
    Number(T),
    Numbers(Vec<T>),
    Flags(Vec<bool>),
}

impl<T> Array<T> {
    fn address(&mut self) -> *mut u8 {
        match self {
            Self::Number(x) => std::ptr::from_mut(x).cast(),
            Self::Numbers(x) => x.as_mut_ptr().cast(),
            Self::Flags(x) => x.as_mut_ptr().cast(),
        }
    }
}

/// A program and its operands.
struct Case<T> {
    program: VectorProgram,
    /// The instructions again, as the interpreter reads them.
    insts: Vec<VectorInst>,
    arrays: Vec<Array<T>>,
    elements: usize,
}

const NUMBERS: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -3.5,
    1e-40,
    -1e-310,
    3e38,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    7.25,
    -0.125,
    1e9,
];

impl<T: Element> Case<T> {
    fn number(seed: u64, at: usize) -> T {
        let mix = (seed ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mix = mix ^ (mix >> 29);
        if mix.is_multiple_of(5) {
            T::of(NUMBERS[(mix >> 32) as usize % NUMBERS.len()])
        } else {
            T::of((mix >> 20) as f64 / (1u64 << 40) as f64 - 8.0)
        }
    }

    /// Builds a program of random words; every choice is valid.
    fn new(words: &[[u16; 4]], elements: usize, sums: bool) -> Self {
        let mut case = Self {
            program: VectorProgram::new(T::ELEMENT),
            insts: Vec::new(),
            arrays: Vec::new(),
            elements,
        };
        let x = case.operand(Array::Numbers((0..elements).map(|i| Self::number(1, i)).collect()));
        let (mut vectors, mut masks) = (vec![case.push(VectorInst::Load(x))], Vec::new());
        for (seed, &[kind, a, b, c]) in words.iter().enumerate() {
            let seed = seed as u64 + 2;
            let pick = |all: &[VectorId], k: u16| all[k as usize % all.len()];
            let [va, vb] = [a, b].map(|k| pick(&vectors, k));
            let numbers = || (0..elements).map(|i| Self::number(seed, i)).collect();
            let inst = match kind % 16 {
                0 => VectorInst::Load(case.operand(Array::Numbers(numbers()))),
                1 => VectorInst::Uniform(case.operand(Array::Number(Self::number(seed, 0)))),
                2 => VectorInst::Constant(Self::number(u64::from(a % 7), 0).bits()),
                3 => {
                    let flags = (0..elements).map(|i| Self::number(seed, i) > T::of(0.0));
                    VectorInst::LoadMask(case.operand(Array::Flags(flags.collect())))
                }
                4 => {
                    let f = [
                        UnaryInst::Sqrt,
                        UnaryInst::Round,
                        UnaryInst::Floor,
                        UnaryInst::Ceil,
                        UnaryInst::Trunc,
                    ];
                    VectorInst::Unary(f[c as usize % f.len()], va)
                }
                5 | 6 => {
                    let f = [
                        Predicate::Equal,
                        Predicate::NotEqual,
                        Predicate::Greater,
                        Predicate::GreaterEqual,
                        Predicate::Less,
                        Predicate::LessEqual,
                        Predicate::Unordered,
                    ];
                    VectorInst::Compare(f[c as usize % f.len()], [va, vb])
                }
                7 | 8 if !masks.is_empty() => VectorInst::Select(pick(&masks, c), [va, vb]),
                9 if !masks.is_empty() => {
                    let to = case.operand(Array::Flags(vec![false; elements]));
                    VectorInst::StoreMask(to, pick(&masks, c))
                }
                10 => VectorInst::Store(
                    case.operand(Array::Numbers(vec![T::default(); elements])),
                    va,
                ),
                11 if sums => {
                    let partial = SUM_BYTES / T::ELEMENT.bytes();
                    let start = (0..partial).map(|i| Self::number(seed, i)).collect();
                    VectorInst::Sum(case.operand(Array::Numbers(start)), va)
                }
                12 => {
                    // The payload of a NaN is unspecified, but not its absolute value or negation.
                    let (f, bits) = if c.is_multiple_of(2) {
                        (BinaryInst::And, !T::SIGN)
                    } else {
                        (BinaryInst::Xor, T::SIGN)
                    };
                    let bits = case.push(VectorInst::Constant(T::with_bits(bits).bits()));
                    VectorInst::Binary(f, [va, bits])
                }
                _ => {
                    let f = [
                        BinaryInst::Add,
                        BinaryInst::Sub,
                        BinaryInst::Mul,
                        BinaryInst::Div,
                        BinaryInst::Greater,
                        BinaryInst::Less,
                    ];
                    VectorInst::Binary(f[c as usize % f.len()], [va, vb])
                }
            };
            let id = case.push(inst);
            match inst {
                VectorInst::LoadMask(_) | VectorInst::Compare(..) => masks.push(id),
                VectorInst::Store(..) | VectorInst::StoreMask(..) | VectorInst::Sum(..) => {}
                _ => vectors.push(id),
            }
        }
        let last = vectors[vectors.len() - 1];
        let to = case.operand(Array::Numbers(vec![T::default(); elements]));
        case.push(VectorInst::Store(to, last));
        case
    }

    fn operand(&mut self, array: Array<T>) -> OperandId {
        self.arrays.push(array);
        self.program.operand()
    }

    fn push(&mut self, inst: VectorInst) -> VectorId {
        self.insts.push(inst);
        self.program.push(inst)
    }

    /// Executes the instructions for one element after another.
    fn interpret(&self, arrays: &mut [Array<T>]) {
        let (at, index) = (OperandId::index, VectorId::index);
        let partial = SUM_BYTES / T::ELEMENT.bytes();
        for i in 0..self.elements {
            let mut values = vec![T::default(); self.insts.len()];
            let mut masks = vec![false; self.insts.len()];
            for (k, inst) in self.insts.iter().enumerate() {
                let v = |id| values[index(id)];
                match *inst {
                    VectorInst::Constant(bits) => values[k] = T::with_bits(bits),
                    VectorInst::Uniform(x) => {
                        let Array::Number(x) = &arrays[at(x)] else { panic!() };
                        values[k] = *x;
                    }
                    VectorInst::Load(x) => {
                        let Array::Numbers(x) = &arrays[at(x)] else { panic!() };
                        values[k] = x[i];
                    }
                    VectorInst::LoadMask(x) => {
                        let Array::Flags(x) = &arrays[at(x)] else { panic!() };
                        masks[k] = x[i];
                    }
                    VectorInst::Unary(f, a) => values[k] = T::unary(f, v(a)),
                    VectorInst::Binary(f, [a, b]) => values[k] = T::arithmetic(f, v(a), v(b)),
                    VectorInst::Compare(f, [a, b]) => masks[k] = holds(f, v(a), v(b)),
                    VectorInst::Select(m, [a, b]) => {
                        values[k] = if masks[index(m)] { v(a) } else { v(b) };
                    }
                    VectorInst::Store(to, a) => {
                        let Array::Numbers(to) = &mut arrays[at(to)] else { panic!() };
                        to[i] = values[index(a)];
                    }
                    VectorInst::StoreMask(to, m) => {
                        let Array::Flags(to) = &mut arrays[at(to)] else { panic!() };
                        to[i] = masks[index(m)];
                    }
                    VectorInst::Sum(to, a) => {
                        let Array::Numbers(to) = &mut arrays[at(to)] else { panic!() };
                        to[i % partial] =
                            T::arithmetic(BinaryInst::Add, to[i % partial], values[index(a)]);
                    }
                }
            }
        }
    }

    /// Compares machine code of every instruction set of this machine with the interpreter.
    fn check(&self) {
        let mut want = self.arrays.clone();
        self.interpret(&mut want);
        for isa in [VectorIsa::Avx2, VectorIsa::Avx512] {
            let code = match VectorCode::new(&self.program, isa) {
                Ok(code) => code,
                Err(JitError::Backend(_)) => continue,
                Err(error) => panic!("{error}"),
            };
            let mut arrays = self.arrays.clone();
            let addresses: Vec<*mut u8> = arrays.iter_mut().map(Array::address).collect();
            // SAFETY: the arrays have this number of elements, or one, or a period of partial sums.
            unsafe { code.run(&addresses, self.elements) };
            for (k, (array, want)) in arrays.iter().zip(&want).enumerate() {
                let same = match (array, want) {
                    (Array::Number(x), Array::Number(y)) => x.bits() == y.bits(),
                    (Array::Numbers(x), Array::Numbers(y)) => {
                        x.iter().zip(y).all(|(x, y)| same(*x, *y))
                    }
                    (Array::Flags(x), Array::Flags(y)) => {
                        // Any other byte would not be a `bool`.
                        let bytes =
                            |x: &[bool]| -> Vec<u8> { x.iter().map(|&x| u8::from(x)).collect() };
                        bytes(x) == bytes(y)
                    }
                    _ => false,
                };
                assert!(same, "{isa:?}, operand {k}: {array:?} is not {want:?}; {:?}", self.insts);
            }
        }
    }
}

fn words() -> impl Strategy<Value = Vec<[u16; 4]>> {
    prop_oneof![
        prop::collection::vec(any::<[u16; 4]>(), 0..12),
        prop::collection::vec(any::<[u16; 4]>(), 0..90)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_programs_have_the_bits_of_an_interpreter(words in words(), elements in 0_usize..131) {
        Case::<f32>::new(&words, elements, false).check();
        Case::<f64>::new(&words, elements, false).check();
    }

    #[test]
    fn sums_have_the_order_of_partial_sums(words in words(), periods in 0_usize..4) {
        Case::<f32>::new(&words, 64 * periods, true).check();
        Case::<f64>::new(&words, 32 * periods, true).check();
    }
}

#[test]
fn inconsistent_programs_are_errors() {
    let build = |f: &dyn Fn(&mut VectorProgram)| {
        let mut program = VectorProgram::new(VectorElement::F32);
        f(&mut program);
        VectorCode::new(&program, VectorIsa::Avx2).map(|_| ())
    };
    let is_program = |result: Result<(), JitError>| matches!(result, Err(JitError::Program(_)));
    // An operand of another program.
    let far = {
        let mut other = VectorProgram::new(VectorElement::F32);
        other.operand();
        other.operand()
    };
    assert!(is_program(build(&|p| {
        p.push(VectorInst::Load(far));
    })));
    // A mask in the place of a vector, and the reverse.
    assert!(is_program(build(&|p| {
        let x = p.operand();
        let mask = p.push(VectorInst::LoadMask(x));
        p.push(VectorInst::Unary(UnaryInst::Sqrt, mask));
    })));
    assert!(is_program(build(&|p| {
        let x = p.operand();
        let x = p.push(VectorInst::Load(x));
        p.push(VectorInst::Select(x, [x, x]));
    })));
    // The result of a write.
    assert!(is_program(build(&|p| {
        let x = p.operand();
        let (a, to) = (p.push(VectorInst::Load(x)), p.operand());
        let none = p.push(VectorInst::Store(to, a));
        p.push(VectorInst::Unary(UnaryInst::Sqrt, none));
    })));
}
