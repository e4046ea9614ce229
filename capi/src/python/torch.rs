//! Tensors of PyTorch, by its C functions for DLPack, and the states in which it records or transforms a call.

use std::ffi::{c_int, c_void};
use std::fmt::Arguments;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;

use t4a_tensor::AnyTensor;

use super::Returned;
use super::symbols::{Object, SYMBOLS, Symbols, type_of};
use crate::described::Described;
use crate::dlpack::{self, DlTensor, Managed};
use crate::error::Failure;

type Describe = unsafe extern "C" fn(*mut Object, *mut DlTensor) -> c_int;
type ToObject = unsafe extern "C" fn(*mut Managed, *mut *mut Object) -> c_int;

/// Functions of PyTorch, called with the lock of the interpreter.
#[derive(Clone, Copy)]
struct Exchange {
    /// Types of tensors, without subclasses.
    types: [*mut Object; 2],
    describe: Describe,
    object: ToObject,
    guards: Guards,
}

/// Objects of PyTorch that tell the state of a call.
#[derive(Clone, Copy)]
struct Guards {
    /// Number of dispatch modes.
    modes: *mut Object,
    /// Innermost transformation of `torch.func`, or `None`.
    interpreter: *mut Object,
    /// State of `torch.jit.trace`, or `None`.
    tracing: *mut Object,
    /// True if operations are recorded.
    is_grad_enabled: *mut Object,
    /// The module `forward_ad`, and the name of the level in it, negative outside of all.
    forward_ad: *mut Object,
    current_level: *mut Object,
    /// The name of this attribute.
    requires_grad: *mut Object,
    /// Methods of tensors.
    is_neg: *mut Object,
    is_conj: *mut Object,
}

/// Number of [`Guards`].
const GUARDS: usize = 9;

// SAFETY: objects and functions that live as long as the interpreter.
unsafe impl Send for Exchange {}
// SAFETY: as above.
unsafe impl Sync for Exchange {}

static EXCHANGE: OnceLock<Exchange> = OnceLock::new();

/// Sets the functions: two types, two addresses, and a tuple of [`Guards`].
///
/// # Safety
/// With the lock of the interpreter; the addresses are those of such functions.
pub(super) unsafe fn exchange(py: &Symbols, given: &[*mut Object; 5]) {
    let &[tensor, parameter, describe, object, guards] = given;
    // SAFETY: as the caller promises.
    unsafe {
        let [describe, object] = [describe, object].map(|x| (py.py_long_as_void_ptr)(x));
        if describe.is_null() || object.is_null() || (py.py_tuple_size)(guards) != GUARDS as isize {
            return;
        }
        let all: [*mut Object; GUARDS] =
            std::array::from_fn(|i| (py.py_tuple_get_item)(guards, i as isize));
        let [modes, interpreter, tracing, is_grad_enabled, forward_ad, ..] = all;
        let [.., current_level, requires_grad, is_neg, is_conj] = all;
        // They live as long as the interpreter.
        [tensor, parameter].iter().chain(&all).for_each(|&x| (py.py_inc_ref)(x));
        let _ = EXCHANGE.set(Exchange {
            types: [tensor, parameter],
            describe: std::mem::transmute::<*mut c_void, Describe>(describe),
            object: std::mem::transmute::<*mut c_void, ToObject>(object),
            guards: Guards {
                modes,
                interpreter,
                tracing,
                is_grad_enabled,
                forward_ad,
                current_level,
                requires_grad,
                is_neg,
                is_conj,
            },
        });
    }
}

/// Calls a function, and releases its result after `f` has read it. An exception is discarded: `None`.
///
/// # Safety
/// With the lock of the interpreter.
unsafe fn with<T>(
    py: &Symbols,
    result: *mut Object,
    f: impl FnOnce(*mut Object) -> T,
) -> Option<T> {
    // SAFETY: as the caller promises; the result is owned.
    unsafe {
        if result.is_null() {
            (py.py_err_clear)();
            return None;
        }
        let found = f(result);
        (py.py_dec_ref)(result);
        Some(found)
    }
}

/// State of PyTorch in a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TapeState {
    /// Plain tensors outside of modes, transformations and forward mode, of which none is recorded.
    Off,
    /// As [`TapeState::Off`], but the tape records the call.
    On,
    /// Other tensors, modes or transformations.
    Transformed,
}

/// State of a call with these operands.
///
/// # Safety
/// With the lock of the interpreter; `tuple` is an object.
pub(super) unsafe fn recording(py: &Symbols, tuple: *mut Object) -> TapeState {
    let Some(Exchange { types, guards, .. }) = EXCHANGE.get() else {
        return TapeState::Transformed;
    };
    let found = || -> Option<TapeState> {
        // SAFETY: as the caller promises; the guards are such objects.
        unsafe {
            let integer = |x| (py.py_long_as_long)(x);
            let modes = with(py, py.call(guards.modes, &[]), integer)?;
            let is_none = |x| x == py.none;
            let outside = with(py, py.call(guards.interpreter, &[]), is_none)?
                && with(py, py.call(guards.tracing, &[]), is_none)?;
            let level = py.attribute(guards.forward_ad, guards.current_level);
            if modes != 0 || !outside || with(py, level, integer)? >= 0 {
                return None;
            }
            let mut records = false;
            for i in 0..(py.py_tuple_size)(tuple) {
                let x = (py.py_tuple_get_item)(tuple, i);
                if !types.contains(&type_of(x)) {
                    return None;
                }
                let requires = py.attribute(x, guards.requires_grad);
                records |= with(py, requires, |x| x != py.false_)?;
            }
            let on = |x| x != py.false_;
            match records && with(py, py.call(guards.is_grad_enabled, &[]), on)? {
                true => Some(TapeState::On),
                false => Some(TapeState::Off),
            }
        }
    };
    found().unwrap_or(TapeState::Transformed)
}

/// A tensor as an operand; `None` for other objects, and for tensors whose memory has other values (conjugated or
/// negated ones) or that are not strided.
///
/// # Safety
/// With the lock of the interpreter; `x` is an object.
pub(super) unsafe fn describe(
    py: &Symbols,
    x: *mut Object,
    what: Arguments<'_>,
) -> Option<Result<Described, Failure>> {
    let Exchange { types, describe, guards, .. } = EXCHANGE.get()?;
    let mut described = MaybeUninit::<DlTensor>::zeroed();
    // SAFETY: the functions of this type; `describe` fills the struct in, or leaves an exception.
    unsafe {
        if !types.contains(&type_of(x)) {
            return None;
        }
        let is = |method| with(py, py.call(method, &[x]), |x| x == py.true_);
        if is(guards.is_neg)? {
            return None;
        }
        if describe(x, described.as_mut_ptr()) != 0 {
            (py.py_err_clear)();
            return None;
        }
        let found = Described::read(described.as_ptr(), what);
        let is_complex = found.as_ref().is_ok_and(|x| x.dtype.is_complex());
        if is_complex && is(guards.is_conj)? {
            return None;
        }
        Some(found)
    }
}

/// A tensor of PyTorch for a result; null with an exception.
///
/// # Safety
/// With the lock of the interpreter.
pub(super) unsafe fn new(x: AnyTensor) -> Returned {
    let exchange = EXCHANGE.get().filter(|_| SYMBOLS.get().is_some());
    let exchange = exchange.ok_or_else(|| Failure::argument("PyTorch was not imported"))?;
    let mut object = null_mut();
    // SAFETY: the function of PyTorch; it takes the tensor over, or leaves an exception.
    let taken =
        dlpack::give_to(x, |managed| unsafe { (exchange.object)(managed, &raw mut object) } == 0)?;
    Ok(if taken { object } else { null_mut() })
}
