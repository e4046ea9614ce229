//! Frames: a header of fixed size, followed by a payload of the length given in the header.
//!
//! ```text
//! kind u32 | call u64 | meeting u32, phase u32, from u32, to u32 | length u64      little-endian
//! ```

use std::io::{self, Read, Write};

use crate::error::ShardError;
use crate::traffic::MessageTag;

/// Size of a header in bytes.
pub(crate) const HEADER: usize = 36;
/// Size in bytes of the hashes compared at the start of a call.
pub(crate) const DIGESTS: usize = 32;
/// Maximum length in bytes of an error text.
const TEXT: usize = 1024;
/// Maximum payload in bytes of a frame other than [`FrameKind::Data`].
pub(crate) const LONGEST: usize = 3 * (TEXT + 8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Heartbeat.
    Alive,
    /// Start of a call, with its hashes.
    Begin,
    /// Rejection of a call, with the error message.
    Refuse,
    /// Message of a communication step.
    Data,
    /// Failure of a call, with the error.
    Fail,
    /// The sender has received all messages of the call.
    Done,
}

const KINDS: [FrameKind; 6] = [
    FrameKind::Alive,
    FrameKind::Begin,
    FrameKind::Refuse,
    FrameKind::Data,
    FrameKind::Fail,
    FrameKind::Done,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: FrameKind,
    /// Index of the call, from 1.
    pub(crate) call: u64,
    pub(crate) tag: MessageTag,
    pub(crate) length: u64,
}

impl Header {
    pub(crate) fn new(kind: FrameKind, call: u64, length: usize) -> Self {
        Self { kind, call, tag: MessageTag::new(0, 0, 0), length: length as u64 }
    }

    pub(crate) fn encode(self) -> [u8; HEADER] {
        let Self { kind, call, tag, length } = self;
        let mut all = [0; HEADER];
        let mut rest = &mut all[..];
        let mut put = |bytes: &[u8]| {
            let (first, after) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            first.copy_from_slice(bytes);
            rest = after;
        };
        let kind = KINDS.iter().position(|&x| x == kind).unwrap_or_default() as u32;
        put(&kind.to_le_bytes());
        put(&call.to_le_bytes());
        [tag.meeting, tag.phase, tag.from, tag.to].iter().for_each(|x| put(&x.to_le_bytes()));
        put(&length.to_le_bytes());
        all
    }

    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let mut rest = &bytes[..];
        let kind = u32::from_le_bytes(take(&mut rest)?) as usize;
        let call = u64::from_le_bytes(take(&mut rest)?);
        let mut word = || Some(u32::from_le_bytes(take(&mut rest)?));
        let tag = MessageTag { meeting: word()?, phase: word()?, from: word()?, to: word()? };
        let length = u64::from_le_bytes(take(&mut rest)?);
        Some(Self { kind: *KINDS.get(kind)?, call, tag, length })
    }
}

/// Splits off the next `N` bytes.
pub(super) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*first)
}

/// Writes a frame; payloads up to 16 KiB in one write together with the header, so that they leave as one packet.
pub(crate) fn write(mut to: impl Write, header: Header, bytes: &[u8]) -> io::Result<()> {
    let header = header.encode();
    if bytes.len() <= 1 << 14 {
        return to.write_all(&[&header, bytes].concat());
    }
    to.write_all(&header)?;
    to.write_all(bytes)
}

/// Reads `length` bytes, a length that the caller has validated; `alive` is called after each successful read.
pub(crate) fn read(mut from: impl Read, length: usize, alive: impl Fn()) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut filled = 0;
    while filled < length {
        if filled == all.len() {
            // The buffer grows with the received data, by 1 MiB at a time.
            all.resize(length.min(filled + (1 << 20)), 0);
        }
        filled += some(&mut from, &mut all[filled..])?;
        alive();
    }
    Ok(all)
}

/// Discards `length` bytes; `alive` is called after each successful read.
pub(crate) fn skip(mut from: impl Read, mut length: u64, alive: impl Fn()) -> io::Result<()> {
    let mut piece = [0; 1 << 14];
    while length > 0 {
        let most = usize::try_from(length).map_or(piece.len(), |length| length.min(piece.len()));
        length -= some(&mut from, &mut piece[..most])? as u64;
        alive();
    }
    Ok(())
}

/// Reads at least one byte.
fn some(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(to) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A writer with write timeouts that retries while the receiver accepts data; more than `timeouts` consecutive timeouts
/// are an error.
pub(crate) struct Patient<W> {
    pub(crate) to: W,
    pub(crate) timeouts: u64,
}

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut timeouts = 0;
        loop {
            match self.to.write(bytes) {
                Err(error) if timed_out(&error) && timeouts < self.timeouts => timeouts += 1,
                Err(error) if timed_out(&error) => {
                    return Err(io::Error::other("it does not read"));
                }
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn timed_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn text(x: &str, all: &mut Vec<u8>) {
    let end = (0..=x.len().min(TEXT)).rev().find(|&end| x.is_char_boundary(end)).unwrap_or(0);
    all.extend((end as u64).to_le_bytes());
    all.extend(&x.as_bytes()[..end]);
}

fn read_text(from: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(u64::from_le_bytes(take(from)?)).ok()?;
    let (first, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(String::from_utf8_lossy(first).into_owned())
}

/// Serialises the failure of a call in process `rank` for the other processes.
pub(crate) fn encode_failure(rank: usize, failure: &ShardError) -> Vec<u8> {
    let mut all = Vec::new();
    let mut put = |whose: usize, message: &str| {
        all.extend((whose as u64).to_le_bytes());
        text(message, &mut all);
    };
    match failure {
        ShardError::Lost { process, how } => put(*process, how),
        ShardError::Device { device, operation, message } => {
            put(*device, message);
            text(operation, &mut all);
        }
        other => put(rank, &format!("has failed: {other}")),
    }
    all
}

/// Inverse of [`encode_failure`]; `process` is the sender.
pub(crate) fn decode_failure(process: usize, mut bytes: &[u8]) -> ShardError {
    let from = &mut bytes;
    let mut decoded = || {
        let whose = usize::try_from(u64::from_le_bytes(take(from)?)).ok()?;
        let message = read_text(from)?;
        Some(match read_text(from) {
            Some(operation) => ShardError::Device { device: whose, operation, message },
            None => ShardError::Lost { process: whose, how: message },
        })
    };
    let how = || "has failed, and did not say why".to_owned();
    decoded().unwrap_or_else(|| ShardError::Lost { process, how: how() })
}

/// Serialises the message of a rejection.
pub(crate) fn encode_text(x: &str) -> Vec<u8> {
    let mut all = Vec::new();
    text(x, &mut all);
    all
}

/// Inverse of [`encode_text`].
pub(crate) fn decode_text(mut bytes: &[u8]) -> String {
    read_text(&mut bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_failures_come_back() {
        let tag = MessageTag { meeting: 7, phase: 1, from: 3, to: u32::MAX };
        let header = Header { kind: FrameKind::Done, call: 1 << 40, tag, length: 1 << 33 };
        assert_eq!(Header::decode(&header.encode()), Some(header));
        let mut wrong = header.encode();
        wrong[0] = 6;
        assert_eq!(Header::decode(&wrong), None);
        let long = "é".repeat(1000);
        for failure in [
            ShardError::Lost { process: 2, how: "closed the connection".into() },
            ShardError::Device { device: 5, operation: "exp".into(), message: "no".into() },
        ] {
            assert_eq!(decode_failure(1, &encode_failure(1, &failure)), failure);
        }
        let long = ShardError::Device { device: 5, operation: long.clone(), message: long };
        let bytes = encode_failure(1, &long);
        assert!(bytes.len() <= LONGEST);
        assert!(matches!(decode_failure(1, &bytes), ShardError::Device { device: 5, .. }));
        for end in 0..bytes.len() {
            decode_failure(1, &bytes[..end]);
        }
        assert_eq!(decode_text(&encode_text("as it is")), "as it is");
    }

    #[test]
    fn frames_are_read_as_long_as_they_are() {
        let bytes: Vec<u8> = (0..(1 << 20) + 5).map(|i| i as u8).collect();
        let mut sent = Vec::new();
        write(&mut sent, Header::new(FrameKind::Data, 1, bytes.len()), &bytes).unwrap();
        assert_eq!(sent.len(), HEADER + bytes.len());
        assert_eq!(read(&sent[HEADER..], bytes.len(), || ()).unwrap(), bytes);
        assert!(read(&sent[HEADER + 1..], bytes.len(), || ()).is_err());
        let alive = std::cell::Cell::new(0);
        let told = || alive.set(alive.get() + 1);
        assert!(skip(&sent[HEADER..], bytes.len() as u64, told).is_ok());
        assert!(alive.get() > 60);
        assert!(skip(&sent[HEADER..], bytes.len() as u64 + 1, || ()).is_err());
    }
}
