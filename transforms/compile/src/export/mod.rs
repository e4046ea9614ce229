//! Recorded functions as StableHLO text, for inspection and for other compilers: XLA, IREE, JAX.
//!
//! ```text
//! text         values, types and operations in the generic form of MLIR
//! instruction  one method of a backend, dispatched by its name
//! loops        recorded scans, while loops, fixed points and branches
//! elementwise  arithmetic, comparisons, activations, conversions
//! shapes       reshape, transpose, slice, concatenate, gather, scatter
//! reductions   sums, extrema, their positions, running sums, sort
//! products     matrix products, convolutions, pooling
//! ```
//!
//! Operations are expanded into those of StableHLO 1.0; only `erf` is of its companion dialect CHLO. Results agree with
//! those of the engine up to rounding: sums have another order.

mod elementwise;
mod instruction;
mod loops;
mod products;
mod reductions;
mod shapes;
mod text;

use std::collections::HashSet;

use burn_backend::Backend;
use burn_t4a::ext::tree::Tree;
use t4a_algebra::message::short;
use thiserror::Error;

use crate::backend::Traced;
use crate::error::CompileError;
use crate::graph::{Arguments, Graph};
use crate::program::live;
use crate::trace::Source;
use text::{ModuleText, Ssa};

/// Error of an export.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ExportError {
    /// The function cannot be recorded.
    #[error(transparent)]
    Record(#[from] CompileError),
    /// An instruction has no expansion: random numbers, operations outside of Burn's traits, some layers.
    #[error("no StableHLO for the instruction {name} of {operands:?}", operands = short(.operands))]
    Instruction {
        /// Name of the method or operation.
        name: &'static str,
        /// Shapes and dtypes of its operands.
        operands: Vec<String>,
    },
    /// A dtype that StableHLO does not have.
    #[error("no StableHLO type for {value}", value = short(.value))]
    Type {
        /// Shape and dtype of the value.
        value: String,
    },
}

/// Records a function at these arguments, as [`compile`](crate::compile) does, and writes it as a StableHLO module. Its
/// function `main` has one argument for each tensor of the tree, and one result for each tensor of the results.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::compile::{Traced, stablehlo};
///
/// type T = Tensor<Traced<BurnT4a>, 1>;
/// let x = Tensor::<BurnT4a, 1>::from_floats([1.0, 2.0], &T4aDevice);
/// let text = stablehlo(|x: T| x.clone().exp() + x, x)?;
/// assert!(text.contains(r#"%1 = "stablehlo.exponential"(%0) : (tensor<2xf32>) -> tensor<2xf32>"#));
/// # Ok::<(), burn_t4a_transforms::compile::ExportError>(())
/// ```
///
/// Constants are written with all bits. A `scan`, `while_loop` or `fixed_point` whose body is recorded is one
/// `stablehlo.while`, and `cond` and `switch` are one `stablehlo.case`; other loops of fixed length are written unrolled. A
/// module cannot return an error: the steps of an exported `while_loop` are not bounded, and a fixed point that does not
/// converge is NaN. Gradients of `while_loop` and Broyden's method have no expansion.
///
/// # Errors
/// [`ExportError`]: an instruction without an expansion, a type that StableHLO does not have, or a function that cannot be
/// recorded.
pub fn stablehlo<B: Backend, A: Tree<B>, O: Tree<Traced<B>>>(
    f: impl Fn(A::On<Traced<B>>) -> O,
    x: A,
) -> Result<String, ExportError> {
    let graph = Graph::record(f, &Arguments::<B>::new(x))?;
    let mut text = ModuleText::new(&graph.metas()[..graph.inputs()])?;
    let arguments = (0..graph.inputs()).map(|id| text.argument(id)).collect();
    let outputs = program(&mut text, graph.source(), arguments)?;
    Ok(text.finish(&outputs))
}

/// Writes the instructions of a recording; its outputs.
///
/// # Errors
/// `Instruction` and `Type`.
fn program<B: Backend>(
    text: &mut ModuleText,
    source: &Source<B>,
    inputs: Vec<Ssa>,
) -> Result<Vec<Ssa>, ExportError> {
    let instructions = live(source.instructions.clone(), &source.outputs, source.metas.len());
    let mut values: Vec<Option<Ssa>> = inputs.into_iter().map(Some).collect();
    values.resize(source.metas.len(), None);
    let operands = instructions.iter().flat_map(|one| one.operands());
    let used: HashSet<usize> = operands.chain(&source.outputs).copied().collect();
    for (id, constant) in source.constants.iter().filter(|(id, _)| used.contains(id)) {
        let meta = &source.metas[*id];
        let unknown = |_| ExportError::Type { value: meta.to_string() };
        let data = constant.clone().data().map_err(unknown)?;
        values[*id] = Some(text.constant(&data, meta)?);
    }
    for one in &instructions {
        let operands: Vec<_> = one.operands().iter().map(|id| values[*id].clone()).collect();
        let operands: Option<Vec<_>> = operands.into_iter().collect();
        let results = one.results().map(|id| source.metas[id].clone()).collect::<Vec<_>>();
        let written = match (operands, one.step.nested(), one.words()) {
            (Some(operands), Some(nested), _) => {
                Some(loops::write(text, nested, &operands, &results)?)
            }
            (Some(operands), None, Some(words)) => {
                instruction::write(text, one.name(), &words, &operands, &results)?
            }
            _ => None,
        };
        let Some(written) = written else {
            let meta = |id: &usize| source.metas[*id].to_string();
            let operands = one.operands().iter().map(meta).collect();
            return Err(ExportError::Instruction { name: one.name(), operands });
        };
        for (id, value) in one.results().zip(written) {
            values[id] = Some(value);
        }
    }
    let outputs: Option<Vec<_>> = source.outputs.iter().map(|id| values[*id].clone()).collect();
    Ok(outputs.unwrap_or_default())
}
