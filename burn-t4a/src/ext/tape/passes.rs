//! Reverse passes of this thread, observed.
//!
//! Burn 0.21 does not count its passes, but each of them ends by dropping, on its own thread, all nodes of all
//! graphs that have neither handles nor inputs. A few such nodes are registered before code is observed. If this
//! thread drops one of them, the code has run a reverse pass; if none is dropped, there was no pass at all.
//! Nodes that the pass of another thread drops are replaced at once, since a pass of this thread may follow.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, ThreadId};

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsPrep, Tracked as OnTape};
use burn_backend::ops::FloatTensorOps;
use burn_backend::{FloatDType, Shape};

use super::{Tracked, constant};
use crate::v0_21::{BurnT4a, T4aDevice};

type Tape = Autodiff<BurnT4a, NoCheckpointing>;

/// Number of nodes: a pass of this thread misses all of them only if another thread is at the same place of its
/// pass and drops each of them just before.
const NODES: usize = 8;

/// What the nodes of one thread share.
struct Shared {
    thread: ThreadId,
    /// Requires gradients, but is in no graph.
    template: Tracked<BurnT4a, NoCheckpointing>,
    registered: AtomicUsize,
    observers: AtomicUsize,
    /// Nodes that this thread has dropped, and that others have.
    own: AtomicUsize,
    others: AtomicUsize,
}

thread_local! {
    static SHARED: Arc<Shared> = Arc::new(Shared::new());
}

impl Shared {
    fn new() -> Self {
        let x = BurnT4a::float_zeros(Shape::from([1]), &T4aDevice, FloatDType::F32);
        let mut template = constant::<BurnT4a, NoCheckpointing>(x);
        template.node = Tape::float_set_require_grad(template.clone(), true).node;
        let [registered, observers, own, others] = [const { AtomicUsize::new(0) }; 4];
        let thread = thread::current().id();
        Self { thread, template, registered, observers, own, others }
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
        // The pass holds the lock of the graph of this node, and no other.
        if shared.observers.load(SeqCst) > 0 {
            shared.clone().register();
        }
        shared.others.fetch_add(1, SeqCst);
    }
}

/// Code of this thread is observed as long as it lives.
pub(crate) struct Observer {
    shared: Arc<Shared>,
    own: usize,
    others: usize,
}

impl Observer {
    /// Begins to observe.
    pub(crate) fn new() -> Self {
        let shared = SHARED.with(Arc::clone);
        shared.observers.fetch_add(1, SeqCst);
        while shared.registered.load(SeqCst) < NODES {
            shared.clone().register();
        }
        let [own, others] = [&shared.own, &shared.others].map(|count| count.load(SeqCst));
        Self { shared, own, others }
    }

    /// Whether this thread has ended a reverse pass; `None` if it has probably not, but passes of other threads
    /// may have hidden it.
    pub(crate) fn ended_pass(&self) -> Option<bool> {
        if self.shared.own.load(SeqCst) != self.own {
            return Some(true);
        }
        (self.shared.others.load(SeqCst) == self.others).then_some(false)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
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
    fn a_pass_of_this_thread_is_seen_and_those_of_others_are_not() {
        let mut seen = 0;
        for _ in 0..100 {
            let observer = Observer::new();
            assert_ne!(observer.ended_pass(), Some(true));
            thread::spawn(pass).join().unwrap();
            assert_eq!(observer.ended_pass(), None);
            pass();
            seen += (observer.ended_pass() == Some(true)) as usize;
        }
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
        for _ in 0..1000 {
            let observer = Observer::new();
            pass();
            seen += (observer.ended_pass() == Some(true)) as usize;
        }
        stop.store(1, SeqCst);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(seen > 990, "{seen} of 1100");
    }
}
