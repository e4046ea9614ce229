//! Calls from CPython without objects of `ctypes` for each tensor: built-in functions of its interpreter, made with its
//! C functions. The package sends their addresses ([`Symbols`]), so that the library links to no Python.
//!
//! ```text
//! run(op, kind, operands)                    list of results
//! find(key, kind, operands)                  result of the operation kept for the key, shapes and dtypes
//! keep(key, operands, op, owner, is_number)  keeps an operation with one result; `owner` holds its handle
//! exchange(types, describe, object)          C functions of a framework for DLPack (`DLPackExchangeAPI`)
//! ```
//!
//! `kind` 0 returns arrays of NumPy, 1 tensors of the framework. Operands are arrays of NumPy, whose structs are read as every
//! extension does that is compiled for NumPy 2, or tensors of the framework. Functions return an integer, the
//! address of an error object, if the operation fails, and `None` for operands that only `__dlpack__` describes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;

use t4a_operations::AnyOperation;
use t4a_tensor::{AnyTensor, DType};

use crate::dlpack::{self, Described, DlTensor, Managed};
use crate::error::{Failure, Status, object_of, protected};
use crate::op::{Op, of};
use crate::run::results;

/// An object of Python.
type Object = c_void;
type Arguments = *const *mut Object;
type Method = unsafe extern "C" fn(*mut Object, Arguments, isize) -> *mut Object;

/// `PyMethodDef`.
#[repr(C)]
pub struct MethodDef {
    name: *const c_char,
    method: Method,
    flags: c_int,
    text: *const c_char,
}

// SAFETY: pointers to constants.
unsafe impl Sync for MethodDef {}

/// `METH_FASTCALL`.
const FASTCALL: c_int = 0x80;
/// `Py_EQ`.
const EQUAL: c_int = 2;
/// `NPY_ARRAY_CARRAY`: row-major, aligned, writeable.
const CARRAY: c_int = 0x501;
/// Results up to this many bytes are copied into memory of NumPy, which costs less than an owner.
const SMALL: usize = 4096;
/// Operations that are kept for [`find`].
const CAPACITY: usize = 4096;

/// Addresses in the interpreter and in NumPy.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Symbols {
    /// `sizeof` of the struct.
    size: usize,
    none: *mut Object,
    array_type: *mut Object,
    py_cfunction_new_ex:
        unsafe extern "C" fn(*const MethodDef, *mut Object, *mut Object) -> *mut Object,
    py_long_from_void_ptr: unsafe extern "C" fn(*mut c_void) -> *mut Object,
    py_long_as_void_ptr: unsafe extern "C" fn(*mut Object) -> *mut c_void,
    py_list_new: unsafe extern "C" fn(isize) -> *mut Object,
    py_list_set_item: unsafe extern "C" fn(*mut Object, isize, *mut Object) -> c_int,
    py_tuple_size: unsafe extern "C" fn(*mut Object) -> isize,
    py_tuple_get_item: unsafe extern "C" fn(*mut Object, isize) -> *mut Object,
    py_object_hash: unsafe extern "C" fn(*mut Object) -> isize,
    py_object_rich_compare_bool: unsafe extern "C" fn(*mut Object, *mut Object, c_int) -> c_int,
    py_inc_ref: unsafe extern "C" fn(*mut Object),
    py_dec_ref: unsafe extern "C" fn(*mut Object),
    py_eval_save_thread: unsafe extern "C" fn() -> *mut c_void,
    py_eval_restore_thread: unsafe extern "C" fn(*mut c_void),
    py_capsule_new: unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        unsafe extern "C" fn(*mut Object),
    ) -> *mut Object,
    py_capsule_get_pointer: unsafe extern "C" fn(*mut Object, *const c_char) -> *mut c_void,
    py_err_clear: unsafe extern "C" fn(),
    #[allow(clippy::type_complexity)]
    py_array_new: unsafe extern "C" fn(
        *mut Object,
        c_int,
        *const isize,
        c_int,
        *const isize,
        *mut c_void,
        c_int,
        c_int,
        *mut Object,
    ) -> *mut Object,
    py_array_set_base_object: unsafe extern "C" fn(*mut Object, *mut Object) -> c_int,
}

// SAFETY: addresses of functions and of objects that live as long as the interpreter.
unsafe impl Send for Symbols {}
// SAFETY: as above.
unsafe impl Sync for Symbols {}

static SYMBOLS: OnceLock<Symbols> = OnceLock::new();

/// Functions of a framework with the lock of the interpreter.
#[derive(Clone, Copy)]
struct Exchange {
    /// Types of tensors, without subclasses.
    types: [usize; 2],
    describe: Describe,
    object: ToObject,
}

type Describe = unsafe extern "C" fn(*mut Object, *mut DlTensor) -> c_int;
type ToObject = unsafe extern "C" fn(*mut Managed, *mut *mut Object) -> c_int;

static EXCHANGE: OnceLock<Exchange> = OnceLock::new();

/// The beginning of every object.
#[repr(C)]
struct Head {
    count: isize,
    kind: *mut Object,
}

/// `PyArrayObject_fields`.
#[repr(C)]
struct Array {
    head: Head,
    data: *mut u8,
    rank: c_int,
    dims: *const isize,
    strides: *const isize,
    base: *mut Object,
    descr: *const Descr,
}

/// The beginning of `PyArray_Descr`.
#[repr(C)]
struct Descr {
    head: Head,
    scalar: *mut Object,
    kind: u8,
    letter: u8,
    order: u8,
    flags: u8,
    number: c_int,
}

/// Numbers of types of NumPy; `long` has 64 bits where pointers have, but on Windows.
const TYPES: [(DType, c_int); 14] = [
    (DType::Bool, 0),
    (DType::I8, 1),
    (DType::U8, 2),
    (DType::I16, 3),
    (DType::U16, 4),
    (DType::I32, 5),
    (DType::U32, 6),
    (DType::I64, if cfg!(windows) { 9 } else { 7 }),
    (DType::U64, if cfg!(windows) { 10 } else { 8 }),
    (DType::F32, 11),
    (DType::F64, 12),
    (DType::C32, 14),
    (DType::C64, 15),
    (DType::F16, 23),
];

/// An array of NumPy; `None` for dtypes and strides that the engine does not have.
///
/// # Safety
/// `x` is an object of the type `ndarray`.
unsafe fn array(
    x: *mut Object,
    what: std::fmt::Arguments<'_>,
) -> Option<Result<Described, Failure>> {
    // SAFETY: as the caller promises; NumPy keeps as many dims and strides as axes.
    unsafe {
        let x = &*x.cast::<Array>();
        let descr = &*x.descr;
        let &(dtype, _) = TYPES.iter().find(|&&(_, number)| number == descr.number)?;
        let swapped = if cfg!(target_endian = "little") { b'>' } else { b'<' };
        if descr.order == swapped {
            return None;
        }
        let rank = usize::try_from(x.rank).ok().filter(|&rank| rank <= dlpack::MAX_RANK)?;
        let size = dtype.size() as isize;
        let (mut dims, mut strides) = ([0i64; dlpack::MAX_RANK], [0i64; dlpack::MAX_RANK]);
        for axis in 0..rank {
            let stride = *x.strides.add(axis);
            if stride % size != 0 {
                return None;
            }
            (dims[axis], strides[axis]) = (*x.dims.add(axis) as i64, (stride / size) as i64);
        }
        Some(Described::new(dtype, &dims[..rank], Some(&strides[..rank]), x.data, what))
    }
}

/// An operand; `None` for one that is neither an array of NumPy nor a tensor of the framework.
///
/// # Safety
/// With the lock of the interpreter; `x` is an object.
unsafe fn operand(py: &Symbols, x: *mut Object, i: usize) -> Option<Result<Described, Failure>> {
    let what = format_args!("operand {i}");
    // SAFETY: every object begins with this.
    let kind = unsafe { (*x.cast::<Head>()).kind };
    if kind == py.array_type {
        // SAFETY: of this type.
        return unsafe { array(x, what) };
    }
    let exchange = EXCHANGE.get()?;
    if !exchange.types.contains(&(kind as usize)) {
        return None;
    }
    let mut described = std::mem::MaybeUninit::<DlTensor>::zeroed();
    // SAFETY: the function of this type; it fills the struct in, or leaves an exception.
    unsafe {
        if (exchange.describe)(x, described.as_mut_ptr()) != 0 {
            (py.py_err_clear)();
            return None;
        }
        Some(Described::read(described.as_ptr(), what))
    }
}

/// The operands of a tuple.
///
/// # Safety
/// With the lock of the interpreter; `tuple` is one.
unsafe fn operands(py: &Symbols, tuple: *mut Object) -> Option<Result<Vec<Described>, Failure>> {
    // SAFETY: as the caller promises.
    let count = unsafe { (py.py_tuple_size)(tuple) };
    let mut all = Vec::with_capacity(count.max(0) as usize);
    for i in 0..count {
        // SAFETY: an item of the tuple, which the caller holds.
        match unsafe { operand(py, (py.py_tuple_get_item)(tuple, i), i as usize) }? {
            Ok(x) => all.push(x),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(all))
}

const OWNER: &CStr = c"t4a";

/// Releases what a capsule owns.
unsafe extern "C" fn release(capsule: *mut Object) {
    let Some(py) = SYMBOLS.get() else { return };
    // SAFETY: a capsule that `new_array` made.
    unsafe {
        let owned = (py.py_capsule_get_pointer)(capsule, OWNER.as_ptr()).cast::<AnyTensor>();
        if !owned.is_null() {
            drop(Box::from_raw(owned));
        }
    }
}

/// An array of NumPy that owns its memory, or holds the tensor; null with an exception.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn new_array(py: &Symbols, x: AnyTensor, number: c_int) -> *mut Object {
    let dims: Vec<isize> = x.shape().iter().map(|&n| n as isize).collect();
    let bytes = x.shape().iter().product::<usize>() * x.dtype().size();
    let from = x.buffer().as_ptr().wrapping_add(x.layout().offset() * x.dtype().size());
    let rank = dims.len() as c_int;
    let new = |data: *mut c_void, flags| {
        // SAFETY: the function of NumPy, with as many sizes as axes.
        unsafe {
            (py.py_array_new)(
                py.array_type,
                rank,
                dims.as_ptr(),
                number,
                null(),
                data,
                0,
                flags,
                null_mut(),
            )
        }
    };
    if bytes <= SMALL {
        let array = new(null_mut(), 0);
        if !array.is_null() && bytes > 0 {
            // SAFETY: both have that many bytes.
            unsafe { std::ptr::copy_nonoverlapping(from, (*array.cast::<Array>()).data, bytes) };
        }
        return array;
    }
    let array = new(from.cast_mut().cast(), CARRAY);
    if array.is_null() {
        return array;
    }
    let owned = Box::into_raw(Box::new(x));
    // SAFETY: the functions of the interpreter; the array takes the capsule over.
    unsafe {
        let capsule = (py.py_capsule_new)(owned.cast(), OWNER.as_ptr(), release);
        if capsule.is_null() {
            drop(Box::from_raw(owned));
        } else if (py.py_array_set_base_object)(array, capsule) == 0 {
            return array;
        }
        (py.py_dec_ref)(array);
    }
    null_mut()
}

/// Result of a call: an object, or null if an exception of Python is set.
type Returned = Result<*mut Object, Failure>;

/// An object for a result.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn made(py: &Symbols, kind: usize, x: AnyTensor) -> Returned {
    if kind == 0 {
        let known = TYPES.iter().find(|&&(dtype, _)| dtype == x.dtype());
        let &(_, number) = known.ok_or_else(|| {
            Failure::new(Status::Dtype, format!("NumPy has no arrays of {}", x.dtype().name()))
        })?;
        // SAFETY: as the caller promises.
        return Ok(unsafe { new_array(py, x, number) });
    }
    let exchange = EXCHANGE.get().ok_or_else(|| Failure::argument("there is no such framework"))?;
    let managed = dlpack::give(x, 0)?;
    let mut object = null_mut();
    // SAFETY: the function of the framework; it takes the tensor over, or leaves an exception.
    match unsafe { (exchange.object)(managed.as_ptr(), &raw mut object) } {
        0 => Ok(object),
        _ => Ok(null_mut()),
    }
}

/// Results of an operation on memory that is lent. Without the lock of the interpreter.
fn run_unlocked(
    py: &Symbols,
    op: &AnyOperation,
    described: Vec<Described>,
    number: bool,
) -> Result<Vec<AnyTensor>, Failure> {
    // SAFETY: with the lock, which is taken again below whatever happens.
    let state = unsafe { (py.py_eval_save_thread)() };
    let all = protected(|| {
        let mut described = described;
        if let (true, Some(first)) = (number, described.first_mut()) {
            first.insert_axis();
        }
        // SAFETY: the caller holds the operands.
        let all = unsafe { results(op, described) }?;
        match number {
            false => Ok(all),
            true => all.into_iter().map(|x| Ok(x.reshape(&x.shape()[1..])?)).collect(),
        }
    });
    // SAFETY: the state of above.
    unsafe { (py.py_eval_restore_thread)(state) };
    all
}

/// An object for Python: that of the result, the address of an error, or `None`.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn answer(py: &Symbols, given: Option<Returned>) -> *mut Object {
    match given {
        Some(Ok(object)) => object,
        // SAFETY: the function of the interpreter.
        Some(Err(failure)) => unsafe { (py.py_long_from_void_ptr)(object_of(failure).cast()) },
        // SAFETY: an object that lives as long as the interpreter.
        None => unsafe {
            (py.py_inc_ref)(py.none);
            py.none
        },
    }
}

/// Arguments of a call.
///
/// # Safety
/// `from` is valid for `count` objects.
unsafe fn arguments<'a, const N: usize>(
    from: Arguments,
    count: isize,
) -> Option<&'a [*mut Object; N]> {
    // SAFETY: as the caller promises.
    (count == N as isize).then(|| unsafe { &*from.cast::<[*mut Object; N]>() })
}

unsafe extern "C" fn run(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    let call = || -> Option<Returned> {
        // SAFETY: called by the interpreter with its lock; the package sends a handle.
        unsafe {
            let &[op, kind, tuple] = arguments::<3>(from, count)?;
            let op = (py.py_long_as_void_ptr)(op).cast::<Op>().cast_const();
            let kind = (py.py_long_as_void_ptr)(kind) as usize;
            let described = operands(py, tuple)?;
            let all = described.and_then(|x| run_unlocked(py, of(op)?, x, false));
            Some(all.and_then(|all| list(py, kind, all)))
        }
    };
    // SAFETY: with the lock.
    unsafe { answer(py, call()) }
}

/// A list of results.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn list(py: &Symbols, kind: usize, all: Vec<AnyTensor>) -> Returned {
    // SAFETY: as the caller promises; the list takes each object over.
    unsafe {
        let list = (py.py_list_new)(all.len() as isize);
        for (i, x) in all.into_iter().enumerate() {
            let object = made(py, kind, x);
            match object {
                Ok(object) if !list.is_null() && !object.is_null() => {
                    (py.py_list_set_item)(list, i as isize, object);
                }
                other => {
                    if !list.is_null() {
                        (py.py_dec_ref)(list);
                    }
                    return other.map(|_| null_mut());
                }
            }
        }
        Ok(list)
    }
}

/// An operation for a key of Python, and for these shapes and dtypes.
struct Entry {
    key: *mut Object,
    owner: *mut Object,
    shapes: Vec<(DType, Vec<usize>)>,
    op: *const Op,
    number: bool,
}

/// Guarded by the lock of the interpreter.
struct Known(RefCell<HashMap<u64, Vec<Entry>>>);

// SAFETY: used with the lock of the interpreter alone, and never while it is released.
unsafe impl Sync for Known {}
// SAFETY: as above.
unsafe impl Send for Known {}

static KNOWN: OnceLock<Known> = OnceLock::new();

fn known() -> &'static RefCell<HashMap<u64, Vec<Entry>>> {
    &KNOWN.get_or_init(|| Known(RefCell::default())).0
}

/// The hash of a key with shapes and dtypes; `None` for a key without a hash.
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
    let mut hasher = DefaultHasher::new();
    own.hash(&mut hasher);
    described.iter().for_each(|x| (x.dtype as u32, &x.shape).hash(&mut hasher));
    Some(hasher.finish())
}

fn fits(entry: &Entry, described: &[Described]) -> bool {
    let same = |(x, (dtype, shape)): (&Described, &(DType, Vec<usize>))| {
        x.dtype == *dtype && x.shape[..] == shape[..]
    };
    entry.shapes.len() == described.len() && described.iter().zip(&entry.shapes).all(same)
}

/// The operation of a key: its handle, and whether it has an axis in front. Its owner has one more reference.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn look(
    py: &Symbols,
    key: *mut Object,
    described: &[Described],
) -> Option<(*const Op, bool, *mut Object)> {
    // SAFETY: as the caller promises. Keys are tuples of strings and numbers: comparing them runs no code of others.
    unsafe {
        let hash = hash(py, key, described)?;
        let known = known().try_borrow().ok()?;
        let same = |entry: &&Entry| {
            fits(entry, described) && (py.py_object_rich_compare_bool)(entry.key, key, EQUAL) == 1
        };
        let entry = known.get(&hash)?.iter().find(same)?;
        (py.py_inc_ref)(entry.owner);
        Some((entry.op, entry.number, entry.owner))
    }
}

unsafe extern "C" fn find(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    let call = || -> Option<Returned> {
        // SAFETY: called by the interpreter with its lock.
        unsafe {
            let &[key, kind, tuple] = arguments::<3>(from, count)?;
            let kind = (py.py_long_as_void_ptr)(kind) as usize;
            let described = operands(py, tuple)?.ok()?;
            let (op, number, owner) = look(py, key, &described)?;
            let all = of(op).and_then(|op| run_unlocked(py, op, described, number));
            (py.py_dec_ref)(owner);
            Some(all.and_then(|mut all| match all.pop() {
                Some(x) if all.is_empty() => made(py, kind, x),
                _ => Err(Failure::argument("an operation with one result is required")),
            }))
        }
    };
    // SAFETY: with the lock.
    unsafe { answer(py, call()) }
}

unsafe extern "C" fn keep(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    let call = || -> Option<()> {
        // SAFETY: called by the interpreter with its lock.
        unsafe {
            let &[key, tuple, op, owner, number] = arguments::<5>(from, count)?;
            let described = operands(py, tuple)?.ok()?;
            let hash = hash(py, key, &described)?;
            let op = (py.py_long_as_void_ptr)(op).cast::<Op>().cast_const();
            let number = !(py.py_long_as_void_ptr)(number).is_null();
            let shapes = described.into_iter().map(|x| (x.dtype, x.shape)).collect();
            let entry = Entry { key, owner, shapes, op, number };
            (py.py_inc_ref)(key);
            (py.py_inc_ref)(owner);
            let mut known = known().try_borrow_mut().ok()?;
            let full = known.len() >= CAPACITY;
            let old = if full { std::mem::take(&mut *known) } else { HashMap::new() };
            known.entry(hash).or_default().push(entry);
            drop(known);
            // Without the borrow: releasing an object may run code.
            for entry in old.into_values().flatten() {
                (py.py_dec_ref)(entry.key);
                (py.py_dec_ref)(entry.owner);
            }
        }
        Some(())
    };
    call();
    // SAFETY: with the lock.
    unsafe { answer(py, None) }
}

unsafe extern "C" fn exchange(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    // SAFETY: called by the interpreter with its lock; the package sends addresses of such functions.
    unsafe {
        if let Some(all) = arguments::<4>(from, count) {
            let [tensor, parameter, describe, object] = all.map(|x| (py.py_long_as_void_ptr)(x));
            if !describe.is_null() && !object.is_null() {
                let types = [tensor as usize, parameter as usize];
                let (describe, object) = (
                    std::mem::transmute::<*mut c_void, Describe>(describe),
                    std::mem::transmute::<*mut c_void, ToObject>(object),
                );
                let _ = EXCHANGE.set(Exchange { types, describe, object });
            }
        }
        answer(py, None)
    }
}

static METHODS: [MethodDef; 4] = [
    MethodDef { name: c"run".as_ptr(), method: run, flags: FASTCALL, text: null() },
    MethodDef { name: c"find".as_ptr(), method: find, flags: FASTCALL, text: null() },
    MethodDef { name: c"keep".as_ptr(), method: keep, flags: FASTCALL, text: null() },
    MethodDef { name: c"exchange".as_ptr(), method: exchange, flags: FASTCALL, text: null() },
];

/// A list of the built-in functions `run`, `find`, `keep` and `exchange` for the package of Python; null for another
/// version of the struct. To be called with the lock of the interpreter (`ctypes.PyDLL`).
///
/// # Safety
/// `symbols` is null, or valid with addresses of a CPython with a lock and of NumPy 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_python(symbols: *const Symbols) -> *mut Object {
    // SAFETY: as the caller promises.
    let Some(given) = NonNull::new(symbols.cast_mut()) else { return null_mut() };
    // SAFETY: as above: every version of the struct begins with its size.
    let size = unsafe { (*given.as_ptr().cast::<usize>()).to_owned() };
    if size < size_of::<Symbols>() {
        return null_mut();
    }
    // SAFETY: as above.
    let py = SYMBOLS.get_or_init(|| unsafe { *given.as_ptr() });
    // SAFETY: functions of the interpreter, with its lock.
    unsafe {
        let list = (py.py_list_new)(METHODS.len() as isize);
        for (i, method) in METHODS.iter().enumerate() {
            let function = (py.py_cfunction_new_ex)(method, null_mut(), null_mut());
            if list.is_null() || function.is_null() {
                return null_mut();
            }
            (py.py_list_set_item)(list, i as isize, function);
        }
        list
    }
}
