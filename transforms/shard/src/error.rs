//! Errors of `shard_map`, meshes and process groups.

use burn_t4a_compile::CompileError;
use burn_t4a_vmap::VmapError;
use t4a_algebra::message::{cut, long, short};

/// Result of a function on a mesh.
pub type Result<T, E = ShardError> = std::result::Result<T, E>;

/// Error of a sharded function, a mesh or a process group.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// Invalid mesh axis: repeated name, size zero, or a device count that overflows `usize`.
    #[error("mesh: the axis `{axis}` {what}", axis = short(.axis))]
    Mesh {
        /// Name of the invalid axis.
        axis: String,
        /// Description of the violation.
        what: &'static str,
    },
    /// A spec names an axis that the mesh does not have.
    #[error(
        "shard_map: {leaf} is split over `{name}`; the mesh has {axes:?}",
        leaf = short(.leaf), name = short(.name), axes = short(.axes)
    )]
    UnknownAxis {
        /// Path of the argument or result leaf.
        leaf: String,
        /// Axis name of the spec.
        name: String,
        /// Axis names of the mesh.
        axes: Vec<String>,
    },
    /// A spec uses one mesh axis for more than one split of a tensor.
    #[error(
        "shard_map: {leaf} is split twice over `{name}`",
        leaf = short(.leaf), name = short(.name)
    )]
    Twice {
        /// Path of the argument or result leaf.
        leaf: String,
        /// Name of the repeated mesh axis.
        name: String,
    },
    /// The size of a tensor axis is not a multiple of the number of parts.
    #[error(
        "shard_map: axis {axis} of {leaf} has size {size}, which {parts} devices along {names:?} do not divide",
        leaf = short(.leaf), names = short(.names)
    )]
    Divide {
        /// Path of the argument or result leaf.
        leaf: String,
        /// Index of the tensor axis.
        axis: usize,
        /// Size of the tensor axis.
        size: usize,
        /// Number of parts required by the spec.
        parts: usize,
        /// Mesh axes that split the tensor axis.
        names: Vec<String>,
    },
    /// A spec has more axes than the tensor.
    #[error("shard_map: {leaf} has rank {rank}, its spec has {axes} axes", leaf = short(.leaf))]
    Rank {
        /// Path of the argument or result leaf.
        leaf: String,
        /// Rank of the tensor.
        rank: usize,
        /// Number of axes of the spec.
        axes: usize,
    },
    /// The number of specs is neither 1 nor the number of tensors.
    #[error("shard_map: there are {given} specs for {required} {what}")]
    Specs {
        /// `"arguments"` or `"results"`.
        what: &'static str,
        /// Number of tensors.
        required: usize,
        /// Number of specs.
        given: usize,
    },
    /// A result of a function of local shards differs between devices, but its spec does not name their axis.
    #[error(
        "local_map: leaf {leaf} of the results differs between devices along `{axis}`; split it over the axis, or \
         combine it, as by psum or pmean",
        leaf = short(.leaf), axis = short(.axis)
    )]
    Varies {
        /// Path of the result leaf.
        leaf: String,
        /// Name of the mesh axis.
        axis: String,
    },
    /// A state that stays on the devices does not fit the function, or is returned by it in another form.
    #[error("shard_map: the state {what}", what = long(.what))]
    State {
        /// Description of the difference.
        what: String,
    },
    /// An operation failed on one device; the call was aborted on all others.
    #[error(
        "shard_map: device {device} failed in {operation}: {message}",
        operation = short(.operation), message = cut(.message, 300)
    )]
    Device {
        /// Index of the device in mesh order.
        device: usize,
        /// Name of the failed operation.
        operation: String,
        /// Error or panic message of the operation.
        message: String,
    },
    /// The number of devices is not a multiple of the number of processes.
    #[error("shard_map: {processes} processes cannot share {devices} devices evenly")]
    Devices {
        /// Number of devices of the mesh.
        devices: usize,
        /// Number of processes.
        processes: usize,
    },
    /// The rendezvous of the processes failed.
    #[error("shard_map: processes cannot be joined: {what}", what = long(.what))]
    Join {
        /// Missing or refused process, and the reason.
        what: String,
    },
    /// The connection to another process was lost; the call was aborted on all remaining processes.
    #[error("shard_map: process {process} {how}", how = long(.how))]
    Lost {
        /// Rank of the lost process.
        process: usize,
        /// Symptom by which the loss was detected: closed connection, silence, or timeout.
        how: String,
    },
    /// Processes made different calls; nothing was computed.
    #[error(
        "shard_map: process {process} comes with another {what} than this one: {here}",
        here = cut(.here, 300)
    )]
    Mismatch {
        /// Rank of the other process.
        process: usize,
        /// Component of the call that differs: mesh, argument shapes, program, or captured tensors.
        what: &'static str,
        /// Description of that component in this process.
        here: String,
    },
    /// Another process rejected the call; nothing was computed.
    #[error(
        "shard_map: process {process} cannot make this call: {message}",
        message = long(.message)
    )]
    Refused {
        /// Rank of the process that rejected the call.
        process: usize,
        /// Error message of that process.
        message: String,
    },
    /// The backend records an autodiff tape, which cannot extend into other processes.
    #[error(
        "shard_map: a tape does not reach other processes; take gradients inside of the function, on \
         Autodiff<Traced<B>>"
    )]
    Tape,
    /// The map over devices failed, see [`local_map`](crate::local_map).
    #[error(transparent)]
    Vmap(#[from] VmapError),
    /// Recording (tracing) of the function failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
}
