//! Matrix products over any semiring, `C ← A ⊗ B` and `C ← C ⊕ A ⊗ B`, on strided operands and
//! batches of them.
//!
//! ```text
//! view        MatRef, MatMut: strided matrices, any signed strides
//! partition   batch entries and blocks of C over threads
//! report      the algorithm used
//! driver      blocking for the caches, generic over semiring and element
//! pack        panels in the access order of the microkernel
//! microkernel MR × NR accumulators in vector registers
//! argmax      the same with the argmax of every sum
//! arithmetic  arithmetic of the microkernel on packed elements
//! interleaved small matrices with interleaved elements
//! library     f32, f64, c32, c64 over (+, ×)
//! transposed  row-major left factors of the library
//! small       the same without packing, for small products
//! unchecked   tropical semirings, without checks for ∞, NaN and overflow if possible
//! log_sum     log-sum-exp, as products of exponentials
//! widen       16-bit floats, in blocks of f32
//! ```
//!
//! Threads partition the rows and columns of C, never the sum over k, so results do not depend on the number of
//! threads.

mod argmax;
mod arithmetic;
mod driver;
mod interleaved;
pub(crate) mod library;
pub(crate) mod log_sum;
mod microkernel;
mod pack;
mod partition;
mod report;
mod scratch;
mod small;
mod transposed;
mod unchecked;
mod view;
pub(crate) mod widen;

pub use interleaved::{Interleaved, interleaved};
pub use report::{Algorithm, Report};
pub use view::{MatMut, MatRef};

use crate::{Extended, Scalar, Selective, Semiring, UncheckedSemiring};

/// Argmax of a sum that is the semiring's zero.
pub const NO_ARGMAX: u32 = u32::MAX;

/// Invalid operands of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum GemmError {
    #[error("gemm: A is {m}×{k}, B is {k_b}×{n} and C is {m_c}×{n_c}; needed m×k, k×n and m×n")]
    Shape { m: usize, k: usize, k_b: usize, n: usize, m_c: usize, n_c: usize },
    #[error(
        "gemm: a {rows}×{cols} matrix with strides ({row_stride}, {col_stride}) at offset \
         {offset} does not fit into {len} elements"
    )]
    OutOfBounds {
        rows: usize,
        cols: usize,
        row_stride: isize,
        col_stride: isize,
        offset: usize,
        len: usize,
    },
    #[error(
        "gemm: elements of the {rows}×{cols} output with strides ({row_stride}, {col_stride}) \
         overlap"
    )]
    Overlap { rows: usize, cols: usize, row_stride: isize, col_stride: isize },
    #[error(
        "gemm: the argmax needs a {rows}×{cols} matrix with the strides ({row_stride}, \
         {col_stride}) of C, given before the batch"
    )]
    Argmax { rows: usize, cols: usize, row_stride: isize, col_stride: isize },
    #[error("gemm: {k} terms numbered from {first} exceed the range of indices, 0 to 2³² − 2")]
    IndexRange { k: usize, first: usize },
}

/// Maximum number of threads for one matrix product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallelism {
    /// The calling thread only.
    #[default]
    Seq,
    /// At most this many threads including the calling one; 0 means all of
    /// [`parallel::threads`](crate::parallel::threads). Small products stay on the calling thread.
    Threads(usize),
}

/// A matrix product over a semiring, for [`Semiring::GEMM`]; with `ARGMAX` also the argmax, for
/// [`Selective::GEMM_ARGMAX`].
///
/// The safe constructors return the kernels of this crate; a user-defined kernel needs the unsafe [`Kernel::new`].
pub struct Kernel<T, const ARGMAX: bool = false>(unsafe fn(&Product<'_, T>) -> Report);

impl<T, const ARGMAX: bool> Clone for Kernel<T, ARGMAX> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const ARGMAX: bool> Copy for Kernel<T, ARGMAX> {}

impl<T, const ARGMAX: bool> Kernel<T, ARGMAX> {
    /// A user-defined kernel.
    ///
    /// # Safety
    /// `f` writes every element of C of all products that satisfy the contract of [`Product::batch`], and with `ARGMAX`
    /// every argmax if the product has memory for it. It reads no element of C unless the product accumulates. It
    /// reports [`Algorithm::Custom`].
    pub const unsafe fn new(f: unsafe fn(&Product<'_, T>) -> Report) -> Self {
        Self(f)
    }
}

impl<T: Scalar> Kernel<T> {
    /// The blocked product, generic over semiring and element.
    pub const fn generic<S: Semiring<T>>() -> Self {
        Self(driver::product::<S, T>)
    }

    /// The blocked product without checks, used if the operands permit it.
    pub const fn unchecked<S: UncheckedSemiring<T>>() -> Self
    where
        T: Extended,
    {
        Self(unchecked::product::<S, T>)
    }
}

impl<T: Scalar> Kernel<T, true> {
    /// The blocked product with argmax, generic over selective semiring and element.
    pub const fn generic_argmax<S: Selective<T>>() -> Self {
        Self(driver::product_argmax::<S, T>)
    }

    /// [`Kernel::unchecked`] with the argmax.
    pub const fn unchecked_argmax<S: UncheckedSemiring<T>>() -> Self
    where
        T: Extended,
    {
        Self(unchecked::product_argmax::<S, T>)
    }
}

/// One batch axis: its size and the strides, in elements, between consecutive entries of each operand. Stride 0 in A or
/// B repeats that operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchAxis {
    /// Number of entries.
    pub size: usize,
    /// Stride of A.
    pub a: isize,
    /// Stride of B.
    pub b: isize,
    /// Stride of C; no two entries may overlap.
    pub c: isize,
}

/// `C[β] ← A[β] ⊗ B[β]` for every batch index β: A is m×k, B is k×n, C is m×n.
///
/// Cost: batch·m·n·k steps `c ⊕ (a ⊗ b)`. No allocation, except packing buffers that each thread retains, at most about
/// 4 MiB.
///
/// ```
/// use t4a_algebra::{Standard, gemm::{MatMut, MatRef, Product}};
/// let (a, b) = ([1.0f32, 2.0, 3.0, 4.0], [5.0f32, 6.0]);
/// let mut c = [0.0f32; 2];
/// Product::new(
///     MatRef::row_major(&a, 2, 2)?,
///     MatRef::row_major(&b, 2, 1)?,
///     MatMut::row_major(&mut c, 2, 1)?,
/// )?
/// .run::<Standard>();
/// assert_eq!(c, [17.0, 39.0]);
/// # Ok::<(), t4a_algebra::gemm::GemmError>(())
/// ```
#[derive(Debug)]
pub struct Product<'a, T> {
    a: MatRef<'a, T>,
    b: MatRef<'a, T>,
    c: MatMut<'a, T>,
    batch: &'a [BatchAxis],
    accumulate: bool,
    parallelism: Parallelism,
    arg: Option<ArgmaxPointer>,
    first: usize,
}

/// Element (0, 0) of the argmax of the first batch entry.
#[derive(Clone, Copy, Debug)]
struct ArgmaxPointer(*mut u32);

// SAFETY: an output pointer as exclusive as C; threads write disjoint parts.
unsafe impl Send for ArgmaxPointer {}
// SAFETY: as above.
unsafe impl Sync for ArgmaxPointer {}

impl<'a, T: Scalar> Product<'a, T> {
    /// One product that overwrites C.
    ///
    /// # Errors
    /// [`GemmError::Shape`] unless the shapes are m×k, k×n and m×n.
    #[inline]
    pub fn new(a: MatRef<'a, T>, b: MatRef<'a, T>, c: MatMut<'a, T>) -> Result<Self, GemmError> {
        let (m, k, n) = (a.rows(), a.cols(), b.cols());
        if b.rows() != k || c.rows() != m || c.cols() != n {
            let (k_b, m_c, n_c) = (b.rows(), c.rows(), c.cols());
            return Err(GemmError::Shape { m, k, k_b, n, m_c, n_c });
        }
        let (accumulate, parallelism) = (false, Parallelism::Seq);
        Ok(Self { a, b, c, batch: &[], accumulate, parallelism, arg: None, first: 0 })
    }

    /// Computes `C ← C ⊕ A ⊗ B` if true, instead of overwriting C.
    #[inline]
    #[must_use]
    pub fn accumulate(self, accumulate: bool) -> Self {
        Self { accumulate, ..self }
    }

    /// Output matrix for [`Product::run_argmax`]: the smallest k whose term equals the sum, plus `first`, or
    /// [`NO_ARGMAX`] if the sum is 0. Terms of 16-bit floats are compared before rounding, unless one of the operands
    /// is NaN or infinite.
    ///
    /// The argmax of every batch entry of C has the same offset as C. An accumulating product replaces the argmax of
    /// the elements that it improves, so the blocks of a long sum may be computed one after another, each with its
    /// `first`.
    ///
    /// # Errors
    /// [`GemmError::Argmax`] unless `arg` has the shape and strides of C and there is no batch yet,
    /// [`GemmError::IndexRange`].
    pub fn argmax(self, arg: MatMut<'a, u32>, first: usize) -> Result<Self, GemmError> {
        let (rows, cols) = (self.c.rows(), self.c.cols());
        let (row_stride, col_stride) = (self.c.row_stride(), self.c.col_stride());
        let same = (arg.rows(), arg.cols()) == (rows, cols)
            && (rows < 2 || arg.row_stride() == row_stride)
            && (cols < 2 || arg.col_stride() == col_stride);
        if !same || !self.batch.is_empty() {
            return Err(GemmError::Argmax { rows, cols, row_stride, col_stride });
        }
        let k = self.a.cols();
        if first.checked_add(k).is_none_or(|end| end > NO_ARGMAX as usize) {
            return Err(GemmError::IndexRange { k, first });
        }
        Ok(Self { arg: Some(ArgmaxPointer(arg.as_mut_ptr())), first, ..self })
    }

    /// Sets the maximum number of threads.
    #[inline]
    #[must_use]
    pub fn parallelism(self, parallelism: Parallelism) -> Self {
        Self { parallelism, ..self }
    }

    /// Repeats the product over the index space of `axes`, outermost first.
    ///
    /// # Safety
    /// The matrices of every entry must satisfy the contracts of [`MatRef::from_raw_parts`] and
    /// [`MatMut::from_raw_parts`], and no two entries of C may overlap. With [`Product::argmax`], the same holds for
    /// the argmax.
    #[inline]
    #[must_use]
    pub unsafe fn batch(self, axes: &'a [BatchAxis]) -> Self {
        Self { batch: axes, ..self }
    }

    /// True if C has no elements.
    #[inline]
    fn is_empty(&self) -> bool {
        let (m, n) = (self.c.rows(), self.c.cols());
        m == 0 || n == 0 || self.batch.iter().any(|axis| axis.size == 0)
    }

    /// Computes the product over the semiring `S`; the report names the algorithm used.
    #[inline]
    pub fn run<S: Semiring<T>>(&mut self) -> Report {
        if self.is_empty() {
            return Report::new(Algorithm::Nothing);
        }
        // SAFETY: the contracts of the operands' and the batch's constructors hold.
        unsafe { (S::GEMM.0)(self) }
    }

    /// Computes the product over `S`, and the argmax of every sum if [`Product::argmax`] was called.
    ///
    /// ```
    /// use t4a_algebra::{MinPlus, gemm::{MatMut, MatRef, Product}};
    /// // Shortest way over one of three stops, and which.
    /// let (to, from) = ([4.0, 1.0, 3.0], [1.0, 9.0, 2.0]);
    /// let (mut length, mut stop) = ([0.0], [0]);
    /// Product::new(
    ///     MatRef::row_major(&to, 1, 3)?,
    ///     MatRef::row_major(&from, 3, 1)?,
    ///     MatMut::row_major(&mut length, 1, 1)?,
    /// )?
    /// .argmax(MatMut::row_major(&mut stop, 1, 1)?, 0)?
    /// .run_argmax::<MinPlus>();
    /// assert_eq!((length, stop), ([5.0], [0]));
    /// # Ok::<(), t4a_algebra::gemm::GemmError>(())
    /// ```
    #[inline]
    pub fn run_argmax<S: Selective<T>>(&mut self) -> Report {
        if self.is_empty() || self.arg.is_none() {
            return self.run::<S>();
        }
        // SAFETY: as for `run`; the contract of the argmax matrix holds too.
        unsafe { (S::GEMM_ARGMAX.0)(self) }
    }

    /// Left factor of the first batch entry.
    #[inline]
    pub fn a(&self) -> MatRef<'a, T> {
        self.a
    }

    /// Right factor of the first batch entry.
    #[inline]
    pub fn b(&self) -> MatRef<'a, T> {
        self.b
    }

    /// Output of the first batch entry.
    #[inline]
    pub fn c(&self) -> &MatMut<'a, T> {
        &self.c
    }

    /// Batch axes, outermost first.
    #[inline]
    pub fn batch_axes(&self) -> &'a [BatchAxis] {
        self.batch
    }

    /// True if the product is added to C.
    #[inline]
    pub fn accumulates(&self) -> bool {
        self.accumulate
    }

    /// Maximum number of threads.
    #[inline]
    pub fn threads(&self) -> Parallelism {
        self.parallelism
    }
}
