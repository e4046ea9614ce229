//! `h ← a h + b` along lanes in three passes: the affine map of each chunk, the states before each chunk, all
//! states. Cumulative sums have a = 1.

use cubecl::prelude::*;

use super::is_nan;

/// Index of step `t`, counted from the start of time.
#[cube]
fn position(t: usize, n: usize, inner: usize, #[comptime] reverse: bool) -> usize {
    let at = if comptime!(reverse) { n - 1 - t } else { t };
    at * inner
}

/// `p x`, but 0 if x is 0: the product of many factors may overflow.
#[cube]
fn scale<F: Float>(p: F, x: F) -> F {
    select(x == F::new(0.0) && !is_nan::<F>(p), x, p * x)
}

/// Factor and term of each chunk of `len` steps, shape `[outer, chunks, inner]`.
#[cube(launch_unchecked)]
pub(crate) fn chunks_kernel<E: Float, F: Float>(
    a: &Tensor<E>,
    b: &Tensor<E>,
    factors: &mut Tensor<F>,
    terms: &mut Tensor<F>,
    all: usize,
    n: usize,
    inner: usize,
    chunks: usize,
    len: usize,
    #[comptime] scaled: bool,
    #[comptime] reverse: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let at = ABSOLUTE_POS;
    if at >= all {
        terminate!();
    }
    let from = at / inner % chunks * len;
    let to = select(from + len < n, from + len, n);
    let base = at / (inner * chunks) * n * inner + at % inner;
    let mut factor = F::new(1.0);
    let mut term = F::new(0.0);
    for t in from..to {
        let e = base + position(t, n, inner, reverse);
        if comptime!(scaled) {
            let p = F::cast_from(a[e]);
            factor *= p;
            term = p * term + F::cast_from(b[e]);
        } else {
            term += F::cast_from(b[e]);
        }
    }
    if comptime!(scaled) {
        factors[at] = factor;
    }
    terms[at] = term;
}

/// Replaces the term of each chunk by the state before it, with `units` units of a cube per lane.
#[cube(launch_unchecked)]
pub(crate) fn carries_kernel<E: Float, F: Float>(
    first: &Tensor<E>,
    factors: &Tensor<F>,
    terms: &mut Tensor<F>,
    lanes: usize,
    inner: usize,
    chunks: usize,
    #[comptime] units: usize,
    #[comptime] scaled: bool,
    #[comptime] initial: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let lane = CUBE_POS;
    if lane >= lanes {
        terminate!();
    }
    let unit = UNIT_POS as usize;
    let base = lane / inner * chunks * inner + lane % inner;
    let share = (chunks + units - 1) / units;
    let from = select(unit * share < chunks, unit * share, chunks);
    let to = select(from + share < chunks, from + share, chunks);
    let mut factor = F::new(1.0);
    let mut term = F::new(0.0);
    for i in from..to {
        let e = base + i * inner;
        if comptime!(scaled) {
            factor *= factors[e];
            term = scale::<F>(factors[e], term) + terms[e];
        } else {
            term += terms[e];
        }
    }
    let mut all_factors = SharedMemory::<F>::new(units);
    let mut all_terms = SharedMemory::<F>::new(units);
    all_factors[unit] = factor;
    all_terms[unit] = term;
    sync_cube();
    // Each unit combines its map with that of the preceding group of equal size; the distance doubles in every
    // pass.
    let mut reach = 1usize;
    while reach < units {
        let earlier = select(unit >= reach, unit - reach, unit);
        let p = all_factors[earlier];
        let q = all_terms[earlier];
        sync_cube();
        if unit >= reach {
            term += scale::<F>(factor, q);
            factor *= p;
            all_factors[unit] = factor;
            all_terms[unit] = term;
        }
        sync_cube();
        reach *= 2;
    }
    let before = select(unit > 0, unit - 1, 0);
    let mut state = F::new(0.0);
    if comptime!(initial) {
        state = F::cast_from(first[lane]);
    }
    if unit > 0 {
        state = scale::<F>(all_factors[before], state) + all_terms[before];
    }
    for i in from..to {
        let e = base + i * inner;
        let q = terms[e];
        terms[e] = state;
        if comptime!(scaled) {
            state = scale::<F>(factors[e], state) + q;
        } else {
            state += q;
        }
    }
}

/// Computes all states from the states before chunks.
#[cube(launch_unchecked)]
pub(crate) fn states_kernel<E: Float, F: Float>(
    a: &Tensor<E>,
    b: &Tensor<E>,
    before: &Tensor<F>,
    h: &mut Tensor<E>,
    all: usize,
    n: usize,
    inner: usize,
    chunks: usize,
    len: usize,
    #[comptime] scaled: bool,
    #[comptime] reverse: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let at = ABSOLUTE_POS;
    if at >= all {
        terminate!();
    }
    let from = at / inner % chunks * len;
    let to = select(from + len < n, from + len, n);
    let base = at / (inner * chunks) * n * inner + at % inner;
    let mut state = before[at];
    for t in from..to {
        let e = base + position(t, n, inner, reverse);
        if comptime!(scaled) {
            state = F::cast_from(a[e]) * state + F::cast_from(b[e]);
        } else {
            state += F::cast_from(b[e]);
        }
        h[e] = E::cast_from(state);
    }
}
