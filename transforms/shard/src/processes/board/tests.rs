//! Board tests in which the test acts as the second process.

use std::io::Write;
use std::net::TcpListener;

use super::*;
use crate::mesh::Mesh;
use crate::traffic::{CommunicationStep, DeviceAssignment, messages};

const DIGEST: Digests = [1, 2, 3, 4];

/// Board of the first of two processes, and the connection of the second one.
fn pair(patience: u64) -> (Arc<Board>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let own = listener.accept().unwrap().0;
    let board = Board::start(0, vec![None, Some(own)], Duration::from_millis(patience));
    (board.unwrap(), other)
}

/// Message schedule of one all-reduce of 3 numbers over two devices: the second process sends 8 bytes, then 16.
fn traffic() -> Arc<Traffic> {
    let (mesh, layout) =
        (Mesh::new([("a", 2)]).unwrap(), DeviceAssignment { processes: 2, each: 1 });
    let sum = CommunicationStep::Reduce { over: 0, elements: 3, size: 8 };
    let mut traffic = Traffic::new(layout, 0);
    traffic.add(&messages(0, &sum, &mesh, layout), layout);
    Arc::new(traffic)
}

fn send(
    mut to: &TcpStream,
    kind: FrameKind,
    call: u64,
    tag: MessageTag,
    bytes: &[u8],
    length: u64,
) {
    to.write_all(&Header { kind, call, tag, length }.encode()).unwrap();
    to.write_all(bytes).unwrap();
}

fn comes(to: &TcpStream, call: u64) {
    let bytes: Vec<u8> = DIGEST.iter().flat_map(|x| x.to_le_bytes()).collect();
    send(to, FrameKind::Begin, call, MessageTag::new(0, 0, 0), &bytes, 32);
}

fn begin(board: &Board) -> Result<()> {
    board.begin(Ok((DIGEST, traffic())), None).map_err(|differs| match differs {
        Differs::Error(error) => error,
        Differs::Digest { at, .. } => panic!("digest {at}"),
    })
}

#[track_caller]
fn lost<T: std::fmt::Debug>(outcome: Result<T>, text: &str) {
    let error = outcome.unwrap_err();
    let ShardError::Lost { process: 1, how } = &error else { panic!("{error}") };
    assert!(how.contains(text), "{how}");
}

#[test]
fn frames_that_nobody_awaits_end_the_connection() {
    let sum = MessageTag::new(0, 0, 1).to(0);
    let of = |meeting| MessageTag { meeting, ..sum };
    for (kind, call, tag, length, text) in [
        // The length is checked before memory is allocated.
        (FrameKind::Data, 1, sum, 1 << 40, "1099511627776 bytes where 8 are awaited"),
        (FrameKind::Data, 1, of(1), 8, "which nobody awaits"),
        (FrameKind::Data, 1, MessageTag::new(0, 1, 0), 8, "which nobody awaits"),
        (FrameKind::Data, 2, sum, 8, "Data of call 2 during call 1"),
        (FrameKind::Begin, 2, sum, 31, "31 bytes as Begin"),
        (FrameKind::Begin, 3, sum, 32, "Begin of call 3 during call 1"),
        (FrameKind::Fail, 1, sum, 1 << 20, "1048576 bytes as Fail"),
        (FrameKind::Done, 1, sum, 1, "1 bytes as Done"),
    ] {
        let (board, other) = pair(60_000);
        comes(&other, 1);
        begin(&board).unwrap();
        send(&other, kind, call, tag, &[], length);
        lost(board.take(sum), text);
        board.close();
    }
    let (board, other) = pair(60_000);
    comes(&other, 1);
    begin(&board).unwrap();
    for bytes in [[1; 8], [2; 8]] {
        send(&other, FrameKind::Data, 1, sum, &bytes, 8);
    }
    // Both orders are allowed: the message is taken before or after the duplicate is received.
    assert!(board.take(sum).is_ok_and(|bytes| bytes == [1; 8]) || board.failure().is_some());
    lost(board.take(MessageTag::new(0, 1, 1)), "which nobody awaits");
    board.close();
    let (board, mut other) = pair(60_000);
    other.write_all(&[255; HEADER]).unwrap();
    lost(begin(&board), "what is no frame");
    board.close();
}

#[test]
fn what_is_left_of_a_call_that_failed_is_read_over() {
    let (board, other) = pair(60_000);
    let sum = MessageTag::new(0, 0, 1).to(0);
    comes(&other, 1);
    begin(&board).unwrap();
    let failure = ShardError::Device { device: 0, operation: "exp".into(), message: "no".into() };
    board.fail(failure.clone());
    assert_eq!(board.take(sum), Err(failure));
    board.end();
    send(&other, FrameKind::Data, 1, sum, &[1; 8], 8);
    comes(&other, 2);
    begin(&board).unwrap();
    send(&other, FrameKind::Data, 2, sum, &[2; 8], 8);
    assert_eq!(board.take(sum), Ok(vec![2; 8]));
    board.close();
}

/// The case of a third process that is lost and whose loss the second process detects first.
#[test]
fn who_fails_before_the_others_come_tells_them() {
    let (board, other) = pair(60_000);
    let none = MessageTag::new(0, 0, 0);
    comes(&other, 1);
    begin(&board).unwrap();
    let failure = ShardError::Lost { process: 2, how: "has left".into() };
    let bytes = frame::encode_failure(1, &failure);
    comes(&other, 2);
    send(&other, FrameKind::Fail, 2, none, &bytes, bytes.len() as u64);
    // The failure concerns call 2, not the running call 1.
    send(&other, FrameKind::Done, 1, none, &[], 0);
    assert_eq!(board.finish(), Ok(()));
    board.end();
    assert_eq!(begin(&board), Err(failure));
    board.close();
}

#[test]
fn nobody_is_waited_for_for_ever() {
    let (board, other) = pair(400);
    lost(begin(&board), "has been silent");
    board.end();
    // The loss is permanent.
    lost(begin(&board), "has been silent");
    drop(other);
    // The process sends heartbeats but never starts the call.
    let (board, other) = pair(2000);
    let (sender, thread) = alive(other);
    lost(begin(&board), "is there, but has not come");
    drop(sender);
    thread.join().unwrap();
    // The process disconnects.
    lost(begin(&board), "");
}

/// A process that sends heartbeats until the returned sender is dropped.
fn alive(connection: TcpStream) -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let header = Header::new(FrameKind::Alive, 0, 0).encode();
    let pause = Duration::from_millis(20);
    let waits =
        move || receiver.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    let thread =
        std::thread::spawn(move || while waits() && (&connection).write_all(&header).is_ok() {});
    (sender, thread)
}

#[test]
fn who_sends_slowly_is_there() {
    // The limit of silence is a quarter of the patience, 0.5 s.
    let (board, other) = pair(2000);
    let sum = MessageTag::new(0, 0, 1).to(0);
    comes(&other, 1);
    begin(&board).unwrap();
    board.fail(ShardError::Lost { process: 0, how: "a test".into() });
    board.end();
    // The remaining payload of that call, sent over a longer time than the patience.
    send(&other, FrameKind::Data, 1, sum, &[], 60);
    for _ in 0..60 {
        std::thread::sleep(Duration::from_millis(45));
        (&other).write_all(&[0]).unwrap();
    }
    comes(&other, 2);
    begin(&board).unwrap();
    // The same for a message that is expected.
    let slow = std::thread::spawn(move || {
        send(&other, FrameKind::Data, 2, sum, &[], 8);
        for byte in 0..8 {
            std::thread::sleep(Duration::from_millis(350));
            (&other).write_all(&[byte]).unwrap();
        }
        other
    });
    assert_eq!(board.take(sum), Ok((0..8).collect()));
    board.close();
    slow.join().unwrap();
}

#[test]
fn who_does_not_read_is_lost() {
    let (board, other) = pair(600);
    comes(&other, 1);
    begin(&board).unwrap();
    let (sender, thread) = alive(other);
    let bytes = vec![0; 64 << 20];
    let header = Header::new(FrameKind::Data, 1, bytes.len());
    lost(board.send(1, header, &bytes), "does not read");
    drop(sender);
    thread.join().unwrap();
    board.close();
}
