//! Threads within one large factorisation: those of faer, which uses rayon.
//!
//! faer divides its work into a given number of parts. If only columns of a result are divided, every number is
//! computed by the same operations on any number of threads. If sums are divided, their rounding depends on the
//! division: the number of parts is then determined by the size of a matrix alone, and the number of threads
//! determines only which thread computes which part ([`Work`]). One thread computes all of them in a pool of one. The
//! number of parts is a user setting: on one thread faer is fastest undivided. Time of four parts relative to one
//! (f64, AVX-512, one thread, n = 400, 600, 1000): QR 1.34, 1.15, 1.21; SVD 1.28, 1.25, 1.15; `eigh` 1.03, 1.01,
//! 0.91.
//!
//! A caller that distributes matrices over threads itself computes each of them [`undivided`]: several parts on one thread
//! are handed over to a pool of one, which the other threads then compete with.
//!
//! The pools are private. A waiting rayon worker executes other tasks of its pool. In a pool shared with the user
//! these could be any tasks, including ones that need a lock held by the waiting thread, nested until the stack
//! overflows. One factorisation at a time uses the pool of several threads.
//!
//! A forked process has none of the threads of its parent, and locks held at the fork are never released: each
//! process has its own pools.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard};

use faer::Par;
use rayon::{ThreadPool, ThreadPoolBuilder};
use t4a_algebra::parallel::{cores, parts};
use t4a_algebra::process::PerProcess;

/// Floating-point operations per matrix from which several threads are used where columns are divided: n = 294 for an
/// LU factorisation. At n = 256 two threads take 1.1 to 1.2 times as long as one (`f64`, Zen 5).
const COLUMNS_FROM: usize = 1 << 24;
/// The same where sums are divided, which costs more: n = 320 for a QR factorisation, 150 for an SVD.
const SUMS_FROM: usize = 1 << 26;

/// Number of floating-point operations for one matrix, and the permitted division into parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    flops: usize,
    cut: Division,
}

#[derive(Clone, Copy, Debug)]
enum Division {
    Nowhere,
    Columns,
    Sums,
}

impl Work {
    /// Work of which faer divides columns only: products of matrices, triangular systems, Cholesky and LU factors.
    /// `width` is the minimum number of columns of a product in it: a matrix-vector product is a sum, which faer
    /// divides.
    pub(crate) fn columns(width: usize, flops: usize) -> Work {
        Work { flops, cut: if width == 1 { Division::Sums } else { Division::Columns } }
    }

    /// Work of which faer divides sums, or whose rounding depends on the division.
    pub(crate) fn sums(flops: usize) -> Work {
        Work { flops, cut: Division::Sums }
    }

    /// Work on one thread per matrix.
    pub(crate) fn whole(flops: usize) -> Work {
        Work { flops, cut: Division::Nowhere }
    }

    pub(crate) fn flops(self) -> usize {
        self.flops
    }

    /// Number of parts of one matrix for this number of threads.
    pub(crate) fn parts(self, threads: usize) -> usize {
        if UNDIVIDED.get() {
            return 1;
        }
        match (self.cut, self.flops) {
            (Division::Columns, COLUMNS_FROM..) => threads.min(most()),
            (Division::Sums, SUMS_FROM..) => parts(),
            _ => 1,
        }
    }
}

thread_local! {
    /// True while this thread is in [`undivided`].
    static UNDIVIDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, in which every factorisation has one part, whatever its size, and uses this thread alone. For callers that
/// distribute matrices over threads. Rounding then differs from that of large matrices outside, but does not depend on
/// the number of threads either.
///
/// ```
/// use t4a_linalg::eigh::eigh;
/// use t4a_tensor::Tensor;
/// let a = Tensor::<f64>::from_vec(vec![2.0, 1.0, 1.0, 2.0], &[2, 2])?;
/// let values = t4a_linalg::undivided(|| eigh(&a))?.values.to_vec()?;
/// assert!((values[0] - 1.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn undivided<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            UNDIVIDED.set(self.0);
        }
    }
    let _restore = Restore(UNDIVIDED.replace(true));
    work()
}

/// Thread pools of one process.
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

/// Maximum number of threads of a factorisation: the number of cores.
fn most() -> usize {
    if cfg!(test) { 16 } else { cores() }
}

/// Runs `work`, which faer divides into `parts`, on at most `threads` threads.
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
    // If no thread can be started, the caller's pool, or the global one, computes the same parts.
    let Some(pool) = idle.or_else(|| pool(1)) else { return work(par) };
    let result = install(&pool, || work(par));
    lock(&pools.single).push(pool);
    result
}

fn install<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_none() {
        return pool.install(work);
    }
    // A worker of another pool would execute tasks of that pool while it waits; a new thread is not a worker.
    std::thread::scope(|scope| match scope.spawn(|| pool.install(work)).join() {
        Ok(result) => result,
        Err(payload) => resume_unwind(payload),
    })
}

#[cfg(test)]
mod tests;
