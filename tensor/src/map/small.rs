//! Small row-major operands: runs are processed without a plan.

use super::spec::{ElementwiseSpec, SMALL, broadcast};
use crate::error::Result;
use crate::layout::Layout;
use crate::loops::elementwise::{Block, Body};
use crate::route::Path;
use crate::storage::Buffer;
use crate::tensor::Tensor;

/// Maximum number of rows of a small broadcast that are processed one by one.
const MAX_ROWS: usize = 64;

/// The result if it is small and the operands are row-major; `None` otherwise. A plan would cost more than the
/// arithmetic.
#[inline(always)]
pub(super) fn compute<const M: usize>(
    spec: &ElementwiseSpec<M>,
    operands: &[Option<Tensor<()>>; M],
    body: Body<'_, M>,
) -> Option<Result<Tensor<()>>> {
    let first = |i: usize, out: *mut u8| {
        operands[i].as_ref().map_or(out.cast_const(), |x| x.first(spec.sizes[i]))
    };
    let route = spec.route(Path::LoopContiguous);
    // SAFETY: the buffer was allocated for the layout, and the body writes it.
    let finish = |buffer, layout| unsafe { Tensor::from_raw(buffer, layout) }.with_route(route);
    if let Some(layout) = shared(operands) {
        let (numel, layout) = (layout.numel(), layout.clone().at_start());
        return Some(Buffer::fresh(spec.op, numel * spec.sizes[0]).map(|(buffer, out)| {
            let block = |i| Block { ptr: first(i, out), repeat: false };
            body(out, numel, &std::array::from_fn(block));
            finish(buffer, layout)
        }));
    }
    let SmallRows { layout, inner, steps } = rows(spec.op, operands)?;
    Some(Buffer::fresh(spec.op, layout.numel() * spec.sizes[0]).map(|(buffer, out)| {
        for row in 0..layout.numel() / inner {
            let block = |i: usize| {
                let (step, repeat) = steps[i];
                Block { ptr: first(i, out).wrapping_add(row * step * spec.sizes[i]), repeat }
            };
            body(out.wrapping_add(row * inner * spec.sizes[0]), inner, &std::array::from_fn(block));
        }
        finish(buffer, layout)
    }))
}

/// The layout of the operands if all of them are small, row-major and of one shape.
#[inline]
fn shared<const M: usize>(operands: &[Option<Tensor<()>>; M]) -> Option<&Layout> {
    let layout = operands[M - 1].as_ref()?.layout();
    if layout.numel() > SMALL || !layout.is_contiguous() {
        return None;
    }
    // An iterator: comparing slices calls a function.
    let same = |x: &Tensor<()>| x.layout().shape().iter().eq(layout.shape());
    let others = || operands[..M - 1].iter().flatten();
    others().all(|x| same(x) && x.layout().is_contiguous()).then_some(layout)
}

/// Rows of a small result that are processed one by one.
struct SmallRows<const M: usize> {
    layout: Layout,
    /// Elements of a row.
    inner: usize,
    /// Distance of the rows of each operand, and true if a row is one repeated element.
    steps: [(usize, bool); M],
}

/// The rows of a small result, if every operand is row-major and has all rows, or a single row or column that is
/// broadcast (bench `backend`, row `add 4×4 by a row`).
fn rows<const M: usize>(
    op: &'static str,
    operands: &[Option<Tensor<()>>; M],
) -> Option<SmallRows<M>> {
    if operands.iter().flatten().any(|x| x.layout().numel() > SMALL || !x.layout().is_contiguous())
    {
        return None;
    }
    let shape = broadcast(op, operands).ok()?;
    let layout = Layout::contiguous(op, &shape, 1).ok()?;
    let total = layout.numel();
    if !(1..=SMALL).contains(&total) {
        return None;
    }
    let mut inner = total;
    let mut steps = [(0, false); M];
    for (x, step) in operands.iter().zip(&mut steps) {
        let Some(layout) = x.as_ref().map(Tensor::layout) else { continue };
        let (own, numel) = (layout.shape(), layout.numel());
        let ones = own.iter().take_while(|&&n| n == 1).count();
        let kept = own.len() - own.iter().rev().take_while(|&&n| n == 1).count();
        let lead = shape.len() - own.len();
        let len = if numel == total {
            continue;
        } else if numel == 1 {
            *step = (0, true);
            continue;
        } else if own[ones..] == shape[lead + ones..] {
            numel
        } else if shape[..lead].iter().all(|&n| n == 1) && own[..kept] == shape[lead..lead + kept] {
            *step = (1, true);
            total / numel
        } else {
            return None;
        };
        if inner != total && inner != len {
            return None;
        }
        inner = len;
    }
    if total / inner > MAX_ROWS {
        return None;
    }
    for (x, step) in operands.iter().zip(&mut steps) {
        if x.as_ref().is_some_and(|x| x.layout().numel() == total) {
            step.0 = inner;
        }
    }
    Some(SmallRows { layout, inner, steps })
}
