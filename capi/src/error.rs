//! Statuses, error objects, and the border that no panic crosses.

use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use t4a_einsum::EinsumError;
use t4a_linalg::LinalgError;
use t4a_operations::OperationError;
use t4a_tensor::TensorError;

use crate::handle;

/// The result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// All is well.
    Ok = 0,
    /// Null pointers, numbers of arguments, data that is no operation.
    Argument = 1,
    /// Shapes that do not fit.
    Shape = 2,
    /// Dtypes that do not fit.
    Dtype = 3,
    /// A matrix without the factorisation or the inverse.
    Singular = 4,
    /// A derivative that depends on an arbitrary choice of vectors.
    Gauge = 5,
    /// Memory, or its limit.
    Memory = 6,
    /// Devices, versions, forms that the library does not have.
    Unsupported = 7,
    /// A fault of the library.
    Internal = 255,
}

/// An error object.
#[derive(Debug)]
pub struct Error {
    status: Status,
    text: CString,
    batch: i64,
}

/// Why a function fails.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    text: String,
    batch: Option<usize>,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), batch: None }
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(Status::Argument, text)
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::argument(format!("{what} is a null pointer"))
    }
}

pub(crate) fn of_tensor(error: &TensorError) -> Status {
    match error {
        TensorError::ShapeMismatch { .. }
        | TensorError::Shape { .. }
        | TensorError::Axis { .. }
        | TensorError::SizeOverflow { .. } => Status::Shape,
        TensorError::DTypeUnsupported { .. }
        | TensorError::OperandKind { .. }
        | TensorError::DTypeMismatch { .. } => Status::Dtype,
        TensorError::OutOfMemory { .. } => Status::Memory,
        _ => Status::Argument,
    }
}

pub(crate) fn of_linalg(error: &LinalgError) -> Status {
    match error {
        LinalgError::Tensor(error) => of_tensor(error),
        LinalgError::NotMatrix { .. } | LinalgError::NotSquare { .. } => Status::Shape,
        LinalgError::SecondOrderAtTie { .. }
        | LinalgError::SplitTie { .. }
        | LinalgError::GaugeIllDefined { .. } => Status::Gauge,
        _ => Status::Singular,
    }
}

fn of_einsum(error: &EinsumError) -> Status {
    match error {
        EinsumError::Tensor(error) => of_tensor(error),
        EinsumError::DTypeMismatch { .. } => Status::Dtype,
        EinsumError::BudgetTooSmall { .. } | EinsumError::IntermediateOverflow { .. } => {
            Status::Memory
        }
        EinsumError::Rank { .. }
        | EinsumError::SizeConflict { .. }
        | EinsumError::SizeOverflow { .. }
        | EinsumError::PlanShape { .. }
        | EinsumError::DerivativeShape { .. } => Status::Shape,
        _ => Status::Argument,
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        let mut batch = None;
        let status = match &error {
            OperationError::Tensor(error) => of_tensor(error),
            OperationError::Einsum(error) => of_einsum(error),
            OperationError::Linalg(error) => {
                batch = error.batch();
                of_linalg(error)
            }
            _ => Status::Argument,
        };
        Self { status, text: error.to_string(), batch }
    }
}

impl From<TensorError> for Failure {
    fn from(error: TensorError) -> Self {
        Self::new(of_tensor(&error), error.to_string())
    }
}

/// Runs a body: a panic is a failure.
pub(crate) fn protected<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
        let text = text.unwrap_or_else(|| "a panic".into());
        Err(Failure::new(Status::Internal, format!("a fault of the library: {text}")))
    })
}

/// An error object for a caller.
pub(crate) fn object_of(Failure { status, text, batch }: Failure) -> *mut Error {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let batch = batch.map_or(-1, |batch| batch as i64);
    handle::made(Box::into_raw(Box::new(Error { status, text, batch }))).cast_mut()
}

/// Runs the body of a function: a failure or a panic is a status, and an object for the caller.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn enter(
    out: *mut *mut Error,
    body: impl FnOnce() -> Result<(), Failure>,
) -> c_int {
    let failure = protected(body).err();
    let status = failure.as_ref().map_or(Status::Ok, |failure| failure.status);
    if !out.is_null() {
        let object = failure.map_or(std::ptr::null_mut(), object_of);
        // SAFETY: the caller's promise.
        unsafe { out.write(object) };
    }
    status as c_int
}

/// The error of a handle.
///
/// # Safety
/// `error` is null, or an error that was not freed.
unsafe fn get<'a>(error: *const Error) -> Option<&'a Error> {
    // SAFETY: the caller's promise.
    unsafe { handle::get(error, "the error") }.ok()
}

/// The status of an error; `T4A_OK` of null.
///
/// # Safety
/// `error` is null, or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_status(error: *const Error) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { get(error) }.map_or(Status::Ok, |error| error.status) as c_int
}

/// The text of an error, as long as that lives; empty of null.
///
/// # Safety
/// As [`t4a_error_status`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_text(error: *const Error) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { get(error) }.map_or(c"".as_ptr(), |error| error.text.as_ptr())
}

/// The matrix of a batch that is to blame, or −1.
///
/// # Safety
/// As [`t4a_error_status`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_batch(error: *const Error) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { get(error) }.map_or(-1, |error| error.batch)
}

/// Frees an error; null is nothing.
///
/// # Safety
/// `error` is null, or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_free(error: *mut Error) {
    if handle::released(error) {
        // SAFETY: the caller's promise; errors are made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(error) });
    }
}
