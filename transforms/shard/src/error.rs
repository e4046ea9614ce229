//! What is rejected.

use burn_t4a_compile::CompileError;

/// Result of a function on a mesh.
pub type Result<T, E = ShardError> = std::result::Result<T, E>;

/// Why a function could not be spread over a mesh.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// A mesh that is none.
    #[error("mesh: the axis `{axis}` {what}")]
    Mesh {
        /// Which axis.
        axis: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A spec that names an axis which the mesh does not have.
    #[error("shard_map: {leaf} is split over `{name}`; the mesh has {axes:?}")]
    UnknownAxis {
        /// Which argument or result.
        leaf: String,
        /// The name.
        name: String,
        /// Those of the mesh.
        axes: Vec<String>,
    },
    /// An axis of the mesh that splits two axes of one tensor.
    #[error("shard_map: {leaf} is split twice over `{name}`")]
    Twice {
        /// Which argument or result.
        leaf: String,
        /// The name.
        name: String,
    },
    /// Sizes that do not divide.
    #[error(
        "shard_map: axis {axis} of {leaf} has size {size}, which {parts} devices along {names:?} do not divide"
    )]
    Divide {
        /// Which argument or result.
        leaf: String,
        /// The axis.
        axis: usize,
        /// Its size.
        size: usize,
        /// How many parts are asked for.
        parts: usize,
        /// The axes of the mesh that make them.
        names: Vec<String>,
    },
    /// A spec of more axes than the tensor has.
    #[error("shard_map: {leaf} has rank {rank}, its spec has {axes} axes")]
    Rank {
        /// Which argument or result.
        leaf: String,
        /// Of the tensor.
        rank: usize,
        /// Of the spec.
        axes: usize,
    },
    /// Another number of specs than there are tensors.
    #[error("shard_map: there are {given} specs for {required} {what}")]
    Specs {
        /// Arguments or results.
        what: &'static str,
        /// How many there are.
        required: usize,
        /// How many specs.
        given: usize,
    },
    /// A device failed; the others have ended.
    #[error("shard_map: device {device} failed in {operation}: {message}")]
    Device {
        /// Which one.
        device: usize,
        /// What it did.
        operation: String,
        /// What it said.
        message: String,
    },
    /// Devices that processes cannot share evenly.
    #[error("shard_map: {processes} processes cannot share {devices} devices evenly")]
    Devices {
        /// Of the mesh.
        devices: usize,
        /// How many there are.
        processes: usize,
    },
    /// Processes that have not found each other.
    #[error("shard_map: processes cannot be joined: {what}")]
    Join {
        /// Who is missing, or was refused, and why.
        what: String,
    },
    /// Another process is no longer there; the others have ended.
    #[error("shard_map: process {process} {how}")]
    Lost {
        /// Which one.
        process: usize,
        /// How that was noticed.
        how: String,
    },
    /// Processes that come to different calls; nothing was computed.
    #[error("shard_map: process {process} comes with another {what} than this one: {here}")]
    Mismatch {
        /// The other one.
        process: usize,
        /// What is different.
        what: &'static str,
        /// What it is here.
        here: String,
    },
    /// Another process cannot make the call; nothing was computed.
    #[error("shard_map: process {process} cannot make this call: {message}")]
    Refused {
        /// Which one.
        process: usize,
        /// Its error.
        message: String,
    },
    /// A backend with a tape, which cannot follow tensors into other processes.
    #[error(
        "shard_map: a tape does not reach other processes; take gradients inside of the function, on \
         Autodiff<Traced<B>>"
    )]
    Tape,
    /// The function cannot be recorded.
    #[error(transparent)]
    Compile(#[from] CompileError),
}
