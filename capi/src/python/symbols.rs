//! Functions and objects of the interpreter, of NumPy and of the package, whose addresses the package sends.

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

/// An object of Python.
pub(super) type Object = c_void;
/// Arguments of a built-in function.
pub(super) type Arguments = *const *mut Object;
pub(super) type Method = unsafe extern "C" fn(*mut Object, Arguments, isize) -> *mut Object;

/// `PyMethodDef`.
#[repr(C)]
pub(super) struct MethodDef {
    pub(super) name: *const c_char,
    pub(super) method: Method,
    pub(super) flags: c_int,
    pub(super) text: *const c_char,
}

// SAFETY: pointers to constants.
unsafe impl Sync for MethodDef {}

/// `METH_FASTCALL`.
pub(super) const FASTCALL: c_int = 0x80;

/// Addresses in the interpreter and in NumPy.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Symbols {
    /// `sizeof` of the struct.
    pub(super) size: usize,
    pub(super) none: *mut Object,
    pub(super) true_: *mut Object,
    pub(super) false_: *mut Object,
    pub(super) array_type: *mut Object,
    /// Function of the package that raises the exception of an error object.
    pub(super) raise: *mut Object,
    pub(super) py_cfunction_new_ex:
        unsafe extern "C" fn(*const MethodDef, *mut Object, *mut Object) -> *mut Object,
    pub(super) py_long_from_void_ptr: unsafe extern "C" fn(*mut c_void) -> *mut Object,
    pub(super) py_long_as_void_ptr: unsafe extern "C" fn(*mut Object) -> *mut c_void,
    pub(super) py_long_as_long: unsafe extern "C" fn(*mut Object) -> std::ffi::c_long,
    pub(super) py_list_new: unsafe extern "C" fn(isize) -> *mut Object,
    pub(super) py_list_set_item: unsafe extern "C" fn(*mut Object, isize, *mut Object) -> c_int,
    pub(super) py_tuple_new: unsafe extern "C" fn(isize) -> *mut Object,
    pub(super) py_tuple_set_item: unsafe extern "C" fn(*mut Object, isize, *mut Object) -> c_int,
    pub(super) py_tuple_size: unsafe extern "C" fn(*mut Object) -> isize,
    pub(super) py_tuple_get_item: unsafe extern "C" fn(*mut Object, isize) -> *mut Object,
    py_object_hash: unsafe extern "C-unwind" fn(*mut Object) -> isize,
    py_object_rich_compare_bool:
        unsafe extern "C-unwind" fn(*mut Object, *mut Object, c_int) -> c_int,
    py_object_get_attr: unsafe extern "C-unwind" fn(*mut Object, *mut Object) -> *mut Object,
    py_object_vectorcall:
        unsafe extern "C-unwind" fn(*mut Object, Arguments, usize, *mut Object) -> *mut Object,
    pub(super) py_inc_ref: unsafe extern "C" fn(*mut Object),
    pub(super) py_dec_ref: unsafe extern "C" fn(*mut Object),
    pub(super) py_eval_save_thread: unsafe extern "C" fn() -> *mut c_void,
    py_eval_restore_thread: unsafe extern "C-unwind" fn(*mut c_void),
    pub(super) py_capsule_new: unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        unsafe extern "C" fn(*mut Object),
    ) -> *mut Object,
    pub(super) py_capsule_get_pointer:
        unsafe extern "C" fn(*mut Object, *const c_char) -> *mut c_void,
    pub(super) py_err_clear: unsafe extern "C" fn(),
    #[allow(clippy::type_complexity)]
    pub(super) py_array_new: unsafe extern "C" fn(
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
    /// An array without axes as a number; takes the array over.
    pub(super) py_array_return: unsafe extern "C" fn(*mut Object) -> *mut Object,
    pub(super) py_array_set_base_object: unsafe extern "C" fn(*mut Object, *mut Object) -> c_int,
}

// SAFETY: addresses of functions and of objects that live as long as the interpreter.
unsafe impl Send for Symbols {}
// SAFETY: as above.
unsafe impl Sync for Symbols {}

/// A thread that unwinds this value stays here.
struct Hang;

impl Drop for Hang {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Runs a function of the interpreter that may wait for its lock. Before Python 3.14 a thread that waits for the lock while the
/// interpreter ends is ended by `pthread_exit`, which unwinds frames: their destructors would run without the lock. The
/// thread waits for the end of the process instead, as since 3.14.
fn or_hang<T>(run: impl FnOnce() -> T) -> T {
    let hang = Hang;
    let result = run();
    std::mem::forget(hang);
    result
}

/// Functions that may wait for the lock of the interpreter.
impl Symbols {
    /// Hash of an object; -1 with an exception.
    ///
    /// # Safety
    /// With the lock of the interpreter.
    pub(super) unsafe fn hash(&self, x: *mut Object) -> isize {
        // SAFETY: as the caller promises.
        or_hang(|| unsafe { (self.py_object_hash)(x) })
    }

    /// 1 for equal objects, 0 for others; -1 with an exception.
    ///
    /// # Safety
    /// As [`Self::hash`].
    pub(super) unsafe fn equal(&self, a: *mut Object, b: *mut Object) -> c_int {
        /// `Py_EQ`.
        const EQUAL: c_int = 2;
        // SAFETY: as the caller promises.
        or_hang(|| unsafe { (self.py_object_rich_compare_bool)(a, b, EQUAL) })
    }

    /// A new reference to an attribute, or null with an exception.
    ///
    /// # Safety
    /// As [`Self::hash`].
    pub(super) unsafe fn attribute(&self, x: *mut Object, name: *mut Object) -> *mut Object {
        // SAFETY: as the caller promises.
        or_hang(|| unsafe { (self.py_object_get_attr)(x, name) })
    }

    /// Calls an object with positional arguments. Returns a new reference, or null with an exception.
    ///
    /// # Safety
    /// As [`Self::hash`].
    pub(super) unsafe fn call(&self, f: *mut Object, arguments: &[*mut Object]) -> *mut Object {
        let (first, count) = (arguments.as_ptr(), arguments.len());
        let names = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        or_hang(|| unsafe { (self.py_object_vectorcall)(f, first, count, names) })
    }

    /// Takes the lock again.
    ///
    /// # Safety
    /// `state` is that of the call that released it.
    pub(super) unsafe fn lock_again(&self, state: *mut c_void) {
        // SAFETY: as the caller promises.
        or_hang(|| unsafe { (self.py_eval_restore_thread)(state) });
    }
}

pub(super) static SYMBOLS: OnceLock<Symbols> = OnceLock::new();

/// The beginning of every object.
#[repr(C)]
pub(super) struct Head {
    pub(super) count: isize,
    pub(super) kind: *mut Object,
}

/// Type of an object.
///
/// # Safety
/// `x` is an object.
pub(super) unsafe fn type_of(x: *mut Object) -> *mut Object {
    // SAFETY: every object begins with this.
    unsafe { (*x.cast::<Head>()).kind }
}
