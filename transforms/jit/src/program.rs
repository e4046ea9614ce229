//! One step of a loop in static single assignment form.

/// Element types of machine code: `f32` and `f64`.
pub trait MachineFloat:
    Copy + PartialEq + std::fmt::Debug + Send + Sync + 'static + sealed::Sealed
{
}

impl MachineFloat for f32 {}
impl MachineFloat for f64 {}

pub(crate) mod sealed {
    use cranelift_codegen::ir::{Type, types};

    /// Cranelift type and bit pattern of a float.
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

/// Index of a value of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueId(pub(crate) u32);

/// Function of up to three scalars: its address, and data that is passed as first argument.
#[derive(Clone, Copy, Debug)]
pub struct Function<T> {
    pub(crate) address: unsafe extern "C" fn(*const u8, T, T, T) -> T,
    pub(crate) data: *const u8,
}

// SAFETY: `new` requires a function and data that may be used on any thread.
unsafe impl<T> Send for Function<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Function<T> {}

impl<T> Function<T> {
    /// Function with its data.
    ///
    /// # Safety
    /// The function can be called with this data on any thread until the last code that contains it is dropped, and does not
    /// unwind.
    pub const unsafe fn new(
        address: unsafe extern "C" fn(*const u8, T, T, T) -> T,
        data: *const u8,
    ) -> Self {
        Self { address, data }
    }
}

/// Definition of a value of a step.
#[derive(Clone, Copy, Debug)]
pub enum ValueDef<T> {
    /// Constant.
    Constant(T),
    /// Element of the memory that no step changes.
    Memory(usize),
    /// Element of the memory that is one of [`StepProgram::carries`], at the beginning of the step.
    Carry(usize),
    /// Element of an input, of those that belong to this step.
    Input {
        /// Index of the input.
        stream: usize,
        /// Index of the element, below [`Stream::elements`].
        element: usize,
    },
    /// `a + b`.
    Add([ValueId; 2]),
    /// `a − b`.
    Sub([ValueId; 2]),
    /// `a · b`.
    Mul([ValueId; 2]),
    /// `a / b`.
    Div([ValueId; 2]),
    /// `−a`.
    Neg(ValueId),
    /// `|a|`.
    Abs(ValueId),
    /// `√a`.
    Sqrt(ValueId),
    /// `f(a, b, c)`.
    Call(Function<T>, [ValueId; 3]),
}

impl<T> ValueDef<T> {
    /// Operands.
    pub(crate) fn operands(&self) -> Vec<ValueId> {
        match *self {
            Self::Constant(_) | Self::Memory(_) | Self::Carry(_) | Self::Input { .. } => Vec::new(),
            Self::Add(ab) | Self::Sub(ab) | Self::Mul(ab) | Self::Div(ab) => ab.to_vec(),
            Self::Neg(a) | Self::Abs(a) | Self::Sqrt(a) => vec![a],
            Self::Call(_, abc) => abc.to_vec(),
        }
    }
}

/// Layout of an input or output array: the same number of elements for each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Number of elements per step.
    pub elements: usize,
    /// True if the last elements belong to the first step.
    pub reverse: bool,
}

/// One step: values in the order of their computation, carries and outputs.
#[derive(Clone, Debug)]
pub struct StepProgram<T> {
    pub(crate) numbers: Vec<ValueDef<T>>,
    /// Input arrays.
    pub inputs: Vec<Stream>,
    /// Elements of the memory that change, each with its value at the end of a step.
    pub carries: Vec<(usize, ValueId)>,
    /// Output arrays, with the value of each element.
    pub outputs: Vec<(Stream, Vec<ValueId>)>,
}

impl<T> Default for StepProgram<T> {
    fn default() -> Self {
        let (numbers, inputs) = (Vec::new(), Vec::new());
        Self { numbers, inputs, carries: Vec::new(), outputs: Vec::new() }
    }
}

impl<T: Copy> StepProgram<T> {
    /// Appends a value.
    ///
    /// # Panics
    /// If there are 2³² values already.
    pub fn push(&mut self, number: ValueDef<T>) -> ValueId {
        let id = u32::try_from(self.numbers.len()).expect("fewer than 2³² numbers");
        self.numbers.push(number);
        ValueId(id)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}
