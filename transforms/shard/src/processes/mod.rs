//! Meshes whose devices are in several processes.

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

/// The processes of a program that work on meshes together; [`Rendezvous`] makes them meet.
///
/// Every process runs the same program and calls the same functions in the same order, each of them
/// [`across`](crate::Sharded::across) these processes. A clone is the same group; with the last one this
/// process leaves it.
#[derive(Clone)]
pub struct Processes(Arc<Inner>);

struct Inner {
    board: Arc<Board>,
    /// One call at a time.
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

    /// Which one this is: the first has 0.
    pub fn rank(&self) -> usize {
        self.0.board.rank
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.board.count()
    }

    /// Bytes that this process has sent to the others, but for signs of life: as many as the
    /// [plans](crate::Plan::sent_by) of its calls say.
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
