//! Sums of shifted copies, and their adjoint in the weights, for several channels at a time: each element read from one
//! side is used for all of them.
//!
//! Accumulators are arrays by value with constant indices, which the compiler keeps in vector registers; with slices
//! and iterators they were scalar (bench `nn`, rows `planes`). Channels of [`ShiftedSum`] are unrolled: as a loop, eight of
//! them were vectorised along the taps for 512 bits, 60 times slower.

use std::ops::Range;

use t4a_algebra::Float;
use t4a_algebra::simd::{Isa, Loop};

use crate::nn::lanes;
use crate::output::{Fresh, Full};

/// Maximum number of channels at a time.
pub(super) const CHANNELS: usize = 4;
/// Number of channels of [`ShiftedSum`] at a time with 32 registers of 512 bits.
pub(super) const WIDE: usize = 8;
/// Elements past the end of a source that the last block of a run may touch.
pub(super) const SLACK: usize = 32;

/// Channels of [`ShiftedSum`] at a time on this machine.
pub(super) fn most() -> usize {
    if Isa::detect() == Isa::Avx512 { WIDE } else { CHANNELS }
}

/// Results of a run, and room for its last block.
pub(super) fn blocks(run: usize, channels: usize) -> usize {
    run.next_multiple_of(if channels == 1 { SLACK } else { SLACK / 2 })
}

/// `count` channels in ranges of `most` ([`WIDE`] or [`CHANNELS`]), then of [`CHANNELS`], and the remainder one by one.
pub(super) fn ranges(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let from = next;
        let len = [most, CHANNELS, 1].into_iter().find(|&len| len <= count - from)?;
        next += len;
        Some(from..next)
    })
}

/// Repeats a block for `$row` = 0 … R − 1, at most 12.
macro_rules! rows {
    ($r:ident, $row:ident => $body:block) => {
        rows!(@ $r, $row, $body, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    (@ $r:ident, $row:ident, $body:block, $($n:literal)*) => {
        $(if const { $n < $r } {
            const $row: usize = $n;
            $body
        })*
    };
}
pub(super) use rows;

/// `B` elements from `at` on.
#[inline(always)]
fn block<T: Float, const B: usize>(x: &[T], at: usize) -> [T; B] {
    let (blocks, _) = x[at..at + B].as_chunks::<B>();
    blocks[0]
}

/// `out[r·pitch + i] = init_r + Σ w_r·src[offset + i]` over the taps (offset, w), of whole blocks of a run.
pub(super) struct ShiftedSum<'a, T> {
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

impl<T: Float> ShiftedSum<'_, T> {
    #[inline(always)]
    fn channels<const R: usize, const B: usize>(&mut self, run: Range<usize>) {
        let Self { src, offsets, weights, init, pitch, .. } = *self;
        let out = &mut *self.out;
        let (weights, _) = weights.as_chunks::<R>();
        for from in run.step_by(B) {
            let mut acc: [[T; B]; R] = std::array::from_fn(|r| [init[r]; B]);
            for (&offset, w) in offsets.iter().zip(weights) {
                let x: [T; B] = block(src, offset + from);
                rows!(R, I => {
                    for lane in 0..B {
                        acc[I][lane] = w[I].mul_add(x[lane], acc[I][lane]);
                    }
                });
            }
            for (r, acc) in acc.iter().enumerate() {
                out[r * pitch + from..][..B].copy_from_slice(acc);
            }
        }
    }
}

impl<T: Float> Loop for ShiftedSum<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(mut self) {
        let all = 0..self.run;
        let (whole, rest) = (0..self.run / 32 * 32, self.run / 32 * 32..self.run);
        // Four or eight registers of 256 bits, 16 of 512 but at the end of a run.
        match (self.init.len(), size_of::<T>() <= 4) {
            (WIDE, true) => {
                self.channels::<WIDE, 32>(whole);
                self.channels::<WIDE, 16>(rest);
            }
            (WIDE, false) => self.channels::<WIDE, 16>(all),
            (CHANNELS, true) => self.channels::<CHANNELS, 16>(all),
            (CHANNELS, false) => self.channels::<CHANNELS, 8>(all),
            (_, true) => self.channels::<1, 32>(all),
            (_, false) => self.channels::<1, 16>(all),
        }
    }
}

/// Side of the windows for which [`LineSums`] and [`WindowDots`] read every element once per column of the window.
pub(super) const SIDE: usize = 3;

/// The offset of the first tap, if the taps are a window of 3 × 3 adjacent elements.
#[inline(always)]
pub(super) fn window(offsets: &[usize], pitch: usize) -> Option<usize> {
    let first = *offsets.first()?;
    let place = |tap: usize| first + tap / SIDE * pitch + tap % SIDE;
    let adjacent = offsets.iter().enumerate().all(|(tap, &at)| at == place(tap));
    (adjacent && offsets.len() == SIDE * SIDE).then_some(first)
}

/// `out[h·width + i] = init + Σ w·src[offset + from + h·pitch + i]` over the taps (offset, w), for one channel: lines are
/// written in place, without the elements between them. Bound by unaligned loads: for
/// [`dispatch_narrow`](t4a_algebra::simd::dispatch_narrow).
pub(super) struct LineSums<'a, 'o, T> {
    /// Followed by at least one block of zeros or other elements.
    pub(super) src: &'a [T],
    pub(super) offsets: &'a [usize],
    pub(super) weights: &'a [T],
    pub(super) init: T,
    pub(super) from: usize,
    pub(super) pitch: usize,
    pub(super) width: usize,
    /// Whole lines.
    pub(super) out: Fresh<'o, T>,
}

impl<'o, T: Float> LineSums<'_, 'o, T> {
    #[inline(always)]
    fn at<const B: usize>(&self, at: usize) -> [T; B] {
        let mut acc = [self.init; B];
        for (&offset, &w) in self.offsets.iter().zip(self.weights) {
            let x: [T; B] = block(self.src, offset + at);
            for lane in 0..B {
                acc[lane] = w.mul_add(x[lane], acc[lane]);
            }
        }
        acc
    }

    /// One line: blocks of four vectors, two and one, and a part of one at its end.
    #[inline(always)]
    fn line<const B4: usize, const B2: usize, const B: usize>(
        &self,
        start: usize,
        out: Fresh<'o, T>,
    ) -> Full<'o, T> {
        let mut out = out.cursor();
        let (mut at, end) = (start, start + self.width);
        while at + B4 <= end {
            out.copy_from(&self.at::<B4>(at));
            at += B4;
        }
        if at + B2 <= end {
            out.copy_from(&self.at::<B2>(at));
            at += B2;
        }
        while at < end {
            let part = B.min(end - at);
            out.copy_from(&self.at::<B>(at)[..part]);
            at += part;
        }
        out.finish()
    }

    #[inline(always)]
    fn by<const B4: usize, const B2: usize, const B: usize>(mut self) -> Full<'o, T> {
        let out = std::mem::replace(&mut self.out, Fresh::of(&mut []));
        if let Some((first, weights)) = self.window() {
            return self.by_columns::<B>(self.from + first, weights, out);
        }
        let mut out = out.cursor();
        let mut start = self.from;
        while !out.is_done() {
            let line = self.line::<B4, B2, B>(start, out.next(self.width));
            out.done(line);
            start += self.pitch;
        }
        out.finish()
    }

    /// The offset of the first tap and the weights of each line, if the taps are a window of 3 × 3 adjacent elements.
    #[inline(always)]
    fn window(&self) -> Option<(usize, [[T; SIDE]; SIDE])> {
        let (weights, []) = self.weights.as_chunks() else { return None };
        Some((window(self.offsets, self.pitch)?, weights.try_into().ok()?))
    }

    /// The sums for windows of 3 × 3 whose first one begins at `start`, from top to bottom in blocks of columns: three
    /// blocks of each line are read, for the sums of three lines, and nine weights stay in registers. Taps are added in
    /// the order of [`LineSums::at`] (960 to 705 µs for lines of 56, 430 to 224 for lines of 28 on Zen 4,
    /// bench `peers`, rows `depthwise`).
    #[inline(always)]
    fn by_columns<const B: usize>(
        &self,
        start: usize,
        weights: [[T; SIDE]; SIDE],
        out: Fresh<'o, T>,
    ) -> Full<'o, T> {
        let Self { src, pitch, width, .. } = *self;
        let last =
            out.len().checked_div(width).map_or(0, |lines| (lines + 1) * pitch) + SIDE - 1 + B;
        let (mut out, init) = (out.block_cursor::<B>(width), [self.init; B]);
        for column in (0..width).step_by(B) {
            let start = start + column;
            assert!(start <= src.len() && src.len() - start >= last);
            let line = |line: usize| -> [[T; B]; SIDE] {
                debug_assert!(line * pitch + SIDE - 1 + B <= last);
                // SAFETY: inside the source, as just asserted for the last line. With a check per block the checks take as
                // long as the arithmetic.
                std::array::from_fn(|tap| unsafe {
                    src.as_ptr().add(start + line * pitch + tap).cast::<[T; B]>().read()
                })
            };
            let [x, y] = [line(0), line(1)];
            let mut second = add_taps(add_taps(init, weights[0], x), weights[1], y);
            let mut first = add_taps(init, weights[0], y);
            for h in 0..out.lines() {
                let x = line(h + SIDE - 1);
                out.push(&add_taps(second, weights[2], x));
                second = add_taps(first, weights[1], x);
                first = add_taps(init, weights[0], x);
            }
        }
        out.finish()
    }
}

/// Adds the taps of one line of a window.
#[inline(always)]
fn add_taps<T: Float, const B: usize>(
    mut acc: [T; B],
    weights: [T; SIDE],
    x: [[T; B]; SIDE],
) -> [T; B] {
    for (w, x) in weights.iter().zip(&x) {
        for lane in 0..B {
            acc[lane] = w.mul_add(x[lane], acc[lane]);
        }
    }
    acc
}

impl<'o, T: Float> Loop for LineSums<'_, 'o, T> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        match size_of::<T>() <= 4 {
            true => self.by::<32, 16, 8>(),
            false => self.by::<16, 8, 4>(),
        }
    }
}

/// Elements of a block that [`DotsTogether`] reads from lines of this width: those that fill whole lines, which are then
/// read in place (1100 to 810 µs for lines of 56 on Zen 4, bench `peers`, row `depthwise 8×64×56² 3×3: weight`).
pub(super) fn abreast<T>(width: usize) -> usize {
    let (narrow, wide) = (vector::<T>(), widest::<T>());
    if width <= narrow || (width.is_multiple_of(narrow) && !width.is_multiple_of(wide)) {
        narrow
    } else {
        wide
    }
}

/// True if all elements are finite, so that products with the zeros after the lines of y are zero.
pub(super) struct IsFinite<'a, T>(pub(super) &'a [T]);

impl<T: Float> Loop for IsFinite<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let mut lanes = [T::ZERO; SLACK];
        let (blocks, rest) = self.0.as_chunks::<SLACK>();
        for block in blocks {
            for lane in 0..SLACK {
                lanes[lane] = block[lane].mul_add(T::ZERO, lanes[lane]);
            }
        }
        !lanes.iter().any(|x| x.is_nan()) && rest.iter().all(|x| x.is_finite())
    }
}

/// `w[r, i] = Σ_t x[offset_i + start(t)]·y[r, t]` for one channel or [`CHANNELS`] channels r of y and all taps i.
pub(super) struct DotsTogether<'a, T> {
    /// Channels of y.
    pub(super) channels: usize,
    /// Input, followed by [`PAST`](super::grid::PAST) elements.
    pub(super) x: &'a [T],
    pub(super) offsets: &'a [usize],
    /// Input offset of every block of y; consecutive blocks if `None`.
    pub(super) starts: Option<&'a [usize]>,
    /// Elements of a block: of one register.
    pub(super) block: usize,
    /// Whole blocks, as many for every channel.
    pub(super) y: &'a [T],
    /// Scratch for [`LANES`] elements.
    pub(super) lanes: &'a mut [T],
    pub(super) w: &'a mut [T],
}

/// Taps of [`DotsTogether`] at a time for one channel.
const TAPS: usize = 9;
/// Partial sums of [`DotsTogether`]: 24 registers of 512 bits.
pub(super) const LANES: usize = 24 * 16;

/// Elements of the widest register.
pub(super) fn widest<T>() -> usize {
    if Isa::detect() == Isa::Avx512 { 2 * vector::<T>() } else { vector::<T>() }
}

/// Elements of a 256-bit register.
pub(super) fn vector<T>() -> usize {
    if size_of::<T>() <= 4 { 8 } else { 4 }
}

impl<T: Float> DotsTogether<'_, T> {
    /// `R` channels of y, `G` taps, and `B` adjacent positions.
    #[inline(always)]
    fn all<const R: usize, const G: usize, const B: usize>(self) {
        match self.starts {
            Some(starts) => {
                let reach = starts.iter().max().map_or(0, |last| last + B);
                assert_eq!(self.y.len(), starts.len() * B * R);
                self.by::<R, G, B>(reach, starts.iter().copied());
            }
            None => {
                let run = self.y.len() / R;
                self.by::<R, G, B>(run, (0..run).step_by(B));
            }
        }
    }

    /// Blocks begin at the `starts`, and end at `reach` or before.
    #[inline(always)]
    fn by<const R: usize, const G: usize, const B: usize>(
        self,
        reach: usize,
        starts: impl Iterator<Item = usize> + Clone,
    ) {
        let Self { x, offsets, y, w, lanes, .. } = self;
        let (run, taps) = (y.len() / R, offsets.len());
        let fits = |&at: &usize| at <= x.len() && x.len() - at >= reach;
        assert!(run.is_multiple_of(B) && offsets.iter().all(fits));
        let read = |of: &[T], at: usize| -> [T; B] {
            debug_assert!(at + B <= of.len());
            // SAFETY: blocks are inside x from every offset on, and R times in y. With bounds checks in the loop the
            // compiler stores accumulators at every step (rustc 1.95).
            unsafe { of.as_ptr().add(at).cast::<[T; B]>().read() }
        };
        for from in (0..taps).step_by(G) {
            let mut acc = [[[T::ZERO; B]; G]; R];
            let places: [usize; G] = std::array::from_fn(|g| offsets[(from + g).min(taps - 1)]);
            for (i, start) in starts.clone().enumerate() {
                // Of the side with fewer vectors all are in registers, of the other one a single one.
                if const { R < G } {
                    let ys: [[T; B]; R] = std::array::from_fn(|r| read(y, r * run + i * B));
                    rows!(G, J => {
                        let x = read(x, places[J] + start);
                        rows!(R, I => {
                            for lane in 0..B {
                                acc[I][J][lane] = x[lane].mul_add(ys[I][lane], acc[I][J][lane]);
                            }
                        });
                    });
                } else {
                    let xs: [[T; B]; G] = std::array::from_fn(|g| read(x, places[g] + start));
                    rows!(R, I => {
                        let y = read(y, I * run + i * B);
                        rows!(G, J => {
                            for lane in 0..B {
                                acc[I][J][lane] = xs[J][lane].mul_add(y[lane], acc[I][J][lane]);
                            }
                        });
                    });
                }
            }
            // Through memory: accumulators that something indexes are no registers.
            for (lanes, acc) in lanes.chunks_exact_mut(B).zip(acc.as_flattened()) {
                lanes.copy_from_slice(acc);
            }
            for r in 0..R {
                for g in 0..G.min(taps - from) {
                    w[r * taps + from + g] =
                        lanes::meet(block::<T, B>(lanes, (r * G + g) * B), T::add);
                }
            }
        }
    }
}

impl<T: Float> Loop for DotsTogether<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match (self.channels, self.block) {
            (1, 16) => self.all::<1, TAPS, 16>(),
            (1, 8) => self.all::<1, TAPS, 8>(),
            (1, 4) => self.all::<1, TAPS, 4>(),
            (1, _) => self.all::<1, TAPS, 1>(),
            // 24 partial sums of 32 registers of 512 bits: with 12, a third more elements of y are read again.
            (_, 16) => self.all::<CHANNELS, 6, 16>(),
            (_, 8) => self.all::<CHANNELS, 3, 8>(),
            (_, 4) => self.all::<CHANNELS, 3, 4>(),
            (..) => self.all::<CHANNELS, 3, 1>(),
        }
    }
}

/// `w[i, j] += Σ x[from + (h + i)·pitch + c + j]·y[h·width + c]` over all lines h and some columns c, for windows of 3 × 3
/// adjacent elements. Blocks of columns are processed from top to bottom: a line of x is read once for the lines of y above it,
/// with three loads per three taps and line instead of nine (bench `peers`, rows `depthwise`).
pub(super) struct WindowDots<'a, T> {
    pub(super) x: &'a [T],
    pub(super) from: usize,
    pub(super) pitch: usize,
    /// Whole lines, at least [`SIDE`].
    pub(super) y: &'a [T],
    pub(super) width: usize,
    /// Number of columns, from the first one: whole blocks of one register of 512 bits.
    pub(super) columns: usize,
    /// Partial sums of every tap in [`WINDOW_LANES`] elements, to be added by [`WindowSum`].
    pub(super) lanes: &'a mut [T],
}

/// Elements of the partial sums of [`WindowDots`].
pub(super) const WINDOW_LANES: usize = SIDE * SIDE * 16;

/// Elements of a register of 512 bits.
const fn window_block<T>() -> usize {
    if size_of::<T>() <= 4 { 16 } else { 8 }
}

/// Sums over lanes for the taps of a window.
type WindowSums<T, const B: usize> = [[T; B]; SIDE * SIDE];

/// Adds a line of x, for three taps, times a line of y to row `R` of the window.
#[inline(always)]
fn add_products<T: Float, const B: usize, const R: usize>(
    mut acc: WindowSums<T, B>,
    x: [[T; B]; SIDE],
    y: [T; B],
) -> WindowSums<T, B> {
    let [first, second, third] = x;
    for lane in 0..B {
        acc[R * SIDE][lane] = first[lane].mul_add(y[lane], acc[R * SIDE][lane]);
    }
    for lane in 0..B {
        acc[R * SIDE + 1][lane] = second[lane].mul_add(y[lane], acc[R * SIDE + 1][lane]);
    }
    for lane in 0..B {
        acc[R * SIDE + 2][lane] = third[lane].mul_add(y[lane], acc[R * SIDE + 2][lane]);
    }
    acc
}

impl<T: Float> WindowDots<'_, T> {
    #[inline(always)]
    fn by<const B: usize>(self) {
        let Self { x, from, pitch, y, width, columns, lanes } = self;
        let lines = y.len() / width;
        let reach = (lines + SIDE - 2) * pitch + width + SIDE - 1;
        assert!(lines >= SIDE && columns <= width && columns.is_multiple_of(B));
        assert!(from <= x.len() && x.len() - from >= reach);
        let mut acc: WindowSums<T, B> = std::array::from_fn(|tap| block(lanes, tap * B));
        for column in (0..columns).step_by(B) {
            let x = |line: usize| -> [[T; B]; SIDE] {
                debug_assert!(line * pitch + column + SIDE - 1 + B <= reach);
                // SAFETY: inside x, as asserted for the last line and the last column. Checks per block take as long as the
                // arithmetic.
                std::array::from_fn(|tap| unsafe {
                    x.as_ptr().add(from + line * pitch + column + tap).cast::<[T; B]>().read()
                })
            };
            let y = |line: usize| -> [T; B] {
                debug_assert!(line * width + column + B <= y.len());
                // SAFETY: inside line `line` of y.
                unsafe { y.as_ptr().add(line * width + column).cast::<[T; B]>().read() }
            };
            acc = add_products::<T, B, 0>(acc, x(0), y(0));
            acc = add_products::<T, B, 0>(acc, x(1), y(1));
            acc = add_products::<T, B, 1>(acc, x(1), y(0));
            for line in 2..lines {
                let x = x(line);
                acc = add_products::<T, B, 0>(acc, x, y(line));
                acc = add_products::<T, B, 1>(acc, x, y(line - 1));
                acc = add_products::<T, B, 2>(acc, x, y(line - 2));
            }
            acc = add_products::<T, B, 1>(acc, x(lines), y(lines - 1));
            acc = add_products::<T, B, 2>(acc, x(lines), y(lines - 2));
            acc = add_products::<T, B, 2>(acc, x(lines + 1), y(lines - 1));
        }
        // Through memory, as in [`DotsTogether`].
        for (lanes, acc) in lanes.chunks_exact_mut(B).zip(&acc) {
            lanes.copy_from_slice(acc);
        }
    }
}

impl<T: Float> Loop for WindowDots<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match const { window_block::<T>() } {
            16 => self.by::<16>(),
            _ => self.by::<8>(),
        }
    }
}

/// Sums of the lanes of [`WindowDots`].
pub(super) struct WindowSum<'a, T>(pub(super) &'a [T], pub(super) &'a mut [T]);

impl<T: Float> WindowSum<'_, T> {
    #[inline(always)]
    fn by<const B: usize>(self) {
        for (tap, w) in self.1.iter_mut().enumerate() {
            *w = lanes::meet(block::<T, B>(self.0, tap * B), T::add);
        }
    }
}

impl<T: Float> Loop for WindowSum<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match const { window_block::<T>() } {
            16 => self.by::<16>(),
            _ => self.by::<8>(),
        }
    }
}
