//! Predicts the scaling of loops on more threads than the machine has.
//!
//! ```text
//! loop    Σ chunk    total time of its chunks, executed sequentially
//! longest    finish time of n threads under greedy scheduling of the chunks
//! serial  time outside of the chunks
//! ```

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::{Inside, set_threads, threads};

/// A loop over chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RehearsedLoop {
    /// Number of chunks.
    pub chunks: usize,
    /// Number of threads in the simulated schedule.
    pub threads: usize,
    /// Total time of all chunks.
    pub work: Duration,
    /// Finish time of the last chunk in the simulated schedule.
    pub longest: Duration,
}

impl RehearsedLoop {
    /// Relative excess time over perfect balance for chunks of equal duration: 0 for a multiple of the number of
    /// threads, nearly 1 for one chunk more than threads.
    pub fn imbalance(&self) -> f64 {
        (self.chunks.div_ceil(self.threads) * self.threads) as f64 / self.chunks.max(1) as f64 - 1.0
    }
}

/// Result of [`rehearse`].
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// Loops that several threads would execute, in order: each ends with a synchronisation.
    pub loops: Vec<RehearsedLoop>,
    /// Total time on this thread.
    pub time: Duration,
}

impl Rehearsal {
    /// Time outside of shared loops.
    pub fn serial(&self) -> Duration {
        self.time.saturating_sub(self.loops.iter().map(|x| x.work).sum())
    }

    /// Predicted total time, without the overhead of threads and without interference between cores.
    pub fn shared(&self) -> Duration {
        self.serial() + self.loops.iter().map(|x| x.longest).sum::<Duration>()
    }
}

thread_local! {
    /// The loops of the rehearsal on this thread.
    static LOOPS: RefCell<Option<Vec<RehearsedLoop>>> = const { RefCell::new(None) };
}

/// Runs `f` on this thread only, planned as for `n` threads, and returns the simulated schedule of its loops.
///
/// The number of threads is a process-wide setting, so no other operation should run concurrently.
pub fn rehearse(n: usize, f: impl FnOnce()) -> Rehearsal {
    /// Restores the settings, also if `f` panics.
    struct RestoreSettings(usize);
    impl Drop for RestoreSettings {
        fn drop(&mut self) {
            set_threads(self.0);
            LOOPS.set(None);
        }
    }
    let back = RestoreSettings(threads());
    set_threads(n);
    LOOPS.set(Some(Vec::new()));
    let begin = Instant::now();
    f();
    let time = begin.elapsed();
    let loops = LOOPS.take().unwrap_or_default();
    drop(back);
    Rehearsal { loops, time }
}

/// Runs the chunks sequentially if this thread is in [`rehearse`]; returns true then.
pub(super) fn rehearsed(chunks: usize, threads: usize, body: &(dyn Fn(usize) + Sync)) -> bool {
    if LOOPS.with_borrow(Option::is_none) {
        return false;
    }
    let inside = Inside::enter();
    let mut free = vec![Duration::ZERO; threads];
    let mut work = Duration::ZERO;
    for chunk in 0..chunks {
        let begin = Instant::now();
        body(chunk);
        let time = begin.elapsed();
        work += time;
        if let Some(first) = free.iter_mut().min() {
            *first += time;
        }
    }
    let longest = free.into_iter().max().unwrap_or_default();
    LOOPS.with_borrow_mut(|loops| {
        // A nested loop belongs to its chunk.
        if let Some(loops) = loops
            && !inside.nested
        {
            loops.push(RehearsedLoop { chunks, threads, work, longest });
        }
    });
    true
}
