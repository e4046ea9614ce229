//! Reverse passes of this thread, observed.
//!
//! Burn 0.21 does not count its passes, but each of them ends by visiting, on its own thread, all graphs, and drops nodes
//! that have neither handles nor inputs. One such node is registered before code is observed. If this thread drops
//! it, the code has run a reverse pass. A pass of another thread that drops it registers another one, and keeps
//! the lock of the first until this thread goes on: inside of a pass it could not, since it would wait for that
//! lock. After some time the other thread gives up, and it stays unknown whether there was a pass.

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

type Tape = Autodiff<BurnT4a, NoCheckpointing>;

/// Least and greatest time that another thread waits for.
const PATIENCE: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(5)];

/// The state that a thread and its node share.
struct Shared {
    thread: ThreadId,
    /// Requires gradients, but is in no graph.
    template: Tracked<BurnT4a, NoCheckpointing>,
    registered: AtomicUsize,
    observers: AtomicUsize,
    /// Counts observers as they begin and end.
    progress: AtomicUsize,
    /// Milliseconds.
    patience: AtomicUsize,
    /// Nodes that this thread has dropped.
    own: AtomicUsize,
    /// Nodes of others that were dropped without progress of this thread.
    unknown: AtomicUsize,
}

thread_local! {
    static SHARED: Arc<Shared> = Arc::new(Shared::new());
}

impl Shared {
    fn new() -> Self {
        let x = BurnT4a::float_zeros(Shape::from([1]), &T4aDevice, FloatDType::F32);
        let mut template = constant::<BurnT4a, NoCheckpointing>(x);
        template.node = Tape::float_set_require_grad(template.clone(), true).node;
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

/// The rule of such a node, which no pass reaches.
struct Sentinel(Arc<Shared>);

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
        // The pass holds the lock of the graph of this node, and no other.
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

/// True if this is the only reference, after tapes have dropped the values that they hold for passes that never come.
pub fn released<T>(shared: &Arc<T>) -> bool {
    let alone = || Arc::strong_count(shared) == 1;
    for pause in 0..4 {
        if alone() {
            return true;
        }
        // Any pass drops what no handle leads to any more.
        let x = Tensor::<Autodiff<BurnT4a>, 1>::zeros([1], &T4aDevice).require_grad();
        drop((x.clone() * x).backward());
        // A pass of another thread may hold a tape a moment longer.
        std::thread::sleep(Duration::from_millis(pause));
    }
    alone()
}

/// Code of this thread is observed as long as it lives.
pub(crate) struct Observer {
    shared: Arc<Shared>,
    begin: Instant,
    own: usize,
    unknown: usize,
}

impl Observer {
    /// Begins to observe.
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

    /// `Some(true)` if this thread has ended a reverse pass, `None` if that is unknown: for the next observer others wait three
    /// times as long as this one took.
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
        let x = Tensor::<Tape, 1>::from_floats([1.0], &T4aDevice).require_grad();
        let _ = x.backward();
    }

    /// One test, since tests of one process run side by side.
    #[test]
    fn passes_of_this_thread_are_seen_and_those_of_others_are_not() {
        // Passes of tests in other threads may leave a round unknown, though not every one.
        let mut seen = 0;
        for _ in 0..50 {
            let observer = Observer::new();
            assert_ne!(observer.ended_pass(), Some(true));
            thread::spawn(pass).join().unwrap();
            // This thread has made no progress meanwhile.
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
