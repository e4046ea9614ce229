//! Where devices of one process meet: each brings a value, and all get what is made of them, in the order of
//! the mesh, so that sums do not depend on who came last. A device that fails wakes all others.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Result, ShardError};

/// A meeting: what was brought, what was made of it, who has still to take it.
struct Meeting<T> {
    given: Vec<Option<T>>,
    made: Option<T>,
    left: usize,
}

struct State<T> {
    failure: Option<ShardError>,
    meetings: HashMap<(usize, usize), Meeting<T>>,
}

/// All meetings of a call.
pub(crate) struct Exchange<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
}

impl<T: Clone> Exchange<T> {
    pub(crate) fn new() -> Self {
        let state = State { failure: None, meetings: HashMap::new() };
        Self { state: Mutex::new(state), wake: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the call: whoever waits, or comes later, gets this. The first failure counts.
    pub(crate) fn fail(&self, failure: ShardError) {
        self.state().failure.get_or_insert(failure);
        self.wake.notify_all();
    }

    pub(crate) fn failure(&self) -> Option<ShardError> {
        self.state().failure.clone()
    }

    /// Brings the value of member `rank` of a group of so many to meeting `at`. The last one makes what all
    /// get.
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
        let meeting = state.meetings.entry(at).or_insert_with(|| Meeting {
            given: (0..members).map(|_| None).collect(),
            made: None,
            left: members,
        });
        meeting.given[rank] = Some(value);
        if meeting.given.iter().all(Option::is_some) {
            let all = std::mem::take(&mut meeting.given);
            // Others wait for it, but not for the lock.
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
        let exchange = Exchange::new();
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
        let exchange = Exchange::new();
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
        // Who comes later, too.
        assert_eq!(exchange.meet((1, 0), 2, 0, 1, |all| all[0]), Err(failure));
    }
}
