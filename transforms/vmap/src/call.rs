//! Evaluation of a function of one example on a batch.

use std::ops::Range;

use burn_backend::{Backend, Shape, Slice, TensorMetadata};
use burn_t4a::ext::level::LevelGuard;
use burn_t4a::ext::tree::{Leaf, Leaves, Structure, Tree, build, flatten};
use burn_tensor::{Bool, Float, Int};

use crate::active::CallGuard;
use crate::axes::{Axes, resolve};
use crate::backend::Vmap;
use crate::error::{Mapped, VmapError};
use crate::kind::{DataKind, Primitive, on_kind};
use crate::movement::raise;
use crate::random::Random;
use crate::tensor::VmapTensor;

/// Maps `f` over a batch; every operation of `f` is one operation of the backend.
///
/// `f` is a function on `Vmap<B>`; inputs and outputs of [`Vectorized::call`] are tensors of `B` with an additional
/// batch axis, by default axis 0 of every leaf. See [`Vmap`] for the operations that `f` must not use.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::{Vmap, vmap};
///
/// type V = Vmap<BurnT4a>;
/// let a = Tensor::<BurnT4a, 3>::ones([7, 2, 3], &T4aDevice);
/// let b = Tensor::<BurnT4a, 2>::ones([3, 4], &T4aDevice);
/// let product = |(a, b): (Tensor<V, 2>, Tensor<V, 2>)| a.matmul(b);
/// // Two examples at a time; the batch is the last axis of the result.
/// let map = vmap(product).in_axes((0, None)).out_axes(-1).chunk(2);
/// let c: Tensor<BurnT4a, 3> = map.call((a, b))?;
/// assert_eq!(c.dims(), [2, 4, 7]);
/// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
/// ```
pub fn vmap<F>(f: F) -> Vectorized<F> {
    let (in_axes, out_axes) = (Axes::At(0), Axes::At(0));
    Vectorized {
        f,
        in_axes,
        out_axes,
        size: None,
        chunk: None,
        random: Random::Error,
        keeping: false,
    }
}

/// A function mapped over a batch by [`vmap`].
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `call`"]
pub struct Vectorized<F> {
    f: F,
    in_axes: Axes,
    out_axes: Axes,
    size: Option<usize>,
    chunk: Option<usize>,
    random: Random,
    keeping: bool,
}

impl<F> Vectorized<F> {
    /// Sets the mapped axes of the inputs: one for all leaves, or one per subtree. With `None`, all examples share the
    /// input.
    pub fn in_axes(mut self, axes: impl Into<Axes>) -> Self {
        self.in_axes = axes.into();
        self
    }

    /// Sets the batch axis of the outputs. An output that is equal for all examples is broadcast along the axis, or
    /// returned without it for `None`; `None` is an error for outputs that differ between examples.
    pub fn out_axes(mut self, axes: impl Into<Axes>) -> Self {
        self.out_axes = axes.into();
        self
    }

    /// Sets the number of examples, required if no input is mapped: the function captures a batch, such as the
    /// parameters of an ensemble.
    ///
    /// ```
    /// use burn::tensor::{Distribution, Tensor};
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_transforms::vmap::{Random, Vmap, vmap};
    ///
    /// // Two examples that draw the same numbers.
    /// type V = Vmap<BurnT4a>;
    /// let noise = |(): ()| Tensor::<V, 1>::random([3], Distribution::Default, &T4aDevice);
    /// let x: Tensor<BurnT4a, 2> = vmap(noise).size(2).random(Random::Same).call(())?;
    /// let [first, second] = [0, 1].map(|k| x.clone().narrow(0, k, 1).into_data());
    /// first.assert_eq(&second, true);
    /// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
    /// ```
    pub fn size(mut self, examples: usize) -> Self {
        self.size = Some(examples);
        self
    }

    /// Evaluates at most this many examples at a time, which bounds memory. A captured batch must fit in one chunk.
    pub fn chunk(mut self, examples: usize) -> Self {
        self.chunk = Some(examples);
        self
    }

    /// Sets whether examples share the random numbers drawn by the function.
    pub fn random(mut self, random: Random) -> Self {
        self.random = random;
        self
    }

    /// Allows the function to keep tensors that differ between examples, as `BatchNorm` on `Autodiff` keeps its running
    /// statistics: they can be used only in calls with the same batch size, and keep their memory.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    /// use burn_t4a_transforms::vmap::{Vmap, VmapError, vmap};
    /// use std::cell::RefCell;
    ///
    /// type V = Vmap<BurnT4a>;
    /// let last = RefCell::new(None);
    /// let double = |x: Tensor<V, 1>| {
    ///     last.replace(Some(x.clone()));
    ///     x * 2.0
    /// };
    /// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
    /// let refused: Result<Tensor<BurnT4a, 2>, _> = vmap(&double).call(x.clone());
    /// assert!(matches!(refused, Err(VmapError::Keeps)));
    /// let y: Tensor<BurnT4a, 2> = vmap(&double).keeping().call(x)?;
    /// y.into_data().assert_eq(&[[2.0f32, 4.0], [6.0, 8.0]].into(), false);
    /// # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
    /// ```
    pub fn keeping(mut self) -> Self {
        self.keeping = true;
        self
    }

    /// Evaluates the function on all examples.
    ///
    /// A scalar has shape `[1]` in Burn; a batch of scalars is accepted and returned as `[b]` or as `[b, 1]`.
    ///
    /// # Errors
    /// Before the function runs: a call inside another one on the same backend, axes that do not fit, different batch
    /// sizes, chunks of size 0, and arguments that do not match the type of the function. Afterwards: outputs that do
    /// not match the requested type or axes, and a function that keeps a tensor that differs between examples.
    ///
    /// # Panics
    /// If the function panics; see [`Vmap`].
    pub fn call<B, I, A, R, O>(&self, inputs: I) -> Result<O, VmapError>
    where
        B: Backend,
        I: Tree<B>,
        A: Tree<Vmap<B>>,
        R: Tree<Vmap<B>>,
        O: Tree<B>,
        F: Fn(A) -> R,
    {
        let (structure, leaves) = flatten(inputs);
        let (axes, size) = self.entries(&structure, &leaves)?;
        let step = match self.chunk {
            Some(0) => return Err(VmapError::Chunk),
            Some(step) => step.min(size.max(1)),
            None => size.max(1),
        };
        let _level = LevelGuard::enter::<Vmap<B>>().ok_or(VmapError::Nested)?;
        let running = CallGuard::start::<B>(self.random);
        let mut chunks = Vec::new();
        // An empty batch is one chunk, since the function determines the output shapes.
        for start in (0..size.max(1)).step_by(step) {
            let range = start..(start + step).min(size);
            running.chunk(range.len(), start == 0, range.len() == size);
            let part = (range.len() < size).then(|| range.clone());
            let entered = leaves.iter().zip(&axes).map(|(leaf, &axis)| {
                let leaf = leaf.clone();
                on_kind!(leaf, x: K => enter::<B, K>(x, axis, &part))
            });
            let entered: Vec<Leaf<Vmap<B>>> = entered.collect();
            let arguments = build(&structure, entered)?;
            let output = (self.f)(arguments);
            chunks.push(self.leave::<B, R>(output, range.len())?);
        }
        if !self.keeping && running.keeps() {
            return Err(VmapError::Keeps);
        }
        let (structure, mut leaves) = joined(chunks);
        Ok(O::build(&structure, &mut leaves)?)
    }

    /// Mapped axis of each input, and the batch size.
    fn entries<B: Backend>(
        &self,
        structure: &Structure,
        leaves: &[Leaf<B>],
    ) -> Result<(Vec<Option<usize>>, usize), VmapError> {
        let what = "in_axes";
        let named = self.in_axes.of_leaves(what, structure)?;
        let mut axes = Vec::new();
        let mut mapped = Vec::new();
        for ((leaf, axis), path) in leaves.iter().zip(named).zip(structure.paths()) {
            let shape = leaf.shape();
            let Some(axis) = axis else {
                axes.push(None);
                continue;
            };
            let Some(at) = resolve(axis, shape.num_dims()) else {
                return Err(VmapError::Axis { what, leaf: path, axis, shape });
            };
            axes.push(Some(at));
            mapped.push(Mapped { leaf: path, shape, axis: at });
        }
        let size = self.size.or(mapped.first().map(Mapped::size)).ok_or(VmapError::Nothing)?;
        match mapped.iter().all(|leaf| leaf.size() == size) {
            true => Ok((axes, size)),
            false => Err(VmapError::Sizes { given: self.size, leaves: mapped }),
        }
    }

    /// Outputs of a chunk of this size, with the batch at the requested axes.
    fn leave<B: Backend, R: Tree<Vmap<B>>>(
        &self,
        output: R,
        size: usize,
    ) -> Result<Chunk<B>, VmapError> {
        let what = "out_axes";
        let (structure, leaves) = flatten(output);
        let axes = self.out_axes.of_leaves(what, &structure)?;
        let mut all = Vec::new();
        for ((leaf, axis), path) in leaves.into_iter().zip(axes).zip(structure.paths()) {
            let shape = leaf.shape();
            let Some(axis) = axis else {
                if is_batched(&leaf) {
                    return Err(VmapError::Batched { leaf: path });
                }
                let leaf = on_kind!(leaf, x: K => x.into_inner().0);
                all.push(MappedOutput { leaf, axis: None, number: false });
                continue;
            };
            let Some(at) = resolve(axis, shape.num_dims() + 1) else {
                return Err(VmapError::Axis { what, leaf: path, axis, shape });
            };
            let leaf = on_kind!(leaf, x: K => leave::<B, K>(x, size, at));
            all.push(MappedOutput { leaf, axis: Some(at), number: shape[..] == [1] });
        }
        Ok(Chunk { structure, leaves: all })
    }
}

/// Outputs of a chunk.
struct Chunk<B: Backend> {
    structure: Structure,
    leaves: Vec<MappedOutput<B>>,
}

/// An output with its batch axis.
struct MappedOutput<B: Backend> {
    leaf: Leaf<B>,
    axis: Option<usize>,
    /// True if the shape of an example is `[1]`.
    number: bool,
}

/// Wraps a tensor, or a range of its batch, with the batch as axis 0.
fn enter<B: Backend, K: DataKind<B>>(
    mut x: Primitive<B, K>,
    axis: Option<usize>,
    part: &Option<Range<usize>>,
) -> VmapTensor<Primitive<B, K>> {
    let Some(axis) = axis else {
        return VmapTensor::shared(x);
    };
    if let Some(part) = part {
        let mut slices = vec![Slice::full(); axis + 1];
        slices[axis] = Slice::new(part.start as isize, Some(part.end as isize), 1);
        x = K::slice(x, &slices);
    }
    let shape = x.shape();
    let rank = shape.num_dims();
    if rank == 1 {
        return VmapTensor::batched(K::reshape(x, Shape::from([shape[0], 1])));
    }
    let order: Vec<usize> = [axis].into_iter().chain((0..rank).filter(|&k| k != axis)).collect();
    VmapTensor::batched(if axis == 0 { x } else { K::permute(x, &order) })
}

/// Unwraps a tensor, with a batch of this size as axis `at`.
fn leave<B: Backend, K: DataKind<B>>(
    x: VmapTensor<Primitive<B, K>>,
    size: usize,
    at: usize,
) -> Primitive<B, K> {
    let x = raise::<B, K>(x, Some(size));
    let mut order: Vec<usize> = (1..x.rank()).collect();
    order.insert(at, 0);
    if at == 0 { x } else { K::permute(x, &order) }
}

/// Concatenates the outputs of all chunks; outputs without a batch axis are those of the first chunk.
fn joined<B: Backend>(mut chunks: Vec<Chunk<B>>) -> (Structure, Leaves<B>) {
    let first = chunks.remove(0);
    let mut others: Vec<_> = chunks.into_iter().map(|chunk| chunk.leaves.into_iter()).collect();
    let mut all = Vec::new();
    for MappedOutput { leaf, axis, number } in first.leaves {
        let more = others.iter_mut().filter_map(|leaves| leaves.next());
        let more: Vec<Leaf<B>> = more.map(|output| output.leaf).collect();
        let leaf = match axis {
            Some(axis) if !more.is_empty() => cat([leaf].into_iter().chain(more).collect(), axis),
            _ => leaf,
        };
        // The unit axis of a batch of scalars.
        let idle = axis.filter(|_| number).map(|axis| if axis == 0 { 1 } else { 0 });
        all.push((leaf, idle));
    }
    (first.structure, Leaves::with_unit_axes(all))
}

fn cat<B: Backend>(all: Vec<Leaf<B>>, axis: usize) -> Leaf<B> {
    macro_rules! of {
        ($kind:ident) => {{
            let one = |leaf| match leaf {
                Leaf::$kind(x) => x,
                _ => unreachable!("a function returns the same kinds in every chunk"),
            };
            Leaf::$kind(<$kind as DataKind<B>>::cat(all.into_iter().map(one).collect(), axis))
        }};
    }
    match all[0] {
        Leaf::Float(_) => of!(Float),
        Leaf::Int(_) => of!(Int),
        Leaf::Bool(_) => of!(Bool),
    }
}

/// True for a leaf that differs between examples.
fn is_batched<B: Backend>(leaf: &Leaf<Vmap<B>>) -> bool {
    match leaf {
        Leaf::Float(x) => x.is_batched(),
        Leaf::Int(x) => x.is_batched(),
        Leaf::Bool(x) => x.is_batched(),
    }
}
