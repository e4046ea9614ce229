//! Calls from CPython without objects of `ctypes` for each tensor: built-in functions of its interpreter, made with its
//! C functions. The package sends their addresses ([`Symbols`]), so that the library links to no Python.
//!
//! ```text
//! run(op, kind, operands)                    list of results
//! caller((kind, plan_and_run, run_recorded)) makes call
//! call(plan, operands, *options)             results of the operation kept for the plan, options, shapes and dtypes
//! keep(plan, options, operands, op, owner, single, operand, axis, drop)   keeps an operation for call
//! exchange(types, describe, object, guards)  C functions of PyTorch for DLPack (`DLPackExchangeAPI`), and its state
//! ```
//!
//! `call` returns plan_and_run(plan, operands, *options), a function of the package, if no operation is kept, and
//! run_recorded(owner, operands) if PyTorch records the call. `owner` is the object that holds the handle.
//!
//! | file | |
//! |---|---|
//! | `symbols` | functions of the interpreter and of NumPy |
//! | `arrays` | arrays of NumPy |
//! | `capsule` | destructor of capsules of exported tensors |
//! | `torch` | tensors of PyTorch |
//! | `kept` | operations that are kept by plan, options, shapes and dtypes |
//!
//! `kind` 0 returns arrays of NumPy, 1 tensors of PyTorch. Operands are arrays of NumPy, whose structs are read as every
//! extension does that is compiled for NumPy 2, or tensors of PyTorch. `run` returns `None` for operands that only
//! `__dlpack__` describes. An operation that fails raises the exception of its error object.

mod arrays;
mod capsule;
mod kept;
mod symbols;
mod torch;

use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null, null_mut};

use t4a_operations::AnyOperation;
use t4a_tensor::AnyTensor;

use crate::described::Described;
use crate::error::{Failure, object_of, protected};
use crate::op::{Op, of};
use crate::run::{Checks, results};
use symbols::{Arguments, FASTCALL, MethodDef, Object, SYMBOLS, type_of};
use torch::TapeState;

pub use capsule::t4a_capsule_destructor;
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
    checks: Checks<'_>,
    kind: Kind,
) -> Result<Vec<AnyTensor>, Failure> {
    // Arrays of NumPy of this size are copies of the result.
    let copied = if kind == Kind::NumPy { arrays::SMALL } else { 0 };
    // SAFETY: with the lock, which is taken again below whatever happens.
    let state = unsafe { (py.py_eval_save_thread)() };
    // SAFETY: the caller holds the operands.
    let all = protected(|| unsafe { results(op, described, checks, copied) });
    // SAFETY: the state of above.
    unsafe { py.lock_again(state) };
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
                let none = py.call(py.raise, &[error]);
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
            Some(all.and_then(|all| {
                let object = |x| made(py, kind, x);
                collected(py, all, object, py.py_list_new, py.py_list_set_item)
            }))
        }
    };
    // SAFETY: with the lock.
    unsafe { answer(py, call()) }
}

/// Objects for results, in a list or a tuple made by these functions of the interpreter.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn collected(
    py: &Symbols,
    all: Vec<AnyTensor>,
    object: impl Fn(AnyTensor) -> Returned,
    new: unsafe extern "C" fn(isize) -> *mut Object,
    set: unsafe extern "C" fn(*mut Object, isize, *mut Object) -> c_int,
) -> Returned {
    // SAFETY: as the caller promises; the container takes each object over.
    unsafe {
        let container = new(all.len() as isize);
        for (i, x) in all.into_iter().enumerate() {
            match object(x) {
                Ok(object) if !container.is_null() && !object.is_null() => {
                    set(container, i as isize, object);
                }
                other => {
                    if !container.is_null() {
                        (py.py_dec_ref)(container);
                    }
                    return other.map(|_| null_mut());
                }
            }
        }
        Ok(container)
    }
}

unsafe extern "C" fn call(own: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    // SAFETY: called by the interpreter with its lock; `own` is a tuple of `caller`.
    unsafe {
        let [kind, plan_and_run, run_recorded] = [0, 1, 2].map(|i| (py.py_tuple_get_item)(own, i));
        let all = if count == 0 { &[] } else { std::slice::from_raw_parts(from, count as usize) };
        let kept = || -> Option<Returned> {
            let &[plan, tuple, ref options @ ..] = all else { return None };
            let kind = Kind::of(py, kind);
            let recording = match kind {
                Kind::NumPy => TapeState::Off,
                Kind::Torch => torch::recording(py, tuple),
            };
            if recording == TapeState::Transformed {
                return None;
            }
            let mut described = operands(py, tuple)?.ok()?;
            let found = kept::look(py, kept::KeptKey { plan, options }, &described)?;
            if recording == TapeState::On {
                return Some(Ok(py.call(run_recorded, &[found.owner, tuple])));
            }
            found.enter(&mut described);
            let run = |op| run_unlocked(py, op, &described, Checks::Process(&found.layouts), kind);
            Some(of(found.op).and_then(run).and_then(|mut results| {
                found.leave(&mut results)?;
                let object = |x| number_or(py, kind, x);
                match found.single {
                    true => results.pop().map_or(Ok(null_mut()), object),
                    false => collected(py, results, object, py.py_tuple_new, py.py_tuple_set_item),
                }
            }))
        };
        match kept() {
            Some(found) => answer(py, Some(found)),
            None => py.call(plan_and_run, all),
        }
    }
}

/// An object for a result; a result without axes is a number of NumPy.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn number_or(py: &Symbols, kind: Kind, x: AnyTensor) -> Returned {
    let is_number = kind == Kind::NumPy && x.shape().is_empty();
    // SAFETY: as the caller promises; the array is taken over.
    unsafe {
        match made(py, kind, x)? {
            array if is_number && !array.is_null() => Ok((py.py_array_return)(array)),
            object => Ok(object),
        }
    }
}

unsafe extern "C" fn keep(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    let call = || -> Option<()> {
        // SAFETY: called by the interpreter with its lock; the package sends a handle, the object that holds it, numbers,
        // and tuples.
        unsafe {
            let &[plan, options, tuple, op, owner, single, operand, axis, drop] =
                arguments::<9>(from, count)?;
            let described = operands(py, tuple)?.ok()?;
            let number = |x| (py.py_long_as_long)(x) as isize;
            let items = |tuple| {
                (0..(py.py_tuple_size)(tuple)).map(move |i| (py.py_tuple_get_item)(tuple, i))
            };
            let options: Vec<*mut Object> = items(options).collect();
            let numbers: Vec<isize> = items(drop).map(number).collect();
            let op = (py.py_long_as_void_ptr)(op).cast::<Op>().cast_const();
            let insert = usize::try_from(number(operand)).ok();
            (py.py_inc_ref)(owner);
            let call = kept::KeptCall {
                op,
                owner,
                single: number(single) != 0,
                insert: insert.zip(usize::try_from(number(axis)).ok()),
                layouts: Vec::new(),
                drop: numbers.chunks_exact(2).map(|x| (x[0].unsigned_abs(), x[1])).collect(),
            };
            kept::keep(py, kept::KeptKey { plan, options: &options }, described, call)
        }
    };
    call();
    // SAFETY: with the lock.
    unsafe { answer(py, None) }
}

/// The function `call` of a kind.
static CALL: MethodDef =
    MethodDef { name: c"call".as_ptr(), method: call, flags: FASTCALL, text: null() };

unsafe extern "C" fn caller(_: *mut Object, from: Arguments, count: isize) -> *mut Object {
    let Some(py) = SYMBOLS.get() else { return null_mut() };
    // SAFETY: called by the interpreter with its lock.
    unsafe {
        match arguments::<1>(from, count) {
            Some(&[tuple]) if (py.py_tuple_size)(tuple) == 3 => {
                (py.py_cfunction_new_ex)(&CALL, tuple, null_mut())
            }
            _ => {
                (py.py_err_clear)();
                answer(py, None)
            }
        }
    }
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
    MethodDef { name: c"caller".as_ptr(), method: caller, flags: FASTCALL, text: null() },
    MethodDef { name: c"keep".as_ptr(), method: keep, flags: FASTCALL, text: null() },
    MethodDef { name: c"exchange".as_ptr(), method: exchange, flags: FASTCALL, text: null() },
];

/// A list of the built-in functions `run`, `caller`, `keep` and `exchange` for the package of Python; null for another
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
