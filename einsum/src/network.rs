//! Subscripts with shapes: a network over numbered labels in which the labels of an operand are distinct and every
//! label has a size other than 1.
//!
//! ```text
//! repeated label in an operand   one label; the view is a diagonal
//! axis of size 1                 no label: a product with a tensor that lacks it broadcasts
//! label in the output only       not in the network; the result is expanded along it
//! ```
//!
//! Labels are numbered in the order in which they first occur in the subscripts.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use t4a_tensor::layout::checked_numel;

use crate::error::{EinsumError, Result};
use crate::label::Label;
use crate::subscripts::{SubscriptTerm, SubscriptToken, Subscripts};

/// Number of a label in its network.
pub(crate) type LabelId = u32;
/// Distinct labels of a tensor, in the order of its axes.
pub(crate) type Ids = SmallVec<[LabelId; 8]>;
/// Label of each axis; `None` for axes of size 1.
pub(crate) type AxisLabels = SmallVec<[Option<LabelId>; 8]>;

/// Operands, output and sizes over numbered labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    /// Original labels of the operands and of the result, with ellipses expanded.
    pub(crate) terms: Vec<Vec<Label>>,
    pub(crate) output_term: Vec<Label>,
    /// Original shapes of the operands.
    pub(crate) shapes: Vec<Vec<usize>>,
    /// Labels of the original axes of each operand.
    pub(crate) axes: Vec<AxisLabels>,
    /// Distinct labels of each operand after [`Network::enter`].
    pub(crate) inputs: Vec<Ids>,
    /// Labels that operands and output share, in the order of the output.
    pub(crate) output: Ids,
    /// Labels of the axes of the result.
    pub(crate) result: AxisLabels,
    pub(crate) sizes: Vec<usize>,
    /// Names by number.
    pub(crate) names: Vec<Label>,
    /// True if an operand (so that sums are empty) or the result has no elements.
    pub(crate) is_empty: bool,
}

/// Size of each label, and the operand that determined it.
struct LabelSizes {
    of: HashMap<Label, (usize, usize)>,
}

impl LabelSizes {
    fn meet(&mut self, label: Label, size: usize, operand: usize) -> Result<()> {
        let entry = self.of.entry(label).or_insert((size, operand));
        match *entry {
            (known, _) if known == size || size == 1 => Ok(()),
            (1, _) => {
                *entry = (size, operand);
                Ok(())
            }
            (other_size, other_operand) => {
                Err(EinsumError::SizeConflict { label, size, operand, other_size, other_operand })
            }
        }
    }
}

/// Labels of a term with its ellipsis expanded to `width` axes.
fn spell(term: &SubscriptTerm, width: usize) -> Vec<Label> {
    let mut labels = Vec::with_capacity(term.len() + width);
    for token in term {
        match *token {
            SubscriptToken::Label(label) => labels.push(label),
            SubscriptToken::Ellipsis => labels.extend((0..width as u32).rev().map(Label::Ellipsis)),
        }
    }
    labels
}

fn check_numel(shape: &[usize]) -> Result<()> {
    match checked_numel(shape) {
        Some(_) => Ok(()),
        None => Err(EinsumError::SizeOverflow { shape: shape.to_vec() }),
    }
}

impl Network {
    pub(crate) fn new(
        subscripts: &Subscripts,
        shapes: &[&[usize]],
        given: &[(Label, usize)],
    ) -> Result<Self> {
        Self::ordered(subscripts, shapes, given, &[])
    }

    /// [`Network::new`] for a subnetwork: labels of the full network are numbered first, in the given order.
    pub(crate) fn ordered(
        subscripts: &Subscripts,
        shapes: &[&[usize]],
        given: &[(Label, usize)],
        order: &[Label],
    ) -> Result<Self> {
        let expected = subscripts.inputs.len();
        if shapes.len() != expected || expected == 0 {
            let expected = expected.max(1);
            return Err(EinsumError::OperandCount { expected, given: shapes.len() });
        }
        let mut sizes = LabelSizes { of: HashMap::new() };
        let mut terms = Vec::with_capacity(expected);
        let mut widest = 0;
        let mut broadcasts = false;
        for (operand, (term, shape)) in subscripts.inputs.iter().zip(shapes).enumerate() {
            let named = term.iter().filter(|&&t| t != SubscriptToken::Ellipsis).count();
            let ellipsis = named < term.len();
            broadcasts |= ellipsis;
            if shape.len() < named || (shape.len() > named && !ellipsis) {
                let labels = if ellipsis { format!("at least {named}") } else { named.to_string() };
                return Err(EinsumError::Rank { operand, labels, shape: shape.to_vec() });
            }
            let labels = spell(term, shape.len() - named);
            widest = widest.max(shape.len() - named);
            check_numel(shape)?;
            let mut own: HashMap<Label, usize> = HashMap::with_capacity(labels.len());
            for (&label, &size) in labels.iter().zip(*shape) {
                sizes.meet(label, size, operand)?;
                // A diagonal does not broadcast.
                let other_size = *own.entry(label).or_insert(size);
                if other_size != size {
                    let other_operand = operand;
                    return Err(EinsumError::SizeConflict {
                        label,
                        size,
                        operand,
                        other_size,
                        other_operand,
                    });
                }
            }
            terms.push(labels);
        }
        let output = match &subscripts.output {
            Some(term) => {
                if widest > 0 && !term.contains(&SubscriptToken::Ellipsis) {
                    return Err(EinsumError::EllipsisDropped);
                }
                spell(term, widest)
            }
            None => {
                let mut count: HashMap<Label, usize> = HashMap::new();
                terms.iter().flatten().for_each(|&l| *count.entry(l).or_default() += 1);
                let once = |l: &&Label| !matches!(l, Label::Ellipsis(_)) && count[*l] == 1;
                let mut named: Vec<Label> = terms.iter().flatten().filter(once).copied().collect();
                named.sort_unstable();
                let width = if broadcasts { widest } else { 0 };
                let mut labels: Vec<Label> = (0..width as u32).rev().map(Label::Ellipsis).collect();
                labels.append(&mut named);
                labels
            }
        };
        Self::given_sizes(&mut sizes, &output, given)?;
        for (i, label) in order.iter().enumerate() {
            let Some(&(size, _)) = sizes.of.get(label) else {
                return Err(EinsumError::MissingSize { label: *label });
            };
            if order[..i].contains(label) {
                return Err(EinsumError::DuplicateSize {
                    label: *label,
                    first: size,
                    second: size,
                });
            }
        }
        let network = Self::number(shapes, terms, output, &sizes, order);
        check_numel(&network.result_shape())?;
        Ok(network)
    }

    /// Adds the sizes set by the caller, for output labels whose size the operands leave open.
    fn given_sizes(
        sizes: &mut LabelSizes,
        output: &[Label],
        given: &[(Label, usize)],
    ) -> Result<()> {
        let mut seen: HashMap<Label, usize> = HashMap::new();
        let of_output: HashSet<Label> = output.iter().copied().collect();
        for &(label, size) in given {
            if let Some(&first) = seen.get(&label)
                && first != size
            {
                return Err(EinsumError::DuplicateSize { label, first, second: size });
            }
            seen.insert(label, size);
            let kept = of_output.contains(&label);
            match sizes.of.get(&label) {
                // An axis of size 1 is repeated along an output label; a sum over it has one term.
                Some(&(known, operand)) if known != size && !(known == 1 && kept) => {
                    return Err(EinsumError::GivenSizeConflict {
                        label,
                        given: size,
                        size: known,
                        operand,
                    });
                }
                None if !kept => return Err(EinsumError::UnusedSize { label, given: size }),
                _ => {
                    sizes.of.insert(label, (size, usize::MAX));
                }
            }
        }
        match output.iter().find(|label| !sizes.of.contains_key(*label)) {
            Some(&label) if given.is_empty() => Err(EinsumError::UnknownOutputLabel { label }),
            Some(&label) => Err(EinsumError::MissingSize { label }),
            None => Ok(()),
        }
    }

    fn number(
        shapes: &[&[usize]],
        terms: Vec<Vec<Label>>,
        output_term: Vec<Label>,
        sizes: &LabelSizes,
        order: &[Label],
    ) -> Self {
        let mut names = order.to_vec();
        let mut numbers: HashMap<Label, LabelId> =
            order.iter().enumerate().map(|(id, &label)| (label, id as LabelId)).collect();
        let mut id_of = |label: Label| {
            *numbers.entry(label).or_insert_with(|| {
                names.push(label);
                names.len() as LabelId - 1
            })
        };
        let axes: Vec<AxisLabels> = terms
            .iter()
            .zip(shapes)
            .map(|(term, shape)| {
                let axis = |(&l, &n): (&Label, &usize)| (n != 1).then(|| id_of(l));
                term.iter().zip(*shape).map(axis).collect()
            })
            .collect();
        let result: AxisLabels =
            output_term.iter().map(|&l| (sizes.of[&l].0 != 1).then(|| id_of(l))).collect();
        // The term in which a label was last seen; the output is the last term.
        let mut seen = vec![usize::MAX; names.len()];
        let mut distinct = |term: usize, axes: &AxisLabels| -> Ids {
            let mut ids: Ids = axes.iter().flatten().copied().collect();
            ids.retain(|id| std::mem::replace(&mut seen[*id as usize], term) != term);
            ids
        };
        let inputs: Vec<Ids> =
            axes.iter().enumerate().map(|(term, axes)| distinct(term, axes)).collect();
        let mut output = distinct(axes.len(), &result);
        let mut known = vec![false; names.len()];
        inputs.iter().flatten().for_each(|&id| known[id as usize] = true);
        output.retain(|id| known[*id as usize]);
        let sizes = names.iter().map(|l| sizes.of[l].0).collect();
        let shapes: Vec<Vec<usize>> = shapes.iter().map(|s| s.to_vec()).collect();
        let is_empty = false;
        let network = Self {
            terms,
            output_term,
            shapes,
            axes,
            inputs,
            output,
            result,
            sizes,
            names,
            is_empty,
        };
        let result = network.result_shape();
        let is_empty = network.shapes.iter().chain([&result]).any(|shape| shape.contains(&0));
        Self { is_empty, ..network }
    }

    /// True if the output repeats a label.
    pub(crate) fn repeats(&self) -> bool {
        let mut ids: Ids = self.result.iter().flatten().copied().collect();
        ids.sort_unstable();
        ids.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Shape of the result.
    pub(crate) fn result_shape(&self) -> Vec<usize> {
        self.result.iter().map(|id| id.map_or(1, |id| self.sizes[id as usize])).collect()
    }
}
