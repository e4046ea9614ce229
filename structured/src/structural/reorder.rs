//! Rearrangement of blocks by a permutation of legs.
//!
//! ```text
//! block of y   a row tuple and a column tuple of sectors
//! block of x   the numbers of its two tuples are sums, and its sizes and strides products, of one part per sector
//! ```
//!
//! The parts of the first legs of a side, and those of the other ones, are combined once, so that a tuple costs a few products.

use std::ops::Range;

use crate::leg::Leg;
use crate::plan::{MoveAxis, Rearrangement, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::Spec;
use crate::tuples::{GroupTuples, SectorIndices};

/// Maps every block of x to the block of `to` whose axis `k` is axis `axes[k]` of x. `negative` returns true for the
/// sector indices of a block of x whose sign changes.
///
/// Cost: about twenty nanoseconds per block (bench `graded`). Blocks are located by the numbers of their row
/// and column tuples, without a list of all blocks.
pub(super) fn permuted<S: Sector>(
    from: &Spec<S>,
    to: &Spec<S>,
    axes: &[usize],
    negative: impl Fn(&[u32]) -> bool,
) -> Rearrangement {
    let legs = LegParts::new(from, to, axes);
    let mut build = RearrangementBuilder::with_capacity(from.len(), to.len(), to.count());
    let mut places = SectorIndices::from_elem(0, axes.len());
    let [mut rows, mut cols] = [0..to.rows(), to.rows()..axes.len()].map(|own| legs.side(own));
    for matrix in to.matrices() {
        let (rows, cols) = (rows.fill(to.rows_of(matrix)), cols.fill(to.cols_of(matrix)));
        for (i, row) in rows.tuples.iter().enumerate() {
            // Blocks of the result are visited in storage order, so that writes are sequential.
            for (j, col) in cols.tuples.iter().enumerate() {
                let numbers = [0, 1].map(|side: usize| row.numbers[side] + col.numbers[side]);
                let Some((start, width)) = from.place(numbers) else { continue };
                let changes = S::FERMIONIC && {
                    let [row, col] = [to.rows_of(matrix).get(i), to.cols_of(matrix).get(j)];
                    for (&place, &axis) in row.places.iter().chain(&col.places).zip(axes) {
                        places[axis] = place;
                    }
                    negative(&places)
                };
                let (from_widths, to_widths) = ([width, 1], [matrix.cols, 1]);
                let axis = |((long, r), c): ((&LongAxis, &MoveAxis), &MoveAxis)| MoveAxis {
                    size: r.size * c.size,
                    from: r.from * c.from * from_widths[long.side_of_x],
                    to: r.to * c.to * to_widths[long.side],
                };
                let offset = matrix.offset + row.start * matrix.cols + col.start;
                let own = legs.long.iter().zip(rows.axes(i)).zip(cols.axes(j));
                let own = own.filter(|((_, r), c)| r.size * c.size != 1).map(axis);
                build.push_sorted(start, offset, changes, own);
            }
        }
    }
    build.finish(true, true)
}

/// Axis of y with a sector of more than one state; all other axes have size 1 in every block.
struct LongAxis {
    axis: usize,
    axis_of_x: usize,
    /// 0 for a row leg of y, 1 for a column leg.
    side: usize,
    side_of_x: usize,
}

/// Part of a sector, or of sectors of several legs.
#[derive(Clone, Copy, Debug)]
struct TuplePart {
    /// Summands of the numbers of the row tuple and of the column tuple of x.
    numbers: [usize; 2],
    /// First state among those of the coupled sector; for tuples of a whole side.
    start: usize,
}

/// Parts of some tuples; for each of them, factors of the sizes and strides of all long axes.
#[derive(Clone)]
struct TupleParts {
    tuples: Vec<TuplePart>,
    axes: Vec<MoveAxis>,
    rank: usize,
}

impl TupleParts {
    /// No tuple yet; memory for this number of them.
    fn with_room(tuples: usize, rank: usize) -> Self {
        let axes = Vec::with_capacity(tuples * rank);
        Self { tuples: Vec::with_capacity(tuples), axes, rank }
    }

    /// The empty tuple.
    fn one(rank: usize) -> Self {
        let axes = vec![MoveAxis { size: 1, from: 1, to: 1 }; rank];
        Self { tuples: vec![TuplePart { numbers: [0, 0], start: 0 }], axes, rank }
    }

    #[inline]
    fn axes(&self, tuple: usize) -> &[MoveAxis] {
        &self.axes[tuple * self.rank..(tuple + 1) * self.rank]
    }

    /// Adds the combination of a tuple of `a` and a tuple of `b`.
    #[inline]
    fn push(&mut self, (a, i): (&TupleParts, usize), (b, j): (&TupleParts, usize), start: usize) {
        let (x, y) = (a.tuples[i].numbers, b.tuples[j].numbers);
        self.tuples.push(TuplePart { numbers: [x[0] + y[0], x[1] + y[1]], start });
        let product = |(a, b): (&MoveAxis, &MoveAxis)| MoveAxis {
            size: a.size * b.size,
            from: a.from * b.from,
            to: a.to * b.to,
        };
        self.axes.extend(a.axes(i).iter().zip(b.axes(j)).map(product));
    }

    /// All pairs of tuples.
    fn outer(self, other: &TupleParts) -> TupleParts {
        let mut all = TupleParts::with_room(self.tuples.len() * other.tuples.len(), self.rank);
        for i in 0..self.tuples.len() {
            (0..other.tuples.len()).for_each(|j| all.push((&self, i), (other, j), 0));
        }
        all
    }
}

/// For each axis of y, the parts of its sectors.
struct LegParts {
    legs: Vec<TupleParts>,
    /// In the order of y.
    long: Vec<LongAxis>,
}

impl LegParts {
    fn new<S: Sector>(from: &Spec<S>, to: &Spec<S>, axes: &[usize]) -> Self {
        let side_of_x = |axis: usize| usize::from(axis >= from.rows());
        let side = |axis: usize| usize::from(axis >= to.rows());
        let (mut weights, mut next) = (vec![0; axes.len()], [1, 1]);
        for (axis, leg) in from.legs().iter().enumerate().rev() {
            let weight = &mut next[side_of_x(axis)];
            weights[axis] = *weight;
            *weight *= leg.sectors().len();
        }
        let is_long = |&axis: &usize| to.legs()[axis].sectors().iter().any(|&(_, n)| n > 1);
        let long = (0..axes.len()).filter(is_long).map(|axis| {
            let axis_of_x = axes[axis];
            LongAxis { axis, axis_of_x, side: side(axis), side_of_x: side_of_x(axis_of_x) }
        });
        let long: Vec<LongAxis> = long.collect();
        let part = |(axis, leg): (usize, &Leg<S>)| {
            let axis_of_x = axes[axis];
            let mut parts = TupleParts::with_room(leg.sectors().len(), long.len());
            for (place, &(_, states)) in leg.sectors().iter().enumerate() {
                let mut numbers = [0, 0];
                numbers[side_of_x(axis_of_x)] = place * weights[axis_of_x];
                parts.tuples.push(TuplePart { numbers, start: 0 });
                // The stride of an axis is the product of the sizes of those behind it on its side.
                let factor = |is_factor: bool| if is_factor { states } else { 1 };
                parts.axes.extend(long.iter().map(|other| MoveAxis {
                    size: factor(other.axis == axis),
                    from: factor(
                        other.side_of_x == side_of_x(axis_of_x) && other.axis_of_x < axis_of_x,
                    ),
                    to: factor(other.side == side(axis) && other.axis < axis),
                }));
            }
            parts
        };
        let legs = to.legs().iter().enumerate().map(part).collect();
        Self { legs, long }
    }

    /// Parts of the tuples of these axes.
    fn side(&self, axes: Range<usize>) -> SideParts {
        let legs = &self.legs[axes];
        let all = |legs: &[TupleParts]| match legs {
            [first, others @ ..] => others.iter().fold(first.clone(), TupleParts::outer),
            [] => TupleParts::one(self.long.len()),
        };
        let count =
            |legs: &[TupleParts]| legs.iter().map(|leg| leg.tuples.len()).product::<usize>();
        let entries = |&k: &usize| count(&legs[..k]).saturating_add(count(&legs[k..]));
        let middle = (0..=legs.len()).min_by_key(entries).unwrap_or(0);
        let [leading, trailing] = [all(&legs[..middle]), all(&legs[middle..])];
        SideParts { leading, trailing, of: TupleParts::with_room(64, self.long.len()) }
    }
}

/// Parts of the tuples of one side of y.
struct SideParts {
    /// All tuples of the first legs, and of the other ones.
    leading: TupleParts,
    trailing: TupleParts,
    /// The tuples of one matrix.
    of: TupleParts,
}

impl SideParts {
    fn fill<S>(&mut self, tuples: GroupTuples<'_, S>) -> &TupleParts {
        self.of.tuples.clear();
        self.of.axes.clear();
        let count = self.trailing.tuples.len();
        for (number, start) in tuples.numbers() {
            self.of.push((&self.leading, number / count), (&self.trailing, number % count), start);
        }
        &self.of
    }
}
