//! Scans along lanes in three passes: the composition of each chunk, the states before each chunk, all states. Steps
//! and their composition are in `steps`.

use cubecl::prelude::*;

use super::steps::ScanSteps;

/// Index of step `t`, counted from the start of time.
#[cube]
fn position(t: usize, n: usize, inner: usize, #[comptime] reverse: bool) -> usize {
    let at = if comptime!(reverse) { n - 1 - t } else { t };
    at * inner
}

/// Writes step `e`: a factor and a term, or with `exponents` a term and 1.
#[cube]
fn load<E: Float, F: Float>(
    later: &mut Array<F>,
    x: &mut Array<F>,
    a: &Tensor<E>,
    ia: &Tensor<E>,
    b: &Tensor<E>,
    ib: &Tensor<E>,
    e: usize,
    #[comptime] parts: usize,
    #[comptime] scaled: bool,
    #[comptime] exponents: bool,
) {
    if comptime!(scaled) {
        later[0] = F::cast_from(a[e]);
    }
    if comptime!(exponents) {
        later[0] = F::cast_from(b[e]);
        x[0] = F::new(1.0);
    } else {
        x[0] = F::cast_from(b[e]);
    }
    if comptime!(parts > 1) {
        later[1] = F::cast_from(ia[e]);
        x[1] = F::cast_from(ib[e]);
    }
}

/// Writes the composition of no steps.
#[cube]
fn reset<F: Float>(p: &mut Array<F>, q: &mut Array<F>, p0: F, q0: F, #[comptime] parts: usize) {
    p[0] = p0;
    q[0] = q0;
    if comptime!(parts > 1) {
        p[1] = F::new(0.0);
        q[1] = F::new(0.0);
    }
}

/// Composition of each chunk of `len` steps, shape `[parts, outer, chunks, inner]`; first parts only if they differ
/// (`scaled` or `exponents`).
#[cube(launch_unchecked)]
pub(crate) fn chunks_kernel<E: Float, F: Float, S: ScanSteps>(
    a: &Tensor<E>,
    ia: &Tensor<E>,
    b: &Tensor<E>,
    ib: &Tensor<E>,
    factors: &mut Tensor<F>,
    terms: &mut Tensor<F>,
    all: usize,
    n: usize,
    inner: usize,
    chunks: usize,
    len: usize,
    p0: InputScalar,
    q0: InputScalar,
    low: InputScalar,
    #[comptime] parts: usize,
    #[comptime] scaled: bool,
    #[comptime] exponents: bool,
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
    let low = low.get::<F>();
    let mut p = Array::<F>::new(parts);
    let mut q = Array::<F>::new(parts);
    let mut later = Array::<F>::new(parts);
    let mut x = Array::<F>::new(parts);
    reset::<F>(&mut p, &mut q, p0.get::<F>(), q0.get::<F>(), parts);
    reset::<F>(&mut later, &mut x, p0.get::<F>(), q0.get::<F>(), parts);
    for t in from..to {
        let e = base + position(t, n, inner, reverse);
        load::<E, F>(&mut later, &mut x, a, ia, b, ib, e, parts, scaled, exponents);
        S::compose::<F>(&mut p, &mut q, &later, &x, low, false);
    }
    #[unroll]
    for i in 0..parts {
        if comptime!(scaled || exponents) {
            factors[i * all + at] = p[i];
        }
        terms[i * all + at] = q[i];
    }
}

/// Replaces the composition of each chunk by that of all steps before it and of the initial state, with `units` units
/// of a cube per lane.
#[cube(launch_unchecked)]
pub(crate) fn carries_kernel<E: Float, F: Float, S: ScanSteps>(
    first: &Tensor<E>,
    ifirst: &Tensor<E>,
    factors: &mut Tensor<F>,
    terms: &mut Tensor<F>,
    lanes: usize,
    inner: usize,
    chunks: usize,
    p0: InputScalar,
    q0: InputScalar,
    low: InputScalar,
    #[comptime] units: usize,
    #[comptime] parts: usize,
    #[comptime] paired: bool,
    #[comptime] initial: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    let lane = CUBE_POS;
    if lane >= lanes {
        terminate!();
    }
    let unit = UNIT_POS as usize;
    let base = lane / inner * chunks * inner + lane % inner;
    let all = lanes * chunks;
    let share = (chunks + units - 1) / units;
    let from = select(unit * share < chunks, unit * share, chunks);
    let to = select(from + share < chunks, from + share, chunks);
    let low = low.get::<F>();
    let mut p = Array::<F>::new(parts);
    let mut q = Array::<F>::new(parts);
    let mut later = Array::<F>::new(parts);
    let mut x = Array::<F>::new(parts);
    reset::<F>(&mut p, &mut q, p0.get::<F>(), q0.get::<F>(), parts);
    reset::<F>(&mut later, &mut x, p0.get::<F>(), q0.get::<F>(), parts);
    for chunk in from..to {
        let e = base + chunk * inner;
        #[unroll]
        for i in 0..parts {
            if comptime!(paired) {
                later[i] = factors[i * all + e];
            }
            x[i] = terms[i * all + e];
        }
        S::compose::<F>(&mut p, &mut q, &later, &x, low, true);
    }
    let mut all_firsts = SharedMemory::<F>::new(comptime!(units * parts));
    let mut all_seconds = SharedMemory::<F>::new(comptime!(units * parts));
    #[unroll]
    for i in 0..parts {
        all_firsts[unit + i * units] = p[i];
        all_seconds[unit + i * units] = q[i];
    }
    sync_cube();
    // Each unit combines its map with that of the preceding group of equal size; the distance doubles in every
    // pass.
    let mut reach = 1usize;
    while reach < units {
        let earlier = select(unit >= reach, unit - reach, unit);
        #[unroll]
        for i in 0..parts {
            later[i] = p[i];
            x[i] = q[i];
            p[i] = all_firsts[earlier + i * units];
            q[i] = all_seconds[earlier + i * units];
        }
        sync_cube();
        if unit >= reach {
            S::compose::<F>(&mut p, &mut q, &later, &x, low, true);
            #[unroll]
            for i in 0..parts {
                all_firsts[unit + i * units] = p[i];
                all_seconds[unit + i * units] = q[i];
            }
        }
        sync_cube();
        reach *= 2;
    }
    let before = select(unit > 0, unit - 1, 0);
    reset::<F>(&mut p, &mut q, p0.get::<F>(), q0.get::<F>(), parts);
    if comptime!(initial) {
        q[0] = F::cast_from(first[lane]);
        if comptime!(parts > 1) {
            q[1] = F::cast_from(ifirst[lane]);
        }
    }
    if unit > 0 {
        #[unroll]
        for i in 0..parts {
            later[i] = all_firsts[before + i * units];
            x[i] = all_seconds[before + i * units];
        }
        S::compose::<F>(&mut p, &mut q, &later, &x, low, true);
    }
    reset::<F>(&mut later, &mut x, p0.get::<F>(), q0.get::<F>(), parts);
    for chunk in from..to {
        let e = base + chunk * inner;
        #[unroll]
        for i in 0..parts {
            x[i] = terms[i * all + e];
            terms[i * all + e] = q[i];
            if comptime!(paired) {
                later[i] = factors[i * all + e];
                factors[i * all + e] = p[i];
            }
        }
        S::compose::<F>(&mut p, &mut q, &later, &x, low, true);
    }
}

/// Computes all states from the compositions before chunks.
#[cube(launch_unchecked)]
pub(crate) fn states_kernel<E: Float, F: Float, S: ScanSteps>(
    a: &Tensor<E>,
    ia: &Tensor<E>,
    b: &Tensor<E>,
    ib: &Tensor<E>,
    factors: &Tensor<F>,
    terms: &Tensor<F>,
    h: &mut Tensor<E>,
    ih: &mut Tensor<E>,
    all: usize,
    n: usize,
    inner: usize,
    chunks: usize,
    len: usize,
    p0: InputScalar,
    q0: InputScalar,
    low: InputScalar,
    #[comptime] parts: usize,
    #[comptime] scaled: bool,
    #[comptime] exponents: bool,
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
    let low = low.get::<F>();
    let mut p = Array::<F>::new(parts);
    let mut q = Array::<F>::new(parts);
    let mut later = Array::<F>::new(parts);
    let mut x = Array::<F>::new(parts);
    reset::<F>(&mut p, &mut q, p0.get::<F>(), q0.get::<F>(), parts);
    reset::<F>(&mut later, &mut x, p0.get::<F>(), q0.get::<F>(), parts);
    #[unroll]
    for i in 0..parts {
        q[i] = terms[i * all + at];
        if comptime!(exponents) {
            p[i] = factors[i * all + at];
        }
    }
    for t in from..to {
        let e = base + position(t, n, inner, reverse);
        load::<E, F>(&mut later, &mut x, a, ia, b, ib, e, parts, scaled, exponents);
        S::compose::<F>(&mut p, &mut q, &later, &x, low, false);
        h[e] = E::cast_from(S::state::<F>(&p, &q, low, 0usize));
        if comptime!(parts > 1) {
            ih[e] = E::cast_from(S::state::<F>(&p, &q, low, 1usize));
        }
    }
}
