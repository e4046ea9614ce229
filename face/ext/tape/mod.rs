//! Operations with derivative rules of their own as nodes of Burn's autodiff tape.
//!
//! ```text
//! record        inputs → one output          one node
//! record_many   inputs → several outputs     one node, and one per output
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

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_backend::tensor::{Device, FloatTensor};
use burn_backend::{Backend, FloatDType, Shape, TensorMetadata};

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
/// As [`record`], for several outputs: `vjp` runs once, with the cotangents of all outputs, zero for those
/// that the loss does not use.
///
/// Outputs that have no derivative, as indices, leave `forward` through a captured variable.
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
    let handed = Handed::<B>::new(M);
    let given = handed.clone();
    let mut outputs = None;
    let number = Argument::<B>::of(primitive::<B, C>(&inputs[0])).number();
    let token = record::<B, C, _, E, N>(
        inputs,
        |inputs, tracked| {
            let (all, residuals) = forward(inputs, tracked)?;
            let arguments = all.each_ref().map(Argument::<B>::of);
            outputs = Some(all);
            Ok((number, (arguments, residuals)))
        },
        move |(arguments, residuals), _, wanted| {
            let mut cotangents = given.take().into_iter();
            let own = |y: Argument<B>| cotangents.next().flatten().unwrap_or_else(|| y.zeros());
            vjp(residuals, arguments.map(own), wanted)
        },
    )?;
    let outputs = outputs.unwrap_or_else(|| unreachable!("forward has succeeded"));
    let mut places = 0..M;
    Ok(outputs.map(|y| {
        let place = places.next().unwrap_or_else(|| unreachable!("one place per output"));
        handed.leave::<C>(&token, place, y)
    }))
}

/// Cotangents that nodes of one operation hand to each other, by place. Nodes have one output in Burn, so one with
/// several has a number in their stead, the token, and each output is a node over it:
///
/// ```text
/// x₁ … x_N ── node ── token ──┬── y₁        in the reverse pass each y leaves its cotangent here and a zero to
///                             └── y_M       the token; the rule of the node takes all of them
/// ```
#[derive(Debug)]
pub(crate) struct Handed<B: Backend>(Arc<Mutex<Vec<Option<FloatTensor<B>>>>>);

impl<B: Backend> Clone for Handed<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> Handed<B> {
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![None; places])))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Option<FloatTensor<B>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts cotangents at the first places.
    pub(crate) fn put(&self, cotangents: Vec<Option<FloatTensor<B>>>) {
        *self.all() = cotangents;
    }

    /// All cotangents; none is left.
    pub(crate) fn take(&self) -> Vec<Option<FloatTensor<B>>> {
        self.all().iter_mut().map(Option::take).collect()
    }

    /// An output of the node of a token.
    pub(crate) fn leave<C: CheckpointStrategy>(
        &self,
        token: &Tracked<B, C>,
        place: usize,
        y: FloatTensor<B>,
    ) -> Tracked<B, C> {
        let handed = self.clone();
        let Ok(y) = record::<B, C, _, Infallible, 1>(
            [token.clone()],
            |_, _| Ok((y, ())),
            move |(), cotangent, _| {
                handed.all()[place] = Some(cotangent);
                [None]
            },
        );
        y
    }

    /// The token of up to four inputs whose cotangents a later node puts here, from a place on.
    pub(crate) fn enter<C: CheckpointStrategy, const N: usize>(
        &self,
        inputs: [Tracked<B, C>; N],
        first: usize,
    ) -> Tracked<B, C> {
        let handed = self.clone();
        let number = Argument::<B>::of(primitive::<B, C>(&inputs[0])).number();
        let Ok(token) = record::<B, C, _, Infallible, N>(
            inputs,
            |_, _| Ok((number, ())),
            move |(), _, _| {
                let mut all = handed.all();
                std::array::from_fn(|i| all.get_mut(first + i).and_then(Option::take))
            },
        );
        token
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

    /// A number of the same dtype and device.
    fn number(&self) -> FloatTensor<B> {
        B::float_zeros(Shape::from([1]), &self.device, self.dtype)
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
