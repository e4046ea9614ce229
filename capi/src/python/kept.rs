//! Operations that are kept for plans of Python with their options, shapes and dtypes, so that a call finds its operation
//! without Python.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::OnceLock;

use t4a_diff::Meta;
use t4a_tensor::layout::{Dims, Layout};
use t4a_tensor::{AnyTensor, DType};

use super::symbols::{Object, SYMBOLS, Symbols, type_of};
use crate::described::Described;
use crate::error::Failure;
use crate::op::{Op, of};
use crate::parts;
use crate::run::row_major;

/// Maximum number of operations.
const CAPACITY: usize = 4096;

/// A kept operation: its owner, and the axes of size 1 by which its operands and results differ from those of a call.
pub(super) struct KeptCall {
    /// Valid as long as the owner lives.
    pub(super) op: *const Op,
    /// Object of Python that holds the handle of the operation.
    pub(super) owner: *mut Object,
    /// A call returns one result instead of a tuple.
    pub(super) single: bool,
    /// An operand, and its axis of size 1 that the operation has in addition.
    pub(super) insert: Option<(usize, usize)>,
    /// Results, and their axes of size 1 that a call does not return, in this order; negative ones from the end.
    pub(super) drop: Vec<(usize, isize)>,
    /// Row-major layouts of the operands of the operation; set by [`keep`].
    pub(super) layouts: Vec<Layout>,
}

impl KeptCall {
    /// Inserts the axis of the operand.
    pub(super) fn enter(&self, described: &mut [Described]) {
        if let Some((operand, axis)) = self.insert
            && let Some(x) = described.get_mut(operand)
        {
            x.insert_axis(axis);
        }
    }

    /// Drops the axes of the results.
    pub(super) fn leave(&self, all: &mut [AnyTensor]) -> Result<(), Failure> {
        for &(result, axis) in &self.drop {
            let mut shape: Dims = all[result].shape().into();
            // `accepted` has checked the axes.
            shape.remove(place(axis, shape.len()));
            all[result] = all[result].reshape(&shape)?;
        }
        Ok(())
    }
}

impl Drop for KeptCall {
    fn drop(&mut self) {
        if let Some(py) = SYMBOLS.get() {
            // SAFETY: kept calls are created and dropped with the lock of the interpreter.
            unsafe { (py.py_dec_ref)(self.owner) };
        }
    }
}

/// Axis of a rank.
fn place(axis: isize, rank: usize) -> usize {
    if axis < 0 { rank.wrapping_add_signed(axis) } else { axis.unsigned_abs() }
}

/// A plan of Python with its options.
#[derive(Clone, Copy)]
pub(super) struct KeptKey<'a> {
    pub(super) plan: *mut Object,
    pub(super) options: &'a [*mut Object],
}

struct Entry {
    plan: *mut Object,
    options: Vec<*mut Object>,
    operands: Vec<(DType, Dims)>,
    call: Rc<KeptCall>,
}

/// Hashes are computed by [`KeptKey::hash`].
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

impl KeptKey<'_> {
    /// Hash with shapes and dtypes; `None` for options without a hash.
    ///
    /// # Safety
    /// With the lock of the interpreter.
    unsafe fn hash(&self, py: &Symbols, described: &[Described]) -> Option<u64> {
        // As in the hash function of Firefox; the upper bits of the product are the better ones.
        let mix = |hash: u64, x: u64| (hash.rotate_left(5) ^ x).wrapping_mul(0x517c_c1b7_2722_0a95);
        let mut hash = mix(0, self.plan.addr() as u64);
        for &option in self.options {
            // SAFETY: as the caller promises.
            let own = unsafe { py.hash(option) };
            if own == -1 {
                // SAFETY: as above: the exception says that there is none.
                unsafe { (py.py_err_clear)() };
                return None;
            }
            hash = mix(hash, own as u64);
        }
        for x in described {
            hash = mix(hash, x.dtype as u64);
            hash = x.shape.iter().fold(hash, |hash, &n| mix(hash, n as u64));
        }
        Some(hash.rotate_left(32))
    }

    /// True for the same plan and equal options of the same types.
    ///
    /// # Safety
    /// With the lock of the interpreter.
    unsafe fn is_of(&self, py: &Symbols, entry: &Entry) -> bool {
        // SAFETY: as the caller promises; an exception of a comparison is discarded.
        let same = |(&a, &b): (&*mut Object, &*mut Object)| unsafe {
            let equal = || py.equal(a, b);
            let found = a == b || (type_of(a) == type_of(b) && equal() == 1);
            if !found {
                (py.py_err_clear)();
            }
            found
        };
        self.plan == entry.plan
            && self.options.len() == entry.options.len()
            && self.options.iter().zip(&entry.options).all(same)
    }
}

fn fits(entry: &Entry, described: &[Described]) -> bool {
    let same =
        |(x, (dtype, shape)): (&Described, &(DType, Dims))| x.dtype == *dtype && x.shape == *shape;
    entry.operands.len() == described.len() && described.iter().zip(&entry.operands).all(same)
}

/// The kept call of a key.
///
/// # Safety
/// With the lock of the interpreter.
pub(super) unsafe fn look(
    py: &Symbols,
    key: KeptKey<'_>,
    described: &[Described],
) -> Option<Rc<KeptCall>> {
    // SAFETY: as the caller promises. A comparison may run code of a caller, which finds the entries borrowed.
    unsafe {
        let hash = key.hash(py, described)?;
        let kept = kept().try_borrow().ok()?;
        let all = kept.get(&hash)?;
        let found = all.iter().find(|entry| fits(entry, described) && key.is_of(py, entry))?;
        Some(found.call.clone())
    }
}

/// Row-major layouts of the operands of the operation, if it accepts them, so that calls need no further checks, and if the
/// dropped axes have size 1.
///
/// # Safety
/// The handle is valid.
unsafe fn accepted(described: &[Described], call: &KeptCall) -> Option<Vec<Layout>> {
    let meta = |x: &Described| Meta { shape: x.shape.to_vec(), dtype: x.dtype };
    let mut metas: Vec<Meta> = described.iter().map(meta).collect();
    if let Some((operand, axis)) = call.insert {
        metas.get_mut(operand).filter(|x| axis <= x.shape.len())?.shape.insert(axis, 1);
    }
    // SAFETY: as the caller promises.
    let op = unsafe { of(call.op) }.ok()?;
    let mut results = parts::join_metas(op, &op.returns(&parts::split_metas(&metas)).ok()?).ok()?;
    if call.single && results.len() != 1 {
        return None;
    }
    for &(result, axis) in &call.drop {
        let shape = &mut results.get_mut(result)?.shape;
        let axis = place(axis, shape.len());
        (shape.get(axis) == Some(&1)).then(|| shape.remove(axis))?;
    }
    row_major(metas.iter().map(|x| (x.dtype, &x.shape[..]))).ok()
}

/// Keeps a call, if its operation accepts the operands and there is none for the key.
///
/// # Safety
/// With the lock of the interpreter.
pub(super) unsafe fn keep(
    py: &Symbols,
    key: KeptKey<'_>,
    described: Vec<Described>,
    mut call: KeptCall,
) -> Option<()> {
    // SAFETY: as the caller promises.
    unsafe {
        if look(py, key, &described).is_some() {
            return None;
        }
        call.layouts = accepted(&described, &call)?;
        let hash = key.hash(py, &described)?;
        let operands = described.into_iter().map(|x| (x.dtype, x.shape)).collect();
        let mut kept = kept().try_borrow_mut().ok()?;
        let (plan, options) = (key.plan, key.options.to_vec());
        options.iter().chain([&plan]).for_each(|&x| (py.py_inc_ref)(x));
        let full = kept.len() >= CAPACITY;
        let old = if full { std::mem::take(&mut *kept) } else { Entries::default() };
        let entry = Entry { plan, options, operands, call: Rc::new(call) };
        kept.entry(hash).or_default().push(entry);
        drop(kept);
        // Without the borrow: releasing an object may run code.
        for entry in old.into_values().flatten() {
            entry.options.iter().chain([&entry.plan]).for_each(|&x| (py.py_dec_ref)(x));
        }
    }
    Some(())
}
