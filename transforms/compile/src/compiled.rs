//! Functions that are recorded once per shape and replayed.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard};

use burn_backend::Backend;
use burn_t4a::ext::tree::Tree;

use crate::backend::Traced;
use crate::cache::{Cache, Counters, Form, Recorded, lock};
use crate::error::{Result, caught};
use crate::key::{Key, Names};
use crate::tensor::{Any, build, flatten};
use crate::trace::{Trial, eager, trace};

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
/// The function runs as ever on its first call with given shapes, and what it does is recorded; that call, once more, and later
/// calls run the recording, optimised, so that all calls on equal inputs have equal bits (a call that draws random numbers
/// returns what was recorded). So it has to be a function: what it does beside (printing, counters) is
/// done on recorded calls only, and tensors that it captures are constants. Random numbers are drawn anew
/// by each call; those drawn on other threads than the caller's are constants too. A function that keeps a tensor
/// which it computes (parameters of a module that Burn draws at their first use, running statistics) runs eagerly, or
/// is [`CompileError::Keeps`](crate::CompileError::Keeps): recorded calls would not exchange what it keeps.
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
pub fn compile<B: Backend, I: Tree<Traced<B>>, O: Tree<Traced<B>>, F: Fn(I) -> O>(
    function: F,
) -> Compiled<B, I, O, F> {
    let (cache, names) = (Mutex::new(Cache::default()), Names::default());
    Compiled { function, fullgraph: false, fused: true, names, cache, of: PhantomData }
}

impl<B, I, O, F> Compiled<B, I, O, F>
where
    B: Backend,
    I: Tree<Traced<B>>,
    O: Tree<Traced<B>>,
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

    /// Gives the size of an axis of an input a name, because it varies. Axes of one name have one size, which
    /// every call checks; leaves are counted in the order of the tree.
    ///
    /// The function is recorded once at every size, on the first call that has it: it sees sizes as plain numbers
    /// and may do anything with them, so that a recording says nothing about other sizes. Sizes of named axes have
    /// places of their own, as many as [`Compiled::capacity`] says, so that they do not drive out programs of
    /// other shapes.
    ///
    /// ```
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_compile::{Traced, compile};
    /// use burn_tensor::Tensor;
    ///
    /// type B = BurnT4a;
    /// let f = compile(|x: Tensor<Traced<B>, 2>| x.mean_dim(0)).dynamic(0, 0, "batch");
    /// for batch in [2, 9, 64, 1, 9, 64] {
    ///     let y = f.call(Tensor::<B, 2>::ones([batch, 3], &T4aDevice))?;
    ///     y.into_data().assert_eq(&[[1.0f32; 3]].into(), true);
    /// }
    /// assert_eq!((f.counters().traces, f.counters().hits), (4, 2));
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
    fn find(&self, key: &Key, sizes: &[usize]) -> Option<Form<B>> {
        self.cache().find(key, sizes)
    }

    /// Calls the function.
    ///
    /// # Errors
    /// With [`Compiled::fullgraph`] why it cannot be recorded; `Axis` and `Sizes` of
    /// [`CompileError`](crate::CompileError) for named axes; `Operation` if an operation fails on these values;
    /// those of [`Tree::build`] for trees of one's own.
    pub fn call(&self, inputs: I::On<B>) -> Result<O::On<B>> {
        let (structure, leaves) = flatten::<B, _>(inputs);
        let mut key = Key::of(structure, &leaves);
        let sizes = self.names.sizes(&key)?;
        let mut form = None;
        if !sizes.is_empty() {
            // One that was loaded has its sizes in its key.
            form = self.find(&key, &[]);
            key = self.names.key(&key);
        }
        match form.or_else(|| self.find(&key, &sizes)) {
            Some(Form::Program(recorded)) => Self::replay(&recorded, leaves),
            Some(Form::Eager(_)) => eager::<B, I, O>(&self.function, &key.structure, leaves),
            None => {
                let trial = trace::<B, I, O>(&self.function, &key.structure, leaves.clone())?;
                self.keep(key, sizes, trial, leaves)
            }
        }
    }

    fn replay(recorded: &Recorded<B>, leaves: Vec<Any<B>>) -> Result<O::On<B>> {
        let run = || recorded.program.run(leaves, recorded.loaded);
        let all = if recorded.loaded { caught("a loaded program", run)? } else { run() }?;
        build(&recorded.structure, all)
    }

    /// Keeps what was recorded and returns the results: those of the program, so that calls on equal inputs have equal
    /// bits from the first one on, unless running it would draw random numbers a second time.
    fn keep(
        &self,
        key: Key,
        sizes: Vec<usize>,
        trial: Trial<B>,
        leaves: Vec<Any<B>>,
    ) -> Result<O::On<B>> {
        let Trial { structure, values, source } = trial;
        let (form, program) = match source {
            Err(error) if self.fullgraph => return Err(error),
            Err(error) => (Form::Eager(error.to_string().into()), None),
            Ok(source) => {
                let is_random = source.instructions.iter().any(|one| !one.pure);
                let recorded = Recorded::new(source, structure.clone(), self.fused, false);
                (Form::Program(recorded.clone()), (!is_random).then_some(recorded))
            }
        };
        self.cache().remember(key, sizes, form, &self.names);
        match program {
            Some(recorded) => {
                drop(values);
                Self::replay(&recorded, leaves)
            }
            None => build(&structure, values),
        }
    }

    /// All programs as bytes, for [`Compiled::load`] in another process: keys, recordings and captured
    /// constants, but no code. Those of named axes are saved as programs of their shapes.
    ///
    /// # Errors
    /// [`CompileError::Save`](crate::CompileError::Save) for what has no portable form: operations of `burn_t4a::ext`, quantized
    /// tensors, static values.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.cache().save(&self.names)
    }

    /// Takes programs that [`Compiled::save`] of the same function has written, and returns how many: calls
    /// of these shapes are hits. That it is the same function is up to the caller. Bytes that say something else
    /// than a program are an error here, or of the call that runs into it; they may be a program that computes
    /// something else.
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
