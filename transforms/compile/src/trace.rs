//! Tracing: execution of a function under a recording.

use std::sync::Arc;

use burn_backend::Backend;

use burn_t4a::ext::tape::released;
use burn_t4a::ext::tree::{Structure, Tree};

use crate::backend::Traced;
use crate::error::{CompileError, Result};
use crate::fuse::is_engine;
use crate::recording::{Instruction, Recording, RecordingGuard};
use crate::tensor::{
    AnyPrimitive, BoolKind, FloatKind, IntKind, PrimitiveKind, QuantizedKind, TensorType,
    TracedTensor, ValueNode, build, flatten,
};

/// Recorded computation of a function, before optimisation.
pub(crate) struct Source<B: Backend> {
    pub(crate) metas: Vec<TensorType>,
    pub(crate) inputs: usize,
    pub(crate) constants: Vec<(usize, AnyPrimitive<B>)>,
    pub(crate) instructions: Vec<Instruction<B>>,
    pub(crate) outputs: Vec<usize>,
}

impl<B: Backend> Clone for Source<B> {
    fn clone(&self) -> Self {
        Self {
            metas: self.metas.clone(),
            inputs: self.inputs,
            constants: self.constants.clone(),
            instructions: self.instructions.clone(),
            outputs: self.outputs.clone(),
        }
    }
}

/// Wraps a tensor for the traced backend: as a value of a recording, or as a constant.
pub(crate) fn traced<B: Backend>(
    x: AnyPrimitive<B>,
    node: Option<ValueNode<B>>,
) -> AnyPrimitive<Traced<B>> {
    fn with<B: Backend, K: PrimitiveKind<B>>(
        primitive: K::Primitive,
        node: Option<ValueNode<B>>,
    ) -> TracedTensor<B, K> {
        TracedTensor { primitive, node }
    }
    match x {
        AnyPrimitive::Float(x) => AnyPrimitive::Float(with::<B, FloatKind>(x, node)),
        AnyPrimitive::Int(x) => AnyPrimitive::Int(with::<B, IntKind>(x, node)),
        AnyPrimitive::Bool(x) => AnyPrimitive::Bool(with::<B, BoolKind>(x, node)),
        AnyPrimitive::Quantized(x) => {
            AnyPrimitive::Quantized(Box::new(with::<B, QuantizedKind>(*x, node)))
        }
    }
}

/// Tensor of the inner backend and its value in a recording.
pub(crate) fn parts<B: Backend>(
    x: AnyPrimitive<Traced<B>>,
) -> (AnyPrimitive<B>, Option<ValueNode<B>>) {
    match x {
        AnyPrimitive::Float(x) => (AnyPrimitive::Float(x.primitive), x.node),
        AnyPrimitive::Int(x) => (AnyPrimitive::Int(x.primitive), x.node),
        AnyPrimitive::Bool(x) => (AnyPrimitive::Bool(x.primitive), x.node),
        AnyPrimitive::Quantized(x) => (AnyPrimitive::Quantized(Box::new(x.primitive)), x.node),
    }
}

/// Outcome of a trace: the results, and the recording or the reason why there is none.
pub(crate) struct Trial<B: Backend> {
    pub(crate) structure: Structure,
    pub(crate) values: Vec<AnyPrimitive<B>>,
    pub(crate) source: Result<Source<B>>,
    /// True if a program of the recording has the bits of `values`.
    pub(crate) exact: bool,
}

/// Runs a function on these leaves under a recording.
pub(crate) fn trace<B, I, O>(
    function: impl Fn(I) -> O,
    structure: &Structure,
    leaves: Vec<AnyPrimitive<B>>,
) -> Result<Trial<B>>
where
    B: Backend,
    I: Tree<Traced<B>>,
    O: Tree<Traced<B>>,
{
    let recording = Recording::new(&leaves, None);
    let node = |id| Some(ValueNode { recording: recording.clone(), id });
    let leaves = leaves.into_iter().enumerate().map(|(id, x)| traced(x, node(id))).collect();
    let inputs = build::<_, I>(structure, leaves)?;
    let level = RecordingGuard::enter(recording.clone());
    let output = function(inputs);
    drop(level);
    let (structure, tensors) = flatten::<Traced<B>, _>(output);
    let (values, nodes): (Vec<_>, Vec<_>) = tensors.into_iter().map(parts).unzip();
    let mut exact = is_engine::<B>();
    let foreign = |node: &ValueNode<B>| !Arc::ptr_eq(&node.recording, &recording);
    let source = if nodes.iter().flatten().any(foreign) {
        let _ = recording.close();
        Err(CompileError::Foreign { operation: "the result" })
    } else {
        recording.close().map(|mut tape| {
            exact &= tape.exact;
            let id = |(node, x): (Option<ValueNode<B>>, &AnyPrimitive<B>)| match node {
                Some(node) => node.id,
                None => tape.constant(x.clone()),
            };
            let outputs = nodes.into_iter().zip(&values).map(id).collect();
            Source {
                metas: tape.metas,
                inputs: tape.inputs,
                constants: tape.constants,
                instructions: tape.instructions,
                outputs,
            }
        })
    };
    // A value that is still referenced after the call would not be updated by replays.
    let source =
        source.and_then(|x| if released(&recording) { Ok(x) } else { Err(CompileError::Keeps) });
    Ok(Trial { structure, values, source, exact })
}

/// Runs a function on these leaves without a recording.
pub(crate) fn eager<B, I, O>(
    function: impl Fn(I) -> O,
    structure: &Structure,
    leaves: Vec<AnyPrimitive<B>>,
) -> Result<O::On<B>>
where
    B: Backend,
    I: Tree<Traced<B>>,
    O: Tree<Traced<B>>,
{
    let leaves = leaves.into_iter().map(|x| traced(x, None)).collect();
    let output = function(build::<_, I>(structure, leaves)?);
    let (structure, tensors) = flatten::<Traced<B>, _>(output);
    build(&structure, tensors.into_iter().map(|x| parts(x).0).collect())
}
