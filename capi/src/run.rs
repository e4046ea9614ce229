//! Running operations on tensors of a caller.

use std::ffi::c_int;
#[cfg(unix)]
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

use t4a_diff::Meta;
use t4a_operations::AnyOperation;
use t4a_tensor::layout::Layout;
use t4a_tensor::{AnyTensor, DType};

use crate::described::Described;
use crate::dlpack::{self, DlTensor};
use crate::error::{Error, Failure, Status, enter};
use crate::op::{Op, list, of};
use crate::parts;
use crate::tensor::{Tensor, duplicate};

/// State of this process: no operation yet, operations, or a fork after the first one.
static PROCESS: AtomicU8 = AtomicU8::new(UNUSED);
const UNUSED: u8 = 0;
const USED: u8 = 1;
const FORKED: u8 = 2;

/// Refuses to wait in a forked process for threads that it does not have.
#[inline]
pub(crate) fn check_process() -> Result<(), Failure> {
    match PROCESS.load(Ordering::Relaxed) {
        USED => Ok(()),
        UNUSED => first_operation(),
        _ => Err(Failure::new(
            Status::Unsupported,
            "the process was forked after the first operation, without the threads of the library: start \
             it anew (`spawn`), or fork before the first operation",
        )),
    }
}

/// Marks the process as used, and its future children as forked.
#[cold]
fn first_operation() -> Result<(), Failure> {
    #[cfg(unix)]
    {
        static MARKED: Once = Once::new();
        extern "C" fn child() {
            PROCESS.store(FORKED, Ordering::Relaxed);
        }
        // SAFETY: the function of a child stores a number. Without memory for the entry there is no check.
        MARKED.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(child));
        });
    }
    let _ = PROCESS.compare_exchange(UNUSED, USED, Ordering::Relaxed, Ordering::Relaxed);
    Ok(())
}

/// Operands that a caller lends for a call.
pub(crate) struct Borrowed<'a> {
    tensors: Vec<AnyTensor>,
    described: &'a [Described],
}

/// Reads the operands of a caller.
///
/// # Safety
/// Every pointer is null or valid.
unsafe fn described(inputs: &[*const DlTensor]) -> Result<Vec<Described>, Failure> {
    let mut all = Vec::with_capacity(inputs.len());
    for (i, &x) in inputs.iter().enumerate() {
        // SAFETY: as the caller promises.
        all.push(unsafe { Described::read(x, format_args!("operand {i}")) }?);
    }
    Ok(all)
}

impl<'a> Borrowed<'a> {
    /// `layouts`: the row-major layouts of the operands, or nothing.
    ///
    /// # Safety
    /// The memory is valid, unchanged as long as the tensors are used.
    pub(crate) unsafe fn of(
        described: &'a [Described],
        layouts: &[Layout],
    ) -> Result<Self, Failure> {
        let mut tensors = Vec::with_capacity(described.len());
        for (i, x) in described.iter().enumerate() {
            // SAFETY: as the caller promises.
            let tensor = unsafe { x.tensor(layouts.get(i), Box::new(())) }?;
            match dlpack::real(x.dtype) {
                Some(_) => tensors.extend(parts::split(tensor)?),
                None => tensors.push(tensor),
            }
        }
        Ok(Self { tensors, described })
    }

    /// Memory without its tensors.
    pub(crate) fn places(described: &'a [Described]) -> Self {
        Self { tensors: Vec::new(), described }
    }

    /// A result that outlives the call: a copy, if it is a view of what was lent.
    fn own(&self, x: AnyTensor) -> Result<AnyTensor, Failure> {
        let at = x.buffer().as_ptr() as usize;
        let lent = |x: &Described| x.range().contains(&at);
        if !self.described.iter().any(lent) {
            return Ok(x);
        }
        let copy = x.to_contiguous()?;
        match copy.buffer().same_memory(x.buffer()) {
            false => Ok(copy),
            true => duplicate(&copy),
        }
    }

    /// [`hand_over`] of results that outlive the call.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn hand_over(
        &self,
        all: Vec<AnyTensor>,
        out: *mut *const Tensor,
        room: usize,
        count: *mut usize,
    ) -> Result<(), Failure> {
        let all = all.into_iter().map(|x| self.own(x)).collect::<Result<Vec<_>, _>>()?;
        // SAFETY: as the caller promises.
        unsafe { hand_over(all, out, room, count) }
    }
}

/// Checks of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Checks<'a> {
    /// All checks.
    All,
    /// Only that of the process, for operands whose shapes and dtypes the operation accepted before, with the row-major
    /// layouts of these shapes.
    Process(&'a [Layout]),
}

impl Checks<'_> {
    fn layouts(&self) -> &[Layout] {
        match self {
            Checks::All => &[],
            Checks::Process(layouts) => layouts,
        }
    }
}

/// Row-major layouts of these shapes and dtypes.
pub(crate) fn row_major<'a>(
    all: impl IntoIterator<Item = (DType, &'a [usize])>,
) -> Result<Vec<Layout>, Failure> {
    let layout =
        |(dtype, shape): (DType, &[usize])| Ok(Layout::contiguous("operand", shape, dtype.size())?);
    all.into_iter().map(layout).collect()
}

/// The results of an operation on memory that is lent, row-major. Those of more than `copied` bytes are in memory of
/// their own with no other owner; the caller copies smaller ones while the operands are lent.
///
/// # Safety
/// The memory is valid, unchanged during the call.
pub(crate) unsafe fn results(
    op: &AnyOperation,
    described: &[Described],
    checks: Checks<'_>,
    copied: usize,
) -> Result<Vec<AnyTensor>, Failure> {
    check_process()?;
    // SAFETY: as the caller promises.
    let mut lent = unsafe { Borrowed::of(described, checks.layouts())? };
    let operands = std::mem::take(&mut lent.tensors);
    let all = match checks {
        Checks::All => op.run(operands)?,
        Checks::Process(_) => op.run_unchecked(operands)?,
    };
    let mut all = parts::join(op, all)?;
    for x in &mut all {
        *x = x.to_contiguous()?;
        if x.numel() * x.dtype().size() > copied {
            *x = lent.own(x.clone())?;
        }
    }
    // After all of them, since results may share memory.
    for i in 0..all.len() {
        if all[i].numel() * all[i].dtype().size() > copied && all[i].buffer().is_shared() {
            all[i] = duplicate(&all[i])?;
        }
    }
    Ok(all)
}

/// Hands tensors to the caller: all of them, or none.
///
/// # Safety
/// `out` is null or valid for `room` writes, `count` is null or valid for a write.
pub(crate) unsafe fn hand_over(
    tensors: Vec<AnyTensor>,
    out: *mut *const Tensor,
    room: usize,
    count: *mut usize,
) -> Result<(), Failure> {
    if tensors.len() > room || (out.is_null() && !tensors.is_empty()) {
        let text =
            format!("{} results, room for {}", tensors.len(), if out.is_null() { 0 } else { room });
        return Err(Failure::argument(text));
    }
    let mut handles = Vec::with_capacity(tensors.len());
    for x in tensors {
        match Tensor::handle(x) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                // SAFETY: handles of above, not given to anybody.
                handles.into_iter().for_each(|x| unsafe { Tensor::release(x) });
                return Err(error);
            }
        }
    }
    for (i, &handle) in handles.iter().enumerate() {
        // SAFETY: as the caller promises, and there is room.
        unsafe { out.add(i).write(handle) };
    }
    if !count.is_null() {
        // SAFETY: as the caller promises.
        unsafe { count.write(handles.len()) };
    }
    Ok(())
}

/// Runs an operation on tensors that the caller lends for the call.
///
/// # Safety
/// `op` is null or a handle; `inputs` is null or valid for `count` pointers, each null or valid with its
/// memory; `out` is null or valid for `room` writes, `results` and `error` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_run(
    op: *const Op,
    inputs: *const *const DlTensor,
    count: usize,
    out: *mut *const Tensor,
    room: usize,
    results: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    let run = || {
        check_process()?;
        // SAFETY: as the caller promises.
        let (op, described) =
            unsafe { (of(op)?, described(list(inputs, count, "the operands")?)?) };
        // SAFETY: as the caller promises.
        let mut lent = unsafe { Borrowed::of(&described, &[])? };
        let operands = std::mem::take(&mut lent.tensors);
        let all = parts::join(op, op.run(operands)?)?;
        // SAFETY: as the caller promises.
        unsafe { lent.hand_over(all, out, room, results) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, run) }
}

/// Checks that an operation accepts the operands, and that its results fit into these places.
fn check_places(
    op: &AnyOperation,
    operands: &[Described],
    places: &[Described],
) -> Result<(), Failure> {
    let meta = |x: &Described| Meta { shape: x.shape.to_vec(), dtype: x.dtype };
    let metas: Vec<Meta> = operands.iter().map(meta).collect();
    let wanted = parts::join_metas(op, &op.returns(&parts::split_metas(&metas))?)?;
    if wanted.len() != places.len() {
        let text = format!("{} results, {} places", wanted.len(), places.len());
        return Err(Failure::argument(text));
    }
    for (i, (place, want)) in places.iter().zip(&wanted).enumerate() {
        let integers = place.dtype.is_int() && want.dtype.is_int();
        if place.dtype != want.dtype && !integers {
            let (dtype, given) = (want.dtype.name(), place.dtype.name());
            let text = format!("result {i} is {dtype}, its place {given}");
            return Err(Failure::new(Status::Dtype, text));
        }
        if place.shape[..] != want.shape[..] || !place.is_injective() {
            let (shape, given, strides) = (&want.shape, &place.shape, &place.strides);
            let text = format!(
                "result {i} has shape {shape:?}, its place {given:?} with strides {strides:?}; elements must not overlap"
            );
            return Err(Failure::new(Status::Shape, text));
        }
        let own = place.range();
        let others = operands.iter().chain(&places[..i]);
        if others.map(Described::range).any(|x| x.start < own.end && own.start < x.end) {
            let text = format!("the memory of result {i} overlaps an operand or another result");
            return Err(Failure::argument(text));
        }
    }
    Ok(())
}

/// Runs an operation, with its results written into these places. Indices become the integers of their place.
///
/// # Safety
/// The memory of the operands is valid; the places are valid for writes, and no others write them. Without
/// [`Checks::All`]: places of the same shapes and dtypes passed the checks, and no memory overlaps.
pub(crate) unsafe fn into(
    op: &AnyOperation,
    operands: &[Described],
    places: &[Described],
    checks: Checks<'_>,
) -> Result<(), Failure> {
    check_process()?;
    if matches!(checks, Checks::All) {
        check_places(op, operands, places)?;
    }
    // SAFETY: as the caller promises.
    let lent = unsafe { Borrowed::of(operands, checks.layouts())? };
    let all = parts::join(op, op.run_unchecked(lent.tensors)?)?;
    for (x, place) in all.into_iter().zip(places) {
        let x = if x.dtype() == place.dtype { x } else { x.cast(place.dtype)? };
        // SAFETY: as the caller promises; shapes and dtypes agree, the memory is apart from operands.
        unsafe { place.write(&x) };
    }
    Ok(())
}

/// Runs an operation, with its results written into memory of the caller.
///
/// # Safety
/// As [`t4a_run`]; `out` is null or valid for `results` pointers, each null or valid, its memory for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_run_into(
    op: *const Op,
    inputs: *const *const DlTensor,
    count: usize,
    out: *const *mut DlTensor,
    results: usize,
    error: *mut *mut Error,
) -> c_int {
    let run = || {
        check_process()?;
        // SAFETY: as the caller promises.
        let (op, operands, out) = unsafe {
            let operands = described(list(inputs, count, "the operands")?)?;
            (of(op)?, operands, list(out, results, "the results")?)
        };
        let mut places = Vec::with_capacity(results);
        for (i, &x) in out.iter().enumerate() {
            // SAFETY: as the caller promises.
            places.push(unsafe { Described::read(x, format_args!("result {i}")) }?);
        }
        // SAFETY: as the caller promises.
        unsafe { into(op, &operands, &places, Checks::All) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, run) }
}
