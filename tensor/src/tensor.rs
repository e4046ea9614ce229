//! The typed tensor: a buffer seen through a layout.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use t4a_algebra::{Numeric, Scalar};

use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::route::Route;
use crate::storage::Buffer;

/// A strided tensor of element type `T`. Cloning shares the memory.
///
/// ```
/// use t4a_tensor::Tensor;
/// let m = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6], &[2, 3])?;
/// assert_eq!(m.permute(&[1, 0])?.to_vec()?, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
// `repr(C)`: `AnyTensor` reinterprets a reference to the erased tensor as a typed one; the fields
// do not depend on `T`.
#[repr(C)]
pub struct Tensor<T> {
    pub(crate) buffer: Buffer,
    pub(crate) layout: Layout,
    pub(crate) route: Route,
    pub(crate) element: PhantomData<T>,
}

impl Tensor<()> {
    /// First byte of element `[0, …, 0]`, the elements having `size` bytes.
    #[inline]
    pub(crate) fn first(&self, size: usize) -> *const u8 {
        self.buffer.as_ptr().wrapping_add(self.layout.offset() * size)
    }
}

impl<T> Clone for Tensor<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self {
            buffer: self.buffer.clone(),
            layout: self.layout.clone(),
            route: self.route,
            element: PhantomData,
        }
    }
}

impl<T> Tensor<T> {
    /// The same memory with another element type. The caller knows that it holds that type.
    #[inline]
    pub(crate) fn retag<U>(self) -> Tensor<U> {
        Tensor { buffer: self.buffer, layout: self.layout, route: self.route, element: PhantomData }
    }

    /// The same tensor with another route tag.
    #[inline]
    pub fn with_route(mut self, route: Route) -> Self {
        self.route = route;
        self
    }
}

impl<T: Scalar> Tensor<T> {
    /// Takes over the elements of a vector in row-major order. No copy.
    ///
    /// # Errors
    /// [`TensorError::Shape`] if the length is not the element count of the shape.
    pub fn from_vec(data: Vec<T>, shape: &[usize]) -> Result<Self> {
        let layout = Self::layout_for("from_vec", data.len(), shape)?;
        let bytes = size_of_val(data.as_slice());
        let ptr = NonNull::from(data.as_slice()).cast();
        // SAFETY: the heap block of a vector stays where it is while the vector is owned, and
        // its elements are initialised.
        let buffer = unsafe { Buffer::from_foreign(ptr, bytes, Box::new(data)) };
        Ok(Self { buffer, layout, route: Route::default(), element: PhantomData })
    }

    /// Copies elements in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::from_vec`].
    pub fn from_slice(data: &[T], shape: &[usize]) -> Result<Self> {
        Self::layout_for("from_slice", data.len(), shape)?;
        let mut out = Output::new("from_slice", shape)?;
        // SAFETY: `&[T]` and `&[MaybeUninit<T>]` have the same layout, and reading is all we do.
        let data = unsafe { &*(std::ptr::from_ref(data) as *const [MaybeUninit<T>]) };
        out.as_mut_slice().copy_from_slice(data);
        // SAFETY: every element was written.
        Ok(unsafe { out.assume_init() })
    }

    fn layout_for(op: &'static str, len: usize, shape: &[usize]) -> Result<Layout> {
        let layout = Layout::contiguous(op, shape, size_of::<T>())?;
        if layout.numel() != len {
            return Err(TensorError::shapes(
                op,
                &[len],
                shape,
                "as many elements as the shape has",
            ));
        }
        Ok(layout)
    }

    /// A tensor of equal elements.
    ///
    /// # Errors
    /// [`TensorError::SizeOverflow`], [`TensorError::OutOfMemory`].
    pub fn full(shape: &[usize], value: T) -> Result<Self> {
        let mut out = Output::new("full", shape)?;
        out.as_mut_slice().fill(MaybeUninit::new(value));
        // SAFETY: every element was written.
        Ok(unsafe { out.assume_init() })
    }

    /// A tensor whose element at row-major position `i` is `f(i)`.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    pub fn from_fn(shape: &[usize], f: impl FnMut(usize) -> T) -> Result<Self> {
        let mut out = Output::new("from_fn", shape)?;
        let mut f = f;
        for (i, slot) in out.as_mut_slice().iter_mut().enumerate() {
            slot.write(f(i));
        }
        // SAFETY: every element was written.
        Ok(unsafe { out.assume_init() })
    }

    /// A tensor over an existing buffer.
    ///
    /// # Errors
    /// [`TensorError::Shape`] if the layout reaches outside of the buffer or the memory is not
    /// aligned for `T`.
    ///
    /// # Safety
    /// The buffer holds initialised, valid values of `T`.
    pub unsafe fn from_buffer(buffer: Buffer, layout: Layout) -> Result<Self> {
        let reject = |required| Err(TensorError::shape("from_buffer", layout.shape(), required));
        if !buffer.as_ptr().cast::<T>().is_aligned() {
            return reject("memory aligned for the element type");
        }
        let len = buffer.len() / size_of::<T>().max(1);
        match Layout::from_parts(layout.shape(), layout.strides(), layout.offset(), len) {
            Ok(_) => Ok(Self { buffer, layout, route: Route::default(), element: PhantomData }),
            Err(_) => reject("every element inside of the buffer"),
        }
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.layout.numel()
    }

    /// The memory below.
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// How this tensor was computed.
    #[inline]
    pub fn route(&self) -> Route {
        self.route
    }

    /// Pointer to element `[0, …, 0]`; strides apply from there.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        // In bounds by the layout invariant, and one past the end at most for empty tensors.
        self.buffer.as_ptr().cast::<T>().wrapping_add(self.layout.offset())
    }

    /// Pointer for writing, if the memory has no other owner.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> Option<*mut T> {
        let offset = self.layout.offset();
        Some(self.buffer.as_mut_ptr()?.cast::<T>().wrapping_add(offset))
    }

    /// The elements as a slice, if they lie in row-major order.
    #[inline]
    pub fn as_slice(&self) -> Option<&[T]> {
        if !self.layout.is_contiguous() {
            return None;
        }
        let numel = self.numel();
        if numel == 0 {
            return Some(&[]);
        }
        // SAFETY: contiguous, in bounds and initialised by the invariants of layout and buffer.
        Some(unsafe { std::slice::from_raw_parts(self.as_ptr(), numel) })
    }

    /// The elements for writing, in row-major order: copies first if the memory is shared or
    /// strided.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`].
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        if !(self.layout.is_contiguous() && self.buffer.is_unique()) {
            *self = crate::copy::to_contiguous(self)?;
        }
        let numel = self.numel();
        match self.as_mut_ptr() {
            // SAFETY: contiguous, in bounds, initialised, and uniquely owned.
            Some(ptr) if numel > 0 => Ok(unsafe { std::slice::from_raw_parts_mut(ptr, numel) }),
            _ => Ok(&mut []),
        }
    }

    /// The element at an index, or `None` if it is out of bounds.
    #[inline]
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let inside =
            index.len() == self.rank() && index.iter().zip(self.shape()).all(|(i, n)| i < n);
        // SAFETY: the index is in bounds.
        inside
            .then(|| unsafe { *self.buffer.as_ptr().cast::<T>().add(self.layout.position(index)) })
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        match self.as_slice() {
            Some(slice) => Ok(slice.to_vec()),
            None => Ok(crate::copy::to_contiguous(self)?.as_slice().unwrap_or_default().to_vec()),
        }
    }
}

impl<T: Numeric> Tensor<T> {
    /// A tensor of zeros.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    pub fn zeros(shape: &[usize]) -> Result<Self> {
        Self::full(shape, T::ZERO)
    }

    /// A tensor of ones.
    ///
    /// # Errors
    /// As [`Tensor::full`].
    pub fn ones(shape: &[usize]) -> Result<Self> {
        Self::full(shape, T::ONE)
    }
}

impl<T: Scalar> std::fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Tensor");
        debug.field("shape", &self.shape()).field("strides", &self.layout.strides());
        if self.numel() <= 64
            && let Ok(data) = self.to_vec()
        {
            debug.field("data", &data);
        }
        debug.finish()
    }
}

/// Freshly allocated memory for a result: row-major, unique, not yet initialised.
pub(crate) struct Output<T> {
    buffer: Buffer,
    ptr: *mut T,
    layout: Layout,
}

impl<T: Scalar> Output<T> {
    /// Allocates for a shape.
    #[inline]
    pub(crate) fn new(op: &'static str, shape: &[usize]) -> Result<Self> {
        Self::with_layout(Layout::contiguous(op, shape, size_of::<T>())?)
    }

    /// Allocates for a dense layout with offset 0.
    #[inline]
    pub(crate) fn with_layout(layout: Layout) -> Result<Self> {
        debug_assert!(layout.numel() == 0 || (layout.is_dense() && layout.offset() == 0));
        let mut buffer = Buffer::alloc(layout.numel() * size_of::<T>())?;
        let ptr = match buffer.as_mut_ptr() {
            Some(ptr) if ptr.cast::<T>().is_aligned() => ptr.cast(),
            // A fresh buffer is unique; only element types aligned to more than 64 (small
            // blocks: 16) bytes end up here.
            _ => return Err(TensorError::value("alloc", "element alignment above 16 bytes")),
        };
        Ok(Self { buffer, ptr, layout })
    }

    /// The elements in memory order.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the block holds this many elements and nobody else knows it.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.layout.numel()) }
    }

    /// First element.
    #[inline]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.ptr
    }

    /// Where the elements go.
    #[inline]
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The finished tensor.
    ///
    /// # Safety
    /// Every element has been written.
    #[inline]
    pub(crate) unsafe fn assume_init(self) -> Tensor<T> {
        Tensor {
            buffer: self.buffer,
            layout: self.layout,
            route: Route::default(),
            element: PhantomData,
        }
    }
}
