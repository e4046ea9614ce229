//! Recording of a function: instructions over numbered values.
//!
//! ```text
//! Frame         operands of an executing instruction
//! Instruction   a step, the indices of its operands and of its first result
//! Tape          inputs, constants and instructions so far; open, broken or closed
//! Recording     an active tape, and the enclosing recording
//! Level         the recording that random numbers of a thread belong to
//! ```
//!
//! Operations are executed while they are recorded. Each tensor holds a reference to its recording, so tensors can move
//! to any thread, and operations that depend on no input are not recorded: they are constants. Random numbers have no
//! operand that refers to a recording; they belong to the innermost recording of the thread.

use std::any::Any as Dynamic;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;
use burn_t4a::ext::scan::FixedPoint;
use t4a_operations::AnyOperation;

use crate::error::CompileError;
use crate::fuse::Elementwise;
use crate::methods::MethodClass;
use crate::pass::PassArrays;
use crate::tensor::{AnyPrimitive, PrimitiveKind, TensorType, ValueNode};
use crate::trace::Source;
use crate::words::Word;

/// Executable step of an instruction.
pub(crate) trait Execute<B: Backend>: Send + Sync {
    /// Executes the step on the operands of the frame and appends the results.
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>) -> Result<(), String>;
    /// Static arguments in readable form.
    fn text(&self) -> Option<String> {
        None
    }
    /// Static arguments as words; instructions with equal names, words and operands are equal. `None` if there is no
    /// encoding.
    fn words(&self) -> Option<Vec<Word>> {
        None
    }
    /// The step with other static arguments.
    fn with(&self, _words: &[Word]) -> Option<Made<B>> {
        None
    }
    /// Recorded programs of a loop or a branch.
    fn nested(&self) -> Option<&NestedPrograms<B>> {
        None
    }
    /// The scan with another body.
    fn with_body(&self, _body: LoopBody<B>) -> Option<Arc<dyn Execute<B>>> {
        None
    }
    /// The operation outside of Burn's traits, if the table of operations has it, with the arrays of the instruction.
    fn operation(&self) -> Option<(AnyOperation, &PassArrays)> {
        None
    }
    /// The step with another operation of the same type.
    fn with_operation(&self, _op: &dyn Dynamic) -> Option<Arc<dyn Execute<B>>> {
        None
    }
}

/// Recorded programs of an instruction. Its operands are the consts, the captured values of each program, and then the
/// initial carry; a scan has xs after the carry, and its captured values last.
pub(crate) enum NestedPrograms<B: Backend> {
    Scan(LoopBody<B>),
    /// The test, which returns its carry and the truth value, and the body.
    While([LoopBody<B>; 2]),
    /// The branches. The first operand is the index.
    Switch(Vec<LoopBody<B>>),
    FixedPoint(LoopBody<B>, FixedPoint),
}

/// Recorded body of a loop or a branch. Its inputs are consts, carry, x and captured values, in this order; its outputs are
/// the next carry and y.
#[derive(Clone)]
pub struct LoopBody<B: Backend> {
    pub(crate) source: Source<B>,
    /// Number of consts, of carries and of xs.
    pub(crate) counts: [usize; 3],
    pub(crate) length: usize,
    pub(crate) reverse: bool,
}

/// Operands of an executing instruction.
pub(crate) struct Frame<B: Backend>(pub(crate) Vec<Option<AnyPrimitive<B>>>);

impl<B: Backend> Frame<B> {
    /// Takes operand `at`, which is possible once, so that a buffer without another owner can be reused.
    pub(crate) fn take<K: PrimitiveKind<B>>(&mut self, at: usize) -> K::Primitive {
        let x = self.any(at);
        K::restore(x).unwrap_or_else(|| unreachable!("operand {at} is of another kind"))
    }

    pub(crate) fn any(&mut self, at: usize) -> AnyPrimitive<B> {
        let x = self.0.get_mut(at).and_then(Option::take);
        x.unwrap_or_else(|| unreachable!("operand {at} is there once"))
    }
}

/// A step and its elementwise function, if any.
pub(crate) struct Made<B: Backend> {
    pub(crate) step: Arc<dyn Execute<B>>,
    pub(crate) elementwise: Option<Elementwise>,
}

/// One instruction of a recording.
pub struct Instruction<B: Backend> {
    pub(crate) name: &'static str,
    pub(crate) step: Arc<dyn Execute<B>>,
    pub(crate) operands: Vec<usize>,
    /// Index of the first result; results are numbered consecutively.
    pub(crate) first: usize,
    pub(crate) results: usize,
    /// True if equal operands give equal results, without side effects.
    pub(crate) pure: bool,
    pub(crate) class: MethodClass,
    /// Elementwise function, if the instruction has one.
    pub(crate) elementwise: Option<Elementwise>,
}

impl<B: Backend> Clone for Instruction<B> {
    fn clone(&self) -> Self {
        Self { step: self.step.clone(), operands: self.operands.clone(), ..*self }
    }
}

enum Phase {
    Open,
    Broken(CompileError),
    Closed,
}

/// Recorded inputs, constants and instructions.
pub(crate) struct InstructionTape<B: Backend> {
    phase: Phase,
    pub(crate) metas: Vec<TensorType>,
    pub(crate) inputs: usize,
    pub(crate) constants: Vec<(usize, AnyPrimitive<B>)>,
    /// Values of the enclosing recording that this one uses: own index, outer node, tensor.
    pub(crate) captured: Vec<(usize, ValueNode<B>, AnyPrimitive<B>)>,
    pub(crate) instructions: Vec<Instruction<B>>,
    /// True if a program of these instructions has the bits of the recorded values.
    pub(crate) exact: bool,
}

/// An active recording.
pub(crate) struct Recording<B: Backend> {
    tape: Mutex<InstructionTape<B>>,
    /// Enclosing recording, whose values this one may use.
    around: Option<Arc<Recording<B>>>,
}

impl<B: Backend> Recording<B> {
    /// Starts a recording whose first values are these inputs.
    pub(crate) fn new(inputs: &[AnyPrimitive<B>], around: Option<Arc<Self>>) -> Arc<Self> {
        let tape = Mutex::new(InstructionTape {
            phase: Phase::Open,
            metas: inputs.iter().map(AnyPrimitive::meta).collect(),
            inputs: inputs.len(),
            constants: Vec::new(),
            captured: Vec::new(),
            instructions: Vec::new(),
            exact: true,
        });
        Arc::new(Self { tape, around })
    }

    fn tape(&self) -> MutexGuard<'_, InstructionTape<B>> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if `other` is this recording or encloses it.
    pub(crate) fn is_within(&self, other: &Arc<Self>) -> bool {
        std::ptr::eq(self, Arc::as_ptr(other))
            || self.around.as_ref().is_some_and(|around| around.is_within(other))
    }

    /// Index in this recording of a value of this or an enclosing recording; captures it if necessary.
    pub(crate) fn enter(&self, node: &ValueNode<B>, x: &AnyPrimitive<B>) -> Option<usize> {
        if std::ptr::eq(self, Arc::as_ptr(&node.recording)) {
            return Some(node.id);
        }
        let around = self.around.as_ref()?;
        let id = around.enter(node, x)?;
        let mut tape = self.tape();
        let known = tape.captured.iter().find(|x| x.1.id == id).map(|x| x.0);
        Some(known.unwrap_or_else(|| {
            let own = tape.metas.len();
            tape.metas.push(x.meta());
            tape.captured.push((own, ValueNode { recording: around.clone(), id }, x.clone()));
            own
        }))
    }

    /// Ends the recording; tensors that outlive the function record no further operations.
    pub(crate) fn close(&self) -> Result<InstructionTape<B>, CompileError> {
        let mut tape = self.tape();
        let closed = InstructionTape {
            phase: Phase::Closed,
            metas: Vec::new(),
            inputs: 0,
            constants: Vec::new(),
            captured: Vec::new(),
            instructions: Vec::new(),
            exact: true,
        };
        match std::mem::replace(&mut *tape, closed) {
            InstructionTape { phase: Phase::Broken(error), .. } => Err(error),
            tape => Ok(tape),
        }
    }

    /// Adds a constant; returns its index.
    pub(crate) fn constant(&self, x: AnyPrimitive<B>) -> usize {
        self.tape().constant(x)
    }

    /// Appends an instruction if the recording is open; returns the index of its first result. `exact`: the instruction
    /// has the same bits and layouts in a program.
    pub(crate) fn push(
        &self,
        results: &[AnyPrimitive<B>],
        exact: bool,
        instruction: impl FnOnce(usize) -> Instruction<B>,
    ) -> usize {
        let mut tape = self.tape();
        let first = tape.metas.len();
        if matches!(tape.phase, Phase::Open) {
            tape.metas.extend(results.iter().map(AnyPrimitive::meta));
            tape.instructions.push(instruction(first));
            tape.exact &= exact;
        }
        first
    }

    /// Marks the recording as failed with the first error; the function continues to run.
    pub(crate) fn fail(&self, error: CompileError) {
        let mut tape = self.tape();
        if matches!(tape.phase, Phase::Open) {
            tape.phase = Phase::Broken(error);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.tape().phase, Phase::Open)
    }

    /// Marks the recording as failed because the function reads tensor data.
    pub(crate) fn read(&self, operation: &'static str) {
        let error = {
            let tape = self.tape();
            let last = tape.instructions.last().map_or("none", |last| last.name);
            let recorded = tape.instructions.len();
            CompileError::ReadsData { operation, place: place(), recorded, last }
        };
        self.fail(error);
    }
}

impl<B: Backend> InstructionTape<B> {
    /// Adds a constant; returns its index.
    pub(crate) fn constant(&mut self, x: AnyPrimitive<B>) -> usize {
        let id = self.metas.len();
        self.metas.push(x.meta());
        self.constants.push((id, x));
        id
    }
}

/// Location of the user code that is executing: the first stack frame outside of Burn, the crates of this workspace and
/// the standard library, with its line if debug information is available, and the method of Burn's tensors that it calls.
fn place() -> String {
    let trace = std::backtrace::Backtrace::force_capture().to_string();
    let mut lines = trace.lines().map(str::trim).peekable();
    let mut called = String::new();
    while let Some(line) = lines.next() {
        let Some((number, symbol)) = line.split_once(": ") else { continue };
        if number.parse::<usize>().is_err() {
            continue;
        }
        let at = lines.next_if(|next| next.starts_with("at ")).map(|at| &at[3..]);
        let name = symbol.trim_start_matches(['<', '&', '(']);
        if let Some(method) = method_of_tensors(name) {
            called = format!(", by Tensor::{method}");
        }
        let of_a_library = |at: &str| at.contains("/registry/src/") || at.contains("/rustc/");
        if at.is_some_and(of_a_library) {
            continue;
        }
        // Without debug information, frames are filtered by symbol name, including those of Burn's futures.
        const FOREIGN: [&str; 10] = [
            "burn_", "t4a_", "cubecl_", "futures_", "core::", "std::", "alloc::", "rust_", "_", "{",
        ];
        if FOREIGN.iter().any(|name_of| name.starts_with(name_of)) {
            continue;
        }
        let at = at.map_or(String::new(), |at| format!(" at {at}"));
        return format!("{symbol}{at}{called}");
    }
    format!("an unknown place{called}")
}

/// Name of the method if the symbol is one of Burn's tensors, such as `one_hot`, which reads its largest class.
fn method_of_tensors(symbol: &str) -> Option<&str> {
    let (path, method) = symbol.rsplit_once(">::")?;
    let is_name = method.chars().all(|c| c.is_alphanumeric() || c == '_');
    (path.starts_with("burn_tensor::tensor::api") && is_name).then_some(method)
}

/// A recording of an arbitrary backend.
type ErasedRecording = Arc<dyn Dynamic + Send + Sync>;

thread_local! {
    /// Active recordings of this thread, innermost last.
    static LEVELS: RefCell<Vec<ErasedRecording>> = const { RefCell::new(Vec::new()) };
}

/// Guard: while it is alive, random numbers of this thread belong to its recording.
pub(crate) struct RecordingGuard(PhantomData<*const ()>);

impl RecordingGuard {
    pub(crate) fn enter<B: Backend>(recording: Arc<Recording<B>>) -> Self {
        LEVELS.with_borrow_mut(|levels| levels.push(recording));
        Self(PhantomData)
    }
}

impl Drop for RecordingGuard {
    fn drop(&mut self) {
        LEVELS.with_borrow_mut(|levels| levels.pop());
    }
}

/// Innermost recording of this thread for backend `B`.
pub(crate) fn innermost<B: Backend>() -> Option<Arc<Recording<B>>> {
    LEVELS.with_borrow(|levels| {
        levels.iter().rev().find_map(|level| level.clone().downcast::<Recording<B>>().ok())
    })
}
