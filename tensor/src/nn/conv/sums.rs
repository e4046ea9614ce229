//! Sums of shifted copies, and their adjoint in the weights, for several channels at a time: what is read of
//! one side is used for all of them.

use t4a_algebra::Float;
use t4a_algebra::simd::Loop;

use super::grid::Grid;

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
            let mut acc = [[T::ZERO; B]; R];
            for (acc, &init) in acc.iter_mut().zip(init) {
                *acc = [init; B];
            }
            for (&offset, w) in offsets.iter().zip(weights) {
                let x = &src[offset + from..][..B];
                for (acc, &w) in acc.iter_mut().zip(w) {
                    for (acc, &x) in acc.iter_mut().zip(x) {
                        *acc = w.mul_add(x, *acc);
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

/// `w[r, c, k] ← w[r, c, k] + Σ_t x̃[c][place_k + t]·y[r][t]` over the lines of y.
pub(super) struct Dots<'a, T> {
    pub(super) grid: &'a Grid,
    /// Channels of x on the grid, one behind the other.
    pub(super) x: &'a [T],
    pub(super) places: &'a [usize],
    /// Channels of y.
    pub(super) y: &'a [T],
    pub(super) size: [usize; 3],
    pub(super) w: &'a mut [T],
}

/// `B` elements from `at` on.
#[inline(always)]
fn block<T: Float, const B: usize>(x: &[T], at: usize) -> [T; B] {
    let (blocks, _) = x[at..at + B].as_chunks::<B>();
    blocks[0]
}

/// Those of them that count, and zeros.
#[inline(always)]
fn masked<T: Float, const B: usize>(mut x: [T; B], count: usize) -> [T; B] {
    for (lane, x) in x.iter_mut().enumerate() {
        *x = if lane < count { *x } else { T::ZERO };
    }
    x
}

/// `acc_g ← acc_g + x_g·y`.
#[inline(always)]
fn add<T: Float, const G: usize, const B: usize>(
    acc: &mut [[T; B]; G],
    xs: &[[T; B]; G],
    y: [T; B],
) {
    for g in 0..G {
        for lane in 0..B {
            acc[g][lane] = xs[g][lane].mul_add(y[lane], acc[g][lane]);
        }
    }
}

impl<T: Float> Dots<'_, T> {
    /// `G` window elements of channel c for `R` channels of y, `B` positions side by side.
    #[inline(always)]
    fn group<const R: usize, const G: usize, const B: usize>(&mut self, c: usize, from: usize) {
        let mut acc = [[[T::ZERO; B]; G]; R];
        let [depth, height, width] = self.size;
        let plane = depth * height * width;
        let x = &self.x[c * self.grid.len()..];
        let places: [usize; G] = std::array::from_fn(|i| self.places[from + i]);
        let (whole, tail) = (width / B * B, width % B);
        for i in 0..depth * height {
            let (line, start) = (i * width, self.grid.linear([i / height, i % height, 0]));
            for j in (0..whole).step_by(B) {
                let xs = places.map(|place| block(x, place + start + j));
                for (r, acc) in acc.iter_mut().enumerate() {
                    add(acc, &xs, block(self.y, r * plane + line + j));
                }
            }
            if tail > 0 {
                // Zeros on both sides: what lies past a line may be infinite.
                let xs = places.map(|place| masked(block(x, place + start + whole), tail));
                for (r, acc) in acc.iter_mut().enumerate() {
                    let mut y = [T::ZERO; B];
                    y[..tail].copy_from_slice(&self.y[r * plane + line + whole..][..tail]);
                    add(acc, &xs, y);
                }
            }
        }
        let per_channel = self.w.len() / R;
        for (r, sums) in acc.into_iter().enumerate() {
            let w = &mut self.w[r * per_channel + c * self.places.len() + from..][..G];
            for (w, mut sums) in w.iter_mut().zip(sums) {
                // In a tree, and not by `lanes`, whose rows are longer.
                let mut half = B / 2;
                while half > 0 {
                    for lane in 0..half {
                        sums[lane] = sums[lane].add(sums[lane + half]);
                    }
                    half /= 2;
                }
                *w = w.add(sums[0]);
            }
        }
    }

    #[inline(always)]
    fn all<const R: usize, const G: usize, const B: usize>(mut self) {
        let n = self.places.len();
        for c in 0..self.w.len() / (R * n) {
            for from in (0..n / G * G).step_by(G) {
                self.group::<R, G, B>(c, from);
            }
            for from in n / G * G..n {
                self.group::<R, 1, B>(c, from);
            }
        }
    }
}

impl<T: Float> Loop for Dots<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let together = self.y.len() == CHANNELS * self.size.iter().product::<usize>();
        match (together, size_of::<T>() <= 4) {
            (true, true) => self.all::<CHANNELS, 3, 8>(),
            (true, false) => self.all::<CHANNELS, 3, 4>(),
            (false, true) => self.all::<1, 4, 16>(),
            (false, false) => self.all::<1, 4, 8>(),
        }
    }
}
