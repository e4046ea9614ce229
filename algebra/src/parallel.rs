//! The thread pool, and the partition of work into chunks.
//!
//! ```text
//! caller    posts a job, computes chunks of it, waits for helpers that are still computing
//! helper    computes chunks of a posted job until none is left, looks for another job, sleeps
//! ```
//!
//! A waiting caller executes only chunks of its own job: an operation may be called while a lock is held, from a worker
//! of any other thread pool, and from within a chunk, and neither runs a foreign task nor grows the stack. A job never
//! requires a helper: if all are busy or none can be started, the caller computes every chunk.
//!
//! The number of chunks does not depend on the number of threads, so results do not either.
//!
//! # Cost of work
//! The unit is an addition of two elements in cache, about 0.1 ns; [`worthwhile`] compares the work with the cost of a
//! second thread (bench `threads` of `burn-t4a`).
//!
//! | work | additions |
//! |---|---|
//! | an element of a light elementwise loop, of a copy or a sum | 1 |
//! | an element of an elementary function, a norm, a draw | 2 to 32: the cost of its kernel |
//! | a step of a matrix product, or of a convolution by products | 1/16: [`worthwhile_steps`] |
//! | a step of products with short sides: attention, depthwise convolutions | 1/4: [`worthwhile_narrow_steps`] |

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::environment::Variable;
use crate::process::PerProcess;

mod rehearsal;

pub use rehearsal::{Rehearsal, RehearsedLoop, rehearse};

/// Number of additions above which an awake idle thread saves more than it costs: some 5 µs.
const FROM_AWAKE: usize = 1 << 16;
/// Number of additions above which waking a thread saves more than it costs: some 30 µs.
const FROM_ASLEEP: usize = 1 << 18;

/// Time for which an idle thread polls before it yields between polls: about the time to wake a thread.
const SPIN: Duration = Duration::from_micros(30);
/// Time after which an idle thread sleeps: longer than the gap between the operations of a network, so that the threads
/// stay awake during a training step.
const LINGER: Duration = Duration::from_micros(200);

/// A positive number that is set by a call, by the environment, or by default.
struct Count {
    /// 0 before the first use.
    now: AtomicUsize,
    variable: Variable<usize>,
    otherwise: fn() -> usize,
}

impl Count {
    const fn new(variable: Variable<usize>, otherwise: fn() -> usize) -> Count {
        Count { now: AtomicUsize::new(0), variable, otherwise }
    }

    fn set(&self, count: usize) {
        self.now.store(count.max(1), Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> usize {
        match self.now.load(Ordering::Relaxed) {
            0 => self.read(),
            n => n,
        }
    }

    #[cold]
    fn read(&self) -> usize {
        let count = self.variable.get().unwrap_or_else(self.otherwise);
        // A value set concurrently is kept.
        match self.now.compare_exchange(0, count, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => count,
            Err(set) => set,
        }
    }
}

fn at_least_one(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&count| count > 0)
}

/// The environment variable for the number of threads.
pub const VARIABLE: Variable<usize> =
    Variable::new("T4A_NUM_THREADS", "a number of threads, at least 1", at_least_one);
static THREADS: Count = Count::new(VARIABLE, cores);

/// Sets the number of threads of every subsequent operation, at least 1. The number of helpers is limited to a few per
/// core.
pub fn set_threads(threads: usize) {
    THREADS.set(threads);
}

/// Maximum number of threads of an operation: the number set, the environment variable `T4A_NUM_THREADS`, or one per
/// core.
#[inline]
pub fn threads() -> usize {
    THREADS.get()
}

/// The environment variable for the number of parts.
pub const PARTS_VARIABLE: Variable<usize> =
    Variable::new("T4A_PARTS", "a number of parts, at least 1", at_least_one);
static PARTS: Count = Count::new(PARTS_VARIABLE, || 4);

/// Sets the number of parts of every subsequent large factorisation, at least 1.
pub fn set_parts(parts: usize) {
    PARTS.set(parts);
}

/// Number of partial sums in a large factorisation: the number set, the environment variable `T4A_PARTS`, or 4. At most
/// as many threads compute them. The rounding of the results depends on the parts, not on the threads.
pub fn parts() -> usize {
    PARTS.get()
}

/// True if work on `elements` elements, each at the cost of `cost` additions, currently justifies more than one thread;
/// the threshold is lower if another thread is awake. The result may only affect the distribution of the work, not its
/// arithmetic.
#[inline]
pub fn worthwhile(elements: usize, cost: usize) -> bool {
    let additions = elements.saturating_mul(cost);
    additions >= FROM_AWAKE
        && threads() > 1
        && (additions >= FROM_ASLEEP
            || CREW.last().is_some_and(|crew| crew.looking.load(Ordering::Relaxed) > 0))
}

/// [`worthwhile`] for a number of multiply-adds of matrix products.
#[inline]
pub fn worthwhile_steps(steps: usize) -> bool {
    worthwhile(steps / 16, 1)
}

/// [`worthwhile`] for a number of multiply-adds of products with short sides.
#[inline]
pub fn worthwhile_narrow_steps(steps: usize) -> bool {
    worthwhile(steps / 4, 1)
}

thread_local! {
    /// True while this thread executes chunks of a job.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Execution of chunks by this thread, until it is dropped.
struct Inside {
    /// The chunks are within one of another job.
    nested: bool,
}

impl Inside {
    fn enter() -> Self {
        Self { nested: INSIDE.replace(true) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.nested);
    }
}

/// True within a chunk of a job on several threads, which share the cores already. Work within it is best done by this
/// thread alone.
pub fn is_inside() -> bool {
    INSIDE.get()
}

/// Calls `body(chunk)` for every chunk in `0..chunks`, on several threads if `parallel`.
///
/// The body is called through a pointer: chunks are large, and the scheduling is compiled once instead of once per
/// kernel. A panic in a chunk is propagated to the caller after all threads have left the body; chunks that have not
/// started are skipped.
pub fn for_each(chunks: usize, parallel: bool, body: &(dyn Fn(usize) + Sync)) {
    if parallel && chunks > 1 {
        for_each_limited(chunks, threads(), body);
    } else {
        (0..chunks).for_each(body);
    }
}

/// [`for_each`] on at most `threads` threads, including the caller.
pub fn for_each_limited(chunks: usize, threads: usize, body: &(dyn Fn(usize) + Sync)) {
    let helpers = threads.min(chunks).saturating_sub(1);
    if helpers == 0 {
        return (0..chunks).for_each(body);
    }
    let helpers = helpers.min(most_helpers());
    if rehearsal::rehearsed(chunks, threads, body) {
        return;
    }
    let job = Job {
        body,
        chunks,
        claimed: AtomicUsize::new(0),
        from_end: AtomicUsize::new(0),
        helpers: AtomicUsize::new(0),
        panic: Mutex::new(None),
        owner: thread::current(),
    };
    let posted = Posted::new(&job, helpers);
    job.run(false);
    drop(posted);
    if let Some(payload) = lock(&job.panic).take() {
        resume_unwind(payload);
    }
}

/// Maximum number of helpers of a job: several per core.
fn most_helpers() -> usize {
    (4 * cores()).max(64)
}

/// Number of cores available to the process. The system is queried once, because a query reads several files.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Calls `body(index, item)` for every item, on several threads if `parallel`.
pub fn for_each_mut<T: Send>(items: &mut [T], parallel: bool, body: impl Fn(usize, &mut T) + Sync) {
    let first = SendPtr(items.as_mut_ptr());
    for_each(items.len(), parallel, &|i| {
        // SAFETY: i < items.len(), and every index is visited once.
        body(i, unsafe { &mut *first.get().add(i) });
    });
}

/// Work shared by several threads. It is on the stack of its owner, which returns only when no helper holds a reference
/// to it.
struct Job<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    chunks: usize,
    /// Number of chunks started, or more after the last one.
    claimed: AtomicUsize,
    /// Number of chunks started by helpers.
    from_end: AtomicUsize,
    /// Number of helpers executing chunks.
    helpers: AtomicUsize,
    /// Payload of the first panic in a chunk.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    owner: Thread,
}

impl Job<'_> {
    /// Executes chunks until none is left: the caller from the first one on, helpers from the last one on. The elements
    /// that two threads compute are then mostly the same in every call, and remain in the L2 caches of their cores.
    fn run(&self, helper: bool) {
        let chunks = || {
            let _inside = Inside::enter();
            let mut first = 0..self.chunks;
            while self.claimed.fetch_add(1, Ordering::Relaxed) < self.chunks {
                // At most as many chunks as there are have been claimed, so both ends do not overlap.
                let chunk = match helper {
                    true => self.chunks - 1 - self.from_end.fetch_add(1, Ordering::Relaxed),
                    false => first.next().unwrap_or_default(),
                };
                (self.body)(chunk);
            }
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(chunks)) {
            self.claimed.store(self.chunks, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(payload);
        }
    }
}

/// A posted job with the number of helpers that may still join it.
struct QueueEntry {
    job: NonNull<Job<'static>>,
    open: usize,
}

// SAFETY: a job is shared between threads (its body is `Sync`), and outlives its entry and its helpers: see `Posted`.
unsafe impl Send for QueueEntry {}

struct Queue {
    entries: VecDeque<QueueEntry>,
    /// Number of started threads.
    started: usize,
    /// Number of threads that sleep until a job is posted.
    asleep: usize,
}

/// The threads of a process and their shared state.
struct Crew {
    queue: Mutex<Queue>,
    posted: Condvar,
    /// Number of open helper positions of posted jobs, polled by idle threads.
    open: AtomicUsize,
    /// Number of idle threads that poll for work.
    looking: AtomicUsize,
}

impl Crew {
    const fn new() -> Self {
        Self {
            queue: Mutex::new(Queue { entries: VecDeque::new(), started: 0, asleep: 0 }),
            posted: Condvar::new(),
            open: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
        }
    }
}

/// One per process: a forked process does not have the threads of its parent.
static CREW: PerProcess<Crew> = PerProcess::new(Crew::new);

/// No user code runs under these locks, so the data of a poisoned lock is valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A job in the queue. Dropping it removes the job and waits for its helpers.
struct Posted<'a> {
    crew: &'static Crew,
    job: NonNull<Job<'static>>,
    life: PhantomData<&'a Job<'a>>,
}

impl<'a> Posted<'a> {
    fn new(job: &'a Job<'a>, helpers: usize) -> Self {
        let job = NonNull::from(job).cast::<Job<'static>>();
        let crew = CREW.get();
        let wake;
        {
            let mut queue = lock(&crew.queue);
            queue.entries.push_back(QueueEntry { job, open: helpers });
            crew.open.fetch_add(helpers, Ordering::Relaxed);
            while queue.started < helpers {
                let name = format!("t4a-{}", queue.started);
                if thread::Builder::new().name(name).spawn(|| help(crew)).is_err() {
                    break;
                }
                queue.started += 1;
            }
            wake = helpers.min(queue.asleep);
        }
        (0..wake).for_each(|_| crew.posted.notify_one());
        Self { crew, job, life: PhantomData }
    }
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        {
            let mut queue = lock(&self.crew.queue);
            if let Some(at) = queue.entries.iter().position(|entry| entry.job == self.job)
                && let Some(entry) = queue.entries.remove(at)
            {
                self.crew.open.fetch_sub(entry.open, Ordering::Relaxed);
            }
        }
        // SAFETY: the job outlives this handle.
        let helpers = unsafe { &self.job.as_ref().helpers };
        // The entry is removed, so no further helper can join.
        if !spin(SPIN, || helpers.load(Ordering::Acquire) == 0) {
            while helpers.load(Ordering::Acquire) != 0 {
                thread::park();
            }
        }
    }
}

/// Polls a condition for a time; yields to other threads between polls after [`SPIN`].
fn spin(time: Duration, done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        let waited = start.elapsed();
        if waited > time {
            return false;
        }
        if waited > SPIN {
            thread::yield_now();
        }
    }
}

/// Joins a posted job if one has an open helper position.
fn join(crew: &Crew, queue: &mut Queue) -> Option<NonNull<Job<'static>>> {
    let entry = queue.entries.front_mut()?;
    let job = entry.job;
    // SAFETY: the owner of a job removes its entry before it returns, under the lock held here.
    unsafe { job.as_ref() }.helpers.fetch_add(1, Ordering::Relaxed);
    crew.open.fetch_sub(1, Ordering::Relaxed);
    entry.open -= 1;
    if entry.open == 0 {
        queue.entries.pop_front();
    }
    Some(job)
}

/// Main loop of a pool thread.
fn help(crew: &Crew) {
    loop {
        let mut queue = lock(&crew.queue);
        let job = loop {
            if let Some(job) = join(crew, &mut queue) {
                break job;
            }
            drop(queue);
            crew.looking.fetch_add(1, Ordering::Relaxed);
            let found = spin(LINGER, || crew.open.load(Ordering::Relaxed) > 0);
            crew.looking.fetch_sub(1, Ordering::Relaxed);
            queue = lock(&crew.queue);
            if !found && queue.entries.is_empty() {
                queue.asleep += 1;
                queue = crew.posted.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
                queue.asleep -= 1;
            }
        };
        drop(queue);
        // SAFETY: the owner waits until all counted helpers have left.
        let owner = unsafe {
            let job = job.as_ref();
            job.run(true);
            let owner = job.owner.clone();
            let last = job.helpers.fetch_sub(1, Ordering::Release) == 1;
            last.then_some(owner)
        };
        if let Some(owner) = owner {
            owner.unpark();
        }
    }
}

/// A pointer that may be used from several threads; each use must justify the absence of data races.
#[derive(Debug)]
pub struct SendPtr<T>(pub *mut T);

impl<T> Clone for SendPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SendPtr<T> {}
// SAFETY: the users of the pointer write disjoint elements.
unsafe impl<T> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// The pointer. A method, so that closures capture the wrapper and not the field.
    #[inline]
    pub fn get(self) -> *mut T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn visits(chunks: usize, threads: usize) -> Vec<usize> {
        let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
        for_each_limited(chunks, threads, &|chunk| {
            counts[chunk].fetch_add(1, Ordering::Relaxed);
        });
        counts.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn every_chunk_is_visited_once() {
        for chunks in [0, 1, 2, 3, 7, 100] {
            for threads in [0, 1, 2, 5] {
                assert_eq!(visits(chunks, threads), vec![1; chunks], "{chunks} {threads}");
            }
        }
        let mut items = vec![0; 100];
        for_each_mut(&mut items, true, |i, item| *item += i);
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn helpers_take_part() {
        // Two chunks that wait for each other terminate only on two threads.
        let met = std::sync::Barrier::new(2);
        for_each_limited(2, 2, &|_| {
            met.wait();
        });
    }

    #[test]
    fn chunks_may_have_chunks() {
        let sum = AtomicUsize::new(0);
        for_each_limited(10, 3, &|i| {
            for_each_limited(10, 3, &|j| {
                sum.fetch_add(10 * i + j, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), (0..100).sum());
    }

    #[test]
    fn callers_do_not_disturb_each_other() {
        let rounds = if cfg!(miri) { 3 } else { 200 };
        thread::scope(|scope| {
            for caller in 0..6 {
                scope.spawn(move || {
                    for _ in 0..rounds {
                        assert_eq!(visits(5 + caller, 4), vec![1; 5 + caller]);
                    }
                });
            }
        });
    }

    #[test]
    fn chunks_are_inside_of_a_job() {
        assert!(!is_inside());
        for_each_limited(4, 2, &|_| {
            assert!(is_inside());
            for_each_limited(2, 2, &|_| assert!(is_inside()));
            assert!(is_inside());
        });
        assert!(!is_inside());
        let failed = catch_unwind(|| for_each_limited(4, 2, &|_| panic!("in a chunk")));
        assert!(failed.is_err() && !is_inside());
    }

    #[test]
    fn a_panic_reaches_the_caller_after_the_last_helper_has_left() {
        for bad in [0, 1, 9] {
            let inside = AtomicUsize::new(0);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                for_each_limited(10, 4, &|chunk| {
                    inside.fetch_add(1, Ordering::SeqCst);
                    if chunk == bad {
                        inside.fetch_sub(1, Ordering::SeqCst);
                        panic!("chunk {chunk}");
                    }
                    thread::sleep(Duration::from_millis(2));
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }));
            assert_eq!(inside.load(Ordering::SeqCst), 0);
            let message = *caught.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(message, format!("chunk {bad}"));
        }
        // The pool is still usable.
        assert_eq!(visits(8, 4), vec![1; 8]);
    }

    #[test]
    fn a_caller_that_waits_runs_nothing_but_its_own_chunks() {
        // One caller holds a lock that the chunks of another caller acquire: if the first executed them while it waits,
        // it would deadlock.
        let held = Mutex::new(());
        let entered = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = lock(&held);
                entered.store(true, Ordering::SeqCst);
                for_each_limited(20, 2, &|_| thread::sleep(Duration::from_millis(1)));
            });
            scope.spawn(|| {
                while !entered.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                for_each_limited(4, 2, &|_| drop(lock(&held)));
            });
        });
    }
}
