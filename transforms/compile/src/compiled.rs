//! Functions that are recorded once per shape and replayed.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::{Backend, get_device_settings};
use burn_t4a::ext::scan::Structure;

use crate::backend::Traced;
use crate::error::{CompileError, Result};
use crate::program::Program;
use crate::recording::{Level, Recording};
use crate::tensor::{
    Any, BoolKind, FloatKind, IntKind, Kind, Meta, Node, QuantizedKind, TracedTensor,
};
use crate::values::{Leaf, Leaves, Values, flatten};

/// What a program is for.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    structure: Structure,
    leaves: Vec<(&'static str, Meta)>,
    settings: String,
}

impl Key {
    fn of<B: Backend>(structure: Structure, leaves: &[Any<B>]) -> Self {
        let kind = |x: &Any<B>| match x {
            Any::Float(_) => "float",
            Any::Int(_) => "int",
            Any::Bool(_) => "bool",
            Any::Quantized(_) => "quantized",
        };
        let device = leaves.iter().find_map(|x| match x {
            Any::Float(x) => Some(B::float_device(x)),
            Any::Int(x) => Some(B::int_device(x)),
            Any::Bool(x) => Some(B::bool_device(x)),
            Any::Quantized(_) => None,
        });
        let settings = get_device_settings::<B>(&device.unwrap_or_default());
        let settings =
            format!("{:?}", (settings.float_dtype, settings.int_dtype, settings.bool_dtype));
        let leaves = leaves.iter().map(|x| (kind(x), x.meta())).collect();
        Self { structure, leaves, settings }
    }

    /// What differs from another key.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = Vec::new();
        if self.structure != other.structure {
            all.push(format!("the tree is {}, was {}", self.structure, other.structure));
            return all;
        }
        for ((path, now), was) in self.structure.paths().iter().zip(&self.leaves).zip(&other.leaves)
        {
            if now != was {
                all.push(format!("leaf {path} is {} {}, was {} {}", now.0, now.1, was.0, was.1));
            }
        }
        if self.settings != other.settings {
            all.push(format!("default dtypes are {}, were {}", self.settings, other.settings));
        }
        all
    }
}

/// How calls of a compiled function went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that a program served.
    pub hits: usize,
    /// Calls that were recorded.
    pub traces: usize,
    /// Programs that were dropped for newer ones.
    pub evictions: usize,
    /// Calls that ran eagerly because they cannot be recorded.
    pub fallbacks: usize,
}

struct Recorded<B: Backend> {
    program: Program<B>,
    structure: Structure,
}

struct Entry<B: Backend> {
    key: Key,
    /// None if the function cannot be recorded.
    recorded: Option<Arc<Recorded<B>>>,
}

struct Cache<B: Backend> {
    /// Least recently used first.
    entries: Vec<Entry<B>>,
    counters: Counters,
    last: String,
}

/// A function that is recorded once per shapes, dtypes and tree of its inputs, and replayed after that.
///
/// It may be called from several threads.
pub struct Compiled<B: Backend, I, O, F> {
    function: F,
    capacity: usize,
    fullgraph: bool,
    fused: bool,
    cache: Mutex<Cache<B>>,
    of: PhantomData<fn(I) -> O>,
}

/// Compiles a function of trees of tensors.
///
/// The function runs as ever on its first call with given shapes, and what it does is recorded; later calls
/// run the recording, optimised. So it has to be a function: what it does beside (printing, counters) is
/// done on recorded calls only, and tensors that it captures are constants. Random numbers are drawn anew
/// by each call; those drawn on other threads than the caller's are constants too.
///
/// ```
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_compile::{Traced, compile};
/// use burn_tensor::Tensor;
///
/// type B = BurnT4a;
/// let f = compile(|x: Tensor<Traced<B>, 1>| (x.clone() * 2.0).exp() - x);
/// let x = Tensor::<B, 1>::from_floats([0.0, 1.0], &T4aDevice);
/// let first = f.call(x.clone())?;
/// let again = f.call(x)?;
/// again.into_data().assert_eq(&first.into_data(), true);
/// assert_eq!((f.counters().traces, f.counters().hits), (1, 1));
/// # Ok::<(), burn_t4a_compile::CompileError>(())
/// ```
pub fn compile<B: Backend, I: Values<Traced<B>>, O: Values<Traced<B>>, F: Fn(I) -> O>(
    function: F,
) -> Compiled<B, I, O, F> {
    let cache =
        Cache { entries: Vec::new(), counters: Counters::default(), last: "not called".into() };
    let cache = Mutex::new(cache);
    Compiled { function, capacity: 64, fullgraph: false, fused: true, cache, of: PhantomData }
}

fn constant<B: Backend>(x: Any<B>, node: Option<Node<B>>) -> Any<Traced<B>> {
    fn with<B: Backend, K: Kind<B>>(
        primitive: K::Primitive,
        node: Option<Node<B>>,
    ) -> TracedTensor<B, K> {
        TracedTensor { primitive, node }
    }
    match x {
        Any::Float(x) => Any::Float(with::<B, FloatKind>(x, node)),
        Any::Int(x) => Any::Int(with::<B, IntKind>(x, node)),
        Any::Bool(x) => Any::Bool(with::<B, BoolKind>(x, node)),
        Any::Quantized(x) => Any::Quantized(Box::new(with::<B, QuantizedKind>(*x, node))),
    }
}

fn parts<B: Backend>(x: Any<Traced<B>>) -> (Any<B>, Option<Node<B>>) {
    match x {
        Any::Float(x) => (Any::Float(x.primitive), x.node),
        Any::Int(x) => (Any::Int(x.primitive), x.node),
        Any::Bool(x) => (Any::Bool(x.primitive), x.node),
        Any::Quantized(x) => (Any::Quantized(Box::new(x.primitive)), x.node),
    }
}

impl<B, I, O, F> Compiled<B, I, O, F>
where
    B: Backend,
    I: Values<Traced<B>>,
    O: Values<Traced<B>>,
    F: Fn(I) -> O,
{
    /// Keeps at most this many programs, at least 1; 64 by default.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.capacity = entries.max(1);
        self
    }

    /// A function that cannot be recorded is an error, instead of running eagerly.
    pub fn fullgraph(mut self) -> Self {
        self.fullgraph = true;
        self
    }

    /// Whether elementwise operations are fused; they are by default.
    pub fn fused(mut self, fused: bool) -> Self {
        self.fused = fused;
        self
    }

    fn cache(&self) -> MutexGuard<'_, Cache<B>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function.
    ///
    /// # Errors
    /// With [`Compiled::fullgraph`] why it cannot be recorded; [`CompileError::Operation`] if an operation
    /// fails on these values; those of [`Values::build`] for trees of one's own.
    pub fn call(&self, inputs: I::On<B>) -> Result<O::On<B>> {
        let structure = inputs.structure();
        let leaves = flatten::<B, _>(inputs);
        let key = Key::of(structure, &leaves);
        match self.find(&key) {
            Some(Some(recorded)) => {
                let all = recorded.program.run(leaves)?;
                O::On::<B>::build(&recorded.structure, &mut Leaves::new(all))
            }
            Some(None) => self.eager(&key.structure, leaves),
            None => self.trace(key, leaves),
        }
    }

    /// The entry of a key, which becomes the most recently used.
    #[expect(clippy::option_option, reason = "no entry, or one that cannot be recorded")]
    fn find(&self, key: &Key) -> Option<Option<Arc<Recorded<B>>>> {
        let mut cache = self.cache();
        let at = cache.entries.iter().rposition(|entry| entry.key == *key)?;
        let last = cache.entries.len() - 1;
        if at != last {
            let entry = cache.entries.remove(at);
            cache.entries.push(entry);
        }
        let recorded = cache.entries[last].recorded.clone();
        match recorded {
            Some(_) => cache.counters.hits += 1,
            None => cache.counters.fallbacks += 1,
        }
        Some(recorded)
    }

    fn eager(&self, structure: &Structure, leaves: Vec<Any<B>>) -> Result<O::On<B>> {
        let leaves = leaves.into_iter().map(|x| constant(x, None)).collect();
        let output = (self.function)(I::build(structure, &mut Leaves::new(leaves))?);
        let structure = output.structure();
        let all = flatten::<Traced<B>, _>(output).into_iter().map(|x| parts(x).0).collect();
        O::On::<B>::build(&structure, &mut Leaves::new(all))
    }

    fn trace(&self, key: Key, leaves: Vec<Any<B>>) -> Result<O::On<B>> {
        let recording = Recording::new(&leaves);
        let node = |id| Some(Node { recording: recording.clone(), id });
        let leaves = leaves.into_iter().enumerate().map(|(id, x)| constant(x, node(id))).collect();
        let inputs = I::build(&key.structure, &mut Leaves::new(leaves))?;
        let level = Level::enter(recording.clone());
        let output = (self.function)(inputs);
        drop(level);
        let structure = output.structure();
        let (mut values, mut nodes) = (Vec::new(), Vec::new());
        for x in flatten::<Traced<B>, _>(output) {
            let (x, node) = parts(x);
            nodes.push(node);
            values.push(x);
        }
        let foreign = |node: &Node<B>| !Arc::ptr_eq(&node.recording, &recording);
        let tape = if nodes.iter().flatten().any(foreign) {
            let _ = recording.close();
            Err(CompileError::Foreign { operation: "the result" })
        } else {
            recording.close()
        };
        let recorded = match tape {
            Ok(mut tape) => {
                let outputs = nodes.into_iter().zip(&values).map(|(node, x)| match node {
                    Some(node) => node.id,
                    None => tape.constant(x.clone()),
                });
                let outputs = outputs.collect();
                let program = Program::new(tape, outputs, self.fused);
                Some(Arc::new(Recorded { program, structure: structure.clone() }))
            }
            Err(error) if self.fullgraph => return Err(error),
            Err(error) => {
                self.remember(key, None, Some(error));
                return O::On::<B>::build(&structure, &mut Leaves::new(values));
            }
        };
        self.remember(key, recorded, None);
        O::On::<B>::build(&structure, &mut Leaves::new(values))
    }

    fn remember(&self, key: Key, recorded: Option<Arc<Recorded<B>>>, error: Option<CompileError>) {
        let mut cache = self.cache();
        let nearest = cache.entries.iter().map(|entry| key.differences(&entry.key));
        let nearest = nearest.min_by_key(Vec::len);
        let why = nearest.map_or_else(|| "the first call".into(), |all| all.join("; "));
        cache.last = match error {
            Some(error) => format!("eager from now on: {error}"),
            None => format!("recorded, since {why}"),
        };
        match recorded {
            Some(_) => cache.counters.traces += 1,
            None => cache.counters.fallbacks += 1,
        }
        cache.entries.retain(|entry| entry.key != key);
        cache.entries.push(Entry { key, recorded });
        if cache.entries.len() > self.capacity {
            cache.entries.remove(0);
            cache.counters.evictions += 1;
        }
    }

    /// How calls went so far.
    pub fn counters(&self) -> Counters {
        self.cache().counters
    }

    /// The last recording and its reason, and the programs that there are.
    pub fn explain(&self) -> String {
        use fmt::Write;
        let cache = self.cache();
        let mut text = format!("{:?}\nlast: {}\n", cache.counters, cache.last);
        for entry in &cache.entries {
            let leaves: Vec<_> =
                entry.key.leaves.iter().map(|(kind, x)| format!("{kind} {x}")).collect();
            let _ = write!(text, "{} of {}: ", entry.key.structure, leaves.join(", "));
            let _ = match &entry.recorded {
                Some(recorded) => {
                    let program = &recorded.program;
                    write!(text, "{} instructions\n{program}", program.len())
                }
                None => writeln!(text, "eager"),
            };
        }
        text
    }
}

impl<B: Backend, I, O, F> fmt::Debug for Compiled<B, I, O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// A leaf of a tree of one's own, as the trees of its parts see it.
impl<B: Backend> fmt::Debug for Leaf<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.meta())
    }
}
