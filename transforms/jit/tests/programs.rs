//! Random programs against the same operations computed one by one.

use t4a_jit::{
    Function, JitError, MachineCode, MachineFloat, StepProgram, Stream, ValueDef, ValueId,
};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
}

/// The operations of a float.
trait Oracle: MachineFloat {
    fn of(x: f64) -> Self;
    fn two(kind: usize, x: Self, y: Self) -> Self;
    fn one(kind: usize, x: Self) -> Self;
    unsafe extern "C" fn three(data: *const u8, x: Self, y: Self, z: Self) -> Self;
    fn same(self, other: Self) -> bool;
}

macro_rules! oracles {
    ($($t:ident)*) => {$(
        impl Oracle for $t {
            fn of(x: f64) -> Self {
                x as $t
            }
            fn two(kind: usize, x: Self, y: Self) -> Self {
                match kind { 0 => x + y, 1 => x - y, 2 => x * y, _ => x / y }
            }
            fn one(kind: usize, x: Self) -> Self {
                match kind { 0 => -x, 1 => x.abs(), _ => x.sqrt() }
            }
            unsafe extern "C" fn three(data: *const u8, x: Self, y: Self, z: Self) -> Self {
                // SAFETY: the tests pass the address of a number of this type.
                let scale = unsafe { *data.cast::<$t>() };
                if x > y { scale * z } else { x - z }
            }
            fn same(self, other: Self) -> bool {
                self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
            }
        }
    )*};
}
oracles!(f32 f64);

/// A number of a program, for the oracle.
#[derive(Clone, Copy)]
enum Kind {
    Two(usize, usize, usize),
    One(usize, usize),
    Three([usize; 3]),
    Leaf,
}

fn random_programs<T: Oracle>(seed: u64) {
    let mut random = Random(seed * 7919 + 1);
    let scale = Box::new(T::of(0.75));
    // SAFETY: the number outlives the compiled code.
    let function = unsafe { Function::new(T::three, (&raw const *scale).cast()) };
    let mut program = StepProgram::<T>::default();
    let (memory_len, steps) = (6, 1 + random.below(7));
    let carried: Vec<usize> = [1, 4, 5][..1 + random.below(3)].to_vec();
    let stream = |random: &mut Random| Stream {
        elements: 1 + random.below(3),
        reverse: random.below(2) == 1,
    };
    program.inputs = (0..random.below(3)).map(|_| stream(&mut random)).collect();
    let mut numbers: Vec<(ValueDef<T>, Kind)> = Vec::new();
    for &at in &carried {
        numbers.push((ValueDef::Carry(at), Kind::Leaf));
    }
    for at in (0..memory_len).filter(|at| !carried.contains(at)) {
        numbers.push((ValueDef::Memory(at), Kind::Leaf));
    }
    numbers.push((ValueDef::Constant(T::of(-1.25)), Kind::Leaf));
    for (stream, of) in program.inputs.iter().enumerate() {
        numbers.extend(
            (0..of.elements).map(|element| (ValueDef::Input { stream, element }, Kind::Leaf)),
        );
    }
    let mut ids: Vec<ValueId> = numbers.iter().map(|(number, _)| program.push(*number)).collect();
    for _ in 0..5 + random.below(60) {
        let mut any = || random.below(ids.len());
        let (a, b, c) = (any(), any(), any());
        let (number, kind) = match random.below(8) {
            k @ 0..4 => {
                let ab = [ids[a], ids[b]];
                let all =
                    [ValueDef::Add(ab), ValueDef::Sub(ab), ValueDef::Mul(ab), ValueDef::Div(ab)];
                (all[k], Kind::Two(k, a, b))
            }
            k @ 4..7 => {
                let all = [ValueDef::Neg(ids[a]), ValueDef::Abs(ids[a]), ValueDef::Sqrt(ids[a])];
                (all[k - 4], Kind::One(k - 4, a))
            }
            _ => (ValueDef::Call(function, [ids[a], ids[b], ids[c]]), Kind::Three([a, b, c])),
        };
        ids.push(program.push(number));
        numbers.push((number, kind));
    }
    let mut any = || random.below(ids.len());
    let next: Vec<usize> = carried.iter().map(|_| any()).collect();
    program.carries = carried.iter().zip(&next).map(|(&at, &next)| (at, ids[next])).collect();
    let outputs: Vec<(Stream, Vec<usize>)> = (0..random.below(3))
        .map(|_| {
            let of = stream(&mut random);
            (of, (0..of.elements).map(|_| random.below(ids.len())).collect())
        })
        .collect();
    program.outputs =
        outputs.iter().map(|(of, all)| (*of, all.iter().map(|&k| ids[k]).collect())).collect();

    let mut value = || T::of(random.below(2001) as f64 / 500.0 - 2.0);
    let mut memory: Vec<T> = (0..memory_len).map(|_| value()).collect();
    let xs: Vec<Vec<T>> =
        program.inputs.iter().map(|x| (0..x.elements * steps).map(|_| value()).collect()).collect();
    let mut got = memory.clone();
    let mut ys: Vec<Vec<T>> =
        outputs.iter().map(|(y, _)| vec![T::of(0.0); y.elements * steps]).collect();
    let mut want = ys.clone();

    let code = MachineCode::new(&program).unwrap();
    let inputs: Vec<&[T]> = xs.iter().map(Vec::as_slice).collect();
    let mut to: Vec<&mut [T]> = ys.iter_mut().map(Vec::as_mut_slice).collect();
    code.run(&mut got, &inputs, &mut to, steps).unwrap();

    for step in 0..steps {
        let place = |of: &Stream| if of.reverse { steps - 1 - step } else { step } * of.elements;
        let mut values: Vec<T> = Vec::new();
        for (number, kind) in &numbers {
            values.push(match (*kind, *number) {
                (Kind::Two(k, a, b), _) => T::two(k, values[a], values[b]),
                (Kind::One(k, a), _) => T::one(k, values[a]),
                // SAFETY: as above.
                (Kind::Three([a, b, c]), _) => unsafe {
                    T::three((&raw const *scale).cast(), values[a], values[b], values[c])
                },
                (_, ValueDef::Carry(at) | ValueDef::Memory(at)) => memory[at],
                (_, ValueDef::Input { stream, element }) => {
                    xs[stream][place(&program.inputs[stream]) + element]
                }
                (_, ValueDef::Constant(x)) => x,
                _ => unreachable!(),
            });
        }
        for (want, (of, all)) in want.iter_mut().zip(&outputs) {
            for (j, &k) in all.iter().enumerate() {
                want[place(of) + j] = values[k];
            }
        }
        for (&at, &k) in carried.iter().zip(&next) {
            memory[at] = values[k];
        }
    }
    for (got, want) in got.iter().zip(&memory).chain(ys.iter().flatten().zip(want.iter().flatten()))
    {
        assert!(got.same(*want), "seed {seed}: {got:?} and {want:?}");
    }
}

#[test]
fn programs_are_their_numbers() {
    for seed in 0..200 {
        random_programs::<f32>(seed);
        random_programs::<f64>(seed);
    }
}

#[test]
fn what_is_refused() {
    let program = |number| {
        let mut program = StepProgram::<f64>::default();
        let c = program.push(ValueDef::Constant(1.0));
        program.push(number);
        program.carries = vec![(2, c)];
        program
    };
    let refused =
        |program: &StepProgram<f64>| matches!(MachineCode::new(program), Err(JitError::Program(_)));
    assert!(refused(&program(ValueDef::Carry(1))));
    assert!(refused(&program(ValueDef::Memory(2))));
    assert!(refused(&program(ValueDef::Input { stream: 0, element: 0 })));
    let mut other = StepProgram::<f64>::default();
    let (a, b) = (other.push(ValueDef::Constant(1.0)), other.push(ValueDef::Constant(1.0)));
    let mut one = StepProgram::<f64>::default();
    one.push(ValueDef::Add([a, b]));
    assert!(refused(&one));
    let mut twice = program(ValueDef::Carry(2));
    twice.carries = vec![(2, a), (2, b)];
    assert!(refused(&twice));
    let mut wrong = program(ValueDef::Carry(2));
    wrong.outputs = vec![(Stream { elements: 2, reverse: false }, vec![a])];
    assert!(refused(&wrong));

    let mut fine = program(ValueDef::Carry(2));
    fine.inputs = vec![Stream { elements: 3, reverse: false }];
    let code = MachineCode::new(&fine).unwrap();
    let run =
        |memory: usize, xs: &[f64], steps| code.run(&mut vec![0.0; memory], &[xs], &mut [], steps);
    assert!(matches!(run(2, &[0.0; 3], 1), Err(JitError::Length { needed: 3, .. })));
    assert!(matches!(run(3, &[0.0; 5], 2), Err(JitError::Length { needed: 6, .. })));
    assert!(code.run(&mut [0.0; 3], &[], &mut [], 1).is_err());
    run(3, &[0.0; 6], 2).unwrap();
    run(3, &[], 0).unwrap();
}
