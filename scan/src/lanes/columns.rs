//! Neighbouring lanes side by side: row after row of memory, [`WIDTH`] lanes at a time in registers.

use std::array::from_fn;

use t4a_algebra::Scalar;

use super::{BLOCK, Pass, Step, WIDTH};

/// `len` elements from `p` on, the first one repeated behind them.
///
/// # Safety
/// They exist, and there is at least one.
#[inline(always)]
unsafe fn load<T: Scalar>(p: *const T, len: usize) -> [T; WIDTH] {
    // SAFETY: the caller's promise; an array is aligned as its elements are.
    unsafe {
        if len == WIDTH {
            return *p.cast::<[T; WIDTH]>();
        }
        let mut all = [*p; WIDTH];
        for (i, x) in all.iter_mut().enumerate().take(len) {
            *x = *p.add(i);
        }
        all
    }
}

/// Writes the first `len` of `values`.
///
/// # Safety
/// There is room for them, at least one and at most all.
#[inline(always)]
unsafe fn store<T: Scalar>(p: *mut T, values: &[T; WIDTH], len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if len == WIDTH {
            p.cast::<[T; WIDTH]>().write(*values);
        } else {
            for (i, &x) in values.iter().enumerate().take(len) {
                p.add(i).write(x);
            }
        }
    }
}

/// `width` lanes of row `outer` from lane `from` on.
///
/// # Safety
/// As [`Pass::run`]; the lanes exist.
#[inline(always)]
pub(super) unsafe fn run<
    T: Scalar,
    K: Step<T, I, S, O>,
    const I: usize,
    const S: usize,
    const O: usize,
>(
    pass: &Pass<'_, T, K, I, S, O>,
    outer: usize,
    from: usize,
    width: usize,
) {
    let (inner, n, len) = (pass.extent.inner, pass.extent.n, pass.cut.len);
    let lane = outer * inner + from;
    let mut state: [[T; BLOCK]; S] = from_fn(|s| {
        let start = &pass.start[s];
        from_fn(|i| start.get(lane + i.min(width - 1)))
    });
    for k in 0..len {
        let t = pass.cut.first + if pass.reverse { len - 1 - k } else { k };
        let next = if pass.reverse { t.wrapping_sub(1) } else { t + 1 };
        let row = |t: usize| (outer * n + t) * inner + from;
        for at in (0..width).step_by(WIDTH) {
            let few = (width - at).min(WIDTH);
            let x: [[T; WIDTH]; I] = from_fn(|i| {
                let source = &pass.sources[i];
                let t = match source.ahead {
                    None => t,
                    Some(_) if next < n => next,
                    Some(edge) => return from_fn(|i| edge.get(lane + at + i.min(few - 1))),
                };
                // SAFETY: the elements lie in the source, which has as many as the extent says.
                unsafe { load(source.data.as_ptr().add(row(t) + at), few) }
            });
            let mut now: [[T; WIDTH]; S] = from_fn(|s| from_fn(|i| state[s][at + i]));
            // Of a type that may have no zero: overwritten before it is read.
            let mut y: [[T; WIDTH]; O] = [x.first().map_or(now[0], |x| *x); O];
            for i in 0..WIDTH {
                let (after, out) = pass.kernel.step(from_fn(|s| now[s][i]), from_fn(|k| x[k][i]));
                for s in 0..S {
                    now[s][i] = after[s];
                }
                for o in 0..O {
                    y[o][i] = out[o];
                }
            }
            for s in 0..S {
                state[s][at..at + WIDTH].copy_from_slice(&now[s]);
            }
            for o in 0..O {
                // SAFETY: as for the sources; outputs have as many elements.
                unsafe { store(pass.outputs[o].get().add(row(t) + at), &y[o], few) };
            }
        }
    }
    for s in 0..S {
        for i in 0..width {
            // SAFETY: there is room for every lane.
            unsafe { pass.last[s].get().add(lane + i).write(state[s][i]) };
        }
    }
}
