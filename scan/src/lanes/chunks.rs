//! A few long lanes in three passes: total of every chunk, initial state of every chunk, steps.
//!
//! Two passes with independent dependency chains are faster than one pass that is bound by the latency of each step,
//! even on one thread (bench `scan`). If the total of a chunk does not determine its final state (a product that
//! overflowed, applied to a state of 0), the chunk is run step by step instead.

use std::array::from_fn;

use t4a_algebra::Scalar;
use t4a_tensor::Result;

use super::{LanePartition, LaneStep, Pass, PerLane, Walk, Walked, finish, fresh};

/// Steps of a chunk.
pub(crate) const CHUNK: usize = 512;
/// Minimum number of chunks for which the second pass pays.
const FEWEST: usize = 8;

/// The composed map of a run of steps, computed without the initial state.
pub(crate) trait ComposedMap<T: Scalar, const I: usize, const S: usize, const R: usize>:
    LaneStep<T, I, R, 0>
{
    /// The total of zero steps.
    fn identity(self) -> [T; R];

    /// The state after the run; `None` if the total does not determine it.
    fn enter(self, total: [T; R], state: [T; S]) -> Option<[T; S]>;
}

/// Runs a kernel along an axis.
pub(crate) fn walk<T, K, const I: usize, const S: usize, const O: usize, const R: usize>(
    kernel: K,
    walk: &Walk<'_, T, I, S>,
) -> Result<Walked<T, S, O>>
where
    T: Scalar,
    K: LaneStep<T, I, S, O> + ComposedMap<T, I, S, R>,
{
    let &Walk { extent, reverse, sources, start } = walk;
    let written = fresh::<T, O>(extent.len())?;
    let last = fresh::<T, S>(extent.lanes())?;
    let outputs: [_; O] = from_fn(|o| written[o].first);
    let ends: [_; S] = from_fn(|s| last[s].first);
    let whole_time = LanePartition { first: 0, groups: 1, len: extent.n };
    let main =
        Pass { kernel, extent, reverse, cut: whole_time, sources, start, outputs, last: ends };
    let chunks = extent.n / CHUNK;
    if extent.lanes() == 0 || extent.lanes() >= FEWEST || chunks < FEWEST {
        // SAFETY: `Pass::run` checks the sources; the output memory is exclusively owned here.
        unsafe { main.run() };
        // SAFETY: every lane ran through all of its steps.
        return unsafe { Ok(Walked { outputs: finish(written)?, last: finish(last)? }) };
    }

    let lanes = extent.lanes();
    let whole = LanePartition { first: 0, groups: chunks, len: CHUNK };
    let totals = fresh::<T, R>(lanes * chunks)?;
    let identity = kernel.identity().map(PerLane::Same);
    let out = from_fn(|r| totals[r].first);
    // SAFETY: as above.
    unsafe {
        Pass {
            kernel,
            extent,
            reverse,
            cut: whole,
            sources,
            start: identity,
            outputs: [],
            last: out,
        }
        .gather();
    }
    // SAFETY: every chunk of every lane has its total.
    let totals = unsafe { finish(totals)? };
    let totals: [&[T]; R] = from_fn(|r| totals[r].as_slice().unwrap_or_default());

    // Initial state of every chunk. The remainder after the last full chunk is at the end of time.
    let mut state: Vec<[T; S]> = (0..lanes).map(|lane| from_fn(|s| start[s].get(lane))).collect();
    let rest = LanePartition { first: chunks * CHUNK, groups: 1, len: extent.n - chunks * CHUNK };
    let lane_of = |row: usize, chunk: usize| {
        (row / extent.inner * chunks + chunk) * extent.inner + row % extent.inner
    };
    // Runs one range of time for all rows, with initial and final states in `state`.
    let through = |cut: LanePartition, state: &mut [[T; S]]| {
        let columns: [Vec<T>; S] = from_fn(|s| state.iter().map(|x| x[s]).collect());
        let mut after: [Vec<T>; S] = columns.clone();
        let ends = from_fn(|s| super::SendPtr(after[s].as_mut_ptr()));
        let start = from_fn(|s| PerLane::Each(&columns[s][..]));
        // SAFETY: as above; there is room for every lane.
        unsafe { Pass { cut, start, last: ends, ..main }.gather() };
        for (row, state) in state.iter_mut().enumerate() {
            *state = from_fn(|s| after[s][row]);
        }
    };
    if reverse && rest.len > 0 {
        through(rest, &mut state);
    }
    let mut entering: [Vec<T>; S] = from_fn(|s| vec![state[0][s]; lanes * chunks]);
    for k in 0..chunks {
        let chunk = if reverse { chunks - 1 - k } else { k };
        let mut known = true;
        let before = state.clone();
        for row in 0..lanes {
            let at = lane_of(row, chunk);
            for s in 0..S {
                entering[s][at] = state[row][s];
            }
            match kernel.enter(from_fn(|r| totals[r][at]), state[row]) {
                Some(after) => state[row] = after,
                None => known = false,
            }
        }
        if !known {
            state = before;
            through(LanePartition { first: chunk * CHUNK, groups: 1, len: CHUNK }, &mut state);
        }
    }
    let mut ends_of_chunks = entering.clone();
    let start = from_fn(|s| PerLane::Each(&entering[s][..]));
    let chunk_ends = from_fn(|s| super::SendPtr(ends_of_chunks[s].as_mut_ptr()));
    // SAFETY: as above.
    unsafe { Pass { cut: whole, start, last: chunk_ends, ..main }.gather() };
    for (row, state) in state.iter_mut().enumerate() {
        let chunk = if reverse { 0 } else { chunks - 1 };
        *state = from_fn(|s| ends_of_chunks[s][lane_of(row, chunk)]);
    }
    if !reverse && rest.len > 0 {
        through(rest, &mut state);
    }
    for (row, state) in state.iter().enumerate() {
        for s in 0..S {
            // SAFETY: there is room for every lane.
            unsafe { last[s].first.get().add(row).write(state[s]) };
        }
    }
    // SAFETY: chunks and the remainder cover all steps, and every row has a last state.
    unsafe { Ok(Walked { outputs: finish(written)?, last: finish(last)? }) }
}
