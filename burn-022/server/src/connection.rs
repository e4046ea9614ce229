//! A client connection: token, message limits, session.
//!
//! ```text
//! before the token   64 KiB and 10 s
//! afterwards         frames of at most `Limits::frame` bytes
//! ```
//!
//! Each connection has a thread that reads messages and runs their tasks in order.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burn_backend::DeviceOps;
use burn_t4a_022::T4aDevice;
use tungstenite::handshake::server::{ErrorResponse, Request, Response as HttpResponse};
use tungstenite::http::StatusCode;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{HandshakeError, Message, WebSocket};

use crate::Server;
use crate::protocol::{
    Content, RemoteMessage, Response, SessionId, SessionInfo, SessionInit, SessionRefusal, VERSION,
};
use crate::session::Session;

/// Maximum number of bytes of a message before the token is checked.
const GREETING: usize = 64 << 10;
/// Maximum time until the token is checked.
const HURRY: Duration = Duration::from_secs(10);
/// Maximum time to wait for a client that does not read a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream with a deadline.
struct Timed {
    stream: TcpStream,
    end: Option<Instant>,
}

impl Read for Timed {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Some(end) = self.end {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no token in time"));
            }
            self.stream.set_read_timeout(Some(left))?;
        }
        self.stream.read(to).map_err(|error| match error.kind() {
            // `WouldBlock` would be taken as a request to retry.
            io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::TimedOut, "no token in time")
            }
            _ => error,
        })
    }
}

impl Write for Timed {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

type Socket = WebSocket<Timed>;

/// Serves a connection until it ends; an error is the reason if the client is at fault.
pub(crate) fn serve(server: &Arc<Server>, stream: TcpStream) -> Result<(), String> {
    let text = |error: tungstenite::Error| error.to_string();
    let set = |stream: &TcpStream| {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // A client that has disappeared is detected after half a minute.
        let alive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(30));
        socket2::SockRef::from(stream).set_tcp_keepalive(&alive)
    };
    set(&stream).map_err(|error| error.to_string())?;
    let config = WebSocketConfig::default()
        .read_buffer_size(GREETING)
        .max_message_size(Some(GREETING))
        .max_frame_size(Some(GREETING));
    let stream = Timed { stream, end: Some(Instant::now() + HURRY) };
    let mut path = String::new();
    // The error type is defined by the library.
    #[allow(clippy::result_large_err)]
    let route = |request: &Request, response: HttpResponse| {
        path = request.uri().path().to_owned();
        if matches!(&*path, "/session" | "/data") {
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = StatusCode::NOT_FOUND;
        Err(refusal)
    };
    let socket = tungstenite::accept_hdr_with_config(stream, route, Some(config));
    let mut socket = socket.map_err(|error| match error {
        HandshakeError::Failure(error) => error.to_string(),
        HandshakeError::Interrupted(_) => "no token in time".into(),
    })?;
    if path == "/data" {
        return offers(server, &mut socket);
    }
    let Some(hello) = receive(&mut socket)? else { return Ok(()) };
    let session = match admit(server, &hello) {
        Ok(session) => session,
        Err((refusal, reason)) => {
            let response = Response { content: Content::InitRefused(refusal), id: 0 };
            send(&mut socket, &response)?;
            socket.close(None).and_then(|()| socket.flush()).map_err(text)?;
            return Err(reason.into());
        }
    };
    let info = SessionInfo {
        version: VERSION,
        settings: T4aDevice.defaults(),
        device_count: 1,
        peer_id: None,
    };
    forever(&mut socket)?;
    socket.set_config(|config| {
        config.max_message_size = Some(server.limits.frame);
        config.max_frame_size = Some(server.limits.frame);
    });
    send(&mut socket, &Response { content: Content::Init(info), id: 0 })?;
    work(&mut socket, session, Session::new(server.clone()))
}

/// Answers another server, whose connection stays open after a valid request for an offered tensor.
fn offers(server: &Server, socket: &mut Socket) -> Result<(), String> {
    while let Some(request) = receive(socket)? {
        let answer = server.offers.answer(&request)?;
        socket.send(Message::Binary(answer)).map_err(|error| error.to_string())?;
        forever(socket)?;
    }
    Ok(())
}

/// Removes the time limit.
fn forever(socket: &mut Socket) -> Result<(), String> {
    socket.get_mut().end = None;
    socket.get_ref().stream.set_read_timeout(None).map_err(|error| error.to_string())
}

/// Checks the first message: its format, then the token, then the device.
fn admit(server: &Server, frame: &[u8]) -> Result<SessionId, (SessionRefusal, &'static str)> {
    let foreign = || {
        let refusal = SessionRefusal::IncompatibleProtocol { server_version: VERSION };
        (refusal, "the first message is not that of Burn 0.22.1")
    };
    let messages = rmp_serde::from_slice::<Vec<RemoteMessage>>(frame).map_err(|_| foreign())?;
    let [RemoteMessage::Init(init)] = &messages[..] else { return Err(foreign()) };
    let SessionInit { version, session_id, device_index, authorization } = init;
    if *version != VERSION {
        return Err(foreign());
    }
    if !server.admits(authorization) {
        return Err((SessionRefusal::Unauthorized, "the token is another one"));
    }
    if *device_index != 0 {
        return Err((SessionRefusal::NoSuchDevice { device_count: 1 }, "there is one device"));
    }
    Ok(*session_id)
}

fn work(socket: &mut Socket, id: SessionId, mut session: Session) -> Result<(), String> {
    while let Some(frame) = receive(socket)? {
        let messages: Vec<RemoteMessage> =
            rmp_serde::from_slice(&frame).map_err(|error| format!("a damaged message: {error}"))?;
        drop(frame);
        for message in messages {
            match message {
                RemoteMessage::Task(task) => {
                    if let Some(response) = session.run(task) {
                        send(socket, &response)?;
                    }
                }
                RemoteMessage::Close(closed) if closed == id => {
                    return match socket.close(None).and_then(|()| socket.flush()) {
                        Ok(()) | Err(tungstenite::Error::ConnectionClosed) => Ok(()),
                        Err(error) => Err(error.to_string()),
                    };
                }
                RemoteMessage::Close(_) | RemoteMessage::Init(_) => {
                    return Err("a message of another session".into());
                }
            }
        }
    }
    Ok(())
}

/// Reads the next frame; `None` at the end of the connection.
fn receive(socket: &mut Socket) -> Result<Option<bytes::Bytes>, String> {
    use tungstenite::Error;
    loop {
        match socket.read() {
            Ok(Message::Binary(frame)) => return Ok(Some(frame)),
            Ok(Message::Close(_)) => return Ok(None),
            Ok(_) => {}
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(None),
            Err(Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn send(socket: &mut Socket, response: &Response) -> Result<(), String> {
    let bytes = rmp_serde::to_vec(response).map_err(|error| error.to_string())?;
    socket.send(Message::binary(bytes)).map_err(|error| error.to_string())
}
