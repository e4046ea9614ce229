//! Background threads: heartbeats and reception of frames.

use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Arrived, Board, Come};
use crate::error::ShardError;
use crate::processes::frame::{self, DIGESTS, FrameKind, HEADER, Header, LONGEST};

/// Rounds without a frame after which a process is declared lost.
const SILENT: u32 = 5;

impl Board {
    /// Interval between heartbeats: patience / 20, between 20 ms and 2 s.
    pub(super) fn round(&self) -> Duration {
        (self.patience / 20).clamp(Duration::from_millis(20), Duration::from_secs(2))
    }

    /// Waits for the next round; returns false if the board was closed.
    fn next_round(&self) -> bool {
        let state = self.state();
        let wait = self.wake.wait_timeout_while(state, self.round(), |state| !state.closed);
        !wait.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// Counts rounds and, for each process, rounds of silence. This thread never writes to a connection, so it cannot
    /// block.
    pub(super) fn watch(&self) {
        while self.next_round() {
            let mut state = self.state();
            state.round += 1;
            state.silent.iter_mut().for_each(|rounds| *rounds += 1);
            let silent = self.others().filter(|x| state.silent[x.0] > SILENT);
            let silent: Vec<usize> = silent.map(|x| x.0).collect();
            drop(state);
            self.wake.notify_all();
            for process in silent {
                self.lose(process, &format!("has been silent for {:?}", self.round() * SILENT));
            }
        }
    }

    /// Sends heartbeats to the other processes.
    pub(super) fn live(&self) {
        while self.next_round() {
            for (process, peer) in self.others() {
                // A connection with a write in progress needs no heartbeat.
                let Ok(connection) = peer.write.try_lock() else { continue };
                let written = self.write(&connection, Header::new(FrameKind::Alive, 0, 0), &[]);
                drop(connection);
                if let Err(error) = written {
                    self.lose(process, &ended(&error));
                }
            }
        }
    }

    /// Reads a connection until it ends; returns the reason.
    pub(super) fn listen(&self, process: usize, mut connection: TcpStream) -> String {
        loop {
            let mut header = [0; HEADER];
            if let Err(error) = connection.read_exact(&mut header) {
                return ended(&error);
            }
            let wrong = |what: &str| format!("has sent {what}");
            let Some(header) = Header::decode(&header) else {
                return wrong("what is no frame");
            };
            self.state().silent[process] = 0;
            let alive = || {
                let mut state = self.state();
                state.silent[process] = 0;
                state.heard[process] = state.round;
            };
            let length = match self.accepts(process, &header) {
                Ok(Some(length)) => length,
                Ok(None) => match frame::skip(&mut connection, header.length, alive) {
                    Ok(()) => continue,
                    Err(error) => return ended(&error),
                },
                Err(what) => return wrong(&what),
            };
            match frame::read(&mut connection, length, alive) {
                Ok(bytes) => {
                    if let Err(what) = self.arrived(process, header, bytes) {
                        return wrong(&what);
                    }
                }
                Err(error) => return ended(&error),
            }
        }
    }

    /// Payload length of a frame to be read; `None` for a frame of a call that has ended in this process.
    fn accepts(&self, process: usize, header: &Header) -> Result<Option<usize>, String> {
        let state = self.state();
        let Header { kind, call, tag, length } = *header;
        let bounded = usize::try_from(length).ok().filter(|&length| match kind {
            FrameKind::Alive | FrameKind::Done => length == 0,
            FrameKind::Begin => length == DIGESTS,
            FrameKind::Refuse | FrameKind::Fail => length <= LONGEST,
            FrameKind::Data => true,
        });
        let Some(size) = bounded else {
            return Err(format!("{length} bytes as {kind:?}"));
        };
        match kind {
            FrameKind::Begin | FrameKind::Refuse if call < state.call => Ok(None),
            FrameKind::Begin | FrameKind::Refuse if call <= state.call + 1 => Ok(Some(size)),
            FrameKind::Alive => Ok(Some(0)),
            // Failure of a call that this process has not started yet.
            FrameKind::Fail if call == state.call + 1 => Ok(Some(size)),
            FrameKind::Data | FrameKind::Fail | FrameKind::Done if call <= state.call => {
                if call < state.call || !state.running {
                    return Ok(None);
                }
                if kind != FrameKind::Data {
                    return Ok(Some(size));
                }
                let awaited = state.traffic.as_ref().and_then(|x| x.awaited.get(&tag));
                let twice = state.arrived.contains_key(&tag);
                match awaited.filter(|x| x.process == process && !twice) {
                    Some(x) if x.bytes == size => Ok(Some(size)),
                    Some(x) => Err(format!("{size} bytes where {} are awaited", x.bytes)),
                    None => Err(format!("{tag:?}, which nobody awaits")),
                }
            }
            _ => Err(format!("{kind:?} of call {call} during call {}", state.call)),
        }
    }

    /// A process lost to one process is lost to all. It is recorded first, before processes that disconnect in
    /// response.
    fn lost_elsewhere(&self, failure: &ShardError) {
        if let ShardError::Lost { process, how } = failure
            && self.others().any(|(other, _)| other == *process)
        {
            self.lose(*process, how);
        }
    }

    fn arrived(&self, process: usize, header: Header, bytes: Vec<u8>) -> Result<(), String> {
        let Header { kind, call, tag, .. } = header;
        let mut state = self.state();
        let current = state.running && call == state.call;
        match kind {
            FrameKind::Alive => return Ok(()),
            FrameKind::Begin => {
                let words =
                    bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes));
                let digests: Vec<u64> = words.collect::<Result<_, _>>().unwrap_or_default();
                let digests = digests.try_into().map_err(|_| "no digests".to_owned())?;
                state.come.insert((process, call), Come::Begin(digests));
            }
            FrameKind::Refuse => {
                let why = Come::Refuse(frame::decode_text(&bytes));
                state.come.insert((process, call), why);
            }
            FrameKind::Data if current => {
                let takers = state.traffic.as_ref().and_then(|x| x.awaited.get(&tag));
                let left = takers.map_or(0, |x| x.takers);
                state.arrived.insert(tag, Arrived { bytes: Arc::new(bytes), left });
            }
            FrameKind::Done if current => state.done[process] = call,
            FrameKind::Fail if current || call > state.call => {
                let failure = frame::decode_failure(process, &bytes);
                if !current {
                    state.come.insert((process, call), Come::Fail(failure.clone()));
                }
                drop(state);
                self.lost_elsewhere(&failure);
                if current {
                    self.set(failure);
                }
                self.wake.notify_all();
                return Ok(());
            }
            FrameKind::Data | FrameKind::Done | FrameKind::Fail => return Ok(()),
        }
        drop(state);
        self.wake.notify_all();
        Ok(())
    }
}

pub(super) fn ended(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "has left".to_owned(),
        _ => format!("cannot be reached: {error}"),
    }
}
