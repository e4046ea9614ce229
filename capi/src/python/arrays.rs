//! Arrays of NumPy: descriptions of operands, read from their structs, and new arrays for results.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Arguments;
use std::ptr::{null, null_mut};

use t4a_tensor::{AnyTensor, DType};

use super::Returned;
use super::symbols::{Head, Object, SYMBOLS, Symbols};
use crate::described::Described;
use crate::dlpack::MAX_RANK;
use crate::error::{Failure, Status};

/// `NPY_ARRAY_CARRAY`: row-major, aligned, writeable.
const CARRAY: c_int = 0x501;
/// Results up to this many bytes are copied into memory of NumPy, which costs less than an owner.
pub(super) const SMALL: usize = 4096;

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
    (DType::F64, 12),
    (DType::F32, 11),
    (DType::C64, 15),
    (DType::C32, 14),
    (DType::I64, if cfg!(windows) { 9 } else { 7 }),
    (DType::I32, 5),
    (DType::Bool, 0),
    (DType::I8, 1),
    (DType::U8, 2),
    (DType::I16, 3),
    (DType::U16, 4),
    (DType::U32, 6),
    (DType::U64, if cfg!(windows) { 10 } else { 8 }),
    (DType::F16, 23),
];

/// An array as an operand; `None` for dtypes and strides that the engine does not have.
///
/// # Safety
/// `x` is an object of the type `ndarray`.
pub(super) unsafe fn describe(
    x: *mut Object,
    what: Arguments<'_>,
) -> Option<Result<Described, Failure>> {
    // SAFETY: as the caller promises; NumPy keeps as many dims and strides as axes.
    let (x, descr, dims, strides) = unsafe {
        let x = &*x.cast::<Array>();
        let rank = usize::try_from(x.rank).ok().filter(|&rank| rank <= MAX_RANK)?;
        let list = |from| if rank == 0 { &[][..] } else { std::slice::from_raw_parts(from, rank) };
        (x, &*x.descr, list(x.dims.cast::<i64>()), list(x.strides.cast::<i64>()))
    };
    let &(dtype, _) = TYPES.iter().find(|&&(_, number)| number == descr.number)?;
    let swapped = if cfg!(target_endian = "little") { b'>' } else { b'<' };
    let size = dtype.size() as i64;
    if descr.order == swapped || strides.iter().any(|stride| stride % size != 0) {
        return None;
    }
    let strides = strides.iter().map(|stride| (stride / size) as isize).collect();
    Some(Described::new(dtype, dims, Some(strides), x.data, what))
}

const OWNER: &CStr = c"t4a";

/// Releases what a capsule owns.
unsafe extern "C" fn release(capsule: *mut Object) {
    let Some(py) = SYMBOLS.get() else { return };
    // SAFETY: a capsule that `new` made.
    unsafe {
        let owned = (py.py_capsule_get_pointer)(capsule, OWNER.as_ptr()).cast::<AnyTensor>();
        if !owned.is_null() {
            drop(Box::from_raw(owned));
        }
    }
}

/// An array that owns its memory, or holds the tensor, which is row-major; null with an exception.
///
/// # Safety
/// With the lock of the interpreter.
pub(super) unsafe fn new(py: &Symbols, x: AnyTensor) -> Returned {
    let known = TYPES.iter().find(|&&(dtype, _)| dtype == x.dtype());
    let &(_, number) = known.ok_or_else(|| {
        Failure::new(Status::Dtype, format!("NumPy has no arrays of {}", x.dtype().name()))
    })?;
    let bytes = x.shape().iter().product::<usize>() * x.dtype().size();
    let from = x.buffer().as_ptr().wrapping_add(x.layout().offset() * x.dtype().size());
    let (rank, dims) = (x.shape().len() as c_int, x.shape().as_ptr().cast::<isize>());
    let new = |data: *mut c_void, flags| {
        // SAFETY: the function of NumPy, with as many sizes as axes.
        unsafe {
            let kind = py.array_type;
            (py.py_array_new)(kind, rank, dims, number, null(), data, 0, flags, null_mut())
        }
    };
    if bytes <= SMALL {
        let array = new(null_mut(), 0);
        if !array.is_null() && bytes > 0 {
            // SAFETY: both have that many bytes.
            unsafe { std::ptr::copy_nonoverlapping(from, (*array.cast::<Array>()).data, bytes) };
        }
        return Ok(array);
    }
    let array = new(from.cast_mut().cast(), CARRAY);
    if array.is_null() {
        return Ok(array);
    }
    let owned = Box::into_raw(Box::new(x));
    // SAFETY: the functions of the interpreter; the array takes the capsule over.
    unsafe {
        let capsule = (py.py_capsule_new)(owned.cast(), OWNER.as_ptr(), release);
        if capsule.is_null() {
            drop(Box::from_raw(owned));
        } else if (py.py_array_set_base_object)(array, capsule) == 0 {
            return Ok(array);
        }
        (py.py_dec_ref)(array);
    }
    Ok(null_mut())
}
