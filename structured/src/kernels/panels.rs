//! Contractions by panels: moves and products of the same few rows alternate.

use std::cell::Cell;

use t4a_algebra::gemm::{MatMut, MatRef, Parallelism};
use t4a_algebra::parallel::{self, SendPtr};
use t4a_algebra::{Numeric, Semiring, Standard};

use super::matrix::{multiply, strides};
use super::moves;
use crate::plan::{ContractionPanels, ContractionPlan, PanelDimension, along};

/// Panel memory of a thread, in cache lines; reused between calls.
#[derive(Clone, Copy)]
#[repr(align(64))]
#[allow(dead_code, reason = "room only")]
struct PanelLine([u8; 64]);

thread_local! {
    static KEPT: Cell<Vec<PanelLine>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with uninitialised, thread-local room for this many elements.
fn with_room<T>(elements: usize, f: impl FnOnce(*mut T)) {
    let lines = (elements * size_of::<T>()).div_ceil(size_of::<PanelLine>());
    let mut room = KEPT.take();
    if room.capacity() < lines {
        room = Vec::with_capacity(lines);
    }
    f(room.as_mut_ptr().cast());
    KEPT.set(room);
}

/// Computes all of C. The operand of the panels is passed in its original layout (A or B, before its moves; C, after
/// them); the other two are passed as the products need them.
///
/// # Safety
/// The buffers have the lengths of the plan; A and B are initialised.
pub(super) unsafe fn run<T: Numeric>(
    plan: &ContractionPlan,
    panels: &ContractionPanels,
    operands: [*const T; 2],
    c: *mut T,
    parallel: bool,
) where
    Standard: Semiring<T>,
{
    let (products, Some(moved)) = (plan.products(), panels.moves(plan)) else { return };
    let groups = products.groups();
    // SAFETY: see below. Elements of C that no product and no move writes are zeroed here.
    unsafe {
        if panels.operand == 2 {
            let whole = plan.result().is_some_and(|plan| plan.is_full());
            if !whole || groups.iter().any(|x| products.terms_of(x).is_empty()) {
                (0..plan.lens()[2]).for_each(|i| c.wrapping_add(i).write(T::ZERO));
            }
        } else {
            for x in groups.iter().filter(|x| products.terms_of(x).is_empty()) {
                let to = products.views()[2][x.c as usize];
                (0..to.len()).for_each(|i| c.wrapping_add(to.offset + i).write(T::ZERO));
            }
        }
    }
    let [a, b] = operands.map(|x| SendPtr(x.cast_mut()));
    let c = SendPtr(c);
    let task = |i: usize| {
        let task = panels.tasks[i];
        let Some(&[x, y, z]) = products.terms_of(&groups[task.group as usize]).first() else {
            return;
        };
        let [va, vb, vc] = products.views();
        let views = [va[x as usize], vb[y as usize], vc[z as usize]];
        let own = views[panels.operand];
        let len = if own.transposed { own.rows } else { own.cols };
        let along = along(panels.operand, own);
        let own_panels = &panels.panels[task.panels.0 as usize..task.panels.1 as usize];
        with_room::<T>(panels.room, |room| {
            for (k, panel) in own_panels.iter().enumerate() {
                let (first, rows) = (panel.first, panel.rows);
                // Offsets of the matrices as if the rearranged operand were stored as a whole.
                let mut at = [a.get(), b.get(), c.get()];
                for (at, view) in at.iter_mut().zip(views) {
                    *at = at.wrapping_add(view.offset);
                }
                at[panels.operand] = room.wrapping_sub(first * len);
                let base = at[panels.operand].wrapping_sub(own.offset);
                let which = panel.moves.0 as usize..panel.moves.1 as usize;
                // SAFETY: the plan has verified that the moves of a panel stay in its rows, which fit the panel
                // memory. Different tasks write disjoint rows, columns or matrices of C.
                unsafe {
                    if panels.operand < 2 {
                        if !panel.full {
                            (0..rows * len).for_each(|i| room.wrapping_add(i).write(T::ZERO));
                        }
                        let from = [a, b][panels.operand].get();
                        moves::some(moved, which.clone(), from, base);
                    }
                    let ranges = |of: PanelDimension, size: usize| {
                        if along == of { (first, rows) } else { (0, size) }
                    };
                    let (i, m) = ranges(PanelDimension::Rows, views[0].rows);
                    let (l, k_) = ranges(PanelDimension::Summed, views[0].cols);
                    let (j, n) = ranges(PanelDimension::Columns, views[1].cols);
                    let [sa, sb, sc] = views.map(strides);
                    let place = |x: *mut T, (rs, cs): (isize, isize), i: usize, j: usize| {
                        x.wrapping_offset(i as isize * rs + j as isize * cs)
                    };
                    let left = MatRef::from_raw_parts(place(at[0], sa, i, l), (m, k_), sa);
                    let right = MatRef::from_raw_parts(place(at[1], sb, l, j), (k_, n), sb);
                    let to = MatMut::from_raw_parts(place(at[2], sc, i, j), (m, n), sc);
                    multiply(
                        left,
                        right,
                        to,
                        along == PanelDimension::Summed && k > 0,
                        Parallelism::Seq,
                    );
                    if panels.operand == 2 {
                        moves::some(moved, which, base, c.get());
                    }
                }
            }
        });
    };
    parallel::for_each(panels.tasks.len(), parallel, &task);
}
