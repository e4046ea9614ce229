//! Function values by point: each one is computed once and kept, as far as the number of kept values has no limit.
//! With a limit there are two halves of it: new values enter the young one, which becomes the old one when it is full,
//! and values of the old one that are used move to the young one. So the values that were used last are kept.
//!
//! A point has a key of 128 bits, the sum of one number per site and index. If the multi-indices number at
//! most 2¹²⁸ these are the digits of a mixed radix, and keys are exact. Otherwise they are random, and two of `N`
//! points share a key with a probability below `N² / 2¹²⁸` (A. Zobrist 1970).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use t4a_linalg::LinalgScalar;

use super::function::{Function, Points};
use super::pivots::Indices;
use crate::train::{Result, TrainError, magnitude};

/// Points of one call of the function at most.
const BATCH: usize = 1 << 16;

/// Mixes the two halves of a key by one wide product.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u128(u128::from(b)));
    }
    fn write_u128(&mut self, key: u128) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let folded = (key as u64) ^ ((key >> 64) as u64).rotate_left(32).wrapping_mul(ODD) ^ self.0;
        let wide = u128::from(folded) * u128::from(ODD);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

/// A function with the values that it has had.
pub(super) struct Samples<'a, T> {
    function: Function<'a, T>,
    /// Key of each index of each site.
    keys: Vec<Vec<u128>>,
    cache: ValueCache<T>,
    /// The older half of a limited cache.
    old: ValueCache<T>,
    /// Values of one half.
    half: usize,
    evaluations: usize,
    max_value: f64,
}

type ValueCache<T> = HashMap<u128, T, BuildHasherDefault<KeyHasher>>;

impl<'a, T: LinalgScalar> Samples<'a, T> {
    /// Values of a function, of which at most `limit` are kept.
    pub(super) fn new(op: &'static str, function: Function<'a, T>, limit: usize) -> Result<Self> {
        let sizes = function.sizes();
        if sizes.is_empty() {
            return Err(TrainError::Sites { op, required: 1, given: 0 });
        }
        if let Some(site) = sizes.iter().position(|&d| d == 0) {
            let message = format!("site {site} has size 0");
            return Err(TrainError::value(op, message));
        }
        let keys = keys(sizes);
        let [cache, old] = [ValueCache::default(), ValueCache::default()];
        Ok(Self { function, keys, cache, old, half: limit / 2, evaluations: 0, max_value: 0.0 })
    }

    pub(super) fn sizes(&self) -> &[usize] {
        self.function.sizes()
    }

    /// Number of points evaluated; with a limit, points count again when they are evaluated again.
    pub(super) fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// A kept value.
    fn find(&mut self, key: u128) -> Option<T> {
        if let Some(&value) = self.cache.get(&key) {
            return Some(value);
        }
        let value = self.old.remove(&key)?;
        self.keep(key, value);
        Some(value)
    }

    /// Keeps a value; true if it was not there.
    fn keep(&mut self, key: u128, value: T) -> bool {
        if self.half == 0 {
            return true;
        }
        if self.cache.len() >= self.half {
            self.old = std::mem::take(&mut self.cache);
        }
        self.cache.insert(key, value).is_none()
    }

    /// The largest `|F|` seen.
    pub(super) fn max_value(&self) -> f64 {
        self.max_value
    }

    /// Keys of partial indices whose first site is `first`.
    fn partial(&self, indices: &Indices, first: usize) -> Vec<u128> {
        let key = |index: &[usize]| {
            let digits = index.iter().zip(&self.keys[first..]);
            digits.fold(0u128, |key, (&s, keys)| key.wrapping_add(keys[s]))
        };
        indices.iter().map(key).collect()
    }

    /// The matrix `F(rows, cols)` in row-major order.
    pub(super) fn block(
        &mut self,
        op: &'static str,
        rows: &Indices,
        cols: &Indices,
    ) -> Result<Vec<T>> {
        let width = rows.get(0).len();
        let (left, right) = (self.partial(rows, 0), self.partial(cols, width));
        let mut out = vec![T::ZERO; left.len() * right.len()];
        let mut missing = Vec::new();
        for (i, &row) in left.iter().enumerate() {
            for (j, &col) in right.iter().enumerate() {
                let (at, key) = (i * right.len() + j, row.wrapping_add(col));
                match self.find(key) {
                    Some(value) => out[at] = value,
                    None => missing.push((at, key)),
                }
            }
        }
        let point = |at: usize, flat: &mut Vec<usize>| {
            flat.extend_from_slice(rows.get(at / right.len()));
            flat.extend_from_slice(cols.get(at % right.len()));
        };
        self.fill(op, &missing, point, &mut out)?;
        Ok(out)
    }

    /// Values at points.
    pub(super) fn at(&mut self, op: &'static str, points: &Indices) -> Result<Vec<T>> {
        let keys = self.partial(points, 0);
        let mut out = vec![T::ZERO; keys.len()];
        let mut missing: Vec<(usize, u128)> = Vec::new();
        for (i, &key) in keys.iter().enumerate() {
            match self.find(key) {
                Some(value) => out[i] = value,
                None => missing.push((i, key)),
            }
        }
        self.fill(op, &missing, |i, flat| flat.extend_from_slice(points.get(i)), &mut out)?;
        Ok(out)
    }

    /// Evaluates missing points, which `point` appends, in batches.
    fn fill(
        &mut self,
        op: &'static str,
        missing: &[(usize, u128)],
        point: impl Fn(usize, &mut Vec<usize>),
        out: &mut [T],
    ) -> Result<()> {
        let width = self.sizes().len();
        for batch in missing.chunks(BATCH) {
            let mut flat = Vec::with_capacity(batch.len() * width);
            batch.iter().for_each(|&(at, _)| point(at, &mut flat));
            let values = self.function.values(op, &Points::new(&flat, width))?;
            for (&(at, key), value) in batch.iter().zip(values) {
                out[at] = value;
                self.evaluations += usize::from(self.keep(key, value));
                self.max_value = self.max_value.max(magnitude(value));
            }
        }
        Ok(())
    }
}

fn keys(sizes: &[usize]) -> Vec<Vec<u128>> {
    let mut stride = Some(1u128);
    let mut exact = Vec::with_capacity(sizes.len());
    for &d in sizes {
        let Some(step) = stride else { break };
        exact.push((0..d as u128).map(|s| s.wrapping_mul(step)).collect());
        stride = step.checked_mul(d as u128);
    }
    // The last product may be 2¹²⁸, which no key reaches.
    if exact.len() == sizes.len() {
        return exact;
    }
    let mut state = 0x243f_6a88_85a3_08d3_u64;
    let mut word = || {
        // SplitMix64 (G. Steele, D. Lea, C. Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(z ^ (z >> 31))
    };
    sizes.iter().map(|&d| (0..d).map(|_| word() << 64 | word()).collect()).collect()
}
