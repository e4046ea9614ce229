//! Operations that are kept for keys of Python, shapes and dtypes, so that a call finds its operation without Python.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

use t4a_diff::Meta;
use t4a_tensor::DType;
use t4a_tensor::layout::Dims;

use super::symbols::{EQUAL, Object, Symbols};
use crate::described::Described;
use crate::op::{Op, of};
use crate::parts;

/// Maximum number of operations.
const CAPACITY: usize = 4096;

/// A kept operation.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) op: *const Op,
    /// True if the first operand and the result have an additional leading axis of size 1.
    pub(super) number: bool,
    /// Object that holds the handle of the operation.
    pub(super) owner: *mut Object,
}

struct Entry {
    key: *mut Object,
    operands: Vec<(DType, Dims)>,
    found: Found,
}

/// Hashes are computed by [`hash`].
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64");
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Entries = HashMap<u64, Vec<Entry>, BuildHasherDefault<Identity>>;

/// Guarded by the lock of the interpreter.
struct Kept(RefCell<Entries>);

// SAFETY: used with the lock of the interpreter alone, and never while it is released.
unsafe impl Sync for Kept {}
// SAFETY: as above.
unsafe impl Send for Kept {}

static KEPT: OnceLock<Kept> = OnceLock::new();

fn kept() -> &'static RefCell<Entries> {
    &KEPT.get_or_init(|| Kept(RefCell::default())).0
}

/// Hash of a key with shapes and dtypes; `None` for a key without a hash.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn hash(py: &Symbols, key: *mut Object, described: &[Described]) -> Option<u64> {
    // SAFETY: as the caller promises.
    let own = unsafe { (py.py_object_hash)(key) };
    if own == -1 {
        // SAFETY: as above: the exception says that there is none.
        unsafe { (py.py_err_clear)() };
        return None;
    }
    // As in the hash function of Firefox; the upper bits of the product are the better ones.
    let mix = |hash: u64, x: u64| (hash.rotate_left(5) ^ x).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut hash = own as u64;
    for x in described {
        hash = mix(hash, x.dtype as u64);
        hash = x.shape.iter().fold(hash, |hash, &n| mix(hash, n as u64));
    }
    Some(hash.rotate_left(32))
}

fn fits(entry: &Entry, described: &[Described]) -> bool {
    let same =
        |(x, (dtype, shape)): (&Described, &(DType, Dims))| x.dtype == *dtype && x.shape == *shape;
    entry.operands.len() == described.len() && described.iter().zip(&entry.operands).all(same)
}

/// The entry of a key.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn entry<'a>(
    py: &Symbols,
    kept: &'a Entries,
    hash: u64,
    key: *mut Object,
    described: &[Described],
) -> Option<&'a Entry> {
    let same = |entry: &&Entry| {
        // SAFETY: as the caller promises. Keys are tuples of strings and numbers: comparing them runs no code of others.
        fits(entry, described)
            && unsafe { (py.py_object_rich_compare_bool)(entry.key, key, EQUAL) } == 1
    };
    kept.get(&hash)?.iter().find(same)
}

/// The operation of a key. Its owner has one more reference.
///
/// # Safety
/// With the lock of the interpreter.
pub(super) unsafe fn look(
    py: &Symbols,
    key: *mut Object,
    described: &[Described],
) -> Option<Found> {
    // SAFETY: as the caller promises.
    unsafe {
        let hash = hash(py, key, described)?;
        let kept = kept().try_borrow().ok()?;
        let found = entry(py, &kept, hash, key, described)?.found;
        (py.py_inc_ref)(found.owner);
        Some(found)
    }
}

/// True if the operation accepts the operands, so that calls need no further checks.
///
/// # Safety
/// The handle is valid.
unsafe fn accepts(described: &[Described], found: Found) -> bool {
    let mut metas: Vec<Meta> =
        described.iter().map(|x| Meta { shape: x.shape.to_vec(), dtype: x.dtype }).collect();
    if let (true, Some(first)) = (found.number, metas.first_mut()) {
        first.shape.insert(0, 1);
    }
    // SAFETY: as the caller promises.
    let op = unsafe { of(found.op) };
    op.is_ok_and(|op| op.returns(&parts::split_metas(&metas)).is_ok())
}

/// Keeps an operation, if it accepts the operands and there is none for the key.
///
/// # Safety
/// With the lock of the interpreter; the handle is valid as long as its owner lives.
pub(super) unsafe fn keep(
    py: &Symbols,
    key: *mut Object,
    described: Vec<Described>,
    found: Found,
) -> Option<()> {
    // SAFETY: as the caller promises.
    unsafe {
        let hash = hash(py, key, &described)?;
        let known = entry(py, &*kept().try_borrow().ok()?, hash, key, &described).is_some();
        if known || !accepts(&described, found) {
            return None;
        }
        let operands = described.into_iter().map(|x| (x.dtype, x.shape)).collect();
        let mut kept = kept().try_borrow_mut().ok()?;
        (py.py_inc_ref)(key);
        (py.py_inc_ref)(found.owner);
        let full = kept.len() >= CAPACITY;
        let old = if full { std::mem::take(&mut *kept) } else { Entries::default() };
        kept.entry(hash).or_default().push(Entry { key, operands, found });
        drop(kept);
        // Without the borrow: releasing an object may run code.
        for entry in old.into_values().flatten() {
            (py.py_dec_ref)(entry.key);
            (py.py_dec_ref)(entry.found.owner);
        }
    }
    Some(())
}
