//! Subscripts meeting shapes: a network over numbered labels in which every operand names a label
//! once and every label has more than one value.
//!
//! ```text
//! repeated label in an operand   diagonal view
//! axis of size 1                 dropped: a product with a tensor that lacks the label broadcasts
//! repeated label in the output   written to the diagonal of zeros
//! label in the output only       expanded view
//! ```

use hashbrown::HashMap;
use smallvec::SmallVec;
use t4a_algebra::{Numeric, Scalar, Semiring, Standard};
use t4a_tensor::Tensor;

use crate::error::{EinsumError, Result};
use crate::subscripts::{Label, Subscripts, Term, Token};

/// Number of a label in its network.
pub(crate) type Id = u32;
/// Distinct labels of a tensor, in the order of its axes.
pub(crate) type Ids = SmallVec<[Id; 8]>;
type Axes = SmallVec<[Option<Id>; 8]>;

/// A tensor and what its axes stand for.
#[derive(Clone)]
pub(crate) struct Labelled<T> {
    pub(crate) tensor: Tensor<T>,
    pub(crate) ids: Ids,
}

/// Operands, output and sizes over numbered labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Network {
    /// Labels of the operands and of the result as they come, ellipses spelled out.
    pub(crate) terms: Vec<Vec<Label>>,
    pub(crate) output_term: Vec<Label>,
    /// Shapes of the operands as they come.
    pub(crate) shapes: Vec<Vec<usize>>,
    /// Label of each axis as it comes; none for size 1.
    axes: Vec<Axes>,
    /// Distinct labels of each operand after [`Network::enter`].
    pub(crate) inputs: Vec<Ids>,
    /// Labels that operands and output share, in the order of the output.
    pub(crate) output: Ids,
    /// Label of each axis of the result; none for size 1.
    result: Axes,
    pub(crate) sizes: Vec<usize>,
    /// Names by number, for messages.
    pub(crate) names: Vec<Label>,
}

/// Collects the size of each label, and who said so.
struct Sizes {
    of: HashMap<Label, (usize, usize)>,
}

impl Sizes {
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

/// Writes a term with its ellipsis spelled out to `width` axes.
fn spell(term: &Term, width: usize) -> Vec<Label> {
    let mut labels = Vec::with_capacity(term.len() + width);
    for token in term {
        match *token {
            Token::Label(label) => labels.push(label),
            Token::Ellipsis => labels.extend((0..width as u32).rev().map(Label::Ellipsis)),
        }
    }
    labels
}

impl Network {
    pub(crate) fn new(
        subscripts: &Subscripts,
        shapes: &[&[usize]],
        given: &[(Label, usize)],
    ) -> Result<Self> {
        let expected = subscripts.inputs.len();
        if shapes.len() != expected || expected == 0 {
            let expected = expected.max(1);
            return Err(EinsumError::OperandCount { expected, given: shapes.len() });
        }
        let mut sizes = Sizes { of: HashMap::new() };
        let mut terms = Vec::with_capacity(expected);
        let mut widest = 0;
        let mut broadcasts = false;
        for (operand, (term, shape)) in subscripts.inputs.iter().zip(shapes).enumerate() {
            let named = term.iter().filter(|&&t| t != Token::Ellipsis).count();
            let ellipsis = named < term.len();
            broadcasts |= ellipsis;
            if shape.len() < named || (shape.len() > named && !ellipsis) {
                let labels = if ellipsis { format!("at least {named}") } else { named.to_string() };
                return Err(EinsumError::Rank { operand, labels, shape: shape.to_vec() });
            }
            let labels = spell(term, shape.len() - named);
            widest = widest.max(shape.len() - named);
            for (&label, &size) in labels.iter().zip(*shape) {
                sizes.meet(label, size, operand)?;
            }
            // A diagonal does not broadcast.
            for (i, label) in labels.iter().enumerate() {
                if let Some(j) = labels[..i].iter().position(|l| l == label)
                    && shape[i] != shape[j]
                {
                    return Err(EinsumError::SizeConflict {
                        label: *label,
                        size: shape[i],
                        operand,
                        other_size: shape[j],
                        other_operand: operand,
                    });
                }
            }
            terms.push(labels);
        }
        let output = match &subscripts.output {
            Some(term) => {
                if widest > 0 && !term.contains(&Token::Ellipsis) {
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
        Ok(Self::number(shapes, terms, output, &sizes))
    }

    fn given_sizes(sizes: &mut Sizes, output: &[Label], given: &[(Label, usize)]) -> Result<()> {
        let mut seen: HashMap<Label, usize> = HashMap::new();
        for &(label, size) in given {
            if let Some(&first) = seen.get(&label)
                && first != size
            {
                return Err(EinsumError::DuplicateSize { label, first, second: size });
            }
            seen.insert(label, size);
            match sizes.of.get(&label) {
                Some(&(known, operand)) if known != size && known != 1 => {
                    return Err(EinsumError::GivenSizeConflict {
                        label,
                        given: size,
                        size: known,
                        operand,
                    });
                }
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
        sizes: &Sizes,
    ) -> Self {
        let mut names = Vec::new();
        let mut numbers: HashMap<Label, Id> = HashMap::new();
        let mut id_of = |label: Label| {
            *numbers.entry(label).or_insert_with(|| {
                names.push(label);
                names.len() as Id - 1
            })
        };
        let axes: Vec<Axes> = terms
            .iter()
            .zip(shapes)
            .map(|(term, shape)| {
                let axis = |(&l, &n): (&Label, &usize)| (n != 1).then(|| id_of(l));
                term.iter().zip(*shape).map(axis).collect()
            })
            .collect();
        let result: Axes =
            output_term.iter().map(|&l| (sizes.of[&l].0 != 1).then(|| id_of(l))).collect();
        let distinct = |axes: &Axes| {
            let mut ids = Ids::new();
            axes.iter().flatten().for_each(|&id| {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            });
            ids
        };
        let inputs: Vec<Ids> = axes.iter().map(distinct).collect();
        let mut output = distinct(&result);
        output.retain(|id| inputs.iter().any(|ids| ids.contains(id)));
        let sizes = names.iter().map(|l| sizes.of[l].0).collect();
        let shapes = shapes.iter().map(|s| s.to_vec()).collect();
        Self { terms, output_term, shapes, axes, inputs, output, result, sizes, names }
    }

    /// Shape of the result.
    pub(crate) fn result_shape(&self) -> Vec<usize> {
        self.result.iter().map(|id| id.map_or(1, |id| self.sizes[id as usize])).collect()
    }

    /// Operand `i` as a view with distinct labels. No copy.
    pub(crate) fn enter<T: Scalar>(&self, i: usize, tensor: &Tensor<T>) -> Result<Labelled<T>> {
        enter(&self.axes[i], tensor)
    }

    /// The cotangent of the result as that of the output labels: what [`Network::leave`] repeats
    /// is summed, what it embeds is read off the diagonal.
    pub(crate) fn enter_result<T: Numeric>(&self, cotangent: &Tensor<T>) -> Result<Labelled<T>> {
        let x = enter(&self.result, cotangent)?;
        let repeated: Ids = x.ids.iter().copied().filter(|id| !self.output.contains(id)).collect();
        crate::pair::sum_out::<Standard, T>(x, &repeated, &self.sizes)
    }

    /// The cotangent of operand `i`, given that of its view from [`Network::enter`].
    pub(crate) fn leave_operand<T: Numeric>(&self, i: usize, x: &Labelled<T>) -> Result<Tensor<T>> {
        let aligned = align(x, &self.inputs[i])?;
        if self.inputs[i].len() == self.axes[i].len() {
            return Ok(aligned);
        }
        embed::<Standard, T>(&self.axes[i], &self.shapes[i], &aligned, &self.inputs[i])
    }

    /// The result in the order and shape that were asked for.
    pub(crate) fn leave<S: Semiring<T>, T: Scalar>(&self, x: Labelled<T>) -> Result<Tensor<T>> {
        let route = x.tensor.route();
        let mut distinct = Ids::new();
        for &id in self.result.iter().flatten() {
            if !distinct.contains(&id) {
                distinct.push(id);
            }
        }
        let mut tensor = align(&x, &distinct)?;
        if distinct.len() != x.ids.len() {
            let shape: SmallVec<[usize; 8]> =
                distinct.iter().map(|&id| self.sizes[id as usize]).collect();
            tensor = tensor.expand(&shape)?;
        }
        if distinct.len() < self.result.iter().flatten().count() {
            let shape = self.result_shape();
            return Ok(embed::<S, T>(&self.result, &shape, &tensor, &distinct)?.with_route(route));
        }
        for (axis, id) in self.result.iter().enumerate() {
            if id.is_none() {
                tensor = tensor.unsqueeze(axis)?;
            }
        }
        Ok(tensor)
    }
}

/// A tensor with the given axes as a view with distinct labels. No copy.
fn enter<T: Scalar>(axes: &Axes, tensor: &Tensor<T>) -> Result<Labelled<T>> {
    let mut view = tensor.clone();
    let mut ids = Ids::new();
    for &axis in axes {
        // Axes that were taken in stand at the front, those to come behind them.
        match axis {
            None => view = view.select(ids.len(), 0)?,
            Some(id) => match ids.iter().position(|&known| known == id) {
                None => ids.push(id),
                Some(at) => {
                    view = view.diagonal(at, ids.len(), 0)?;
                    // The diagonal is the last axis: bring it back to its place.
                    let last = view.rank() - 1;
                    let order: SmallVec<[usize; 8]> =
                        (0..at).chain([last]).chain(at..last).collect();
                    view = view.permute(&order)?;
                }
            },
        }
    }
    Ok(Labelled { tensor: view, ids })
}

/// Writes a tensor with labels `ids` to the diagonals of zeros that repeated labels describe.
fn embed<S: Semiring<T>, T: Scalar>(
    axes: &Axes,
    shape: &[usize],
    x: &Tensor<T>,
    ids: &Ids,
) -> Result<Tensor<T>> {
    let mut out = Tensor::full(shape, S::ZERO)?;
    let strides: Vec<usize> = out.layout().strides().iter().map(|&s| s as usize).collect();
    let along = |id: &Id| -> usize {
        axes.iter().zip(&strides).filter(|(axis, _)| **axis == Some(*id)).map(|(_, s)| s).sum()
    };
    let along: Vec<usize> = ids.iter().map(along).collect();
    scatter(out.as_mut_slice()?, &along, x, |_, new| new)?;
    Ok(out)
}

/// `out[Σ iₖ·strides[k]] ← combine(out[…], x[i])` for every index of x.
pub(crate) fn scatter<T: Scalar>(
    out: &mut [T],
    strides: &[usize],
    x: &Tensor<T>,
    combine: impl Fn(T, T) -> T,
) -> Result<()> {
    let values = x.to_vec()?;
    let shape = x.shape();
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    for value in values {
        out[at] = combine(out[at], value);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Ok(())
}

/// The axes of `x` in the order of `ids`, with size 1 for those that it lacks. Every label of `x`
/// must be among them. No copy.
pub(crate) fn align<T: Scalar>(x: &Labelled<T>, ids: &[Id]) -> Result<Tensor<T>> {
    if x.ids.as_slice() == ids {
        return Ok(x.tensor.clone());
    }
    let order: SmallVec<[usize; 8]> =
        ids.iter().filter_map(|id| x.ids.iter().position(|known| known == id)).collect();
    let mut tensor = x.tensor.permute(&order)?;
    if order.len() < ids.len() {
        for (axis, id) in ids.iter().enumerate() {
            if !x.ids.contains(id) {
                tensor = tensor.unsqueeze(axis)?;
            }
        }
    }
    Ok(tensor)
}
