//! Shared state of a process group in one process: received messages and liveness of the other processes.
//!
//! One thread per connection reads frames, so that no sender blocks forever; received messages are kept here until
//! devices take them. A call starts when all processes have sent its hashes, and ends when all have received all
//! messages; no process sends messages of the next call before that. Every message is therefore expected by the plan of
//! the current call, with a known tag and length, and memory is bounded by that plan.
//!
//! Every process sends heartbeats and counts the rounds in which it has received nothing from a peer. Rounds are
//! counted instead of time, so that a suspended machine does not declare its peers lost when it resumes.

#[cfg(test)]
mod tests;
mod threads;

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::frame::{self, DIGESTS, FrameKind, HEADER, Header};
use crate::error::{Result, ShardError};
use crate::traffic::{MessageTag, Traffic};

/// Fingerprint of a call: four hashes.
pub(crate) type Digests = [u64; DIGESTS / 8];

/// Callback invoked at once when a call fails.
pub(crate) type Alarm = Arc<dyn Fn(ShardError) + Send + Sync>;

#[derive(Clone)]
enum Come {
    Begin(Digests),
    Refuse(String),
    /// The process failed in this call before this process started it.
    Fail(ShardError),
}

/// A received message and the number of devices that have not taken it yet.
struct Arrived {
    bytes: Arc<Vec<u8>>,
    left: usize,
}

#[derive(Default)]
struct BoardState {
    /// Index of the last call that started in this process.
    call: u64,
    /// True until that call ends.
    running: bool,
    traffic: Option<Arc<Traffic>>,
    arrived: HashMap<MessageTag, Arrived>,
    alarm: Option<Alarm>,
    failure: Option<ShardError>,
    /// True if the failure was sent to the other processes.
    told: bool,
    /// Start messages received, by process and call.
    come: HashMap<(usize, u64), Come>,
    /// For each process, the last call of which it has received all messages.
    done: Vec<u64>,
    /// For each process, the error by which it was lost, if any.
    lost: Vec<Option<ShardError>>,
    /// The first loss; later ones may be its consequences.
    first: Option<ShardError>,
    /// For each process, the number of rounds since the last frame.
    silent: Vec<u32>,
    /// Number of rounds since the start.
    round: u64,
    /// For each process, the round in which the last part of a message was received.
    heard: Vec<u64>,
    closed: bool,
    readers: usize,
}

/// A connection; the mutex serialises frames.
pub(crate) struct Peer {
    pub(crate) write: Mutex<TcpStream>,
    /// The same connection without the lock: it can be shut down during a write.
    pub(crate) end: TcpStream,
}

pub(crate) struct Board {
    pub(crate) rank: usize,
    /// One entry per rank; `None` for this process.
    peers: Vec<Option<Peer>>,
    patience: Duration,
    state: Mutex<BoardState>,
    wake: Condvar,
    sent: AtomicU64,
}

impl Board {
    /// Takes the connections to all other processes and starts the threads.
    ///
    /// # Errors
    /// I/O errors of a connection or of the creation of a thread.
    pub(crate) fn start(
        rank: usize,
        connections: Vec<Option<TcpStream>>,
        patience: Duration,
    ) -> std::io::Result<Arc<Self>> {
        let count = connections.len();
        let mut readers = Vec::new();
        let mut peers = Vec::new();
        for (process, connection) in connections.into_iter().enumerate() {
            peers.push(match connection {
                None => None,
                Some(write) => {
                    readers.push((process, write.try_clone()?));
                    Some(Peer { end: write.try_clone()?, write: Mutex::new(write) })
                }
            });
        }
        let state = BoardState {
            done: vec![0; count],
            lost: vec![None; count],
            silent: vec![0; count],
            heard: vec![0; count],
            readers: readers.len(),
            ..BoardState::default()
        };
        let (wake, sent) = (Condvar::new(), AtomicU64::new(0));
        let board = Self { rank, peers, patience, state: Mutex::new(state), wake, sent };
        let board = Arc::new(board);
        for (_, peer) in board.others() {
            peer.end.set_write_timeout(Some(board.round()))?;
        }
        for (process, connection) in readers {
            let own = board.clone();
            std::thread::Builder::new().name(format!("t4a shard {process}")).spawn(move || {
                let how = own.listen(process, connection);
                own.lose(process, &how);
                let mut state = own.state();
                state.readers -= 1;
                own.wake.notify_all();
            })?;
        }
        for thread in [Self::watch, Self::live] {
            let own = board.clone();
            std::thread::Builder::new().name("t4a shard".into()).spawn(move || thread(&own))?;
        }
        Ok(board)
    }

    pub(crate) fn count(&self) -> usize {
        self.peers.len()
    }

    /// Bytes sent so far, without heartbeats.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn others(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.peers.iter().enumerate().filter_map(|(process, peer)| Some((process, peer.as_ref()?)))
    }

    // Loss of processes and failure of calls

    /// Marks a process as lost. The current call fails if that process has not completed it.
    fn lose(&self, process: usize, how: &str) {
        let mut state = self.state();
        if state.closed || state.lost[process].is_some() {
            return;
        }
        let lost = ShardError::Lost { process, how: how.to_owned() };
        state.lost[process] = Some(lost.clone());
        state.first.get_or_insert_with(|| lost.clone());
        let needed = state.running && state.done[process] < state.call;
        drop(state);
        if let Some(peer) = &self.peers[process] {
            // The shutdown ends pending reads and writes on both sides.
            let _ = peer.end.shutdown(Shutdown::Both);
        }
        if needed {
            self.set(lost);
        }
        self.wake.notify_all();
    }

    /// Records the failure of the running call; only the first one is kept.
    fn set(&self, failure: ShardError) {
        let mut state = self.state();
        if !state.running || state.failure.is_some() {
            return;
        }
        state.failure = Some(failure.clone());
        let alarm = state.alarm.clone();
        drop(state);
        self.wake.notify_all();
        if let Some(alarm) = alarm {
            alarm(failure);
        }
    }

    fn send(&self, process: usize, header: Header, bytes: &[u8]) -> Result<()> {
        let Some(peer) = &self.peers[process] else { return Ok(()) };
        let connection = peer.write.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.write(&connection, header, bytes);
        drop(connection);
        match written {
            Ok(()) => {
                self.sent.fetch_add((HEADER + bytes.len()) as u64, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                let how = threads::ended(&error);
                self.lose(process, &how);
                let lost = self.state().lost[process].clone();
                Err(lost.unwrap_or(ShardError::Lost { process, how }))
            }
        }
    }

    /// Writes a frame; retries timeouts as long as the receiver makes progress.
    fn write(&self, to: &TcpStream, header: Header, bytes: &[u8]) -> std::io::Result<()> {
        frame::write(frame::Patient { to, timeouts: self.rounds() }, header, bytes)
    }

    /// The patience in rounds.
    fn rounds(&self) -> u64 {
        (self.patience.as_nanos() / self.round().as_nanos()).clamp(1, u64::MAX.into()) as u64
    }

    /// Blocks until `ready` returns a value; `process` is the peer that has to act, `None` for this process.
    fn wait<T>(
        &self,
        process: Option<usize>,
        mut ready: impl FnMut(&mut BoardState) -> Option<T>,
    ) -> Result<T> {
        let rounds = self.rounds();
        let mut state = self.state();
        let start = state.round;
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if let Some(x) = ready(&mut state) {
                return Ok(x);
            }
            if let Some(process) = process {
                if let Some(lost) = &state.lost[process] {
                    return Err(lost.clone());
                }
                // The wait restarts with every received part of a message.
                if state.round - start.max(state.heard[process]) > rounds {
                    let how = format!("is there, but has not come for {:?}", self.patience);
                    return Err(ShardError::Lost { process, how });
                }
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    // Calls

    /// Starts a call, or rejects it with an error; blocks until all processes have done so.
    ///
    /// # Errors
    /// A process that is lost, rejects the call or makes a different one; all before any computation.
    pub(crate) fn begin(
        &self,
        mine: Result<(Digests, Arc<Traffic>), &ShardError>,
        alarm: Option<Alarm>,
    ) -> Result<(), Differs> {
        let mut state = self.state();
        state.call += 1;
        let call = state.call;
        (state.running, state.told, state.failure) = (true, false, None);
        state.arrived.clear();
        state.come.retain(|&(_, of), _| of >= call);
        state.traffic = mine.as_ref().ok().map(|mine| mine.1.clone());
        state.alarm = alarm;
        let first = state.first.clone();
        drop(state);
        if let Some(lost) = first {
            return Err(lost.into());
        }
        let (kind, bytes) = match &mine {
            Ok((digests, _)) => {
                (FrameKind::Begin, digests.iter().flat_map(|x| x.to_le_bytes()).collect())
            }
            Err(error) => (FrameKind::Refuse, frame::encode_text(&error.to_string())),
        };
        for (process, _) in self.others() {
            self.send(process, Header::new(kind, call, bytes.len()), &bytes)?;
        }
        let mut outcome = Ok(());
        for (process, _) in self.others() {
            let come = self.wait(Some(process), |state| state.come.remove(&(process, call)))?;
            let differs = match (come, &mine) {
                (Come::Fail(failure), _) => Some(Differs::Error(failure)),
                (Come::Refuse(message), _) => {
                    Some(Differs::Error(ShardError::Refused { process, message }))
                }
                (Come::Begin(theirs), Ok((own, _))) => {
                    let at = theirs.iter().zip(own).position(|(a, b)| a != b);
                    at.map(|at| Differs::Digest { process, at })
                }
                _ => None,
            };
            if let (Some(differs), Ok(())) = (differs, &outcome) {
                outcome = Err(differs);
            }
        }
        outcome
    }

    /// Makes a message available to devices of this process and sends it to the other processes that expect it.
    pub(crate) fn post(&self, tag: MessageTag, bytes: Vec<u8>) -> Result<()> {
        let mut state = self.state();
        let call = state.call;
        let Some(traffic) = state.traffic.clone() else { return Ok(()) };
        let bytes = Arc::new(bytes);
        if let Some(awaited) = traffic.awaited.get(&tag) {
            let arrived = Arrived { bytes: bytes.clone(), left: awaited.takers };
            state.arrived.insert(tag, arrived);
        }
        drop(state);
        self.wake.notify_all();
        for &process in traffic.sends.get(&tag).into_iter().flatten() {
            self.send(
                process,
                Header { tag, ..Header::new(FrameKind::Data, call, bytes.len()) },
                &bytes,
            )?;
        }
        Ok(())
    }

    /// Blocks until a message is received and takes it.
    pub(crate) fn take(&self, tag: MessageTag) -> Result<Vec<u8>> {
        let awaited = self.state().traffic.as_ref().and_then(|x| x.awaited.get(&tag).copied());
        let awaited = awaited.unwrap_or_else(|| unreachable!("the plan knows all messages"));
        let from = Some(awaited.process).filter(|&process| process != self.rank);
        let bytes = self.wait(from, |state| {
            let arrived = state.arrived.get_mut(&tag)?;
            arrived.left = arrived.left.checked_sub(1)?;
            // The entry stays, with an empty payload, so that a duplicate message is detected.
            let last = arrived.left == 0;
            Some(if last { std::mem::take(&mut arrived.bytes) } else { arrived.bytes.clone() })
        })?;
        Ok(Arc::try_unwrap(bytes).unwrap_or_else(|bytes| bytes.to_vec()))
    }

    /// Fails the call in this process and sends the failure, once, to the others.
    pub(crate) fn fail(&self, failure: ShardError) {
        self.set(failure);
        let mut state = self.state();
        let (call, failure) = (state.call, state.failure.clone());
        let told = std::mem::replace(&mut state.told, true);
        let there: Vec<bool> = state.lost.iter().map(Option::is_none).collect();
        drop(state);
        if let (false, Some(failure)) = (told, failure) {
            let bytes = frame::encode_failure(self.rank, &failure);
            for (process, _) in self.others().filter(|x| there[x.0]) {
                // A failed send marks that process as lost; the error of the call does not change.
                let _ = self.send(process, Header::new(FrameKind::Fail, call, bytes.len()), &bytes);
            }
        }
    }

    /// Failure of the current call.
    pub(crate) fn failure(&self) -> Option<ShardError> {
        self.state().failure.clone()
    }

    /// Blocks until all processes have received all messages of the call.
    pub(crate) fn finish(&self) -> Result<()> {
        let call = self.state().call;
        for (process, _) in self.others() {
            self.send(process, Header::new(FrameKind::Done, call, 0), &[])?;
        }
        for (process, _) in self.others() {
            self.wait(Some(process), |state| (state.done[process] >= call).then_some(()))?;
        }
        Ok(())
    }

    /// Resets the state after a call, successful or not.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.running = false;
        state.failure = None;
        state.alarm = None;
        state.traffic = None;
        state.arrived.clear();
    }

    /// Disconnects: the peers receive all data that was sent, then the end of the stream.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        self.wake.notify_all();
        for (_, peer) in self.others() {
            let _ = peer.end.shutdown(Shutdown::Write);
        }
        // Wait until the peers close their side: closing a socket with unread data would reset the connection and
        // discard data that was sent.
        let wait = Duration::from_millis(500);
        let waited = self.wake.wait_timeout_while(state, wait, |state| state.readers > 0);
        drop(waited);
        for (_, peer) in self.others() {
            let _ = peer.end.shutdown(Shutdown::Both);
        }
    }
}

/// Reason why a call does not start.
pub(crate) enum Differs {
    /// Another process makes a different call: hash `at` differs.
    Digest {
        process: usize,
        at: usize,
    },
    Error(ShardError),
}

impl From<ShardError> for Differs {
    fn from(error: ShardError) -> Self {
        Self::Error(error)
    }
}
