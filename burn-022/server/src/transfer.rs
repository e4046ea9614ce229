//! Transfers of tensors between servers, on connections of the servers.
//!
//! ```text
//! target → source   TensorRequest(number)
//! source → target   Tensor(elements), or the end of the connection if the source has none
//! ```
//!
//! The identifier is part of the capability that the client gave to both servers: 64 random bits in place of a
//! token.

use std::collections::HashMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use burn_backend::TensorData;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tungstenite::Message;
use tungstenite::protocol::WebSocketConfig;

use crate::protocol::{Address, Capability, PeerAddr};

/// Maximum time that a request waits for a tensor.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of tensors that wait for requests; one more removes all of them.
const MOST: usize = 256;

#[derive(Serialize, Deserialize)]
enum Transfer {
    TensorRequest(u64),
    Tensor(TensorData),
}

/// A message with a tensor, and the number of requests for it.
struct Offer {
    message: Option<Bytes>,
    requests: u32,
}

/// Tensors that other servers may request.
#[derive(Default)]
pub(crate) struct Offers {
    all: Mutex<HashMap<u64, Offer>>,
    changed: Condvar,
}

impl Capability {
    fn number(&self) -> u64 {
        self.0[..8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}

impl Offers {
    /// Offers a tensor for `requests` requests, or reports that it has no elements.
    pub(crate) fn give(&self, of: &Capability, tensor: Option<TensorData>, requests: u32) {
        let message = tensor.and_then(|data| rmp_serde::to_vec(&Transfer::Tensor(data)).ok());
        let offer = Offer { message: message.map(Bytes::from), requests: requests.max(1) };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(of.number(), offer);
        self.changed.notify_all();
    }

    /// Answer to a request; waits until the tensor is offered.
    pub(crate) fn answer(&self, request: &[u8]) -> Result<Bytes, String> {
        let Ok(Transfer::TensorRequest(number)) = rmp_serde::from_slice(request) else {
            return Err("a damaged request of a tensor".into());
        };
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |all: &mut HashMap<u64, Offer>| !all.contains_key(&number);
        let waited = self.changed.wait_timeout_while(all, PATIENCE, missing);
        let (mut all, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let offer = all.get_mut(&number).ok_or("a request of a tensor that is not offered")?;
        offer.requests -= 1;
        let message = offer.message.clone();
        if offer.requests == 0 {
            all.remove(&number);
        }
        message.ok_or_else(|| "a request of a tensor that has no elements".into())
    }
}

/// Requests a tensor from another server.
pub(crate) fn download(
    PeerAddr::WebSocket(address): &PeerAddr,
    of: &Capability,
    limit: usize,
) -> Result<TensorData, String> {
    let wrong = |what: String| format!("{}: {what}", address.host);
    let Address { scheme, host, port } = address;
    if scheme != "ws" {
        return Err(wrong(format!("{scheme} is not supported between servers")));
    }
    let port = port.unwrap_or(80);
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let mut found = (literal, port).to_socket_addrs().map_err(|e| wrong(e.to_string()))?;
    let at = found.next().ok_or_else(|| wrong("the host is not known".into()))?;
    let open = || {
        let stream = TcpStream::connect_timeout(&at, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(2 * PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok::<_, std::io::Error>(stream)
    };
    let stream = open().map_err(|e| wrong(e.to_string()))?;
    let config =
        WebSocketConfig::default().max_message_size(Some(limit)).max_frame_size(Some(limit));
    let url = format!("ws://{host}:{port}/data");
    let opened = tungstenite::client::client_with_config(url, stream, Some(config));
    let (mut socket, _) = opened.map_err(|e| wrong(e.to_string()))?;
    let request = rmp_serde::to_vec(&Transfer::TensorRequest(of.number()));
    let request = request.map_err(|e| wrong(e.to_string()))?;
    socket.send(Message::binary(request)).map_err(|e| wrong(e.to_string()))?;
    loop {
        match socket.read() {
            Ok(Message::Binary(frame)) => match rmp_serde::from_slice(&frame) {
                Ok(Transfer::Tensor(data)) => return Ok(data),
                _ => return Err(wrong("the answer is no tensor".into())),
            },
            Ok(Message::Close(_)) => {
                return Err(wrong("the server does not offer the tensor".into()));
            }
            Ok(_) => {}
            Err(error) => return Err(wrong(error.to_string())),
        }
    }
}
