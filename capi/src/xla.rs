//! Operations as custom calls of XLA, by the structs of its foreign function interface, version 0.1.
//!
//! The attribute `text` is the operation. Structs of XLA grow at their ends, so those of later versions are read
//! as these.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use t4a_operations::AnyOperation;
use t4a_tensor::DType;
use t4a_tensor::layout::{Dims, Layout};

use crate::described::Described;
use crate::error::{Failure, Status, protected};
use crate::run::{Checks, into, row_major};

/// Maximum number of parsed operations in the cache.
const CAPACITY: usize = 512;

#[repr(C)]
struct Extension {
    size: usize,
    kind: i32,
    next: *mut Extension,
}

/// Kind of the extension by which XLA queries the version.
const METADATA: i32 = 1;

#[repr(C)]
struct ApiVersion {
    size: usize,
    extension: *mut Extension,
    major: i32,
    minor: i32,
}

#[repr(C)]
struct Metadata {
    size: usize,
    version: ApiVersion,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct ErrorCreate {
    size: usize,
    extension: *mut Extension,
    message: *const c_char,
    code: i32,
}

/// First fields of the function table of XLA.
#[repr(C)]
struct Api {
    size: usize,
    extension: *mut Extension,
    version: ApiVersion,
    internal: *const c_void,
    error: unsafe extern "C" fn(*mut ErrorCreate) -> *mut c_void,
}

/// List of arguments or of results.
#[repr(C)]
struct List {
    size: usize,
    extension: *mut Extension,
    count: i64,
    kinds: *const i32,
    items: *const *const Buffer,
}

#[repr(C)]
struct Span {
    at: *const u8,
    len: usize,
}

#[repr(C)]
struct Attributes {
    size: usize,
    extension: *mut Extension,
    count: i64,
    kinds: *const i32,
    names: *const *const Span,
    values: *const *const c_void,
}

const BUFFER: i32 = 1;
const STRING: i32 = 4;

/// First fields of a call frame.
#[repr(C)]
pub struct CallFrame {
    size: usize,
    extension: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: i32,
    arguments: List,
    results: List,
    attributes: Attributes,
}

#[repr(C)]
struct Buffer {
    size: usize,
    extension: *mut Extension,
    dtype: i32,
    data: *mut c_void,
    rank: i64,
    dims: *const i64,
}

fn dtype(code: i32) -> Result<DType, Failure> {
    Ok(match code {
        1 => DType::Bool,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        15 => DType::C32,
        16 => DType::BF16,
        18 => DType::C64,
        _ => return Err(Failure::new(Status::Dtype, format!("arrays of the dtype {code} of XLA"))),
    })
}

/// # Safety
/// The list was passed by XLA.
unsafe fn buffers(list: &List, what: &str) -> Result<Vec<Described>, Failure> {
    let mut all = Vec::with_capacity(list.count.max(0) as usize);
    for i in 0..list.count.max(0) as usize {
        // SAFETY: as the caller promises: `kinds` and `items` have `count` entries, and each buffer has as many sizes as axes.
        let (kind, buffer) = unsafe { (*list.kinds.add(i), *list.items.add(i)) };
        if kind != BUFFER {
            return Err(Failure::argument(format!("{what} {i} is no array")));
        }
        // SAFETY: as above.
        let (x, dims) = unsafe {
            let x = &*buffer;
            let rank = x.rank.max(0) as usize;
            (x, if rank == 0 { &[][..] } else { std::slice::from_raw_parts(x.dims, rank) })
        };
        let what = format_args!("{what} {i}");
        all.push(Described::new(dtype(x.dtype)?, dims, None, x.data.cast(), what)?);
    }
    Ok(all)
}

/// # Safety
/// The attributes were passed by XLA.
unsafe fn text(attributes: &Attributes) -> Result<&str, Failure> {
    // SAFETY: as the caller promises.
    let string = |span: *const Span| unsafe { std::slice::from_raw_parts((*span).at, (*span).len) };
    for i in 0..attributes.count.max(0) as usize {
        // SAFETY: as above: `kinds`, `names` and `values` have `count` entries.
        let (kind, name, value) = unsafe {
            (*attributes.kinds.add(i), *attributes.names.add(i), *attributes.values.add(i))
        };
        if kind == STRING && string(name) == b"text" {
            return std::str::from_utf8(string(value.cast()))
                .map_err(|e| Failure::argument(e.to_string()));
        }
    }
    Err(Failure::argument("the attribute text, an operation, is missing"))
}

/// Parsed operation with its text.
#[derive(Debug)]
struct Known {
    text: String,
    op: AnyOperation,
    /// Shapes and dtypes of the operands and results of the first call that passed the checks.
    checked: OnceLock<Accepted>,
}

type Metas = Vec<(DType, Dims)>;

/// Shapes and dtypes of operands and of results, and the row-major layouts of the operands.
type Accepted = ([Metas; 2], Vec<Layout>);

impl Known {
    /// Layouts of the operands, if a call with these shapes and dtypes passed the checks.
    fn accepted(&self, lists: [&[Described]; 2]) -> Option<&[Layout]> {
        let same = |(x, (dtype, shape)): (&Described, &(DType, Dims))| {
            x.dtype == *dtype && x.shape == *shape
        };
        let alike = |(own, all): (&Metas, &[Described])| {
            own.len() == all.len() && all.iter().zip(own).all(same)
        };
        let (own, layouts) = self.checked.get()?;
        own.iter().zip(lists).all(alike).then_some(layouts)
    }

    /// Stores that a call passed the checks.
    fn accept(&self, lists: [&[Described]; 2]) -> Result<(), Failure> {
        let metas = |all: &[Described]| all.iter().map(|x| (x.dtype, x.shape.clone())).collect();
        let layouts = row_major(lists[0].iter().map(|x| (x.dtype, &x.shape[..])))?;
        self.checked.get_or_init(|| (lists.map(metas), layouts));
        Ok(())
    }
}

/// Number of recent operations per thread, found by the address of the text, which is fixed for an executable.
const RECENT: usize = 16;

thread_local! {
    static LAST: RefCell<VecDeque<(usize, Arc<Known>)>> = const { RefCell::new(VecDeque::new()) };
}

/// Operation of a text, from the caches if possible.
fn operation(text: &str) -> Result<Arc<Known>, Failure> {
    let at = text.as_ptr() as usize;
    LAST.with_borrow_mut(|last| {
        // After an executable is freed, the address may belong to another text.
        if let Some((_, known)) = last.iter().find(|(own, known)| *own == at && known.text == text)
        {
            return Ok(known.clone());
        }
        let known = read(text)?;
        last.truncate(RECENT - 1);
        last.push_front((at, known.clone()));
        Ok(known)
    })
}

fn read(text: &str) -> Result<Arc<Known>, Failure> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Known>>>> = LazyLock::new(Mutex::default);
    let lock = || KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = lock().get(text) {
        return Ok(known.clone());
    }
    let op = AnyOperation::from_text(text)?;
    let read = Arc::new(Known { text: text.into(), op, checked: OnceLock::new() });
    let mut known = lock();
    if known.len() >= CAPACITY {
        known.clear();
    }
    known.insert(text.into(), read.clone());
    Ok(read)
}

/// # Safety
/// The frame was passed by XLA.
unsafe fn execute(frame: &CallFrame) -> Result<(), Failure> {
    // SAFETY: as the caller promises; arguments and results are valid during the call and do not overlap.
    unsafe {
        let known = operation(text(&frame.attributes)?)?;
        let operands = buffers(&frame.arguments, "operand")?;
        let results = buffers(&frame.results, "result")?;
        let lists = [&operands[..], &results[..]];
        if let Some(layouts) = known.accepted(lists) {
            return into(&known.op, &operands, &results, Checks::Process(layouts));
        }
        into(&known.op, &operands, &results, Checks::All)?;
        known.accept(lists)
    }
}

/// Handler of custom calls: `jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(lib.t4a_xla_execute))`. Returns null
/// or an error object of XLA.
///
/// # Safety
/// `frame` is null or a call frame of XLA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_xla_execute(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: as the caller promises.
    let Some(frame) = (unsafe { frame.as_ref() }) else { return std::ptr::null_mut() };
    // SAFETY: as the caller promises.
    if let Some(extension) = unsafe { frame.extension.as_ref() }
        && extension.kind == METADATA
    {
        // SAFETY: an extension of this kind has this type; the other fields of the frame are not set then.
        unsafe {
            let metadata = (*frame.extension.cast::<MetadataExtension>()).metadata;
            ((*metadata).version.major, (*metadata).version.minor) = (0, 1);
        }
        return std::ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    let Err(failure) = protected(|| unsafe { execute(frame) }) else { return std::ptr::null_mut() };
    // XLA_FFI_Error_Code: INVALID_ARGUMENT 3, RESOURCE_EXHAUSTED 8, UNIMPLEMENTED 12, INTERNAL 13.
    let code = match failure.status() {
        Status::Memory => 8,
        Status::Unsupported => 12,
        Status::Internal => 13,
        _ => 3,
    };
    let message = CString::new(failure.text().replace('\0', " ")).unwrap_or_default();
    let (size, extension) = (size_of::<ErrorCreate>(), std::ptr::null_mut());
    let mut create = ErrorCreate { size, extension, message: message.as_ptr(), code };
    // SAFETY: the function table was passed by XLA; the function copies the message.
    unsafe { ((*frame.api).error)(&raw mut create) }
}
