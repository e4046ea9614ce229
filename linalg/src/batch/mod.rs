//! Batches of matrices: the one way in which a factorisation walks over the leading axes.
//!
//! A matrix is read where it lies, under any strides. Results are stored column by column within
//! each matrix, the order in which faer is fastest, and handed out as a permuted view.
//!
//! Small matrices, or at least as many matrices as threads: one matrix per task, sequential
//! inside, one scratch per task group. Few large matrices: one after the other, threads inside. The
//! size of a matrix alone decides the parts that it is cut into (`threads`).
//! Which of both it was is the route of the statuses, from which results have theirs.

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

pub(crate) use load::{is_finite, load, load_hermitian, load_rows};

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

    /// The batch of matrices, written in this way.
    pub(crate) fn matrices(self, route: Route) -> Result<Tensor<T>> {
        let rank = self.tensor.rank();
        Ok(self.tensor.with_route(route).swap_axes(rank - 2, rank - 1)?)
    }

    /// The batch of transposed matrices: row-major memory.
    pub(crate) fn transposed(self, route: Route) -> Tensor<T> {
        self.tensor.with_route(route)
    }

    /// The batch of vectors, for results with one column.
    pub(crate) fn vectors(self, route: Route) -> Result<Tensor<T>> {
        let axis = self.tensor.rank() - 2;
        Ok(self.tensor.with_route(route).squeeze(axis)?)
    }

    /// The batch of numbers, for results with one element.
    pub(crate) fn numbers(self, route: Route) -> Result<Tensor<T>> {
        let axis = self.tensor.rank() - 2;
        Ok(self.tensor.with_route(route).squeeze(axis)?.squeeze(axis)?)
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
    CommonEigenvalue,
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
            Status::CommonEigenvalue => COMMON_EIGENVALUE,
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

/// Floating-point operations of a whole batch from which waking our threads pays: about 30 µs.
const WORTHWHILE: usize = 1 << 16;

/// `len` elements to work in: of a matrix that repeats its own, more than there may be memory for.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    out.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { bytes })?;
    out.resize(len, value);
    Ok(out)
}

/// The product, or the largest number.
pub(crate) fn flops(factors: &[usize]) -> usize {
    factors.iter().copied().fold(1, usize::saturating_mul)
}

/// Calls `body` for every matrix of the batch and gathers the info codes, whose route says how.
///
/// `work` is that for one matrix. A slot whose body fails is spoiled.
///
/// # Errors
/// Those of `scratch`; `OutOfMemory`.
pub(crate) fn run<J: Slot, S>(
    batch: &[usize],
    mut slots: PerMatrix<J>,
    work: Work,
    scratch: impl Fn(Par) -> Result<S> + Sync + Send,
    body: impl Fn(&mut S, usize, &mut J, Par) -> Status + Sync + Send,
) -> Result<Tensor<i32>> {
    let count = slots.len();
    let threads = parallel::threads();
    let mut info = Tensor::zeros(batch)?;
    let codes: &mut [i32] = info.as_mut_slice()?;
    let sequence = |first: usize, slots: &mut [J], codes: &mut [i32], par: Par| -> Result<()> {
        let mut state = scratch(par)?;
        for (i, (slot, code)) in slots.iter_mut().zip(codes).enumerate() {
            let status = body(&mut state, first + i, slot, par);
            if status != Status::Done {
                slot.spoil();
            }
            *code = status.code();
        }
        Ok(())
    };
    let few = threads == 1 || work.flops().saturating_mul(count) < WORTHWHILE;
    let mut path = Path::LinalgSequential;
    if count == 0 {
        path = Path::Empty;
    } else if few || (count == 1 && work.parts(threads) == 1) {
        with_threads(work.parts(1), 1, |par| sequence(0, &mut slots, codes, par))?;
    } else if count >= threads || work.parts(threads) == 1 {
        // Four groups per thread even out matrices that converge at different speed.
        let group = count.div_ceil(4 * threads);
        let groups = slots.chunks_mut(group).zip(codes.chunks_mut(group));
        let mut groups: Vec<_> = groups.map(|group| (group, Ok(()))).collect();
        parallel::for_each_mut(&mut groups, true, |g, ((slots, codes), result)| {
            *result = with_threads(work.parts(1), 1, |par| sequence(g * group, slots, codes, par));
        });
        groups.into_iter().try_for_each(|(_, result)| result)?;
    } else {
        path = Path::LinalgParallel;
        with_threads(work.parts(threads), threads, |par| sequence(0, &mut slots, codes, par))?;
    }
    Ok(info.with_route(Route::native(path)))
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
