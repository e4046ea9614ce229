//! Adjacent lanes in SIMD registers: row after row of memory, [`WIDTH`] lanes at a time.

use std::array::from_fn;

use t4a_algebra::Scalar;

use super::{BLOCK, LaneStep, Pass, RUN, WIDTH, restart, together};

/// Greatest number of pairs of an output and another operand for which the compiler vectorises a loop over a whole row: it
/// compares their addresses first.
const CHECKS: usize = 10;

/// One step of the lanes of a block, in place: with few operands twice as fast as blocks of registers, which are spilled.
///
/// # Safety
/// Operands and outputs have `width` elements, at most [`BLOCK`]; outputs do not overlap with each other or with operands.
#[inline(always)]
unsafe fn whole_row<
    T: Scalar,
    K: LaneStep<T, I, S, O>,
    const I: usize,
    const S: usize,
    const O: usize,
>(
    kernel: K,
    x: [*const T; I],
    state: &mut [[T; BLOCK]; S],
    y: [*mut T; O],
    width: usize,
) {
    for i in 0..width.min(BLOCK) {
        // SAFETY: the caller's contract.
        let (after, out) =
            kernel.step(from_fn(|s| state[s][i]), from_fn(|k| unsafe { *x[k].add(i) }));
        for s in 0..S {
            state[s][i] = after[s];
        }
        for o in 0..O {
            // SAFETY: the caller's contract.
            unsafe { y[o].add(i).write(out[o]) };
        }
    }
}

/// `width` lanes of row `outer`, starting at lane `from`.
///
/// # Safety
/// As [`Pass::run`]; the lanes exist.
#[inline(always)]
pub(super) unsafe fn run<
    T: Scalar,
    K: LaneStep<T, I, S, O>,
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
    let filler = pass.start[0].get(lane);
    let mut state = [[filler; BLOCK]; S];
    for s in 0..S {
        for i in 0..width {
            state[s][i] = pass.start[s].get(lane + i);
        }
    }
    for k in 0..len {
        if K::RESTARTS && k > 0 && k % RUN == 0 {
            restart(pass.kernel, &mut state);
        }
        let t = pass.cut.first + if pass.reverse { len - 1 - k } else { k };
        let next = if pass.reverse { t.wrapping_sub(1) } else { t + 1 };
        let row = |t: usize| (outer * n + t) * inner + from;
        let at_edge = next >= n && pass.sources.iter().any(|source| source.ahead.is_some());
        if const { I * O + O * O <= CHECKS } && !at_edge {
            let x = from_fn(|i| {
                let source = &pass.sources[i];
                let t = if source.ahead.is_some() { next } else { t };
                source.data.as_ptr().wrapping_add(row(t))
            });
            let y = from_fn(|o| pass.outputs[o].get().wrapping_add(row(t)));
            // SAFETY: the rows are inside the sources and the outputs, whose lengths equal that of the extent.
            unsafe { whole_row(pass.kernel, x, &mut state, y, width) };
            continue;
        }
        for at in (0..width).step_by(WIDTH) {
            let few = (width - at).min(WIDTH);
            let mut now = [[filler; WIDTH]; S];
            for s in 0..S {
                now[s].copy_from_slice(&state[s][at..at + WIDTH]);
            }
            let mut y = [[filler; WIDTH]; O];
            if few == WIDTH && !at_edge {
                // SAFETY: the index is inside the sources, whose length equals that of the extent.
                let x: [[T; WIDTH]; I] = from_fn(|i| unsafe {
                    let source = &pass.sources[i];
                    let t = if source.ahead.is_some() { next } else { t };
                    *source.data.as_ptr().add(row(t) + at).cast::<[T; WIDTH]>()
                });
                together(pass.kernel, &x, &mut now, &mut y);
                for o in 0..O {
                    // SAFETY: as for the sources; outputs have as many elements.
                    unsafe {
                        let p = pass.outputs[o].get().add(row(t) + at);
                        p.cast::<[T; WIDTH]>().write(y[o]);
                    }
                }
            } else {
                let mut x = [[filler; WIDTH]; I];
                for (x, source) in x.iter_mut().zip(&pass.sources) {
                    for (i, x) in x.iter_mut().enumerate().take(few) {
                        *x = match source.ahead {
                            None => source.data[row(t) + at + i],
                            Some(_) if next < n => source.data[row(next) + at + i],
                            Some(edge) => edge.get(lane + at + i),
                        };
                    }
                }
                together(pass.kernel, &x, &mut now, &mut y);
                for o in 0..O {
                    for (i, &y) in y[o].iter().enumerate().take(few) {
                        // SAFETY: as above.
                        unsafe { pass.outputs[o].get().add(row(t) + at + i).write(y) };
                    }
                }
            }
            for s in 0..S {
                state[s][at..at + WIDTH].copy_from_slice(&now[s]);
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
