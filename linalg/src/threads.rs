//! Threads inside of one large factorisation: faer's, which are rayon's.
//!
//! The pool is ours, and one factorisation at a time has it. A rayon worker that waits takes up
//! other tasks of its pool: of a pool that is shared these could be anybody's, even ones that need
//! a lock which the waiting thread holds, one on top of the other until the stack ends.

use std::panic::resume_unwind;
use std::sync::Mutex;

use faer::Par;
use rayon::{ThreadPool, ThreadPoolBuilder};
use t4a_tensor::loops::parallel;

static POOL: Mutex<Option<ThreadPool>> = Mutex::new(None);

/// Runs `work` with as many threads as an operation may use.
pub(crate) fn with_threads<R: Send>(work: impl FnOnce(Par) -> R + Send) -> R {
    let threads = parallel::threads();
    if threads == 1 {
        return work(Par::Seq);
    }
    let mut pool = POOL.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if pool.as_ref().is_none_or(|pool| pool.current_num_threads() != threads) {
        let name = |i| format!("t4a-linalg-{i}");
        *pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok();
    }
    let Some(pool) = pool.as_ref() else { return work(Par::Seq) };
    let work = || work(Par::rayon(0));
    if rayon::current_thread_index().is_none() {
        return pool.install(work);
    }
    // A worker of somebody's pool would take up tasks of that pool while it waits; a fresh thread
    // is nobody's worker.
    std::thread::scope(|scope| match scope.spawn(|| pool.install(work)).join() {
        Ok(result) => result,
        Err(payload) => resume_unwind(payload),
    })
}
