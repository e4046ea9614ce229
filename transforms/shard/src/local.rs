//! `local_map`: functions of the shards of one device, written with the collectives of `vmap`.
//!
//! The devices along a mesh axis are the examples of a `vmap`: a tensor axis of size n that is split over d devices becomes
//! two axes, d and n/d, of which the first is mapped. Inside of `shard_map` the mapped axis stays split, so that each device
//! computes its own example, and reductions over examples are collectives between devices.

use std::cell::{Cell, OnceCell};

use burn_backend::{Backend, DType, Shape};
use burn_t4a::ext::tree::{Leaf, Leaves, OneBackend, Structure, Tree, TreeError, build, flatten};
use burn_t4a_compile::graph::TensorType;
use burn_t4a_vmap::{Axes, Vmap, VmapError, vmap};

use crate::error::{Result, ShardError};
use crate::mesh::Mesh;
use crate::spec::{PartitionSpec, Split};

/// A function of the shards of one device; created by [`local_map`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `call`"]
pub struct LocalMap<F> {
    function: F,
    /// The axis of the function.
    mesh: Mesh,
    inputs: Vec<PartitionSpec>,
    outputs: Vec<PartitionSpec>,
}

/// A function of local shards along one mesh axis, as the function of `jax.shard_map`.
///
/// `function` is a function on [`Vmap<B>`](Vmap) of the shards of one device. Devices exchange values by
/// [`collective`](burn_t4a_vmap::collective): `psum`, `pmean`, `pmax`, `pmin`, `all_gather`, `axis_index`, `axis_size` and
/// `pshuffle` over the axis `Own`. `inputs` and `outputs` hold one spec per tensor of the arguments and results, in order,
/// or a single spec for all of them; they name no other axis than `axis`. A result without it must be the same on all
/// devices, for instance a sum over them.
///
/// Inside of [`shard_map`](crate::shard_map) with the same specs each device computes its shards, and collectives
/// are communication that [`Sharded::plan`](crate::Sharded::plan) lists. Outside of it all shards are computed as one batch.
/// For further mesh axes, nest: in a `local_map` on `Vmap<Vmap<B>>`, `Own` is the inner axis and `Outer<Own>` the outer one.
/// Gradients need no extra code: of the whole map on `Autodiff<B>`, or of a function of one device on `Autodiff<Vmap<B>>`,
/// whose gradients `psum` then adds up.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::compile::Traced;
/// use burn_t4a_transforms::shard::{Mesh, PartitionSpec, local_map, shard_map};
/// use burn_t4a_transforms::vmap::Vmap;
/// use burn_t4a_transforms::vmap::collective::{Own, psum};
///
/// type T = Traced<BurnT4a>;
/// let mesh = Mesh::new([("data", 2)])?;
/// let rows = [PartitionSpec::split(["data"])];
/// // The share of each row in the sum over all devices.
/// let share = |x: Tensor<Vmap<T>, 2>| {
///     let local = x.clone().sum();
///     x / psum::<Own, _, _>(local).unwrap().unsqueeze()
/// };
/// let share = local_map(share, &mesh, "data", rows.clone(), rows.clone())?;
/// let f = |x: Tensor<T, 2>| -> Tensor<T, 2> { share.call(x).unwrap() };
/// let f = shard_map(f, &mesh, rows.clone(), rows);
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [5.0, 8.0]], &T4aDevice);
/// f.call(x)?.into_data().assert_eq(&[[0.0625f32, 0.125], [0.3125, 0.5]].into(), false);
/// # Ok::<(), burn_t4a_transforms::shard::ShardError>(())
/// ```
///
/// # Errors
/// [`ShardError::UnknownAxis`] if the mesh has no axis of this name.
pub fn local_map<F>(
    function: F,
    mesh: &Mesh,
    axis: &str,
    inputs: impl IntoIterator<Item = PartitionSpec>,
    outputs: impl IntoIterator<Item = PartitionSpec>,
) -> Result<LocalMap<F>> {
    let Some((name, size)) = mesh.axes().iter().find(|(name, _)| name == axis) else {
        let axes = mesh.axes().iter().map(|axis| axis.0.clone()).collect();
        let leaf = "the function of local_map".to_owned();
        return Err(ShardError::UnknownAxis { leaf, name: axis.to_owned(), axes });
    };
    let mesh = Mesh::new([(&**name, *size)])?;
    let (inputs, outputs) = (inputs.into_iter().collect(), outputs.into_iter().collect());
    Ok(LocalMap { function, mesh, inputs, outputs })
}

impl<F> LocalMap<F> {
    /// Evaluates the function on all shards. Arguments and results are full tensors of the same ranks as the shards.
    ///
    /// # Errors
    /// Before the function runs: [`ShardError::Specs`], [`ShardError::Rank`], [`ShardError::Divide`] and
    /// [`ShardError::UnknownAxis`] for specs that do not fit the arguments. Afterwards: specs that do not fit the
    /// results, [`ShardError::Varies`] for a result that differs between devices and has no axis for them, and
    /// [`ShardError::Vmap`] as [`Vectorized::call`](burn_t4a_vmap::Vectorized::call).
    pub fn call<B, A, R>(&self, arguments: A::On<B>) -> Result<R::On<B>>
    where
        B: Backend,
        A: Tree<Vmap<B>>,
        R: Tree<Vmap<B>>,
        F: Fn(A) -> R,
    {
        let (structure, leaves) = flatten::<B, _>(arguments);
        let axes = self.axes("arguments", &self.inputs, &structure, &leaves)?;
        let shards = leaves.into_iter().zip(&axes).map(|(leaf, axis)| match *axis {
            Some(axis) => self.apart(leaf, axis),
            None => leaf,
        });
        let shards = FlatTree { structure: structure.clone(), leaves: shards.collect() };

        // The number of results and their axes exist when the function has run.
        let (results, failure) = (OnceCell::new(), Cell::new(None));
        let local = |shards: FlatTree<Vmap<B>>| {
            let run = || {
                let arguments: A =
                    build(&shards.structure, shards.leaves).map_err(VmapError::from)?;
                let (structure, leaves) = flatten((self.function)(arguments));
                let axes = self.results(&structure, &leaves)?;
                Ok((structure, axes, leaves))
            };
            let (structure, axes, leaves) = run().unwrap_or_else(|error: ShardError| {
                failure.set(Some(error));
                (Structure::Node(Vec::new()), Vec::new(), Vec::new())
            });
            // Results that differ between devices precede those that do not.
            let (split, whole): (Vec<_>, Vec<_>) =
                leaves.into_iter().zip(&axes).partition(|(_, axis)| axis.is_some());
            let only = |all: Vec<(Leaf<Vmap<B>>, _)>| FlatTree::list(all.into_iter().map(|x| x.0));
            let _ = results.set((structure, axes.clone()));
            (only(split), only(whole))
        };
        let map = vmap(local).in_axes(nested(&structure, &mut axes.iter().copied()));
        let map = map.out_axes((Axes::At(0), Axes::None)).size(self.mesh.devices());
        let found = map.call::<B, _, _, _, (FlatTree<B>, FlatTree<B>)>(shards);
        if let Some(failure) = failure.take() {
            return Err(failure);
        }
        let (split, whole) = found?;
        let (structure, axes) =
            results.into_inner().unwrap_or_else(|| unreachable!("the function has run"));
        let (mut split, mut whole) = (split.leaves.into_iter(), whole.leaves.into_iter());
        let leaves = axes.into_iter().map(|axis| match axis {
            Some(axis) => Ok(together(split.next().ok_or_else(missing)?, axis)),
            None => whole.next().ok_or_else(missing),
        });
        let leaves = leaves.collect::<Result<Vec<_>, VmapError>>()?;
        Ok(build(&structure, leaves).map_err(VmapError::from)?)
    }

    /// The split axis of each full tensor.
    fn axes<B: Backend>(
        &self,
        what: &'static str,
        specs: &[PartitionSpec],
        structure: &Structure,
        leaves: &[Leaf<B>],
    ) -> Result<Vec<Option<usize>>> {
        let metas = leaves.iter().map(|leaf| (leaf.shape().to_vec(), leaf.dtype())).collect();
        self.resolved(what, specs, structure, metas)
    }

    /// The axis of each result of the function along which devices differ.
    fn results<B: Backend>(
        &self,
        structure: &Structure,
        leaves: &[Leaf<Vmap<B>>],
    ) -> Result<Vec<Option<usize>>> {
        // Each axis of a full result is a multiple of the number of devices if it is split, so that shapes of shards
        // are extended along all axes to check the spec.
        let full = |leaf: &Leaf<Vmap<B>>| {
            let sizes = leaf.shape().iter().map(|n| n * self.mesh.devices()).collect();
            (sizes, leaf.dtype())
        };
        let metas = leaves.iter().map(full).collect();
        let axes = self.resolved("results", &self.outputs, structure, metas)?;
        let paths = structure.paths();
        for ((leaf, axis), path) in leaves.iter().zip(&axes).zip(paths) {
            let differs = match leaf {
                Leaf::Float(x) => x.is_batched(),
                Leaf::Int(x) => x.is_batched(),
                Leaf::Bool(x) => x.is_batched(),
            };
            if differs && axis.is_none() {
                return Err(ShardError::Varies { leaf: path, axis: self.mesh.name(0).to_owned() });
            }
        }
        Ok(axes)
    }

    fn resolved(
        &self,
        what: &'static str,
        specs: &[PartitionSpec],
        structure: &Structure,
        metas: Vec<(Vec<usize>, DType)>,
    ) -> Result<Vec<Option<usize>>> {
        if specs.len() != metas.len() && specs.len() != 1 {
            return Err(ShardError::Specs { what, required: metas.len(), given: specs.len() });
        }
        // One spec for all of them, or one for each.
        let specs = specs.iter().cycle();
        let all = specs.zip(structure.paths()).zip(metas);
        let one = |((spec, path), (shape, dtype)): ((&PartitionSpec, String), _)| {
            let leaf = format!("leaf {path} of the {what} of local_map");
            let Split(axes) = spec.on(&self.mesh, &leaf, &TensorType { shape, dtype })?;
            Ok(axes.iter().position(|over| !over.is_empty()))
        };
        all.map(one).collect()
    }

    /// Splits an axis into the axis of devices and that of their shards.
    fn apart<B: Backend>(&self, leaf: Leaf<B>, axis: usize) -> Leaf<B> {
        let mut shape = leaf.shape().to_vec();
        shape[axis] /= self.mesh.devices();
        shape.insert(axis, self.mesh.devices());
        reshaped(leaf, shape)
    }
}

fn missing() -> VmapError {
    TreeError::Structure { required: "one more leaf".into(), given: "none".into() }.into()
}

/// Merges axis 0, of devices, into `axis` of their shards.
fn together<B: Backend>(leaf: Leaf<B>, axis: usize) -> Leaf<B> {
    let shape = leaf.shape();
    let mut order: Vec<usize> = (1..shape.num_dims()).collect();
    order.insert(axis, 0);
    let mut merged: Vec<usize> = shape[1..].to_vec();
    merged[axis] *= shape[0];
    if axis == 0 {
        return reshaped(leaf, merged);
    }
    let leaf = match leaf {
        Leaf::Float(x) => Leaf::Float(B::float_permute(x, &order)),
        Leaf::Int(x) => Leaf::Int(B::int_permute(x, &order)),
        Leaf::Bool(x) => Leaf::Bool(B::bool_permute(x, &order)),
    };
    reshaped(leaf, merged)
}

fn reshaped<B: Backend>(leaf: Leaf<B>, shape: Vec<usize>) -> Leaf<B> {
    let shape = Shape::from(shape);
    match leaf {
        Leaf::Float(x) => Leaf::Float(B::float_reshape(x, shape)),
        Leaf::Int(x) => Leaf::Int(B::int_reshape(x, shape)),
        Leaf::Bool(x) => Leaf::Bool(B::bool_reshape(x, shape)),
    }
}

/// The axes of leaves as a tree of this structure.
fn nested(structure: &Structure, axes: &mut impl Iterator<Item = Option<usize>>) -> Axes {
    match structure {
        Structure::Leaf => axes.next().flatten().map_or(Axes::None, |axis| Axes::At(axis as isize)),
        Structure::Static(_) => Axes::None,
        _ => Axes::Each(structure.children().into_iter().map(|one| nested(one, axes)).collect()),
    }
}

/// A tree of any structure.
struct FlatTree<B: Backend> {
    structure: Structure,
    leaves: Vec<Leaf<B>>,
}

impl<B: Backend> FlatTree<B> {
    fn list(leaves: impl Iterator<Item = Leaf<B>>) -> Self {
        let leaves: Vec<_> = leaves.collect();
        Self { structure: Structure::Node(vec![Structure::Leaf; leaves.len()]), leaves }
    }
}

impl<B: Backend> Tree<B> for FlatTree<B> {
    type On<C: Backend> = OneBackend<C>;

    fn structure(&self) -> Structure {
        self.structure.clone()
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        all.extend(self.leaves);
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
        let own = structure.paths().into_iter().map(|_| leaves.any(&Structure::Leaf));
        Ok(Self { structure: structure.clone(), leaves: own.collect::<Result<_, _>>()? })
    }
}
