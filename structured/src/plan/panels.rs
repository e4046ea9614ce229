//! Contraction in panels: a few rows of one matrix at a time are moved and multiplied while they are in cache. The
//! rearranged operand (or the product before its rearrangement) is never stored as a whole.
//!
//! ```text
//! operand     the one with the most moved elements: A or B before the product, C after it
//! panel       consecutive stored rows of one of its matrices, and the moves of exactly these rows
//! rows are    rows of C, columns of C, or the contracted dimension, by operand and transposition
//! ```
//!
//! Panels are determined by the plan alone, so that the order of sums depends neither on threads nor on the machine.

use super::{
    BlockMove, ContractionPlan, MatrixView, MoveAxis, Rearrangement, RearrangementBuilder,
};

/// Elements of a panel of a product with short dimensions: a fraction of the L1 cache.
const FEW_ELEMENTS: usize = 1 << 11;
/// Elements of a panel of other products: a fraction of the L2 cache.
const MANY_ELEMENTS: usize = 1 << 16;
/// Minimum number of rows of these panels, since every panel packs the other operand again.
const MANY_ROWS: usize = 256;
/// Maximum size of the panel memory of a thread, in elements; longer panels are not faster.
const MOST_ELEMENTS: usize = 1 << 20;
/// Minimum number of moved elements for which panels are used.
const WORTHWHILE: usize = 1 << 10;
/// Contractions with fewer moved elements and fewer multiply-adds than these have no panels either: their buffers fit the L2
/// cache, and panels would take longer to plan than they save (bench `graded`, D = 64).
const FEW_MOVED: usize = 1 << 15;
const FEW_STEPS: usize = 1 << 20;

/// Dimensions up to this size are short.
pub(crate) const SHORT: usize = 8;

/// Consecutive stored rows of a matrix of the operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub(crate) first: usize,
    pub(crate) rows: usize,
    /// First move of the panel, and one past the last.
    pub(crate) moves: (u32, u32),
    /// True if the moves write every element of the panel.
    pub(crate) full: bool,
}

/// Panels of one product, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PanelTask {
    /// Index of the group of products that the panels belong to.
    pub(crate) group: u32,
    pub(crate) panels: (u32, u32),
}

/// Division of a contraction into panels.
#[derive(Clone, Debug)]
pub(crate) struct ContractionPanels {
    /// Index of the operand that is moved by panels: 0 = A, 1 = B, 2 = C.
    pub(crate) operand: usize,
    /// Moves of this operand, if some of those of the plan had to be split.
    cut: Option<Rearrangement>,
    pub(crate) panels: Vec<Panel>,
    /// Tasks that can run concurrently, by groups.
    pub(crate) tasks: Vec<PanelTask>,
    /// Number of elements of the largest panel.
    pub(crate) room: usize,
    pub(crate) elements: usize,
}

/// Rows that are written by overlapping moves, and therefore cannot be divided between moves.
struct Atom {
    first: usize,
    rows: usize,
    moves: (u32, u32),
    /// Number of rows at whose multiples all moves can be split; `None` if they cannot.
    piece: Option<usize>,
}

/// Dimension of the product along which the panels divide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PanelDimension {
    /// Rows of C.
    Rows,
    /// Columns of C.
    Columns,
    /// The contracted dimension.
    Summed,
}

/// Dimension of the product that corresponds to the stored rows of an operand.
pub(crate) fn along(operand: usize, view: MatrixView) -> PanelDimension {
    match (operand, view.transposed) {
        (0 | 2, false) => PanelDimension::Rows,
        (1 | 2, true) => PanelDimension::Columns,
        _ => PanelDimension::Summed,
    }
}

/// Rows and columns of a matrix in its stored layout.
fn stored(view: MatrixView) -> (usize, usize) {
    if view.transposed { (view.cols, view.rows) } else { (view.rows, view.cols) }
}

impl ContractionPanels {
    /// Panels of a contraction. `None` if few elements move, if a matrix is used more than once, or if the moves
    /// cannot be split into cache-sized parts.
    ///
    /// Cost: one pass over the moves, and a copy of all of them if some are split.
    pub(crate) fn new(plan: &ContractionPlan) -> Option<Self> {
        let moved = plan.operands().into_iter().chain([plan.result()]);
        let moved = moved.enumerate().filter_map(|(operand, moves)| Some((operand, moves?)));
        let (operand, moves) = moved.max_by_key(|(_, moves)| moves.elements())?;
        let products = plan.products();
        let start = |one: &BlockMove| if operand == 2 { one.from } else { one.to };
        let few = moves.elements() < FEW_MOVED && products.steps() < FEW_STEPS;
        if few
            || moves.elements() < WORTHWHILE
            || !moves.is_disjoint()
            || !moves.moves().is_sorted_by_key(start)
        {
            return None;
        }
        let views = products.views();
        // For each matrix of the operand, its group.
        let mut group_of = vec![None; views[operand].len()];
        let mut seen = [0, 1].map(|i: usize| vec![false; views[i].len()]);
        for (g, group) in products.groups().iter().enumerate() {
            let terms = products.terms_of(group);
            let &[term] = terms else { if terms.is_empty() { continue } else { return None } };
            for (i, seen) in seen.iter_mut().enumerate() {
                if std::mem::replace(&mut seen[term[i] as usize], true) {
                    return None;
                }
            }
            if (0..3).any(|i| views[i][term[i] as usize].is_empty()) {
                return None;
            }
            group_of[term[operand] as usize] = Some((g as u32, term));
        }
        let elements = moves.elements();
        let mut found =
            Self { operand, cut: None, panels: vec![], tasks: vec![], room: 0, elements };
        let mut cut = SplitMoves { operand, moves, build: None };
        let mut next = 0;
        for (view, group) in views[operand].iter().zip(&group_of) {
            let first = next;
            let behind =
                moves.moves()[first..].partition_point(|x| start(x) < view.offset + view.len());
            next += behind;
            let Some((group, term)) = *group else {
                cut.keep(first..next);
                continue;
            };
            let atoms = cut.atoms(*view, first..next)?;
            let sides = [0, 1].map(|i| views[i][term[i] as usize]);
            let (m, k, n) = (sides[0].rows, sides[0].cols, sides[1].cols);
            let short = match along(operand, *view) {
                PanelDimension::Rows => k.max(n),
                PanelDimension::Columns => m.max(k),
                PanelDimension::Summed => m.max(n),
            } <= SHORT;
            let (_, len) = stored(*view);
            let most = match short {
                true => (FEW_ELEMENTS / len).max(1),
                false => (MANY_ELEMENTS / len).max(MANY_ROWS),
            };
            let from = found.panels.len() as u32;
            cut.panels(*view, &atoms, most, &mut found.panels);
            let panels = (from, found.panels.len() as u32);
            match along(operand, *view) {
                PanelDimension::Summed => found.tasks.push(PanelTask { group, panels }),
                _ => {
                    let one = |panel| PanelTask { group, panels: (panel, panel + 1) };
                    found.tasks.extend((panels.0..panels.1).map(one));
                }
            }
            let own = &found.panels[from as usize..];
            let most = own.iter().map(|panel| panel.rows).max().unwrap_or(0);
            found.room = found.room.max(most * len);
        }
        if found.room > MOST_ELEMENTS {
            return None;
        }
        // Longest products first.
        found.tasks.sort_by_key(|task| task.group);
        found.cut = cut.build.map(|build| build.finish(true, false));
        Some(found)
    }

    /// Moves that the panels refer to.
    pub(crate) fn moves<'a>(&'a self, plan: &'a ContractionPlan) -> Option<&'a Rearrangement> {
        let own = match self.operand {
            2 => plan.result(),
            operand => plan.operands()[operand],
        };
        self.cut.as_ref().or(own)
    }
}

/// Moves of the operand, split where necessary.
struct SplitMoves<'a> {
    operand: usize,
    moves: &'a Rearrangement,
    /// Copy of the moves so far; `None` until the first one is split.
    build: Option<RearrangementBuilder>,
}

impl SplitMoves<'_> {
    fn start(&self, one: &BlockMove) -> usize {
        if self.operand == 2 { one.from } else { one.to }
    }

    fn stride(&self, axis: &MoveAxis) -> usize {
        if self.operand == 2 { axis.from } else { axis.to }
    }

    /// Axis of a move with the largest stride in the matrix.
    fn outer(&self, one: &BlockMove) -> Option<&MoveAxis> {
        self.moves.axes(one).iter().max_by_key(|axis| self.stride(axis))
    }

    /// Appends moves unchanged.
    fn keep(&mut self, range: std::ops::Range<usize>) -> (u32, u32) {
        let Some(build) = &mut self.build else { return (range.start as u32, range.end as u32) };
        let first = build.count();
        for one in &self.moves.moves()[range] {
            let axes = self.moves.axes(one).iter().copied();
            build.push_sorted(one.from, one.to, one.negative, axes);
        }
        (first, build.count())
    }

    /// Groups of rows written by overlapping moves; `None` if a move leaves the matrix.
    fn atoms(&self, view: MatrixView, range: std::ops::Range<usize>) -> Option<Vec<Atom>> {
        let (_, len) = stored(view);
        let mut atoms: Vec<Atom> = Vec::new();
        for (i, one) in self.moves.moves()[range.clone()].iter().enumerate() {
            let axes = self.moves.axes(one);
            let start = self.start(one) - view.offset;
            let last = start + axes.iter().map(|x| (x.size - 1) * self.stride(x)).sum::<usize>();
            if last >= view.len() {
                return None;
            }
            let (first, behind) = (start / len, last / len + 1);
            // Rows per index of the outer axis, if different indices write different rows.
            let outer = self.outer(one);
            let own = |&axis: &&MoveAxis| {
                let (stride, behind) = (self.stride(axis), last - start + 1);
                let rest = behind - (axis.size - 1) * stride;
                stride % len == 0 && start % len + rest <= stride
            };
            let piece = outer.filter(own).map(|axis| self.stride(axis) / len);
            let i = (range.start + i) as u32;
            match atoms.last_mut() {
                Some(atom) if first < atom.first + atom.rows => {
                    let common = |a: usize, b: usize| {
                        let most = a.max(b);
                        let fits = most.is_multiple_of(a) && most.is_multiple_of(b);
                        (first == atom.first && fits).then_some(most)
                    };
                    atom.piece = atom.piece.zip(piece).and_then(|(a, b)| common(a, b));
                    atom.rows = atom.rows.max(behind - atom.first);
                    atom.moves.1 = i + 1;
                }
                _ => atoms.push(Atom { first, rows: behind - first, moves: (i, i + 1), piece }),
            }
        }
        Some(atoms)
    }

    /// Divides the atoms into panels of at most `most` rows where moves can be split.
    fn panels(&mut self, view: MatrixView, atoms: &[Atom], most: usize, panels: &mut Vec<Panel>) {
        let (height, len) = stored(view);
        let from = panels.len();
        let mut elements = 0;
        let mut push = |first: usize, end: usize, moves: (u32, u32), count: usize| {
            match panels[from..].last_mut() {
                Some(panel) if end - panel.first <= most => {
                    panel.rows = end - panel.first;
                    panel.moves.1 = moves.1;
                    elements += count;
                }
                last => {
                    // Rows without moves belong to the preceding panel.
                    let first = match last {
                        Some(panel) => {
                            panel.rows = first - panel.first;
                            panel.full = elements == panel.rows * len;
                            first
                        }
                        None => 0,
                    };
                    elements = count;
                    panels.push(Panel { first, rows: end - first, moves, full: false });
                }
            }
        };
        for atom in atoms {
            let range = atom.moves.0 as usize..atom.moves.1 as usize;
            let whole = &self.moves.moves()[range.clone()];
            let size =
                |one: &BlockMove| self.moves.axes(one).iter().map(|x| x.size).product::<usize>();
            let piece = atom.piece.map_or(atom.rows, |piece| (most / piece).max(1) * piece);
            if piece >= atom.rows {
                let count = whole.iter().map(size).sum();
                push(atom.first, atom.first + atom.rows, self.keep(range), count);
                continue;
            }
            if self.build.is_none() {
                self.build =
                    Some(RearrangementBuilder::new(self.moves.from_len(), self.moves.to_len()));
                self.keep(0..range.start);
            }
            for first in (0..atom.rows).step_by(piece) {
                let (moves, count) = self.part(range.clone(), len, (first, piece));
                let end = (first + piece).min(atom.rows);
                push(atom.first + first, atom.first + end, moves, count);
            }
        }
        match panels[from..].last_mut() {
            Some(panel) => {
                panel.rows = height - panel.first;
                panel.full = elements == panel.rows * len;
            }
            None => panels.push(Panel { first: 0, rows: height, moves: (0, 0), full: false }),
        }
    }

    /// Restriction of the moves of an atom to some of its rows.
    fn part(
        &mut self,
        range: std::ops::Range<usize>,
        len: usize,
        (first, rows): (usize, usize),
    ) -> ((u32, u32), usize) {
        let Some(mut build) = self.build.take() else { return ((0, 0), 0) };
        let (before, mut count) = (build.count(), 0);
        for one in &self.moves.moves()[range] {
            let Some(&outer) = self.outer(one) else { continue };
            let each = self.stride(&outer) / len;
            let (at, end) = (first / each, ((first + rows) / each).min(outer.size));
            if at >= end {
                continue;
            }
            let size = end - at;
            let mut cut = false;
            let axes = self.moves.axes(one).iter().map(|&axis| {
                let own = axis == outer && !std::mem::replace(&mut cut, axis == outer);
                if own { MoveAxis { size, ..axis } } else { axis }
            });
            let axes: smallvec::SmallVec<[MoveAxis; 6]> = axes.collect();
            count += axes.iter().map(|axis| axis.size).product::<usize>();
            let (from, to) = (one.from + at * outer.from, one.to + at * outer.to);
            build.push_sorted(from, to, one.negative, axes.into_iter());
        }
        let moves = (before, build.count());
        self.build = Some(build);
        (moves, count)
    }
}
