//! Meshes whose devices belong to several processes.

mod across;
mod board;
mod frame;
mod rendezvous;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use across::Across;
pub(crate) use board::{Alarm, Board, Differs, Digests};
pub(crate) use frame::{DIGESTS, HEADER};
pub use rendezvous::Rendezvous;

/// Process group for meshes across processes; created by a [`Rendezvous`].
///
/// Every process runs the same program and calls the same functions in the same order, each of them
/// [`across`](crate::Sharded::across) this group. Clones share the group; dropping the last clone disconnects this
/// process.
#[derive(Clone)]
pub struct Processes(Arc<Inner>);

struct Inner {
    board: Arc<Board>,
    /// Serialises calls.
    calls: Mutex<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.board.close();
    }
}

impl Processes {
    fn new(board: Arc<Board>) -> Self {
        Self(Arc::new(Inner { board, calls: Mutex::new(()) }))
    }

    /// Rank of this process, from 0.
    pub fn rank(&self) -> usize {
        self.0.board.rank
    }

    /// Number of processes in the group.
    pub fn count(&self) -> usize {
        self.0.board.count()
    }

    /// Bytes sent by this process to the others, without heartbeats; equal to the sum over its calls of
    /// [`ExecutionPlan::sent_by`](crate::ExecutionPlan::sent_by).
    pub fn sent(&self) -> u64 {
        self.0.board.sent()
    }

    pub(crate) fn board(&self) -> &Board {
        &self.0.board
    }

    pub(crate) fn call(&self) -> MutexGuard<'_, ()> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank(), self.count())
    }
}
