//! Compiled functions: recorded once per set of shapes, then replayed.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard};

use burn_backend::Backend;
use burn_t4a::ext::tree::Tree;

use crate::backend::Traced;
use crate::cache::{Cache, CachedProgram, Counters, Recorded, lock};
use crate::engine;
use crate::error::{Result, caught};
use crate::explain::draw;
use crate::key::{Key, Names};
use crate::tensor::{AnyPrimitive, build, flatten};
use crate::trace::{Trial, eager, trace};

/// A function that is recorded once per set of input shapes, dtypes and tree structures, and replayed afterwards.
///
/// Calls from several threads are allowed.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::compile::{Traced, compile};
///
/// type B = BurnT4a;
/// let function = |x: Tensor<Traced<B>, 1>| (x.clone() * 2.0).exp() - x;
/// let f = compile(function).capacity(4).fullgraph();
/// let x = Tensor::<B, 1>::from_floats([0.0, 1.0], &T4aDevice);
/// let y = f.call(x.clone())?;
/// println!("{}", f.explain());
/// assert!(f.svg().unwrap().contains("exp"));
/// // Another process loads the programs of this one.
/// let g = compile(function).fused(false);
/// assert_eq!(g.load(&f.save()?)?, 1);
/// g.call(x)?.into_data().assert_approx_eq::<f32>(&y.into_data(), Default::default());
/// assert_eq!((g.counters().traces, g.counters().hits), (0, 1));
/// # Ok::<(), burn_t4a_transforms::compile::CompileError>(())
/// ```
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
/// The first call with given shapes runs the function and records its operations; the second one optimises the recording.
/// Calls on equal inputs have bitwise equal results: where those of the optimised recording may differ from those of the
/// function, because sums follow the layout of views, the first call runs the optimised recording too (except if it draws
/// random numbers: it returns the values computed during the recording). The function must be pure: side effects (printing,
/// counters) happen on recorded calls only, and captured tensors are constants. Random numbers are drawn anew by each
/// call; those drawn on threads other than the caller's are constants. A function that keeps a tensor it computes
/// (parameters of a module that Burn initialises at their first use, running statistics) runs eagerly, or returns
/// [`CompileError::Keeps`](crate::CompileError::Keeps) with [`Compiled::fullgraph`]: replayed calls would not update
/// that tensor.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::compile::{Traced, compile};
///
/// type B = BurnT4a;
/// let f = compile(|x: Tensor<Traced<B>, 1>| (x.clone() * 2.0).exp() - x);
/// let x = Tensor::<B, 1>::from_floats([0.0, 1.0], &T4aDevice);
/// let first = f.call(x.clone())?;
/// let again = f.call(x)?;
/// again.into_data().assert_eq(&first.into_data(), true);
/// assert_eq!((f.counters().traces, f.counters().hits), (1, 1));
/// # Ok::<(), burn_t4a_transforms::compile::CompileError>(())
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
    /// Sets the maximum number of cached programs, at least 1; the default is 64.
    pub fn capacity(self, entries: usize) -> Self {
        self.cache().capacity = entries.max(1);
        self
    }

    /// Makes it an error if the function cannot be recorded, instead of running eagerly.
    pub fn fullgraph(mut self) -> Self {
        self.fullgraph = true;
        self
    }

    /// Enables or disables the fusion of elementwise operations; enabled by default.
    pub fn fused(mut self, fused: bool) -> Self {
        self.fused = fused;
        self
    }

    /// Names an input axis of variable size. Axes of equal name must have equal sizes, which every call checks; leaves
    /// are numbered in tree order.
    ///
    /// The function is recorded once per size, on the first call with that size: sizes are plain numbers in the
    /// function and may affect it in any way, so a recording is not valid for other sizes. Sizes of named axes have
    /// cache slots of their own, up to [`Compiled::capacity`], so they do not evict programs of other shapes.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_transforms::compile::{Traced, compile};
    ///
    /// type B = BurnT4a;
    /// let f = compile(|x: Tensor<Traced<B>, 2>| x.mean_dim(0)).dynamic(0, 0, "batch");
    /// for batch in [2, 9, 64, 1, 9, 64] {
    ///     let y = f.call(Tensor::<B, 2>::ones([batch, 3], &T4aDevice))?;
    ///     y.into_data().assert_eq(&[[1.0f32; 3]].into(), true);
    /// }
    /// assert_eq!((f.counters().traces, f.counters().hits), (4, 2));
    /// # Ok::<(), burn_t4a_transforms::compile::CompileError>(())
    /// ```
    pub fn dynamic(mut self, leaf: usize, axis: usize, name: &str) -> Self {
        self.names.add(leaf, axis, name);
        self
    }

    fn cache(&self) -> MutexGuard<'_, Cache<B>> {
        lock(&self.cache)
    }

    /// Looks up an entry. A separate function, so that the lock is released before the user's function runs.
    fn find(&self, key: &Key, sizes: &[usize]) -> Option<CachedProgram<B>> {
        self.cache().find(key, sizes)
    }

    /// Evaluates the function.
    ///
    /// # Errors
    /// With [`Compiled::fullgraph`], the reason why the function cannot be recorded; `Axis` and `Sizes` of
    /// [`CompileError`](crate::CompileError) for named axes; `Operation` if an operation of a recorded function fails
    /// or panics on these values (a call that records panics as the function does); those of [`Tree::build`] for
    /// user-defined trees.
    pub fn call(&self, inputs: I::On<B>) -> Result<O::On<B>> {
        let (structure, leaves) = flatten::<B, _>(inputs);
        let mut key = Key::of(structure, &leaves);
        let sizes = self.names.sizes(&key)?;
        let mut form = None;
        if !sizes.is_empty() {
            // A loaded program has the sizes in its key.
            form = self.find(&key, &[]);
            key = self.names.key(&key);
        }
        match form.or_else(|| self.find(&key, &sizes)) {
            Some(CachedProgram::Program(recorded)) => Self::replay(&recorded, leaves),
            Some(CachedProgram::Eager(_)) => {
                eager::<B, I, O>(&self.function, &key.structure, leaves)
            }
            None => {
                let trial = trace::<B, I, O>(&self.function, &key.structure, leaves.clone())?;
                self.keep(key, sizes, trial, leaves)
            }
        }
    }

    fn replay(recorded: &Recorded<B>, leaves: Vec<AnyPrimitive<B>>) -> Result<O::On<B>> {
        let run = || engine::run(recorded.program(), leaves, recorded.loaded);
        let all = if recorded.loaded { caught("a loaded program", run)? } else { run() }?;
        build(&recorded.structure, all)
    }

    /// Caches the recording and returns the recorded values, or the results of its program if these may differ in bits, so
    /// that calls on equal inputs have bitwise equal results from the first one on. A recording with random numbers is
    /// not run again: its recorded values are returned.
    fn keep(
        &self,
        key: Key,
        sizes: Vec<usize>,
        trial: Trial<B>,
        leaves: Vec<AnyPrimitive<B>>,
    ) -> Result<O::On<B>> {
        let Trial { structure, values, source, exact } = trial;
        let (form, program) = match source {
            Err(error) if self.fullgraph => return Err(error),
            Err(error) => (CachedProgram::Eager(error.to_string().into()), None),
            Ok(source) => {
                let is_done = exact || source.instructions.iter().any(|one| !one.pure);
                let recorded = Recorded::new(source, structure.clone(), self.fused, false);
                (CachedProgram::Program(recorded.clone()), (!is_done).then_some(recorded))
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

    /// Serialises all programs for [`Compiled::load`] in another process: keys, recordings and captured constants, but
    /// no machine code. Programs of named axes are saved as programs of their concrete shapes.
    ///
    /// # Errors
    /// [`CompileError::Save`](crate::CompileError::Save) for programs without a portable form: operations of
    /// `burn_t4a::ext`, quantized tensors, static values.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.cache().save(&self.names)
    }

    /// Loads programs saved by [`Compiled::save`] of the same function and returns their number: calls with these
    /// shapes are cache hits. The caller must ensure that the function is the same. Malformed bytes are an error of
    /// this method, or of the call that executes the program; well-formed bytes of another program compute other
    /// results.
    ///
    /// # Errors
    /// [`CompileError::Load`](crate::CompileError::Load).
    pub fn load(&self, bytes: &[u8]) -> Result<usize> {
        self.cache().load(bytes, self.fused)
    }

    /// Call statistics.
    pub fn counters(&self) -> Counters {
        self.cache().counters
    }

    /// Outcome of the last call (a hit, or the part of the key that differed from the nearest entry) and all cached
    /// programs: each instruction with its fused parts, operands and results, bytes read and written, and arithmetic
    /// operations (one for each element that a function is evaluated at, two for each multiply-add); in all, with the
    /// number of buffers and the most bytes of values that exist at once.
    pub fn explain(&self) -> String {
        self.cache().explain(&self.names)
    }

    /// Drawing of the program that was used last, as an SVG document; `None` if there is none. A box is an instruction
    /// or a fused group, with the shapes of its results; its tooltip has operands and cost.
    pub fn svg(&self) -> Option<String> {
        self.cache().latest().map(|recorded| draw(recorded.program()))
    }
}

impl<B: Backend, I, O, F> fmt::Debug for Compiled<B, I, O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("capacity", &lock(&self.cache).capacity)
            .finish_non_exhaustive()
    }
}
