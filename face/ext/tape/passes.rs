//! Detection of reverse passes that run on a thread.
//!
//! Burn 0.21 does not count reverse passes. Each pass ends by visiting all graphs on its own thread and drops nodes
//! that have neither handles nor inputs. A sentinel node of this kind is registered before the observed code runs.
//! If this thread drops it, the code has run a reverse pass. If a pass of another thread drops it, that thread
//! registers a new sentinel and holds the lock of the first one's graph until this thread makes progress. Inside a
//! pass this thread would wait for that lock and make no progress, so after a timeout the other thread continues,
//! and the result is unknown.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsPrep, Tracked as OnTape};
use burn_backend::ops::FloatTensorOps;
use burn_backend::{FloatDType, Shape};
use burn_tensor::Tensor;

use super::{Tracked, constant};
use crate::backend::{BurnT4a, T4aDevice};

type ObserverTape = Autodiff<BurnT4a, NoCheckpointing>;

/// Minimum and maximum time for which another thread waits.
const PATIENCE: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(5)];

/// State shared by a thread and its sentinel node.
struct ObserverState {
    thread: ThreadId,
    /// Tensor that requires gradients but is in no graph; cloned for each sentinel.
    template: Tracked<BurnT4a, NoCheckpointing>,
    registered: AtomicUsize,
    observers: AtomicUsize,
    /// Number of times an observer was created or dropped.
    progress: AtomicUsize,
    /// Waiting time in milliseconds.
    patience: AtomicUsize,
    /// Number of sentinels that this thread has dropped.
    own: AtomicUsize,
    /// Number of sentinels that other threads have dropped without progress of this thread.
    unknown: AtomicUsize,
}

thread_local! {
    static SHARED: Arc<ObserverState> = Arc::new(ObserverState::new());
}

impl ObserverState {
    fn new() -> Self {
        let x = BurnT4a::float_zeros(Shape::from([1]), &T4aDevice, FloatDType::F32);
        let mut template = constant::<BurnT4a, NoCheckpointing>(x);
        template.node = ObserverTape::float_set_require_grad(template.clone(), true).node;
        let [registered, observers, progress, own, unknown] = [const { AtomicUsize::new(0) }; 5];
        let patience = AtomicUsize::new(PATIENCE[0].as_millis() as usize);
        let thread = thread::current().id();
        Self { thread, template, registered, observers, progress, patience, own, unknown }
    }

    fn register(self: Arc<Self>) {
        self.registered.fetch_add(1, SeqCst);
        let template = self.template.clone();
        let (requirement, properties) =
            (template.node.requirement, template.node.properties.clone());
        let prep = OpsPrep::<Sentinel, BurnT4a, (), NoCheckpointing, 0, OnTape>::new(
            [],
            requirement,
            Sentinel(self),
            properties,
            Default::default(),
        );
        drop(prep.finish((), template.primitive));
    }
}

/// Rule of a sentinel, which no reverse pass reaches.
struct Sentinel(Arc<ObserverState>);

impl fmt::Debug for Sentinel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sentinel")
    }
}

impl Backward<BurnT4a, 0> for Sentinel {
    type State = ();

    fn backward(self, _: Ops<(), 0>, _: &mut Gradients, _: &mut Checkpointer) {}
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.registered.fetch_sub(1, SeqCst);
        if thread::current().id() == shared.thread {
            shared.own.fetch_add(1, SeqCst);
            return;
        }
        if shared.observers.load(SeqCst) == 0 {
            return;
        }
        // The pass holds only the lock of this node's graph.
        shared.clone().register();
        let before = shared.progress.load(SeqCst);
        let patience = Duration::from_millis(shared.patience.load(SeqCst) as u64);
        let begin = Instant::now();
        while shared.progress.load(SeqCst) == before {
            if begin.elapsed() > patience {
                shared.unknown.fetch_add(1, SeqCst);
                return;
            }
            thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Returns true if this is the only reference, after a reverse pass has dropped values that tapes hold for passes
/// that never run.
pub fn released<T>(shared: &Arc<T>) -> bool {
    let alone = || Arc::strong_count(shared) == 1;
    for pause in 0..4 {
        if alone() {
            return true;
        }
        // Any pass drops nodes without handles.
        let x = Tensor::<Autodiff<BurnT4a>, 1>::zeros([1], &T4aDevice).require_grad();
        drop((x.clone() * x).backward());
        // A pass of another thread may hold a tape for a short time.
        std::thread::sleep(Duration::from_millis(pause));
    }
    alone()
}

/// Detects reverse passes on this thread during its lifetime.
pub(crate) struct Observer {
    shared: Arc<ObserverState>,
    begin: Instant,
    own: usize,
    unknown: usize,
}

impl Observer {
    /// Registers a sentinel and starts observing.
    pub(crate) fn new() -> Self {
        let shared = SHARED.with(Arc::clone);
        shared.observers.fetch_add(1, SeqCst);
        shared.progress.fetch_add(1, SeqCst);
        if shared.registered.load(SeqCst) == 0 {
            shared.clone().register();
        }
        let [own, unknown] = [&shared.own, &shared.unknown].map(|count| count.load(SeqCst));
        Self { shared, begin: Instant::now(), own, unknown }
    }

    /// `Some(true)` if this thread has completed a reverse pass, `None` if that is unknown. In the latter case
    /// other threads wait three times as long as this observer took when they meet the next one.
    pub(crate) fn ended_pass(&self) -> Option<bool> {
        let shared = &self.shared;
        let outcome = if shared.own.load(SeqCst) != self.own {
            Some(true)
        } else {
            (shared.unknown.load(SeqCst) == self.unknown).then_some(false)
        };
        let patience = match outcome {
            None => (3 * self.begin.elapsed()).clamp(PATIENCE[0], PATIENCE[1]),
            Some(_) => PATIENCE[0],
        };
        shared.patience.store(patience.as_millis() as usize, SeqCst);
        outcome
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.shared.progress.fetch_add(1, SeqCst);
        self.shared.observers.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use burn_tensor::Tensor;

    use super::*;

    fn pass() {
        let x = Tensor::<ObserverTape, 1>::from_floats([1.0], &T4aDevice).require_grad();
        let _ = x.backward();
    }

    /// One test, because tests of one process run in parallel.
    #[test]
    fn passes_of_this_thread_are_seen_and_those_of_others_are_not() {
        // Passes of tests in other threads may leave single rounds unknown, but not all.
        let mut seen = 0;
        for _ in 0..50 {
            let observer = Observer::new();
            assert_ne!(observer.ended_pass(), Some(true));
            thread::spawn(pass).join().unwrap();
            // This thread has made no progress in the meantime.
            assert_ne!(observer.ended_pass(), Some(true));
            pass();
            let ended = observer.ended_pass();
            assert_ne!(ended, Some(false));
            seen += usize::from(ended == Some(true));
        }
        assert!(seen > 0);
        let stop = Arc::new(AtomicUsize::new(0));
        let busy = || {
            let stop = stop.clone();
            thread::spawn(move || {
                while stop.load(SeqCst) == 0 {
                    pass();
                }
            })
        };
        let threads = [busy(), busy()];
        for k in 0..20 {
            let observer = Observer::new();
            if k % 2 == 0 {
                pass();
            }
            let wrong = Some(k % 2 != 0);
            assert_ne!(observer.ended_pass(), wrong);
        }
        stop.store(1, SeqCst);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
