//! What a function did: instructions over numbered values.
//!
//! ```text
//! Call        one call of a backend method: takes operands, runs it, records it
//! Recording   inputs, captured constants and instructions so far; open, broken or closed
//! Frame       the operands of an instruction that runs
//! ```
//!
//! Operations run while they are recorded. Tensors carry the recording that they belong to, so it follows
//! them through any thread, and what depends on no input is not recorded at all: constants are folded by
//! being computed. Random numbers have no operand that could name their recording; the innermost one of
//! the thread is theirs.

use std::any::Any as Dynamic;
use std::cell::RefCell;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;

use crate::argument::{Argument, Returned};
use crate::error::CompileError;
use crate::fuse::Elementwise;
use crate::tensor::{Any, Kind, Meta, Node, TracedTensor};
use crate::words::{Plain, Word, read, words};

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
    fn is_within(&self, other: &Arc<Self>) -> bool {
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

    /// The first error ends the recording; the function runs on.
    fn fail(&self, error: CompileError) {
        let mut tape = self.tape();
        if matches!(tape.phase, Phase::Open) {
            tape.phase = Phase::Broken(error);
        }
    }

    fn is_open(&self) -> bool {
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

/// Results with the values that they are.
pub(crate) struct Results<B: Backend> {
    all: std::vec::IntoIter<Any<B>>,
    node: Option<Node<B>>,
}

impl<B: Backend> Results<B> {
    pub(crate) fn take<K: Kind<B>>(&mut self) -> TracedTensor<B, K> {
        let x = self.all.next().unwrap_or_else(|| unreachable!("as many results as recorded"));
        let primitive = K::restore(x).unwrap_or_else(|| unreachable!("a result of another kind"));
        let node = self.node.clone();
        if let Some(node) = &mut self.node {
            node.id += 1;
        }
        TracedTensor { primitive, node }
    }
}

/// The form and the tensors of what a call returned, and the call.
type Run<B, F> = (F, Vec<Any<B>>, Pending<B>);

/// A call of a method.
pub(crate) struct Call<B: Backend> {
    name: &'static str,
    operands: Vec<Any<B>>,
    nodes: Vec<Option<Node<B>>>,
    pure: bool,
    elementwise: Option<Elementwise>,
}

impl<B: Backend> Call<B> {
    pub(crate) fn new(name: &'static str) -> Self {
        let (operands, nodes) = (Vec::new(), Vec::new());
        Self { name, operands, nodes, pure: true, elementwise: None }
    }

    /// Its results differ from call to call.
    pub(crate) fn random(mut self) -> Self {
        self.pure = false;
        self
    }

    pub(crate) fn take<A: Argument<B>>(&mut self, argument: A) -> A::Slot {
        argument.store(self)
    }

    /// Appends an operand; its position.
    pub(crate) fn operand<K: Kind<B>>(&mut self, x: TracedTensor<B, K>) -> usize {
        self.operands.push(K::erase(x.primitive));
        self.nodes.push(x.node);
        self.operands.len() - 1
    }

    /// Runs a method of the inner backend and records it. `what` says whether it is elementwise.
    pub(crate) fn run<R: Returned<B> + 'static, S: Plain + Debug + Send + Sync + 'static>(
        mut self,
        slots: S,
        run: fn(&S, &mut Frame<B>) -> R::Inner,
        what: fn(&S) -> Option<Elementwise>,
    ) -> R {
        self.elementwise = what(&slots);
        let method = Method::<B, S, R> { slots, run, what };
        let record = |frame: &mut Frame<B>, out: &mut Vec<Any<B>>| {
            Ok::<_, std::convert::Infallible>(method.call(frame, out))
        };
        let Ok((form, results, pending)) = self.record(record);
        R::join(form, &mut pending.finish(results, || Arc::new(method)))
    }

    /// Runs the call; the recording waits for its step.
    pub(crate) fn record<F, E>(
        self,
        run: impl FnOnce(&mut Frame<B>, &mut Vec<Any<B>>) -> Result<F, E>,
    ) -> Result<Run<B, F>, E> {
        let Self { name, operands, nodes, pure, elementwise } = self;
        let recording = Self::recording(name, pure, &nodes);
        let recorded = recording.map(|recording| {
            let open = recording.is_open();
            let mut ids = Vec::with_capacity(nodes.len());
            if open {
                if nodes.iter().zip(&operands).any(|(node, x)| node.is_none() && x.is_tracked()) {
                    recording.fail(CompileError::CapturesTracked { operation: name });
                }
                for (node, x) in nodes.iter().zip(&operands) {
                    let known = node.as_ref().and_then(|node| recording.enter(node, x));
                    ids.push(known.unwrap_or_else(|| recording.tape().constant(x.clone())));
                }
            }
            (recording, ids)
        });
        let mut frame = Frame(operands.into_iter().map(Some).collect());
        let mut results = Vec::new();
        let form = run(&mut frame, &mut results)?;
        Ok((form, results, Pending { name, pure, elementwise, recorded }))
    }

    /// The recording to which the call belongs.
    fn recording(
        name: &'static str,
        pure: bool,
        nodes: &[Option<Node<B>>],
    ) -> Option<Arc<Recording<B>>> {
        let mut all = nodes.iter().flatten().map(|node| &node.recording);
        let Some(first) = all.next() else {
            return if pure { None } else { innermost() };
        };
        let others: Vec<_> = all.filter(|other| !Arc::ptr_eq(first, other)).collect();
        // Recordings in each other: the innermost knows the values of all.
        let knows = |one: &&Arc<Recording<B>>| {
            one.is_within(first) && others.iter().all(|other| one.is_within(other))
        };
        if let Some(innermost) = others.iter().copied().chain([first]).find(knows) {
            return Some(innermost.clone());
        }
        // Whichever of them is under way cannot know the others' values.
        for recording in others.iter().chain([&first]) {
            recording.fail(CompileError::Foreign { operation: name });
        }
        Some(first.clone())
    }
}

/// A call that has run and is recorded as soon as its step is known.
pub(crate) struct Pending<B: Backend> {
    name: &'static str,
    pure: bool,
    elementwise: Option<Elementwise>,
    recorded: Option<(Arc<Recording<B>>, Vec<usize>)>,
}

impl<B: Backend> Pending<B> {
    /// The results with their values.
    pub(crate) fn finish(
        self,
        results: Vec<Any<B>>,
        step: impl FnOnce() -> Arc<dyn Execute<B>>,
    ) -> Results<B> {
        let Self { name, pure, elementwise, recorded } = self;
        let node = recorded.map(|(recording, operands)| {
            let id = {
                let mut tape = recording.tape();
                let first = tape.metas.len();
                if matches!(tape.phase, Phase::Open) {
                    tape.metas.extend(results.iter().map(Any::meta));
                    let (step, results) = (step(), results.len());
                    tape.instructions.push(Instruction {
                        name,
                        step,
                        operands,
                        first,
                        results,
                        pure,
                        elementwise,
                    });
                }
                first
            };
            Node { recording, id }
        });
        Results { all: results.into_iter(), node }
    }
}

/// A method of the inner backend with its static arguments.
struct Method<B: Backend, S, R: Returned<B>> {
    slots: S,
    run: fn(&S, &mut Frame<B>) -> R::Inner,
    what: fn(&S) -> Option<Elementwise>,
}

/// The step of a method.
pub(crate) fn made<B, R, S>(
    slots: S,
    run: fn(&S, &mut Frame<B>) -> R::Inner,
    what: fn(&S) -> Option<Elementwise>,
) -> Made<B>
where
    B: Backend,
    R: Returned<B> + 'static,
    S: Plain + Debug + Send + Sync + 'static,
{
    let elementwise = what(&slots);
    Made { step: Arc::new(Method::<B, S, R> { slots, run, what }), elementwise }
}

impl<B: Backend, S, R: Returned<B>> Method<B, S, R> {
    fn call(&self, frame: &mut Frame<B>, out: &mut Vec<Any<B>>) -> R::Form {
        R::split((self.run)(&self.slots, frame), out)
    }
}

impl<B, S, R> Execute<B> for Method<B, S, R>
where
    B: Backend,
    S: Plain + Debug + Send + Sync + 'static,
    R: Returned<B> + 'static,
{
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<Any<B>>) -> Result<(), String> {
        self.call(frame, out);
        Ok(())
    }

    fn text(&self) -> Option<String> {
        Some(format!("{:?}", self.slots))
    }

    fn words(&self) -> Option<Vec<Word>> {
        Some(words(&self.slots))
    }

    fn with(&self, words: &[Word]) -> Option<Made<B>> {
        Some(made::<B, R, S>(read(words)?, self.run, self.what))
    }
}
