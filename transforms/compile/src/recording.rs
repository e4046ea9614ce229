//! What a function did: instructions over numbered values.
//!
//! ```text
//! Frame         the operands of an instruction that runs
//! Instruction   a step, the values that it takes and the first of those that it makes
//! Tape          inputs, constants and instructions so far; open, broken or closed
//! Recording     a tape under way, and the one around it
//! Level         the recording that random numbers of a thread belong to
//! ```
//!
//! Operations run while they are recorded. Tensors carry the recording that they belong to, so it follows
//! them through any thread, and what depends on no input is not recorded at all: constants are folded by
//! being computed. Random numbers have no operand that could name their recording; the innermost one of
//! the thread is theirs.

use std::any::Any as Dynamic;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;

use crate::error::CompileError;
use crate::fuse::Elementwise;
use crate::tensor::{Any, Kind, Meta, Node};
use crate::words::Word;

/// What an instruction does.
pub(crate) trait Execute<B: Backend>: Send + Sync {
    /// Appends the results of the operands at hand.
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<Any<B>>) -> Result<(), String>;
    /// Its static arguments, to be read.
    fn text(&self) -> Option<String> {
        None
    }
    /// Its static arguments; two instructions with equal names, words and operands are equal. `None` if
    /// words do not tell.
    fn words(&self) -> Option<Vec<Word>> {
        None
    }
    /// The same method with other static arguments.
    fn with(&self, _words: &[Word]) -> Option<Made<B>> {
        None
    }
}

/// The operands of an instruction that runs.
pub(crate) struct Frame<B: Backend>(pub(crate) Vec<Option<Any<B>>>);

impl<B: Backend> Frame<B> {
    /// Operand `at`; each is taken once, so that memory without another owner can be written over.
    pub(crate) fn take<K: Kind<B>>(&mut self, at: usize) -> K::Primitive {
        let x = self.any(at);
        K::restore(x).unwrap_or_else(|| unreachable!("operand {at} is of another kind"))
    }

    pub(crate) fn any(&mut self, at: usize) -> Any<B> {
        let x = self.0.get_mut(at).and_then(Option::take);
        x.unwrap_or_else(|| unreachable!("operand {at} is there once"))
    }
}

/// A step, and what it computes if that is elementwise.
pub(crate) struct Made<B: Backend> {
    pub(crate) step: Arc<dyn Execute<B>>,
    pub(crate) elementwise: Option<Elementwise>,
}

/// One instruction of a recording.
pub struct Instruction<B: Backend> {
    pub(crate) name: &'static str,
    pub(crate) step: Arc<dyn Execute<B>>,
    pub(crate) operands: Vec<usize>,
    /// The first of its results, which are numbered consecutively.
    pub(crate) first: usize,
    pub(crate) results: usize,
    /// Whether it gives the same results for the same operands and does nothing else.
    pub(crate) pure: bool,
    /// What it computes, if that is elementwise.
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

/// Inputs, constants and instructions.
pub(crate) struct Tape<B: Backend> {
    phase: Phase,
    pub(crate) metas: Vec<Meta>,
    pub(crate) inputs: usize,
    pub(crate) constants: Vec<(usize, Any<B>)>,
    /// Values of the recording around this one, as they enter it.
    pub(crate) captured: Vec<(usize, Node<B>, Any<B>)>,
    pub(crate) instructions: Vec<Instruction<B>>,
}

/// A recording under way.
pub(crate) struct Recording<B: Backend> {
    tape: Mutex<Tape<B>>,
    /// The one around it, whose values it may use.
    around: Option<Arc<Recording<B>>>,
}

impl<B: Backend> Recording<B> {
    /// A recording whose first values are these inputs.
    pub(crate) fn new(inputs: &[Any<B>], around: Option<Arc<Self>>) -> Arc<Self> {
        let tape = Mutex::new(Tape {
            phase: Phase::Open,
            metas: inputs.iter().map(Any::meta).collect(),
            inputs: inputs.len(),
            constants: Vec::new(),
            captured: Vec::new(),
            instructions: Vec::new(),
        });
        Arc::new(Self { tape, around })
    }

    fn tape(&self) -> MutexGuard<'_, Tape<B>> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `other` is this one or around it.
    pub(crate) fn is_within(&self, other: &Arc<Self>) -> bool {
        std::ptr::eq(self, Arc::as_ptr(other))
            || self.around.as_ref().is_some_and(|around| around.is_within(other))
    }

    /// The number here of a value of this recording or of one around it.
    pub(crate) fn enter(&self, node: &Node<B>, x: &Any<B>) -> Option<usize> {
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
            tape.captured.push((own, Node { recording: around.clone(), id }, x.clone()));
            own
        }))
    }

    /// Ends the recording, also for tensors that have left the function.
    pub(crate) fn close(&self) -> Result<Tape<B>, CompileError> {
        let mut tape = self.tape();
        let closed = Tape {
            phase: Phase::Closed,
            metas: Vec::new(),
            inputs: 0,
            constants: Vec::new(),
            captured: Vec::new(),
            instructions: Vec::new(),
        };
        match std::mem::replace(&mut *tape, closed) {
            Tape { phase: Phase::Broken(error), .. } => Err(error),
            tape => Ok(tape),
        }
    }

    /// The number of a constant.
    pub(crate) fn constant(&self, x: Any<B>) -> usize {
        self.tape().constant(x)
    }

    /// Appends what a call did, if the recording is open still; the number of its first result.
    pub(crate) fn push(
        &self,
        results: &[Any<B>],
        instruction: impl FnOnce(usize) -> Instruction<B>,
    ) -> usize {
        let mut tape = self.tape();
        let first = tape.metas.len();
        if matches!(tape.phase, Phase::Open) {
            tape.metas.extend(results.iter().map(Any::meta));
            tape.instructions.push(instruction(first));
        }
        first
    }

    /// The first error ends the recording; the function runs on.
    pub(crate) fn fail(&self, error: CompileError) {
        let mut tape = self.tape();
        if matches!(tape.phase, Phase::Open) {
            tape.phase = Phase::Broken(error);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.tape().phase, Phase::Open)
    }

    /// The function reads a value.
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

impl<B: Backend> Tape<B> {
    /// The number of a constant.
    pub(crate) fn constant(&mut self, x: Any<B>) -> usize {
        let id = self.metas.len();
        self.metas.push(x.meta());
        self.constants.push((id, x));
        id
    }
}

/// Where the caller's own code is that runs: the first frame outside of Burn, this workspace's crates and
/// the standard library, with its line where there is debug information.
fn place() -> String {
    let trace = std::backtrace::Backtrace::force_capture().to_string();
    let mut lines = trace.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some((number, symbol)) = line.split_once(": ") else { continue };
        if number.parse::<usize>().is_err() {
            continue;
        }
        let at = lines.next_if(|next| next.starts_with("at ")).map(|at| &at[3..]);
        let name = symbol.trim_start_matches(['<', '&', '(']);
        let of_a_library = |at: &str| at.contains("/registry/src/") || at.contains("/rustc/");
        if at.is_some_and(of_a_library) {
            continue;
        }
        // Without lines names have to do, those of Burn's futures among them.
        const FOREIGN: [&str; 10] = [
            "burn_", "t4a_", "cubecl_", "futures_", "core::", "std::", "alloc::", "rust_", "_", "{",
        ];
        if FOREIGN.iter().any(|name_of| name.starts_with(name_of)) {
            continue;
        }
        return at.map_or_else(|| symbol.to_owned(), |at| format!("{symbol} at {at}"));
    }
    "an unknown place".to_owned()
}

/// A recording of any backend.
type Erased = Arc<dyn Dynamic + Send + Sync>;

thread_local! {
    /// The recordings of the functions that this thread is in, innermost last.
    static LEVELS: RefCell<Vec<Erased>> = const { RefCell::new(Vec::new()) };
}

/// As long as it lives, random numbers of this thread belong to a recording.
pub(crate) struct Level(PhantomData<*const ()>);

impl Level {
    pub(crate) fn enter<B: Backend>(recording: Arc<Recording<B>>) -> Self {
        LEVELS.with_borrow_mut(|levels| levels.push(recording));
        Self(PhantomData)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVELS.with_borrow_mut(|levels| levels.pop());
    }
}

/// The innermost recording of this thread.
pub(crate) fn innermost<B: Backend>() -> Option<Arc<Recording<B>>> {
    LEVELS.with_borrow(|levels| {
        levels.iter().rev().find_map(|level| level.clone().downcast::<Recording<B>>().ok())
    })
}
