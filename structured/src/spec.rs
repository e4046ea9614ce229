//! Structure of a graded tensor: legs, flux, and the offset of every block in the buffer.
//!
//! ```text
//! legs    r₁ … r_k | c₁ … c_l          the first `rows` legs are rows
//! block   one sector of each leg, allowed if the charges of all legs fuse to the flux
//! buffer  one row-major matrix per coupled sector of the rows, in ascending order:
//!
//!              c-tuple c-tuple       sector tuples of the row legs by those of the column legs,
//!     r-tuple ┌ block │ block ┐      both in lexicographic order; a block is a strided view of its
//!     r-tuple └ block │ block ┘      matrix
//! ```
//!
//! All allowed blocks are stored, so that sums, gradients and optimisers act on the buffer directly. A product of two
//! tensors is one matrix product per coupled sector.
//!
//! Reference: L. Devos, J. Haegeman, *TensorKit.jl* (2025), for the layout by coupled sectors.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::leg::{Leg, MOST_BLOCKS, MOST_ELEMENTS, inverse, product};
use crate::plan::MoveAxis;
use crate::sector::Sector;
use crate::tuples::{GroupTuples, SectorIndices, SectorTuple, SectorTuples, TuplePlace, number_of};

/// Sizes or strides of the axes of a block.
pub(crate) type BlockDims = SmallVec<[usize; 6]>;

/// Structure of a graded tensor. Clones share it; structures are cached, so that equal structures are usually the
/// same object.
#[derive(Clone, Debug)]
pub struct Spec<S>(Arc<StructureTables<S>>);

#[derive(Debug)]
struct StructureTables<S> {
    /// Unique in the process.
    id: u64,
    legs: Vec<Leg<S>>,
    flux: S,
    rows: usize,
    /// Sector tuples of the row legs, and of the column legs.
    sides: [Arc<SectorTuples<S>>; 2],
    matrices: Vec<SectorMatrix<S>>,
    /// For each coupled sector of the row legs, the index of its matrix.
    matrix_of: Vec<Option<u32>>,
    /// Number of blocks. The list of blocks is built on demand; plans of contractions do not need it.
    count: usize,
    blocks: OnceLock<Vec<SectorBlock>>,
    len: usize,
}

static IDS: AtomicU64 = AtomicU64::new(0);

/// Matrix of all blocks of one coupled sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectorMatrix<S> {
    /// Coupled sector of the row legs.
    pub charge: S,
    /// Offset in the buffer.
    pub offset: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// First block, and one past the last.
    pub(crate) blocks: (usize, usize),
    /// Groups of its row tuples and of its column tuples.
    groups: (u32, u32),
}

/// Block of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectorBlock {
    /// For each leg, the index of its sector.
    pub(crate) places: SectorIndices,
    /// Offset in the buffer.
    pub(crate) offset: usize,
    /// Shape, and strides in the buffer.
    pub(crate) shape: BlockDims,
    pub(crate) strides: BlockDims,
}

impl SectorBlock {
    /// For each leg, the index of its sector.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// Offset in the buffer.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Sizes of its axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Axes of a move from this block to one of the same shape.
    pub(crate) fn axes_to<'a>(
        &'a self,
        to: &'a SectorBlock,
    ) -> impl Iterator<Item = MoveAxis> + 'a {
        let axis =
            |k: usize| MoveAxis { size: self.shape[k], from: self.strides[k], to: to.strides[k] };
        (0..self.shape.len()).map(axis)
    }

    /// Strides of its axes in the buffer, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }
}

impl<S: Sector> Spec<S> {
    /// Structure of tensors with these legs and this flux; the first `rows` legs are rows.
    ///
    /// # Errors
    /// `CoupledSector`; `OddParity`; `ChargeOverflow`; `TooLarge`.
    pub fn new(legs: Vec<Leg<S>>, flux: S, rows: usize) -> Result<Self> {
        let weight = |spec: &StructureTables<S>| size_of::<SectorBlock>() * (1 + spec.count);
        cached((legs, flux, rows), weight, |(legs, flux, rows)| {
            StructureTables::new(legs.clone(), *flux, *rows)
        })
        .map(Self)
    }

    /// Legs, row legs first.
    pub fn legs(&self) -> &[Leg<S>] {
        &self.0.legs
    }

    /// Flux: total charge of all legs of an allowed block.
    pub fn flux(&self) -> S {
        self.0.flux
    }

    /// Number of row legs.
    pub fn rows(&self) -> usize {
        self.0.rows
    }

    /// One matrix per coupled sector, in ascending order.
    pub fn matrices(&self) -> &[SectorMatrix<S>] {
        &self.0.matrices
    }

    /// `√(2 / (m + n))` for each element of an m × n matrix. Random matrices with these standard deviations preserve
    /// the norm of vectors on average, independently of the block structure.
    pub fn scales(&self) -> Vec<f64> {
        let mut scales = Vec::with_capacity(self.len());
        for matrix in self.matrices() {
            let scale = (2.0 / (matrix.rows + matrix.cols) as f64).sqrt();
            scales.resize(scales.len() + matrix.rows * matrix.cols, scale);
        }
        scales
    }

    /// Blocks in the order of their matrices.
    pub fn blocks(&self) -> &[SectorBlock] {
        self.0.blocks.get_or_init(|| self.0.make_blocks())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True if no block is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Identifier of this structure, unique in the process.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// Matrix of a coupled sector.
    pub fn matrix(&self, charge: S) -> Option<&SectorMatrix<S>> {
        Some(&self.0.matrices[self.matrix_index(charge)?])
    }

    pub(crate) fn matrix_index(&self, charge: S) -> Option<usize> {
        self.0.matrices.binary_search_by_key(&charge, |matrix| matrix.charge).ok()
    }

    /// Coupled sectors of the row legs and their dimensions, ascending; includes those without a matching column.
    pub(crate) fn row_charges(&self) -> impl Iterator<Item = (S, usize)> + '_ {
        self.0.sides[0].groups().iter().map(|group| (group.charge, group.size))
    }

    /// Numbers of coupled sectors of the row legs and of the column legs.
    pub(crate) fn charge_counts(&self) -> [usize; 2] {
        [0, 1].map(|side| self.0.sides[side].groups().len())
    }

    /// Structure with another number of row legs.
    ///
    /// # Errors
    /// `CoupledSector`.
    pub fn with_rows(&self, rows: usize) -> Result<Self> {
        Self::new(self.legs().to_vec(), self.flux(), rows)
    }

    /// Shape of the dense tensor.
    pub fn shape(&self) -> Vec<usize> {
        self.0.legs.iter().map(Leg::dim).collect()
    }

    /// Block with the given sector index on each leg.
    pub fn block(&self, places: &[u32]) -> Option<&SectorBlock> {
        if places.len() != self.0.legs.len() {
            return None;
        }
        let (matrix, row, col) = self.find(places.iter().copied())?;
        let width = self.cols_of(matrix).len();
        self.blocks().get(matrix.blocks.0 + row * width + col)
    }

    /// Matrix of a block, and the indices of its row tuple and column tuple.
    fn find(
        &self,
        mut places: impl Iterator<Item = u32>,
    ) -> Option<(&SectorMatrix<S>, usize, usize)> {
        let (row_legs, col_legs) = self.0.legs.split_at(self.0.rows);
        let row = number_of(row_legs, places.by_ref().take(row_legs.len()))?;
        let (matrix, [row, col]) = self.tuples(row, number_of(col_legs, places)?)?;
        Some((matrix, row.row as usize, col.row as usize))
    }

    /// Matrix of the block of a row tuple and a column tuple, given by their indices in lexicographic order.
    fn tuples(&self, row: usize, col: usize) -> Option<(&SectorMatrix<S>, [TuplePlace; 2])> {
        let [above, below] = &self.0.sides;
        let (row, col) = (above.place(row)?, below.place(col)?);
        let matrix = &self.0.matrices[self.0.matrix_of[row.group as usize]? as usize];
        (col.group == matrix.groups.1).then_some((matrix, [row, col]))
    }

    /// Offset of the block of two tuples, given by their indices in lexicographic order, and the number of columns of
    /// its matrix.
    pub(crate) fn place(&self, [row, col]: [usize; 2]) -> Option<(usize, usize)> {
        let (matrix, [row, col]) = self.tuples(row, col)?;
        Some((matrix.offset + row.start * matrix.cols + col.start, matrix.cols))
    }

    /// Number of blocks.
    pub(crate) fn count(&self) -> usize {
        self.0.count
    }

    /// Row tuples of a matrix.
    pub(crate) fn rows_of(&self, matrix: &SectorMatrix<S>) -> GroupTuples<'_, S> {
        self.0.sides[0].of(matrix.groups.0)
    }

    /// Column tuples of a matrix.
    pub(crate) fn cols_of(&self, matrix: &SectorMatrix<S>) -> GroupTuples<'_, S> {
        self.0.sides[1].of(matrix.groups.1)
    }
}

/// Strides of a block of this shape in a matrix with `width` columns.
fn strides_in(shape: &[usize], rows: usize, width: usize, strides: &mut [usize]) {
    let mut stride = 1;
    for axis in (0..shape.len()).rev() {
        if axis + 1 == rows {
            stride = width;
        }
        strides[axis] = stride;
        stride *= shape[axis];
    }
}

impl<S: Sector> StructureTables<S> {
    fn new(legs: Vec<Leg<S>>, flux: S, rows_: usize) -> Result<Self> {
        let op = "graded tensor";
        if rows_ > legs.len() {
            return Err(StructuredError::Rows { op, rows: rows_, rank: legs.len() });
        }
        if !flux.is_valid() {
            return Err(StructuredError::UnknownSector { sector: flux.to_string() });
        }
        if flux.is_odd() {
            return Err(StructuredError::OddParity { op, flux: flux.to_string() });
        }
        let (above, below) = legs.split_at(rows_);
        let sides = [SectorTuples::shared(above, op)?, SectorTuples::shared(below, op)?];
        let [above, below] = [sides[0].groups(), sides[1].groups()];
        let mut matrices = Vec::with_capacity(above.len().min(below.len()));
        let (mut count, mut len) = (0usize, 0usize);
        let mut matrix_of = vec![None; above.len()];
        for (i, group) in above.iter().enumerate() {
            // The coupled sector of the columns is the flux fused with the inverse of that of the rows.
            let rest = product(flux, inverse(group.charge, op)?, op)?;
            let Ok(found) = below.binary_search_by_key(&rest, |cols| cols.charge) else {
                continue;
            };
            let cols = &below[found];
            let tuples = [sides[0].of(i as u32).len(), sides[1].of(found as u32).len()];
            let end = tuples[0].checked_mul(tuples[1]);
            let end = end.and_then(|n| n.checked_add(count)).filter(|&n| n <= MOST_BLOCKS);
            let blocks = (count, end.ok_or(TOO_MANY_BLOCKS)?);
            count = blocks.1;
            matrix_of[i] = Some(matrices.len() as u32);
            let (charge, offset, rows, cols) = (group.charge, len, group.size, cols.size);
            let groups = (i as u32, found as u32);
            matrices.push(SectorMatrix { charge, offset, rows, cols, blocks, groups });
            let end = rows.checked_mul(cols).and_then(|size| len.checked_add(size));
            len = end.filter(|&n| n <= MOST_ELEMENTS).ok_or(StructuredError::TooLarge {
                op,
                what: "elements",
                limit: MOST_ELEMENTS,
            })?;
        }
        let (id, blocks) = (IDS.fetch_add(1, Ordering::Relaxed), OnceLock::new());
        Ok(Self { id, legs, flux, rows: rows_, sides, matrices, matrix_of, count, blocks, len })
    }

    fn make_blocks(&self) -> Vec<SectorBlock> {
        let mut blocks = Vec::with_capacity(self.count);
        for matrix in &self.matrices {
            let cols: Vec<SectorTuple> = self.sides[1].of(matrix.groups.1).iter().collect();
            for row in self.sides[0].of(matrix.groups.0).iter() {
                for col in &cols {
                    let places: SectorIndices =
                        row.places.iter().chain(&col.places).copied().collect();
                    let legs = self.legs.iter().zip(&places);
                    let shape: BlockDims =
                        legs.map(|(leg, &k)| leg.sectors()[k as usize].1).collect();
                    let mut strides = BlockDims::from_elem(1, shape.len());
                    strides_in(&shape, self.rows, matrix.cols, &mut strides);
                    let offset = matrix.offset + row.start * matrix.cols + col.start;
                    blocks.push(SectorBlock { places, offset, shape, strides });
                }
            }
        }
        blocks
    }
}

const TOO_MANY_BLOCKS: StructuredError =
    StructuredError::TooLarge { op: "graded tensor", what: "blocks", limit: MOST_BLOCKS };

/// Compares the data that determine the structure.
impl<S: Sector> PartialEq for Spec<S> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
            || (self.legs(), self.flux(), self.rows()) == (other.legs(), other.flux(), other.rows())
    }
}

impl<S: Sector> Eq for Spec<S> {}

impl<S: Sector> Hash for Spec<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.legs(), self.flux(), self.rows()).hash(state);
    }
}

impl<S: Sector> fmt::Display for Spec<S> {
    /// Prints flux and legs, `charge 0: out {-1: 2, 1: 3} | in {0: 4}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "charge {}:", self.flux())?;
        for (i, leg) in self.legs().iter().enumerate() {
            write!(f, "{} {leg}", if i == self.rows() { " |" } else { "" })?;
        }
        Ok(())
    }
}
