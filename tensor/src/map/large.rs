//! Operands of any size and layout: memory and axis order of the result, and the loop.

use super::spec::{ElementwiseSpec, SMALL, broadcast};
use crate::copy;
use crate::error::Result;
use crate::layout::{Dims, Layout, Strides};
use crate::loops::elementwise::{Body, Operand, for_each_run};
use crate::route::Path;
use crate::storage::Buffer;
use crate::tensor::Tensor;

/// Number of elements above which operands are copied to the axis order of the result (bench `backend`, row
/// `add 1024² transposed`).
const CROSSING: usize = 1024;

/// Broadcasts the operands, selects the memory of the result and calls the body for its runs. Compiled once for all
/// kernels.
///
/// # Safety
/// As [`run`](super::run).
pub(super) unsafe fn compute<const M: usize>(
    spec: ElementwiseSpec<M>,
    mut operands: [Option<Tensor<()>>; M],
    body: Body<'_, M>,
) -> Result<Tensor<()>> {
    let shape = broadcast(spec.op, &operands)?;
    if let Some(part) = still(&operands, &shape) {
        for x in operands.iter_mut().flatten() {
            let lead = shape.len() - x.layout().rank();
            for (axis, _) in part.iter().enumerate().skip(lead).filter(|&(_, &n)| n == 1) {
                let part = x.layout().slice_axis(axis - lead, 0, 1, 1)?;
                // SAFETY: a view.
                *x = unsafe { x.clone().with_layout(part) };
            }
        }
        // SAFETY: passed on; the repeated result is a view.
        return unsafe {
            let out = compute(spec, operands, body)?;
            let repeated = out.layout().expand(&shape)?;
            Ok(out.with_layout(repeated))
        };
    }
    let mut strides: [Strides; M] = std::array::from_fn(|_| Strides::new());
    let mut over = None;
    for (i, slot) in operands.iter_mut().enumerate() {
        let Some(x) = slot else { continue };
        strides[i] = if x.layout().shape() == shape.as_slice() {
            x.layout().strides().into()
        } else {
            x.layout().expand(&shape)?.strides().into()
        };
        if over.is_none() && spec.same_type[i] {
            over = replaced(x, &shape, spec.sizes[i]).map(|ptr| (i, ptr));
        }
    }
    let order = match over {
        Some((i, _)) => forward(&shape, &strides[i]),
        None => {
            let layouts = || strides[1..].iter().filter_map(|s| forward(&shape, s));
            match layouts().any(|layout| layout.is_contiguous()) {
                true => None,
                false => layouts().find(Layout::is_dense),
            }
        }
    };
    let order = match order {
        Some(order) => order,
        None => Layout::contiguous(spec.op, &shape, spec.sizes[0])?,
    };
    let mut path = Path::LoopContiguous;
    for (i, slot) in operands.iter_mut().enumerate() {
        let in_place = over.is_some_and(|(index, _)| index == i);
        let Some(x) = slot.as_mut().filter(|_| !in_place) else { continue };
        if order.numel() > CROSSING && crosses(&order, &strides[i]) {
            let lead = shape.len() - x.layout().rank();
            *x = copy::to_order(x, spec.sizes[i], &order.strides()[lead..])?;
            path = Path::LoopStrided;
            strides[i] = x.layout().expand(&shape)?.strides().into();
            // The copy is exclusively owned and may be overwritten.
            if over.is_none() && spec.same_type[i] {
                over = replaced(x, &shape, spec.sizes[i]).map(|ptr| (i, ptr));
            }
        }
    }
    let (out, buffer) = match over {
        Some((_, ptr)) => (ptr, None),
        None => {
            let (buffer, ptr) = Buffer::fresh(spec.op, order.numel() * spec.sizes[0])?;
            (ptr, Some(buffer))
        }
    };
    let sources = std::array::from_fn(|i| Operand {
        ptr: operands[i].as_ref().map_or(out.cast_const(), |x| x.first(spec.sizes[i])),
        strides: if i == 0 { order.strides() } else { &strides[i] },
        size: spec.sizes[i],
        aliased: !spec.in_place[i] && over.is_some_and(|(index, _)| index == i),
    });
    // SAFETY: the operands are broadcast to the shape; the result is dense under `order`, and each run is inside it.
    unsafe {
        if for_each_run(&shape, sources, spec.cost, body) {
            path = Path::LoopStrided;
        }
    }
    let route = spec.route(path);
    let done = match (buffer, over.and_then(|(i, _)| operands[i].take())) {
        // SAFETY: the buffer was allocated for the layout, and every run was written.
        (Some(buffer), _) => unsafe { Tensor::from_raw(buffer, order) }.with_route(route),
        (None, Some(operand)) => operand.with_route(route),
        (None, None) => unreachable!("the result is fresh or lies over an operand"),
    };
    Ok(done)
}

/// The shape of a large result with size 1 for the axes along which all operands have stride 0; `None` if there are
/// none.
fn still<const M: usize>(operands: &[Option<Tensor<()>>; M], shape: &[usize]) -> Option<Dims> {
    if crate::layout::checked_numel(shape)? <= SMALL {
        return None;
    }
    let moves = |axis: usize, x: &Tensor<()>| {
        let own = (axis + x.layout().rank()).checked_sub(shape.len());
        own.is_some_and(|own| x.layout().shape()[own] > 1 && x.layout().strides()[own] != 0)
    };
    let moved = |axis| operands.iter().flatten().any(|x| moves(axis, x));
    let size = |(axis, &n): (usize, &usize)| if n > 1 && !moved(axis) { 1 } else { n };
    let part: Dims = shape.iter().enumerate().map(size).collect();
    (part.as_slice() != shape).then_some(part)
}

/// True if the operand has a smaller stride along another axis than along the innermost one of the result.
fn crosses(order: &Layout, strides: &[isize]) -> bool {
    let axes = || (0..strides.len()).filter(|&axis| order.shape()[axis] > 1);
    let Some(inner) = axes().min_by_key(|&axis| order.strides()[axis]) else { return false };
    let nearest = strides[inner].unsigned_abs();
    axes().any(|axis| (1..nearest).contains(&strides[axis].unsigned_abs()))
}

/// Start of the operand, if the result may overwrite it: it has the shape of the result, fills its memory, and has no
/// other owner.
fn replaced(x: &mut Tensor<()>, shape: &[usize], size: usize) -> Option<*mut u8> {
    let dense = |x: &Tensor<()>| forward(shape, x.layout().strides()).is_some_and(|x| x.is_dense());
    if x.shape() == shape && dense(x) { x.first_mut(size) } else { None }
}

/// The strides as a layout, unless some are negative.
fn forward(shape: &[usize], strides: &[isize]) -> Option<Layout> {
    if strides.iter().any(|&s| s < 0) {
        return None;
    }
    Layout::from_parts(shape, strides, 0, usize::MAX).ok()
}
