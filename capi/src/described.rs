//! Memory of a caller: a checked description, and its conversion to tensors of the engine.

use std::any::Any;
use std::fmt::Arguments;
use std::ptr::NonNull;

use t4a_tensor::layout::{Dims, Layout, Strides, contiguous_strides, row_major as is_row_major};
use t4a_tensor::storage::Buffer;
use t4a_tensor::{AnyTensor, DType};

use crate::dlpack::{CPU, DlTensor, MAX_RANK, dtype};
use crate::error::{Failure, Status};

/// Checked description of strided memory.
#[derive(Clone, Debug)]
pub struct Described {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: Dims,
    /// Strides in elements.
    pub strides: Strides,
    /// Address of the element with index (0, …, 0); dangling if there are no elements.
    pub first: *mut u8,
    /// Number of elements of the memory below the first one.
    pub below: usize,
    /// Number of elements of the memory above the first one.
    pub above: usize,
}

impl Described {
    /// Reads a description of memory of the processor.
    ///
    /// # Safety
    /// `tensor` is null or valid, and so are its shape and strides.
    pub(crate) unsafe fn read(
        tensor: *const DlTensor,
        what: Arguments<'_>,
    ) -> Result<Self, Failure> {
        // SAFETY: as the caller promises.
        let x = unsafe { tensor.as_ref() }.ok_or_else(|| Failure::null(&what.to_string()))?;
        if x.device.kind != CPU {
            let text = format!(
                "{what} lies on a device of kind {}, only memory of the processor is known",
                x.device.kind
            );
            return Err(Failure::new(Status::Unsupported, text));
        }
        // SAFETY: as the caller promises.
        unsafe { Self::read_any(x, what) }
    }

    /// Reads a description of memory of any device.
    ///
    /// # Errors
    /// For unknown dtypes, impossible shapes and strides, and null pointers.
    ///
    /// # Safety
    /// The shape and strides of `x` are null or valid.
    pub unsafe fn read_any(x: &DlTensor, what: Arguments<'_>) -> Result<Self, Failure> {
        let dtype = dtype(x.dtype)?;
        let rank = usize::try_from(x.ndim).ok().filter(|&rank| rank <= MAX_RANK);
        let rank = rank.ok_or_else(|| {
            Failure::new(Status::Shape, format!("{what} has {} axes, not 0 to {MAX_RANK}", x.ndim))
        })?;
        if rank > 0 && x.shape.is_null() {
            return Err(Failure::null(&format!("the shape of {what}")));
        }
        let list = |from: *const i64| match rank {
            0 => &[][..],
            // SAFETY: as the caller promises, and `from` is not null.
            _ => unsafe { std::slice::from_raw_parts(from, rank) },
        };
        let strides =
            (!x.strides.is_null()).then(|| list(x.strides).iter().map(|&s| s as isize).collect());
        let data = match x.data.is_null() {
            true => std::ptr::null_mut(),
            false => x.data.cast::<u8>().wrapping_add(x.byte_offset as usize),
        };
        Self::new(dtype, list(x.shape), strides, data, what)
    }

    /// Checks a description; without strides it is row-major.
    pub(crate) fn new(
        dtype: DType,
        sizes: &[i64],
        strides: Option<Strides>,
        data: *mut u8,
        what: Arguments<'_>,
    ) -> Result<Self, Failure> {
        let impossible = || {
            let text = format!("{what} has the impossible shape {sizes:?}");
            Failure::new(Status::Shape, text)
        };
        let bytes = |n: usize| n.checked_mul(dtype.size()).filter(|&n| n <= isize::MAX as usize);
        let (mut shape, mut elements) = (Dims::new(), 1usize);
        for &size in sizes {
            let size = usize::try_from(size).map_err(|_| impossible())?;
            elements = elements.checked_mul(size.max(1)).ok_or_else(impossible)?;
            shape.push(size);
        }
        bytes(elements).ok_or_else(impossible)?;
        let strides = strides.unwrap_or_else(|| contiguous_strides(&shape));
        let empty = shape.contains(&0);
        let (mut below, mut above) = (0usize, 0usize);
        for (&n, &s) in shape.iter().zip(&strides).filter(|_| !empty) {
            let end = if s < 0 { &mut below } else { &mut above };
            let reach = (n - 1).checked_mul(s.unsigned_abs());
            let sum = reach.and_then(|reach| end.checked_add(reach));
            let fits = |n: &usize| n.checked_add(1).and_then(bytes).is_some();
            *end = sum.filter(fits).ok_or_else(|| {
                let text = format!("{what} has the impossible strides {strides:?}");
                Failure::new(Status::Shape, text)
            })?;
        }
        let first = match empty {
            true => NonNull::<u64>::dangling().as_ptr().cast(),
            false if data.is_null() => {
                return Err(Failure::null(&format!("the memory of {what}")));
            }
            false => data,
        };
        Ok(Self { dtype, shape, strides, first, below, above })
    }

    /// Inserts an axis of size 1.
    pub(crate) fn insert_axis(&mut self, axis: usize) {
        self.shape.insert(axis, 1);
        self.strides.insert(axis, 0);
    }

    /// Address range of the memory.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        let size = self.dtype.size();
        let start = (self.first as usize).wrapping_sub(self.below * size);
        match self.shape.contains(&0) {
            true => 0..0,
            false => start..start.wrapping_add((self.below + self.above + 1) * size),
        }
    }

    /// Converts to a tensor, without a copy if possible. Unaligned elements and booleans, whose bytes have to be checked, are
    /// copied. `row_major` is the row-major layout of this shape, if it is known.
    ///
    /// # Safety
    /// The memory is valid for reads and is not modified during the lifetime of `owner`.
    pub(crate) unsafe fn tensor(
        &self,
        row_major: Option<&Layout>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<AnyTensor, Failure> {
        if self.shape.contains(&0) {
            return Ok(AnyTensor::zeros(&self.shape, self.dtype)?);
        }
        let aligned = (self.first as usize).is_multiple_of(self.dtype.align());
        if !aligned || self.dtype == DType::Bool {
            // SAFETY: as the caller promises, and `owner` lives.
            return unsafe { self.copy() };
        }
        let (size, len) = (self.dtype.size(), self.below + self.above + 1);
        let start = self.first.wrapping_sub(self.below * size);
        let start = NonNull::new(start).ok_or_else(|| Failure::null("memory"))?;
        let layout = match row_major {
            Some(layout) if is_row_major(&self.shape, &self.strides) => layout.clone(),
            _ => Layout::from_parts(&self.shape, &self.strides, self.below, len)?,
        };
        // SAFETY: as the caller promises; any bytes are elements of these dtypes.
        Ok(unsafe {
            let buffer = Buffer::from_foreign(start, len * size, owner);
            AnyTensor::from_buffer(buffer, layout, self.dtype)?
        })
    }

    /// Copies the elements to a new tensor.
    ///
    /// # Safety
    /// The memory is valid for reads.
    pub(crate) unsafe fn copy(&self) -> Result<AnyTensor, Failure> {
        let (size, numel) = (self.dtype.size(), self.shape.iter().product::<usize>());
        let (buffer, to) = fresh(numel * size)?;
        let mut at = to;
        walk(&self.shape, &self.strides, |place| {
            let from = self.first.wrapping_offset(place * size as isize);
            // SAFETY: element `place` is inside the memory, `at` inside the buffer, which has as many elements.
            unsafe {
                std::ptr::copy_nonoverlapping(from, at, size);
                if self.dtype == DType::Bool {
                    *at = u8::from(*at != 0);
                }
                at = at.add(size);
            }
        });
        let layout = Layout::contiguous("copy", &self.shape, size)?;
        // SAFETY: every element was written; booleans are 0 or 1.
        Ok(unsafe { AnyTensor::from_buffer(buffer, layout, self.dtype)? })
    }

    /// Copies a tensor of the same shape and dtype into the memory.
    ///
    /// # Safety
    /// The memory is valid for writes and does not overlap that of the tensor.
    pub(crate) unsafe fn write(&self, tensor: &AnyTensor) {
        let size = self.dtype.size();
        let from = tensor.buffer().as_ptr().wrapping_add(tensor.layout().offset() * size);
        let compact = |strides: &[isize]| {
            contiguous_strides(&self.shape)
                .iter()
                .zip(strides)
                .zip(&self.shape)
                .all(|((a, b), &n)| a == b || n == 1)
        };
        if self.shape.contains(&0) {
            return;
        }
        if compact(&self.strides) && compact(tensor.layout().strides()) {
            let bytes = self.shape.iter().product::<usize>() * size;
            // SAFETY: both ranges have this length in bytes and do not overlap.
            return unsafe { std::ptr::copy_nonoverlapping(from, self.first, bytes) };
        }
        let strides: Vec<[isize; 2]> =
            tensor.layout().strides().iter().zip(&self.strides).map(|(&a, &b)| [a, b]).collect();
        walk_both(&self.shape, &strides, |[a, b]| {
            let (from, to) = (
                from.wrapping_offset(a * size as isize),
                self.first.wrapping_offset(b * size as isize),
            );
            // SAFETY: the offsets are those of elements of the tensor and of the memory.
            unsafe { std::ptr::copy_nonoverlapping(from, to, size) };
        });
    }

    /// True if sizes and strides guarantee that no two elements overlap. False negatives are possible.
    pub(crate) fn is_injective(&self) -> bool {
        let mut axes: Vec<(usize, usize)> = self
            .strides
            .iter()
            .zip(&self.shape)
            .filter(|&(_, &n)| n > 1)
            .map(|(s, &n)| (s.unsigned_abs(), n))
            .collect();
        axes.sort_unstable();
        let mut reach = 0;
        axes.into_iter().all(|(stride, n)| {
            let apart = stride > reach;
            reach += stride * (n - 1);
            apart
        })
    }
}

/// Allocates a buffer; returns it with the address of its first byte.
fn fresh(bytes: usize) -> Result<(Buffer, *mut u8), Failure> {
    let mut buffer = Buffer::alloc("result", bytes)?;
    let first = buffer
        .as_mut_ptr()
        .ok_or_else(|| Failure::new(Status::Internal, "fresh memory has two owners"))?;
    Ok((buffer, first))
}

/// Calls `f` with the offset of each element in row-major order.
fn walk(shape: &[usize], strides: &[isize], mut f: impl FnMut(isize)) {
    let both: Vec<[isize; 2]> = strides.iter().map(|&s| [s, 0]).collect();
    walk_both(shape, &both, |[place, _]| f(place));
}

fn walk_both(shape: &[usize], strides: &[[isize; 2]], mut f: impl FnMut([isize; 2])) {
    let mut index = vec![0; shape.len()];
    let mut at = [0isize; 2];
    for _ in 0..shape.iter().product() {
        f(at);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            let back = if index[axis] == shape[axis] { index[axis] as isize } else { 0 };
            for (at, s) in at.iter_mut().zip(strides[axis]) {
                *at += s - s * back;
            }
            if back == 0 {
                break;
            }
            index[axis] = 0;
        }
    }
}
