//! Operands of a caller as tensors of CubeCL.
//!
//! CubeCL 0.10 does not accept memory of others, so each operand is copied once, on the device and on the stream of the
//! caller. Row-major operands are copied as they are; of others the span of their memory, or its rows if it has many gaps,
//! which a kernel then makes row-major.

use burn::tensor::ops::{FloatTensorOps as _, IntTensorOps as _};
use burn::tensor::{BoolDType, DType as BurnDType, IntDType, Scalar, Shape, Slice};
use burn_cubecl::kernel::into_contiguous;
use burn_t4a::ext::operation::Operand;
use burn_t4a::ext::primitive::{Bools, Floats, Indices};
use cubecl::Runtime as _;
use cubecl::cuda::{CudaDevice, CudaRuntime};
use cubecl::server::Handle;
use cubecl::zspace::metadata::Metadata;
use t4a::described::Described;
use t4a::dlpack::{self, CPU, CUDA, DlTensor};
use t4a::error::{Failure, Status};
use t4a_diff::{Kind, Meta, Value};
use t4a_tensor::DType;
use t4a_tensor::layout::{contiguous_strides, row_major};

use crate::driver::CallerStream;
use crate::{Card, CardTensor};

/// Operands up to this size share a buffer.
const SHARED: usize = 1 << 20;
/// Alignment of operands in a shared buffer, in bytes.
const ALIGNMENT: usize = 512;
/// Maximum number of copies of rows of an operand.
const COPIES: usize = 256;

/// Checked operands on one device.
pub(crate) struct CudaOperands {
    described: Vec<Described>,
    pub(crate) device: usize,
}

impl CudaOperands {
    /// # Errors
    /// For operands on several devices, or on others than those of CUDA; see [`Described::read_any`].
    ///
    /// # Safety
    /// Every pointer is null or valid.
    pub(crate) unsafe fn read(inputs: &[*const DlTensor]) -> Result<Self, Failure> {
        let mut first = None;
        let mut described = Vec::with_capacity(inputs.len());
        for (i, &x) in inputs.iter().enumerate() {
            // SAFETY: as the caller promises.
            let x = unsafe { x.as_ref() }.ok_or_else(|| Failure::null(&format!("operand {i}")))?;
            let device = *first.get_or_insert(x.device);
            if x.device != device {
                let text = format!(
                    "operand 0 is on {}, operand {i} on {}; one device is required",
                    named(device),
                    named(x.device)
                );
                return Err(Failure::new(Status::Unsupported, text));
            }
            if x.device.kind != CUDA {
                let text =
                    format!("operand {i} is on {}; memory of CUDA is required", named(x.device));
                return Err(Failure::new(Status::Unsupported, text));
            }
            // SAFETY: as the caller promises.
            described.push(unsafe { Described::read_any(x, format_args!("operand {i}")) }?);
        }
        let device = first.ok_or_else(|| Failure::argument("operands are required"))?;
        let device = usize::try_from(device.id)
            .map_err(|_| Failure::argument(format!("there is no CUDA device {}", device.id)))?;
        Ok(Self { described, device })
    }

    /// Shapes and dtypes of the tensors of the caller.
    pub(crate) fn metas(&self) -> Vec<Meta> {
        let meta = |x: &Described| Meta { shape: x.shape.to_vec(), dtype: x.dtype };
        self.described.iter().map(meta).collect()
    }

    /// Copies the operands; waits until the copies are complete. Complex ones are pairs. `None` for those without elements.
    ///
    /// # Safety
    /// The memory is valid, and complete in the order of the stream.
    pub(crate) unsafe fn import(
        &self,
        stream: CallerStream,
    ) -> Result<Vec<Option<Operand<Card>>>, Failure> {
        let device = CudaDevice::new(self.device);
        let client = CudaRuntime::client(&device);
        let sources: Vec<Option<OperandMemory>> =
            self.described.iter().map(OperandMemory::of).collect();
        let (mut shared, mut places) = (0, Vec::with_capacity(sources.len()));
        for bytes in sources.iter().map(|x| x.as_ref().map_or(0, |x| x.bytes)) {
            places.push((bytes > 0 && bytes <= SHARED).then_some(shared));
            if bytes <= SHARED {
                shared += bytes.next_multiple_of(ALIGNMENT);
            }
        }
        let address = |handle: &Handle| -> Result<u64, Failure> {
            let found = client.get_resource(handle.clone());
            let failed = |e| Failure::new(Status::Memory, format!("memory of an operand: {e}"));
            Ok(found.map_err(failed)?.resource().ptr)
        };
        let common = (shared > 0).then(|| client.empty(shared));
        let start = common.as_ref().map(&address).transpose()?.unwrap_or(0);
        let mut handles = Vec::with_capacity(sources.len());
        for (source, place) in sources.iter().zip(places) {
            handles.push(match (source, place, &common) {
                (None, ..) => None,
                (Some(source), Some(place), Some(common)) => {
                    let behind = shared - place - source.bytes;
                    let handle = common.clone().offset_start(place as u64);
                    Some((handle.offset_end(behind as u64), start + place as u64))
                }
                (Some(source), ..) => {
                    let handle = client.empty(source.bytes);
                    let at = address(&handle)?;
                    Some((handle, at))
                }
            });
        }
        // Fresh memory is valid in the order of the stream of CubeCL, and may be in use by earlier kernels.
        crate::run::wait(&device)?;
        let copied = sources.iter().zip(&handles).try_for_each(|copy| match copy {
            // SAFETY: as the caller promises; the buffer has as many bytes.
            (Some(source), Some((_, to))) => unsafe { source.copy(*to, stream) },
            _ => Ok(()),
        });
        // Also after an error: the buffers are used again, and the caller may release its memory.
        copied.and(stream.synchronize())?;
        let mut all = Vec::with_capacity(sources.len());
        for ((source, handle), described) in sources.into_iter().zip(handles).zip(&self.described) {
            match (source, handle) {
                (Some(source), Some((handle, _))) => {
                    let x = source.tensor(&device, handle)?;
                    all.extend(values(x, described.dtype)?.into_iter().map(Some));
                }
                _ => {
                    let parts = if described.dtype.is_complex() { 2 } else { 1 };
                    all.extend((0..parts).map(|_| None));
                }
            }
        }
        Ok(all)
    }
}

fn named(device: dlpack::Device) -> String {
    match device.kind {
        CPU => "the processor".into(),
        CUDA => format!("cuda:{}", device.id),
        kind => format!("a device of kind {kind}"),
    }
}

/// The dtype of Burn; booleans are bytes here.
pub(crate) fn burn_dtype(dtype: DType) -> Result<BurnDType, Failure> {
    Ok(match dtype {
        DType::F64 => BurnDType::F64,
        DType::F32 => BurnDType::F32,
        DType::F16 => BurnDType::F16,
        DType::BF16 => BurnDType::BF16,
        DType::I64 => BurnDType::I64,
        DType::I32 => BurnDType::I32,
        DType::I16 => BurnDType::I16,
        DType::I8 => BurnDType::I8,
        DType::U64 => BurnDType::U64,
        DType::U32 => BurnDType::U32,
        DType::U16 => BurnDType::U16,
        DType::U8 | DType::Bool => BurnDType::U8,
        other => {
            let text = format!("CUDA tensors of {} are not supported", other.name());
            return Err(Failure::new(Status::Dtype, text));
        }
    })
}

/// Memory of an operand with elements, complex numbers as an axis of size 2.
struct OperandMemory {
    dtype: DType,
    shape: Vec<usize>,
    /// Strides of the copy, in elements.
    strides: Vec<usize>,
    /// Axes that are reversed in the copy.
    reversed: Vec<usize>,
    /// The lowest address.
    from: u64,
    /// Size of the copy.
    bytes: usize,
    /// Axes of copies of rows, as size and stride of the operand in bytes, outermost first, and the number of bytes of a row.
    /// `None`: one copy of consecutive bytes.
    rows: Option<(Vec<[usize; 2]>, usize)>,
}

impl OperandMemory {
    fn of(x: &Described) -> Option<Self> {
        if x.shape.contains(&0) {
            return None;
        }
        let dtype = dlpack::real(x.dtype).unwrap_or(x.dtype);
        let parts = x.dtype.size() / dtype.size();
        let (mut shape, mut strides) = (x.shape.to_vec(), x.strides.to_vec());
        if parts == 2 {
            strides.iter_mut().for_each(|s| *s *= 2);
            shape.push(2);
            strides.push(1);
        } else if shape.is_empty() {
            // Burn has no rank 0.
            (shape, strides) = (vec![1], vec![1]);
        }
        let size = dtype.size();
        let from = (x.first as usize).wrapping_sub(x.below * x.dtype.size()) as u64;
        let span = (x.below + x.above + 1) * parts;
        let count: usize = shape.iter().product();
        let mut source = Self {
            dtype,
            strides: strides.iter().map(|s| s.unsigned_abs()).collect(),
            reversed: (0..shape.len()).filter(|&i| strides[i] < 0 && shape[i] > 1).collect(),
            from,
            bytes: span * size,
            rows: None,
            shape,
        };
        if row_major(&source.shape, &strides) {
            let strides = contiguous_strides(&source.shape);
            source.strides = strides.iter().map(|s| s.unsigned_abs()).collect();
        } else if span > 4 * count && span * size > SHARED {
            source.compact();
        }
        Some(source)
    }

    /// Replaces the copy of the span by copies of rows, if these are few.
    fn compact(&mut self) {
        let mut axes: Vec<usize> =
            (0..self.shape.len()).filter(|&i| self.shape[i] > 1 && self.strides[i] > 0).collect();
        axes.sort_by_key(|&i| std::cmp::Reverse(self.strides[i]));
        let size = self.dtype.size();
        let mut strides = vec![0; self.shape.len()];
        let mut count = 1;
        for &i in axes.iter().rev() {
            strides[i] = count;
            count *= self.shape[i];
        }
        let mut rows: Vec<[usize; 2]> =
            axes.iter().map(|&i| [self.shape[i], self.strides[i] * size]).collect();
        let mut width = size;
        if let Some([n, _]) = rows.pop_if(|row| row[1] == size) {
            width *= n;
        }
        let outer = rows.len().saturating_sub(1);
        let copies: usize = rows[..outer].iter().map(|row| row[0]).product();
        let pitched = rows.iter().all(|row| row[1] >= width && row[1] < i32::MAX as usize);
        if !rows.is_empty() && copies <= COPIES && pitched {
            (self.strides, self.bytes, self.rows) = (strides, count * size, Some((rows, width)));
        }
    }

    /// # Safety
    /// The memory of the operand is valid, and `to` is memory of [`OperandMemory::bytes`] bytes.
    unsafe fn copy(&self, to: u64, stream: CallerStream) -> Result<(), Failure> {
        let Some((rows, width)) = &self.rows else {
            // SAFETY: as the caller promises.
            return unsafe { stream.copy(self.from, to, self.bytes) };
        };
        let Some((&[n, pitch], outer)) = rows.split_last() else { return Ok(()) };
        let mut index = vec![0; outer.len()];
        let mut to = to;
        loop {
            let offset: usize = index.iter().zip(outer).map(|(i, row)| i * row[1]).sum();
            // SAFETY: rows of the operand, and consecutive parts of the copy.
            unsafe { stream.copy_rows(self.from + offset as u64, to, [n, *width, pitch])? };
            to += (n * width) as u64;
            let Some(axis) = (0..outer.len()).rev().find(|&i| index[i] + 1 < outer[i][0]) else {
                return Ok(());
            };
            index[axis] += 1;
            index[axis + 1..].fill(0);
        }
    }

    /// The copy as a row-major tensor.
    fn tensor(self, device: &CudaDevice, handle: Handle) -> Result<CardTensor, Failure> {
        let client = CudaRuntime::client(device);
        let meta =
            Metadata::new(self.shape.iter().copied().collect::<Shape>(), self.strides.to_vec());
        let x = CardTensor::new(client, handle, meta, device.clone(), burn_dtype(self.dtype)?);
        let x = into_contiguous(x);
        Ok(match (self.reversed.is_empty(), self.dtype.is_float()) {
            (true, _) => x,
            (_, true) => Card::float_flip(x, &self.reversed),
            (_, false) => Card::int_flip(x, &self.reversed),
        })
    }
}

/// Operands of the backend for a tensor: the parts of complex numbers, 32-bit integers, booleans.
fn values(x: CardTensor, dtype: DType) -> Result<Vec<Operand<Card>>, Failure> {
    if dtype.is_complex() {
        let shape = x.meta.shape().to_vec();
        let (&_, own) =
            shape.split_last().ok_or_else(|| Failure::new(Status::Internal, "no parts"))?;
        let own: Shape = if own.is_empty() { [1].into() } else { own.iter().copied().collect() };
        let part = |part: isize| {
            let mut slices = vec![Slice::full(); shape.len()];
            slices[shape.len() - 1] = Slice::new(part, Some(part + 1), 1);
            let part = Card::float_slice(x.clone(), &slices);
            Value::Float(Floats(into_contiguous(Card::float_reshape(part, own.clone()))))
        };
        return Ok(vec![part(0), part(1)]);
    }
    Ok(vec![match Kind::of(dtype) {
        Some(Kind::Flags) => {
            Value::Flags(Bools(Card::int_not_equal_elem(x, Scalar::Int(0), BoolDType::U8)))
        }
        Some(Kind::Integers) => Value::Integers(Indices(indices(x, dtype))),
        _ => Value::Float(Floats(x)),
    }])
}

/// Integers as 32-bit ones; those out of their range become the ends of the range.
fn indices(x: CardTensor, dtype: DType) -> CardTensor {
    let [least, most] = [i32::MIN, i32::MAX].map(|x| Scalar::Int(x.into()));
    let x = match dtype {
        DType::I64 => Card::int_clamp(x, least, most),
        DType::U32 | DType::U64 => Card::int_clamp_max(x, most),
        _ => x,
    };
    Card::int_cast(x, IntDType::I32)
}
