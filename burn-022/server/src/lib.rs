//! A server for programs of Burn 0.22 in other processes: their tensors are in its memory, computed by the engine.
//!
//! ```no_run
//! use std::net::TcpListener;
//! let server = burn_t4a_022_server::Server::new("secret")?;
//! server.serve(&TcpListener::bind("127.0.0.1:3000")?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client is any program of Burn 0.22.1 with the feature `remote-websocket`:
//! `Device::remote_options(&RemoteHost::websocket("ws://machine:3000").with_credential("secret")).init()`. With the
//! feature `remote` of `burn-t4a-022-ext`, contractions over semirings and factorisations with their gradients are
//! sent as one message per operation ([`t4a_operations::wire`]) and run by the engine's kernels.
//!
//! # Failures
//! If an operation fails (an SVD of a matrix with NaN, a result beyond the memory limit), its results have no
//! elements. Reading one of them, or a tensor computed from one of them, returns the reason (`try_into_data`;
//! `into_data` panics with it). The session and its other tensors remain usable.
//!
//! An invalid message, one beyond the limits, and the end of the server end the session. A client process keeps one
//! session per address and credential, and Burn 0.22.1 does not reopen it. For a new session in the same process
//! use another spelling of the address, or append `#` and any text to the token: `with_credential("secret#2")`.
//! Tensors of the old session are lost.
//!
//! # Limits
//! Before the token is checked a connection may send 64 KiB within 10 s; [`Limits`] apply afterwards. Tensors can
//! be moved from one server to another (`tensor.to_device(&other)`), but not between two sessions of one server.

// protocol     messages of Burn Remote
// connection   a client connection: token, limits, messages
// session      tensors and operations of a client
// transfer     tensors from one server to another

#![forbid(unsafe_code)]

mod connection;
mod protocol;
mod session;
mod transfer;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_ir::{BackendIr, CustomOpIr, HandleContainer, ScalarIr, TensorIr};
use burn_router::CustomOpRegistry;
use burn_t4a_022::{BurnT4a, T4aTensor};
use t4a_operations::wire::ID;
use t4a_operations::{AnyOperation, OperationError};
use thiserror::Error;
use transfer::Offers;

type Handles = HandleContainer<<BurnT4a as BackendIr>::Handle>;

/// Limits on the resources of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of simultaneous connections; further ones are closed immediately.
    pub connections: usize,
    /// Maximum number of bytes of a message after the token was accepted.
    pub frame: usize,
    /// If true, elements sent by clients count towards the engine's memory limit
    /// ([`t4a_tensor::pool::set_memory_limit`]), at the cost of a copy.
    pub counted: bool,
}

impl Default for Limits {
    /// 64 connections, messages of 1 GiB as in Burn, elements not counted.
    fn default() -> Self {
        Self { connections: 64, frame: 1 << 30, counted: false }
    }
}

/// The token is empty or contains `#`, so that it would not protect the server.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the token of a server is empty or contains #")]
pub struct UnfitToken;

/// A server of the engine's device with the operations of this project.
pub struct Server {
    /// Token of the clients; without one every client is accepted.
    token: Option<Vec<u8>>,
    limits: Limits,
    operations: CustomOpRegistry<BurnT4a>,
    offers: Offers,
}

impl Server {
    fn of(token: Option<Vec<u8>>) -> Self {
        let mut operations = CustomOpRegistry::new();
        // A panic reports a failure to Burn's interpreter; the session catches it.
        operations.register(ID, |handles, message, _| {
            answer(handles, message).unwrap_or_else(|error| panic!("{error}"));
        });
        operations.register(session::OWN, |handles, message, _| {
            own(handles, message).unwrap_or_else(|error| panic!("{error}"));
        });
        Self { token, limits: Limits::default(), operations, offers: Offers::default() }
    }

    /// Creates a server for clients that present this token, alone or followed by `#` and any text.
    ///
    /// # Errors
    /// [`UnfitToken`] if the token is unsuitable.
    pub fn new(token: &str) -> Result<Self, UnfitToken> {
        match token.is_empty() || token.contains('#') {
            true => Err(UnfitToken),
            false => Ok(Self::of(Some(token.into()))),
        }
    }

    /// Creates a server for all clients.
    pub fn open() -> Self {
        Self::of(None)
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Accepts clients, each on its own thread, until the listener fails.
    ///
    /// # Errors
    /// Error of the listener after it has failed for five seconds.
    pub fn serve(self, listener: &TcpListener) -> io::Result<()> {
        let (server, open) = (Arc::new(self), Arc::new(AtomicUsize::new(0)));
        let mut failures = 0;
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // The connection ended before it was accepted, or no file descriptor is free.
                Err(error) if failures < 100 => {
                    eprintln!("t4a-serve: {error}");
                    failures += 1;
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    continue;
                }
                Err(error) => return Err(error),
            };
            failures = 0;
            if open.fetch_add(1, Ordering::SeqCst) >= server.limits.connections {
                open.fetch_sub(1, Ordering::SeqCst);
                eprintln!("t4a-serve: a connection beyond {} is closed", server.limits.connections);
                continue;
            }
            let place = ConnectionPermit(open.clone());
            let server = server.clone();
            let thread = std::thread::Builder::new().name("t4a-session".into());
            let run = move || {
                let _place = place;
                server.connection(stream);
            };
            if let Err(error) = thread.spawn(run) {
                eprintln!("t4a-serve: {error}");
            }
        }
    }

    fn connection(self: &Arc<Self>, stream: TcpStream) {
        let client = stream.peer_addr().map_or_else(|_| "a client".into(), |at| at.to_string());
        if let Err(reason) = connection::serve(self, stream) {
            eprintln!("t4a-serve: {client}: {reason}");
        }
    }

    /// Compares a credential with the token, in a time independent of the position of a difference.
    fn admits(&self, credential: &[u8]) -> bool {
        let Some(token) = &self.token else { return true };
        let name = credential.iter().position(|&byte| byte == b'#');
        let given = &credential[..name.unwrap_or(credential.len())];
        let differ = |sum, (a, b): (&u8, &u8)| sum | (a ^ b);
        given.len() == token.len() && given.iter().zip(token).fold(0, differ) == 0
    }
}

/// One of the allowed connections, released when the connection ends.
struct ConnectionPermit(Arc<AtomicUsize>);

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads the operands, runs the operation, and registers its results.
fn answer(handles: &mut Handles, message: &CustomOpIr) -> Result<(), OperationError> {
    let word = |x: &ScalarIr| match *x {
        ScalarIr::UInt(word) => Ok(word),
        other => Err(OperationError::Data(format!("{other:?} is no word of a message"))),
    };
    let words = message.scalars.iter().map(word).collect::<Result<Vec<u64>, _>>()?;
    let op = AnyOperation::from_words(&words)?;
    let tensors = message.inputs.iter().map(|x| operand(handles, x).into_any()).collect();
    let results = op.run(tensors)?;
    let places = &message.outputs;
    if results.len() != places.len() {
        let text = format!("{} results, {} are expected", results.len(), places.len());
        return Err(OperationError::Data(text));
    }
    for (place, result) in places.iter().zip(results) {
        // A scalar has shape `[1]` in Burn.
        let result = if result.rank() == 0 { result.reshape(&[1])? } else { result };
        if result.shape() != &*place.shape {
            let (a, b) = (result.shape(), &*place.shape);
            let text = format!("a result has shape {a:?}, {b:?} is expected");
            return Err(OperationError::Data(text));
        }
        register(handles, place, T4aTensor::from_any(result)?);
    }
    Ok(())
}

/// Moves the elements of tensors to memory of the engine.
fn own(handles: &mut Handles, message: &CustomOpIr) -> Result<(), OperationError> {
    for (from, to) in message.inputs.iter().zip(&message.outputs) {
        let tensor = operand(handles, from).into_owned()?;
        register(handles, to, tensor);
    }
    Ok(())
}

fn operand(handles: &mut Handles, x: &TensorIr) -> T4aTensor {
    if x.dtype.is_float() {
        handles.get_float_tensor::<BurnT4a>(x)
    } else if x.dtype.is_bool() {
        handles.get_bool_tensor::<BurnT4a>(x)
    } else {
        handles.get_int_tensor::<BurnT4a>(x)
    }
}

fn register(handles: &mut Handles, place: &TensorIr, tensor: T4aTensor) {
    if place.dtype.is_float() {
        handles.register_float_tensor::<BurnT4a>(&place.id, tensor);
    } else if place.dtype.is_bool() {
        handles.register_bool_tensor::<BurnT4a>(&place.id, tensor);
    } else {
        handles.register_int_tensor::<BurnT4a>(&place.id, tensor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_and_names_behind_it() {
        let server = Server::new("secret").unwrap();
        for (credential, admitted) in [
            ("secret", true),
            ("secret#2", true),
            ("secret#", true),
            ("secre", false),
            ("secret2", false),
            ("#secret", false),
            ("", false),
        ] {
            assert_eq!(server.admits(credential.as_bytes()), admitted, "{credential}");
        }
        assert!(Server::open().admits(b""));
        assert!(Server::new("").is_err() && Server::new("a#b").is_err());
    }
}
