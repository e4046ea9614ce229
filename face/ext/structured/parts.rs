//! Access to the flat element lists of structured tensors over any array type.

use std::fmt::Debug;

use t4a_diff::{Array, Dual, Eager};
use t4a_structured::{Layout, Result, StructuredError};
use t4a_tensor::AnyTensor;

/// Reshapes the elements to rank 1.
pub(super) fn flat<A: Array>(x: A) -> A {
    let shape = x.shape();
    if shape.len() == 1 { x } else { x.reshape(&[shape.iter().product()]) }
}

/// Reads `elements` elements as an engine tensor of rank 1.
pub(super) fn engine(x: Eager, elements: usize) -> Result<AnyTensor> {
    Ok(x.into_tensor()?.reshape(&[elements])?)
}

/// Reads the elements into a tensor of the engine.
pub(super) fn on_engine<L: Layout, A: Array>(tensor: &L::Tensor<A>) -> Result<L::Tensor<Eager>> {
    let (layout, re, im) = L::parts::<A>(tensor);
    let part = |x: A| -> Result<Eager> { Ok(x.elements()?.into()) };
    layout.with(part(re)?, im.map(part).transpose()?)
}

/// Applies `f` to the elements; for complex tensors to real and imaginary part.
pub(super) fn map<L: Layout, A: Array, C: Array>(
    tensor: &L::Tensor<A>,
    f: impl Fn(A) -> C,
) -> L::Tensor<C> {
    let (layout, re, im) = L::parts::<A>(tensor);
    accept(layout.with(f(re), im.map(f)))
}

/// Dense array of a real tensor, zeros included.
pub(super) fn real_dense<L: Layout, A: Array>(tensor: &L::Tensor<A>) -> Result<A> {
    match L::dense::<A>(tensor)? {
        (re, None) => Ok(re),
        (_, Some(_)) => {
            let message = "the tensor is complex: see to_complex".into();
            Err(StructuredError::Invalid { op: "to_tensor", message })
        }
    }
}

/// Tensor of dual numbers with this tangent; `None` means zero.
pub(super) fn with_tangent<L: Layout, A: Array>(
    tensor: &L::Tensor<A>,
    tangent: Option<&L::Tensor<A>>,
) -> Result<L::Tensor<Dual<A>>> {
    let (layout, re, im) = L::parts::<A>(tensor);
    let Some(tangent) = tangent else {
        return layout.with(Dual::constant(re), im.map(Dual::constant));
    };
    let (other, dre, dim) = L::parts::<A>(tangent);
    if layout != other || im.is_some() != dim.is_some() {
        let (op, lhs, rhs) = ("with_tangent", layout.describe(), other.describe());
        return Err(StructuredError::SpecMismatch { op, lhs, rhs });
    }
    let dual = |x, t| Dual::new(flat(x), flat(t));
    layout.with(dual(re, dre), im.zip(dim).map(|(x, t)| dual(x, t)))
}

/// Splits a tensor of dual numbers into value and tangent.
pub(super) fn from_dual<L: Layout, A: Array>(
    dual: &L::Tensor<Dual<A>>,
) -> Result<(L::Tensor<A>, L::Tensor<A>)> {
    let (layout, re, im) = L::parts::<Dual<A>>(dual);
    let value = layout.with(re.value.clone(), im.as_ref().map(|im| im.value.clone()))?;
    Ok((value, layout.with(re.into_tangent(), im.map(Dual::into_tangent))?))
}

/// Gradient of a tensor from the gradients of both parts; a missing part is replaced by `zeros`. Returns `None` if
/// neither part has a gradient.
pub(super) fn gradient<L: Layout, A: Array, G: Array>(
    tensor: &L::Tensor<A>,
    of: impl Fn(&A) -> Option<G>,
    zeros: impl Fn(&A) -> G,
) -> Option<L::Tensor<G>> {
    let (layout, re, im) = L::parts::<A>(tensor);
    // The payload of a diagonal tensor is its own leaf, of any rank.
    let (dre, dim) = (of(&re), im.as_ref().and_then(of));
    if dre.is_none() && dim.is_none() {
        return None;
    }
    let part = |x: &A, gradient: Option<G>| gradient.unwrap_or_else(|| zeros(x));
    Some(accept(layout.with(part(&re, dre), im.as_ref().map(|im| part(im, dim)))))
}

/// Unwraps a result that cannot fail, because the parts were taken from a tensor of the same structure.
pub(super) fn accept<T, E: Debug>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| unreachable!("parts of a tensor: {error:?}"))
}
