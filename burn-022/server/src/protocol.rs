//! Messages of Burn Remote 0.22.1, protocol version 2; Burn does not export their types.
//!
//! ```text
//! client → server   frames of MessagePack: a list of messages each, the first frame one `Init`
//! server → client   a frame per response; the first answers `Init`
//! ```
//!
//! Variants and fields have Burn's names and order; fields that this server does not read are skipped.

use std::time::Duration;

use burn_backend::{DTypeUsageSet, ExecutionError, ProfileOptions, ProfileToken, TensorData};
use burn_ir::{GraphBindings, GraphId, OperationIr, TensorId, TensorIr};
use burn_std::id::StreamId;
use burn_std::{DType, DeviceSettings};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The version of these messages.
pub(crate) const VERSION: u16 = 2;

/// Number of a request, repeated in its response.
pub(crate) type RequestId = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionId {
    id: u64,
}

#[derive(Deserialize)]
pub(crate) struct SessionInit {
    pub(crate) version: u16,
    pub(crate) session_id: SessionId,
    pub(crate) device_index: u32,
    /// Credential of the client.
    #[serde(with = "serde_bytes")]
    pub(crate) authorization: Vec<u8>,
}

/// Capability to download a tensor.
#[derive(Deserialize)]
pub(crate) struct Capability(pub(crate) [u8; 32]);

#[derive(Deserialize)]
pub(crate) struct Address {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

#[derive(Deserialize)]
pub(crate) enum PeerAddr {
    WebSocket(Address),
}

#[derive(Deserialize)]
pub(crate) struct TensorRemote {
    pub(crate) capability: Capability,
    pub(crate) peer: PeerAddr,
}

#[derive(Deserialize)]
// Most messages are of the large variant.
#[allow(clippy::large_enum_variant)]
pub(crate) enum RemoteMessage {
    Task(Task),
    Init(SessionInit),
    Close(SessionId),
}

#[derive(Deserialize)]
// Most tasks are of the largest variant.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Task {
    Seed(u64),
    RegisterOperation(StreamId, OperationIr),
    RegisterAndExecuteGraph {
        stream_id: StreamId,
        graph_id: GraphId,
        relative_graph: Vec<OperationIr>,
        bindings: GraphBindings,
    },
    ExecuteGraph {
        stream_id: StreamId,
        graph_id: GraphId,
        bindings: GraphBindings,
    },
    RegisterTensor(StreamId, TensorId, TensorData),
    RegisterAlias {
        #[serde(rename = "stream_id")]
        _stream: IgnoredAny,
        new_id: TensorId,
        src_id: TensorId,
    },
    RegisterTensorRemote(StreamId, TensorRemote, TensorId),
    ExposeTensorRemote {
        stream_id: StreamId,
        tensor: TensorIr,
        count: u32,
        capability: Capability,
        #[serde(rename = "target")]
        _target: IgnoredAny,
    },
    ExposeTensorLocal {
        #[serde(rename = "stream_id")]
        _stream: IgnoredAny,
        tensor: TensorIr,
        #[serde(rename = "transfer_id")]
        _transfer: IgnoredAny,
    },
    RegisterTensorLocal {
        #[serde(rename = "stream_id")]
        _stream: IgnoredAny,
        #[serde(rename = "transfer_id")]
        _transfer: IgnoredAny,
        new_id: TensorId,
    },
    ReadTensor(RequestId, StreamId, TensorIr),
    SyncBackend(RequestId, StreamId),
    DTypeUsage(RequestId, DType),
    ProfileStart(RequestId, StreamId),
    ProfileEnd(RequestId, StreamId, ProfileToken, ProfileOptions),
    ProfileAbandon(StreamId, ProfileToken),
}

#[derive(Serialize)]
pub(crate) struct SessionInfo {
    pub(crate) version: u16,
    pub(crate) settings: DeviceSettings,
    pub(crate) device_count: u32,
    /// Identity of a server, which WebSocket transports do not have.
    pub(crate) peer_id: Option<()>,
}

#[derive(Serialize)]
pub(crate) enum SessionRefusal {
    Unauthorized,
    NoSuchDevice { device_count: u32 },
    IncompatibleProtocol { server_version: u16 },
}

#[derive(Serialize)]
pub(crate) enum Content {
    Init(SessionInfo),
    ReadTensor(Result<TensorData, ExecutionError>),
    SyncBackend(Result<(), ExecutionError>),
    DTypeUsage(DTypeUsageSet),
    ProfileStart(Result<Option<ProfileToken>, ExecutionError>),
    ProfileEnd(Result<Option<Duration>, ExecutionError>),
    InitRefused(SessionRefusal),
}

#[derive(Serialize)]
pub(crate) struct Response {
    pub(crate) content: Content,
    pub(crate) id: RequestId,
}
