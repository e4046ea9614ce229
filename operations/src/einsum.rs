//! Contractions given by integer labels and shapes, for callers without letters.

use t4a_diff::Pairs;
use t4a_einsum::{Contraction, Einsum, FloatSemiring, Optimizer, Path, Subscripts};

use crate::{AnyOperation, OperationError};

/// Operand of a contraction: a label and a size for each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled<'a> {
    /// Axes with equal labels are multiplied elementwise; labels that the result lacks are summed.
    pub labels: &'a [i64],
    /// Sizes of the axes.
    pub shape: &'a [usize],
}

/// Options of a contraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractionOptions {
    /// Semiring (⊕, ⊗).
    pub semiring: FloatSemiring,
    /// True for complex numbers, given as pairs of operands; only with the standard semiring.
    pub complex: bool,
    /// Memory limit for intermediate tensors, in bytes; larger contractions are sliced.
    pub memory: Option<usize>,
    /// Size of an element in bytes, used with `memory`.
    pub element: usize,
    /// Search method for the contraction order.
    pub optimizer: Optimizer,
    /// Contraction order; `None` means that it is searched.
    pub path: Option<Path>,
}

impl Default for ContractionOptions {
    /// Real `f64`, standard semiring, greedy search.
    fn default() -> Self {
        Self {
            semiring: FloatSemiring::Standard,
            complex: false,
            memory: None,
            element: 8,
            optimizer: Optimizer::default(),
            path: None,
        }
    }
}

/// Contraction of these operands to a result with the given labels. The plan is cached by `t4a_einsum`, once per set
/// of labels and shapes.
///
/// ```
/// use t4a_operations::{ContractionOptions, Labelled, einsum};
/// let a = Labelled { labels: &[1, 2], shape: &[3, 4] };
/// let b = Labelled { labels: &[2, 3], shape: &[4, 5] };
/// let product = einsum(&[a, b], &[1, 3], ContractionOptions::default())?;
/// assert_eq!(product, einsum(&[a, b], &[1, 3], ContractionOptions::default())?);
/// # Ok::<(), t4a_operations::OperationError>(())
/// ```
///
/// # Errors
/// [`OperationError::Einsum`] for inconsistent labels and shapes, an invalid path, and a memory limit below that of every
/// sliced plan; [`OperationError::Data`] if the numbers of labels
/// and sizes differ, and for complex numbers with another semiring.
pub fn einsum(
    operands: &[Labelled<'_>],
    result: &[i64],
    options: ContractionOptions,
) -> Result<AnyOperation, OperationError> {
    let ContractionOptions { semiring, complex, memory, element, optimizer, path } = options;
    if let Some((i, x)) = operands.iter().enumerate().find(|(_, x)| x.labels.len() != x.shape.len())
    {
        let (labels, sizes) = (x.labels.len(), x.shape.len());
        let text = format!("operand {i} of a contraction has {labels} labels and {sizes} sizes");
        return Err(OperationError::Data(text));
    }
    if complex && semiring != FloatSemiring::Standard {
        let text = format!("there are no complex numbers over {semiring:?}");
        return Err(OperationError::Data(text));
    }
    let labels = operands.iter().map(|x| x.labels.iter().copied());
    let mut einsum =
        Einsum::from(Subscripts::new(labels, result.iter().copied())).optimizer(optimizer);
    if let Some(bytes) = memory {
        einsum = einsum.memory(bytes);
    }
    if let Some(path) = path {
        einsum = einsum.path(path);
    }
    let shapes: Vec<&[usize]> = operands.iter().map(|x| x.shape).collect();
    let element = if complex { 2 * element } else { element };
    let op = Contraction { plan: einsum.plan(&shapes, element)?, semiring };
    Ok(if complex { Pairs::new(op).into() } else { op.into() })
}
