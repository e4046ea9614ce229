//! Functions of whole tensors, run on parts of them: [`shard_map`] records a function once and runs its
//! instructions on every device of a [`Mesh`], with collectives where parts do not suffice. Splits of data, of
//! weights and of both are lines of the call instead of another program, and the result is the one without a
//! mesh. What moves between devices is known before anything does: [`Sharded::plan`] lists it with its bytes.
//! Devices are threads of one process, or of several that find each other by a [`Rendezvous`].
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_compile::Traced;
//! use burn_t4a_shard::{Mesh, Spec, shard_map};
//!
//! type B = BurnT4a;
//! let mesh = Mesh::new([("data", 2), ("model", 2)])?;
//! // A batch over `data`, columns of the weight over `model`.
//! let specs = [Spec::split(["data", ""]), Spec::split(["", "model"])];
//! let f = |(x, w): (Tensor<Traced<B>, 2>, Tensor<Traced<B>, 2>)| x.matmul(w).tanh();
//! let f = shard_map(f, &mesh, specs, [Spec::split(["data", "model"])]);
//!
//! let x = Tensor::<B, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
//! let y = f.call((x.clone(), x.clone() * 0.1))?;
//! let whole = x.clone().matmul(x.clone() * 0.1).tanh();
//! y.into_data().assert_eq(&whole.into_data(), true);
//! // Nothing has to move.
//! assert_eq!(f.plan((x.clone(), x))?.bytes(), 0);
//! # Ok::<(), burn_t4a_shard::ShardError>(())
//! ```
//!
//! Across processes ([`Sharded::across`]) each of them runs the same program: it calls the same functions in the
//! same order, which is checked before any work, and gets the same results, to the bit. Tensors go over TCP
//! connections between each two processes; the plan says how many bytes, and no more are sent but for signs of
//! life. A process that ends, is stopped or whose machine is gone ends the calls of the others with an error that
//! names it. Nothing is encrypted: it is for networks that one trusts.
//!
//! Whole tensors go in and come out. What is split is put together in every process at the end of a call, so that
//! several steps of a training in one call send less than a call for each.
//!
//! | task | |
//! |---|---|
//! | devices in a grid with named axes | [`Mesh`] |
//! | how a tensor is split over them | [`Spec`] |
//! | a function on parts | [`shard_map`], [`Sharded::call`] |
//! | what each device does, and what moves | [`Sharded::plan`], [`Plan`] |
//! | another split in the middle of a function | [`reshard`] |
//! | devices in several processes | [`Rendezvous`], [`Processes`], [`Sharded::across`] |

// mesh         devices in a grid with named axes
// spec         how tensors are split
// rules        how an operation on whole tensors becomes one on parts
// plan         all of it, with the bytes that move
// traffic      which of them leave a process, message by message
// parts        tensors cut, joined, reduced, and as bytes
// collectives  how devices meet; exchange where they do so in one process
// processes    rendezvous, frames, what has arrived; collectives across processes
// identity     what processes compare before they begin
// run          a thread per device
// sharded      shard_map(f, mesh, specs)

mod collectives;
mod error;
mod exchange;
mod identity;
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
pub use mesh::Mesh;
pub use plan::Plan;
pub use processes::{Processes, Rendezvous};
pub use sharded::{Sharded, reshard, shard_map};
pub use spec::Spec;
