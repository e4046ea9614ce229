//! Rendezvous of the devices (threads) of one process: each contributes a value, and all receive the combination of the
//! values in mesh order, so that sums do not depend on the order of arrival. A failed device wakes all waiting devices.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Result, ShardError};

/// State of one collective: contributed values, their combination, and the number of members that have not received it
/// yet.
struct PendingCollective<T> {
    given: Vec<Option<T>>,
    made: Option<T>,
    left: usize,
}

struct TableState<T> {
    failure: Option<ShardError>,
    meetings: HashMap<(usize, usize), PendingCollective<T>>,
}

/// State of all pending collectives of a call.
pub(crate) struct CollectiveTable<T> {
    state: Mutex<TableState<T>>,
    wake: Condvar,
}

impl<T: Clone> CollectiveTable<T> {
    pub(crate) fn new() -> Self {
        let state = TableState { failure: None, meetings: HashMap::new() };
        Self { state: Mutex::new(state), wake: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, TableState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts the call: pending and later collectives return this error. Only the first failure is kept.
    pub(crate) fn fail(&self, failure: ShardError) {
        self.state().failure.get_or_insert(failure);
        self.wake.notify_all();
    }

    pub(crate) fn failure(&self) -> Option<ShardError> {
        self.state().failure.clone()
    }

    /// Contributes `value` as member `rank` of a group of `members` to collective `at`, and blocks until the result
    /// exists. The last member to arrive evaluates `make`; all members receive a clone of its result.
    ///
    /// # Errors
    /// The failure of another device.
    pub(crate) fn meet(
        &self,
        at: (usize, usize),
        members: usize,
        rank: usize,
        value: T,
        make: impl FnOnce(Vec<T>) -> T,
    ) -> Result<T> {
        let mut state = self.state();
        let meeting = state.meetings.entry(at).or_insert_with(|| PendingCollective {
            given: (0..members).map(|_| None).collect(),
            made: None,
            left: members,
        });
        meeting.given[rank] = Some(value);
        if meeting.given.iter().all(Option::is_some) {
            let all = std::mem::take(&mut meeting.given);
            // `make` runs without the lock, so that other collectives can proceed.
            drop(state);
            let made = make(all.into_iter().flatten().collect());
            state = self.state();
            if let Some(meeting) = state.meetings.get_mut(&at) {
                meeting.made = Some(made);
            }
            self.wake.notify_all();
        }
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if let Some(meeting) = state.meetings.get_mut(&at)
                && let Some(made) = &meeting.made
            {
                let made = made.clone();
                meeting.left -= 1;
                if meeting.left == 0 {
                    state.meetings.remove(&at);
                }
                return Ok(made);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_get_what_is_made_in_order() {
        let exchange = CollectiveTable::new();
        let all: Vec<String> = std::thread::scope(|scope| {
            let one = |rank: usize| {
                let exchange = &exchange;
                scope.spawn(move || {
                    let mut text = rank.to_string();
                    for round in 0..50 {
                        let made = exchange.meet((round, 0), 4, rank, text, |all| all.concat());
                        text = made.unwrap()[..4].to_owned();
                    }
                    text
                })
            };
            let threads: Vec<_> = (0..4).map(one).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all, ["0123"; 4]);
        assert!(exchange.state().meetings.is_empty());
    }

    #[test]
    fn who_waits_for_a_device_that_fails_is_told() {
        let exchange = CollectiveTable::new();
        let failure = ShardError::Device {
            device: 1,
            operation: "exp".into(),
            message: "out of memory".into(),
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| exchange.meet((0, 0), 2, 0, 1, |all| all[0]));
            exchange.fail(failure.clone());
            assert_eq!(waiting.join().unwrap(), Err(failure.clone()));
        });
        // Collectives that start after the failure return it, too.
        assert_eq!(exchange.meet((1, 0), 2, 0, 1, |all| all[0]), Err(failure));
    }
}
