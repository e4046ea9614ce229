//! Operations that keep values for a reverse pass, and the reverse pass.

use std::ffi::c_int;

use t4a_diff::{Cotangents, Eager, Kept, Kind, Meta, Operation, Reverse, Value};
use t4a_operations::AnyOperation;
use t4a_operations::wire::operand;
use t4a_tensor::AnyTensor;

use crate::described::Described;
use crate::dlpack::DlTensor;
use crate::error::{Error, Failure, Status, enter};
use crate::handle;
use crate::op::{Op, flags, list, of};
use crate::parts;
use crate::run::{Borrowed, check_process, hand_over};
use crate::tensor::Tensor;

/// Values that were kept for a reverse pass.
#[derive(Debug)]
pub struct Saved {
    op: AnyOperation,
    inputs: Vec<Meta>,
    results: Vec<Meta>,
    hidden: usize,
    kept: Kept<Eager>,
    wanted: Vec<bool>,
}

const fn shared<T: Send + Sync>() {}
const _: () = shared::<Saved>();
const _: () = shared::<Op>();

/// Runs an operation and keeps what its rule needs.
///
/// # Safety
/// As [`t4a_run`](crate::run::t4a_run), with handles for operands; `wanted` is null or valid for `count` bytes, `saved` for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_run_saved(
    op: *const Op,
    inputs: *const *const Tensor,
    count: usize,
    wanted: *const u8,
    out: *mut *const Tensor,
    room: usize,
    results: *mut usize,
    saved: *mut *mut Saved,
    error: *mut *mut Error,
) -> c_int {
    let run = || {
        check_process()?;
        if saved.is_null() {
            return Err(Failure::null("the place of what is saved"));
        }
        // SAFETY: as the caller promises.
        let (op, inputs, wanted) = unsafe {
            let wanted = flags(wanted, count, "the flags of operands")?;
            (of(op)?, list(inputs, count, "the operands")?, wanted)
        };
        let mut tensors = Vec::with_capacity(inputs.len());
        for (i, &x) in inputs.iter().enumerate() {
            // SAFETY: as the caller promises.
            let x = unsafe { handle::get(x, &format!("operand {i}")) }?;
            tensors.extend(parts::split(x.any.clone())?);
        }
        let wanted = parts::operand_flags(op, &wanted)?;
        let meta = |x: &AnyTensor| Meta { shape: x.shape().into(), dtype: x.dtype() };
        let metas: Vec<Meta> = tensors.iter().map(meta).collect();
        let own = op.checked_results(&metas)?;
        if wanted.len() != metas.len() {
            return Err(Failure::argument(
                "an operand that is complex is one that is real here, or the other way",
            ));
        }
        if let Some(i) = (0..wanted.len()).find(|&i| wanted[i] && op.kind(i) != Kind::Float) {
            return Err(Failure::argument(format!(
                "operand {i} holds no floats and has no cotangent"
            )));
        }
        let values: Vec<Value<Eager>> = tensors.into_iter().map(operand).collect();
        let forward = op.forward(&values, &wanted)?;
        let keep = Kept::new(op.keep(&wanted), &values, &forward);
        let hidden = forward.hidden.len();
        let all = parts::join(op, op.returned(&metas, forward)?)?;
        // SAFETY: as the caller promises.
        unsafe { hand_over(all, out, room, results)? };
        let keep =
            Saved { op: op.clone(), inputs: metas, results: own, hidden, kept: keep, wanted };
        // SAFETY: as the caller promises, and it is not null.
        unsafe { saved.write(handle::made(Box::into_raw(Box::new(keep))).cast_mut()) };
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, run) }
}

impl Saved {
    /// Cotangents of the wanted operands, of those of the results; none is zero.
    fn vjp(&self, given: &[Option<AnyTensor>]) -> Result<Vec<AnyTensor>, Failure> {
        let mut arrays = Vec::with_capacity(self.results.len());
        let mut results = self.results.iter();
        let groups = parts::results(&self.op, self.results.len());
        for (i, &group) in groups.iter().enumerate() {
            let own: Vec<&Meta> = results.by_ref().take(group.into()).collect();
            let Some(x) = given.get(i).cloned().flatten() else {
                arrays.extend(std::iter::repeat_n(None, group.into()));
                continue;
            };
            let parts = parts::split(x)?;
            let fits = |(x, y): (&AnyTensor, &&Meta)| (x.dtype(), x.shape()) == (y.dtype, &y.shape);
            if parts.len() != own.len() || !parts.iter().zip(&own).all(fits) {
                let text = format!(
                    "cotangent {i} is {} {:?}, its result {} {:?}, {} parts and {}",
                    parts[0].dtype().name(),
                    parts[0].shape(),
                    own[0].dtype.name(),
                    own[0].shape,
                    parts.len(),
                    own.len()
                );
                return Err(Failure::new(Status::Shape, text));
            }
            arrays.extend(parts.into_iter().map(|x| Some(Eager::from(x))));
        }
        if given.len() > groups.len() {
            let text = format!("{} cotangents for {} results", given.len(), groups.len());
            return Err(Failure::argument(text));
        }
        let mut back: Cotangents<Eager> = Vec::new();
        if arrays.iter().any(Option::is_some) && self.wanted.contains(&true) {
            let hidden = vec![None; self.hidden];
            let (kept, wanted) = (&self.kept, &self.wanted[..]);
            let reverse = Reverse { kept, cotangents: &arrays, hidden: &hidden, wanted };
            back = self.op.fused_vjp(&reverse)?;
        }
        back.resize_with(self.wanted.len(), || None);
        let mut all = Vec::new();
        for (x, meta) in
            back.into_iter().zip(&self.inputs).zip(&self.wanted).filter(|x| *x.1).map(|x| x.0)
        {
            all.push(match x {
                Some(x) => x.into_tensor()?,
                None => AnyTensor::zeros(&meta.shape, meta.dtype)?,
            });
        }
        // The groups of operands are those of the results of a vjp of everything.
        let given = vec![true; self.results.len()];
        let vjp = t4a_operations::Vjp::new(self.op.clone(), given, self.wanted.clone())?;
        parts::join(&vjp.into(), all)
    }
}

/// Cotangents of the operands that were wanted; a null pointer is a cotangent that is zero.
///
/// # Safety
/// `saved` is null or valid; the others as for [`t4a_run`](crate::run::t4a_run).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_saved_vjp(
    saved: *const Saved,
    cotangents: *const *const DlTensor,
    count: usize,
    out: *mut *const Tensor,
    room: usize,
    results: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    let run = || {
        check_process()?;
        // SAFETY: as the caller promises.
        let (saved, given) = unsafe {
            let saved = handle::get(saved, "what was saved")?;
            (saved, list(cotangents, count, "the cotangents")?)
        };
        let mut described = Vec::new();
        let mut tensors = Vec::new();
        for (i, &x) in given.iter().enumerate() {
            if x.is_null() {
                tensors.push(None);
                continue;
            }
            // SAFETY: as the caller promises.
            unsafe {
                let x = Described::read(x, format_args!("cotangent {i}"))?;
                tensors.push(Some(x.tensor(None, Box::new(()))?));
                described.push(x);
            }
        }
        let lent = Borrowed::places(&described);
        let all = saved.vjp(&tensors)?;
        drop(tensors);
        // SAFETY: as the caller promises.
        unsafe { lent.hand_over(all, out, room, results) }
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, run) }
}

/// Frees what was saved; null is nothing.
///
/// # Safety
/// `saved` is null or valid, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_saved_free(saved: *mut Saved) {
    if handle::released(saved) {
        // SAFETY: as the caller promises; made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(saved) });
    }
}
