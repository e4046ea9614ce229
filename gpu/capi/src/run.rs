//! Running an operation on operands of a caller.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use burn::tensor::backend::Backend as _;
use burn::tensor::ops::{FloatTensorOps as _, IntTensorOps as _};
use burn::tensor::{DType as BurnDType, FloatDType, IntDType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_t4a::ext::operation::{Array as _, Flags as _, Integers as _, Operand, Operations as _};
use burn_t4a::ext::primitive::Floats;
use cubecl::Runtime as _;
use cubecl::cuda::{CudaDevice, CudaRuntime};
use cubecl::stream_id::StreamId;
use t4a::dlpack::{DlTensor, Managed, data_type};
use t4a::error::{Error, Failure, Status, enter};
use t4a::op::{Op, list, of};
use t4a::parts;
use t4a_diff::{Meta, Operation as _, Value};
use t4a_operations::AnyOperation;
use t4a_tensor::{AnyTensor, DType};

use crate::driver::{CallerStream, Current};
use crate::faults::observed;
use crate::operands::{CudaOperands, burn_dtype};
use crate::results::{CudaResult, reclaim};
use crate::{Card, CardTensor};

/// One operation at a time, on one stream of CubeCL, so that they share its memory.
static ENTRY: Mutex<()> = Mutex::new(());
const STREAM: StreamId = StreamId { value: 0 };

/// Waits for the kernels of this library.
pub(crate) fn wait(device: &CudaDevice) -> Result<(), Failure> {
    let failed = |e| Failure::new(Status::Internal, format!("a kernel on CUDA: {e:?}"));
    Card::sync(device).map_err(failed)
}

/// Runs an operation on CUDA tensors that the caller lends for the call. Waits for `stream` before it reads them, and
/// returns after all work is complete.
///
/// # Safety
/// `op` is null or a handle of this library; `inputs` is null or valid for `count` pointers, each null or valid with its
/// memory; `stream` is a stream of its device; `out` is null or valid for `room` writes, `results` and `error` for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_cuda_run(
    op: *const Op,
    inputs: *const *const DlTensor,
    count: usize,
    stream: i64,
    out: *mut *mut Managed,
    room: usize,
    results: *mut usize,
    error: *mut *mut Error,
) -> c_int {
    let run = || {
        // SAFETY: as the caller promises.
        let (op, operands) =
            unsafe { (of(op)?, CudaOperands::read(list(inputs, count, "the operands")?)?) };
        let metas = parts::split_metas(&operands.metas());
        let returned = op.returns(&metas)?;
        let joined = parts::join_metas(op, &returned)?;
        if joined.len() > room || (out.is_null() && !joined.is_empty()) {
            let room = if out.is_null() { 0 } else { room };
            return Err(Failure::argument(format!("{} results, room for {room}", joined.len())));
        }
        let stream = CallerStream::of(stream)?;
        let _entry = ENTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let current = Current::enter(operands.device)?;
        stream.check()?;
        let call = CudaCall { op, operands: &operands, metas: &metas, returned: &returned };
        // SAFETY: as the caller promises.
        let work = || unsafe { call.run(&current, stream, &joined) };
        let made = STREAM.executes(|| observed(&CudaDevice::new(operands.device), work))?;
        for (i, made) in made.into_iter().enumerate() {
            // SAFETY: as the caller promises, and there is room.
            unsafe { out.add(i).write(made.give().as_ptr()) };
        }
        if !results.is_null() {
            // SAFETY: as the caller promises.
            unsafe { results.write(joined.len()) };
        }
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, run) }
}

/// Gives memory that tensors have released, and that no operation uses, back to the driver.
///
/// # Safety
/// `error` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_cuda_free_memory(device: i32, error: *mut *mut Error) -> c_int {
    let free = || {
        let number = usize::try_from(device)
            .map_err(|_| Failure::argument(format!("there is no CUDA device {device}")))?;
        let _entry = ENTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let current = Current::enter(number)?;
        let device = CudaDevice::new(number);
        let work = || {
            reclaim(&current, number)?;
            CudaRuntime::client(&device).memory_cleanup();
            wait(&device)
        };
        STREAM.executes(|| observed(&device, work))
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, free) }
}

/// A call whose arguments are checked.
struct CudaCall<'a> {
    op: &'a AnyOperation,
    operands: &'a CudaOperands,
    /// Shapes and dtypes of the arrays of the operation, and of those that it returns.
    metas: &'a [Meta],
    returned: &'a [Meta],
}

fn is_empty(x: &Meta) -> bool {
    x.shape.contains(&0)
}

fn internal(text: impl Into<String>) -> Failure {
    Failure::new(Status::Internal, text)
}

impl CudaCall<'_> {
    /// # Safety
    /// The memory of the operands is valid, and complete in the order of the stream.
    unsafe fn run(
        &self,
        current: &Current,
        stream: CallerStream,
        joined: &[Meta],
    ) -> Result<Vec<CudaResult>, Failure> {
        reclaim(current, self.operands.device)?;
        let device = CudaDevice::new(self.operands.device);
        // SAFETY: as the caller promises.
        let operands = unsafe { self.operands.import(stream)? };
        let arrays = match self.metas.iter().chain(self.returned).any(is_empty) {
            true => self.on_host(operands, &device)?,
            false => self.on_device(operands.into_iter().flatten().collect())?,
        };
        let mut tensors = self.joined(arrays, joined)?;
        let client = CudaRuntime::client(&device);
        let range = |x: &CardTensor| -> Result<std::ops::Range<u64>, Failure> {
            let found = client.get_resource(x.handle.clone());
            let found = found.map_err(|e| internal(format!("memory of a result: {e}")))?;
            let at = found.resource().ptr;
            Ok(at..at + (x.meta.num_elements() * x.dtype.size()) as u64)
        };
        // Consumers may write to results, which must not share memory.
        let mut ranges: Vec<Option<std::ops::Range<u64>>> = Vec::with_capacity(tensors.len());
        for x in &mut tensors {
            let Some(x) = x else {
                ranges.push(None);
                continue;
            };
            let mut own = range(x)?;
            let shared = |x: &std::ops::Range<u64>| x.start < own.end && own.start < x.end;
            if ranges.iter().flatten().any(shared) {
                // The copy has padded rows.
                *x = into_contiguous(x.copy());
                own = range(x)?;
            }
            ranges.push(Some(own));
        }
        wait(&device)?;
        let made = |((x, range), meta): ((Option<CardTensor>, _), &Meta)| {
            let range: Option<std::ops::Range<u64>> = range;
            let memory = range.zip(x).map(|(range, x)| (range.start, x.handle));
            let (device, shape) = (self.operands.device, meta.shape.clone());
            Ok(CudaResult { device, dtype: data_type(meta.dtype)?, shape, memory })
        };
        tensors.into_iter().zip(ranges).zip(joined).map(made).collect()
    }

    /// Results, then integer results as `i64`.
    fn on_device(&self, operands: Vec<Operand<Card>>) -> Result<Vec<Option<CardTensor>>, Failure> {
        let tracked = vec![false; operands.len()];
        let out = Card::run(self.op, &operands, &tracked)?;
        drop(operands);
        let results = out.results.into_iter().map(|x| x.0);
        let indices = self.returned.len() - results.len().min(self.returned.len());
        let indices = out.extra.into_iter().take(indices);
        let indices = indices.map(|x| Card::int_cast(x.integers().0.clone(), IntDType::I64));
        Ok(results.chain(indices).map(Some).collect())
    }

    /// The engine computes operations on operands or results without elements, for which there are no kernels.
    fn on_host(
        &self,
        operands: Vec<Option<Operand<Card>>>,
        device: &CudaDevice,
    ) -> Result<Vec<Option<CardTensor>>, Failure> {
        let tensor = |(x, meta): (Option<Operand<Card>>, &Meta)| -> Result<AnyTensor, Failure> {
            Ok(match x {
                None => AnyTensor::zeros(&meta.shape, meta.dtype)?,
                Some(Value::Float(x)) => x.elements()?.reshape(&meta.shape)?,
                Some(Value::Integers(x)) => x.elements()?.reshape(&meta.shape)?,
                Some(Value::Flags(x)) => x.elements()?.reshape(&meta.shape)?,
            })
        };
        let operands =
            operands.into_iter().zip(self.metas).map(tensor).collect::<Result<_, _>>()?;
        let beside = Floats::<Card>(Card::float_zeros(Shape::from([1]), device, FloatDType::F32));
        let moved = |x: AnyTensor| match (x.shape().contains(&0), x.dtype().is_float()) {
            (true, _) => None,
            (_, true) => Some(beside.constant(x).0),
            (_, false) => Some(Card::int_cast(beside.indices(x).0, IntDType::I64)),
        };
        Ok(self.op.run(operands)?.into_iter().map(moved).collect())
    }

    /// Row-major tensors of the caller: pairs of arrays joined to complex numbers.
    fn joined(
        &self,
        arrays: Vec<Option<CardTensor>>,
        metas: &[Meta],
    ) -> Result<Vec<Option<CardTensor>>, Failure> {
        let groups = parts::results(self.op, arrays.len());
        if groups.len() != metas.len() {
            return Err(internal(format!(
                "{} results, {} of them described",
                groups.len(),
                metas.len()
            )));
        }
        let mut arrays = arrays.into_iter();
        let mut all = Vec::with_capacity(groups.len());
        for (group, meta) in groups.into_iter().zip(metas) {
            let mut parts: Vec<CardTensor> = Vec::new();
            for _ in 0..group {
                parts.extend(arrays.next().ok_or_else(|| internal("a result is missing"))?);
            }
            if is_empty(meta) {
                all.push(None);
                continue;
            }
            let x = match (group, parts.len()) {
                (2, 2) => complex(parts),
                (1, 1) => into_contiguous(parts.remove(0)),
                _ => return Err(internal("a result has no elements")),
            };
            let parts = if meta.dtype.is_complex() { 2 } else { 1 };
            let count = meta.shape.iter().product::<usize>() * parts;
            if x.meta.num_elements() != count || x.dtype != expected(meta.dtype)? {
                let text = format!(
                    "{:?} of {} for {:?} of {}",
                    x.meta.shape(),
                    x.dtype.name(),
                    meta.shape,
                    meta.dtype.name()
                );
                return Err(internal(format!("the result of {}: {text}", self.op.name())));
            }
            all.push(Some(x));
        }
        Ok(all)
    }
}

fn expected(dtype: DType) -> Result<BurnDType, Failure> {
    burn_dtype(t4a::dlpack::real(dtype).unwrap_or(dtype))
}

/// Real and imaginary parts along a new last axis.
fn complex(parts: Vec<CardTensor>) -> CardTensor {
    let column = |x: CardTensor| {
        let shape: Shape = x.meta.shape().to_vec().into_iter().chain([1]).collect();
        Card::float_reshape(x, shape)
    };
    let parts: Vec<CardTensor> = parts.into_iter().map(column).collect();
    let axis = parts[0].meta.num_dims() - 1;
    into_contiguous(Card::float_cat(parts, axis))
}
