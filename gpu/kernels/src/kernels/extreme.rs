//! Maximum and minimum of lanes with their indices.

use cubecl::prelude::*;

use super::is_nan;

/// Returns true if `y` replaces `x`: NaN takes precedence over numbers, and the first element over equal ones.
#[cube]
fn beats<F: Float>(y: F, x: F, #[comptime] least: bool) -> bool {
    let further = if comptime!(least) { y < x } else { y > x };
    !is_nan::<F>(x) && (further || is_nan::<F>(y))
}

/// Maximum (minimum) of each lane and its index, the first of equal ones. Each lane has `width` units, each cube
/// `lanes` lanes.
#[cube(launch_unchecked)]
pub(crate) fn extreme_kernel<F: Float>(
    x: &Tensor<F>,
    values: &mut Tensor<F>,
    places: &mut Tensor<i32>,
    all: usize,
    inner: usize,
    n: usize,
    outer_stride: usize,
    inner_stride: usize,
    stride: usize,
    #[comptime] lanes: usize,
    #[comptime] width: usize,
    #[comptime] least: bool,
    #[comptime] by_place: bool,
    #[define(F)] _dtype: StorageType,
) {
    let lane = CUBE_POS * lanes + UNIT_POS_X as usize;
    let part = UNIT_POS_Y as usize;
    let own = select(lane < all, lane, 0);
    let base = (own / inner) * outer_stride + (own % inner) * inner_stride;
    let mut best = x[base];
    let mut at = 0usize;
    let mut t = part;
    while t < n {
        let y = x[base + t * stride];
        let wins = beats::<F>(y, best, least);
        best = select(wins, y, best);
        at = select(wins, t, at);
        t += width;
    }
    if comptime!(width > 1) {
        let mut bests = SharedMemory::<F>::new(comptime!(lanes * width));
        let mut ats = SharedMemory::<u32>::new(comptime!(lanes * width));
        let slot = UNIT_POS_X as usize + part * lanes;
        bests[slot] = best;
        ats[slot] = at as u32;
        sync_cube();
        let mut reach = comptime!(width / 2).runtime();
        while reach > 0 {
            if part < reach {
                let y = bests[slot + reach * lanes];
                let u = ats[slot + reach * lanes];
                let first = bests[slot];
                let earlier = u < ats[slot] && !beats::<F>(first, y, least);
                if beats::<F>(y, first, least) || earlier {
                    bests[slot] = y;
                    ats[slot] = u;
                }
            }
            sync_cube();
            reach /= 2;
        }
        best = bests[slot];
        at = ats[slot] as usize;
    }
    if part == 0 && lane < all {
        if comptime!(by_place) {
            places[lane] = at as i32;
        } else {
            values[lane] = best;
        }
    }
}
