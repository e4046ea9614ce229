//! Weights as sums of outer products: of each position of y, a vector of its channels, and the window under it.

use t4a_algebra::Float;
use t4a_algebra::simd::{Isa, Loop, dispatch};

use super::geometry::Geometry;
use super::grid::{PAST, starts, taps, windows};
use super::parts::in_a_row;
use super::shifted::worthwhile;
use super::sums::{CHANNELS, rows, vector, widest};
use crate::error::Result;
use crate::loops::transpose::{Even, transpose};
use crate::output::{Filled, parts_mut, share_with};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// True for few positions, where the sums across registers of dot products would dominate the cost, on 512-bit registers
/// (bench `nn`, row `per example: weight`: 166 instead of 453 µs; 514 instead of 486 on 256-bit registers).
pub(super) fn suits(g: &Geometry) -> bool {
    let few = g.n.saturating_mul(g.planes()[2]) < 256;
    few && g.o >= CHANNELS && Isa::detect() == Isa::Avx512
}

/// `W = Y·X̃ᵀ` by [`OuterSums`].
pub(super) fn of_positions<T: Float>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, _, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let block = if g.o > vector::<T>() { widest::<T>() } else { vector::<T>() };
    let blocks = g.o.div_ceil(block);
    let offsets = taps(g.c, &grid, &places)?;
    let count = offsets.len();
    let starts = starts(g, &grid, g.y[2], 1)?;
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    let parts = parts_mut(w.as_mut_slice()?, g.groups);
    let scratch = || {
        let src = Filled::new(g.c * grid.len() + PAST, T::ZERO)?;
        let lines = Filled::new(block * y_plane, T::ZERO)?;
        Ok((src, lines, Filled::new(blocks * block * count, T::ZERO)?))
    };
    let grain = in_a_row(g.groups);
    share_with(parts, grain, worthwhile(g), scratch, |(src, lines, sums), group, w| {
        sums.fill(T::ZERO);
        let channels = |at: usize| at * block..g.o.min((at + 1) * block);
        for image in 0..g.n {
            let image = image * g.groups + group;
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            grid.spread(planes, g.x, g.padding, src);
            for (at, sums) in sums.chunks_exact_mut(block * count).enumerate() {
                let channels = channels(at);
                let y = &ys[(image * g.o + channels.start) * y_plane..][..channels.len() * y_plane];
                // The last block has fewer channels: its other lanes are sums of old lines, which are not read.
                turn(y, lines, [channels.len(), y_plane], [y_plane, block]);
                let (x, y) = (&**src, &**lines);
                dispatch(OuterSums { x, offsets: &offsets, starts: &starts, block, y, w: sums });
            }
        }
        for (at, sums) in sums.chunks_exact(block * count).enumerate() {
            let channels = channels(at);
            turn(sums, &mut w[channels.start * count..], [count, channels.len()], [block, count]);
        }
        Ok(())
    })?;
    Ok(w.with_route(Route::native(Path::Fused)))
}

/// `to[j, i] = from[i, j]` for a block of rows × cols elements, with the lengths of the rows of both.
fn turn<T: Float>(from: &[T], to: &mut [T], [rows, cols]: [usize; 2], pitch: [usize; 2]) {
    assert!((rows - 1) * pitch[0] + cols <= from.len() && (cols - 1) * pitch[1] + rows <= to.len());
    let [from_pitch, to_pitch] = pitch.map(|pitch| Even::new(pitch as isize));
    // SAFETY: both blocks are inside their slices, as asserted; one of them is borrowed exclusively.
    unsafe { transpose(from.as_ptr(), from_pitch, to.as_mut_ptr(), to_pitch, cols, rows) }
}

/// Taps of [`OuterSums`] at a time, each with a register. With 24 of 32 registers addresses do not fit in registers.
const GROUP: usize = 12;

/// `w[i, r] += Σ_t x[offset_i + start(t)]·y[t, r]` for all taps i and as many channels r of y as a register has elements:
/// each element of x is broadcast, so that no sum runs across a register.
pub(super) struct OuterSums<'a, T> {
    pub(super) x: &'a [T],
    pub(super) offsets: &'a [usize],
    /// Input offset of every position of y.
    pub(super) starts: &'a [usize],
    /// Channels of a position: [`widest`] or [`vector`].
    pub(super) block: usize,
    /// `[positions, block]`.
    pub(super) y: &'a [T],
    /// `[taps, block]`.
    pub(super) w: &'a mut [T],
}

impl<T: Float> OuterSums<'_, T> {
    /// `G` taps at a time, `B` channels.
    #[inline(always)]
    fn by<const G: usize, const B: usize>(self) {
        let Self { x, offsets, starts, y, w, .. } = self;
        let (taps, reach) = (offsets.len(), starts.iter().max().map_or(0, |last| last + 1));
        let fits = |&at: &usize| at <= x.len() && x.len() - at >= reach;
        assert!(y.len() == starts.len() * B && offsets.iter().all(fits));
        let (ws, _) = w.as_chunks_mut::<B>();
        for from in (0..taps).step_by(G) {
            let mut acc = [[T::ZERO; B]; G];
            let places: [usize; G] = std::array::from_fn(|g| offsets[(from + g).min(taps - 1)]);
            for (t, &start) in starts.iter().enumerate() {
                // SAFETY: y has as many blocks as there are starts. By value: with references the loop was vectorised along
                // the positions, 20 times slower.
                let y: [T; B] = unsafe { y.as_ptr().add(t * B).cast::<[T; B]>().read() };
                rows!(G, I => {
                    // SAFETY: `places[I]` is an offset, and `start` is below `reach`, as asserted above.
                    let x = unsafe { *x.get_unchecked(places[I] + start) };
                    for lane in 0..B {
                        acc[I][lane] = x.mul_add(y[lane], acc[I][lane]);
                    }
                });
            }
            rows!(G, I => {
                if let Some(w) = ws.get_mut(from + I) {
                    let mut sum = *w;
                    for lane in 0..B {
                        sum[lane] = sum[lane].add(acc[I][lane]);
                    }
                    *w = sum;
                }
            });
        }
    }
}

impl<T: Float> Loop for OuterSums<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match self.block {
            16 => self.by::<GROUP, 16>(),
            8 => self.by::<GROUP, 8>(),
            _ => self.by::<GROUP, 4>(),
        }
    }
}
