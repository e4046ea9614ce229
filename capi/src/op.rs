//! Handles of operations: immutable values, usable from any thread.

use std::ffi::{CStr, c_char, c_int};
use std::mem::offset_of;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::OnceLock;

use t4a_diff::{Meta, OnBatch, Operation};
use t4a_einsum::{FloatSemiring, Optimizer, Path};
use t4a_operations::{
    AnyOperation, ContractionOptions, Jvp, Labelled, OperationError, Vjp, einsum,
};

use crate::dlpack::{self, DataType, MAX_RANK};
use crate::error::{Error, Failure, Status, enter};
use crate::handle;
use crate::parts;
use crate::tensor::TensorMeta;

/// A handle.
#[derive(Debug)]
pub struct Op {
    pub(crate) any: AnyOperation,
    /// Text of the operation, made when first read; empty for an operation with numbers that the text format cannot
    /// represent.
    text: OnceLock<String>,
}

/// An operand of a contraction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Operand {
    /// `sizeof` of the struct.
    pub size: usize,
    /// A label for each axis.
    pub labels: *const i64,
    /// Sizes of the axes.
    pub shape: *const i64,
    /// Number of axes.
    pub rank: i32,
}

/// Options of a contraction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EinsumOptions {
    /// `sizeof` of the struct.
    pub size: usize,
    /// Name of the semiring; null means `"standard"`.
    pub semiring: *const c_char,
    /// Memory limit for intermediate tensors in bytes; 0 means no limit.
    pub memory: usize,
    /// Dtype of elements; 0 means `f64`. A complex dtype makes a contraction of complex tensors.
    pub dtype: DataType,
    /// Contraction order: null or `"greedy"`, `"annealing"`, or a path as a JSON list of steps. Since 1.2.
    pub optimize: *const c_char,
}

/// Slice of a list of a caller.
///
/// # Errors
/// For null with a length.
///
/// # Safety
/// `from` is null or valid for `len` reads.
pub unsafe fn list<'a, T>(from: *const T, len: usize, what: &str) -> Result<&'a [T], Failure> {
    match (len, from.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(Failure::null(what)),
        // SAFETY: as the caller promises.
        _ => Ok(unsafe { std::slice::from_raw_parts(from, len) }),
    }
}

/// Flags of a caller.
///
/// # Safety
/// As [`list`].
pub(crate) unsafe fn flags(from: *const u8, len: usize, what: &str) -> Result<Vec<bool>, Failure> {
    // SAFETY: as the caller promises.
    Ok(unsafe { list(from, len, what) }?.iter().map(|&flag| flag != 0).collect())
}

fn rank(given: i32) -> Result<usize, Failure> {
    let rank = usize::try_from(given).ok().filter(|&rank| rank <= MAX_RANK);
    rank.ok_or_else(|| Failure::new(Status::Shape, format!("{given} axes, not 0 to {MAX_RANK}")))
}

fn sizes(given: &[i64]) -> Result<Vec<usize>, Failure> {
    let sizes: Option<Vec<usize>> = given.iter().map(|&size| usize::try_from(size).ok()).collect();
    sizes.ok_or_else(|| Failure::new(Status::Shape, format!("the impossible shape {given:?}")))
}

/// Checks the size in the first field of a struct.
fn known(size: usize, least: usize, what: &str) -> Result<(), Failure> {
    match size >= least {
        true => Ok(()),
        false => {
            Err(Failure::argument(format!("{what} has {size} bytes, at least {least} are needed")))
        }
    }
}

fn semiring(name: &str) -> Result<FloatSemiring, Failure> {
    let names = || FloatSemiring::ALL.iter().map(|semiring| semiring.label());
    let found = FloatSemiring::ALL.iter().find(|semiring| semiring.label() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = names().collect();
        Failure::argument(format!("there is no semiring {name:?}; there are {}", names.join(", ")))
    })
}

/// Search method or path by name: `"greedy"`, `"annealing"`, or a JSON list of steps.
fn order(text: &str) -> Result<(Optimizer, Option<Path>), Failure> {
    let greedy = Optimizer::Greedy;
    match text {
        "greedy" => Ok((greedy, None)),
        "annealing" => Ok((Optimizer::TreeSa, None)),
        _ => match serde_json::from_str(text) {
            Ok(steps) => Ok((greedy, Some(Path::new(steps)))),
            Err(_) => {
                let required = "\"greedy\", \"annealing\" or a path of nonnegative positions such as [[0,1],[0,1]]";
                let text: String = text.chars().take(40).collect();
                Err(Failure::argument(format!(
                    "contraction order {text:?}: {required} is required"
                )))
            }
        },
    }
}

/// Reads options, those of earlier versions too, which are shorter.
///
/// # Safety
/// `options` is null or valid for reads of as many bytes as its first field says.
unsafe fn read_options(options: *const EinsumOptions) -> Result<Option<EinsumOptions>, Failure> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises; every struct has this field.
    let size = unsafe { (&raw const (*options).size).read() };
    known(size, offset_of!(EinsumOptions, optimize), "the options")?;
    let mut read = EinsumOptions {
        size,
        semiring: std::ptr::null(),
        memory: 0,
        dtype: DataType::default(),
        optimize: std::ptr::null(),
    };
    let bytes = size.min(size_of::<EinsumOptions>());
    // SAFETY: as the caller promises; both have at least so many bytes, of which any are fields of this type.
    unsafe {
        std::ptr::copy_nonoverlapping(options.cast::<u8>(), (&raw mut read).cast(), bytes);
    }
    Ok(Some(read))
}

/// Writes a handle to `out`.
///
/// # Safety
/// `out` is null or valid for a write.
unsafe fn put(out: *mut *mut Op, any: AnyOperation) -> Result<(), Failure> {
    let out = NonNull::new(out).ok_or_else(|| Failure::null("the place of the result"))?;
    let op = handle::made(Box::into_raw(Box::new(Op { any, text: OnceLock::new() })));
    // SAFETY: as the caller promises.
    unsafe { out.write(op.cast_mut()) };
    Ok(())
}

/// Operation of a handle.
///
/// # Errors
/// For null; with debug assertions, for a handle that was released.
///
/// # Safety
/// `op` is null or a handle that was not freed.
pub unsafe fn of<'a>(op: *const Op) -> Result<&'a AnyOperation, Failure> {
    // SAFETY: as the caller promises.
    Ok(&unsafe { handle::get(op, "the operation") }?.any)
}

/// Creates a contraction by integer labels.
///
/// # Safety
/// Pointers are null or valid, with as many elements as are announced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_einsum(
    operands: *const Operand,
    count: usize,
    result: *const i64,
    result_rank: i32,
    options: *const EinsumOptions,
    out: *mut *mut Op,
    error: *mut *mut Error,
) -> c_int {
    let make = || {
        // SAFETY: as the caller promises.
        let operands = unsafe { list(operands, count, "the operands") }?;
        let mut all = Vec::with_capacity(count);
        for x in operands {
            known(x.size, size_of::<Operand>(), "an operand")?;
            let rank = rank(x.rank)?;
            // SAFETY: as the caller promises.
            let labels = unsafe { list(x.labels, rank, "labels") }?;
            // SAFETY: as the caller promises.
            all.push((labels, sizes(unsafe { list(x.shape, rank, "a shape") }?)?));
        }
        // SAFETY: as the caller promises.
        let result = unsafe { list(result, rank(result_rank)?, "the labels of the result") }?;
        let mut own = ContractionOptions::default();
        // SAFETY: as the caller promises.
        if let Some(given) = unsafe { read_options(options) }? {
            if !given.semiring.is_null() {
                // SAFETY: the caller's promise: a string that ends with 0.
                let name = unsafe { CStr::from_ptr(given.semiring) };
                own.semiring = semiring(&name.to_string_lossy())?;
            }
            if !given.optimize.is_null() {
                // SAFETY: the caller's promise: a string that ends with 0.
                let given = unsafe { CStr::from_ptr(given.optimize) };
                (own.optimizer, own.path) = order(&given.to_string_lossy())?;
            }
            own.memory = (given.memory > 0).then_some(given.memory);
            if given.dtype != DataType::default() {
                let dtype = dlpack::dtype(given.dtype)?;
                let real = dlpack::real(dtype);
                (own.complex, own.element) = (real.is_some(), real.unwrap_or(dtype).size());
            }
        }
        let all: Vec<Labelled<'_>> =
            all.iter().map(|(labels, shape)| Labelled { labels, shape }).collect();
        // SAFETY: as the caller promises.
        unsafe { put(out, einsum(&all, result, own)?) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, make) }
}

/// Parses the text of an operation.
///
/// # Safety
/// `text` is null or valid for `len` bytes; `out` and `error` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_parse(
    text: *const c_char,
    len: usize,
    out: *mut *mut Op,
    error: *mut *mut Error,
) -> c_int {
    let parse = || {
        // SAFETY: as the caller promises.
        let text = unsafe { list(text.cast::<u8>(), len, "the text") }?;
        let text = std::str::from_utf8(text).map_err(|e| Failure::argument(e.to_string()))?;
        // SAFETY: as the caller promises.
        unsafe { put(out, AnyOperation::from_text(text)?) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, parse) }
}

/// Writes the text of an operation with a terminating zero, truncated to the size of the buffer. Returns the full
/// length; 0 for null, and for an operation with numbers that the text format cannot represent.
///
/// # Safety
/// `op` is null or a handle; `buffer` is null or valid for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_text(op: *const Op, buffer: *mut c_char, room: usize) -> usize {
    // SAFETY: as the caller promises.
    let Ok(op) = (unsafe { handle::get(op, "the operation") }) else { return 0 };
    let find = || op.text.get_or_init(|| op.any.to_text().unwrap_or_default());
    let text = std::panic::catch_unwind(AssertUnwindSafe(find)).map_or("", String::as_str);
    if !buffer.is_null() && room > 0 {
        let len = text.len().min(room - 1);
        // SAFETY: as the caller promises; `len` and one byte more fit.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), len);
            buffer.add(len).write(0);
        }
    }
    text.len()
}

/// Creates the operation that returns results and tangents.
///
/// # Safety
/// `op` is null or a handle; `moving` is null or valid for `count` bytes; `out` and `error` are null or valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_jvp(
    op: *const Op,
    moving: *const u8,
    count: usize,
    out: *mut *mut Op,
    error: *mut *mut Error,
) -> c_int {
    let make = || {
        // SAFETY: as the caller promises.
        let (op, moving) = unsafe { (of(op)?, flags(moving, count, "the flags of operands")?) };
        let moving = parts::operand_flags(op, &moving)?;
        // SAFETY: as the caller promises.
        unsafe { put(out, Jvp::new(op.clone(), moving)?.into()) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, make) }
}

/// Creates the operation that returns cotangents.
///
/// # Safety
/// As [`t4a_op_jvp`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_vjp(
    op: *const Op,
    given: *const u8,
    results: usize,
    wanted: *const u8,
    operands: usize,
    out: *mut *mut Op,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: as the caller promises.
    let make = || unsafe {
        let (op, given, wanted) = vjp_flags(op, given, results, wanted, operands)?;
        put(out, Vjp::new(op.clone(), given, wanted)?.into())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, make) }
}

/// The operation, with the flags of the engine's arrays.
///
/// # Safety
/// As [`t4a_op_vjp`].
unsafe fn vjp_flags<'a>(
    op: *const Op,
    given: *const u8,
    results: usize,
    wanted: *const u8,
    operands: usize,
) -> Result<(&'a AnyOperation, Vec<bool>, Vec<bool>), Failure> {
    // SAFETY: as the caller promises.
    let (op, given, wanted) = unsafe {
        let given = flags(given, results, "the flags of results")?;
        (of(op)?, given, flags(wanted, operands, "the flags of operands")?)
    };
    Ok((op, parts::result_flags(op, &given)?, parts::operand_flags(op, &wanted)?))
}

/// The operation that returns cotangents, of operands, results and cotangents: for rules that read results, which this one
/// does not compute again.
///
/// # Safety
/// As [`t4a_op_jvp`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_vjp_of_results(
    op: *const Op,
    given: *const u8,
    results: usize,
    wanted: *const u8,
    operands: usize,
    out: *mut *mut Op,
    error: *mut *mut Error,
) -> c_int {
    // SAFETY: as the caller promises.
    let make = || unsafe {
        let (op, given, wanted) = vjp_flags(op, given, results, wanted, operands)?;
        let made = Vjp::of_results(op.clone(), given, wanted);
        let unsupported = |e: OperationError| Failure::new(Status::Unsupported, e.to_string());
        put(out, made.map_err(unsupported)?.into())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, make) }
}

/// Creates the operation on a batch: results, and operands that differ between examples, have one more leading
/// axis.
///
/// # Safety
/// As [`t4a_op_jvp`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_batch(
    op: *const Op,
    size: usize,
    differ: *const u8,
    count: usize,
    out: *mut *mut Op,
    error: *mut *mut Error,
) -> c_int {
    let make = || {
        // SAFETY: as the caller promises.
        let (op, differ) = unsafe { (of(op)?, flags(differ, count, "the flags of operands")?) };
        let differ = parts::operand_flags(op, &differ)?;
        match op.on_batch(size, &differ) {
            // SAFETY: as the caller promises.
            Some(OnBatch::Front { op, .. }) => unsafe { put(out, op) },
            _ => {
                let text = format!("{} has no batch of these operands in front", op.name());
                Err(Failure::new(Status::Unsupported, text))
            }
        }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, make) }
}

/// Shapes and dtypes of the results, without any work.
///
/// # Safety
/// `op` is null or a handle; `inputs` is null or valid for `count` structs; `out` is null or valid for `room`
/// structs; `results` and `error` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_results(
    op: *const Op,
    inputs: *const TensorMeta,
    count: usize,
    out: *mut TensorMeta,
    room: usize,
    results: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    let find = || {
        // SAFETY: as the caller promises.
        let (op, inputs) = unsafe { (of(op)?, list(inputs, count, "the operands")?) };
        let meta = |x: &TensorMeta| {
            known(x.size, size_of::<TensorMeta>(), "an operand")?;
            Ok(Meta { shape: sizes(&x.shape[..rank(x.rank)?])?, dtype: dlpack::dtype(x.dtype)? })
        };
        let metas: Vec<Meta> = inputs.iter().map(meta).collect::<Result<_, Failure>>()?;
        let found = parts::join_metas(op, &op.returns(&parts::split_metas(&metas))?)?;
        if !results.is_null() {
            // SAFETY: as the caller promises.
            unsafe { results.write(found.len()) };
        }
        if out.is_null() {
            return Ok(());
        }
        if found.len() > room {
            return Err(Failure::argument(format!("{} results, room for {room}", found.len())));
        }
        for (i, x) in found.iter().enumerate() {
            let rank = rank(x.shape.len() as i32)?;
            let (size, dtype) = (size_of::<TensorMeta>(), dlpack::data_type(x.dtype)?);
            let mut shape = [0; MAX_RANK];
            shape.iter_mut().zip(&x.shape).for_each(|(to, &size)| *to = size as i64);
            // SAFETY: as the caller promises, and there is room.
            unsafe { out.add(i).write(TensorMeta { size, rank: rank as i32, dtype, shape }) };
        }
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, find) }
}

/// Frees an operation; does nothing for null.
///
/// # Safety
/// `op` is null or a handle that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_op_free(op: *mut Op) {
    if handle::released(op) {
        // SAFETY: as the caller promises; handles are made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(op) });
    }
}
