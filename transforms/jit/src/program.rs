//! One step as numbers.

/// Floats of machine code: `f32` and `f64`.
pub trait Float:
    Copy + PartialEq + std::fmt::Debug + Send + Sync + 'static + sealed::Sealed
{
}

impl Float for f32 {}
impl Float for f64 {}

pub(crate) mod sealed {
    use cranelift_codegen::ir::{Type, types};

    /// The type and the bits of a float in machine code.
    pub trait Sealed {
        const TYPE: Type;
        fn bits(self) -> u64;
    }

    impl Sealed for f32 {
        const TYPE: Type = types::F32;
        fn bits(self) -> u64 {
            self.to_bits().into()
        }
    }

    impl Sealed for f64 {
        const TYPE: Type = types::F64;
        fn bits(self) -> u64 {
            self.to_bits()
        }
    }
}

/// A number of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub(crate) u32);

/// A function of up to three numbers, by its address, and data that it gets first.
#[derive(Clone, Copy, Debug)]
pub struct Function<T> {
    pub(crate) address: unsafe extern "C" fn(*const u8, T, T, T) -> T,
    pub(crate) data: *const u8,
}

// SAFETY: `new` asks for a function and data that any thread may use.
unsafe impl<T> Send for Function<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Function<T> {}

impl<T> Function<T> {
    /// A function and its data.
    ///
    /// # Safety
    /// Until the last code that contains it is dropped the function may be called with this data on any thread. It does
    /// not unwind.
    pub const unsafe fn new(
        address: unsafe extern "C" fn(*const u8, T, T, T) -> T,
        data: *const u8,
    ) -> Self {
        Self { address, data }
    }
}

/// The definition of a number of a step.
#[derive(Clone, Copy, Debug)]
pub enum Number<T> {
    /// The same in every program.
    Constant(T),
    /// An element of the memory, which no step changes.
    Memory(usize),
    /// An element of the memory that is among [`Program::carries`].
    Carry(usize),
    /// An element of what an input has for this step.
    Input {
        /// The number of the input.
        stream: usize,
        /// Below the [`Stream::elements`] of it.
        element: usize,
    },
    /// `a + b`.
    Add([Id; 2]),
    /// `a − b`.
    Sub([Id; 2]),
    /// `a · b`.
    Mul([Id; 2]),
    /// `a / b`.
    Div([Id; 2]),
    /// `−a`.
    Neg(Id),
    /// `|a|`.
    Abs(Id),
    /// `√a`.
    Sqrt(Id),
    /// `f(a, b, c)`.
    Call(Function<T>, [Id; 3]),
}

impl<T> Number<T> {
    /// The numbers that it is made of.
    pub(crate) fn operands(&self) -> Vec<Id> {
        match *self {
            Self::Constant(_) | Self::Memory(_) | Self::Carry(_) | Self::Input { .. } => Vec::new(),
            Self::Add(ab) | Self::Sub(ab) | Self::Mul(ab) | Self::Div(ab) => ab.to_vec(),
            Self::Neg(a) | Self::Abs(a) | Self::Sqrt(a) => vec![a],
            Self::Call(_, abc) => abc.to_vec(),
        }
    }
}

/// An array with as many elements for each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// For each step.
    pub elements: usize,
    /// True if the first step has the last elements.
    pub reverse: bool,
}

/// One step, and the numbers that the next step takes from it.
#[derive(Clone, Debug)]
pub struct Program<T> {
    pub(crate) numbers: Vec<Number<T>>,
    /// Arrays that steps read.
    pub inputs: Vec<Stream>,
    /// Elements of the memory that change, each with its number after a step.
    pub carries: Vec<(usize, Id)>,
    /// Arrays that steps write: one number for each element.
    pub outputs: Vec<(Stream, Vec<Id>)>,
}

impl<T> Default for Program<T> {
    fn default() -> Self {
        let (numbers, inputs) = (Vec::new(), Vec::new());
        Self { numbers, inputs, carries: Vec::new(), outputs: Vec::new() }
    }
}

impl<T: Copy> Program<T> {
    /// One number more.
    ///
    /// # Panics
    /// With more than 2³² numbers.
    pub fn push(&mut self, number: Number<T>) -> Id {
        let id = u32::try_from(self.numbers.len()).expect("fewer than 2³² numbers");
        self.numbers.push(number);
        Id(id)
    }

    /// The count of numbers.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True without numbers.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}
