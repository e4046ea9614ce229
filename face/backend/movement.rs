//! Conversion of Burn's arguments for data movement to the engine's: slices, lists of tensors, reductions of a
//! scatter.

#[cfg(burn_line = "0.22")]
use burn_backend::ops::PadMode;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{BoolDType, DType, Distribution, Shape, Slice};
use t4a_tensor::any::Number;
use t4a_tensor::index::{Reduction, Span};
use t4a_tensor::layout::Dims;
use t4a_tensor::{AnyTensor, Result, Tensor, TensorError, random};

use super::primitive::{T4aTensor, dtype, wrap};

/// Index range of each leading axis that has a slice. A negative step walks the range `[start, end)` from its last
/// element backwards, unlike Python.
///
/// # Errors
/// [`TensorError::Shape`] if there are more slices than axes.
fn spans(op: &'static str, shape: &[usize], slices: &[Slice]) -> Result<Vec<Span>> {
    if slices.len() > shape.len() {
        return Err(TensorError::shape(op, shape, "at most one slice per axis"));
    }
    let span = |(slice, &size): (&Slice, &usize)| {
        let (range, len, step) = (slice.to_range(size), slice.output_size(size), slice.step());
        let start = match len {
            0 => 0,
            _ if step < 0 => range.end - 1,
            _ => range.start,
        };
        Span { start, len, step }
    };
    Ok(slices.iter().zip(shape).map(span).collect())
}

/// Returns the view that the slices select; axes without a slice are kept whole.
pub(crate) fn slice(x: &AnyTensor, slices: &[Slice]) -> Result<AnyTensor> {
    let mut out = x.clone();
    for (axis, span) in spans("slice", x.shape(), slices)?.into_iter().enumerate() {
        if (span.start, span.len, span.step) != (0, x.shape()[axis], 1) {
            out = out.slice_axis(axis, span.start, span.len, span.step)?;
        }
    }
    Ok(out)
}

/// Returns `x` with `values` written to the region that the slices select.
pub(crate) fn slice_assign(
    x: AnyTensor,
    slices: &[Slice],
    values: &AnyTensor,
) -> Result<AnyTensor> {
    let spans = spans("slice_assign", x.shape(), slices)?;
    x.slice_assign(&spans, values)
}

/// Concatenates tensors along an axis.
#[track_caller]
pub(crate) fn cat(tensors: Vec<T4aTensor>, dim: usize) -> T4aTensor {
    let store = tensors.first().map_or(BoolDType::Native, T4aTensor::store);
    let tensors: Vec<AnyTensor> = tensors.into_iter().map(T4aTensor::into_any).collect();
    wrap(AnyTensor::cat(&tensors, dim)).with_store(store)
}

/// Returns a tensor filled with one value.
#[track_caller]
pub(crate) fn full(shape: Shape, value: Number, of: impl Into<DType>) -> T4aTensor {
    let of = of.into();
    let out = wrap(AnyTensor::full(&shape, value, dtype(of)));
    match of {
        DType::Bool(store) => out.with_store(store),
        _ => out,
    }
}

/// Reduces over all axes; the result has shape `[1]`.
pub(crate) fn of_all(
    x: &AnyTensor,
    reduce: impl FnOnce(&AnyTensor, &[usize]) -> Result<AnyTensor>,
) -> Result<AnyTensor> {
    let axes: Dims = (0..x.rank()).collect();
    reduce(x, &axes)?.reshape(&[1])
}

/// `outᵢ = aᵢ₊₁·bᵢ₊₂ − aᵢ₊₂·bᵢ₊₁` along an axis of size 3, indices modulo 3.
pub(crate) fn cross(a: &AnyTensor, b: &AnyTensor, dim: usize) -> Result<AnyTensor> {
    if a.shape().get(dim) != Some(&3) || b.shape().get(dim) != Some(&3) {
        let required = "an axis of size 3 in both";
        return Err(TensorError::shapes("cross", a.shape(), b.shape(), required));
    }
    let turned = |x: &AnyTensor, by: [i64; 3]| -> Result<AnyTensor> {
        x.index_select(dim, &Tensor::from_slice(&by, &[3])?.into())
    };
    let (next, last) = ([1, 2, 0], [2, 0, 1]);
    turned(a, next)?.mul(turned(b, last)?)?.sub(turned(a, last)?.mul(turned(b, next)?)?)
}

/// Pads each axis before and after with a constant, by reflection without the edge element, or by repeating the
/// edge element.
///
/// # Errors
/// [`TensorError::Value`] unless there is one pair of counts per axis and each axis is long enough for the mode.
#[cfg(burn_line = "0.22")]
pub(crate) fn pad(x: &AnyTensor, padding: &[(usize, usize)], mode: PadMode) -> Result<AnyTensor> {
    let shape = x.shape();
    if padding.len() != shape.len() {
        let message = format!("{} pairs for a tensor of shape {shape:?}", padding.len());
        return Err(TensorError::value("pad", message));
    }
    let required = usize::from(matches!(mode, PadMode::Reflect));
    let wide = |&(&size, &(before, after)): &(&usize, &(usize, usize))| {
        before.max(after) > 0 && (size == 0 || required * before.max(after) >= size)
    };
    if let PadMode::Constant(value) = mode {
        let mut padded = Dims::from_slice(shape);
        for (size, (before, after)) in padded.iter_mut().zip(padding) {
            let sum = size.checked_add(*before).and_then(|size| size.checked_add(*after));
            *size = sum.ok_or(TensorError::SizeOverflow { op: "pad", shape: shape.to_vec() })?;
        }
        let span = |(&len, &(start, _)): (&usize, &(usize, usize))| Span { start, len, step: 1 };
        let spans: Vec<Span> = shape.iter().zip(padding).map(span).collect();
        let out = AnyTensor::full(&padded, Number::Float(value.into()), x.dtype())?;
        return out.slice_assign(&spans, x);
    }
    if let Some((size, (before, after))) = shape.iter().zip(padding).find(wide) {
        let (name, required) = match mode {
            PadMode::Reflect => ("Reflect padding", "less than the size of the axis"),
            _ => ("edge padding", "an axis with elements"),
        };
        let message =
            format!("{name} requires {required}: ({before}, {after}) of an axis of size {size}");
        return Err(TensorError::value("pad", message));
    }
    let mut out = x.clone();
    for (axis, &(before, after)) in padding.iter().enumerate() {
        if before + after == 0 {
            continue;
        }
        let last = shape[axis] as i64 - 1;
        let source = |at: i64| match mode {
            PadMode::Reflect => last - (last - at.abs()).abs(),
            _ => at.clamp(0, last),
        };
        let index: Vec<i64> = (-(before as i64)..=last + after as i64).map(source).collect();
        out = out.index_select(axis, &Tensor::from_slice(&index, &[index.len()])?.into())?;
    }
    Ok(out)
}

/// Returns the elements at the true positions of the mask, in row-major order, as a vector.
///
/// # Errors
/// [`TensorError::ShapeMismatch`] unless mask and tensor have the same shape.
#[cfg(burn_line = "0.22")]
pub(crate) fn masked(x: &AnyTensor, mask: &AnyTensor) -> Result<AnyTensor> {
    if x.shape() != mask.shape() {
        return Err(TensorError::shapes("mask_select", x.shape(), mask.shape(), "equal shapes"));
    }
    let len = [x.numel()];
    let at = mask.reshape(&len)?.nonzero(t4a_tensor::DType::I64)?;
    x.reshape(&len)?.index_select(0, &at.reshape(&[at.numel()])?)
}

/// Fills a tensor with random elements from the process-wide generator.
#[track_caller]
pub(crate) fn random(shape: Shape, law: Distribution, of: impl Into<DType>) -> T4aTensor {
    let law = match law {
        Distribution::Default => random::Distribution::Standard,
        Distribution::Bernoulli(p) => random::Distribution::Bernoulli(p),
        Distribution::Uniform(low, high) => {
            random::Distribution::Uniform(Number::Float(low), Number::Float(high))
        }
        Distribution::Normal(mean, deviation) => random::Distribution::Normal(mean, deviation),
    };
    wrap(AnyTensor::random(random::global(), &shape, law, dtype(of)))
}

/// Converts the reduction of a scatter.
pub(crate) fn combine(op: IndexingUpdateOp) -> Reduction {
    match op {
        IndexingUpdateOp::Assign => Reduction::Assign,
        IndexingUpdateOp::Add => Reduction::Add,
        IndexingUpdateOp::Mul => Reduction::Mul,
        IndexingUpdateOp::Min => Reduction::Min,
        IndexingUpdateOp::Max => Reduction::Max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_step_reverses_the_range() {
        let x: AnyTensor = Tensor::from_vec((0..10i32).collect(), &[10]).unwrap().into();
        let at = |start, end, step| {
            let part = slice(&x, &[Slice::new(start, end, step)]).unwrap();
            part.typed::<i32>().unwrap().to_vec().unwrap()
        };
        assert_eq!(at(2, Some(7), -1), [6, 5, 4, 3, 2]);
        assert_eq!(at(2, Some(7), -2), [6, 4, 2]);
        assert_eq!(at(0, None, -3), [9, 6, 3, 0]);
        assert_eq!(at(-4, Some(-1), 1), [6, 7, 8]);
        assert_eq!(at(-4, Some(-1), -1), [8, 7, 6]);
        assert_eq!(at(5, Some(100), 2), [5, 7, 9]);
        assert_eq!(at(7, Some(2), -1), [0i32; 0]);
        assert_eq!(at(-100, Some(2), 1), [0, 1]);
        assert!(slice(&x, &[Slice::full(), Slice::full()]).is_err());
    }
}
