//! Batches of matrices: iteration of a factorisation over the leading axes.
//!
//! Matrices are read in place, with arbitrary strides. Results are stored column-major within each matrix, the layout
//! in which faer is fastest, and returned as a permuted view.
//!
//! Small matrices, or at least as many matrices as threads: one matrix per task, sequential inside, one scratch
//! buffer per group of tasks. Few large matrices: one after another, with threads inside. The number of parts of one
//! matrix depends on its size only (`threads`). The route of the status tensor records the schedule, and the results
//! copy it.

mod load;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use faer::{MatMut, MatRef, Par};
use smallvec::{SmallVec, smallvec};
use t4a_algebra::{Numeric, Scalar};
use t4a_tensor::copy::to_contiguous;
use t4a_tensor::layout::Dims;
use t4a_tensor::loops::parallel;
use t4a_tensor::route::{Path, Route};
use t4a_tensor::{Tensor, TensorError};

use crate::error::{
    COMMON_EIGENVALUE, LinalgError, NEGATIVE_EIGENVALUE, NO_CONVERGENCE, NON_FINITE, OVERFLOW,
    Result,
};
use crate::scalar::{LinalgScalar, nan};
use crate::threads::{Work, with_threads};

pub(crate) use load::{all_finite, is_finite, load, load_hermitian, load_rows};

/// One value per matrix; no allocation for a single matrix.
pub(crate) type PerMatrix<T> = SmallVec<[T; 1]>;

/// Shape of a batch of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchShape<'a> {
    /// Sizes of the leading axes.
    pub(crate) batch: &'a [usize],
    /// Rows of each matrix.
    pub(crate) m: usize,
    /// Columns of each matrix.
    pub(crate) n: usize,
}

impl<'a> BatchShape<'a> {
    /// Splits the shape of a tensor.
    pub(crate) fn of<T: Scalar>(op: &'static str, a: &'a Tensor<T>) -> Result<Self> {
        match a.shape() {
            [batch @ .., m, n] => Ok(Self { batch, m: *m, n: *n }),
            shape => Err(LinalgError::NotMatrix { op, shape: shape.to_vec() }),
        }
    }

    /// [`BatchShape::of`] for square matrices.
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

    /// Checks that both operands have the same batch axes.
    pub(crate) fn same_batch(&self, op: &'static str, other: &BatchShape<'_>) -> Result<()> {
        let whole = |shape: &BatchShape<'_>| [shape.batch, &[shape.m, shape.n]].concat();
        match self.batch == other.batch {
            true => Ok(()),
            false => Err(LinalgError::unequal_batches(op, &whole(self), &whole(other))),
        }
    }
}

/// Read access to the matrices of a tensor.
pub(crate) struct Views<'a, T> {
    tensor: Cow<'a, Tensor<T>>,
    positions: PerMatrix<isize>,
}

impl<'a, T: LinalgScalar> Views<'a, T> {
    pub(crate) fn of(op: &'static str, tensor: &'a Tensor<T>) -> Result<Self> {
        Ok(Self::new(BatchShape::of(op, tensor)?.batch, Cow::Borrowed(tensor)))
    }

    /// [`Views::of`] for kernels that require contiguous rows or columns: broadcast (stride 0) tensors are copied.
    pub(crate) fn spread(op: &'static str, tensor: &'a Tensor<T>) -> Result<Self> {
        let shape = BatchShape::of(op, tensor)?;
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
        // SAFETY: by the invariant of the layout every index of the tensor's shape is inside of the initialised
        // buffer, which the tensor keeps alive and unchanged while `self` is borrowed.
        unsafe { MatRef::from_raw_parts(first, m, n, rows, cols) }
    }
}

/// Memory for one result matrix per matrix of the batch.
pub(crate) struct ResultBuffer<T> {
    tensor: Tensor<T>,
    m: usize,
    n: usize,
}

impl<T: Scalar + Numeric> ResultBuffer<T> {
    /// Zero-initialised `m × n` results.
    pub(crate) fn new(batch: &[usize], m: usize, n: usize) -> Result<Self> {
        let shape: Dims = batch.iter().copied().chain([n, m]).collect();
        Ok(Self { tensor: Tensor::zeros(&shape)?, m, n })
    }

    /// Write access to the results; each is column-major.
    pub(crate) fn slices(&mut self) -> Result<PerMatrix<&mut [T]>> {
        let (m, n) = (self.m, self.n);
        let &[ref batch @ .., _, _] = self.tensor.shape() else { unreachable!("made by `new`") };
        let count = batch.iter().product();
        if m * n == 0 {
            return Ok((0..count).map(|_| [].as_mut_slice()).collect());
        }
        Ok(self.tensor.as_mut_slice()?.chunks_exact_mut(m * n).collect())
    }

    /// Results as a batch of matrices, tagged with the route of their computation.
    pub(crate) fn matrices(self, route: Route) -> Result<Tensor<T>> {
        let rank = self.tensor.rank();
        Ok(self.tensor.with_route(route).swap_axes(rank - 2, rank - 1)?)
    }

    /// Results as a batch of transposed matrices (row-major memory).
    pub(crate) fn transposed(self, route: Route) -> Tensor<T> {
        self.tensor.with_route(route)
    }

    /// Results with one column as a batch of vectors.
    pub(crate) fn vectors(self, route: Route) -> Result<Tensor<T>> {
        let axis = self.tensor.rank() - 2;
        Ok(self.tensor.with_route(route).squeeze(axis)?)
    }

    /// Results with one element as a batch of numbers.
    pub(crate) fn numbers(self, route: Route) -> Result<Tensor<T>> {
        let axis = self.tensor.rank() - 2;
        Ok(self.tensor.with_route(route).squeeze(axis)?.squeeze(axis)?)
    }
}

impl<T: LinalgScalar> ResultBuffer<T> {
    /// Write access to the results as matrices.
    pub(crate) fn mats(&mut self) -> Result<PerMatrix<MatMut<'_, T>>> {
        let (m, n) = (self.m, self.n);
        let mats = self.slices()?.into_iter();
        Ok(mats.map(|s| MatMut::from_column_major_slice_mut(s, m, n)).collect())
    }
}

/// Outcome of the factorisation of one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixStatus {
    Done,
    Pivot(usize),
    NoConvergence,
    NonFinite,
    /// A result beyond the range of the type.
    Overflow,
    NegativeEigenvalue,
    CommonEigenvalue,
}

impl MatrixStatus {
    fn code(self) -> i32 {
        match self {
            MatrixStatus::Done => 0,
            MatrixStatus::Pivot(index) => index as i32 + 1,
            MatrixStatus::NoConvergence => NO_CONVERGENCE,
            MatrixStatus::NonFinite => NON_FINITE,
            MatrixStatus::Overflow => OVERFLOW,
            MatrixStatus::NegativeEigenvalue => NEGATIVE_EIGENVALUE,
            MatrixStatus::CommonEigenvalue => COMMON_EIGENVALUE,
        }
    }
}

/// Output memory of one matrix.
pub(crate) trait ResultSlot: Send {
    /// Overwrites the results with NaN, so that a failed matrix has no plausible result.
    fn spoil(&mut self);
}

impl<T: LinalgScalar> ResultSlot for MatMut<'_, T> {
    fn spoil(&mut self) {
        self.fill(nan());
    }
}

impl<T: LinalgScalar> ResultSlot for &mut [T] {
    fn spoil(&mut self) {
        self.fill(nan());
    }
}

impl ResultSlot for &mut [i64] {
    fn spoil(&mut self) {
        // The identity permutation: indices stay in bounds.
        self.iter_mut().enumerate().for_each(|(i, slot)| *slot = i as i64);
    }
}

impl<S: ResultSlot> ResultSlot for Option<S> {
    fn spoil(&mut self) {
        self.iter_mut().for_each(ResultSlot::spoil);
    }
}

macro_rules! tuple_slots {
    ($($name:ident),*) => {
        #[allow(non_snake_case)]
        impl<$($name: ResultSlot),*> ResultSlot for ($($name,)*) {
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

/// Cost of a floating-point operation of a small factorisation in additions, for [`parallel::worthwhile`] (bench
/// `backend`, row `lu f64 8², batch 64`).
const COST: usize = 8;

/// `len` copies of `value`; a matrix with repeated elements (stride 0) may need more memory than is available.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    out.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { op: "linalg", bytes })?;
    out.resize(len, value);
    Ok(out)
}

/// Product of the factors, saturating.
pub(crate) fn flops(factors: &[usize]) -> usize {
    factors.iter().copied().fold(1, usize::saturating_mul)
}

/// Calls `body` for every matrix of the batch; returns the info codes, with the route of the schedule.
///
/// `work` describes one matrix. The slot of a failed matrix is overwritten with NaN.
///
/// # Errors
/// Errors of `scratch`; `OutOfMemory`.
pub(crate) fn run<J: ResultSlot, S>(
    batch: &[usize],
    mut slots: PerMatrix<J>,
    work: Work,
    scratch: impl Fn(Par) -> Result<S> + Sync + Send,
    body: impl Fn(&mut S, usize, &mut J, Par) -> MatrixStatus + Sync + Send,
) -> Result<Tensor<i32>> {
    let count = slots.len();
    let threads = if parallel::is_inside() { 1 } else { parallel::threads() };
    let mut info = Tensor::zeros(batch)?;
    let codes: &mut [i32] = info.as_mut_slice()?;
    let sequence = |first: usize, slots: &mut [J], codes: &mut [i32], par: Par| -> Result<()> {
        let mut state = scratch(par)?;
        for (i, (slot, code)) in slots.iter_mut().zip(codes).enumerate() {
            let status = body(&mut state, first + i, slot, par);
            if status != MatrixStatus::Done {
                slot.spoil();
            }
            *code = status.code();
        }
        Ok(())
    };
    // Parts of a matrix on one thread, as this thread requires them.
    let alone = work.parts(1);
    let few = !parallel::worthwhile(work.flops().saturating_mul(count), COST);
    let mut path = Path::LinalgSequential;
    if count == 0 {
        path = Path::Empty;
    } else if few || (count == 1 && work.parts(threads) == 1) {
        with_threads(alone, 1, |par| sequence(0, &mut slots, codes, par))?;
    } else if count >= threads || work.parts(threads) == 1 {
        // Four groups per thread balance matrices that converge at different rates.
        let group = count.div_ceil(4 * threads);
        let groups = slots.chunks_mut(group).zip(codes.chunks_mut(group));
        let mut groups: Vec<_> = groups.map(|group| (group, Ok(()))).collect();
        parallel::for_each_mut(&mut groups, true, |g, ((slots, codes), result)| {
            *result = with_threads(alone, 1, |par| sequence(g * group, slots, codes, par));
        });
        groups.into_iter().try_for_each(|(_, result)| result)?;
    } else {
        path = Path::LinalgParallel;
        with_threads(work.parts(threads), threads, |par| sequence(0, &mut slots, codes, par))?;
    }
    Ok(info.with_route(Route::native(path)))
}

/// Overwrites the matrices with a nonzero info code with NaN.
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
