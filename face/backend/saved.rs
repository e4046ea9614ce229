//! Products whose results a checkpointed function keeps from its first run for the runs in the reverse pass.
//!
//! ```text
//! first run     product ── key of the operands ── computed and stored
//! later runs    product ── a stored key           ── the stored result
//!                       ── another key            ── computed
//! ```
//!
//! The key is a hash of the operation and of all elements of its operands, so that a stored result is used for equal operands only,
//! in any order. Hashing reads the operands once, for which a product of n × n matrices takes n times as long. Products are those
//! of the backend: matrix products, linear layers, convolutions and contractions. Runs belong to a thread, and the innermost one
//! applies.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::data::parts;
use super::primitive::T4aTensor;

/// Numbers of products of a checkpointed function, in all of its runs.
#[derive(Debug, Default)]
pub struct ProductCounts {
    /// Products that were computed.
    pub computed: AtomicUsize,
    /// Products whose result was stored.
    pub reused: AtomicUsize,
}

/// Stored results of products of one function. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct SavedProducts {
    store: Arc<Mutex<ProductStore>>,
    counts: Arc<ProductCounts>,
}

#[derive(Debug, Default)]
struct ProductStore {
    results: HashMap<u64, T4aTensor>,
    complete: bool,
}

/// A run of a function on a thread.
struct FunctionRun {
    saved: SavedProducts,
    replays: bool,
}

thread_local! {
    /// Runs of this thread, innermost last; `None` for functions that keep no products.
    static RUNS: RefCell<Vec<Option<FunctionRun>>> = const { RefCell::new(Vec::new()) };
    /// True if the innermost run keeps products.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

/// Guard of a run.
struct ActiveRun(PhantomData<*const ()>);

impl ActiveRun {
    fn enter(run: Option<FunctionRun>) -> Self {
        ACTIVE.set(run.is_some());
        RUNS.with_borrow_mut(|runs| runs.push(run));
        Self(PhantomData)
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let around = RUNS.with_borrow_mut(|runs| {
            let ended = runs.pop();
            (ended, runs.last().is_some_and(Option::is_some))
        });
        ACTIVE.set(around.1);
    }
}

impl SavedProducts {
    /// An empty store that adds to these counts.
    pub fn new(counts: Arc<ProductCounts>) -> Self {
        Self { store: Arc::default(), counts }
    }

    fn store(&self) -> MutexGuard<'_, ProductStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `f`: the first time its products are stored, afterwards stored results are used.
    pub fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        let replays = self.store().complete;
        if !replays {
            self.store().results.clear();
        }
        let guard = ActiveRun::enter(Some(FunctionRun { saved: self.clone(), replays }));
        let y = f();
        drop(guard);
        self.store().complete = true;
        y
    }

    /// Runs `f`, whose products are neither stored nor taken from a store.
    pub fn without<R>(f: impl FnOnce() -> R) -> R {
        let _guard = ActiveRun::enter(None);
        f()
    }
}

/// Key of a product of these operands; `None` if no run keeps products. `what` names the operation with its options.
#[inline]
pub fn product_key<'a>(
    what: impl FnOnce() -> String,
    operands: impl IntoIterator<Item = &'a T4aTensor>,
) -> Option<u64> {
    if ACTIVE.get() { key(what(), operands) } else { None }
}

#[cold]
fn key<'a>(what: String, operands: impl IntoIterator<Item = &'a T4aTensor>) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    for x in operands {
        (x.any().shape(), x.any().dtype().name()).hash(&mut hasher);
        let (bytes, ..) = parts(x.clone().try_into_data().ok()?);
        content(&bytes).hash(&mut hasher);
    }
    Some(hasher.finish())
}

/// Hash of bytes in four independent lanes, each of which is a bijection of its state for every word.
fn content(bytes: &[u8]) -> [u64; 4] {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1, 2, 3, 4];
    let mut add = |block: &[u8]| {
        for (lane, word) in lanes.iter_mut().zip(block.chunks(8)) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            *lane = (*lane ^ u64::from_le_bytes(padded)).wrapping_mul(ODD).rotate_left(29);
        }
    };
    let blocks = bytes.chunks_exact(32);
    let rest = blocks.remainder();
    blocks.for_each(&mut add);
    add(rest);
    lanes
}

/// Result of the product with this key: the stored one, or `compute()`, which is stored in a first run.
#[inline]
pub fn product(key: Option<u64>, compute: impl FnOnce() -> T4aTensor) -> T4aTensor {
    match key {
        None => compute(),
        Some(key) => {
            let Ok(y) = try_product::<Infallible>(key, || Ok(compute()));
            y
        }
    }
}

/// As [`product`], for a product that may fail.
///
/// # Errors
/// Those of `compute`; nothing is stored then.
#[cold]
pub fn try_product<E>(
    key: u64,
    compute: impl FnOnce() -> Result<T4aTensor, E>,
) -> Result<T4aTensor, E> {
    let found = RUNS.with_borrow(|runs| {
        let FunctionRun { saved, replays } = runs.last()?.as_ref()?;
        let stored = saved.store().results.get(&key).filter(|_| *replays).cloned();
        Some((saved.clone(), *replays, stored))
    });
    match found {
        None => compute(),
        Some((saved, _, Some(stored))) => {
            saved.counts.reused.fetch_add(1, Relaxed);
            Ok(stored)
        }
        Some((saved, replays, None)) => {
            let y = compute()?;
            saved.counts.computed.fetch_add(1, Relaxed);
            if !replays {
                saved.store().results.insert(key, y.clone());
            }
            Ok(y)
        }
    }
}

#[cfg(test)]
mod tests {
    use burn_backend::TensorData;

    use super::*;
    use crate::boundary::accept;

    fn name() -> String {
        "product".to_owned()
    }

    fn matrix(x: [f32; 4]) -> T4aTensor {
        accept(T4aTensor::try_from_data(TensorData::new(x.to_vec(), [2, 2])))
    }

    fn run(saved: &SavedProducts, operands: &[T4aTensor]) -> usize {
        let mut computed = 0;
        saved.during(|| {
            for x in operands {
                product(product_key(name, [x]), || {
                    computed += 1;
                    x.clone()
                });
            }
        });
        computed
    }

    #[test]
    fn stored_results_are_those_of_their_operands() {
        let counts = Arc::new(ProductCounts::default());
        let saved = SavedProducts::new(counts.clone());
        let (a, b) = (matrix([1.0, 2.0, 3.0, 4.0]), matrix([1.0, 2.0, 3.0, 5.0]));
        assert_eq!(run(&saved, &[a.clone(), b.clone()]), 2);
        // In order, in another order, and again.
        assert_eq!(run(&saved, &[a.clone(), b.clone()]), 0);
        assert_eq!(run(&saved, &[b.clone(), a.clone(), a]), 0);
        // Another operand, and another operation.
        saved.during(|| assert_ne!(product_key(name, [&b]), product_key(String::new, [&b])));
        assert_eq!(run(&saved, &[matrix([1.0, 2.0, 0.0, 4.0])]), 1);
        assert_eq!([counts.computed.load(Relaxed), counts.reused.load(Relaxed)], [3, 5]);
    }

    #[test]
    fn the_innermost_run_applies() {
        let saved = SavedProducts::default();
        let x = matrix([1.0; 4]);
        run(&saved, std::slice::from_ref(&x));
        let (keys, inner) = saved.during(|| {
            let inner = SavedProducts::without(|| product_key(name, [&x]));
            (product_key(name, [&x]), inner)
        });
        assert!(keys.is_some() && inner.is_none());
        assert_eq!(product_key(name, [&x]), None);
        // A run that panics leaves none behind, and the next one is a first run.
        let saved = SavedProducts::default();
        let first = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            saved.during(|| panic!("in a run"));
        }));
        assert!(first.is_err());
        assert_eq!(product_key(name, [&x]), None);
        assert_eq!(run(&saved, std::slice::from_ref(&x)), 1);
    }
}
