//! Batched matrix products of elements without a derivative: integers, values with counts, lists of the best values.

use cubecl::prelude::*;

use super::is_nan;

/// ⊗ and the preference of ⊕ for numbers other than NaN.
#[cube]
pub(crate) trait Preference: 'static + Send + Sync {
    /// `a ⊗ b`; integers saturate at `low` and `high`.
    fn times<T: Numeric>(a: T, b: T, low: T, high: T, #[comptime] float: bool) -> T;
    /// Returns true if ⊕ prefers `a` to `b`.
    fn better<T: Numeric>(a: T, b: T) -> bool;
}

/// `a + b` without overflow of integers.
#[cube]
fn plus<T: Numeric>(a: T, b: T, low: T, high: T, #[comptime] float: bool) -> T {
    let mut sum = high;
    if comptime!(float) {
        sum = a + b;
    } else if b > T::from_int(0) {
        if a <= high - b {
            sum = a + b;
        }
    } else if a < low - b {
        sum = low;
    } else {
        sum = a + b;
    }
    sum
}

pub(crate) struct Wrapping;
#[cube]
impl Preference for Wrapping {
    fn times<T: Numeric>(a: T, b: T, _low: T, _high: T, #[comptime] _float: bool) -> T {
        a * b
    }
    fn better<T: Numeric>(a: T, b: T) -> bool {
        a > b
    }
}

pub(crate) struct MaxSum;
#[cube]
impl Preference for MaxSum {
    fn times<T: Numeric>(a: T, b: T, low: T, high: T, #[comptime] float: bool) -> T {
        plus::<T>(a, b, low, high, float)
    }
    fn better<T: Numeric>(a: T, b: T) -> bool {
        a > b
    }
}

pub(crate) struct MinSum;
#[cube]
impl Preference for MinSum {
    fn times<T: Numeric>(a: T, b: T, low: T, high: T, #[comptime] float: bool) -> T {
        plus::<T>(a, b, low, high, float)
    }
    fn better<T: Numeric>(a: T, b: T) -> bool {
        a < b
    }
}

/// `a · b` of numbers ≥ 0 without overflow of integers.
#[cube]
fn times<T: Numeric>(a: T, b: T, high: T, #[comptime] float: bool) -> T {
    let none = T::from_int(0);
    let mut product = none;
    if comptime!(float) {
        product = a * b;
    } else if a > none && b > none {
        product = high;
        if a <= high / b {
            product = a * b;
        }
    }
    product
}

pub(crate) struct MaxProduct;
#[cube]
impl Preference for MaxProduct {
    fn times<T: Numeric>(a: T, b: T, _low: T, high: T, #[comptime] float: bool) -> T {
        times::<T>(a, b, high, float)
    }
    fn better<T: Numeric>(a: T, b: T) -> bool {
        a > b
    }
}

pub(crate) struct MinProduct;
#[cube]
impl Preference for MinProduct {
    fn times<T: Numeric>(a: T, b: T, _low: T, high: T, #[comptime] float: bool) -> T {
        times::<T>(a, b, high, float)
    }
    fn better<T: Numeric>(a: T, b: T) -> bool {
        a < b
    }
}

pub(crate) struct Widest;
#[cube]
impl Preference for Widest {
    fn times<T: Numeric>(a: T, b: T, _low: T, _high: T, #[comptime] _float: bool) -> T {
        select(b < a, b, a)
    }
    fn better<T: Numeric>(a: T, b: T) -> bool {
        a > b
    }
}

#[cube]
fn absent<T: Numeric>(x: T) -> bool {
    is_nan::<f32>(f32::cast_from(x))
}

/// `a ⊗ b`, rounded to E; the zero of the semiring absorbs all elements but NaN.
#[cube]
fn term<E: Numeric, F: Numeric, S: Preference>(
    a: F,
    b: F,
    zero: F,
    low: F,
    high: F,
    #[comptime] float: bool,
) -> F {
    let product = S::times::<F>(a, b, low, high, float);
    if comptime!(float) {
        let rounded = F::cast_from(E::cast_from(product));
        let defined = select(absent::<F>(rounded), zero, rounded);
        select(absent::<F>(a) || absent::<F>(b), a + b, defined)
    } else {
        select(a == zero || b == zero, zero, product)
    }
}

/// Returns true if ⊕ prefers `x` to `y`: NaN takes precedence over numbers.
#[cube]
fn prefers<F: Numeric, S: Preference>(x: F, y: F, #[comptime] float: bool) -> bool {
    let better = S::better::<F>(x, y);
    if comptime!(float) { better || (absent::<F>(x) && !absent::<F>(y)) } else { better }
}

/// Saturating sum of counts.
#[cube]
fn count_sum(x: u32, y: u32) -> u32 {
    let most = u32::MAX;
    select(x > most - y, most, x + y)
}

/// Saturating product of counts.
#[cube]
fn count_product(x: u32, y: u32) -> u32 {
    let most = u32::MAX;
    let mut product = x * y;
    if x > 0 && y > most / x {
        product = most;
    }
    product
}

/// `count`, but 0 for the zero of the semiring, and `u32::MAX` for values that absorb others.
#[cube]
fn count_of<F: Numeric, S: Preference>(
    value: F,
    count: u32,
    zero: F,
    absorbing: F,
    #[comptime] float: bool,
) -> u32 {
    let unknown = value == absorbing || absent::<F>(value);
    let counted = select(unknown, u32::MAX, count);
    select(prefers::<F, S>(value, zero, float), counted, 0)
}

/// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]`. A cube computes a tile of `side × side` elements, a unit one of them,
/// with `steps` terms at a time in shared memory. Elements are stored as E; ⊗ is computed as F and rounded to E.
///
/// Operands have `a_width` and `b_width` numbers per element, the result `width`. With `float` and `width > 1`, or
/// with `counted`, elements that ⊕ does not prefer to `zero` are replaced by it. With `additive`, ⊕ is +.
///
/// With `counted`, `c_counts` receives the number of terms equal to the value. `u32::MAX` marks an overflow or an
/// unknown count. Operands without counts have count 1.
#[cube(launch_unchecked)]
pub(crate) fn element_kernel<E: Numeric, F: Numeric, S: Preference>(
    a: &Tensor<E>,
    a_counts: &Tensor<u32>,
    b: &Tensor<E>,
    b_counts: &Tensor<u32>,
    c: &mut Tensor<E>,
    c_counts: &mut Tensor<u32>,
    tiles: usize,
    m: usize,
    k: usize,
    n: usize,
    a_batch: usize,
    a_row: usize,
    a_column: usize,
    b_batch: usize,
    b_row: usize,
    b_column: usize,
    zero: InputScalar,
    low: InputScalar,
    high: InputScalar,
    absorbing: InputScalar,
    #[comptime] side: usize,
    #[comptime] steps: usize,
    #[comptime] a_width: usize,
    #[comptime] b_width: usize,
    #[comptime] width: usize,
    #[comptime] counted: bool,
    #[comptime] a_counted: bool,
    #[comptime] b_counted: bool,
    #[comptime] float: bool,
    #[comptime] additive: bool,
    #[define(E, F)] _dtypes: [StorageType; 2],
) {
    if CUBE_POS >= tiles {
        terminate!();
    }
    let across = (n + side - 1) / side;
    let down = (m + side - 1) / side;
    let column0 = (CUBE_POS % across) * side;
    let row0 = ((CUBE_POS / across) % down) * side;
    let batch = CUBE_POS / (across * down);
    let unit = UNIT_POS as usize;
    let x = unit % side;
    let y = unit / side;
    let zero = zero.get::<F>();
    let low = low.get::<F>();
    let high = high.get::<F>();
    let absorbing = absorbing.get::<F>();
    let filtered = comptime!(counted || (float && width > 1));
    let pitch = comptime!(steps + 1);

    let mut sa = SharedMemory::<F>::new(comptime!(side * (steps + 1) * a_width));
    let mut sb = SharedMemory::<F>::new(comptime!(steps * side * b_width));
    let mut na = SharedMemory::<u32>::new(comptime!(if counted { side * (steps + 1) } else { 1 }));
    let mut nb = SharedMemory::<u32>::new(comptime!(if counted { steps * side } else { 1 }));
    let mut best = Array::<F>::new(width);
    let mut count = 0u32;
    #[unroll]
    for i in 0..width {
        best[i] = zero;
    }

    let mut k0 = 0usize;
    while k0 < k {
        if unit < comptime!(side * steps) {
            let row = unit / steps;
            let step = unit % steps;
            let inside = row0 + row < m && k0 + step < k;
            let from = batch * a_batch + (row0 + row) * a_row + (k0 + step) * a_column;
            let from = select(inside, from, 0);
            let slot = row * pitch + step;
            #[unroll]
            for i in 0..a_width {
                let value = F::cast_from(a[from + i]);
                let mut kept = inside;
                if comptime!(filtered) {
                    kept = inside && prefers::<F, S>(value, zero, float);
                }
                sa[slot * a_width + i] = select(kept, value, zero);
            }
            if comptime!(counted) {
                let mut terms = 1u32;
                if comptime!(a_counted) {
                    terms = a_counts[from];
                }
                na[slot] = count_of::<F, S>(sa[slot], terms, zero, absorbing, float);
            }
            let column = unit % side;
            let step = unit / side;
            let inside = k0 + step < k && column0 + column < n;
            let from = batch * b_batch + (k0 + step) * b_row + (column0 + column) * b_column;
            let from = select(inside, from, 0);
            let slot = step * side + column;
            #[unroll]
            for i in 0..b_width {
                let value = F::cast_from(b[from + i]);
                let mut kept = inside;
                if comptime!(filtered) {
                    kept = inside && prefers::<F, S>(value, zero, float);
                }
                sb[slot * b_width + i] = select(kept, value, zero);
            }
            if comptime!(counted) {
                let mut terms = 1u32;
                if comptime!(b_counted) {
                    terms = b_counts[from];
                }
                nb[slot] = count_of::<F, S>(sb[slot], terms, zero, absorbing, float);
            }
        }
        sync_cube();
        for step in 0..steps {
            let left = y * pitch + step;
            let right = step * side + x;
            if comptime!(width > 1) {
                #[unroll]
                for i in 0..a_width {
                    let p = sa[left * a_width + i];
                    // Elements after the first are terms only if they are not padding.
                    let some = comptime!(i == 0) || prefers::<F, S>(p, zero, float);
                    #[unroll]
                    for j in 0..b_width {
                        // The pair (i, j) is dominated by the (i + 1)(j + 1) − 1 pairs before it.
                        if comptime!((i + 1) * (j + 1) <= width) {
                            let q = sb[right * b_width + j];
                            let both =
                                some && (comptime!(j == 0) || prefers::<F, S>(q, zero, float));
                            let found = term::<E, F, S>(p, q, zero, low, high, float);
                            let mut moved = select(both, found, zero);
                            #[unroll]
                            for place in 0..width {
                                let held = best[place];
                                let wins = prefers::<F, S>(moved, held, float);
                                best[place] = select(wins, moved, held);
                                moved = select(wins, held, moved);
                            }
                        }
                    }
                }
            } else {
                let found = term::<E, F, S>(sa[left], sb[right], zero, low, high, float);
                let sum = best[0];
                let wins = prefers::<F, S>(found, sum, float);
                if comptime!(additive) {
                    best[0] = sum + found;
                } else {
                    best[0] = select(wins, found, sum);
                }
                if comptime!(counted) {
                    let loses = prefers::<F, S>(sum, found, float);
                    if !loses {
                        let terms = count_product(na[left], nb[right]);
                        let terms = count_of::<F, S>(found, terms, zero, absorbing, float);
                        count = select(wins, terms, count_sum(count, terms));
                    }
                }
            }
        }
        sync_cube();
        k0 += steps;
    }

    if row0 + y < m && column0 + x < n {
        let to = (batch * m + row0 + y) * n + column0 + x;
        #[unroll]
        for i in 0..width {
            c[to * width + i] = E::cast_from(best[i]);
        }
        if comptime!(counted) {
            c_counts[to] = count;
        }
    }
}
