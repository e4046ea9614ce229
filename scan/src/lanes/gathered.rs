//! Strided lanes: tiles of [`WIDTH`] lanes and [`TILE`] steps are transposed into scratch memory, where the steps are
//! contiguous, and back. A tile spans whole cache lines of a contiguous lane, so lanes at power-of-two distances do not
//! evict each other.

use t4a_algebra::Scalar;
use t4a_tensor::loops::transpose::{Even, transpose};

use super::{LaneOperand, LaneStep, Pass, RUN, WIDTH, restart, together};

/// Steps of a tile.
const TILE: usize = 16;

/// A transposed tile: one row of lanes per step.
type LaneTile<T> = [[T; WIDTH]; TILE];

/// Memory positions of a group of lanes.
struct LanePositions {
    /// (Outer, inner) index of each lane.
    rows: [usize; WIDTH],
    /// First time index of each lane.
    times: [usize; WIDTH],
    /// Offset of the first element of each lane.
    first: [isize; WIDTH],
    /// Number of lanes.
    count: usize,
    /// Stride between steps.
    inner: usize,
    /// Number of steps on the whole axis.
    n: usize,
}

impl LanePositions {
    /// Fills a tile with `steps` steps, starting at step `tile`.
    ///
    /// # Safety
    /// The source has as many elements as lanes and steps.
    #[inline(always)]
    unsafe fn load<T: Scalar>(
        &self,
        x: &mut LaneTile<T>,
        source: &LaneOperand<'_, T>,
        reverse: bool,
        tile: usize,
        steps: usize,
    ) {
        let shift = match source.ahead {
            None => 0,
            Some(_) if reverse => -1,
            Some(_) => 1,
        };
        // True if all reads are inside the axis.
        let low = self.times[..self.count].iter().min().map_or(0, |&t| t + tile);
        let high = self.times[..self.count].iter().max().map_or(0, |&t| t + tile + steps);
        let inside = (shift >= 0 || low > 0) && (shift <= 0 || high < self.n);
        let at = (tile as isize + shift) * self.inner as isize;
        let p = source.data.as_ptr();
        // SAFETY: the caller's contract; reads outside the axis take the edge value.
        unsafe {
            if inside && self.inner == 1 {
                let columns = &self.first[..self.count];
                let rows = Even::new(WIDTH as isize);
                let x = x.as_mut_ptr().cast::<T>();
                transpose(p.wrapping_offset(at), columns, x, rows, steps, self.count);
                return;
            }
            for lane in 0..self.count {
                for i in 0..steps {
                    let t = (self.times[lane] + tile + i) as isize + shift;
                    x[i][lane] = match source.ahead {
                        Some(edge) if t < 0 || t >= self.n as isize => edge.get(self.rows[lane]),
                        _ => *p.offset(self.first[lane] + at + (i * self.inner) as isize),
                    };
                }
            }
        }
    }

    /// Writes `steps` steps of a tile.
    ///
    /// # Safety
    /// As [`LanePositions::load`], for writing.
    #[inline(always)]
    unsafe fn store<T: Scalar>(&self, y: &LaneTile<T>, p: *mut T, tile: usize, steps: usize) {
        let at = (tile * self.inner) as isize;
        // SAFETY: the caller's contract.
        unsafe {
            if self.inner == 1 {
                let (columns, rows) = (Even::new(WIDTH as isize), &self.first[..self.count]);
                let y = y.as_ptr().cast::<T>();
                transpose(y, columns, p.wrapping_offset(at), rows, self.count, steps);
                return;
            }
            for lane in 0..self.count {
                for i in 0..steps {
                    p.offset(self.first[lane] + at + (i * self.inner) as isize).write(y[i][lane]);
                }
            }
        }
    }
}

/// Up to [`WIDTH`] lanes, starting at lane `first`.
///
/// # Safety
/// As [`Pass::run`]; lane `first` exists.
#[inline(always)]
pub(super) unsafe fn run<
    T: Scalar,
    K: LaneStep<T, I, S, O>,
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
    let mut places =
        LanePositions { rows: [0; WIDTH], times: [0; WIDTH], first: [0; WIDTH], count, inner, n };
    let filler = pass.start[0].get(first);
    let mut state = [[filler; WIDTH]; S];
    for i in 0..count {
        let lane = first + i;
        let (outer, group, column) = (lane / (groups * inner), lane / inner % groups, lane % inner);
        places.rows[i] = outer * inner + column;
        places.times[i] = pass.cut.first + group * len;
        places.first[i] = ((outer * n + places.times[i]) * inner + column) as isize;
        for s in 0..S {
            state[s][i] = pass.start[s].get(lane);
        }
    }
    let mut x = [[[filler; WIDTH]; TILE]; I];
    let mut y = [[[filler; WIDTH]; TILE]; O];
    let tiles = len.div_ceil(TILE);
    for k in 0..tiles {
        if K::RESTARTS && k > 0 && k % (RUN / TILE) == 0 {
            restart(pass.kernel, &mut state);
        }
        let tile = if pass.reverse { tiles - 1 - k } else { k } * TILE;
        let steps = (len - tile).min(TILE);
        for (source, x) in pass.sources.iter().zip(&mut x) {
            // SAFETY: the source has as many elements as the extent says.
            unsafe { places.load(x, source, pass.reverse, tile, steps) };
        }
        for i in 0..steps {
            let i = if pass.reverse { steps - 1 - i } else { i };
            let (mut row, mut out) = ([[filler; WIDTH]; I], [[filler; WIDTH]; O]);
            for k in 0..I {
                row[k] = x[k][i];
            }
            together(pass.kernel, &row, &mut state, &mut out);
            for o in 0..O {
                y[o][i] = out[o];
            }
        }
        for (output, y) in pass.outputs.iter().zip(&y) {
            // SAFETY: as for the sources; outputs have as many elements.
            unsafe { places.store(y, output.get(), tile, steps) };
        }
    }
    for s in 0..S {
        for i in 0..count {
            // SAFETY: there is room for every lane.
            unsafe { pass.last[s].get().add(first + i).write(state[s][i]) };
        }
    }
}
