//! Operations with derivative rules of their own as nodes of Burn's autodiff tape.
//!
//! ```text
//! record        inputs → one output          one node
//! record_many   inputs → several outputs     one node over the flattened outputs, then slices
//! operation     an operation as a value      one node, with any number of inputs and outputs
//! ```
//!
//! The rule is written in operations of the inner backend `B`. If that is itself an
//! `Autodiff<_>`, the rule is recorded there, which is how second derivatives come about. The
//! internals of `burn-autodiff` (nodes, primitives, handles) are touched in this file only.
//!
//! A rule may call `backward` of another graph.

use std::fmt;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_backend::tensor::{Device, FloatTensor};
use burn_backend::{AutodiffBackend, Backend, FloatDType, Shape, Slice, TensorMetadata};
use t4a_diff::{Kept, Operation, Outcome, Reverse, Value};

use crate::accept;
use crate::operation::{Operand, Operations};
use crate::primitive::{Bools, Floats, Indices};

/// A tensor on the tape: the float primitive of `Autodiff<B, C>`.
pub type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

/// Cotangents of N inputs; `None` stands for zero.
pub type Cotangents<B, const N: usize> = [Option<FloatTensor<B>>; N];

/// `y = f(x₁ … x_N)` as one node with a derivative rule of its own.
///
/// `forward` gets the inputs and which of them are tracked, and returns the output with whatever
/// the rule needs of the computation, the residuals; what it saves may depend on what is tracked.
/// It runs at once and only once: the node is never recomputed, also not under
/// `BalancedCheckpointing`. `vjp` gets the residuals, the cotangent of the output and which
/// inputs want a cotangent. It returns one in the shape of each of these inputs; others are
/// ignored, and `None` for an input that wants one is zero. The cotangent may be an expanded view.
///
/// Without a tracked input nothing is recorded and the residuals are dropped.
///
/// ```
/// use burn_autodiff::{Autodiff, checkpoint::strategy::NoCheckpointing};
/// use burn_backend::{Scalar, ops::FloatTensorOps};
/// use burn_dispatch::backends::Flex;
/// use burn_t4a_022_ext::tape;
/// use burn_tensor::{Device, Tensor};
///
/// type B = Flex;
/// type AD = Autodiff<B, NoCheckpointing>;
/// let x = Tensor::<1>::from_floats([1.0, 3.0], &Device::flex().autodiff()).require_grad();
/// // x², with the rule 2 x ȳ
/// let square = tape::record::<B, NoCheckpointing, _, _, 1>(
///     [x.clone().try_into_primitive::<AD>().unwrap()],
///     |[x], _| Ok::<_, std::convert::Infallible>((B::float_mul(x.clone(), x.clone()), x)),
///     |x, cotangent, _| {
///         let twice = B::float_mul_scalar(x, Scalar::Float(2.0));
///         [Some(B::float_mul(twice, cotangent))]
///     },
/// );
/// let y = Tensor::<1>::from_primitive::<AD>(square.unwrap());
/// let gradients = y.sum().backward();
/// x.grad(&gradients).unwrap().into_data().assert_eq(&[2.0f32, 6.0].into(), true);
/// ```
///
/// # Errors
/// Those of `forward`; nothing is recorded then.
pub fn record<B, C, R, E, const N: usize>(
    inputs: [Tracked<B, C>; N],
    forward: impl FnOnce([FloatTensor<B>; N], [bool; N]) -> Result<(FloatTensor<B>, R), E>,
    vjp: impl FnOnce(R, FloatTensor<B>, [bool; N]) -> Cotangents<B, N> + Send + 'static,
) -> Result<Tracked<B, C>, E>
where
    B: Backend,
    C: CheckpointStrategy,
    R: Send + 'static,
{
    let tracked = inputs.each_ref().map(|x| x.is_tracked());
    let arguments = inputs.each_ref().map(|x| Argument::<B>::of(x.primitive()));
    // The guards keep the inputs on the tape until the node is registered.
    let nodes = inputs.each_ref().map(|x| x.node());
    let (output, residuals) = forward(inputs.map(|x| x.into_primitive()), tracked)?;
    let pullback = move |cotangent, wanted| vjp(residuals, cotangent, wanted);
    let node = Pullback { pullback, arguments };
    Ok(match node.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((), output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    })
}

/// `(y₁ … y_M) = f(x₁ … x_N)` as one node with a derivative rule of its own.
///
/// As [`record`], for several outputs of one float dtype. The node holds them flattened, one
/// behind the other, and what is returned are slices of it: `vjp` runs once, with the
/// cotangents of all outputs, zero for those that the loss does not use.
///
/// Outputs that have no derivative, as indices, leave `forward` through a captured variable.
///
/// Cost: one copy of the outputs, and zeros of their total size per output in the reverse pass.
///
/// # Errors
/// Those of `forward`; nothing is recorded then.
pub fn record_many<B, C, R, E, const N: usize, const M: usize>(
    inputs: [Tracked<B, C>; N],
    forward: impl FnOnce([FloatTensor<B>; N], [bool; N]) -> Result<([FloatTensor<B>; M], R), E>,
    vjp: impl FnOnce(R, [FloatTensor<B>; M], [bool; N]) -> Cotangents<B, N> + Send + 'static,
) -> Result<[Tracked<B, C>; M], E>
where
    B: Backend,
    C: CheckpointStrategy,
    R: Send + 'static,
{
    if !inputs.iter().any(|x| x.is_tracked()) {
        let (outputs, _) = forward(inputs.map(|x| x.into_primitive()), [false; N])?;
        return Ok(outputs.map(constant::<B, C>));
    }
    let mut shapes = None;
    let flat = record::<B, C, _, E, N>(
        inputs,
        |inputs, tracked| {
            let (outputs, residuals) = forward(inputs, tracked)?;
            let these = outputs.each_ref().map(|y| y.shape());
            shapes = Some(these.clone());
            Ok((pack::<B>(outputs), (these, residuals)))
        },
        |(shapes, residuals), cotangent, wanted| {
            vjp(residuals, shapes.map(unpack::<B>(cotangent)), wanted)
        },
    )?;
    let shapes = shapes.unwrap_or_else(|| unreachable!("forward has succeeded"));
    Ok(shapes.map(unpack::<Autodiff<B, C>>(flat)))
}

/// An operation as one node whose rule is its vjp on `B`; without a tracked operand nothing is recorded.
/// `outer`: what is tracked by a tape above this one, which needs the hidden results.
///
/// # Errors
/// Those of the operation.
pub(crate) fn operation<O: Operation, B: Operations, C: CheckpointStrategy>(
    op: &O,
    inputs: &[Operand<Autodiff<B, C>>],
    outer: &[bool],
) -> Result<Outcome<Floats<Autodiff<B, C>>>, O::Error> {
    if outer.contains(&true) {
        op.check_second_order()?;
    }
    let float = |x: &Operand<Autodiff<B, C>>| match x {
        Value::Float(x) => Some(x.0.clone()),
        _ => None,
    };
    let floats: Vec<Tracked<B, C>> = inputs.iter().filter_map(float).collect();
    if !floats.iter().any(|x| x.is_tracked()) {
        let below = below(inputs, floats.into_iter().map(Autodiff::<B, C>::inner));
        let out = B::run(op, &below, outer)?;
        return out.try_map(|x| Ok(above(x)), |y| Ok(Floats(constant::<B, C>(y.0))));
    }
    if op.is_composite() {
        return op.portable(inputs, outer);
    }
    match floats.len() {
        1 => node::<O, B, C, 1>(op, inputs, floats, outer),
        2 => node::<O, B, C, 2>(op, inputs, floats, outer),
        3 => node::<O, B, C, 3>(op, inputs, floats, outer),
        4 => node::<O, B, C, 4>(op, inputs, floats, outer),
        _ => packed::<O, B, C>(op, inputs, floats, outer),
    }
}

/// What `vjp` needs: the operation, what it kept, and the shapes of what is on the tape.
struct Recorded<O, B: Operations> {
    op: O,
    kept: Kept<Floats<B>>,
    results: Vec<Shape>,
    hidden: Vec<Shape>,
    /// Which operands are floats.
    floats: Vec<bool>,
}

/// What leaves a node beside its output: shapes of results and of hidden results, and constants.
type Rest<B> = (Vec<Shape>, Vec<Shape>, Vec<Operand<B>>);

impl<O: Operation, B: Operations> Recorded<O, B> {
    /// Runs the operation: the packed results, with hidden ones if there is a tape above, and what is
    /// needed later.
    fn run(
        op: &O,
        inputs: Vec<Operand<B>>,
        tracked: impl IntoIterator<Item = bool>,
        outer: &[bool],
    ) -> Result<(FloatTensor<B>, Self, Rest<B>), O::Error> {
        let mut tracked = tracked.into_iter();
        let floats: Vec<bool> = inputs.iter().map(|x| matches!(x, Value::Float(_))).collect();
        let tracked: Vec<bool> =
            floats.iter().map(|&float| float && tracked.next().unwrap_or(true)).collect();
        let all: Vec<bool> = tracked.iter().zip(outer).map(|(a, b)| a | b).collect();
        let mut out = B::run(op, &inputs, &all)?;
        let kept = Kept::new(B::keep(op, &tracked), &inputs, &out);
        if !outer.contains(&true) {
            out.hidden.clear();
        }
        let shapes = |all: &[Floats<B>]| all.iter().map(|y| y.0.shape()).collect::<Vec<_>>();
        let (results, hidden) = (shapes(&out.results), shapes(&out.hidden));
        let rest = (results.clone(), hidden.clone(), out.extra);
        let route = out.results.first().and_then(|y| B::route(&Value::Float(y.clone())));
        let several = results.len() + hidden.len() > 1;
        let flat = joined::<B>(out.results.into_iter().chain(out.hidden).map(|y| y.0).collect());
        // Views of it keep the route of the operation.
        let flat = match route {
            Some(route) if several => {
                B::with_route(Value::Float(Floats(flat)), route).float().0.clone()
            }
            _ => flat,
        };
        Ok((flat, Self { op: op.clone(), kept, results, hidden, floats }, rest))
    }

    /// Cotangents of the float operands, in their order.
    fn vjp(
        self,
        cotangent: FloatTensor<B>,
        wanted: impl IntoIterator<Item = bool>,
    ) -> Vec<Option<FloatTensor<B>>> {
        let mut wanted = wanted.into_iter();
        let wanted: Vec<bool> =
            self.floats.iter().map(|&float| float && wanted.next().unwrap_or(true)).collect();
        let results = self.results.len();
        let parts = parted::<B>(cotangent, self.results.into_iter().chain(self.hidden).collect());
        let cotangents: Vec<_> = parts.into_iter().map(|x| Some(Floats(x))).collect();
        let (cotangents, hidden) = cotangents.split_at(results);
        let reverse = Reverse { kept: &self.kept, cotangents, hidden, wanted: &wanted };
        let all = accept(B::vjp(&self.op, &reverse));
        let floats = all.into_iter().zip(self.floats).filter(|(_, float)| *float);
        floats.map(|(x, _)| x.map(|x| x.0)).collect()
    }
}

fn node<O: Operation, B: Operations, C: CheckpointStrategy, const N: usize>(
    op: &O,
    inputs: &[Operand<Autodiff<B, C>>],
    floats: Vec<Tracked<B, C>>,
    outer: &[bool],
) -> Result<Outcome<Floats<Autodiff<B, C>>>, O::Error> {
    let Ok(floats) = <[Tracked<B, C>; N]>::try_from(floats) else {
        unreachable!("the number of floats was matched on");
    };
    let mut rest = None;
    let flat = record::<B, C, _, O::Error, N>(
        floats,
        |floats, tracked| {
            let below = below(inputs, floats.into_iter());
            let (flat, recorded, others) = Recorded::run(op, below, tracked, outer)?;
            rest = Some(others);
            Ok((flat, recorded))
        },
        |recorded: Recorded<O, B>, cotangent, wanted| {
            let mut all = recorded.vjp(cotangent, wanted).into_iter();
            std::array::from_fn(|_| all.next().flatten())
        },
    )?;
    Ok(outcome(flat, rest))
}

/// More operands than nodes have inputs for: they enter side by side.
fn packed<O: Operation, B: Operations, C: CheckpointStrategy>(
    op: &O,
    inputs: &[Operand<Autodiff<B, C>>],
    floats: Vec<Tracked<B, C>>,
    outer: &[bool],
) -> Result<Outcome<Floats<Autodiff<B, C>>>, O::Error> {
    let shapes: Vec<Shape> = floats.iter().map(TensorMetadata::shape).collect();
    let operands = shapes.clone();
    let mut rest = None;
    let flat = record::<B, C, _, O::Error, 1>(
        [pack::<Autodiff<B, C>>(floats)],
        |[flat], _| {
            let below = below(inputs, shapes.into_iter().map(unpack::<B>(flat)));
            let (flat, recorded, others) = Recorded::run(op, below, [], outer)?;
            rest = Some(others);
            Ok((flat, recorded))
        },
        |recorded: Recorded<O, B>, cotangent, _| {
            let like = cotangent.clone();
            let zeros = |shape| B::float_zeros(shape, &like.device(), like.dtype().into());
            let all = recorded.vjp(cotangent, []).into_iter().zip(operands);
            [Some(pack::<B>(all.map(|(x, shape)| x.unwrap_or_else(|| zeros(shape)))))]
        },
    )?;
    Ok(outcome(flat, rest))
}

/// Results on the tape, and what has no derivative.
fn outcome<B: Operations, C: CheckpointStrategy>(
    flat: Tracked<B, C>,
    rest: Option<Rest<B>>,
) -> Outcome<Floats<Autodiff<B, C>>> {
    let (results, hidden, extra) = rest.unwrap_or_else(|| unreachable!("forward has succeeded"));
    let count = results.len();
    let all = parted::<Autodiff<B, C>>(flat, results.into_iter().chain(hidden).collect());
    let mut results: Vec<_> = all.into_iter().map(Floats).collect();
    let hidden = results.split_off(count);
    Outcome { results, hidden, extra: extra.into_iter().map(above).collect() }
}

/// Operands with these floats, below the tape.
fn below<B: Operations, C: CheckpointStrategy>(
    inputs: &[Operand<Autodiff<B, C>>],
    mut floats: impl Iterator<Item = FloatTensor<B>>,
) -> Vec<Operand<B>> {
    let one = |x: &Operand<Autodiff<B, C>>| match x {
        Value::Float(_) => {
            Value::Float(Floats(floats.next().unwrap_or_else(|| unreachable!("one per operand"))))
        }
        Value::Integers(x) => Value::Integers(Indices(x.0.clone())),
        Value::Flags(x) => Value::Flags(Bools(x.0.clone())),
    };
    inputs.iter().map(one).collect()
}

/// A value, without the tape that it may be on.
pub(crate) fn value<B: Operations, C: CheckpointStrategy>(
    x: &Operand<Autodiff<B, C>>,
) -> Operand<B> {
    match x {
        Value::Float(x) => Value::Float(Floats(x.0.primitive().clone())),
        Value::Integers(x) => Value::Integers(Indices(x.0.clone())),
        Value::Flags(x) => Value::Flags(Bools(x.0.clone())),
    }
}

/// A value without a derivative, on the tape.
pub(crate) fn above<B: Operations, C: CheckpointStrategy>(
    x: Operand<B>,
) -> Operand<Autodiff<B, C>> {
    match x {
        Value::Float(x) => Value::Float(Floats(constant::<B, C>(x.0))),
        Value::Integers(x) => Value::Integers(Indices(x.0)),
        Value::Flags(x) => Value::Flags(Bools(x.0)),
    }
}

/// One tensor as it is, several flattened, one behind the other.
pub(crate) fn joined<B: Backend>(mut tensors: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    match tensors.len() {
        1 => tensors.swap_remove(0),
        _ => pack::<B>(tensors),
    }
}

/// The tensors of these shapes out of [`joined`].
pub(crate) fn parted<B: Backend>(flat: FloatTensor<B>, shapes: Vec<Shape>) -> Vec<FloatTensor<B>> {
    match shapes.len() {
        1 => vec![flat],
        _ => shapes.into_iter().map(unpack::<B>(flat)).collect(),
    }
}

/// The rule of one node, with the residuals inside.
struct Pullback<B: Backend, F, const N: usize> {
    pullback: F,
    arguments: [Argument<B>; N],
}

impl<B: Backend, F, const N: usize> fmt::Debug for Pullback<B, F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pullback").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

impl<B, F, const N: usize> Backward<B, N> for Pullback<B, F, N>
where
    B: Backend,
    F: FnOnce(FloatTensor<B>, [bool; N]) -> Cotangents<B, N> + Send + 'static,
{
    type State = ();

    fn backward(self, ops: Ops<(), N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let cotangent = gradients.consume::<B>(&ops.node);
        let wanted = ops.parents.each_ref().map(|parent| parent.is_some());
        let cotangents = (self.pullback)(cotangent, wanted);
        for ((parent, cotangent), argument) in
            ops.parents.into_iter().zip(cotangents).zip(self.arguments)
        {
            let Some(parent) = parent else { continue };
            // The step of the parent asks for its cotangent, also if that is zero.
            let cotangent = cotangent.unwrap_or_else(|| argument.zeros());
            debug_assert_eq!(cotangent.shape(), argument.shape, "shape of a cotangent");
            gradients.register::<B>(parent.id, cotangent);
        }
    }
}

/// Whether a tensor has or needs a gradient.
pub fn is_tracked<B: Backend, C: CheckpointStrategy>(x: &Tracked<B, C>) -> bool {
    x.is_tracked()
}

/// What an input was, for a cotangent of zeros.
#[derive(Debug)]
struct Argument<B: Backend> {
    shape: Shape,
    dtype: FloatDType,
    device: Device<B>,
}

impl<B: Backend> Argument<B> {
    fn of(x: &FloatTensor<B>) -> Self {
        Self { shape: x.shape(), dtype: x.dtype().into(), device: x.device() }
    }

    fn zeros(&self) -> FloatTensor<B> {
        B::float_zeros(self.shape.clone(), &self.device, self.dtype)
    }
}

/// A tensor without history.
fn constant<B: Backend, C: CheckpointStrategy>(x: FloatTensor<B>) -> Tracked<B, C> {
    <Autodiff<B, C> as burn_backend::AutodiffBackend>::from_inner(x)
}

/// All elements, one tensor behind the other.
pub(crate) fn pack<B: Backend>(
    tensors: impl IntoIterator<Item = FloatTensor<B>>,
) -> FloatTensor<B> {
    let flat = tensors.into_iter().map(|x| {
        let elements = x.shape().num_elements();
        B::float_reshape(x, Shape::from([elements]))
    });
    B::float_cat(flat.collect(), 0)
}

/// Takes the tensors out of [`pack`] again: each call the next one, of this shape.
pub(crate) fn unpack<B: Backend>(flat: FloatTensor<B>) -> impl FnMut(Shape) -> FloatTensor<B> {
    let mut start = 0;
    move |shape| {
        let end = start + shape.num_elements();
        let slice = Slice::new(start as isize, Some(end as isize), 1);
        start = end;
        B::float_reshape(B::float_slice(flat.clone(), &[slice]), shape)
    }
}
