//! Operations with their own derivative rules as nodes of Burn's autodiff tape.
//!
//! ```text
//! record        inputs → one output          one node
//! record_many   inputs → several outputs     one node, and one per output
//! operation     an operation as a value      one node, with any number of inputs and outputs
//! passes        detection of reverse passes on a thread; Burn 0.21 only
//! ```
//!
//! The rule is written in operations of the inner backend `B`. If `B` is itself an `Autodiff<_>`, the rule is
//! recorded there, which gives second derivatives. Only this folder uses internals of `burn-autodiff` (nodes,
//! primitives, handles).
//!
//! A node stays on the tape while a handle of it exists. The handles of the inputs are held until the node is
//! registered, because a `backward` on another thread frees every root without a handle, also in graphs under
//! construction.
//!
//! In Burn 0.21 `backward` locks all graphs: a rule that calls it deadlocks. In Burn 0.22 a rule may call
//! `backward` of another graph.

pub(crate) mod operation;
#[cfg(burn_line = "0.21")]
pub(crate) mod passes;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(burn_line = "0.21")]
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_backend::tensor::{Device, FloatTensor};
use burn_backend::{Backend, FloatDType, Shape, TensorMetadata};

use crate::ext::line::float_device;
#[cfg(burn_line = "0.21")]
pub use passes::released;
/// Names of Burn 0.22 for rules on primitives, which the crate `burn` does not export.
#[cfg(burn_line = "0.22")]
#[doc(no_inline)]
pub use {
    burn_autodiff::{Autodiff, checkpoint::strategy::NoCheckpointing},
    burn_backend::{Scalar, ops::FloatTensorOps},
    burn_dispatch::backends::Flex,
};

/// A tensor on the tape: the float primitive of `Autodiff<B, C>`.
pub type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

/// Cotangents of N inputs; `None` means zero.
pub type InputCotangents<B, const N: usize> = [Option<FloatTensor<B>>; N];

/// Records `y = f(x₁ … x_N)` as one node with its own derivative rule.
///
/// `forward` receives the inputs and a mask of the tracked ones, and returns the output and the residuals, the
/// values that the rule reads. It may save less if fewer inputs are tracked. It is called exactly once and is never
/// recomputed, not under `BalancedCheckpointing` either. `vjp` receives the residuals, the cotangent of the output
/// (possibly an expanded view) and a mask of the inputs that need a cotangent. It returns a cotangent in the shape
/// of each of these inputs; `None` means zero, and values for other inputs are ignored.
///
/// If no input is tracked, nothing is recorded and the residuals are dropped.
///
#[cfg_attr(burn_line = "0.21", doc = include_str!("record_0_21.md"))]
#[cfg_attr(burn_line = "0.22", doc = include_str!("record_0_22.md"))]
///
/// # Errors
/// Errors of `forward`; nothing is recorded in that case.
pub fn record<B, C, R, E, const N: usize>(
    inputs: [Tracked<B, C>; N],
    forward: impl FnOnce([FloatTensor<B>; N], [bool; N]) -> Result<(FloatTensor<B>, R), E>,
    vjp: impl FnOnce(R, FloatTensor<B>, [bool; N]) -> InputCotangents<B, N> + Send + 'static,
) -> Result<Tracked<B, C>, E>
where
    B: Backend,
    C: CheckpointStrategy,
    R: Send + 'static,
{
    let tracked = inputs.each_ref().map(|x| x.is_tracked());
    let arguments = inputs.each_ref().map(|x| InputMeta::<B>::of(primitive::<B, C>(x)));
    // Held until the node is registered, see the module documentation.
    #[cfg(burn_line = "0.21")]
    let _handles = inputs.each_ref().map(|x| x.rc.clone());
    #[cfg(burn_line = "0.21")]
    let nodes = inputs.each_ref().map(|x| x.node.clone());
    // These hold the handles until the node is registered.
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

/// Records `(y₁ … y_M) = f(x₁ … x_N)` as one node with its own derivative rule.
///
/// As [`record`], for several outputs: `vjp` runs once, with the cotangents of all outputs, zero for outputs that
/// the loss does not use.
///
/// Outputs without a derivative, such as indices, are returned through a captured variable of `forward`.
///
#[cfg_attr(burn_line = "0.21", doc = include_str!("record_many_0_21.md"))]
#[cfg_attr(burn_line = "0.22", doc = include_str!("record_many_0_22.md"))]
///
/// # Errors
/// Errors of `forward`; nothing is recorded in that case.
pub fn record_many<B, C, R, E, const N: usize, const M: usize>(
    inputs: [Tracked<B, C>; N],
    forward: impl FnOnce([FloatTensor<B>; N], [bool; N]) -> Result<([FloatTensor<B>; M], R), E>,
    vjp: impl FnOnce(R, [FloatTensor<B>; M], [bool; N]) -> InputCotangents<B, N> + Send + 'static,
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
    let number = InputMeta::<B>::of(primitive::<B, C>(&inputs[0])).number();
    let token = record::<B, C, _, E, N>(
        inputs,
        |inputs, tracked| {
            let (all, residuals) = forward(inputs, tracked)?;
            let arguments = all.each_ref().map(InputMeta::<B>::of);
            outputs = Some(all);
            Ok((number, (arguments, residuals)))
        },
        move |(arguments, residuals), _, wanted| {
            let mut cotangents = given.take().into_iter();
            let own = |y: InputMeta<B>| cotangents.next().flatten().unwrap_or_else(|| y.zeros());
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

/// Cotangents that the nodes of one operation exchange, by index. A node of Burn has one output, so a node with
/// several outputs has a scalar output, the token, and each output is a node with the token as its input:
///
/// ```text
/// x₁ … x_N ── node ── token ──┬── y₁        in the reverse pass each y stores its cotangent here and passes zero
///                             └── y_M       to the token; the rule of the node reads all of them
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

    /// Replaces all cotangents.
    pub(crate) fn put(&self, cotangents: Vec<Option<FloatTensor<B>>>) {
        *self.all() = cotangents;
    }

    /// Takes all cotangents and leaves `None`.
    pub(crate) fn take(&self) -> Vec<Option<FloatTensor<B>>> {
        self.all().iter_mut().map(Option::take).collect()
    }

    /// Records an output as a node over the token.
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

    /// Records a token for up to four inputs; a later node stores their cotangents here, from index `first`.
    pub(crate) fn enter<C: CheckpointStrategy, const N: usize>(
        &self,
        inputs: [Tracked<B, C>; N],
        first: usize,
    ) -> Tracked<B, C> {
        let handed = self.clone();
        let number = InputMeta::<B>::of(primitive::<B, C>(&inputs[0])).number();
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

/// Derivative rule of one node, with its residuals.
struct Pullback<B: Backend, F, const N: usize> {
    pullback: F,
    arguments: [InputMeta<B>; N],
}

impl<B: Backend, F, const N: usize> fmt::Debug for Pullback<B, F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pullback").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

impl<B, F, const N: usize> Backward<B, N> for Pullback<B, F, N>
where
    B: Backend,
    F: FnOnce(FloatTensor<B>, [bool; N]) -> InputCotangents<B, N> + Send + 'static,
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
            // The step of the parent reads its cotangent, also if that is zero.
            let cotangent = cotangent.unwrap_or_else(|| argument.zeros());
            debug_assert_eq!(cotangent.shape(), argument.shape, "shape of a cotangent");
            gradients.register::<B>(parent.id, cotangent);
        }
    }
}

/// Returns true if the tensor has or needs a gradient.
pub fn is_tracked<B: Backend, C: CheckpointStrategy>(x: &Tracked<B, C>) -> bool {
    x.is_tracked()
}

/// Shape, dtype and device of an input, to create a zero cotangent.
#[derive(Debug)]
pub(crate) struct InputMeta<B: Backend> {
    shape: Shape,
    dtype: FloatDType,
    device: Device<B>,
}

impl<B: Backend> InputMeta<B> {
    pub(crate) fn of(x: &FloatTensor<B>) -> Self {
        Self { shape: x.shape(), dtype: x.dtype().into(), device: float_device::<B>(x) }
    }

    pub(crate) fn zeros(&self) -> FloatTensor<B> {
        B::float_zeros(self.shape.clone(), &self.device, self.dtype)
    }

    /// Zero of shape `[1]` with the same dtype and device.
    fn number(&self) -> FloatTensor<B> {
        B::float_zeros(Shape::from([1]), &self.device, self.dtype)
    }
}

/// Primitive of the inner backend of a tensor on the tape.
fn primitive<B: Backend, C: CheckpointStrategy>(x: &Tracked<B, C>) -> &FloatTensor<B> {
    #[cfg(burn_line = "0.21")]
    let primitive = &x.primitive;
    #[cfg(burn_line = "0.22")]
    let primitive = x.primitive();
    primitive
}

/// As [`primitive`], by value.
fn off_tape<B: Backend, C: CheckpointStrategy>(x: Tracked<B, C>) -> FloatTensor<B> {
    #[cfg(burn_line = "0.21")]
    let primitive = x.primitive;
    #[cfg(burn_line = "0.22")]
    let primitive = x.into_primitive();
    primitive
}

/// Wraps a tensor of the inner backend as a constant, without history.
fn constant<B: Backend, C: CheckpointStrategy>(x: FloatTensor<B>) -> Tracked<B, C> {
    <Autodiff<B, C> as burn_backend::AutodiffBackend>::from_inner(x)
}
