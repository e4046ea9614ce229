//! Strided copies of blocks.

use t4a_algebra::Numeric;
use t4a_algebra::parallel::{self, SendPtr};

use crate::plan::{BlockMove, MoveAxis, Rearrangement};

/// Number of parallel parts of a plan; fixed, so that it does not depend on the number of threads.
const PARTS: usize = 16;
/// Rows and columns of a transposition tile, which fits registers and the L1 cache.
const TILE: usize = 16;

/// `y = R x`.
///
/// # Safety
/// x holds `from_len` elements, y has room for `to_len`.
pub(super) unsafe fn run<T: Numeric>(plan: &Rearrangement, x: *const T, y: *mut T, parallel: bool) {
    // SAFETY: all moves stay inside of both buffers; see below for concurrent moves.
    unsafe {
        if !plan.is_full() {
            (0..plan.to_len()).for_each(|i| y.wrapping_add(i).write(T::ZERO));
        }
        if !plan.is_disjoint() {
            return plan.moves().iter().for_each(|one| add(plan.axes(one), one, x, y));
        }
        let moves = plan.moves();
        if !parallel || moves.len() < 2 {
            return moves.iter().for_each(|one| copy(plan, one, x, y));
        }
        let (x, y) = (SendPtr(x.cast_mut()), SendPtr(y));
        let parts = PARTS.min(moves.len());
        parallel::for_each(parts, true, &|part| {
            // Neighbouring moves belong to different parts, which balances blocks of different sizes.
            for one in moves.iter().skip(part).step_by(parts) {
                // SAFETY: the plan is disjoint, that is, no two moves write the same element.
                copy(plan, one, x.get(), y.get());
            }
        });
    }
}

/// Executes a range of the moves of a disjoint plan.
///
/// # Safety
/// These moves stay inside of the initialised elements of x and of the memory of y.
pub(super) unsafe fn some<T: Numeric>(
    plan: &Rearrangement,
    which: std::ops::Range<usize>,
    x: *const T,
    y: *mut T,
) {
    // SAFETY: contract of this function.
    plan.moves()[which].iter().for_each(|one| unsafe { copy(plan, one, x, y) });
}

unsafe fn copy<T: Numeric>(plan: &Rearrangement, one: &BlockMove, x: *const T, y: *mut T) {
    let axes = plan.axes(one);
    // SAFETY: inside of both buffers.
    unsafe {
        // `wrapping_add`: the buffer of a panel may begin before its allocation.
        let (x, y) = (x.wrapping_add(one.from), y.wrapping_add(one.to));
        match one.negative {
            false => walk::<T, false>(axes, x, y),
            true => walk::<T, true>(axes, x, y),
        }
    }
}

#[inline(always)]
fn signed<T: Numeric, const NEGATIVE: bool>(x: T) -> T {
    if NEGATIVE { x.neg() } else { x }
}

unsafe fn walk<T: Numeric, const NEGATIVE: bool>(axes: &[MoveAxis], x: *const T, y: *mut T) {
    // SAFETY: the axes stay inside of both buffers.
    unsafe {
        match axes {
            [] => *y = signed::<T, NEGATIVE>(*x),
            [outer @ .., MoveAxis { size: 2, from: 1, to: 1 }] => {
                runs::<T, NEGATIVE, 2>(outer, x, y)
            }
            [outer @ .., MoveAxis { size: 3, from: 1, to: 1 }] => {
                runs::<T, NEGATIVE, 3>(outer, x, y)
            }
            [outer @ .., MoveAxis { size: 4, from: 1, to: 1 }] => {
                runs::<T, NEGATIVE, 4>(outer, x, y)
            }
            [outer @ .., MoveAxis { size: 5, from: 1, to: 1 }] => {
                runs::<T, NEGATIVE, 5>(outer, x, y)
            }
            [outer @ .., MoveAxis { size: 6, from: 1, to: 1 }] => {
                runs::<T, NEGATIVE, 6>(outer, x, y)
            }
            [outer @ .., MoveAxis { size: 8, from: 1, to: 1 }] => {
                runs::<T, NEGATIVE, 8>(outer, x, y)
            }
            [axis] => line::<T, NEGATIVE>(axis, x, y),
            [outer, inner] => plane::<T, NEGATIVE>(outer, inner, x, y),
            [outer, inner @ ..] => {
                for i in 0..outer.size {
                    walk::<T, NEGATIVE>(inner, x.add(i * outer.from), y.add(i * outer.to));
                }
            }
        }
    }
}

/// Copies short contiguous runs of a length N known at compile time, as small blocks have them.
unsafe fn runs<T: Numeric, const NEGATIVE: bool, const N: usize>(
    axes: &[MoveAxis],
    x: *const T,
    y: *mut T,
) {
    // SAFETY: the axes stay inside of both buffers.
    unsafe {
        match axes {
            [] => {
                let run = x.cast::<[T; N]>().read_unaligned();
                y.cast::<[T; N]>().write_unaligned(run.map(signed::<T, NEGATIVE>));
            }
            [axis] => {
                for i in 0..axis.size {
                    let run = x.add(i * axis.from).cast::<[T; N]>().read_unaligned();
                    let run = run.map(signed::<T, NEGATIVE>);
                    y.add(i * axis.to).cast::<[T; N]>().write_unaligned(run);
                }
            }
            [outer, inner @ ..] => {
                for i in 0..outer.size {
                    let (x, y) = (x.add(i * outer.from), y.add(i * outer.to));
                    runs::<T, NEGATIVE, N>(inner, x, y);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn line<T: Numeric, const NEGATIVE: bool>(axis: &MoveAxis, x: *const T, y: *mut T) {
    let &MoveAxis { size, from, to } = axis;
    // SAFETY: inside of both buffers.
    unsafe {
        if from == 1 && to == 1 {
            return run_of::<T, NEGATIVE>(size, x, y);
        }
        for i in 0..size {
            *y.add(i * to) = signed::<T, NEGATIVE>(*x.add(i * from));
        }
    }
}

/// Copies one contiguous run. Most runs are short; a call of `memcpy` would cost more than the copy.
#[inline(always)]
unsafe fn run_of<T: Numeric, const NEGATIVE: bool>(len: usize, x: *const T, y: *mut T) {
    // SAFETY: contract of this function.
    unsafe {
        if !NEGATIVE && len >= 32 {
            return std::ptr::copy_nonoverlapping(x, y, len);
        }
        let mut i = 0;
        while i + 4 <= len {
            let four = x.add(i).cast::<[T; 4]>().read_unaligned();
            let four = four.map(signed::<T, NEGATIVE>);
            y.add(i).cast::<[T; 4]>().write_unaligned(four);
            i += 4;
        }
        while i < len {
            *y.add(i) = signed::<T, NEGATIVE>(*x.add(i));
            i += 1;
        }
    }
}

unsafe fn plane<T: Numeric, const NEGATIVE: bool>(
    outer: &MoveAxis,
    inner: &MoveAxis,
    x: *const T,
    y: *mut T,
) {
    // SAFETY: inside of both buffers.
    unsafe {
        if inner.size < 4 && outer.size > 2 * inner.size && outer.from < inner.from {
            // Long runs of x are read instead of writing short runs of y.
            for j in 0..inner.size {
                line::<T, NEGATIVE>(outer, x.add(j * inner.from), y.add(j * inner.to));
            }
            return;
        }
        if outer.from >= inner.from || outer.size.min(inner.size) < 4 {
            for i in 0..outer.size {
                line::<T, NEGATIVE>(inner, x.add(i * outer.from), y.add(i * outer.to));
            }
            return;
        }
        // x is contiguous along the outer axis, y along the inner one: tiled transposition.
        for i0 in (0..outer.size).step_by(TILE) {
            for j0 in (0..inner.size).step_by(TILE) {
                let (rows, cols) = (TILE.min(outer.size - i0), TILE.min(inner.size - j0));
                for i in i0..i0 + rows {
                    let (x, y) = (x.add(i * outer.from), y.add(i * outer.to));
                    for j in j0..j0 + cols {
                        *y.add(j * inner.to) = signed::<T, NEGATIVE>(*x.add(j * inner.from));
                    }
                }
            }
        }
    }
}

/// Adds to y instead of overwriting it.
unsafe fn add<T: Numeric>(axes: &[MoveAxis], one: &BlockMove, x: *const T, y: *mut T) {
    unsafe fn walk<T: Numeric>(axes: &[MoveAxis], negative: bool, x: *const T, y: *mut T) {
        // SAFETY: inside of both buffers.
        unsafe {
            match axes {
                [] if negative => *y = (*y).sub(*x),
                [] => *y = (*y).add(*x),
                [outer, inner @ ..] => {
                    for i in 0..outer.size {
                        walk(inner, negative, x.add(i * outer.from), y.add(i * outer.to));
                    }
                }
            }
        }
    }
    // SAFETY: the move stays inside of both buffers.
    unsafe { walk(axes, one.negative, x.add(one.from), y.add(one.to)) }
}
