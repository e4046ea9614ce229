//! Operations with derivative rules of their own as nodes of Burn's autodiff tape.
//!
//! ```text
//! record        inputs → one output          one node
//! record_many   inputs → several outputs     one node over the flattened outputs, then slices
//! operation     an operation as a value      one node, with any number of inputs and outputs
//! passes        reverse passes of a thread, observed; for Burn 0.21
//! ```
//!
//! The rule is written in operations of the inner backend `B`. If that is itself an
//! `Autodiff<_>`, the rule is recorded there, which is how second derivatives come about. The
//! internals of `burn-autodiff` (nodes, primitives, handles) are touched in this folder only.
//!
//! A node stays on the tape while a handle of it lives: those of the inputs are held here until the node is
//! registered, since a `backward` of another thread frees every root without one, also in graphs that are still
//! being built.
//!
//! In Burn 0.21 `backward` locks all graphs: a rule that calls it never returns. In Burn 0.22 a rule may call
//! `backward` of another graph.

mod operation;
#[cfg(burn_line = "0.21")]
pub(crate) mod passes;

use std::fmt;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_backend::tensor::{Device, FloatTensor};
use burn_backend::{Backend, FloatDType, Shape, Slice, TensorMetadata};

use crate::ext::line::float_device;
#[cfg(burn_line = "0.21")]
pub use passes::released;

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
#[cfg_attr(burn_line = "0.21", doc = include_str!("record_0_21.md"))]
#[cfg_attr(burn_line = "0.22", doc = include_str!("record_0_22.md"))]
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
    let arguments = inputs.each_ref().map(|x| Argument::<B>::of(primitive::<B, C>(x)));
    // Alive until the node is registered: see the head of this file.
    #[cfg(burn_line = "0.21")]
    let _handles = inputs.each_ref().map(|x| x.rc.clone());
    #[cfg(burn_line = "0.21")]
    let nodes = inputs.each_ref().map(|x| x.node.clone());
    // These hold the handles.
    #[cfg(burn_line = "0.22")]
    let nodes = inputs.each_ref().map(|x| x.node());
    let (output, residuals) = forward(inputs.map(off_tape::<B, C>), tracked)?;
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
        let (outputs, _) = forward(inputs.map(off_tape::<B, C>), [false; N])?;
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

/// True for a tensor that has or needs a gradient.
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
        Self { shape: x.shape(), dtype: x.dtype().into(), device: float_device::<B>(x) }
    }

    fn zeros(&self) -> FloatTensor<B> {
        B::float_zeros(self.shape.clone(), &self.device, self.dtype)
    }
}

/// The value of a tensor on the tape.
fn primitive<B: Backend, C: CheckpointStrategy>(x: &Tracked<B, C>) -> &FloatTensor<B> {
    #[cfg(burn_line = "0.21")]
    let primitive = &x.primitive;
    #[cfg(burn_line = "0.22")]
    let primitive = x.primitive();
    primitive
}

/// [`primitive`] without the tape.
fn off_tape<B: Backend, C: CheckpointStrategy>(x: Tracked<B, C>) -> FloatTensor<B> {
    #[cfg(burn_line = "0.21")]
    let primitive = x.primitive;
    #[cfg(burn_line = "0.22")]
    let primitive = x.into_primitive();
    primitive
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
