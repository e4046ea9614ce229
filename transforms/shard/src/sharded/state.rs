//! State of a sharded function that stays on the devices between calls.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use burn_backend::Backend;
use burn_t4a::ext::tree::Tree;
use burn_t4a_compile::graph::{Arguments, TensorType, Value};
use burn_t4a_compile::{CompileError, Traced};

use super::{Sharded, splits};
use crate::error::{Result, ShardError};
use crate::mesh::Mesh;
use crate::parts::{own, without_elements};
use crate::plan::ExecutionPlan;
use crate::run::{CallInput, DeviceParts};
use crate::spec::{PartitionSpec, Split};

/// A tree of tensors whose parts stay on the devices of a mesh between calls: made by [`Sharded::place`], replaced by
/// [`Sharded::step`], and read by [`Sharded::gather`].
pub struct ShardedState<B: Backend, S> {
    mesh: Mesh,
    /// The tree with tensors of the full shapes that store no elements.
    like: Arguments<B>,
    splits: Vec<Split>,
    parts: Vec<DeviceParts<B>>,
    /// The last plan whose results have the form of the state.
    checked: Option<Arc<ExecutionPlan<B>>>,
    of: PhantomData<fn() -> S>,
}

/// The form of a tensor.
fn form<B: Backend>(meta: &TensorType, device: &B::Device) -> Result<Value<B>> {
    let failed = |message| CompileError::Operation { operation: "a state", message };
    Ok(without_elements(meta, device).map_err(failed)?)
}

impl<B, S, X, Y, F> Sharded<B, (S, X), (S, Y), F>
where
    B: Backend,
    S: Tree<Traced<B>>,
    X: Tree<Traced<B>>,
    Y: Tree<Traced<B>>,
    F: Fn((S, X)) -> (S, Y),
{
    /// Distributes a state, the first argument of the function, over the devices. It stays there: each [`Sharded::step`]
    /// replaces it by the first result of the function, which must have the same form and specs.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_transforms::compile::Traced;
    /// use burn_t4a_transforms::shard::{Mesh, PartitionSpec, shard_map};
    ///
    /// type B = BurnT4a;
    /// type Vector<A> = Tensor<A, 1>;
    /// let mesh = Mesh::new([("model", 2)])?;
    /// // The state is split over the devices, a step and its loss are not.
    /// let (parts, whole) = (PartitionSpec::split(["model"]), PartitionSpec::replicated());
    /// let step = |(w, rate): (Vector<Traced<B>>, Vector<Traced<B>>)| {
    ///     let loss = (w.clone() * w.clone()).sum();
    ///     (w.clone() - w * 2.0 * rate, loss)
    /// };
    /// let step = shard_map(step, &mesh, [parts.clone(), whole.clone()], [parts, whole]);
    ///
    /// let mut w = step.place(Tensor::<B, 1>::from_floats([1.0, 2.0, 3.0, 4.0], &T4aDevice))?;
    /// let rate = Tensor::<B, 1>::from_floats([0.25], &T4aDevice);
    /// let losses = [step.step(&mut w, rate.clone())?, step.step(&mut w, rate)?];
    /// assert_eq!(losses.map(|loss| loss.into_scalar()), [30.0, 7.5]);
    /// step.gather(&w)?.into_data().assert_eq(&[0.25f32, 0.5, 0.75, 1.0].into(), true);
    /// # Ok::<(), burn_t4a_transforms::shard::ShardError>(())
    /// ```
    ///
    /// # Errors
    /// Those of specs that do not fit the mesh or the tensors.
    pub fn place(&self, state: S::On<B>) -> Result<ShardedState<B, S>> {
        let given = Arguments::new(state);
        let metas: Vec<TensorType> = given.values().iter().map(Value::meta).collect();
        let all: Vec<&TensorType> = metas.iter().collect();
        let specs = of_state(&self.inputs, metas.len())?;
        let splits = splits(&self.mesh, "arguments", specs, &all, &given.paths())?;
        let here = match &self.processes {
            Some((processes, layout)) => layout.devices(processes.rank()),
            None => 0..self.mesh.devices(),
        };
        let part = |x: &Value<B>, split: &Split, device: usize| {
            here.contains(&device).then(|| own(x.clone(), split, &self.mesh, device))
        };
        let parts = given.values().iter().zip(&splits).map(|(x, split)| {
            (0..self.mesh.devices()).map(|device| part(x, split, device)).collect()
        });
        let parts = parts.collect();
        let forms = given.values().iter().zip(&metas).map(|(x, meta)| form(meta, &x.device()));
        let like: S::On<B> = given.build(forms.collect::<Result<_>>()?)?;
        let (mesh, like) = (self.mesh.clone(), Arguments::new(like));
        Ok(ShardedState { mesh, like, splits, parts, checked: None, of: PhantomData })
    }

    /// Evaluates the function on a state and a full argument, replaces the state by the first result, and returns the
    /// second one. The state is not gathered, except when the function is recorded, for the first argument of each shape.
    /// After an error it is what it was before.
    ///
    /// Across processes every process calls this in the same order as the others, as [`Sharded::call`].
    ///
    /// # Errors
    /// As [`Sharded::call`]; [`ShardError::State`] for a state of another mesh, and for a function that returns it in
    /// another form.
    pub fn step(&self, state: &mut ShardedState<B, S>, x: X::On<B>) -> Result<Y::On<B>> {
        let (arguments, plan) = self.planned(state, x);
        let kept = state.parts.len();
        let mut inputs: Vec<_> = state.parts.iter().map(CallInput::Parts).collect();
        inputs.extend(arguments.values()[kept..].iter().map(CallInput::Full));
        let results = self.execute(&plan, &arguments, &inputs)?;
        let plan = plan?;
        let mut all = state.like.values().to_vec();
        all.extend(results.full);
        let (_, y): (S::On<B>, Y::On<B>) = plan.graph.build(all)?;
        state.parts = results.kept;
        state.checked = Some(plan);
        Ok(y)
    }

    /// Execution plan of a [`Sharded::step`] with this argument, for which it may record the function as that does.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_transforms::compile::Traced;
    /// use burn_t4a_transforms::shard::{Mesh, PartitionSpec, shard_map};
    ///
    /// type Row<A> = Tensor<A, 1>;
    /// let step = |(w, x): (Row<Traced<BurnT4a>>, Row<Traced<BurnT4a>>)| (w.clone() + x, w.sum());
    /// let specs = || [PartitionSpec::split(["d"]), PartitionSpec::replicated()];
    /// let step = shard_map(step, &Mesh::new([("d", 2)])?, specs(), specs());
    /// let ones = Tensor::<BurnT4a, 1>::ones([4], &T4aDevice);
    /// let state = step.place(ones.clone())?;
    /// assert!(step.step_plan(&state, ones)?.to_string().contains("(stays)"));
    /// # Ok::<(), burn_t4a_transforms::shard::ShardError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sharded::step`].
    pub fn step_plan(
        &self,
        state: &ShardedState<B, S>,
        x: X::On<B>,
    ) -> Result<Arc<ExecutionPlan<B>>> {
        self.planned(state, x).1
    }

    /// The full tensors of a state.
    ///
    /// # Errors
    /// As [`Sharded::call`]; [`ShardError::State`] for a state of another mesh.
    pub fn gather(&self, state: &ShardedState<B, S>) -> Result<S::On<B>> {
        let specs = of_state(&self.inputs, state.parts.len())?;
        let whole = Sharded::<B, S, S, fn(S) -> S> {
            function: |state| state,
            mesh: self.mesh.clone(),
            inputs: specs.to_vec(),
            outputs: specs.to_vec(),
            processes: self.processes.clone(),
            plans: Mutex::default(),
            of: PhantomData,
        };
        let plan = whole.plan_of(&state.like, 0).and_then(|plan| {
            state.fits(&self.mesh, &plan.inputs)?;
            Ok(plan)
        });
        let inputs: Vec<_> = state.parts.iter().map(CallInput::Parts).collect();
        let results = whole.execute(&plan, &state.like, &inputs)?;
        Ok(plan?.graph.build(results.full)?)
    }

    /// Arguments of a step, whose state has no elements, and its plan.
    fn planned(
        &self,
        state: &ShardedState<B, S>,
        x: X::On<B>,
    ) -> (Arguments<B>, Result<Arc<ExecutionPlan<B>>>) {
        // A tree is built from its own structure.
        let like: S::On<B> = match state.like.build(state.like.values().to_vec()) {
            Ok(like) => like,
            Err(error) => return (Arguments::new(x), Err(error.into())),
        };
        let arguments = Arguments::new((like, x));
        let plan = self.plan_of_step(state, &arguments).and_then(|plan| {
            if !state.checked.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, &plan)) {
                state.fits(&self.mesh, &plan.inputs)?;
                self.check_result(state, &plan)?;
            }
            Ok(plan)
        });
        (arguments, plan)
    }

    /// The plan of a step. A function is recorded with its arguments, which it may factorise or divide by, so the state is
    /// gathered then.
    fn plan_of_step(
        &self,
        state: &ShardedState<B, S>,
        arguments: &Arguments<B>,
    ) -> Result<Arc<ExecutionPlan<B>>> {
        let kept = state.parts.len();
        if let Some(plan) = self.plans().find(&(kept, arguments.key())) {
            return Ok(plan.clone());
        }
        let whole = Arguments::new(self.gather(state)?);
        let values = whole.values().iter().chain(&arguments.values()[kept..]).cloned().collect();
        let whole: (S::On<B>, X::On<B>) = arguments.build(values)?;
        self.plan_of(&Arguments::new(whole), kept)
    }

    /// Checks that the first result has the form of the state.
    fn check_result(&self, state: &ShardedState<B, S>, plan: &ExecutionPlan<B>) -> Result<()> {
        let device = state.like.values().first().map(Value::device).unwrap_or_default();
        let metas = plan.graph.metas();
        let forms = plan.graph.outputs().iter().map(|&value| form(&metas[value], &device));
        let forms: Vec<Value<B>> = forms.collect::<Result<_>>()?;
        let (result, _): (S::On<B>, Y::On<B>) = plan.graph.build(forms)?;
        let result = Arguments::new(result);
        let paths = state.like.paths();
        if result.paths() != paths {
            return Err(ShardError::State { what: "is returned as another tree".to_owned() });
        }
        let leaves = state.like.values().iter().zip(result.values()).zip(&paths);
        for ((x, y), path) in leaves {
            let (from, to) = (x.meta(), y.meta());
            if from != to {
                let what = format!("has {from} at {path} and is returned with {to}");
                return Err(ShardError::State { what });
            }
        }
        for ((split, (_, to)), path) in state.splits.iter().zip(&plan.outputs).zip(&paths) {
            if split != to {
                let [from, to] = [split, to].map(|split| split.show(&self.mesh));
                let what = format!("has the spec {from} at {path} and is returned with {to}");
                return Err(ShardError::State { what });
            }
        }
        Ok(())
    }
}

impl<B: Backend, S> ShardedState<B, S> {
    /// Checks that the parts are those that a plan expects.
    fn fits(&self, mesh: &Mesh, splits: &[Split]) -> Result<()> {
        if self.mesh != *mesh {
            let what = format!("is on the mesh {}, the function on {mesh}", self.mesh);
            return Err(ShardError::State { what });
        }
        match self.splits.iter().zip(splits).position(|(own, other)| own != other) {
            None => Ok(()),
            Some(k) => {
                let [own, other] = [&self.splits[k], &splits[k]].map(|split| split.show(mesh));
                let path = &self.like.paths()[k];
                let what = format!("has the spec {own} at {path}, the function {other}");
                Err(ShardError::State { what })
            }
        }
    }
}

/// The specs of the first argument: one for everything, or the first ones.
fn of_state(specs: &[PartitionSpec], leaves: usize) -> Result<&[PartitionSpec]> {
    if specs.len() == 1 {
        return Ok(specs);
    }
    let few = ShardError::Specs { what: "arguments", required: leaves, given: specs.len() };
    specs.get(..leaves).ok_or(few)
}
