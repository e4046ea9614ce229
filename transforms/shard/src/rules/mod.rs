//! Sharding rules: for each operation, the splits required of its operands, the splits of its results, and the
//! reduction over devices that completes them.
//!
//! ```text
//! elementwise   axes stay split where all operands can be split the same way
//! products      rows, columns and batches stay split; a split contraction is a sum over devices
//! reductions    along a split axis, a reduction over devices
//! movement      splits follow their axes; operands are gathered along axes that the operation mixes
//! layers        batch axes stay split
//! operations    operations outside of Burn's traits, with their derivatives:
//!   einsum          labels stay split; of all placements the one with the least traffic; a split contraction is a sum,
//!                   a maximum or a minimum over devices, or its operands are gathered
//!   linear algebra  batch axes stay split, matrices are gathered
//!   scans           all axes but that of the scan stay split
//! loops         a recorded scan stays split over mesh axes along which its steps need no communication
//! ```
//!
//! An operation without a rule gathers its operands and is computed in full on every device; the plan marks it. Such are
//! while loops, branches, fixed points, structured tensors, and operations and semirings of users.

mod elementwise;
mod layers;
mod loops;
mod movement;
mod operations;
mod products;
mod reductions;

use std::any::Any;
use std::sync::Arc;

use burn_backend::Backend;
use burn_t4a_compile::graph::{Instruction, MethodClass, RecordedOperation, TensorType, Word};

use crate::mesh::Mesh;
use crate::spec::Split;

/// Reduction over devices that completes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    Sum,
    Mean,
    Max,
    Min,
}

/// Input of a sharding rule: an instruction with the shapes and splits of its operands.
pub(crate) struct InstructionContext<'a> {
    pub(crate) mesh: &'a Mesh,
    pub(crate) class: MethodClass,
    pub(crate) words: Option<&'a [Word]>,
    /// The operation, if it is outside of Burn's traits.
    pub(crate) operation: Option<&'a RecordedOperation>,
    pub(crate) operands: Vec<&'a TensorType>,
    pub(crate) results: Vec<&'a TensorType>,
    /// Current splits of the operands.
    pub(crate) splits: Vec<&'a Split>,
}

/// Execution of an instruction on shards.
#[derive(Clone, Debug)]
pub(crate) struct ShardingRule {
    pub(crate) operands: Vec<Split>,
    pub(crate) results: Vec<Split>,
    /// Reduction of partial results, if any, with the mesh axes for each result.
    pub(crate) reduce: Option<(Reduce, Vec<Vec<usize>>)>,
    /// Operands that are added on the first device along these mesh axes only, such as a bias.
    pub(crate) once: Vec<(usize, Vec<usize>)>,
    /// Static arguments for the local shapes, if they differ.
    pub(crate) words: Option<Vec<Word>>,
    /// Operation for the local shapes, if it differs.
    pub(crate) operation: Option<Arc<dyn Any + Send + Sync>>,
}

impl ShardingRule {
    pub(crate) fn new(operands: Vec<Split>, results: Vec<Split>) -> Self {
        Self { operands, results, reduce: None, once: Vec::new(), words: None, operation: None }
    }

    /// Completes all results by a reduction over these mesh axes.
    fn completed(mut self, reduce: Reduce, over: Vec<usize>) -> Self {
        if !over.is_empty() {
            self.reduce = Some((reduce, vec![over; self.results.len()]));
        }
        self
    }

    fn summed(self, over: Vec<usize>) -> Self {
        self.completed(Reduce::Sum, over)
    }
}

/// An instruction on shards: its rule, and the instruction for the local shapes.
pub(crate) struct PlacedInstruction<B: Backend> {
    pub(crate) rule: ShardingRule,
    pub(crate) local: Instruction<B>,
}

impl<B: Backend> PlacedInstruction<B> {
    /// Full operands and results on every device.
    pub(crate) fn replicated(metas: &[TensorType], instruction: &Instruction<B>) -> Self {
        let whole = |value: usize| Split::whole(metas[value].shape.len());
        let operands = instruction.operands().iter().map(|&value| whole(value)).collect();
        let results = instruction.results().map(whole).collect();
        Self { rule: ShardingRule::new(operands, results), local: instruction.clone() }
    }
}

impl InstructionContext<'_> {
    pub(crate) fn shape(&self, operand: usize) -> &[usize] {
        &self.operands[operand].shape
    }

    pub(crate) fn rank(&self, operand: usize) -> usize {
        self.shape(operand).len()
    }

    /// The rule that replicates all operands and results.
    pub(crate) fn whole(&self) -> ShardingRule {
        let whole =
            |metas: &[&TensorType]| metas.iter().map(|x| Split::whole(x.shape.len())).collect();
        ShardingRule::new(whole(&self.operands), whole(&self.results))
    }

    /// Static argument `at`, if it is a non-negative integer.
    pub(crate) fn int(&self, at: usize) -> Option<usize> {
        match self.words?.get(at)? {
            Word::Int(x) => usize::try_from(*x).ok(),
            _ => None,
        }
    }

    /// Reserves mesh axes for an axis of size `size` of the result. Empty if one of them is already in `used`, or if
    /// the size is not a multiple of the number of parts.
    pub(crate) fn claim(&self, used: &mut Vec<usize>, axes: &[usize], size: usize) -> Vec<usize> {
        let free = axes.iter().all(|axis| !used.contains(axis));
        if !free || !size.is_multiple_of(self.mesh.parts(axes)) {
            return Vec::new();
        }
        used.extend(axes);
        axes.to_vec()
    }
}

/// Placement of an instruction whose operands have the given types and splits; `None` without a sharding rule.
pub(crate) fn place<B: Backend>(
    mesh: &Mesh,
    metas: &[TensorType],
    splits: &[Split],
    instruction: &Instruction<B>,
) -> Option<PlacedInstruction<B>> {
    let (words, operation) = (instruction.words(), instruction.operation());
    let operands = instruction.operands();
    let site = InstructionContext {
        mesh,
        class: instruction.class(),
        words: words.as_deref(),
        operation: operation.as_ref(),
        operands: operands.iter().map(|&value| &metas[value]).collect(),
        results: instruction.results().map(|value| &metas[value]).collect(),
        splits: operands.iter().map(|&value| &splits[value]).collect(),
    };
    if let Some(body) = instruction.scan_body() {
        return loops::scan(&site, instruction, body);
    }
    let rule = of_class(&site)?;
    let mut local = instruction.clone();
    if let Some(words) = &rule.words {
        local = instruction.with(words)?;
    }
    if let Some(operation) = &rule.operation {
        local = instruction.with_operation(&**operation)?;
    }
    Some(PlacedInstruction { rule, local })
}

fn of_class(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    use MethodClass as Class;
    match site.class {
        Class::Elementwise => elementwise::rule(site),
        Class::AlongAxis => movement::along(site, site.int(site.operands.len())?),
        Class::SumAxis => reductions::over(site, Some(site.int(1)?), Reduce::Sum),
        Class::MeanAxis => reductions::over(site, Some(site.int(1)?), Reduce::Mean),
        Class::MaxAxis => reductions::over(site, Some(site.int(1)?), Reduce::Max),
        Class::MinAxis => reductions::over(site, Some(site.int(1)?), Reduce::Min),
        Class::SumAll => reductions::over(site, None, Reduce::Sum),
        Class::MeanAll => reductions::over(site, None, Reduce::Mean),
        Class::MaxAll => reductions::over(site, None, Reduce::Max),
        Class::MinAll => reductions::over(site, None, Reduce::Min),
        Class::Matmul => products::matmul(site),
        Class::Linear => products::linear(site),
        Class::LinearInput => products::linear_x(site),
        Class::LinearWeight => products::linear_weight(site),
        Class::LinearBias => products::linear_bias(site),
        Class::Transpose => movement::transpose(site),
        Class::SwapDims => movement::swap_dims(site),
        Class::Permute => movement::permute(site),
        Class::Reshape => movement::reshape(site),
        Class::Expand => movement::expand(site),
        Class::Slice => movement::slice(site, 0),
        Class::SliceAssign => movement::slice(site, 1),
        Class::Flip => movement::flip(site),
        Class::Concatenate => movement::cat(site),
        Class::Select => movement::select(site),
        Class::GatherAxis => movement::along(site, site.int(0)?),
        Class::Unfold => movement::unfold(site),
        Class::Embedding => movement::embedding(site),
        Class::EmbeddingWeight => layers::embedding_backward(site),
        Class::Convolution => layers::images(site, &[0], false),
        Class::ConvolutionInput => layers::images(site, &[0, 2], false),
        Class::ConvTransposeInput => layers::images(site, &[1], false),
        Class::ConvolutionWeight => layers::summed(site),
        Class::Batched => {
            let all: Vec<usize> = (0..site.operands.len()).collect();
            layers::images(site, &all, false)
        }
        Class::LayerNorm => layers::images(site, &[0], true),
        Class::General => operations::rule(site),
    }
}
