//! `shard_map` and sharded functions.

mod state;

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;
use burn_t4a::ext::tree::Tree;
use burn_t4a_compile::Traced;
use burn_t4a_compile::graph::{Arguments, Graph, Key, Recent, TensorType, Value, Word, mark};
use burn_tensor::Tensor;

use crate::collectives::Local;
use crate::error::{Result, ShardError};
use crate::mesh::Mesh;
use crate::plan::{ExecutionPlan, RESHARD};
use crate::processes::{Across, Alarm, Differs, Processes};
use crate::run::{CallInput, CallResults, run};
use crate::spec::{PartitionSpec, Split};
use crate::traffic::DeviceAssignment;

pub use state::ShardedState;

/// Maximum number of cached plans per function.
const CAPACITY: usize = 16;

/// By the number of results that stay on the devices, and the form of the arguments.
type RecentPlans<B> = Recent<(usize, Key), Arc<ExecutionPlan<B>>>;

/// A function with a mesh and partition specs; created by [`shard_map`].
///
/// Calls from several threads are allowed.
pub struct Sharded<B: Backend, I, O, F> {
    function: F,
    mesh: Mesh,
    inputs: Vec<PartitionSpec>,
    outputs: Vec<PartitionSpec>,
    processes: Option<(Processes, DeviceAssignment)>,
    plans: Mutex<RecentPlans<B>>,
    of: PhantomData<fn(I) -> O>,
}

/// Shards a function of trees of tensors over a mesh.
///
/// `inputs` and `outputs` hold one spec per tensor of the arguments and results, in order, or a single spec for all of
/// them. The function is written for full tensors. It is recorded once per set of argument shapes, so it must be pure,
/// as for [`compile`](burn_t4a_compile::compile); captured tensors are replicated constants. Each call runs the
/// recorded operations on every device, on local shards; [`Sharded::plan`] lists the communication.
///
/// The result is bitwise that of the function if no sum is split; otherwise partial sums are added in mesh order,
/// independent of the timing of the devices. Random numbers are generated once and broadcast.
///
/// Gradients need no extra code. For a reverse pass inside the function, the cotangents of replicated parameters are
/// sums over devices by the same rules; for a tape outside the function, on `Autodiff<B>`, the collectives are
/// differentiated like all other operations.
///
/// Devices are threads of this process, and all use the same backend; with [`across`](Sharded::across) they are threads
/// of several processes.
pub fn shard_map<B, I, O, F>(
    function: F,
    mesh: &Mesh,
    inputs: impl IntoIterator<Item = PartitionSpec>,
    outputs: impl IntoIterator<Item = PartitionSpec>,
) -> Sharded<B, I, O, F>
where
    B: Backend,
    I: Tree<Traced<B>>,
    O: Tree<Traced<B>>,
    F: Fn(I) -> O,
{
    Sharded {
        function,
        mesh: mesh.clone(),
        inputs: inputs.into_iter().collect(),
        outputs: outputs.into_iter().collect(),
        processes: None,
        plans: Mutex::default(),
        of: PhantomData,
    }
}

/// Sharding constraint: inside a sharded function, converts a tensor to the given partition at this point. Outside of a
/// sharded function it is the identity.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::compile::Traced;
/// use burn_t4a_transforms::shard::{Mesh, PartitionSpec, reshard, shard_map};
///
/// type B = BurnT4a;
/// let (rows, columns) = (PartitionSpec::split(["data", ""]), PartitionSpec::split(["", "data"]));
/// let mesh = Mesh::new([("data", 2)])?;
/// // Each device has all rows of one column, so that it sums the column itself.
/// let to = columns.clone();
/// let sums = move |x: Tensor<Traced<B>, 2>| reshard(x * 2.0, &to).sum_dim(0);
/// let sums = shard_map(sums, &mesh, [rows], [columns]);
/// let x = Tensor::<B, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
/// sums.call(x)?.into_data().assert_eq(&[[8.0f32, 12.0]].into(), false);
/// # Ok::<(), burn_t4a_transforms::shard::ShardError>(())
/// ```
pub fn reshard<B: Backend, const D: usize>(
    x: Tensor<Traced<B>, D>,
    spec: &PartitionSpec,
) -> Tensor<Traced<B>, D> {
    mark(x, RESHARD, spec.names().into_iter().map(Word::Text).collect())
}

fn splits(
    mesh: &Mesh,
    what: &'static str,
    specs: &[PartitionSpec],
    metas: &[&TensorType],
    paths: &[String],
) -> Result<Vec<Split>> {
    if specs.len() != metas.len() && specs.len() != 1 {
        return Err(ShardError::Specs { what, required: metas.len(), given: specs.len() });
    }
    let one = |k: usize| {
        let leaf = format!("leaf {} of the {what}", paths[k]);
        specs[if specs.len() == 1 { 0 } else { k }].on(mesh, &leaf, metas[k])
    };
    (0..metas.len()).map(one).collect()
}

impl<B, I, O, F> Sharded<B, I, O, F>
where
    B: Backend,
    I: Tree<Traced<B>>,
    O: Tree<Traced<B>>,
    F: Fn(I) -> O,
{
    fn plans(&self) -> MutexGuard<'_, RecentPlans<B>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan of a call whose first `kept` results stay on the devices.
    fn plan_of(&self, arguments: &Arguments<B>, kept: usize) -> Result<Arc<ExecutionPlan<B>>> {
        let key = (kept, arguments.key());
        if let Some(plan) = self.plans().find(&key) {
            return Ok(plan.clone());
        }
        let metas: Vec<TensorType> = arguments.values().iter().map(|x| x.meta()).collect();
        let metas: Vec<&TensorType> = metas.iter().collect();
        let paths = arguments.paths();
        let inputs = splits(&self.mesh, "arguments", &self.inputs, &metas, &paths)?;
        let graph = Graph::record(&self.function, arguments)?;
        let metas: Vec<&TensorType> = graph.outputs().iter().map(|&v| &graph.metas()[v]).collect();
        let outputs = splits(&self.mesh, "results", &self.outputs, &metas, &graph.paths())?;
        let processes = self.processes.as_ref();
        let processes = processes.map(|(own, layout)| (*layout, own.rank(), &key.1));
        let plan = ExecutionPlan::new(&self.mesh, graph, inputs, &outputs, kept, processes)?;
        let plan = Arc::new(plan);
        self.plans().put(key, plan.clone(), CAPACITY);
        Ok(plan)
    }

    /// Distributes the devices over processes: the same number per process, in mesh order.
    ///
    /// Every process calls the function in the same order as the others, with full tensors of which it uses the shards
    /// of its devices, and obtains the full results. A call starts when all processes have made it with the same mesh,
    /// argument shapes, program and captured tensors, and ends when all have received all messages. Results are bitwise
    /// those of a mesh in one process.
    ///
    /// Gradients must be taken inside the function, on `Autodiff<Traced<B>>`.
    ///
    /// ```
    /// use std::net::TcpListener;
    ///
    /// use burn::tensor::Tensor;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_transforms::compile::Traced;
    /// use burn_t4a_transforms::shard::{Mesh, PartitionSpec, Processes, Rendezvous, ShardError};
    /// use burn_t4a_transforms::shard::shard_map;
    ///
    /// type B = BurnT4a;
    /// // What each process does.
    /// fn program(processes: &Processes) -> Result<f32, ShardError> {
    ///     let mesh = Mesh::new([("data", 4)])?;
    ///     let f = |x: Tensor<Traced<B>, 1>| (x.clone() * x).sum();
    ///     let f = shard_map(f, &mesh, [PartitionSpec::split(["data"])], [PartitionSpec::replicated()]);
    ///     let f = f.across(processes)?;
    ///     let x = Tensor::<B, 1>::from_floats([1.0, 2.0, 3.0, 4.0], &T4aDevice);
    ///     Ok(f.call(x)?.into_scalar())
    /// }
    ///
    /// // Two of them, which are threads here, with two devices each.
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let address = listener.local_addr()?;
    /// let second = std::thread::spawn(move || program(&Rendezvous::of(2).join(address, 1)?));
    /// assert_eq!(program(&Rendezvous::of(2).host(listener)?)?, 30.0);
    /// assert_eq!(second.join().unwrap()?, 30.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ShardError::Devices`] if the number of devices is not a multiple of the number of processes;
    /// [`ShardError::Tape`] for a backend with an autodiff tape.
    pub fn across(mut self, processes: &Processes) -> Result<Self> {
        let (devices, count) = (self.mesh.devices(), processes.count());
        if !devices.is_multiple_of(count) {
            return Err(ShardError::Devices { devices, processes: count });
        }
        if B::ad_enabled(&B::Device::default()) {
            return Err(ShardError::Tape);
        }
        let layout = DeviceAssignment { processes: count, each: devices / count };
        self.processes = Some((processes.clone(), layout));
        self.plans = Mutex::default();
        Ok(self)
    }

    /// Evaluates the function. Arguments and results are full tensors.
    ///
    /// # Errors
    /// Before any computation: arguments that do not fit the mesh or the specs, and [`ShardError::Compile`] for a
    /// function that cannot be recorded. [`ShardError::Device`] if an operation fails on a device, which aborts the
    /// call on all devices. Across processes: [`ShardError::Mismatch`] and [`ShardError::Refused`] before any
    /// computation, and [`ShardError::Lost`].
    pub fn call(&self, arguments: I::On<B>) -> Result<O::On<B>> {
        let arguments = Arguments::new(arguments);
        let plan = self.plan_of(&arguments, 0);
        let inputs: Vec<_> = arguments.values().iter().map(CallInput::Full).collect();
        let results = self.execute(&plan, &arguments, &inputs)?;
        Ok(plan?.graph.build(results.full)?)
    }

    /// Executes a plan, or reports to the other processes that there is none.
    fn execute(
        &self,
        plan: &Result<Arc<ExecutionPlan<B>>>,
        arguments: &Arguments<B>,
        inputs: &[CallInput<'_, B>],
    ) -> Result<CallResults<B>> {
        match &self.processes {
            None => {
                let plan = plan.as_ref().map_err(Clone::clone)?;
                let devices = self.mesh.devices();
                run(plan, inputs, &Local::new(devices), 0..devices)
            }
            Some((processes, layout)) => call_across(processes, *layout, plan, arguments, inputs),
        }
    }

    /// Execution plan of a call with these arguments.
    ///
    /// # Errors
    /// As [`Sharded::call`], except those of devices and other processes.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_transforms::compile::Traced;
    /// use burn_t4a_transforms::shard::{Mesh, PartitionSpec, shard_map};
    ///
    /// type B = BurnT4a;
    /// // Rows of the weight are split, so that products are partial sums.
    /// let specs = [PartitionSpec::split(["", "model"]), PartitionSpec::split(["model", ""])];
    /// let f = |(x, w): (Tensor<Traced<B>, 2>, Tensor<Traced<B>, 2>)| x.matmul(w);
    /// let mesh = Mesh::new([("model", 2)])?;
    /// let f = shard_map(f, &mesh, specs, [PartitionSpec::replicated()]);
    /// let ones = |shape: [usize; 2]| Tensor::<B, 2>::ones(shape, &T4aDevice);
    /// let plan = f.plan((ones([4, 6]), ones([6, 8])))?;
    /// println!("{plan}");
    /// // Each device sends its 4 × 8 numbers of 4 bytes to the other one, in the same process.
    /// assert_eq!((plan.bytes(), plan.sent_by(0)), (4 * 8 * 4, 0));
    /// # Ok::<(), burn_t4a_transforms::shard::ShardError>(())
    /// ```
    pub fn plan(&self, arguments: I::On<B>) -> Result<Arc<ExecutionPlan<B>>> {
        self.plan_of(&Arguments::new(arguments), 0)
    }
}

/// Executes the share of this process of a call across processes.
fn call_across<B: Backend>(
    processes: &Processes,
    layout: DeviceAssignment,
    plan: &Result<Arc<ExecutionPlan<B>>>,
    arguments: &Arguments<B>,
    inputs: &[CallInput<'_, B>],
) -> Result<CallResults<B>> {
    // Calls are serialised, in an order common to all processes.
    let _call = processes.call();
    let board = processes.board();
    let local = Arc::new(Local::new(layout.each));
    let outcome = (|| {
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => {
                // The other processes receive the refusal; the local error is returned even if sending fails.
                let _ = board.begin(Err(error), None);
                return Err(error.clone());
            }
        };
        let across = plan.across.as_ref();
        let (traffic, identity) =
            across.unwrap_or_else(|| unreachable!("the plan is one for processes"));
        let own = local.clone();
        let alarm: Alarm = Arc::new(move |failure| own.exchange.fail(failure));
        let begun = board.begin(Ok((identity.digests, traffic.clone())), Some(alarm));
        begun.map_err(|differs| match differs {
            Differs::Error(error) => error,
            Differs::Digest { process, at } => {
                let (what, here) = identity.told(at);
                ShardError::Mismatch { process, what, here }
            }
        })?;
        let device = arguments.values().first().map(Value::device).unwrap_or_default();
        let across = Across { board, layout, plan, local: &*local, device };
        let values = run(plan, inputs, &across, layout.devices(board.rank))?;
        board.finish()?;
        Ok(values)
    })();
    // Failures before the start of the call are detected by every process itself; only later ones are sent.
    if let Err(failure @ (ShardError::Lost { .. } | ShardError::Device { .. })) = &outcome {
        board.fail(failure.clone());
    }
    board.end();
    outcome
}
