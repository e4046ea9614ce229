//! The structure of a graded tensor: legs, charge, and where every block lies in the buffer.
//!
//! ```text
//! legs    r₁ … r_k | c₁ … c_l          the first `rows` legs are rows
//! block   one sector of each leg, allowed if the charges of all legs add up to the flux
//! buffer  one row-major matrix per charge of the rows, in ascending order:
//!
//!              c-row  c-row         rows of sectors of the row legs by the same of the column legs,
//!     r-row  ┌ block │ block ┐      both in lexicographic order; a block is a strided view of its
//!     r-row  └ block │ block ┘      matrix
//! ```
//!
//! All allowed blocks are stored, so that sums, gradients and optimisers work on the buffer as it is. A
//! product of two tensors is one matrix product per charge.
//!
//! Reference: L. Devos, J. Haegeman, *TensorKit.jl* (2025), for the layout by coupled sectors.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::leg::{
    Leg, MOST_BLOCKS, MOST_ELEMENTS, Places, Row, Rows, inverse, number_of, product, rows,
};
use crate::plan::Axis;
use crate::sector::Sector;

/// Sizes or strides of the axes of a block.
pub(crate) type Dims = SmallVec<[usize; 6]>;

/// The structure of a graded tensor. Cloning shares it; structures in use are made once, so that equal ones
/// usually are the same.
#[derive(Clone, Debug)]
pub struct Spec<S>(Arc<Structure<S>>);

#[derive(Debug)]
struct Structure<S> {
    /// Never that of another structure.
    id: u64,
    legs: Vec<Leg<S>>,
    flux: S,
    rows: usize,
    /// Rows of sectors of the row legs, and of the column legs.
    sides: [Arc<Side<S>>; 2],
    matrices: Vec<Matrix<S>>,
    /// By group of the row legs, its matrix.
    matrix_of: Vec<Option<u32>>,
    /// Number of blocks. Plans of contractions do without the list of them.
    count: usize,
    blocks: OnceLock<Vec<Block>>,
    len: usize,
}

/// Rows of sectors of some of the legs.
#[derive(Debug)]
struct Side<S> {
    /// By charge.
    groups: Vec<Rows<S>>,
    /// Group and row within, by the number of the row in lexicographic order.
    found: Vec<(u32, u32)>,
}

impl<S: Sector> Side<S> {
    /// Made once: structures that follow from each other share sides.
    fn shared(legs: &[Leg<S>], op: &'static str) -> Result<Arc<Self>> {
        let weight = |side: &Self| (size_of::<Row>() + 8) * (1 + side.found.len());
        cached(legs.to_vec(), weight, |legs: &Vec<Leg<S>>| Self::new(legs, op))
    }

    fn new(legs: &[Leg<S>], op: &'static str) -> Result<Self> {
        let groups = rows(legs, op)?;
        let mut found = vec![(0, 0); groups.iter().map(|group| group.rows.len()).sum()];
        for (i, group) in groups.iter().enumerate() {
            for (k, row) in group.rows.iter().enumerate() {
                if let Some(number) = number_of(legs, row.places.iter().copied()) {
                    found[number] = (i as u32, k as u32);
                }
            }
        }
        Ok(Self { groups, found })
    }
}

static IDS: AtomicU64 = AtomicU64::new(0);

/// The matrix of all blocks whose rows have one charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix<S> {
    /// The charge of the row legs.
    pub charge: S,
    /// Where it begins in the buffer.
    pub offset: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Its first block, and the one behind its last.
    pub(crate) blocks: (usize, usize),
    /// The groups of its rows and of its columns.
    groups: (u32, u32),
}

/// A block of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The sector of each leg, as a place among its sectors.
    pub(crate) places: Places,
    /// Where it begins in the buffer.
    pub(crate) offset: usize,
    /// Sizes of its axes, and their distances in the buffer.
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
}

impl Block {
    /// The sector of each leg, as a place among its sectors.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// Where it begins in the buffer.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Sizes of its axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The axes of a move from this block to one of the same shape.
    pub(crate) fn axes_to<'a>(&'a self, to: &'a Block) -> impl Iterator<Item = Axis> + 'a {
        let axis =
            |k: usize| Axis { size: self.shape[k], from: self.strides[k], to: to.strides[k] };
        (0..self.shape.len()).map(axis)
    }

    /// Distances of neighbours along its axes, in elements of the buffer.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }
}

impl<S: Sector> Spec<S> {
    /// The structure of tensors with these legs and this charge, with the first `rows` legs as rows.
    ///
    /// # Errors
    /// `Rows`; `OddParity`; `ChargeOverflow`; `TooLarge`.
    pub fn new(legs: Vec<Leg<S>>, flux: S, rows: usize) -> Result<Self> {
        let weight = |spec: &Structure<S>| size_of::<Block>() * (1 + spec.count);
        cached((legs, flux, rows), weight, |(legs, flux, rows)| {
            Structure::new(legs.clone(), *flux, *rows)
        })
        .map(Self)
    }

    /// The legs.
    pub fn legs(&self) -> &[Leg<S>] {
        &self.0.legs
    }

    /// The charge that the charges of all legs add up to.
    pub fn flux(&self) -> S {
        self.0.flux
    }

    /// How many of the legs are rows.
    pub fn rows(&self) -> usize {
        self.0.rows
    }

    /// One matrix per charge of the rows, in ascending order.
    pub fn matrices(&self) -> &[Matrix<S>] {
        &self.0.matrices
    }

    /// `√(2 / (m + n))` for each element of an m × n matrix: random numbers of these deviations are matrices
    /// that keep the size of vectors, whatever the number of blocks.
    pub fn scales(&self) -> Vec<f64> {
        let mut scales = Vec::with_capacity(self.len());
        for matrix in self.matrices() {
            let scale = (2.0 / (matrix.rows + matrix.cols) as f64).sqrt();
            scales.resize(scales.len() + matrix.rows * matrix.cols, scale);
        }
        scales
    }

    /// The blocks, in the order of their matrices.
    pub fn blocks(&self) -> &[Block] {
        self.0.blocks.get_or_init(|| self.0.make_blocks())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether no block is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// A number that no other structure has.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    /// The matrix of this charge of the row legs.
    pub fn matrix(&self, charge: S) -> Option<&Matrix<S>> {
        Some(&self.0.matrices[self.matrix_index(charge)?])
    }

    pub(crate) fn matrix_index(&self, charge: S) -> Option<usize> {
        self.0.matrices.binary_search_by_key(&charge, |matrix| matrix.charge).ok()
    }

    /// Charges of the row legs and numbers of their states, also of those that meet no column; ascending.
    pub(crate) fn row_charges(&self) -> impl Iterator<Item = (S, usize)> + '_ {
        self.0.sides[0].groups.iter().map(|group| (group.charge, group.size))
    }

    /// Number of charges of the row legs and of the column legs.
    pub(crate) fn charge_counts(&self) -> [usize; 2] {
        [0, 1].map(|side| self.0.sides[side].groups.len())
    }

    /// The structure with another number of row legs.
    ///
    /// # Errors
    /// `Rows`.
    pub fn with_rows(&self, rows: usize) -> Result<Self> {
        Self::new(self.legs().to_vec(), self.flux(), rows)
    }

    /// The shape of the dense tensor.
    pub fn shape(&self) -> Vec<usize> {
        self.0.legs.iter().map(Leg::dim).collect()
    }

    /// The block of these sectors, as places in their legs.
    pub fn block(&self, places: &[u32]) -> Option<&Block> {
        if places.len() != self.0.legs.len() {
            return None;
        }
        let (matrix, row, col) = self.find(places.iter().copied())?;
        let width = self.cols_of(matrix).len();
        self.blocks().get(matrix.blocks.0 + row * width + col)
    }

    /// The matrix of a block, and which of its rows and columns of sectors it is.
    fn find(&self, mut places: impl Iterator<Item = u32>) -> Option<(&Matrix<S>, usize, usize)> {
        let [above, below] = &self.0.sides;
        let (row_legs, col_legs) = self.0.legs.split_at(self.0.rows);
        let row = number_of(row_legs, places.by_ref().take(row_legs.len()))?;
        let &(group, row) = above.found.get(row)?;
        let matrix = &self.0.matrices[self.0.matrix_of[group as usize]? as usize];
        let &(group, col) = below.found.get(number_of(col_legs, places)?)?;
        (group == matrix.groups.1).then_some((matrix, row as usize, col as usize))
    }

    /// Where the block of these sectors begins, and the number of columns of its matrix.
    pub(crate) fn place(&self, places: impl Iterator<Item = u32>) -> Option<(usize, usize)> {
        let (matrix, row, col) = self.find(places)?;
        let (row, col) = (&self.rows_of(matrix)[row], &self.cols_of(matrix)[col]);
        Some((matrix.offset + row.start * matrix.cols + col.start, matrix.cols))
    }

    /// Rows of sectors of a matrix.
    pub(crate) fn rows_of(&self, matrix: &Matrix<S>) -> &[Row] {
        &self.0.sides[0].groups[matrix.groups.0 as usize].rows
    }

    /// Columns of sectors of a matrix.
    pub(crate) fn cols_of(&self, matrix: &Matrix<S>) -> &[Row] {
        &self.0.sides[1].groups[matrix.groups.1 as usize].rows
    }
}

/// Distances of neighbours along the axes of a block of this shape, in a matrix of this many columns.
pub(crate) fn strides_in(shape: &[usize], rows: usize, width: usize, strides: &mut [usize]) {
    let mut stride = 1;
    for axis in (0..shape.len()).rev() {
        if axis + 1 == rows {
            stride = width;
        }
        strides[axis] = stride;
        stride *= shape[axis];
    }
}

impl<S: Sector> Structure<S> {
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
        let sides = [Side::shared(above, op)?, Side::shared(below, op)?];
        let (mut matrices, mut count, mut len) = (Vec::new(), 0usize, 0usize);
        let mut matrix_of = vec![None; sides[0].groups.len()];
        for (i, group) in sides[0].groups.iter().enumerate() {
            // What is left of the flux is the charge of the columns.
            let rest = product(flux, inverse(group.charge, op)?, op)?;
            let Ok(found) = sides[1].groups.binary_search_by_key(&rest, |cols| cols.charge) else {
                continue;
            };
            let cols = &sides[1].groups[found];
            let end = group.rows.len().checked_mul(cols.rows.len());
            let end = end.and_then(|n| n.checked_add(count)).filter(|&n| n <= MOST_BLOCKS);
            let blocks = (count, end.ok_or(TOO_MANY_BLOCKS)?);
            count = blocks.1;
            matrix_of[i] = Some(matrices.len() as u32);
            let (charge, offset, rows, cols) = (group.charge, len, group.size, cols.size);
            let groups = (i as u32, found as u32);
            matrices.push(Matrix { charge, offset, rows, cols, blocks, groups });
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

    fn make_blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::with_capacity(self.count);
        for matrix in &self.matrices {
            let [rows, cols] = [
                &self.sides[0].groups[matrix.groups.0 as usize].rows,
                &self.sides[1].groups[matrix.groups.1 as usize].rows,
            ];
            for row in rows {
                for col in cols {
                    let places: Places = row.places.iter().chain(&col.places).copied().collect();
                    let legs = self.legs.iter().zip(&places);
                    let shape: Dims = legs.map(|(leg, &k)| leg.sectors()[k as usize].1).collect();
                    let mut strides = Dims::from_elem(1, shape.len());
                    strides_in(&shape, self.rows, matrix.cols, &mut strides);
                    let offset = matrix.offset + row.start * matrix.cols + col.start;
                    blocks.push(Block { places, offset, shape, strides });
                }
            }
        }
        blocks
    }
}

const TOO_MANY_BLOCKS: StructuredError =
    StructuredError::TooLarge { op: "graded tensor", what: "blocks", limit: MOST_BLOCKS };

/// All that the rest follows from.
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
    /// Charge and legs, `charge 0: out {-1: 2, 1: 3} | in {0: 4}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "charge {}:", self.flux())?;
        for (i, leg) in self.legs().iter().enumerate() {
            write!(f, "{} {leg}", if i == self.rows() { " |" } else { "" })?;
        }
        Ok(())
    }
}
