//! Indices and weights of the elements of each result along an axis.

use std::f64::consts::PI;

use t4a_algebra::Float;

use super::{Filter, ResampleOptions};
use crate::error::Result;
use crate::storage::collect;

/// Indices and weights of a result: adjacent elements, with indices clamped to the axis.
#[derive(Clone, Copy)]
pub(super) struct Taps<T, const N: usize> {
    pub(super) at: [usize; N],
    pub(super) weight: [T; N],
}

impl<T: Float, const N: usize> Taps<T, N> {
    /// `Σ wₖ·xₖ`
    #[inline(always)]
    pub(super) fn read(&self, x: &[T]) -> T {
        if N == 1 {
            return x[self.at[0]];
        }
        let first = x[self.at[0]].mul(self.weight[0]);
        (1..N).fold(first, |sum, k| x[self.at[k]].mul_add(self.weight[k], sum))
    }

    /// `xₖ ← xₖ + wₖ·v`
    #[inline(always)]
    pub(super) fn add(&self, v: T, x: &mut [T]) {
        for (&at, &weight) in self.at.iter().zip(&self.weight) {
            x[at] = v.mul_add(weight, x[at]);
        }
    }
}

/// The taps of `n` results from `m > 0` elements; `N` fits the filter.
pub(super) fn axis<T: Float, const N: usize>(
    m: usize,
    n: usize,
    options: &ResampleOptions,
) -> Result<Vec<Taps<T, N>>> {
    let last = m - 1;
    // The ratio is rounded before the multiplication, as in Burn, so that the same elements are selected.
    let ratio = m as f64 / n as f64;
    let position = |i: usize| match options.align_corners {
        true => i as f64 * (last as f64 / n.saturating_sub(1).max(1) as f64),
        false => (i as f64 + 0.5) * ratio - 0.5,
    };
    let taps = |i: usize| {
        let p = position(i);
        let base = p.floor();
        let mut at = [0; N];
        let mut weight = [1.0; N];
        match options.filter {
            Filter::Nearest => at[0] = ((i as f64 * ratio).floor() as usize).min(last),
            Filter::NearestExact => at[0] = (((i as f64 + 0.5) * ratio).floor() as usize).min(last),
            Filter::Linear => {
                let low = (base.max(0.0) as usize).min(last);
                let right = (p - low as f64).max(0.0);
                for k in 0..N {
                    at[k] = (low + k).min(last);
                    weight[k] = if k == 0 { 1.0 - right } else { right };
                }
            }
            Filter::Cubic => {
                for k in 0..N {
                    at[k] = (base as isize + k as isize - 1).clamp(0, last as isize) as usize;
                    weight[k] = cubic(p - base - (k as f64 - 1.0));
                }
            }
            Filter::Lanczos3 => {
                for k in 0..N {
                    let place = base as isize + k as isize - 2;
                    at[k] = place.clamp(0, last as isize) as usize;
                    let inside = at[k] as isize == place;
                    weight[k] = if inside { lanczos3(p - place as f64) } else { 0.0 };
                }
                let sum: f64 = weight.iter().sum();
                if sum != 0.0 {
                    weight.iter_mut().for_each(|w| *w /= sum);
                }
            }
        }
        Taps { at, weight: weight.map(T::from_f64) }
    };
    collect("resample", n, (0..n).map(taps))
}

/// Keys' cubic convolution with a = −¾.
pub(in crate::nn) fn cubic(t: f64) -> f64 {
    let (a, t) = (-0.75, t.abs());
    if t < 1.0 {
        ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    } else if t < 2.0 {
        a * (((t - 5.0) * t + 8.0) * t - 4.0)
    } else {
        0.0
    }
}

/// `sinc(t)·sinc(t/3)` for |t| < 3.
fn lanczos3(t: f64) -> f64 {
    let sinc = |t: f64| if t == 0.0 { 1.0 } else { (PI * t).sin() / (PI * t) };
    if t.abs() < 3.0 { sinc(t) * sinc(t / 3.0) } else { 0.0 }
}
