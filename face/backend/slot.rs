//! Methods of `FlexTensor` of burn-flex 0.22.1 for access to elements, so that operations that other crates
//! register for Flex compile against the engine's tensor.
//!
//! Strides and offsets are in units of elements, as in burn-flex. [`T4aTensor::layout`] returns a value, not a
//! reference. Methods for typed elements panic as those of Flex do, with the text of a [`TensorError`].

use std::sync::Arc;

use burn_backend::{
    BoolStore, Bytes, DType as BurnDType, Element, Shape, TensorData, TensorMetadata,
};
use bytemuck::Pod;
use t4a_tensor::layout::{contiguous_strides, row_major};
use t4a_tensor::{Layout as Strided, Result, TensorError};

use super::data::{hand_out_all, tensor_over};
use super::primitive::T4aTensor;
use crate::boundary::accept;

/// Shape, strides and offset of a tensor over linear memory, in units of elements. Strides may be negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    strides: Vec<isize>,
    start_offset: usize,
}

impl Layout {
    /// Row-major layout with offset 0.
    pub fn contiguous(shape: Shape) -> Self {
        let strides = contiguous_strides(&shape).to_vec();
        Self { shape, strides, start_offset: 0 }
    }

    /// Layout with one stride per axis. [`T4aTensor::from_arc`] checks it against the memory.
    pub fn new(shape: Shape, strides: Vec<isize>, start_offset: usize) -> Self {
        Self { shape, strides, start_offset }
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Distances in memory between neighbouring elements along each axis, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Position in memory of the element at index 0 of every axis.
    pub fn start_offset(&self) -> usize {
        self.start_offset
    }

    /// Number of axes.
    pub fn num_dims(&self) -> usize {
        self.shape.num_dims()
    }

    /// Number of elements.
    pub fn num_elements(&self) -> usize {
        self.shape.num_elements()
    }

    /// Returns true if the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        row_major(&self.shape, &self.strides)
    }

    /// Range of positions of the elements if the layout is row-major, otherwise `None`.
    pub fn contiguous_offsets(&self) -> Option<(usize, usize)> {
        let (start, len) = (self.start_offset, self.num_elements());
        self.is_contiguous().then_some((start, start + len))
    }
}

impl From<&Strided> for Layout {
    fn from(layout: &Strided) -> Self {
        let shape = layout.shape().iter().copied().collect();
        Self::new(shape, layout.strides().to_vec(), layout.offset())
    }
}

impl T4aTensor {
    /// Creates a tensor as [`Self::try_from_data`] does.
    ///
    /// # Panics
    /// If it returns an error.
    #[track_caller]
    pub fn from_data(data: TensorData) -> Self {
        accept(Self::try_from_data(data))
    }

    /// Returns the elements as [`Self::try_into_data`] does.
    ///
    /// # Panics
    /// If it returns an error.
    #[track_caller]
    pub fn into_data(self) -> TensorData {
        accept(self.try_into_data())
    }

    /// Creates a tensor over memory. The bytes are not copied if they are aligned for the dtype and either this is
    /// their only handle or they were obtained from [`Self::data_arc`].
    ///
    /// # Panics
    /// If the layout addresses an element outside of the memory; for quantized dtypes and booleans of four bytes.
    #[track_caller]
    pub fn new(data: Bytes, layout: Layout, dtype: BurnDType) -> Self {
        let Layout { shape, strides, start_offset } = layout;
        accept(tensor_over(data, &shape, &strides, start_offset, dtype))
    }

    /// Creates a tensor as [`Self::new`] does, over shared memory.
    ///
    /// # Panics
    /// As [`Self::new`].
    #[track_caller]
    pub fn from_arc(data: Arc<Bytes>, layout: Layout, dtype: BurnDType) -> Self {
        Self::new(Arc::unwrap_or_clone(data), layout, dtype)
    }

    /// Returns a handle of the whole memory block of the tensor, for [`Self::from_arc`]. No copy.
    pub fn data_arc(&self) -> Arc<Bytes> {
        Arc::new(hand_out_all(self.any()))
    }

    /// Shape, strides and offset in the memory of [`Self::storage`].
    pub fn layout(&self) -> Layout {
        self.any().layout().into()
    }

    /// The dtype, as [`TensorMetadata::dtype`].
    pub fn dtype(&self) -> BurnDType {
        TensorMetadata::dtype(self)
    }

    /// Returns true if the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.any().layout().is_contiguous()
    }

    /// Returns true if operations may overwrite the memory: no other tensor shares it, and the engine allocated it.
    pub fn is_unique(&self) -> bool {
        TensorMetadata::can_mut(self)
    }

    /// Returns the tensor in row-major order with offset 0; copies if its layout is another one.
    ///
    /// # Panics
    /// If memory runs out.
    #[must_use]
    #[track_caller]
    pub fn to_contiguous(&self) -> Self {
        let layout = self.any().layout();
        match (layout.is_contiguous(), layout.offset()) {
            (true, 0) => self.clone(),
            (true, _) => accept(self.clone().into_owned()),
            (false, _) => self.clone().then(|any| any.to_contiguous()),
        }
    }

    /// Returns the whole memory block of the tensor as elements, which [`Self::layout`] addresses. Booleans may be
    /// read as `u8`.
    ///
    /// # Panics
    /// If `E` is not the element type of the dtype.
    #[track_caller]
    pub fn storage<E: Element + Pod>(&self) -> &[E] {
        accept(self.elements::<E>())
    }

    /// Returns the elements if they are in row-major order and of type `E`.
    pub fn as_slice<E: Element + Pod>(&self) -> Option<&[E]> {
        if E::dtype() != self.dtype() {
            return None;
        }
        let (start, end) = self.layout().contiguous_offsets()?;
        self.elements::<E>().ok()?.get(start..end)
    }

    fn elements<E: Element + Pod>(&self) -> Result<&[E]> {
        let (own, asked) = (self.dtype(), E::dtype());
        let bytes = matches!(own, BurnDType::Bool(BoolStore::Native | BoolStore::U8));
        if asked != own && !(bytes && asked == BurnDType::U8) {
            let message = format!("the elements are {own:?}, not {asked:?}");
            return Err(TensorError::value("storage", message));
        }
        let buffer = self.any().buffer();
        let len = buffer.len() - buffer.len() % size_of::<E>().max(1);
        // SAFETY: the bytes of a tensor's buffer are initialised, and the borrow keeps it from being written.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr(), len) };
        bytemuck::try_cast_slice(bytes)
            .map_err(|error| TensorError::value("storage", error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> T4aTensor {
        T4aTensor::from_data(TensorData::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    }

    #[test]
    fn elements_are_read_in_place() {
        let x = matrix();
        assert_eq!(x.as_slice::<f32>(), Some(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));
        assert_eq!(x.as_slice::<f64>(), None);
        let any = x.any().permute(&[1, 0]).unwrap().slice_axis(0, 1, 2, 1).unwrap();
        let view = T4aTensor::from_any(any).unwrap();
        assert_eq!(view.as_slice::<f32>(), None);
        let (layout, storage) = (view.layout(), view.storage::<f32>());
        assert!(std::ptr::eq(storage.as_ptr(), x.storage::<f32>().as_ptr()));
        assert_eq!((layout.strides(), layout.start_offset()), (&[1, 3][..], 1));
        let at = |i: isize, j: isize| storage[(1 + i + 3 * j) as usize];
        assert_eq!([at(0, 0), at(0, 1), at(1, 0), at(1, 1)], [2.0, 5.0, 3.0, 6.0]);
        let rows = view.to_contiguous();
        assert_eq!(rows.as_slice::<f32>(), Some(&[2.0, 5.0, 3.0, 6.0][..]));
        let last = T4aTensor::from_any(x.any().select(0, 1).unwrap()).unwrap();
        assert_eq!(last.as_slice::<f32>(), Some(&[4.0, 5.0, 6.0][..]));
        assert_eq!(last.to_contiguous().storage::<f32>(), [4.0, 5.0, 6.0]);
        let truths = T4aTensor::from_data(TensorData::from([true, false]));
        assert_eq!(truths.storage::<u8>(), [1, 0]);
    }

    #[test]
    fn layouts_over_shared_memory() {
        let x = matrix();
        let ends = Layout::new([2, 2].into(), vec![-2, 3], 2);
        let y = T4aTensor::from_arc(x.data_arc(), ends.clone(), BurnDType::F32);
        assert_eq!(y.layout(), ends);
        assert!(std::ptr::eq(y.storage::<f32>().as_ptr(), x.storage::<f32>().as_ptr()));
        assert!(!x.is_unique());
        assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [3.0, 6.0, 1.0, 4.0]);
        let bytes = Bytes::from_elems(vec![1i32, 2, 3, 4]);
        let z = T4aTensor::new(bytes, Layout::contiguous([2, 2].into()), BurnDType::I32);
        assert!(z.is_contiguous());
        assert_eq!(z.as_slice::<i32>(), Some(&[1, 2, 3, 4][..]));
        assert_eq!(Layout::contiguous([2, 1, 3].into()).contiguous_offsets(), Some((0, 6)));
        assert_eq!(Layout::new([2, 1].into(), vec![1, 7], 4).contiguous_offsets(), Some((4, 6)));
        assert_eq!(Layout::new([2, 3].into(), vec![1, 2], 0).contiguous_offsets(), None);
        let flags = Bytes::from_elems(vec![0u8, 2, 1]);
        let dtype = BurnDType::Bool(BoolStore::Native);
        let flags = T4aTensor::new(flags, Layout::new([2].into(), vec![-1], 2), dtype);
        assert_eq!(flags.into_data().iter::<bool>().collect::<Vec<_>>(), [true, true]);
    }

    #[test]
    #[should_panic(expected = "every element inside of the buffer")]
    fn an_element_outside_is_refused() {
        let layout = Layout::new([2, 3].into(), vec![3, 1], 1);
        T4aTensor::from_arc(matrix().data_arc(), layout, BurnDType::F32);
    }

    #[test]
    #[should_panic(expected = "storage")]
    fn another_dtype_is_refused() {
        matrix().storage::<i32>();
    }
}
