//! Complex tensors of callers are pairs of real operands in the engine, real part first. Operations on structured
//! tensors take and return the parts as separate tensors.

use t4a_diff::{Meta, Operation};
use t4a_operations::AnyOperation;
use t4a_tensor::layout::Layout;
use t4a_tensor::{AnyTensor, DType};

use crate::dlpack;
use crate::error::{Failure, Status};

/// Number of engine arrays per tensor of the caller: 1, or 2 for a complex one.
pub type Groups = Vec<u8>;

/// Groups restricted to a mask of arrays: groups with all arrays in the mask are kept, others are reduced to their
/// arrays in the mask.
fn masked(groups: &[u8], mask: &[bool]) -> Groups {
    let mut mask = mask.iter();
    let mut kept = Groups::new();
    for &group in groups {
        let named = mask.by_ref().take(group.into()).filter(|&&named| named).count();
        match named == usize::from(group) {
            true => kept.push(group),
            false => kept.extend(std::iter::repeat_n(1, named)),
        }
    }
    kept
}

/// Returns true if every operand is a pair.
fn on_pairs(op: &AnyOperation) -> bool {
    match op {
        AnyOperation::ComplexEinsum(_) => true,
        AnyOperation::Linalg(op) => op.complex,
        AnyOperation::Cumulative(op) => op.complex,
        AnyOperation::LinearRecurrence(op) => op.complex,
        _ => false,
    }
}

/// Groups of `arrays` arrays that are operands.
fn operands(op: &AnyOperation, arrays: usize) -> Groups {
    match op {
        AnyOperation::Jvp(jvp) => {
            let own = operands(jvp.op(), jvp.moving().len());
            let tangents = masked(&own, jvp.moving());
            [own, tangents].concat()
        }
        AnyOperation::Vjp(vjp) => {
            let own = operands(vjp.op(), vjp.wanted().len());
            let results = results(vjp.op(), vjp.given().len());
            let cotangents = masked(&results, vjp.given());
            match vjp.takes_results() {
                true => [own, results, cotangents].concat(),
                false => [own, cotangents].concat(),
            }
        }
        op if on_pairs(op) => vec![2; arrays / 2],
        _ => vec![1; arrays],
    }
}

/// Groups of `arrays` arrays that are results, including indices.
pub fn results(op: &AnyOperation, arrays: usize) -> Groups {
    let mut groups = own_results(op);
    let known = groups.iter().map(|&group| usize::from(group)).sum();
    groups.extend(std::iter::repeat_n(1, arrays.saturating_sub(known)));
    groups
}

/// Groups of the operation's own results, which precede results of one array each.
fn own_results(op: &AnyOperation) -> Groups {
    match op {
        AnyOperation::Linalg(op) => {
            op.op.results().iter().map(|kind| kind.arrays(op.complex) as u8).collect()
        }
        AnyOperation::Jvp(jvp) => own_results(jvp.op()).repeat(2),
        AnyOperation::Vjp(vjp) => masked(&operands(vjp.op(), vjp.wanted().len()), vjp.wanted()),
        op if on_pairs(op) => vec![2],
        _ => Groups::new(),
    }
}

/// Groups of operands for this number of tensors of the caller.
fn operands_of(op: &AnyOperation, tensors: usize) -> Groups {
    match op {
        AnyOperation::Jvp(_) | AnyOperation::Vjp(_) => operands(op, 0),
        op => {
            let group = 1 + u8::from(on_pairs(op));
            let known = op.arity().map(|[operands, _]| operands / usize::from(group));
            vec![group; known.unwrap_or(tensors)]
        }
    }
}

/// Groups of results for this number of tensors of the caller.
fn results_of(op: &AnyOperation, tensors: usize) -> Groups {
    let mut groups = own_results(op);
    let own: usize = groups.iter().map(|&group| usize::from(group)).sum();
    let known = op.arity().map(|[_, results]| groups.len() + results.saturating_sub(own));
    groups.resize(known.unwrap_or(tensors.max(groups.len())), 1);
    groups
}

fn spread(
    op: &AnyOperation,
    mask: &[bool],
    groups: &[u8],
    what: &str,
) -> Result<Vec<bool>, Failure> {
    match mask.len() == groups.len() {
        true => Ok(mask
            .iter()
            .zip(groups)
            .flat_map(|(&x, &n)| std::iter::repeat_n(x, n.into()))
            .collect()),
        false => {
            let (given, has) = (mask.len(), groups.len());
            Err(Failure::argument(format!("{}: {given} flags for {has} {what}", op.name())))
        }
    }
}

/// Expands flags of the caller's operands to arrays.
pub(crate) fn operand_flags(op: &AnyOperation, mask: &[bool]) -> Result<Vec<bool>, Failure> {
    spread(op, mask, &operands_of(op, mask.len()), "operands")
}

/// Expands flags of the caller's results to arrays.
pub(crate) fn result_flags(op: &AnyOperation, mask: &[bool]) -> Result<Vec<bool>, Failure> {
    spread(op, mask, &results_of(op, mask.len()), "results")
}

/// Real and imaginary part of a complex tensor as views; other tensors unchanged.
pub(crate) fn split(x: AnyTensor) -> Result<Vec<AnyTensor>, Failure> {
    let Some(real) = dlpack::real(x.dtype()) else { return Ok(vec![x]) };
    let (layout, len) = (x.layout().clone(), x.buffer().len() / real.size());
    let strides: Vec<isize> = layout.strides().iter().map(|s| 2 * s).collect();
    let part = |part| -> Result<AnyTensor, Failure> {
        let layout = Layout::from_parts(layout.shape(), &strides, 2 * layout.offset() + part, len)?;
        // SAFETY: a complex number is two adjacent floats of this type.
        Ok(unsafe { AnyTensor::from_buffer(x.buffer().clone(), layout, real)? })
    };
    Ok(vec![part(0)?, part(1)?])
}

/// Joins arrays to tensors of the caller.
pub(crate) fn join(op: &AnyOperation, arrays: Vec<AnyTensor>) -> Result<Vec<AnyTensor>, Failure> {
    let groups = results(op, arrays.len());
    let mut arrays = arrays.into_iter();
    let mut all = Vec::with_capacity(groups.len());
    for group in groups {
        match (group, arrays.next(), if group == 2 { arrays.next() } else { None }) {
            (2, Some(re), Some(im)) => all.push(AnyTensor::from_parts(re, im, false)?),
            (_, Some(x), None) => all.push(x),
            _ => return Err(Failure::new(Status::Internal, "a result is missing")),
        }
    }
    Ok(all)
}

/// Shapes and dtypes of arrays from those of tensors.
pub fn split_metas(tensors: &[Meta]) -> Vec<Meta> {
    let parts = |x: &Meta| match dlpack::real(x.dtype) {
        Some(dtype) => vec![Meta { shape: x.shape.clone(), dtype }; 2],
        None => vec![x.clone()],
    };
    tensors.iter().flat_map(parts).collect()
}

/// Shapes and dtypes of the tensors that a caller receives.
///
/// # Errors
/// For complex numbers with parts other than `f32` and `f64`.
pub fn join_metas(op: &AnyOperation, arrays: &[Meta]) -> Result<Vec<Meta>, Failure> {
    let mut arrays = arrays.iter();
    let groups = results(op, arrays.len());
    let joined = |group: u8| {
        let all: Vec<&Meta> = arrays.by_ref().take(group.into()).collect();
        let first =
            *all.first().ok_or_else(|| Failure::new(Status::Internal, "a result is missing"))?;
        let dtype = match (group, first.dtype) {
            (2, DType::F64) => DType::C64,
            (2, DType::F32) => DType::C32,
            (2, dtype) => {
                let text =
                    format!("complex numbers have parts of f32 or f64, not {}", dtype.name());
                return Err(Failure::new(Status::Dtype, text));
            }
            (_, dtype) => dtype,
        };
        Ok(Meta { shape: first.shape.clone(), dtype })
    };
    groups.into_iter().map(joined).collect()
}
