//! Sums of shifted copies, and their adjoint in the weights, for several channels at a time: what is read of
//! one side is used for all of them.
//!
//! Accumulators are arrays by value and indexed by constants, which the compiler keeps in vector registers; as
//! slices and iterators they were scalars (bench `nn`, rows `planes`).

use t4a_algebra::Float;
use t4a_algebra::simd::Loop;

use super::grid::Grid;
use crate::nn::lanes;

/// Channels at a time, where there are so many.
pub(super) const CHANNELS: usize = 4;
/// Elements past the end of a source that the last block of a run may touch.
pub(super) const SLACK: usize = 32;

/// Results of a run, and room for its last block.
pub(super) fn blocks(run: usize, channels: usize) -> usize {
    run.next_multiple_of(if channels == CHANNELS { SLACK / 2 } else { SLACK })
}

/// The most of `count` channels at a time.
pub(super) fn together(count: usize) -> usize {
    if count < CHANNELS { 1 } else { CHANNELS }
}

/// `count` channels in ranges of [`CHANNELS`], and what is left one by one.
pub(super) fn ranges(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let together = count / CHANNELS * CHANNELS;
    let all = (0..together).step_by(CHANNELS).map(|from| from..from + CHANNELS);
    all.chain((together..count).map(|from| from..from + 1))
}

/// `B` elements from `at` on.
#[inline(always)]
fn block<T: Float, const B: usize>(x: &[T], at: usize) -> [T; B] {
    let (blocks, _) = x[at..at + B].as_chunks::<B>();
    blocks[0]
}

/// `out[r·pitch + i] = init_r + Σ w_r·src[offset + i]` over the taps (offset, w), of whole blocks of a run.
pub(super) struct Sum<'a, T> {
    pub(super) src: &'a [T],
    pub(super) offsets: &'a [usize],
    /// One per channel for every tap.
    pub(super) weights: &'a [T],
    /// One per channel.
    pub(super) init: &'a [T],
    pub(super) run: usize,
    pub(super) pitch: usize,
    pub(super) out: &'a mut [T],
}

impl<T: Float> Sum<'_, T> {
    #[inline(always)]
    fn channels<const R: usize, const B: usize>(self) {
        let Self { src, offsets, weights, init, run, pitch, out } = self;
        let (weights, _) = weights.as_chunks::<R>();
        for from in (0..run).step_by(B) {
            let mut acc: [[T; B]; R] = std::array::from_fn(|r| [init[r]; B]);
            for (&offset, w) in offsets.iter().zip(weights) {
                let x: [T; B] = block(src, offset + from);
                for r in 0..R {
                    for lane in 0..B {
                        acc[r][lane] = w[r].mul_add(x[lane], acc[r][lane]);
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                out[r * pitch + from..][..B].copy_from_slice(acc);
            }
        }
    }
}

impl<T: Float> Loop for Sum<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // Four or eight 256-bit registers.
        match (self.init.len() == CHANNELS, size_of::<T>() <= 4) {
            (true, true) => self.channels::<CHANNELS, 16>(),
            (true, false) => self.channels::<CHANNELS, 8>(),
            (false, true) => self.channels::<1, 32>(),
            (false, false) => self.channels::<1, 16>(),
        }
    }
}

/// `wₖ ← wₖ + Σ_t x̃[place_k + t]·y[t]` over the lines of y.
pub(super) struct Dots<'a, T> {
    pub(super) grid: &'a Grid,
    /// A channel on the grid, and [`SLACK`] elements.
    pub(super) x: &'a [T],
    pub(super) places: &'a [usize],
    pub(super) y: &'a [T],
    /// Lines of y, each of whole blocks, with zeros behind it.
    pub(super) lines: &'a [T],
    pub(super) size: [usize; 3],
    pub(super) w: &'a mut [T],
}

/// Positions that [`Dots`] takes side by side from lines of this width: up to two 256-bit registers.
pub(super) fn abreast<T>(width: usize) -> usize {
    if width <= vector::<T>() { vector::<T>() } else { 2 * vector::<T>() }
}

impl<T: Float> Dots<'_, T> {
    /// `G` window elements at a time, `B` positions side by side, of lines of whole blocks.
    #[inline(always)]
    fn group<const G: usize, const B: usize>(&mut self, y: &[T], from: usize) {
        let mut acc = [[T::ZERO; B]; G];
        let places: [usize; G] = std::array::from_fn(|g| self.places[from + g]);
        let (height, pitch) = (self.size[1], self.size[2].next_multiple_of(B));
        for (i, line) in y.chunks_exact(pitch).enumerate() {
            let start = self.grid.linear([i / height, i % height, 0]);
            let (blocks, _) = line.as_chunks::<B>();
            for (j, &y) in blocks.iter().enumerate() {
                let at = start + j * B;
                let xs: [[T; B]; G] = std::array::from_fn(|g| block(self.x, places[g] + at));
                for g in 0..G {
                    for lane in 0..B {
                        acc[g][lane] = xs[g][lane].mul_add(y[lane], acc[g][lane]);
                    }
                }
            }
        }
        for g in 0..G {
            let w = &mut self.w[from + g];
            *w = w.add(lanes::meet(acc[g], T::add));
        }
    }

    #[inline(always)]
    fn all<const B: usize>(mut self, y: &[T]) {
        let n = self.places.len();
        for from in (0..n / 4 * 4).step_by(4) {
            self.group::<4, B>(y, from);
        }
        for from in n / 4 * 4..n {
            self.group::<1, B>(y, from);
        }
    }

    /// Whether zeros behind the lines of y make zeros of everything that lies past a line.
    #[inline(always)]
    fn is_finite(&self) -> bool {
        let mut lanes = [T::ZERO; SLACK];
        let (blocks, rest) = self.x.as_chunks::<SLACK>();
        for block in blocks {
            for lane in 0..SLACK {
                lanes[lane] = block[lane].mul_add(T::ZERO, lanes[lane]);
            }
        }
        !lanes.iter().any(|x| x.is_nan()) && rest.iter().all(|x| x.is_finite())
    }
}

impl<T: Float> Loop for Dots<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (y, lines) = (self.y, self.lines);
        if !self.is_finite() {
            return self.all::<1>(y);
        }
        match (abreast::<T>(self.size[2]), size_of::<T>() <= 4) {
            (16, true) => self.all::<16>(lines),
            (_, true) => self.all::<8>(lines),
            (8, false) => self.all::<8>(lines),
            (_, false) => self.all::<4>(lines),
        }
    }
}

/// `w[r, c, k] ← w[r, c, k] + Σ_t x̃[c][place_k + t]·y[r][t]` for [`CHANNELS`] channels r of y, whose lines are
/// whole vectors.
pub(super) struct DotsTogether<'a, T> {
    pub(super) grid: &'a Grid,
    /// Channels of x on the grid, one behind the other.
    pub(super) x: &'a [T],
    pub(super) places: &'a [usize],
    /// Where the vectors of a plane of y begin on the grid.
    pub(super) starts: &'a [usize],
    pub(super) y: &'a [T],
    pub(super) w: &'a mut [T],
}

/// Elements of a 256-bit register.
pub(super) fn vector<T>() -> usize {
    if size_of::<T>() <= 4 { 8 } else { 4 }
}

impl<T: Float> DotsTogether<'_, T> {
    /// `G` window elements of channel c, `B` positions side by side.
    #[inline(always)]
    fn group<const G: usize, const B: usize>(&mut self, c: usize, from: usize) {
        let mut acc = [[[T::ZERO; B]; G]; CHANNELS];
        let (x, y) = (&self.x[c * self.grid.len()..], self.y);
        let plane = y.len() / CHANNELS;
        let places: [usize; G] = std::array::from_fn(|i| self.places[from + i]);
        for (i, &start) in self.starts.iter().enumerate() {
            let xs: [[T; B]; G] = std::array::from_fn(|g| block(x, places[g] + start));
            for r in 0..CHANNELS {
                let y: [T; B] = block(y, r * plane + i * B);
                for g in 0..G {
                    for lane in 0..B {
                        acc[r][g][lane] = xs[g][lane].mul_add(y[lane], acc[r][g][lane]);
                    }
                }
            }
        }
        let row = self.w.len() / CHANNELS;
        for r in 0..CHANNELS {
            for g in 0..G {
                let w = &mut self.w[r * row + c * self.places.len() + from + g];
                *w = w.add(lanes::meet(acc[r][g], T::add));
            }
        }
    }

    #[inline(always)]
    fn all<const B: usize>(mut self) {
        let n = self.places.len();
        for c in 0..self.w.len() / (CHANNELS * n) {
            for from in (0..n / 3 * 3).step_by(3) {
                self.group::<3, B>(c, from);
            }
            for from in n / 3 * 3..n {
                self.group::<1, B>(c, from);
            }
        }
    }
}

impl<T: Float> Loop for DotsTogether<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if size_of::<T>() <= 4 { self.all::<8>() } else { self.all::<4>() }
    }
}
