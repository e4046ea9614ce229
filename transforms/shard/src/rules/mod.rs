//! How an operation on whole tensors becomes one on parts: which splits of the operands it takes, which
//! splits of the results it gives, and what has to be summed over devices.
//!
//! ```text
//! elementwise   axes stay split where all operands can be split so
//! products      rows, columns and batches stay split; a split contraction is a sum over devices
//! reductions    along a split axis, a reduction over devices
//! movement      splits follow their axes; what cuts across them gathers first
//! layers        batches stay split
//! ```
//!
//! What has no rule gathers its operands and computes everywhere, and the plan says so.

mod elementwise;
mod layers;
mod movement;
mod products;
mod reductions;

use burn_t4a_compile::graph::{Meta, Word};

use crate::mesh::Mesh;
use crate::spec::Split;

/// What happens to the parts of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    Sum,
    Mean,
    Max,
    Min,
}

/// An instruction as a rule sees it.
pub(crate) struct Site<'a> {
    pub(crate) mesh: &'a Mesh,
    pub(crate) name: &'a str,
    pub(crate) elementwise: bool,
    pub(crate) words: Option<&'a [Word]>,
    pub(crate) operands: Vec<&'a Meta>,
    pub(crate) results: Vec<&'a Meta>,
    /// How the operands are split.
    pub(crate) splits: Vec<&'a Split>,
}

/// How it runs on parts.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) operands: Vec<Split>,
    pub(crate) results: Vec<Split>,
    /// Results are parts of a sum over these axes of the mesh.
    pub(crate) reduce: Option<(Reduce, Vec<usize>)>,
    /// The operand that counts on the first device along the summed axes only.
    pub(crate) once: Option<usize>,
    /// Static arguments for parts.
    pub(crate) words: Option<Vec<Word>>,
    /// Whether there was a rule.
    pub(crate) known: bool,
}

impl Rule {
    pub(crate) fn new(operands: Vec<Split>, results: Vec<Split>) -> Self {
        Self { operands, results, reduce: None, once: None, words: None, known: true }
    }

    fn summed(mut self, over: Vec<usize>) -> Self {
        if !over.is_empty() {
            self.reduce = Some((Reduce::Sum, over));
        }
        self
    }
}

impl Site<'_> {
    pub(crate) fn shape(&self, operand: usize) -> &[usize] {
        &self.operands[operand].shape
    }

    pub(crate) fn rank(&self, operand: usize) -> usize {
        self.shape(operand).len()
    }

    /// Everything whole.
    pub(crate) fn whole(&self) -> Rule {
        let whole = |metas: &[&Meta]| metas.iter().map(|x| Split::whole(x.shape.len())).collect();
        Rule::new(whole(&self.operands), whole(&self.results))
    }

    /// Static argument `at`, an integer.
    pub(crate) fn int(&self, at: usize) -> Option<usize> {
        match self.words?.get(at)? {
            Word::Int(x) => usize::try_from(*x).ok(),
            _ => None,
        }
    }

    /// The axes of the mesh that may split axes of the result, if none of them is used yet and they divide.
    pub(crate) fn claim(&self, used: &mut Vec<usize>, axes: &[usize], size: usize) -> Vec<usize> {
        let free = axes.iter().all(|axis| !used.contains(axis));
        if !free || !size.is_multiple_of(self.mesh.parts(axes)) {
            return Vec::new();
        }
        used.extend(axes);
        axes.to_vec()
    }
}

/// The rule of an instruction.
pub(crate) fn rule(site: &Site<'_>) -> Rule {
    let families =
        [elementwise::rule, products::rule, reductions::rule, movement::rule, layers::rule];
    let found = families.into_iter().find_map(|family| family(site));
    found.unwrap_or_else(|| Rule { known: false, ..site.whole() })
}
