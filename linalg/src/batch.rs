//! Batches of matrices: the one way in which a factorisation walks over the leading axes.
//!
//! A matrix is read where it lies, under any strides. Results are stored column by column within
//! each matrix, the order in which faer is fastest, and handed out as a permuted view.
//!
//! Small matrices, or at least as many matrices as threads: one matrix per task, sequential
//! inside, one scratch per task group. Few large matrices: one after the other, threads inside.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use faer::{MatMut, MatRef, Par};
use smallvec::{SmallVec, smallvec};
use t4a_algebra::{Field, Numeric, Scalar};
use t4a_tensor::copy::to_contiguous;
use t4a_tensor::layout::Dims;
use t4a_tensor::loops::parallel;
use t4a_tensor::loops::transpose::{Even, transpose};
use t4a_tensor::{Tensor, TensorError};

use crate::error::{
    LinalgError, NEGATIVE_EIGENVALUE, NO_CONVERGENCE, NON_FINITE, OVERFLOW, Result,
};
use crate::scalar::{LinalgScalar, nan, real};
use crate::threads::with_threads;

/// One entry per matrix; a single matrix needs no memory for it.
pub(crate) type PerMatrix<T> = SmallVec<[T; 1]>;

/// Shape of a batch of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape<'a> {
    /// Sizes of the leading axes.
    pub(crate) batch: &'a [usize],
    /// Rows of each matrix.
    pub(crate) m: usize,
    /// Columns of each matrix.
    pub(crate) n: usize,
}

impl<'a> Shape<'a> {
    /// Splits the shape of a tensor.
    pub(crate) fn of<T: Scalar>(op: &'static str, a: &'a Tensor<T>) -> Result<Self> {
        match a.shape() {
            [batch @ .., m, n] => Ok(Self { batch, m: *m, n: *n }),
            shape => Err(LinalgError::NotMatrix { op, shape: shape.to_vec() }),
        }
    }

    /// As [`Shape::of`], for square matrices.
    pub(crate) fn square<T: Scalar>(op: &'static str, a: &'a Tensor<T>) -> Result<Self> {
        let shape = Self::of(op, a)?;
        match shape.m == shape.n {
            true => Ok(shape),
            false => Err(LinalgError::NotSquare { op, shape: a.shape().to_vec() }),
        }
    }

    /// `min(m, n)`.
    pub(crate) fn k(&self) -> usize {
        self.m.min(self.n)
    }

    /// Rejects another batch.
    pub(crate) fn same_batch(&self, op: &'static str, other: &Shape<'_>) -> Result<()> {
        match self.batch == other.batch {
            true => Ok(()),
            false => Err(TensorError::shapes(op, self.batch, other.batch, "equal batches").into()),
        }
    }
}

/// The matrices of a tensor, for reading.
pub(crate) struct Views<'a, T> {
    tensor: Cow<'a, Tensor<T>>,
    positions: PerMatrix<isize>,
}

impl<'a, T: LinalgScalar> Views<'a, T> {
    pub(crate) fn of(op: &'static str, tensor: &'a Tensor<T>) -> Result<Self> {
        Ok(Self::new(Shape::of(op, tensor)?.batch, Cow::Borrowed(tensor)))
    }

    /// As [`Views::of`], for kernels that need memory in rows or columns: repeated elements are
    /// spread out.
    pub(crate) fn spread(op: &'static str, tensor: &'a Tensor<T>) -> Result<Self> {
        let shape = Shape::of(op, tensor)?;
        let matrix = tensor.rank() - 2..tensor.rank();
        let strides = tensor.layout().strides();
        let repeated =
            matrix.into_iter().any(|axis| strides[axis] == 0 && tensor.shape()[axis] > 1);
        match repeated {
            true => Ok(Self::new(shape.batch, Cow::Owned(to_contiguous(tensor)?))),
            false => Self::of(op, tensor),
        }
    }

    fn new(batch: &[usize], tensor: Cow<'a, Tensor<T>>) -> Self {
        // Offsets of the matrices, in row-major order of the batch.
        let mut positions: PerMatrix<isize> = smallvec![0];
        for (&size, &stride) in batch.iter().zip(tensor.layout().strides()) {
            if size == 1 {
                continue;
            }
            positions = positions
                .iter()
                .flat_map(|p| (0..size as isize).map(move |i| p + i * stride))
                .collect();
        }
        Self { tensor, positions }
    }

    /// Matrix number `index` of the batch.
    #[allow(unsafe_code)]
    pub(crate) fn get(&self, index: usize) -> MatRef<'_, T> {
        let &[.., m, n] = self.tensor.shape() else { unreachable!("checked by `of`") };
        let &[.., rows, cols] = self.tensor.layout().strides() else {
            unreachable!("as many strides as axes")
        };
        let first = self.tensor.as_ptr().wrapping_offset(self.positions[index]);
        // SAFETY: by the layout's invariant every index of the tensor's shape lies inside of the
        // initialised buffer, which the tensor keeps alive and unchanged as long as `self` is
        // borrowed.
        unsafe { MatRef::from_raw_parts(first, m, n, rows, cols) }
    }
}

/// Memory for one result matrix per matrix of the batch.
pub(crate) struct Output<T> {
    tensor: Tensor<T>,
    m: usize,
    n: usize,
}

impl<T: Scalar + Numeric> Output<T> {
    /// `m × n` results, filled with zeros.
    pub(crate) fn new(batch: &[usize], m: usize, n: usize) -> Result<Self> {
        let shape: Dims = batch.iter().copied().chain([n, m]).collect();
        Ok(Self { tensor: Tensor::zeros(&shape)?, m, n })
    }

    /// The results for writing, each column by column.
    pub(crate) fn slices(&mut self) -> Result<PerMatrix<&mut [T]>> {
        let (m, n) = (self.m, self.n);
        let &[ref batch @ .., _, _] = self.tensor.shape() else { unreachable!("made by `new`") };
        let count = batch.iter().product();
        if m * n == 0 {
            return Ok((0..count).map(|_| [].as_mut_slice()).collect());
        }
        Ok(self.tensor.as_mut_slice()?.chunks_exact_mut(m * n).collect())
    }

    /// The batch of matrices.
    pub(crate) fn matrices(self) -> Result<Tensor<T>> {
        let rank = self.tensor.rank();
        Ok(self.tensor.swap_axes(rank - 2, rank - 1)?)
    }

    /// The batch of transposed matrices: row-major memory.
    pub(crate) fn transposed(self) -> Tensor<T> {
        self.tensor
    }

    /// The batch of vectors, for results with one column.
    pub(crate) fn vectors(self) -> Result<Tensor<T>> {
        let axis = self.tensor.rank() - 2;
        Ok(self.tensor.squeeze(axis)?)
    }

    /// The batch of numbers, for results with one element.
    pub(crate) fn numbers(self) -> Result<Tensor<T>> {
        let axis = self.tensor.rank() - 2;
        Ok(self.tensor.squeeze(axis)?.squeeze(axis)?)
    }
}

impl<T: LinalgScalar> Output<T> {
    /// The results for writing.
    pub(crate) fn mats(&mut self) -> Result<PerMatrix<MatMut<'_, T>>> {
        let (m, n) = (self.m, self.n);
        let mats = self.slices()?.into_iter();
        Ok(mats.map(|s| MatMut::from_column_major_slice_mut(s, m, n)).collect())
    }
}

/// How the factorisation of one matrix went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Done,
    Pivot(usize),
    NoConvergence,
    NonFinite,
    /// A result beyond the range of the type.
    Overflow,
    NegativeEigenvalue,
}

impl Status {
    fn code(self) -> i32 {
        match self {
            Status::Done => 0,
            Status::Pivot(index) => index as i32 + 1,
            Status::NoConvergence => NO_CONVERGENCE,
            Status::NonFinite => NON_FINITE,
            Status::Overflow => OVERFLOW,
            Status::NegativeEigenvalue => NEGATIVE_EIGENVALUE,
        }
    }
}

/// Where the results for one matrix go.
pub(crate) trait Slot: Send {
    /// Overwrites them by NaN, so that a failure cannot be taken for a result.
    fn spoil(&mut self);
}

impl<T: LinalgScalar> Slot for MatMut<'_, T> {
    fn spoil(&mut self) {
        self.fill(nan());
    }
}

impl<T: LinalgScalar> Slot for &mut [T] {
    fn spoil(&mut self) {
        self.fill(nan());
    }
}

impl Slot for &mut [i64] {
    fn spoil(&mut self) {
        // Still a permutation: indices stay in bounds.
        self.iter_mut().enumerate().for_each(|(i, slot)| *slot = i as i64);
    }
}

impl<S: Slot> Slot for Option<S> {
    fn spoil(&mut self) {
        self.iter_mut().for_each(Slot::spoil);
    }
}

macro_rules! tuple_slots {
    ($($name:ident),*) => {
        #[allow(non_snake_case)]
        impl<$($name: Slot),*> Slot for ($($name,)*) {
            fn spoil(&mut self) {
                let ($($name,)*) = self;
                $($name.spoil();)*
            }
        }
    };
}

tuple_slots!(A, B);
tuple_slots!(A, B, C);
tuple_slots!(A, B, C, D);

/// Floating-point operations per matrix from which threads inside of faer pay: n = 64 for the
/// cubic algorithms.
const LARGE: usize = 1 << 19;
/// Floating-point operations of a whole batch from which waking our threads pays: about 30 µs.
const WORTHWHILE: usize = 1 << 16;

/// Calls `body` for every matrix of the batch and gathers the info codes.
///
/// `flops` is the work for one matrix. A slot whose body fails is spoiled.
pub(crate) fn run<J: Slot, S>(
    batch: &[usize],
    mut slots: PerMatrix<J>,
    flops: usize,
    scratch: impl Fn(Par) -> S + Sync + Send,
    body: impl Fn(&mut S, usize, &mut J, Par) -> Status + Sync + Send,
) -> Result<Tensor<i32>> {
    let count = slots.len();
    let threads = parallel::threads();
    let mut info = Tensor::zeros(batch)?;
    let codes: &mut [i32] = info.as_mut_slice()?;
    let sequence = |first: usize, slots: &mut [J], codes: &mut [i32], par: Par| {
        let mut state = scratch(par);
        for (i, (slot, code)) in slots.iter_mut().zip(codes).enumerate() {
            let status = body(&mut state, first + i, slot, par);
            if status != Status::Done {
                slot.spoil();
            }
            *code = status.code();
        }
    };
    let few = threads == 1 || flops.saturating_mul(count) < WORTHWHILE;
    if count == 0 {
    } else if few || (count == 1 && flops < LARGE) {
        sequence(0, &mut slots, codes, Par::Seq);
    } else if flops < LARGE || count >= threads {
        // Four groups per thread even out matrices that converge at different speed.
        let group = count.div_ceil(4 * threads);
        let mut groups: Vec<_> = slots.chunks_mut(group).zip(codes.chunks_mut(group)).collect();
        parallel::for_each_mut(&mut groups, true, |g, (slots, codes)| {
            sequence(g * group, slots, codes, Par::Seq);
        });
    } else {
        with_threads(|par| sequence(0, &mut slots, codes, par));
    }
    Ok(info)
}

/// Lanes in which elements are looked at.
const LANES: usize = 8;

/// Columns that are transposed at once; the panel stays in the cache until it has been looked at.
const PANEL: usize = 16;

/// Whether numbers are finite: `x − x` is 0 for finite x and NaN otherwise, and the sums vectorise,
/// which a test per element does not.
struct Finite<T>([T; LANES]);

impl<T: LinalgScalar> Finite<T> {
    fn new() -> Self {
        Self([T::ZERO; LANES])
    }

    #[inline(always)]
    fn see(&mut self, values: &[T]) {
        let (blocks, rest) = values.as_chunks::<LANES>();
        for block in blocks {
            for (s, &x) in self.0.iter_mut().zip(block) {
                *s = Numeric::add(*s, Numeric::sub(x, x));
            }
        }
        rest.iter().for_each(|&x| self.see_one(x));
    }

    #[inline(always)]
    fn see_one(&mut self, x: T) {
        self.0[0] = Numeric::add(self.0[0], Numeric::sub(x, x));
    }

    fn all(&self) -> bool {
        self.0.iter().all(|&s| s == T::ZERO)
    }
}

/// A column as a slice, if it is contiguous.
#[inline(always)]
fn column<'a, T>(a: MatRef<'a, T>, j: usize) -> Option<&'a [T]> {
    a.col(j).try_as_col_major().map(|column| column.as_slice())
}

/// Copies rows `top..` of columns `left..left + width` of a matrix whose rows are contiguous to
/// columns of `m` elements in `dst`. Row `i` is taken from row `order[i]`, if there is an order.
#[allow(unsafe_code)]
fn transpose_panel<T: LinalgScalar>(
    src: MatRef<'_, T>,
    order: Option<&[isize]>,
    (top, left, width): (usize, usize, usize),
    dst: &mut [T],
) {
    let (m, n) = src.shape();
    assert!(src.col_stride() == 1 && top <= m && left + width <= n && dst.len() >= n * m);
    let (height, rows, pitch) = (m - top, src.row_stride(), Even::new(m as isize));
    let to = dst.as_mut_ptr().wrapping_add(left * m + top);
    // SAFETY: the panel lies inside of both, a shared and a unique borrow; an order is a
    // permutation of the rows, in elements.
    unsafe {
        match order {
            None => {
                let from = src.as_ptr().offset(top as isize * rows).add(left);
                transpose(from, Even::new(rows), to, pitch, width, height);
            }
            Some(order) => {
                transpose(src.as_ptr().add(left), &order[top..], to, pitch, width, height);
            }
        }
    }
}

/// Copies a matrix column by column into `dst` and says whether all of it is finite. Cost: one read
/// and one write per element.
pub(crate) fn load<T: LinalgScalar>(src: MatRef<'_, T>, dst: &mut [T]) -> bool {
    load_rows(src, None, dst)
}

/// As [`load`], row `i` of the copy being row `order[i]`, a permutation, if there is one.
pub(crate) fn load_rows<T: LinalgScalar>(
    src: MatRef<'_, T>,
    order: Option<&[usize]>,
    dst: &mut [T],
) -> bool {
    let (m, n) = src.shape();
    let mut finite = Finite::new();
    if m * n == 0 {
        return true;
    }
    let row = |i: usize| order.map_or(i, |order| order[i]);
    if src.col_stride() == 1 && src.row_stride() != 1 {
        let places: Option<Vec<isize>> =
            order.map(|order| order.iter().map(|&i| i as isize * src.row_stride()).collect());
        for left in (0..n).step_by(PANEL) {
            let width = PANEL.min(n - left);
            transpose_panel(src, places.as_deref(), (0, left, width), dst);
            finite.see(&dst[left * m..(left + width) * m]);
        }
        return finite.all();
    }
    for (j, dst) in dst.chunks_exact_mut(m).enumerate() {
        match (column(src, j), order) {
            (Some(src), None) => dst.copy_from_slice(src),
            (Some(src), _) => dst.iter_mut().enumerate().for_each(|(i, x)| *x = src[row(i)]),
            _ => dst.iter_mut().enumerate().for_each(|(i, x)| *x = src[(row(i), j)]),
        }
        finite.see(dst);
    }
    finite.all()
}

/// Copies the lower triangle of `(A + Aᴴ)/2` column by column into `dst`, `n²` elements, and says
/// whether all of it is finite. Above the diagonal `dst` is left in any state.
pub(crate) fn load_hermitian<T: LinalgScalar>(src: MatRef<'_, T>, dst: &mut [T]) -> bool {
    let n = src.ncols();
    let half = real::<T>(<T::R as Numeric>::from_f64(0.5));
    // Halves first: the sum could overflow.
    let mean = |x: T, y: T| Numeric::add(Numeric::mul(x, half), Numeric::mul(Field::conj(y), half));
    let mut finite = Finite::new();
    let (by_rows, by_columns) = (src.col_stride() == 1, src.row_stride() == 1);
    if !by_rows && !by_columns {
        for j in 0..n {
            for i in j..n {
                dst[j * n + i] = mean(src[(i, j)], src[(j, i)]);
            }
            finite.see(&dst[j * n + j..(j + 1) * n]);
        }
        return finite.all();
    }
    // (i, j) and (j, i): one of them is read along memory, the other is transposed before.
    let view = if by_rows { src } else { src.transpose() };
    for left in (0..n).step_by(PANEL) {
        let width = PANEL.min(n - left);
        transpose_panel(view, None, (left, left, width), dst);
        for j in left..left + width {
            let Some(across) = column(view.transpose(), j) else { unreachable!("contiguous rows") };
            let (dst, across) = (&mut dst[j * n + j..(j + 1) * n], &across[j..n]);
            for (x, &y) in dst.iter_mut().zip(across) {
                *x = if by_rows { mean(*x, y) } else { mean(y, *x) };
            }
            finite.see(dst);
        }
    }
    finite.all()
}

/// Whether no element is NaN or infinite.
pub(crate) fn is_finite<T: LinalgScalar>(a: MatRef<'_, T>) -> bool {
    let mut finite = Finite::new();
    // Along memory, whichever axis that is.
    let a = if a.row_stride() == 1 { a } else { a.transpose() };
    for j in 0..a.ncols() {
        match column(a, j) {
            Some(column) => finite.see(column),
            None => (0..a.nrows()).for_each(|i| finite.see_one(a[(i, j)])),
        }
    }
    finite.all()
}

/// Overwrites the matrices whose info code is not 0 by NaN.
pub(crate) fn spoil_failed<T: LinalgScalar>(x: Tensor<T>, info: &Tensor<i32>) -> Result<Tensor<T>> {
    let codes = info.as_slice().unwrap_or_default();
    if codes.iter().all(|&code| code == 0) {
        return Ok(x);
    }
    let mut x = x;
    let size: usize = x.shape().iter().rev().take(2).product();
    if size > 0 {
        for (matrix, &code) in x.as_mut_slice()?.chunks_exact_mut(size).zip(codes) {
            if code != 0 {
                matrix.fill(nan());
            }
        }
    }
    Ok(x)
}
