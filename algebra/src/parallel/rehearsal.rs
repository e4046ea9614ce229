//! How loops would be shared out on more threads than this machine has.
//!
//! ```text
//! loop    Σ chunk    what its chunks take, one after the other
//!         longest    what the last of n threads takes, when whoever is free takes the next chunk
//! serial  all that is outside of the chunks
//! ```

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::{set_threads, threads};

/// A loop over chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loop {
    /// Number of its chunks.
    pub chunks: usize,
    /// Threads that might have taken part.
    pub threads: usize,
    /// Time of all of its chunks.
    pub work: Duration,
    /// Time until the last chunk would have ended.
    pub longest: Duration,
}

impl Loop {
    /// How much longer than perfectly balanced the loop takes if its chunks are alike: 0 for a multiple of the
    /// number of threads, nearly 1 for one chunk more than threads.
    pub fn imbalance(&self) -> f64 {
        (self.chunks.div_ceil(self.threads) * self.threads) as f64 / self.chunks.max(1) as f64 - 1.0
    }
}

/// What [`rehearse`] has seen.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// Loops that several threads would share, in order: each ends with a synchronisation.
    pub loops: Vec<Loop>,
    /// Everything together, on this thread.
    pub time: Duration,
}

impl Rehearsal {
    /// What is not inside of a shared loop.
    pub fn serial(&self) -> Duration {
        self.time.saturating_sub(self.loops.iter().map(|x| x.work).sum())
    }

    /// The time that all of it would take, if threads cost nothing and cores do not disturb each other.
    pub fn shared(&self) -> Duration {
        self.serial() + self.loops.iter().map(|x| x.longest).sum::<Duration>()
    }
}

#[derive(Default)]
struct State {
    loops: Vec<Loop>,
    /// In a chunk: what is inside is part of it.
    inside: bool,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Runs `f` on this thread alone, planned as for `n` threads, and says how its loops would be shared out.
///
/// The number of threads is that of the process, so other operations should not run meanwhile.
pub fn rehearse(n: usize, f: impl FnOnce()) -> Rehearsal {
    /// Puts things back when `f` panics, too.
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            set_threads(self.0);
            STATE.set(None);
        }
    }
    let back = Back(threads());
    set_threads(n);
    STATE.set(Some(State::default()));
    let begin = Instant::now();
    f();
    let time = begin.elapsed();
    let loops = STATE.take().map(|state| state.loops).unwrap_or_default();
    drop(back);
    Rehearsal { loops, time }
}

/// Runs the chunks, if this thread rehearses.
pub(super) fn rehearsed(chunks: usize, threads: usize, body: &(dyn Fn(usize) + Sync)) -> bool {
    let enter = |state: &mut Option<State>| match state {
        Some(state) => Some(std::mem::replace(&mut state.inside, true)),
        None => None,
    };
    let Some(inside) = STATE.with_borrow_mut(enter) else { return false };
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
    STATE.with_borrow_mut(|state| {
        if let Some(state) = state
            && !inside
        {
            state.inside = false;
            state.loops.push(Loop { chunks, threads, work, longest });
        }
    });
    true
}
