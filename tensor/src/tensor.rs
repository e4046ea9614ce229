//! The typed tensor: a buffer seen through a layout.

use std::marker::PhantomData;
use std::ptr::NonNull;

use t4a_algebra::Scalar;
use t4a_algebra::scalar::assert_storable;

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
    buffer: Buffer,
    layout: Layout,
    route: Route,
    element: PhantomData<T>,
}

impl Tensor<()> {
    /// First byte of element `[0, …, 0]`, the elements having `size` bytes.
    #[inline]
    pub(crate) fn first(&self, size: usize) -> *const u8 {
        self.buffer.as_ptr().wrapping_add(self.layout.offset() * size)
    }

    /// First byte of element `[0, …, 0]` for writing, if the memory has no other owner and contains only these
    /// elements, of `size` bytes each.
    #[inline]
    pub(crate) fn first_mut(&mut self, size: usize) -> Option<*mut u8> {
        if self.buffer.len() != self.layout.numel() * size {
            return None;
        }
        let offset = self.layout.offset() * size;
        self.buffer.as_mut_ptr().map(|ptr| ptr.wrapping_add(offset))
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
    /// A tensor of its parts.
    ///
    /// # Safety
    /// The buffer is aligned for `T` and holds initialised, valid values of it, and every element of the layout is
    /// inside the buffer.
    #[inline]
    pub(crate) unsafe fn from_raw(buffer: Buffer, layout: Layout) -> Self {
        Self { buffer, layout, route: Route::default(), element: PhantomData }
    }

    /// The same memory with another element type.
    ///
    /// # Safety
    /// The memory holds valid values of that type, or of the type behind an erased tensor.
    #[inline]
    pub(crate) unsafe fn retag<U>(self) -> Tensor<U> {
        Tensor { buffer: self.buffer, layout: self.layout, route: self.route, element: PhantomData }
    }

    /// The same memory with another layout; keeps a unique buffer unique.
    ///
    /// # Safety
    /// The layout is that of this tensor after view operations.
    #[inline]
    pub(crate) unsafe fn with_layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
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

    /// The underlying buffer, by value: keeps a unique buffer unique.
    #[inline]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// The route by which this tensor was computed.
    #[inline]
    pub fn route(&self) -> Route {
        self.route
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
        const { assert_storable::<T>() };
        let layout = Self::layout_for("from_vec", data.len(), shape)?;
        let bytes = size_of_val(data.as_slice());
        let ptr = NonNull::from(data.as_slice()).cast();
        // SAFETY: the heap block of a vector is not moved while the vector is owned, and its elements are initialised.
        let buffer = unsafe { Buffer::from_foreign(ptr, bytes, Box::new(data)) };
        Ok(Self { buffer, layout, route: Route::default(), element: PhantomData })
    }

    pub(crate) fn layout_for(op: &'static str, len: usize, shape: &[usize]) -> Result<Layout> {
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

    /// A tensor over an existing buffer.
    ///
    /// # Errors
    /// [`TensorError::Shape`] if the layout exceeds the buffer or the memory is not aligned for `T`.
    ///
    /// # Safety
    /// The buffer holds initialised, valid values of `T`.
    pub unsafe fn from_buffer(buffer: Buffer, layout: Layout) -> Result<Self> {
        const { assert_storable::<T>() };
        let reject = |required| Err(TensorError::shape("from_buffer", layout.shape(), required));
        if !buffer.as_ptr().cast::<T>().is_aligned() {
            return reject("memory aligned for the element type");
        }
        if !layout.lies_in(buffer.len() / size_of::<T>()) {
            return reject("every element inside of the buffer");
        }
        // SAFETY: checked above; the caller's contract.
        Ok(unsafe { Self::from_raw(buffer, layout) })
    }

    /// Pointer to element `[0, …, 0]`; strides apply from there.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        // In bounds by the layout invariant, or one past the end for empty tensors.
        self.buffer.as_ptr().cast::<T>().wrapping_add(self.layout.offset())
    }

    /// First element for writing, if the memory has no other owner.
    #[inline]
    pub(crate) fn memory_mut(&mut self) -> Option<*mut T> {
        self.buffer.as_mut_ptr().map(<*mut u8>::cast)
    }

    /// Pointer for writing, if the memory has no other owner.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> Option<*mut T> {
        let offset = self.layout.offset();
        Some(self.buffer.as_mut_ptr()?.cast::<T>().wrapping_add(offset))
    }

    /// The elements as a slice, if they are in row-major order without gaps.
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

    /// The element at an index, or `None` if it is out of bounds.
    #[inline]
    pub fn get(&self, index: &[usize]) -> Option<T> {
        let inside =
            index.len() == self.rank() && index.iter().zip(self.shape()).all(|(i, n)| i < n);
        let first = self.buffer.as_ptr().cast::<T>();
        // SAFETY: the index is in bounds.
        inside.then(|| unsafe { *first.add(self.layout.position(index)) })
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
