//! Functions of full tensors, evaluated on shards: [`shard_map`] records a function once and runs its instructions on
//! every device of a [`Mesh`], with collectives where local shards do not suffice. Data parallelism, model parallelism
//! and their combination are specs of the call, not different programs, and the result is that of the function without
//! a mesh. All communication is planned before execution: [`Sharded::plan`] lists it with its size in bytes. Devices
//! are threads of one process, or of several processes connected by a [`Rendezvous`].
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::compile::Traced;
//! use burn_t4a_transforms::shard::{Mesh, PartitionSpec, shard_map};
//!
//! type B = BurnT4a;
//! let mesh = Mesh::new([("data", 2), ("model", 2)])?;
//! // A batch over `data`, columns of the weight over `model`.
//! let specs = [PartitionSpec::split(["data", ""]), PartitionSpec::split(["", "model"])];
//! let f = |(x, w): (Tensor<Traced<B>, 2>, Tensor<Traced<B>, 2>)| x.matmul(w).tanh();
//! let f = shard_map(f, &mesh, specs, [PartitionSpec::split(["data", "model"])]);
//!
//! let x = Tensor::<B, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
//! let y = f.call((x.clone(), x.clone() * 0.1))?;
//! let whole = x.clone().matmul(x * 0.1).tanh();
//! y.into_data().assert_eq(&whole.into_data(), true);
//! # Ok::<(), burn_t4a_transforms::shard::ShardError>(())
//! ```
//!
//! Across processes ([`Sharded::across`]) every process runs the same program: it calls the same functions in the same
//! order, which is checked before any computation, and obtains bitwise the same results. Tensors are sent over one TCP
//! connection per pair of processes; the plan states the number of bytes, and nothing else is sent except heartbeats.
//! If a process exits, is stopped, or its machine fails, the calls of the other processes return an error that names
//! it. Connections are not encrypted: use them on trusted networks only.
//!
//! Arguments and results are full tensors, and sharded results are gathered in every process at the end of a call. A
//! state, such as parameters of a model, stays on the devices between the calls of [`Sharded::step`].
//!
//! | task | |
//! |---|---|
//! | grid of devices with named axes | [`Mesh`] |
//! | partition of a tensor over the mesh | [`PartitionSpec`] |
//! | evaluation of a function on shards | [`shard_map`], [`Sharded::call`] |
//! | state that stays on the devices between calls | [`Sharded::place`], [`Sharded::step`], [`Sharded::gather`] |
//! | instructions of each device and communication volume | [`Sharded::plan`], [`ExecutionPlan`] |
//! | change of the partition inside a function | [`reshard`] |
//! | function of the shards of one device, with `psum`, `axis_index`, … | [`local_map`] |
//! | devices in several processes | [`Rendezvous`], [`Processes`], [`Sharded::across`] |

// mesh         grid of devices with named axes
// spec         partition of tensors over mesh axes
// rules        sharding rules: partition of operands and results per operation
// plan         execution plan with communication volume in bytes
// traffic      messages between processes, one entry per message
// parts        slicing, concatenation, reduction and serialisation of tensors
// collectives  collective operations of devices; exchange implements them within one process
// processes    rendezvous, frames, received messages; collectives across processes
// identity     fingerprint of a call, compared by the processes before it starts
// run          one thread per device
// sharded      shard_map(f, mesh, specs); state that stays on the devices
// local        local_map: functions of the shards of one device

#![forbid(unsafe_code)]

mod collectives;
mod error;
mod exchange;
mod identity;
mod local;
mod mesh;
mod parts;
mod plan;
mod processes;
mod rules;
mod run;
mod sharded;
mod spec;
mod traffic;

pub use error::{Result, ShardError};
pub use local::{LocalMap, local_map};
pub use mesh::Mesh;
pub use plan::ExecutionPlan;
pub use processes::{Processes, Rendezvous};
pub use sharded::{Sharded, ShardedState, reshard, shard_map};
pub use spec::PartitionSpec;
