//! Threads inside of one large factorisation: faer's, which are rayon's.
//!
//! faer cuts its work into a given number of parts, and the rounding of sums depends on the cut. So the
//! size of a matrix alone determines the number of parts ([`parts`]); the number of threads determines
//! only which thread computes which part. One thread computes all of them in a pool of one.
//!
//! Cost of equal parts, as the time over that of parts equal to the number of threads (f64, Zen 5, 2 cores,
//! minimum of repeated runs):
//!
//! ```text
//!                 n = 64    110    300    600
//! 1 thread   qr     3.25   2.12   1.35   1.17
//!            solve  3.46   2.40   1.27   1.07
//!            lu     0.97   2.42   1.38   1.06
//!            svd    1.20   1.09   1.07   1.04
//!            eigh   1.37   1.12   1.03   1.04
//! 2 threads  qr     1.24   1.05   1.10   1.24
//!            solve  1.58   1.64   1.14   1.26
//!            lu     1.04   1.88   1.20   1.49
//!            svd    1.06   1.03   0.97   1.21
//! ```
//!
//! The pools are ours. A rayon worker that waits executes other tasks of its pool. In a pool shared with
//! the user these could be any tasks, even ones that need a lock which the waiting thread holds, nested
//! until the stack ends. One factorisation at a time uses the pool of several threads.
//!
//! A forked process has none of the threads of its parent, and locks that were held at the fork are never
//! released: each process has pools of its own.

use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard};

use faer::Par;
use rayon::{ThreadPool, ThreadPoolBuilder};
use t4a_algebra::parallel::cores;
use t4a_algebra::process::PerProcess;

/// Floating-point operations per matrix from which faer's work is cut: n = 64 for the cubic
/// algorithms.
pub(crate) const LARGE: usize = 1 << 19;

/// The parts that faer cuts a matrix of so many floating-point operations into: 1 below [`LARGE`].
pub(crate) fn parts(flops: usize) -> usize {
    match flops {
        0..LARGE => 1,
        LARGE..0x100_0000 => 2,
        0x100_0000..0x1000_0000 => 4,
        0x1000_0000..0x8000_0000 => 8,
        _ => 16,
    }
}

/// Pools of one process.
struct Pools {
    several: Mutex<Option<ThreadPool>>,
    /// Pools of one thread that are not in use.
    single: Mutex<Vec<ThreadPool>>,
}

static POOLS: PerProcess<Pools> =
    PerProcess::new(|| Pools { several: Mutex::new(None), single: Mutex::new(Vec::new()) });

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn pool(threads: usize) -> Option<ThreadPool> {
    let name = |i| format!("t4a-linalg-{i}");
    ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()
}

/// Threads that a factorisation has at most: more than there are cores only wait for each other.
fn most() -> usize {
    if cfg!(test) { 16 } else { cores() }
}

/// Runs `work`, which faer cuts into so many parts, on at most `threads` threads.
pub(crate) fn with_threads<R: Send>(
    parts: usize,
    threads: usize,
    work: impl FnOnce(Par) -> R + Send,
) -> R {
    if parts == 1 {
        return work(Par::Seq);
    }
    let pools = POOLS.get();
    let par = Par::rayon(parts);
    let threads = threads.min(parts).min(most());
    if threads > 1 {
        let mut several = lock(&pools.several);
        if several.as_ref().is_none_or(|pool| pool.current_num_threads() != threads) {
            *several = pool(threads);
        }
        if let Some(pool) = several.as_ref() {
            return install(pool, || work(par));
        }
    }
    let idle = lock(&pools.single).pop();
    // Without a thread to be had the caller's pool, or rayon's, computes the same parts.
    let Some(pool) = idle.or_else(|| pool(1)) else { return work(par) };
    let result = install(&pool, || work(par));
    lock(&pools.single).push(pool);
    result
}

fn install<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> R {
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

#[cfg(test)]
mod tests;
