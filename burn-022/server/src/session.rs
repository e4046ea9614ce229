//! A session: the tensors of a client and its operations in order.
//!
//! An operation that fails leaves its results without elements. Operations on them are skipped, and reading one of
//! them returns the reason of the failure. Other tensors are not affected.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use burn_backend::{ExecutionError, TensorData};
use burn_ir::{
    CustomOpIr, DistributedOperationIr, GraphBindings, GraphId, OperationIr, TensorId, TensorIr,
    TensorStatus,
};
use burn_router::{Graph, TensorInterpreter};
use burn_std::device::Device;
use burn_std::id::StreamId;
use burn_t4a_022::{BurnT4a, T4aDevice};

use crate::protocol::{Content, Response, Task, TensorRemote};
use crate::{Server, transfer};

/// Identifiers of these transfers are unique only within a client process: tensors of several clients could be
/// exchanged.
const BETWEEN_SESSIONS: &str =
    "tensors do not move between two sessions of one server: read them, and send them again";

/// Custom operation that moves a client's elements to memory of the engine, where they count towards its limit.
pub(crate) const OWN: &str = "t4a-own";

/// State of a session.
pub(crate) struct Session {
    interpreter: TensorInterpreter<BurnT4a>,
    graphs: HashMap<GraphId, Graph>,
    /// Tensors whose operation failed, with the reason.
    failed: HashMap<TensorId, Arc<str>>,
    server: Arc<Server>,
}

impl Session {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let operations = server.operations.clone();
        let interpreter = TensorInterpreter::with_custom_ops(T4aDevice, operations);
        Self { interpreter, graphs: HashMap::new(), failed: HashMap::new(), server }
    }

    /// Runs a task; returns its response, if it has one.
    pub(crate) fn run(&mut self, task: Task) -> Option<Response> {
        let respond = |id, content| Some(Response { content, id });
        match task {
            Task::Seed(seed) => self.interpreter.seed(seed),
            Task::RegisterOperation(stream, op) => self.operation(stream, op),
            Task::RegisterAndExecuteGraph { stream_id, graph_id, relative_graph, bindings } => {
                self.graphs.insert(graph_id, Graph::new(relative_graph));
                self.graph(stream_id, graph_id, bindings);
            }
            Task::ExecuteGraph { stream_id, graph_id, bindings } => {
                self.graph(stream_id, graph_id, bindings);
            }
            Task::RegisterTensor(stream, id, data) => self.upload(stream, id, data),
            Task::RegisterAlias { new_id, src_id, .. } => match self.failed.get(&src_id) {
                Some(reason) => drop(self.failed.insert(new_id, reason.clone())),
                None => {
                    let stream = StreamId::current();
                    let done = self.attempt(stream, |all| all.register_alias(new_id, src_id));
                    self.written(new_id, done);
                }
            },
            Task::RegisterTensorRemote(stream, TensorRemote { capability, peer }, id) => {
                match transfer::download(&peer, &capability, self.server.limits.frame) {
                    Ok(data) => self.upload(stream, id, data),
                    Err(reason) => drop(self.failed.insert(id, reason.into())),
                }
            }
            Task::ExposeTensorRemote { stream_id, tensor, count, capability, .. } => {
                let data = self.read(stream_id, tensor).ok();
                self.server.offers.give(&capability, data, count);
            }
            Task::RegisterTensorLocal { new_id, .. } => {
                drop(self.failed.insert(new_id, BETWEEN_SESSIONS.into()));
            }
            // The session that would receive the tensor reports the error.
            Task::ExposeTensorLocal { tensor, .. } => self.consume(&tensor),
            Task::ReadTensor(id, stream, tensor) => {
                return respond(id, Content::ReadTensor(self.read(stream, tensor)));
            }
            Task::SyncBackend(id, stream) => {
                let done = self.attempt(stream, |all| all.sync());
                return respond(id, Content::SyncBackend(flat(done)));
            }
            Task::DTypeUsage(id, dtype) => {
                return respond(id, Content::DTypeUsage(self.interpreter.dtype_usage(dtype)));
            }
            Task::ProfileStart(id, stream) => {
                let token = self.attempt(stream, |all| all.profile_start());
                return respond(id, Content::ProfileStart(flat(token)));
            }
            Task::ProfileEnd(id, stream, token, options) => {
                let time = self.attempt(stream, |all| {
                    let ticks =
                        ready(async { Ok(all.profile_end(token, options)?.resolve().await) });
                    Ok(ticks?.map(|ticks| ticks.duration()))
                });
                return respond(id, Content::ProfileEnd(flat(time)));
            }
            Task::ProfileAbandon(stream, token) => {
                drop(self.attempt(stream, |all| all.profile_abandon(token)));
            }
        }
        None
    }

    /// Stores uploaded elements.
    fn upload(&mut self, stream: StreamId, id: TensorId, data: TensorData) {
        let (shape, dtype) = (data.shape().clone(), data.dtype());
        let done = self.attempt(stream, |all| all.register_tensor_data_id(id, data));
        let is_there = done.is_ok();
        self.written(id, done);
        if is_there && self.server.limits.counted {
            let from = TensorIr { id, shape, status: TensorStatus::ReadWrite, dtype };
            let to = TensorIr { status: TensorStatus::NotInit, ..from.clone() };
            self.operation(stream, OperationIr::Custom(CustomOpIr::new(OWN, &[from], &[to])));
        }
    }

    fn read(&mut self, stream: StreamId, tensor: TensorIr) -> Result<TensorData, ExecutionError> {
        flat(match self.failure(&tensor) {
            Some(reason) => Err(reason),
            None => self.attempt(stream, |all| ready(all.read_tensor_async(tensor))),
        })
    }

    fn graph(&mut self, stream: StreamId, id: GraphId, bindings: GraphBindings) {
        let Some(graph) = self.graphs.get(&id).cloned() else {
            eprintln!("t4a-serve: an unknown graph is skipped");
            return;
        };
        match catch(|| graph.bind(bindings)) {
            Ok(bound) => bound.operations.into_iter().for_each(|op| self.operation(stream, op)),
            Err(reason) => eprintln!("t4a-serve: a graph is skipped: {reason}"),
        }
    }

    /// Runs an operation, or skips it if an operand is missing.
    fn operation(&mut self, stream: StreamId, mut op: OperationIr) {
        match &op {
            // It computes nothing, even if the elements were rejected.
            OperationIr::Init(_) => return,
            OperationIr::Drop(tensor) if self.failed.remove(&tensor.id).is_some() => return,
            _ => {}
        }
        if let OperationIr::Distributed(DistributedOperationIr::AllReduce(all)) = &mut op {
            all.device_ids.iter_mut().for_each(|id| *id = T4aDevice.to_id().into());
        }
        let missing = match self.failed.is_empty() {
            true => None,
            false => op.inputs().find_map(|x| self.failed.get(&x.id)).cloned(),
        };
        let outputs: Vec<TensorId> = op.outputs().map(|y| y.id).collect();
        let inputs: Vec<TensorIr> = op.inputs().cloned().collect();
        let done = match missing {
            Some(reason) => Err(reason),
            None => self.attempt(stream, |all| all.register_op(op)),
        };
        // Operands that the failed operation would have consumed are dropped.
        if done.is_err() {
            inputs.iter().for_each(|x| self.consume(x));
        }
        outputs.into_iter().for_each(|id| self.written(id, done.clone()));
    }

    /// Drops a tensor at its last use.
    fn consume(&mut self, tensor: &TensorIr) {
        if tensor.status == TensorStatus::ReadWrite && self.failed.remove(&tensor.id).is_none() {
            self.interpreter.register_op(OperationIr::Drop(tensor.clone()));
        }
    }

    /// Reason for which a tensor has no elements.
    fn failure(&mut self, tensor: &TensorIr) -> Option<Arc<str>> {
        match tensor.status {
            TensorStatus::ReadWrite => self.failed.remove(&tensor.id),
            _ => self.failed.get(&tensor.id).cloned(),
        }
    }

    fn written(&mut self, id: TensorId, done: Result<(), Arc<str>>) {
        match done {
            Ok(()) => drop(self.failed.remove(&id)),
            Err(reason) => drop(self.failed.insert(id, reason)),
        }
    }

    fn attempt<T>(
        &mut self,
        stream: StreamId,
        f: impl FnOnce(&mut TensorInterpreter<BurnT4a>) -> T,
    ) -> Result<T, Arc<str>> {
        catch(|| stream.executes(|| f(&mut self.interpreter)))
    }
}

/// Converts a panic, by which Burn backends report failures, to an error with its message.
fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Arc<str>> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        text.unwrap_or("an operation failed without a message").into()
    })
}

fn flat<T>(result: Result<Result<T, ExecutionError>, Arc<str>>) -> Result<T, ExecutionError> {
    result.unwrap_or_else(|reason| Err(ExecutionError::with_context(&*reason)))
}

/// Result of a future of the engine, which is always ready.
fn ready<T>(future: impl Future<Output = Result<T, ExecutionError>>) -> Result<T, ExecutionError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ExecutionError::with_context("a read did not end")),
    }
}
