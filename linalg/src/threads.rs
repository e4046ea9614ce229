//! Threads inside of one large factorisation: faer's, which are rayon's.
//!
//! faer cuts its work into a given number of parts. Where only columns of a result are cut, every number
//! comes from the same operations on any number of threads. Where sums are cut, their rounding depends on
//! the cut: there the size of a matrix alone determines the number of parts, and the number of threads
//! determines only which thread computes which part ([`Work`]). One thread computes all of them in a pool
//! of one. The parts are a setting of the user: on one thread faer is fastest uncut. Time of four parts over
//! that of one (f64, AVX-512, one thread, n = 400, 600, 1000): QR 1.34, 1.15, 1.21; SVD 1.28, 1.25, 1.15;
//! `eigh` 1.03, 1.01, 0.91.
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
use t4a_algebra::parallel::{cores, parts};
use t4a_algebra::process::PerProcess;

/// Floating-point operations per matrix from which several threads pay where columns are cut: n = 256 for
/// an LU factorisation.
const COLUMNS_FROM: usize = 1 << 24;
/// The same where sums are cut, which costs more: n = 320 for a QR factorisation, 150 for an SVD.
const SUMS_FROM: usize = 1 << 26;

/// The floating-point operations for one matrix, and how they may be cut into parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    flops: usize,
    cut: Cut,
}

#[derive(Clone, Copy, Debug)]
enum Cut {
    Nowhere,
    Columns,
    Sums,
}

impl Work {
    /// Work of which faer cuts columns only: products of matrices, triangular systems, Cholesky and LU
    /// factors. `width` is the least number of columns of a product in it: that of a matrix by one
    /// vector is a sum that faer cuts.
    pub(crate) fn columns(width: usize, flops: usize) -> Work {
        Work { flops, cut: if width == 1 { Cut::Sums } else { Cut::Columns } }
    }

    /// Work of which faer cuts sums, or rounds in another way where it cuts.
    pub(crate) fn sums(flops: usize) -> Work {
        Work { flops, cut: Cut::Sums }
    }

    /// Work on one thread per matrix.
    pub(crate) fn whole(flops: usize) -> Work {
        Work { flops, cut: Cut::Nowhere }
    }

    pub(crate) fn flops(self) -> usize {
        self.flops
    }

    /// The parts that faer cuts one matrix into on so many threads.
    pub(crate) fn parts(self, threads: usize) -> usize {
        match (self.cut, self.flops) {
            (Cut::Columns, COLUMNS_FROM..) => threads.min(most()),
            (Cut::Sums, SUMS_FROM..) => parts(),
            _ => 1,
        }
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
