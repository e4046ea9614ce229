//! Functions that are recorded once per shape and replayed.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;
use burn_t4a::ext::scan::Structure;

use crate::archive::{Saved, load, save};
use crate::backend::Traced;
use crate::error::{CompileError, Result};
use crate::key::{Key, Names};
use crate::program::Program;
use crate::symbolic::{Symbolic, probes, resized};
use crate::tensor::Any;
use crate::trace::{Source, Trial, eager, trace};
use crate::values::{Fixed, Leaves, Values, flatten, same};

/// How calls of a compiled function went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that a program served.
    pub hits: usize,
    /// Calls that were recorded.
    pub traces: usize,
    /// Programs made for other sizes of named axes, without a recording.
    pub instances: usize,
    /// Programs that were dropped for newer ones.
    pub evictions: usize,
    /// Calls that ran eagerly because they cannot be recorded.
    pub fallbacks: usize,
}

/// A recording and its program.
struct Recorded<B: Backend> {
    program: Program<B>,
    source: Source<B>,
    structure: Structure,
    fixed: Fixed,
}

impl<B: Backend> Recorded<B> {
    fn new(source: Source<B>, structure: Structure, fixed: Fixed, fused: bool) -> Arc<Self> {
        Arc::new(Self { program: Program::new(&source, fused), source, structure, fixed })
    }
}

/// Programs for some sizes, the least recently used first.
type Instances<B> = Vec<(Vec<usize>, Arc<Recorded<B>>)>;

/// A recording for all sizes of named axes, and programs for some.
struct Open<B: Backend> {
    symbolic: Symbolic<B>,
    structure: Structure,
    fixed: Fixed,
    instances: Mutex<Instances<B>>,
}

/// What there is for a key.
enum Form<B: Backend> {
    Program(Arc<Recorded<B>>),
    Open(Arc<Open<B>>),
    /// Named axes do not help: each size has an entry of its own.
    EachSize(String),
    /// The function cannot be recorded.
    Eager,
}

impl<B: Backend> Clone for Form<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Program(x) => Self::Program(x.clone()),
            Self::Open(x) => Self::Open(x.clone()),
            Self::EachSize(x) => Self::EachSize(x.clone()),
            Self::Eager => Self::Eager,
        }
    }
}

struct Entry<B: Backend> {
    key: Key,
    form: Form<B>,
}

struct Cache<B: Backend> {
    /// Least recently used first.
    entries: Vec<Entry<B>>,
    counters: Counters,
    last: Cow<'static, str>,
}

/// A function that is recorded once per shapes, dtypes and tree of its inputs, and replayed after that.
///
/// It may be called from several threads.
pub struct Compiled<B: Backend, I, O, F> {
    function: F,
    capacity: usize,
    fullgraph: bool,
    fused: bool,
    names: Names,
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
    let (cache, names) = (Mutex::new(cache), Names::default());
    Compiled {
        function,
        capacity: 64,
        fullgraph: false,
        fused: true,
        names,
        cache,
        of: PhantomData,
    }
}

fn lock<T>(x: &Mutex<T>) -> MutexGuard<'_, T> {
    x.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Gives the size of an axis of an input a name: one recording serves all its sizes. Leaves are counted
    /// in the order of the tree; axes of one name have one size.
    ///
    /// The first call runs the function on its inputs and on small ones made of them, one more than there
    /// are names: what differs between these recordings has to follow from the sizes. If it does not, as in
    /// a function that does more steps for more examples, every size has a recording of its own, and
    /// [`Compiled::explain`] says why.
    ///
    /// ```
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_compile::{Traced, compile};
    /// use burn_tensor::Tensor;
    ///
    /// type B = BurnT4a;
    /// let f = compile(|x: Tensor<Traced<B>, 2>| x.mean_dim(0)).dynamic(0, 0, "batch");
    /// for batch in [2, 9, 64, 1] {
    ///     let y = f.call(Tensor::<B, 2>::ones([batch, 3], &T4aDevice))?;
    ///     y.into_data().assert_eq(&[[1.0f32; 3]].into(), true);
    /// }
    /// assert_eq!((f.counters().traces, f.counters().hits), (1, 3));
    /// # Ok::<(), burn_t4a_compile::CompileError>(())
    /// ```
    pub fn dynamic(mut self, leaf: usize, axis: usize, name: &str) -> Self {
        self.names.add(leaf, axis, name);
        self
    }

    fn cache(&self) -> MutexGuard<'_, Cache<B>> {
        lock(&self.cache)
    }

    /// Calls the function.
    ///
    /// # Errors
    /// With [`Compiled::fullgraph`] why it cannot be recorded; [`CompileError::Axis`] and
    /// [`CompileError::Sizes`] for named axes; [`CompileError::Operation`] if an operation fails on these
    /// values; those of [`Values::build`] for trees of one's own.
    pub fn call(&self, inputs: I::On<B>) -> Result<O::On<B>> {
        let structure = inputs.structure();
        let (leaves, fixed) = flatten::<B, _>(inputs);
        let key = Key::of(structure, &leaves, &fixed);
        if !self.names.axes.is_empty() {
            return self.named(key, leaves, fixed);
        }
        self.exact(key, leaves, fixed)
    }

    /// A call by its exact shapes.
    fn exact(&self, key: Key, leaves: Vec<Any<B>>, fixed: Fixed) -> Result<O::On<B>> {
        match self.find(&key) {
            Some(Form::Program(recorded)) => Self::replay(&recorded, leaves),
            Some(_) => eager::<B, I, O>(&self.function, &key.structure, leaves, fixed),
            None => {
                let trial = trace::<B, I, O>(&self.function, &key.structure, leaves, fixed)?;
                self.keep(key, trial, None)
            }
        }
    }

    /// A call by its shapes but for the sizes of named axes.
    fn named(&self, key: Key, leaves: Vec<Any<B>>, fixed: Fixed) -> Result<O::On<B>> {
        let sizes = self.names.sizes(&key)?;
        let open = self.names.key(&key);
        match self.find(&open) {
            Some(Form::Open(form)) => {
                let recorded = self.instance(&form, &sizes)?;
                Self::replay(&recorded, leaves)
            }
            Some(Form::Eager) => eager::<B, I, O>(&self.function, &key.structure, leaves, fixed),
            Some(_) => self.exact(key, leaves, fixed),
            // One that was loaded, or made before there was a name.
            None if self.cache().entries.iter().any(|entry| entry.key == key) => {
                self.exact(key, leaves, fixed)
            }
            None => self.open(key, open, leaves, fixed, &sizes),
        }
    }

    /// Records at several sizes.
    fn open(
        &self,
        key: Key,
        open: Key,
        leaves: Vec<Any<B>>,
        fixed: Fixed,
        sizes: &[usize],
    ) -> Result<O::On<B>> {
        let run = |leaves| trace::<B, I, O>(&self.function, &key.structure, leaves, fixed.clone());
        let trial = run(leaves.clone())?;
        let (probes, own, own_fixed) = match &trial.source {
            Ok(source) => (probes(sizes), source.clone(), trial.fixed.clone()),
            // It cannot be recorded at any size.
            Err(_) => return self.keep(open, trial, None),
        };
        let probe = |sizes: &Vec<usize>| -> Result<Source<B>, String> {
            let resize = |(i, x): (usize, &Any<B>)| resized(x.clone(), i, &self.names, sizes);
            let leaves = leaves.iter().enumerate().map(resize).collect::<Result<_, _>>()?;
            let at = format!("for {:?} = {sizes:?}", self.names.names);
            // A function may insist on its sizes.
            let trial = catch_unwind(AssertUnwindSafe(|| run(leaves)))
                .map_err(|_| format!("{at} the function panics"))?
                .map_err(|error| format!("{at}: {error}"))?;
            if !same(&trial.fixed, &own_fixed) {
                return Err(format!("{at} a result that is no tensor is another one"));
            }
            trial.source.map_err(|error| format!("{at}: {error}"))
        };
        let symbolic =
            probes.iter().map(probe).collect::<Result<Vec<_>, _>>().and_then(|mut all| {
                all.push(own);
                Symbolic::new(&all, &probes, sizes)
            });
        match symbolic {
            Ok(symbolic) => self.keep(open, trial, Some(symbolic)),
            Err(why) => {
                self.remember(open, Form::EachSize(why.clone()), &why);
                self.keep(key, trial, None)
            }
        }
    }

    fn replay(recorded: &Recorded<B>, leaves: Vec<Any<B>>) -> Result<O::On<B>> {
        let all = recorded.program.run(leaves)?;
        O::On::<B>::build(&recorded.structure, &mut Leaves::new(all, recorded.fixed.clone()))
    }

    /// The program for these sizes.
    fn instance(&self, form: &Open<B>, sizes: &[usize]) -> Result<Arc<Recorded<B>>> {
        let mut all = lock(&form.instances);
        if let Some(at) = all.iter().rposition(|(known, _)| known == sizes) {
            let last = all.len() - 1;
            all[at..].rotate_left(1);
            return Ok(all[last].1.clone());
        }
        let source = form.symbolic.at(sizes).map_err(|message| CompileError::Operation {
            operation: "a program for other sizes",
            message,
        })?;
        let (structure, fixed) = (form.structure.clone(), form.fixed.clone());
        let recorded = Recorded::new(source, structure, fixed, self.fused);
        all.push((sizes.to_vec(), recorded.clone()));
        if all.len() > self.capacity {
            all.remove(0);
        }
        drop(all);
        let mut cache = self.cache();
        cache.counters.instances += 1;
        cache.last = format!("a program for {}", self.describe(sizes)).into();
        Ok(recorded)
    }

    fn describe(&self, sizes: &[usize]) -> String {
        let one = |(name, size): (&String, &usize)| format!("{name} = {size}");
        self.names.names.iter().zip(sizes).map(one).collect::<Vec<_>>().join(", ")
    }

    /// The entry of a key, which becomes the most recently used.
    fn find(&self, key: &Key) -> Option<Form<B>> {
        let mut cache = self.cache();
        let at = cache.entries.iter().rposition(|entry| entry.key == *key)?;
        cache.entries[at..].rotate_left(1);
        let form = cache.entries.last()?.form.clone();
        match form {
            Form::Program(_) | Form::Open(_) => {
                cache.counters.hits += 1;
                cache.last = "hit".into();
            }
            Form::Eager => {
                cache.counters.fallbacks += 1;
                cache.last = "eager: the function cannot be recorded".into();
            }
            Form::EachSize(_) => {}
        }
        Some(form)
    }

    /// Keeps what was recorded and returns the results.
    fn keep(&self, key: Key, trial: Trial<B>, symbolic: Option<Symbolic<B>>) -> Result<O::On<B>> {
        let Trial { structure, values, fixed, source } = trial;
        match (source, symbolic) {
            (Err(error), _) if self.fullgraph => return Err(error),
            (Err(error), _) => self.remember(key, Form::Eager, &error.to_string()),
            (Ok(source), None) => {
                let recorded = Recorded::new(source, structure.clone(), fixed.clone(), self.fused);
                self.remember(key, Form::Program(recorded), "");
            }
            (Ok(_), Some(symbolic)) => {
                let (structure, fixed) = (structure.clone(), fixed.clone());
                let instances = Mutex::new(Vec::new());
                let form = Open { symbolic, structure, fixed, instances };
                self.remember(key, Form::Open(Arc::new(form)), "");
            }
        }
        O::On::<B>::build(&structure, &mut Leaves::new(values, fixed))
    }

    fn remember(&self, key: Key, form: Form<B>, why: &str) {
        let mut cache = self.cache();
        let others = cache.entries.iter().filter(|entry| entry.key.named == key.named);
        let nearest = others.map(|entry| key.differences(&entry.key)).min_by_key(Vec::len);
        let reason = nearest.map_or_else(|| "the first call".into(), |all| all.join("; "));
        cache.last = match form {
            Form::Eager => format!("eager from now on: {why}"),
            Form::EachSize(_) => format!("a recording for each size from now on: {why}"),
            _ => format!("recorded, since {reason}"),
        }
        .into();
        match form {
            Form::Program(_) | Form::Open(_) => cache.counters.traces += 1,
            Form::Eager => cache.counters.fallbacks += 1,
            Form::EachSize(_) => {}
        }
        cache.entries.retain(|entry| entry.key != key);
        cache.entries.push(Entry { key, form });
        if cache.entries.len() > self.capacity {
            cache.entries.remove(0);
            cache.counters.evictions += 1;
        }
    }

    /// All programs as bytes, for [`Compiled::load`] in another process: keys, recordings and captured
    /// constants, but no code. Sizes of named axes that have a program are saved as programs of their shapes.
    ///
    /// # Errors
    /// [`CompileError::Save`] for what has no portable form: operations of `burn_t4a::ext`, quantized
    /// tensors, arguments and results that are no tensors.
    pub fn save(&self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut add = |key: &Key, recorded: &Recorded<B>| -> Result<()> {
            if !recorded.fixed.is_empty() {
                return Err(CompileError::Save { what: "results that are no tensors".into() });
            }
            let (key, results) = (key.clone(), recorded.structure.clone());
            all.push(Saved { key, results, source: recorded.source.clone() });
            Ok(())
        };
        for entry in &self.cache().entries {
            match &entry.form {
                Form::Program(recorded) => add(&entry.key, recorded)?,
                Form::Open(form) => {
                    for (sizes, recorded) in &*lock(&form.instances) {
                        let mut key = Key { named: false, ..entry.key.clone() };
                        for axis in &self.names.axes {
                            key.leaves[axis.leaf].1.shape[axis.axis] = sizes[axis.name];
                        }
                        add(&key, recorded)?;
                    }
                }
                Form::EachSize(_) | Form::Eager => {}
            }
        }
        save(&all)
    }

    /// Takes programs that [`Compiled::save`] of the same function has written, and returns how many: calls
    /// of these shapes are hits. That it is the same function is up to the caller, as it is that the bytes
    /// are no forgery; damage is an error.
    ///
    /// # Errors
    /// [`CompileError::Load`].
    pub fn load(&self, bytes: &[u8]) -> Result<usize> {
        let all = load::<B>(bytes)?;
        let count = all.len();
        let mut cache = self.cache();
        for Saved { key, results, source } in all {
            let form = Form::Program(Recorded::new(source, results, Vec::new(), self.fused));
            cache.entries.retain(|entry| entry.key != key);
            cache.entries.push(Entry { key, form });
        }
        cache.last = format!("{count} programs were loaded").into();
        let surplus = cache.entries.len().saturating_sub(self.capacity);
        cache.entries.drain(..surplus);
        cache.counters.evictions += surplus;
        Ok(count)
    }

    /// How calls went so far.
    pub fn counters(&self) -> Counters {
        self.cache().counters
    }

    /// How the last call went: a hit, or which part of the key differed from the nearest entry; and the
    /// programs that there are.
    pub fn explain(&self) -> String {
        use fmt::Write;
        let cache = self.cache();
        let mut text = format!("{:?}\nlast: {}\n", cache.counters, cache.last);
        for entry in &cache.entries {
            let _ = write!(text, "{}", entry.key);
            let programs = |text: &mut String, recorded: &Recorded<B>| {
                let program = &recorded.program;
                let _ = write!(text, ": {} instructions\n{program}", program.len());
            };
            match &entry.form {
                Form::Program(recorded) => programs(&mut text, recorded),
                Form::Open(form) => {
                    let _ = writeln!(text, ", 0 for {}", self.names.names.join(", "));
                    for (sizes, recorded) in &*lock(&form.instances) {
                        let _ = write!(text, "{}", self.describe(sizes));
                        programs(&mut text, recorded);
                    }
                }
                Form::EachSize(why) => {
                    let _ = writeln!(text, ": a recording for each size: {why}");
                }
                Form::Eager => {
                    let _ = writeln!(text, ": eager");
                }
            }
        }
        text
    }
}

impl<B: Backend, I, O, F> fmt::Debug for Compiled<B, I, O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}
