//! Functions that are recorded once per shape and replayed.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use burn_backend::Backend;

use crate::backend::Traced;
use crate::cache::{Cache, Counters, Form, Open, Recorded, lock};
use crate::error::Result;
use crate::key::{Key, Names};
use crate::symbolic::{Symbolic, probes, resized};
use crate::tensor::Any;
use crate::trace::{Source, Trial, eager, trace};
use crate::values::{Fixed, Leaves, Values, flatten, same};

/// A function that is recorded once per shapes, dtypes and tree of its inputs, and replayed after that.
///
/// It may be called from several threads.
pub struct Compiled<B: Backend, I, O, F> {
    function: F,
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
    let (cache, names) = (Mutex::new(Cache::default()), Names::default());
    Compiled { function, fullgraph: false, fused: true, names, cache, of: PhantomData }
}

impl<B, I, O, F> Compiled<B, I, O, F>
where
    B: Backend,
    I: Values<Traced<B>>,
    O: Values<Traced<B>>,
    F: Fn(I) -> O,
{
    /// Keeps at most this many programs, at least 1; 64 by default.
    pub fn capacity(self, entries: usize) -> Self {
        self.cache().capacity = entries.max(1);
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
    /// [`Compiled::explain`] says why. A function that treats sizes otherwise from some size on, which none of
    /// these recordings reaches (`n.min(1000)`), is recorded as if it did not: give its sizes no names. Random
    /// numbers that these runs draw are missing in what is drawn later.
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

    /// What is known of a key. A function of its own, so that nothing is locked while the user's runs.
    fn find(&self, key: &Key) -> Option<Form<B>> {
        self.cache().find(key)
    }

    /// Calls the function.
    ///
    /// # Errors
    /// With [`Compiled::fullgraph`] why it cannot be recorded; `Axis` and `Sizes` of
    /// [`CompileError`](crate::CompileError) for named axes; `Operation` if an operation fails on these values;
    /// those of [`Values::build`] for trees of one's own.
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
                let capacity = self.cache().capacity;
                let (recorded, is_new) = form.instance(&sizes, capacity, self.fused)?;
                if is_new {
                    self.cache().instance(&self.names.describe(&sizes));
                }
                Self::replay(&recorded, leaves)
            }
            Some(Form::Eager) => eager::<B, I, O>(&self.function, &key.structure, leaves, fixed),
            Some(_) => self.exact(key, leaves, fixed),
            // One that was loaded, or made before there was a name.
            None if self.cache().has(&key) => self.exact(key, leaves, fixed),
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
                self.cache().remember(open, Form::EachSize(why.clone()), &why);
                self.keep(key, trial, None)
            }
        }
    }

    fn replay(recorded: &Recorded<B>, leaves: Vec<Any<B>>) -> Result<O::On<B>> {
        let all = recorded.program.run(leaves)?;
        O::On::<B>::build(&recorded.structure, &mut Leaves::new(all, recorded.fixed.clone()))
    }

    /// Keeps what was recorded and returns the results.
    fn keep(&self, key: Key, trial: Trial<B>, symbolic: Option<Symbolic<B>>) -> Result<O::On<B>> {
        let Trial { structure, values, fixed, source } = trial;
        match (source, symbolic) {
            (Err(error), _) if self.fullgraph => return Err(error),
            (Err(error), _) => self.cache().remember(key, Form::Eager, &error.to_string()),
            (Ok(source), None) => {
                let recorded = Recorded::new(source, structure.clone(), fixed.clone(), self.fused);
                self.cache().remember(key, Form::Program(recorded), "");
            }
            (Ok(_), Some(symbolic)) => {
                let form = Open::new(symbolic, structure.clone(), fixed.clone());
                self.cache().remember(key, Form::Open(Arc::new(form)), "");
            }
        }
        O::On::<B>::build(&structure, &mut Leaves::new(values, fixed))
    }

    /// All programs as bytes, for [`Compiled::load`] in another process: keys, recordings and captured
    /// constants, but no code. Sizes of named axes that have a program are saved as programs of their shapes.
    ///
    /// # Errors
    /// [`CompileError::Save`](crate::CompileError::Save) for what has no portable form: operations of `burn_t4a::ext`, quantized
    /// tensors, arguments and results that are no tensors.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.cache().save(&self.names)
    }

    /// Takes programs that [`Compiled::save`] of the same function has written, and returns how many: calls
    /// of these shapes are hits. That it is the same function is up to the caller, as it is that the bytes
    /// are no forgery; damage is an error.
    ///
    /// # Errors
    /// [`CompileError::Load`](crate::CompileError::Load).
    pub fn load(&self, bytes: &[u8]) -> Result<usize> {
        self.cache().load(bytes, self.fused)
    }

    /// How calls went so far.
    pub fn counters(&self) -> Counters {
        self.cache().counters
    }

    /// How the last call went: a hit, or which part of the key differed from the nearest entry; and the
    /// programs that there are.
    pub fn explain(&self) -> String {
        self.cache().explain(&self.names)
    }
}

impl<B: Backend, I, O, F> fmt::Debug for Compiled<B, I, O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("capacity", &lock(&self.cache).capacity)
            .finish_non_exhaustive()
    }
}
