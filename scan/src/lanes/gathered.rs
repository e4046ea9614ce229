//! Lanes that lie apart: tiles of [`WIDTH`] lanes and [`TILE`] steps are transposed into scratch, where the
//! steps run side by side, and back. A tile takes whole cache lines of a contiguous lane at a time, so
//! that lanes a power of two apart do not displace each other.

use std::array::from_fn;

use t4a_algebra::Scalar;

use super::{Pass, Step, WIDTH};

/// Steps of a tile.
const TILE: usize = 16;

/// Up to [`WIDTH`] lanes from `first` on.
///
/// # Safety
/// As [`Pass::run`]; lane `first` exists.
#[inline(always)]
pub(super) unsafe fn run<
    T: Scalar,
    K: Step<T, I, S, O>,
    const I: usize,
    const S: usize,
    const O: usize,
>(
    pass: &Pass<'_, T, K, I, S, O>,
    first: usize,
) {
    let (inner, n) = (pass.extent.inner, pass.extent.n);
    let (groups, len) = (pass.cut.groups, pass.cut.len);
    let count = (pass.lanes() - first).min(WIDTH);
    // The first element of each lane, and its row: those behind the last are the last one again.
    let place = |i: usize| {
        let lane = first + i.min(count - 1);
        let (outer, group, i) = (lane / (groups * inner), lane / inner % groups, lane % inner);
        (outer * inner + i, pass.cut.first + group * len)
    };
    let places: [(usize, usize); WIDTH] = from_fn(place);
    let offset = |lane: usize, t: usize| {
        let (row, _) = places[lane];
        (row / inner * n + t) * inner + row % inner
    };
    let mut state: [[T; WIDTH]; S] =
        from_fn(|s| from_fn(|i| pass.start[s].get(first + i.min(count - 1))));
    let filler = state[0][0];
    let mut x = [[[filler; WIDTH]; TILE]; I];
    let mut y = [[[filler; WIDTH]; TILE]; O];
    let tiles = len.div_ceil(TILE);
    for k in 0..tiles {
        let tile = if pass.reverse { tiles - 1 - k } else { k } * TILE;
        let steps = (len - tile).min(TILE);
        for (source, x) in pass.sources.iter().zip(&mut x) {
            let p = source.data.as_ptr();
            for lane in 0..count {
                let (row, from) = places[lane];
                let t = from + tile;
                let at = offset(lane, t);
                // SAFETY: the elements lie in the source, which has as many as the extent says.
                unsafe {
                    match source.ahead {
                        None => {
                            for i in 0..steps {
                                x[i][lane] = *p.add(at + i * inner);
                            }
                        }
                        Some(edge) if pass.reverse => {
                            x[0][lane] = if t > 0 { *p.add(at - inner) } else { edge.get(row) };
                            for i in 1..steps {
                                x[i][lane] = *p.add(at + (i - 1) * inner);
                            }
                        }
                        Some(edge) => {
                            for i in 0..steps - 1 {
                                x[i][lane] = *p.add(at + (i + 1) * inner);
                            }
                            let behind = t + steps < n;
                            x[steps - 1][lane] =
                                if behind { *p.add(at + steps * inner) } else { edge.get(row) };
                        }
                    }
                }
            }
        }
        for i in 0..steps {
            let i = if pass.reverse { steps - 1 - i } else { i };
            for lane in 0..WIDTH {
                let now = from_fn(|s| state[s][lane]);
                let (after, out) = pass.kernel.step(now, from_fn(|k| x[k][i][lane]));
                for s in 0..S {
                    state[s][lane] = after[s];
                }
                for o in 0..O {
                    y[o][i][lane] = out[o];
                }
            }
        }
        for (output, y) in pass.outputs.iter().zip(&y) {
            for lane in 0..count {
                let at = offset(lane, places[lane].1 + tile);
                for i in 0..steps {
                    // SAFETY: as for the sources; outputs have as many elements.
                    unsafe { output.get().add(at + i * inner).write(y[i][lane]) };
                }
            }
        }
    }
    for s in 0..S {
        for i in 0..count {
            // SAFETY: there is room for every lane.
            unsafe { pass.last[s].get().add(first + i).write(state[s][i]) };
        }
    }
}
