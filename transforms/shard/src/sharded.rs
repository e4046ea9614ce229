//! Functions on a mesh.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;
use burn_t4a::ext::tree::Tree;
use burn_t4a_compile::Traced;
use burn_t4a_compile::graph::{Arguments, Graph, Key, Meta, Recent, Value, Word, mark};
use burn_tensor::Tensor;

use crate::collectives::Local;
use crate::error::{Result, ShardError};
use crate::mesh::Mesh;
use crate::plan::{Plan, RESHARD};
use crate::processes::{Across, Alarm, Differs, Processes};
use crate::run::run;
use crate::spec::{Spec, Split};
use crate::traffic::Layout;

/// Plans that are kept.
const CAPACITY: usize = 16;

type Plans<B> = Recent<Key, Arc<Plan<B>>>;

/// A function spread over a mesh.
///
/// It may be called from several threads.
pub struct Sharded<B: Backend, I, O, F> {
    function: F,
    mesh: Mesh,
    inputs: Vec<Spec>,
    outputs: Vec<Spec>,
    processes: Option<(Processes, Layout)>,
    plans: Mutex<Plans<B>>,
    of: PhantomData<fn(I) -> O>,
}

/// Spreads a function of trees of tensors over a mesh.
///
/// There is a spec for each tensor of the arguments and of the results, in order, or one for all of them. The
/// function is written for whole tensors, runs on them once per shapes and is recorded: so it has to be a
/// function, as for [`compile`](burn_t4a_compile::compile), and tensors that it captures are constants
/// everywhere. Each call then runs the recorded operations on every device, on its parts; what the
/// operations need of other devices, [`Sharded::plan`] tells.
///
/// The result is that of the function: to the bit where no sum is split, else sums of parts are added in the
/// order of the mesh, whatever the devices' pace. Random numbers are drawn once and shared.
///
/// Gradients need nothing more: in a function that has a reverse pass inside, cotangents of replicated
/// parameters are sums over devices by the same rules; with a tape around it, on `Autodiff<B>`, the
/// collectives are differentiated like all other operations.
///
/// Devices are threads of this process; all of them work on the tensors of one backend. They are threads of
/// several processes [`across`](Sharded::across) those.
pub fn shard_map<B, I, O, F>(
    function: F,
    mesh: &Mesh,
    inputs: impl IntoIterator<Item = Spec>,
    outputs: impl IntoIterator<Item = Spec>,
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

/// Inside of a function on a mesh: splits a tensor so from here on, wherever it came from. The tensor itself
/// anywhere else.
pub fn reshard<B: Backend, const D: usize>(
    x: Tensor<Traced<B>, D>,
    spec: &Spec,
) -> Tensor<Traced<B>, D> {
    mark(x, RESHARD, spec.names().into_iter().map(Word::Text).collect())
}

fn splits(
    mesh: &Mesh,
    what: &'static str,
    specs: &[Spec],
    metas: &[&Meta],
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
    fn plans(&self) -> MutexGuard<'_, Plans<B>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan_of(&self, arguments: &Arguments<B>) -> Result<Arc<Plan<B>>> {
        let key = arguments.key();
        if let Some(plan) = self.plans().find(&key) {
            return Ok(plan.clone());
        }
        let metas: Vec<Meta> = arguments.values().iter().map(|x| x.meta()).collect();
        let metas: Vec<&Meta> = metas.iter().collect();
        let paths = arguments.paths();
        let inputs = splits(&self.mesh, "arguments", &self.inputs, &metas, &paths)?;
        let graph = Graph::record(&self.function, arguments)?;
        let metas: Vec<&Meta> = graph.outputs().iter().map(|&v| &graph.metas()[v]).collect();
        let outputs = splits(&self.mesh, "results", &self.outputs, &metas, &graph.paths())?;
        let processes = self.processes.as_ref().map(|(own, layout)| (*layout, own.rank(), &key));
        let plan = Arc::new(Plan::new(&self.mesh, graph, inputs, &outputs, processes)?);
        self.plans().put(key, plan.clone(), CAPACITY);
        Ok(plan)
    }

    /// Spreads the devices over processes, as many over each, in the order of the mesh.
    ///
    /// Each process calls the function, in the same order as others, with whole tensors of which it uses the
    /// parts that its devices have, and gets whole results, as all others do. Calls begin when all processes
    /// have come with the same mesh, arguments of the same shapes, the same program and the same captured
    /// tensors, and end when all have what they need. Results are to the bit those of a mesh in one process.
    ///
    /// Gradients are taken inside of the function, on `Autodiff<Traced<B>>`.
    ///
    /// ```
    /// use std::net::TcpListener;
    ///
    /// use burn::tensor::Tensor;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_compile::Traced;
    /// use burn_t4a_shard::{Mesh, Processes, Rendezvous, ShardError, Spec, shard_map};
    ///
    /// type B = BurnT4a;
    /// // What each process does.
    /// fn program(processes: &Processes) -> Result<f32, ShardError> {
    ///     let mesh = Mesh::new([("data", 4)])?;
    ///     let f = |x: Tensor<Traced<B>, 1>| (x.clone() * x).sum();
    ///     let f = shard_map(f, &mesh, [Spec::split(["data"])], [Spec::replicated()]);
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
    /// [`ShardError::Devices`]; [`ShardError::Tape`] for a backend with a tape.
    pub fn across(mut self, processes: &Processes) -> Result<Self> {
        let (devices, count) = (self.mesh.devices(), processes.count());
        if !devices.is_multiple_of(count) {
            return Err(ShardError::Devices { devices, processes: count });
        }
        if B::ad_enabled(&B::Device::default()) {
            return Err(ShardError::Tape);
        }
        let layout = Layout { processes: count, each: devices / count };
        self.processes = Some((processes.clone(), layout));
        self.plans = Mutex::default();
        Ok(self)
    }

    /// Calls the function: whole tensors in, whole tensors out.
    ///
    /// # Errors
    /// What does not fit mesh or specs, before any work; [`ShardError::Compile`] for a function that cannot
    /// be recorded; [`ShardError::Device`] if a device fails: the others end then, too. Across processes,
    /// [`ShardError::Mismatch`] and [`ShardError::Refused`] before any work, and [`ShardError::Lost`].
    pub fn call(&self, arguments: I::On<B>) -> Result<O::On<B>> {
        let arguments = Arguments::new(arguments);
        let plan = self.plan_of(&arguments);
        let values = match &self.processes {
            None => {
                let plan = plan.as_ref().map_err(Clone::clone)?;
                let devices = self.mesh.devices();
                run(plan, arguments.values(), &Local::new(devices), 0..devices)?
            }
            Some((processes, layout)) => call_across(processes, *layout, &plan, &arguments)?,
        };
        Ok(plan?.graph.build(values)?)
    }

    /// What a call with such arguments does.
    ///
    /// # Errors
    /// As [`Sharded::call`], but for devices and other processes.
    pub fn plan(&self, arguments: I::On<B>) -> Result<Arc<Plan<B>>> {
        self.plan_of(&Arguments::new(arguments))
    }
}

/// The part of a call that this process does.
fn call_across<B: Backend>(
    processes: &Processes,
    layout: Layout,
    plan: &Result<Arc<Plan<B>>>,
    arguments: &Arguments<B>,
) -> Result<Vec<Value<B>>> {
    // One call at a time, in an order that all processes have in common.
    let _call = processes.call();
    let board = processes.board();
    let local = Arc::new(Local::new(layout.each));
    let outcome = (|| {
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => {
                // The others are told; whatever they say, this is why.
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
        let values = run(plan, arguments.values(), &across, layout.devices(board.rank))?;
        board.finish()?;
        Ok(values)
    })();
    // What kept the call from beginning the others see themselves.
    if let Err(failure @ (ShardError::Lost { .. } | ShardError::Device { .. })) = &outcome {
        board.fail(failure.clone());
    }
    board.end();
    outcome
}
