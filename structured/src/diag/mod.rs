//! Generalised diagonal tensors: zero unless the indices of certain axes are equal. A tensor consists of a payload
//! array and, for each of its axes, the payload axis that indexes it.
//!
//! ```text
//! classes   [0, 0] diagonal   [0, 1, 0] partly diagonal   [0, 1, 2] dense    numbered by first appearance
//! ```
//!
//! An einsum of such operands is an einsum of their payloads with renamed labels: labels of axes in one class are
//! identified. Entries off the diagonal are the zero of the semiring, which annihilates products.

mod factor;
mod tensor;

pub use factor::{DiagEigh, DiagSvd};

use hashbrown::HashMap;
use t4a_diff::{Array, Eager};
use t4a_einsum::{FloatSemiring, contract_arrays};

use crate::error::{Result, StructuredError};

/// `T[i…] = payload[…]` where axes of one class have equal indices, else the zero of the semiring.
#[derive(Clone, Debug)]
pub struct DiagTensor<A = Eager> {
    /// Payload in its own shape, or flat. Stored as given, so that a leaf of a tape keeps its identity.
    elements: A,
    /// Shape of the payload: one size per class.
    sizes: Vec<usize>,
    classes: Vec<usize>,
}

impl<A: Array> DiagTensor<A> {
    /// Tensor of a payload; axis `k` of the tensor is indexed by axis `classes[k]` of the payload.
    ///
    /// # Errors
    /// `Invalid` unless classes are numbered by first appearance and each axis of the payload has a class.
    pub fn new(payload: A, classes: Vec<usize>) -> Result<Self> {
        let sizes = payload.shape();
        Self::with_sizes(payload, sizes, classes)
    }

    /// As [`DiagTensor::new`], with a payload that may be flat; it has `Π sizes` elements.
    pub(crate) fn with_sizes(elements: A, sizes: Vec<usize>, classes: Vec<usize>) -> Result<Self> {
        let (mut next, rank) = (0, sizes.len());
        for &class in &classes {
            if class > next {
                return Err(invalid(format!(
                    "classes {classes:?} are not numbered by first appearance"
                )));
            }
            next = next.max(class + 1);
        }
        // A number may have the shape [1].
        if next != rank && !(next == 0 && sizes[..] == [1]) {
            return Err(invalid(format!("{next} classes of a payload with {rank} axes")));
        }
        Ok(Self { elements, sizes, classes })
    }

    /// `T[i, …, i] = v[i]` with `axes` axes.
    ///
    /// # Errors
    /// `Invalid` for no axes or a payload that is not a vector.
    pub fn from_diag(v: A, axes: usize) -> Result<Self> {
        Self::new(v, vec![0; axes])
    }

    /// Dense tensor: each axis has its own class.
    pub fn dense(x: A) -> Self {
        let sizes = x.shape();
        let classes = (0..sizes.len()).collect();
        Self { elements: x, sizes, classes }
    }

    /// Stored elements, with one axis per class.
    pub fn payload(&self) -> A {
        match self.elements.shape() == self.sizes {
            true => self.elements.clone(),
            false => self.elements.reshape(&self.sizes),
        }
    }

    /// Payload as stored, in its shape or flat; a leaf of a tape is returned unchanged.
    pub fn elements(&self) -> &A {
        &self.elements
    }

    /// Shape of the payload: one size per class.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Class of each axis, that is, its axis of the payload.
    pub fn classes(&self) -> &[usize] {
        &self.classes
    }

    /// Shape of the dense tensor.
    pub fn shape(&self) -> Vec<usize> {
        self.classes.iter().map(|&class| self.sizes[class]).collect()
    }

    /// Permutation of the axes: axis `k` of the result is axis `axes[k]`.
    ///
    /// # Errors
    /// `Rank`, `MoveAxis`.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let (op, rank) = ("permute", self.classes.len());
        if axes.len() != rank {
            return Err(StructuredError::Rank { op, required: rank, given: axes.len() });
        }
        for (i, &axis) in axes.iter().enumerate() {
            if axis >= rank || axes[..i].contains(&axis) {
                return Err(StructuredError::Axis { op, axis, rank });
            }
        }
        let (classes, order) = canonical(axes.iter().map(|&axis| self.classes[axis]));
        Self::new(self.payload().permute(&order), classes)
    }

    /// Dense array; entries off the diagonals are the zero of the semiring.
    ///
    /// # Errors
    /// Errors of the einsum.
    pub fn to_dense(&self, semiring: FloatSemiring) -> Result<A> {
        let of = |class: &usize| letter(*class);
        let payload: String = (0..self.sizes.len()).map(letter).collect();
        let all: String = self.classes.iter().map(of).collect();
        Ok(contract_arrays(semiring, &format!("{payload}->{all}"), &[&self.payload()])?)
    }
}

/// Renumbers classes by first appearance; also returns the old class of each new one.
fn canonical(old: impl Iterator<Item = usize>) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = Vec::new();
    let classes = old
        .map(|class| {
            order.iter().position(|&seen| seen == class).unwrap_or_else(|| {
                order.push(class);
                order.len() - 1
            })
        })
        .collect();
    (classes, order)
}

fn invalid(message: String) -> StructuredError {
    StructuredError::Invalid { op: "diag", message }
}

/// Label number `i` of a large alphabet.
fn letter(i: usize) -> char {
    char::from_u32(0x4e00 + i as u32).unwrap_or('z')
}

/// Einsum of generalised diagonal tensors; the result is one as well.
///
/// Cost: that of the einsum of the payloads. Each label has one size; axes of size 1 are not broadcast.
///
/// # Errors
/// `Invalid` for malformed subscripts and mismatching sizes.
pub fn diag_einsum<A: Array>(
    semiring: FloatSemiring,
    subscripts: &str,
    operands: &[&DiagTensor<A>],
) -> Result<DiagTensor<A>> {
    let text: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) =
        text.split_once("->").ok_or_else(|| invalid(format!("{subscripts}: no output")))?;
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|part| part.chars().collect()).collect();
    if inputs.len() != operands.len() {
        let (n, given) = (inputs.len(), operands.len());
        return Err(invalid(format!("{subscripts}: {n} operands are required, given {given}")));
    }
    // Labels of axes in one class are identified.
    let mut ids: HashMap<char, usize> = HashMap::new();
    let mut sizes: Vec<usize> = Vec::new();
    let mut root: Vec<usize> = Vec::new();
    fn find(root: &[usize], mut id: usize) -> usize {
        while root[id] != id {
            id = root[id];
        }
        id
    }
    let mut payloads: Vec<Vec<usize>> = Vec::new();
    for (x, labels) in operands.iter().zip(&inputs) {
        if labels.len() != x.classes.len() {
            let (n, given) = (labels.len(), x.classes.len());
            return Err(invalid(format!("{subscripts}: {n} labels of {given} axes")));
        }
        let mut nodes = vec![None; x.sizes.len()];
        for ((&label, &class), size) in labels.iter().zip(&x.classes).zip(x.shape()) {
            let id = *ids.entry(label).or_insert_with(|| {
                sizes.push(size);
                root.push(root.len());
                root.len() - 1
            });
            if sizes[id] != size {
                let message = format!("{subscripts}: {label} has sizes {} and {size}", sizes[id]);
                return Err(invalid(message));
            }
            let node = *nodes[class].get_or_insert(id);
            let (a, b) = (find(&root, node), find(&root, id));
            root[a.max(b)] = a.min(b);
        }
        payloads.push(nodes.into_iter().flatten().collect());
    }
    let named = |label: char| {
        let id = ids.get(&label).map(|&id| find(&root, id));
        id.ok_or_else(|| invalid(format!("{subscripts}: label {label} is not on an operand")))
    };
    let output: Vec<usize> = output.chars().map(named).collect::<Result<_>>()?;
    let (classes, order) = canonical(output.into_iter());
    let name =
        |ids: &[usize]| -> String { ids.iter().map(|&id| letter(find(&root, id))).collect() };
    let inputs: Vec<String> = payloads.iter().map(|ids| name(ids)).collect();
    let text = format!("{}->{}", inputs.join(","), name(&order));
    let arrays: Vec<A> = operands.iter().map(|x| x.payload()).collect();
    let arrays: Vec<&A> = arrays.iter().collect();
    DiagTensor::new(contract_arrays(semiring, &text, &arrays)?, classes)
}
