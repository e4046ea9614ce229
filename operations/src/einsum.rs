//! Contractions by integer labels and shapes, as callers without letters have them.

use t4a_diff::Pairs;
use t4a_einsum::{Contraction, Einsum, FloatSemiring, Subscripts};

use crate::{AnyOperation, OperationError};

/// An operand: a label and a size for each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled<'a> {
    /// Axes with the same label are multiplied index by index; a label that the result lacks is summed.
    pub labels: &'a [i64],
    /// Sizes.
    pub shape: &'a [usize],
}

/// Options of a contraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractionOptions {
    /// ⊕ and ⊗.
    pub semiring: FloatSemiring,
    /// On complex numbers, which are pairs of operands; over the standard semiring alone.
    pub complex: bool,
    /// Bytes for intermediate tensors: sums that need more are done in slices.
    pub memory: Option<usize>,
    /// Bytes of an element, for `memory`.
    pub element: usize,
}

impl Default for ContractionOptions {
    /// Sums of products of real `f64`.
    fn default() -> Self {
        Self { semiring: FloatSemiring::Standard, complex: false, memory: None, element: 8 }
    }
}

/// The contraction of these operands to a result with these labels. The plan is found once per set of
/// labels and shapes: `t4a_einsum` keeps it.
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
/// [`OperationError::Einsum`] for labels and shapes that do not fit; [`OperationError::Data`] for
/// numbers of labels and sizes that differ, and for complex numbers over another semiring.
pub fn einsum(
    operands: &[Labelled<'_>],
    result: &[i64],
    options: ContractionOptions,
) -> Result<AnyOperation, OperationError> {
    let ContractionOptions { semiring, complex, memory, element } = options;
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
    let einsum = Einsum::from(Subscripts::new(labels, result.iter().copied()));
    let einsum = match memory {
        Some(bytes) => einsum.memory(bytes),
        None => einsum,
    };
    let shapes: Vec<&[usize]> = operands.iter().map(|x| x.shape).collect();
    let element = if complex { 2 * element } else { element };
    let op = Contraction { plan: einsum.plan(&shapes, element)?, semiring };
    Ok(if complex { Pairs::new(op).into() } else { op.into() })
}
