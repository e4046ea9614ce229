//! Calls from CPython without objects of `ctypes` for each tensor: built-in functions of its interpreter, made with its
//! C functions. The package sends their addresses ([`Symbols`]), so that the library links to no Python.
//!
//! ```text
//! run(op, kind, operands)                    list of results
//! find(key, kind, operands)                  result of the operation kept for the key, shapes and dtypes
//! keep(key, operands, op, owner, is_number)  keeps an operation with one result; `owner` holds its handle
//! exchange(types, describe, object, guards)  C functions of PyTorch for DLPack (`DLPackExchangeAPI`), and its state
//! ```
//!
//! | file | |
//! |---|---|
//! | `symbols` | functions of the interpreter and of NumPy |
//! | `arrays` | arrays of NumPy |
//! | `torch` | tensors of PyTorch |
//! | `kept` | operations that are kept by key, shapes and dtypes |
//!
//! `kind` 0 returns arrays of NumPy, 1 tensors of PyTorch. Operands are arrays of NumPy, whose structs are read as every
//! extension does that is compiled for NumPy 2, or tensors of PyTorch. Functions return `None` for operands that only
//! `__dlpack__` describes, and `find` also where PyTorch has to record or to transform the call. An operation that fails
//! raises the exception of its error object.

mod arrays;
mod kept;
mod symbols;
mod torch;

use std::ffi::c_void;
use std::ptr::{NonNull, null, null_mut};

use t4a_operations::AnyOperation;
use t4a_tensor::AnyTensor;

use crate::described::Described;
use crate::error::{Failure, object_of, protected};
use crate::op::{Op, of};
use crate::run::{Checks, results};
use symbols::{Arguments, FASTCALL, MethodDef, Object, SYMBOLS, type_of};

pub use symbols::Symbols;

/// Kind of the results of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    NumPy,
    Torch,
}

impl Kind {
    /// # Safety
    /// With the lock of the interpreter; `given` is an object.
    unsafe fn of(py: &Symbols, given: *mut Object) -> Self {
        // SAFETY: as the caller promises.
        match unsafe { (py.py_long_as_void_ptr)(given) }.is_null() {
            true => Kind::NumPy,
            false => Kind::Torch,
        }
    }
}

/// An operand; `None` for one that is neither an array of NumPy nor a tensor of PyTorch with its values in memory.
///
/// # Safety
/// With the lock of the interpreter; `x` is an object.
unsafe fn operand(py: &Symbols, x: *mut Object, i: usize) -> Option<Result<Described, Failure>> {
    let what = format_args!("operand {i}");
    // SAFETY: as the caller promises; an array is of this type.
    unsafe {
        match type_of(x) == py.array_type {
            true => arrays::describe(x, what),
            false => torch::describe(py, x, what),
        }
    }
}

/// The operands of a tuple.
///
/// # Safety
/// With the lock of the interpreter; `tuple` is one.
unsafe fn operands(py: &Symbols, tuple: *mut Object) -> Option<Result<Vec<Described>, Failure>> {
    // SAFETY: as the caller promises.
    let count = unsafe { (py.py_tuple_size)(tuple) };
    if count < 0 {
        // SAFETY: as above: the exception says that it is no tuple.
        unsafe { (py.py_err_clear)() };
        return None;
    }
    let mut all = Vec::with_capacity(count as usize);
    for i in 0..count {
        // SAFETY: an item of the tuple, which the caller holds.
        match unsafe { operand(py, (py.py_tuple_get_item)(tuple, i), i as usize) }? {
            Ok(x) => all.push(x),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(all))
}

/// Result of a call: an object, or null if an exception of Python is set.
type Returned = Result<*mut Object, Failure>;

/// An object for a result.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn made(py: &Symbols, kind: Kind, x: AnyTensor) -> Returned {
    // SAFETY: as the caller promises.
    unsafe {
        match kind {
            Kind::NumPy => arrays::new(py, x),
            Kind::Torch => torch::new(x),
        }
    }
}

/// Results of an operation on memory that is lent. Without the lock of the interpreter.
///
/// # Safety
/// With the lock; the memory is valid during the call.
unsafe fn run_unlocked(
    py: &Symbols,
    op: &AnyOperation,
    described: &[Described],
    checks: Checks,
    kind: Kind,
) -> Result<Vec<AnyTensor>, Failure> {
    // Arrays of NumPy of this size are copies of the result.
    let copied = if kind == Kind::NumPy { arrays::SMALL } else { 0 };
    // SAFETY: with the lock, which is taken again below whatever happens.
    let state = unsafe { (py.py_eval_save_thread)() };
    // SAFETY: the caller holds the operands.
    let all = protected(|| unsafe { results(op, described, checks, copied) });
    // SAFETY: the state of above.
    unsafe { (py.py_eval_restore_thread)(state) };
    all
}

/// Return value of a built-in function: the object of the result, null with an exception, or `None`.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn answer(py: &Symbols, given: Option<Returned>) -> *mut Object {
    // SAFETY: functions of the interpreter, and objects that live as long as it does.
    unsafe {
        match given {
            Some(Ok(object)) => object,
            Some(Err(failure)) => {
                let error = (py.py_long_from_void_ptr)(object_of(failure).cast());
                if error.is_null() {
                    return error;
                }
                // The function raises, so that there is no result.
                let none = (py.py_object_vectorcall)(py.raise, &raw const error, 1, null_mut());
                (py.py_dec_ref)(error);
                none
            }
            None => {
                (py.py_inc_ref)(py.none);
                py.none
            }
        }
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
            let kind = Kind::of(py, kind);
            let described = operands(py, tuple)?;
            let all = described.and_then(|x| run_unlocked(py, of(op)?, &x, Checks::All, kind));
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
unsafe fn list(py: &Symbols, kind: Kind, all: Vec<AnyTensor>) -> Returned {
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

unsafe extern "C" fn find(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    let call = || -> Option<Returned> {
        // SAFETY: called by the interpreter with its lock.
        unsafe {
            let &[key, kind, tuple] = arguments::<3>(from, count)?;
            let kind = Kind::of(py, kind);
            if kind == Kind::Torch && !torch::is_plain_call(py, tuple) {
                return None;
            }
            let mut described = operands(py, tuple)?.ok()?;
            let found = kept::look(py, key, &described)?;
            if let (true, Some(first)) = (found.number, described.first_mut()) {
                first.insert_axis();
            }
            let run = |op| run_unlocked(py, op, &described, Checks::Process, kind);
            let all = of(found.op).and_then(run);
            (py.py_dec_ref)(found.owner);
            Some(all.and_then(|mut all| match all.pop() {
                Some(x) if all.is_empty() && found.number => {
                    let x = x.reshape(&x.shape()[1..])?;
                    made(py, kind, x).map(|x| number(py, kind, x))
                }
                Some(x) if all.is_empty() => made(py, kind, x),
                _ => Err(Failure::argument("an operation with one result is required")),
            }))
        }
    };
    // SAFETY: with the lock.
    unsafe { answer(py, call()) }
}

/// A result without axes: a number of NumPy, a tensor of PyTorch.
///
/// # Safety
/// With the lock of the interpreter; `x` is null or a result, which is taken over.
unsafe fn number(py: &Symbols, kind: Kind, x: *mut Object) -> *mut Object {
    match kind {
        // SAFETY: as the caller promises.
        Kind::NumPy if !x.is_null() => unsafe { (py.py_array_return)(x) },
        _ => x,
    }
}

unsafe extern "C" fn keep(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    let call = || -> Option<()> {
        // SAFETY: called by the interpreter with its lock; the package sends a handle and the object that holds it.
        unsafe {
            let &[key, tuple, op, owner, number] = arguments::<5>(from, count)?;
            let described = operands(py, tuple)?.ok()?;
            let op = (py.py_long_as_void_ptr)(op).cast::<Op>().cast_const();
            let number = !(py.py_long_as_void_ptr)(number).is_null();
            kept::keep(py, key, described, kept::Found { op, number, owner })
        }
    };
    call();
    // SAFETY: with the lock.
    unsafe { answer(py, None) }
}

unsafe extern "C" fn exchange(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    // SAFETY: called by the interpreter with its lock; the package sends addresses of such functions, and their objects.
    unsafe {
        if let Some(all) = arguments::<5>(from, count) {
            torch::exchange(py, all);
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
pub unsafe extern "C" fn t4a_python(symbols: *const Symbols) -> *mut c_void {
    // SAFETY: as the caller promises.
    let Some(given) = NonNull::new(symbols.cast_mut()) else { return null_mut() };
    // SAFETY: as above: every version of the struct begins with its size.
    let size = unsafe { (*given.as_ptr().cast::<usize>()).to_owned() };
    if size != size_of::<Symbols>() {
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
