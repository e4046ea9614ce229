//! Destructor of the capsules of exported tensors. It runs no code of Python, because a capsule is also destroyed while an
//! exception is raised: that of a consumer that rejects the tensor.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use super::symbols::Object;
use crate::dlpack::{Managed, Taken};

/// `PyCapsule_IsValid`.
type IsValid = unsafe extern "C" fn(*mut Object, *const c_char) -> c_int;
/// `PyCapsule_GetPointer`.
type GetPointer = unsafe extern "C" fn(*mut Object, *const c_char) -> *mut c_void;

static FUNCTIONS: OnceLock<(IsValid, GetPointer)> = OnceLock::new();

/// Name of a capsule that no consumer has renamed.
const NAME: &CStr = c"dltensor_versioned";

unsafe extern "C" fn destroy(capsule: *mut Object) {
    let Some(&(is_valid, pointer)) = FUNCTIONS.get() else { return };
    // SAFETY: called by the interpreter; a capsule of this name owns its tensor.
    unsafe {
        if is_valid(capsule, NAME.as_ptr()) == 0 {
            return;
        }
        if let Some(managed) = NonNull::new(pointer(capsule, NAME.as_ptr()).cast::<Managed>()) {
            drop(Taken::new(managed));
        }
    }
}

/// Destructor for `PyCapsule_New` of a capsule with the name "dltensor_versioned", made with these functions of the interpreter;
/// null if one is null.
///
/// # Safety
/// The addresses are null or those of `PyCapsule_IsValid` and `PyCapsule_GetPointer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_capsule_destructor(
    is_valid: *const c_void,
    pointer: *const c_void,
) -> *mut c_void {
    if is_valid.is_null() || pointer.is_null() {
        return null_mut();
    }
    // SAFETY: as the caller promises.
    FUNCTIONS.get_or_init(|| unsafe {
        (
            std::mem::transmute::<*const c_void, IsValid>(is_valid),
            std::mem::transmute::<*const c_void, GetPointer>(pointer),
        )
    });
    destroy as *mut c_void
}
