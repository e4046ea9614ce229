//! Functions on a mesh.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;
use burn_t4a_compile::graph::{Arguments, Graph, Key, Meta, Word, mark};
use burn_t4a_compile::{Traced, Values};
use burn_tensor::Tensor;

use crate::error::{Result, ShardError};
use crate::mesh::Mesh;
use crate::plan::{Plan, RESHARD};
use crate::run::run;
use crate::spec::{Spec, Split};

/// Plans that are kept.
const CAPACITY: usize = 16;

/// The least recently used first.
type Plans<B> = Vec<(Key, Arc<Plan<B>>)>;

/// A function spread over a mesh.
///
/// It may be called from several threads.
pub struct Sharded<B: Backend, I, O, F> {
    function: F,
    mesh: Mesh,
    inputs: Vec<Spec>,
    outputs: Vec<Spec>,
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
/// Devices are threads of this process; all of them work on the tensors of one backend.
pub fn shard_map<B, I, O, F>(
    function: F,
    mesh: &Mesh,
    inputs: impl IntoIterator<Item = Spec>,
    outputs: impl IntoIterator<Item = Spec>,
) -> Sharded<B, I, O, F>
where
    B: Backend,
    I: Values<Traced<B>>,
    O: Values<Traced<B>>,
    F: Fn(I) -> O,
{
    Sharded {
        function,
        mesh: mesh.clone(),
        inputs: inputs.into_iter().collect(),
        outputs: outputs.into_iter().collect(),
        plans: Mutex::new(Vec::new()),
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
    I: Values<Traced<B>>,
    O: Values<Traced<B>>,
    F: Fn(I) -> O,
{
    fn plans(&self) -> MutexGuard<'_, Plans<B>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan_of(&self, arguments: &Arguments<B>) -> Result<Arc<Plan<B>>> {
        let key = arguments.key();
        let known = {
            let mut plans = self.plans();
            let at = plans.iter().position(|(other, _)| *other == key);
            at.map(|at| {
                plans[at..].rotate_left(1);
                plans[plans.len() - 1].1.clone()
            })
        };
        if let Some(plan) = known {
            return Ok(plan);
        }
        let metas: Vec<Meta> = arguments.values().iter().map(|x| x.meta()).collect();
        let metas: Vec<&Meta> = metas.iter().collect();
        let paths = arguments.paths();
        let inputs = splits(&self.mesh, "arguments", &self.inputs, &metas, &paths)?;
        let graph = Graph::record(&self.function, arguments)?;
        let metas: Vec<&Meta> = graph.outputs().iter().map(|&v| &graph.metas()[v]).collect();
        let outputs = splits(&self.mesh, "results", &self.outputs, &metas, &graph.paths())?;
        let plan = Arc::new(Plan::new(&self.mesh, graph, inputs, &outputs)?);
        let mut plans = self.plans();
        plans.push((key, plan.clone()));
        if plans.len() > CAPACITY {
            plans.remove(0);
        }
        Ok(plan)
    }

    /// Calls the function: whole tensors in, whole tensors out.
    ///
    /// # Errors
    /// What does not fit mesh or specs, before any work; [`ShardError::Compile`] for a function that cannot
    /// be recorded; [`ShardError::Device`] if a device fails: the others end then, too.
    pub fn call(&self, arguments: I::On<B>) -> Result<O::On<B>> {
        let arguments = Arguments::new(arguments);
        let plan = self.plan_of(&arguments)?;
        Ok(plan.graph.build(run(&plan, arguments.values())?)?)
    }

    /// What a call with such arguments does.
    ///
    /// # Errors
    /// As [`Sharded::call`], but for devices.
    pub fn plan(&self, arguments: I::On<B>) -> Result<Arc<Plan<B>>> {
        self.plan_of(&Arguments::new(arguments))
    }
}
