//! Adjacent columns of a matrix with strided rows, and matrix products.

use std::marker::PhantomData;

use t4a_algebra::gemm::{GemmError, MatMut, MatRef, Product};
use t4a_algebra::{Numeric, Standard};

use super::share::DisjointParts;
use super::{Fresh, Full};
use crate::error::{Result, TensorError};
use crate::loops::parallel::threads;

/// Number of independent columns in one work item: at most `most`, fewer if some threads would be idle, but whole cache
/// lines. Results must not depend on it. Short pieces of rows at power-of-two distances share few cache sets (bench
/// `backend`, row `cumsum 1024² columns` on two threads).
pub(crate) fn tile_width(columns: usize, most: usize, parallel: bool) -> usize {
    const LEAST: usize = 32;
    match parallel {
        true => (columns / threads()).next_multiple_of(LEAST).max(LEAST).min(most),
        false => most,
    }
}

/// Columns to be written, row after row.
pub(crate) struct OutputColumns<'a, T> {
    place: ColumnMemory<'a, T>,
    /// The next row.
    at: *mut T,
    /// Number of rows written.
    done: usize,
    /// True if the next row is lent.
    lent: bool,
}

/// Columns that have been written.
pub(crate) struct FullColumns<'a, T>(ColumnMemory<'a, T>);

/// Memory of columns. Rows of different places are disjoint.
struct ColumnMemory<'a, T> {
    first: *mut T,
    rows: usize,
    pitch: usize,
    width: usize,
    life: PhantomData<&'a mut [T]>,
}

impl<T> ColumnMemory<'_, T> {
    /// All columns of a row-major matrix.
    fn matrix(first: *mut T, rows: usize, cols: usize) -> Self {
        Self { first, rows, pitch: cols, width: cols, life: PhantomData }
    }

    /// First element of a row.
    #[inline(always)]
    fn row(&self, i: usize) -> *mut T {
        self.first.wrapping_add(i * self.pitch)
    }

    /// `C ← A·B` or `C ← C + A·B` with these columns as C.
    ///
    /// # Safety
    /// The columns are written, or the product does not accumulate.
    unsafe fn product(
        &mut self,
        op: &'static str,
        (a, b): (MatRef<'_, T>, MatRef<'_, T>),
        accumulate: bool,
    ) -> Result<()>
    where
        T: Numeric,
    {
        let shape = (self.rows, self.width);
        // SAFETY: rows do not overlap and are exclusively owned; an overwriting product does not read C.
        let c = unsafe { MatMut::from_raw_parts(self.first, shape, (self.pitch as isize, 1)) };
        let refused = |error: GemmError| TensorError::value(op, error.to_string());
        let product = Product::new(a, b, c).map_err(refused)?;
        product.accumulate(accumulate).run::<Standard>();
        Ok(())
    }
}

impl<'a, T: Copy> OutputColumns<'a, T> {
    /// Number of rows.
    #[inline(always)]
    pub(crate) fn rows(&self) -> usize {
        self.place.rows
    }

    /// Elements of a row.
    #[inline(always)]
    pub(crate) fn width(&self) -> usize {
        self.place.width
    }

    /// The next row, to be returned to [`OutputColumns::done`].
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Fresh<'a, T> {
        assert!(!self.lent && self.done < self.place.rows);
        self.lent = true;
        // SAFETY: the row is exclusively borrowed and not lent.
        Fresh(unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.place.width) })
    }

    /// Takes back the lent row after it is written.
    #[inline(always)]
    pub(crate) fn done(&mut self, row: Full<'a, T>) {
        let lent = (self.at.cast_const(), self.place.width);
        assert!(self.lent && row.span() == lent, "not all was written");
        self.lent = false;
        self.at = self.at.wrapping_add(self.place.pitch);
        self.done += 1;
    }

    /// The columns, after every row has been written.
    #[inline(always)]
    pub(crate) fn finish(self) -> FullColumns<'a, T> {
        assert!(self.done == self.place.rows && !self.lent, "not all was written");
        FullColumns(self.place)
    }

    /// Has `f` write row after row.
    #[inline(always)]
    pub(crate) fn write(
        mut self,
        mut f: impl FnMut(usize, Fresh<'a, T>) -> Full<'a, T>,
    ) -> FullColumns<'a, T> {
        for i in 0..self.place.rows {
            let row = self.next();
            self.done(f(i, row));
        }
        self.finish()
    }

    /// Writes `A·B`.
    pub(crate) fn product(
        mut self,
        op: &'static str,
        a: MatRef<'_, T>,
        b: MatRef<'_, T>,
    ) -> Result<FullColumns<'a, T>>
    where
        T: Numeric,
    {
        assert!(self.done == 0 && !self.lent);
        // SAFETY: overwrites them.
        unsafe { self.place.product(op, (a, b), false)? };
        Ok(FullColumns(self.place))
    }
}

impl<T> FullColumns<'_, T> {
    /// A row.
    #[inline(always)]
    pub(crate) fn row(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.0.rows);
        // SAFETY: the row is exclusively owned, and written.
        unsafe { std::slice::from_raw_parts_mut(self.0.row(i), self.0.width) }
    }

    /// Adds `A·B`.
    pub(crate) fn add_product(
        &mut self,
        op: &'static str,
        a: MatRef<'_, T>,
        b: MatRef<'_, T>,
    ) -> Result<()>
    where
        T: Numeric,
    {
        // SAFETY: they are written.
        unsafe { self.0.product(op, (a, b), true) }
    }
}

/// Columns as a sum of matrix products.
pub(crate) enum ProductSum<'a, T> {
    /// No term yet.
    Empty(OutputColumns<'a, T>),
    /// The accumulated terms.
    Begun(FullColumns<'a, T>),
}

impl<'a, T: Numeric> ProductSum<'a, T> {
    /// Adds `A·B`; the first term overwrites the memory.
    pub(crate) fn add(self, op: &'static str, a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<Self> {
        Ok(Self::Begun(match self {
            Self::Empty(columns) => columns.product(op, a, b)?,
            Self::Begun(mut columns) => {
                columns.add_product(op, a, b)?;
                columns
            }
        }))
    }

    /// The sum.
    pub(crate) fn finish(self) -> FullColumns<'a, T> {
        match self {
            Self::Empty(columns) => columns.write(|_, row| row.fill(T::ZERO)),
            Self::Begun(columns) => columns,
        }
    }
}

/// `C ← C + A·B` with C row-major.
pub(crate) fn add_product<T: Numeric>(
    op: &'static str,
    c: &mut [T],
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
) -> Result<()> {
    let (rows, cols) = (a.rows(), b.cols());
    assert_eq!(c.len(), rows * cols);
    // SAFETY: they are written.
    unsafe { ColumnMemory::matrix(c.as_mut_ptr(), rows, cols).product(op, (a, b), true) }
}

/// Matrices of `rows × cols`, cut into groups of `width` columns: part `i` is group
/// `i mod ⌈cols/width⌉` of a matrix.
pub(crate) struct ColumnParts<'a, T> {
    first: *mut T,
    numel: usize,
    rows: usize,
    cols: usize,
    width: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: threads access disjoint columns.
unsafe impl<T: Send> Sync for ColumnParts<'_, T> {}

impl<T> ColumnParts<'_, T> {
    fn place<'a>(&self, i: usize) -> ColumnMemory<'a, T> {
        let groups = self.cols.div_ceil(self.width);
        let (matrix, from) = (i / groups, i % groups * self.width);
        ColumnMemory {
            first: self.first.wrapping_add(matrix * self.rows * self.cols + from),
            rows: self.rows,
            pitch: self.cols,
            width: self.width.min(self.cols - from),
            life: PhantomData,
        }
    }
}

impl<'a, T: Copy> Fresh<'a, T> {
    /// The elements as matrices of `rows × cols`, cut into groups of `width` columns.
    pub(crate) fn columns(self, [rows, cols]: [usize; 2], width: usize) -> ColumnParts<'a, T> {
        let numel = self.len();
        assert!(width > 0 && (numel == 0 || numel.is_multiple_of(rows * cols)));
        let first = self.0.as_mut_ptr().cast();
        ColumnParts { first, numel, rows, cols, width, life: PhantomData }
    }

    /// Writes the matrix `A·B`, row-major.
    pub(crate) fn product(
        self,
        op: &'static str,
        a: MatRef<'_, T>,
        b: MatRef<'_, T>,
    ) -> Result<Full<'a, T>>
    where
        T: Numeric,
    {
        let (rows, cols) = (a.rows(), b.cols());
        assert_eq!(self.len(), rows * cols);
        let first = self.0.as_mut_ptr().cast();
        // SAFETY: overwrites them.
        unsafe { ColumnMemory::matrix(first, rows, cols).product(op, (a, b), false)? };
        Ok(self.full())
    }
}

// SAFETY: columns of different parts are disjoint, and `check` compares the addresses.
unsafe impl<'a, T: Copy> DisjointParts for ColumnParts<'a, T> {
    type Part = OutputColumns<'a, T>;
    type Done = FullColumns<'a, T>;
    type Whole = Full<'a, T>;
    fn count(&self) -> usize {
        match self.numel {
            0 => 0,
            numel => numel / (self.rows * self.cols) * self.cols.div_ceil(self.width),
        }
    }
    unsafe fn part(&self, i: usize) -> OutputColumns<'a, T> {
        let place = self.place(i);
        OutputColumns { at: place.first, place, done: 0, lent: false }
    }
    fn check(&self, i: usize, done: FullColumns<'a, T>) {
        let (want, got) = (self.place(i), done.0);
        let same = want.first == got.first && want.rows == got.rows && want.width == got.width;
        assert!(same && want.pitch == got.pitch, "not all was written");
    }
    unsafe fn whole(self) -> Full<'a, T> {
        // SAFETY: the columns are the run.
        Full(unsafe { std::slice::from_raw_parts_mut(self.first, self.numel) })
    }
}
