//! Our own threads, and the one way to split work over them.
//!
//! The threads are ours because a shared pool can run a stolen task that takes a lock which the
//! waiting thread holds. Work is cut into chunks whose number does not depend on how many threads
//! there are, so results do not either.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Elements of simple work up to which waking threads costs more than it saves: about 200 µs, since
/// so much memory is in a cache that cores share (bench `backend`, rows `add 1024²`, `sum 1024²`,
/// slower on two threads than on one).
pub const MIN_PARALLEL: usize = 1 << 20;

static THREADS: AtomicUsize = AtomicUsize::new(0);
static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();

/// Sets the number of threads. It takes effect if no operation has used threads yet, or if it is
/// 1: then everything runs on the calling thread from now on.
pub fn set_threads(threads: usize) {
    THREADS.store(threads.max(1), Ordering::Relaxed);
}

/// Number of threads that an operation may use: the number set, the environment variable
/// `T4A_NUM_THREADS`, or one per core.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let from_env = std::env::var("T4A_NUM_THREADS").ok().and_then(|v| v.parse().ok());
            let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
            let threads = from_env.unwrap_or_else(cores).max(1);
            THREADS.store(threads, Ordering::Relaxed);
            threads
        }
        n => n,
    }
}

fn pool() -> Option<&'static rayon::ThreadPool> {
    POOL.get_or_init(|| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads())
            .thread_name(|i| format!("t4a-{i}"))
            .build()
            .ok()
    })
    .as_ref()
}

/// Runs `work` on our threads, so that rayon inside of it uses them; on the calling thread if
/// there is only one.
#[inline]
pub fn install<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if threads() == 1 {
        return work();
    }
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Whether work on `elements` elements, each about `cost` times as dear as an addition, is worth
/// more than one thread.
#[inline]
pub fn worthwhile(elements: usize, cost: usize) -> bool {
    elements.saturating_mul(cost) > MIN_PARALLEL && threads() > 1
}

/// Calls `body(chunk)` for every chunk in `0..chunks`, on several threads if `parallel`.
///
/// The body is called through a pointer: chunks are large, and one copy of the scheduling is
/// compiled instead of one per kernel.
pub fn for_each(chunks: usize, parallel: bool, body: &(dyn Fn(usize) + Sync)) {
    if parallel && chunks > 1 && threads() > 1 {
        install(|| (0..chunks).into_par_iter().with_max_len(1).for_each(body));
    } else {
        (0..chunks).for_each(body);
    }
}

/// A pointer that may be used from several threads; who sends it says why that is sound.
#[derive(Clone, Copy)]
pub struct SendPtr<T>(pub *mut T);
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
