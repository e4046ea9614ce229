//! Status codes, error objects, and the conversion of panics to errors at the C interface.

use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use t4a_einsum::EinsumError;
use t4a_linalg::LinalgError;
use t4a_operations::OperationError;
use t4a_scan::ScanError;
use t4a_structured::StructuredError;
use t4a_tensor::{DType, TensorError};

use crate::denormals::Denormals;
use crate::handle;

/// Status code returned by all functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// Invalid argument: null pointer, wrong number of operands, text that is not an operation.
    Argument = 1,
    /// Incompatible shapes.
    Shape = 2,
    /// Incompatible or unknown dtypes.
    Dtype = 3,
    /// Singular matrix, or a factorisation that does not exist or did not converge.
    Singular = 4,
    /// Derivative that depends on an arbitrary choice of singular vectors or eigenvectors.
    Gauge = 5,
    /// Failed allocation, or a memory limit.
    Memory = 6,
    /// Unsupported device, version or form of an operation.
    Unsupported = 7,
    /// Internal error of the library.
    Internal = 255,
}

/// Error object of the C interface.
#[derive(Debug)]
pub struct Error {
    status: Status,
    text: CString,
    batch: i64,
}

/// Error of a function before it becomes an [`Error`] object.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    text: String,
    batch: Option<usize>,
}

impl Failure {
    /// A failure that is not of one matrix of a batch.
    pub fn new(status: Status, text: impl AsRef<str>) -> Self {
        Self::in_batch(status, text.as_ref(), None)
    }

    fn in_batch(status: Status, text: &str, batch: Option<usize>) -> Self {
        Self { status, text: with_dtype_names(text), batch }
    }

    /// Status code.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Message.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// An invalid argument.
    pub fn argument(text: impl AsRef<str>) -> Self {
        Self::new(Status::Argument, text)
    }

    /// A null pointer.
    pub fn null(what: &str) -> Self {
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
        LinalgError::NotMatrix { .. }
        | LinalgError::NotSquare { .. }
        | LinalgError::BatchMismatch { .. } => Status::Shape,
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

fn of_scan(error: &ScanError) -> Status {
    match error {
        ScanError::Tensor(error) => of_tensor(error),
        ScanError::Einsum(error) => of_einsum(error),
        _ => Status::Argument,
    }
}

fn of_structured(error: &StructuredError) -> Status {
    match error {
        StructuredError::Tensor(error) => of_tensor(error),
        StructuredError::Einsum(error) => of_einsum(error),
        StructuredError::Linalg(error) => of_linalg(error),
        StructuredError::LengthMismatch { .. } | StructuredError::Shape { .. } => Status::Shape,
        StructuredError::DType { .. } => Status::Dtype,
        _ => Status::Argument,
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        let status = match &error {
            OperationError::Tensor(error) => of_tensor(error),
            OperationError::Einsum(error) => of_einsum(error),
            OperationError::Linalg(error) => of_linalg(error),
            OperationError::Scan(error) => of_scan(error),
            OperationError::Structured(error) => of_structured(error),
            _ => Status::Argument,
        };
        let batch = match &error {
            OperationError::Linalg(error)
            | OperationError::Structured(StructuredError::Linalg(error)) => error.batch(),
            _ => None,
        };
        Self::in_batch(status, &advised(error.to_string()), batch)
    }
}

/// Clauses of errors that name functions of Rust, and clauses with the options of operations as values.
const ADVICE: [(&str, &str); 5] = [
    ("; `linalg::status` continues with the others", ""),
    (
        "set `separable` in the Degeneracy of `svd_with` or `eigh_with`",
        "set the option `separable` of the factorisation",
    ),
    (
        "the Degeneracy of `svd_with` and `eigh_with` sets the tolerance and this check",
        "the options `tolerance` and `check_gauge` of the factorisation set the width of ties and this check",
    ),
    (
        "`Einsum::memory`, `BackendConfig::einsum_memory` or `T4A_EINSUM_MEMORY` sets the budget",
        "the option `memory` or the environment variable `T4A_EINSUM_MEMORY` sets the budget",
    ),
    ("; `cast` one of them", "; convert one of them"),
];

/// The text of an error with advice for programs in other languages.
fn advised(text: String) -> String {
    let replaced = |text: String, (from, to): &(&str, &str)| match text.contains(from) {
        true => text.replace(from, to),
        false => text,
    };
    ADVICE.iter().fold(text, replaced)
}

/// Name of a dtype in NumPy, PyTorch and JAX.
fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "float64",
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::C64 => "complex128",
        DType::C32 => "complex64",
        DType::I64 => "int64",
        DType::I32 => "int32",
        DType::I16 => "int16",
        DType::I8 => "int8",
        DType::U64 => "uint64",
        DType::U32 => "uint32",
        DType::U16 => "uint16",
        DType::U8 => "uint8",
        other => other.name(),
    }
}

/// The text with these names of dtypes. Words beside a quotation mark, which are names of arguments or parts of input, remain.
fn with_dtype_names(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let quotes = ['"', '\'', '`'];
    let (mut named, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(is_word) {
        let (before, tail) = rest.split_at(start);
        let (word, after) = tail.split_at(tail.find(|c| !is_word(c)).unwrap_or(tail.len()));
        let is_quoted = before.ends_with(quotes) || after.starts_with(quotes);
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == word && !is_quoted);
        named.push_str(before);
        named.push_str(match dtype {
            Some(dtype) => name_of(dtype),
            None => word,
        });
        rest = after;
    }
    named + rest
}

impl From<TensorError> for Failure {
    fn from(error: TensorError) -> Self {
        Self::new(of_tensor(&error), error.to_string())
    }
}

/// Runs `body` with denormal numbers and converts a panic to a failure with status `Internal`.
pub(crate) fn protected<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let _denormals = Denormals::kept();
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
        let text = text.unwrap_or_else(|| "a panic".into());
        Err(Failure::new(Status::Internal, format!("a fault of the library: {text}")))
    })
}

/// Allocates an error object, which the caller has to free.
pub(crate) fn object_of(Failure { status, text, batch }: Failure) -> *mut Error {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let batch = batch.map_or(-1, |batch| batch as i64);
    handle::made(Box::into_raw(Box::new(Error { status, text, batch }))).cast_mut()
}

/// Runs the body of a function of the C interface. Returns the status; a failure or a panic is written to `out` as an error
/// object.
///
/// # Safety
/// `out` is null or valid for a write.
pub unsafe fn enter(out: *mut *mut Error, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let failure = protected(body).err();
    let status = failure.as_ref().map_or(Status::Ok, |failure| failure.status);
    if !out.is_null() {
        let object = failure.map_or(std::ptr::null_mut(), object_of);
        // SAFETY: as the caller promises.
        unsafe { out.write(object) };
    }
    status as c_int
}

/// Dereferences an error handle.
///
/// # Safety
/// `error` is null, or an error that was not freed.
unsafe fn get<'a>(error: *const Error) -> Option<&'a Error> {
    // SAFETY: as the caller promises.
    unsafe { handle::get(error, "the error") }.ok()
}

/// Status of an error; `T4A_OK` for null.
///
/// # Safety
/// `error` is null, or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_status(error: *const Error) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { get(error) }.map_or(Status::Ok, |error| error.status) as c_int
}

/// Message of an error, valid until the error is freed; empty for null.
///
/// # Safety
/// As [`t4a_error_status`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_text(error: *const Error) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { get(error) }.map_or(c"".as_ptr(), |error| error.text.as_ptr())
}

/// Index of the matrix of a batch that caused the error, or −1.
///
/// # Safety
/// As [`t4a_error_status`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_batch(error: *const Error) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { get(error) }.map_or(-1, |error| error.batch)
}

/// Frees an error; does nothing for null.
///
/// # Safety
/// `error` is null, or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_error_free(error: *mut Error) {
    if handle::released(error) {
        // SAFETY: as the caller promises; errors are allocated by `Box::into_raw`.
        drop(unsafe { Box::from_raw(error) });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Texts of all errors, which a test of the workspace collects.
    #[test]
    fn advice_replaces_clauses_that_exist() {
        let texts = include_str!("../../tests/documents/errors.txt");
        for (clause, _) in ADVICE {
            assert!(texts.contains(clause), "no error contains {clause:?}");
        }
        let error = LinalgError::NonFinite { op: "svd", batch: 2 };
        let failure = Failure::from(OperationError::Linalg(error));
        assert_eq!(failure.text, "svd: matrix 2 has an element that is NaN or infinite");
    }

    #[test]
    fn dtypes_have_the_names_of_numpy() {
        for (text, want) in [
            (
                "the cotangent of f32 [2] is c64 [2]",
                "the cotangent of float32 [2] is complex128 [2]",
            ),
            ("bf16, u8 or (f16)", "bfloat16, uint8 or (float16)"),
            ("bool", "bool"),
            ("buf32, f32s, f_32, f326, 1e-6·f64", "buf32, f32s, f_32, f326, 1e-6·float64"),
            ("`f32`, 'f32', \"f32\"", "`f32`, 'f32', \"f32\""),
            ("√é f64", "√é float64"),
            ("", ""),
        ] {
            assert_eq!(Failure::argument(text).text(), want);
        }
        let names: HashSet<_> = DType::ALL.into_iter().map(name_of).collect();
        assert_eq!(names.len(), DType::ALL.len());
        let is_renamed = |dtype: &DType| name_of(*dtype) != dtype.name();
        assert!(DType::ALL.iter().filter(|dtype| **dtype != DType::Bool).all(is_renamed));
    }
}
