//! A contraction in panels: rows of one matrix that lie in a cache, moved there and multiplied at once, so that
//! the rearranged operand, or the product before it is rearranged, is never in memory as a whole.
//!
//! ```text
//! operand     the one with the most elements that move: A or B on their way in, C on its way out
//! panel       consecutive rows of one of its matrices as it lies, and the moves of exactly these
//! rows are    rows of C, columns of C, or what is summed over, by operand and transposition
//! ```
//!
//! Panels follow from the plan alone, so that neither threads nor machines change the order of a sum.

use super::{Axis, Builder, Contraction, Move, Rearrangement, View};

/// Elements of a panel of a product with short sides: of a part of the first-level cache.
const FEW_ELEMENTS: usize = 1 << 11;
/// Elements of a panel of other products: of a part of the second-level cache.
const MANY_ELEMENTS: usize = 1 << 16;
/// Least rows of those, since every panel packs the other operand again.
const MANY_ROWS: usize = 256;
/// Elements that a thread keeps room for: longer panels are no gain.
const MOST_ELEMENTS: usize = 1 << 20;
/// Elements from which panels are worth it.
const WORTHWHILE: usize = 1 << 10;

/// Sides up to which a product is one of short sides.
pub(crate) const SHORT: usize = 8;

/// Consecutive rows of a matrix of the operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub(crate) first: usize,
    pub(crate) rows: usize,
    /// The first of its moves, and the one behind the last.
    pub(crate) moves: (u32, u32),
    /// Whether these write all of it.
    pub(crate) full: bool,
}

/// The panels of a product, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// Which of the groups of the products it belongs to.
    pub(crate) group: u32,
    pub(crate) panels: (u32, u32),
}

/// All panels of a contraction.
#[derive(Clone, Debug)]
pub(crate) struct Panels {
    /// Which of A, B and C moves by panels.
    pub(crate) operand: usize,
    /// Its moves, if some of those of the plan had to be cut.
    cut: Option<Rearrangement>,
    pub(crate) panels: Vec<Panel>,
    /// What can be computed at once, by groups.
    pub(crate) tasks: Vec<Task>,
    /// Elements of the largest panel, and of all that moves.
    pub(crate) room: usize,
    pub(crate) elements: usize,
}

/// Rows that moves share: no smaller part of them is written by itself.
struct Atom {
    first: usize,
    rows: usize,
    moves: (u32, u32),
    /// Into how many rows it can be cut.
    piece: Option<usize>,
}

/// The axis of a panel among those of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// Rows of C.
    Rows,
    /// Columns of C.
    Columns,
    /// What is summed over.
    Summed,
}

/// What the rows of an operand are as it lies.
pub(crate) fn along(operand: usize, view: View) -> Along {
    match (operand, view.transposed) {
        (0 | 2, false) => Along::Rows,
        (1 | 2, true) => Along::Columns,
        _ => Along::Summed,
    }
}

/// Rows and columns of a matrix as it lies.
fn stored(view: View) -> (usize, usize) {
    if view.transposed { (view.cols, view.rows) } else { (view.rows, view.cols) }
}

impl Panels {
    /// The panels of a contraction; none where little moves, where matrices are used more than once, and where
    /// moves cannot be cut into parts that lie in a cache.
    ///
    /// Cost: a look at every move, and a copy of all of them if some have to be cut.
    pub(crate) fn new(plan: &Contraction) -> Option<Self> {
        let moved = plan.operands().into_iter().chain([plan.result()]);
        let moved = moved.enumerate().filter_map(|(operand, moves)| Some((operand, moves?)));
        let (operand, moves) = moved.max_by_key(|(_, moves)| moves.elements())?;
        let products = plan.products();
        let start = |one: &Move| if operand == 2 { one.from } else { one.to };
        if moves.elements() < WORTHWHILE
            || !moves.is_disjoint()
            || !moves.moves().is_sorted_by_key(start)
        {
            return None;
        }
        let views = products.views();
        // By matrix of the operand, its group.
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
        let mut cut = Cut { operand, moves, build: None };
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
                Along::Rows => k.max(n),
                Along::Columns => m.max(k),
                Along::Summed => m.max(n),
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
                Along::Summed => found.tasks.push(Task { group, panels }),
                _ => {
                    let one = |panel| Task { group, panels: (panel, panel + 1) };
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
        // Products that take longest first.
        found.tasks.sort_by_key(|task| task.group);
        found.cut = cut.build.map(|build| build.finish(true, false));
        Some(found)
    }

    /// The moves that panels name.
    pub(crate) fn moves<'a>(&'a self, plan: &'a Contraction) -> Option<&'a Rearrangement> {
        let own = match self.operand {
            2 => plan.result(),
            operand => plan.operands()[operand],
        };
        self.cut.as_ref().or(own)
    }
}

/// Moves of the operand, cut where they have to be.
struct Cut<'a> {
    operand: usize,
    moves: &'a Rearrangement,
    /// All moves so far, once one of them was cut.
    build: Option<Builder>,
}

impl Cut<'_> {
    fn start(&self, one: &Move) -> usize {
        if self.operand == 2 { one.from } else { one.to }
    }

    fn stride(&self, axis: &Axis) -> usize {
        if self.operand == 2 { axis.from } else { axis.to }
    }

    /// The axis of a move along which rows are furthest apart.
    fn outer(&self, one: &Move) -> Option<&Axis> {
        self.moves.axes(one).iter().max_by_key(|axis| self.stride(axis))
    }

    /// Moves that go as they are.
    fn keep(&mut self, range: std::ops::Range<usize>) -> (u32, u32) {
        let Some(build) = &mut self.build else { return (range.start as u32, range.end as u32) };
        let first = build.count();
        for one in &self.moves.moves()[range] {
            let axes = self.moves.axes(one).iter().copied();
            build.push(one.from, one.to, one.negative, axes);
        }
        (first, build.count())
    }

    /// The rows of a matrix that moves write together; none if one leaves the matrix.
    fn atoms(&self, view: View, range: std::ops::Range<usize>) -> Option<Vec<Atom>> {
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
            // How many rows an index of the outer axis is, if it has them for itself.
            let outer = self.outer(one);
            let own = |&axis: &&Axis| {
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

    /// Panels of at most so many rows, if moves can be cut there.
    fn panels(&mut self, view: View, atoms: &[Atom], most: usize, panels: &mut Vec<Panel>) {
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
                    // Rows that nothing moves to belong to the panel before them.
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
            let size = |one: &Move| self.moves.axes(one).iter().map(|x| x.size).product::<usize>();
            let piece = atom.piece.map_or(atom.rows, |piece| (most / piece).max(1) * piece);
            if piece >= atom.rows {
                let count = whole.iter().map(size).sum();
                push(atom.first, atom.first + atom.rows, self.keep(range), count);
                continue;
            }
            if self.build.is_none() {
                self.build = Some(Builder::new(self.moves.from_len(), self.moves.to_len()));
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

    /// The parts of moves in some rows of what they write together.
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
                if own { Axis { size, ..axis } } else { axis }
            });
            let axes: smallvec::SmallVec<[Axis; 6]> = axes.collect();
            count += axes.iter().map(|axis| axis.size).product::<usize>();
            let (from, to) = (one.from + at * outer.from, one.to + at * outer.to);
            build.push(from, to, one.negative, axes.into_iter());
        }
        let moves = (before, build.count());
        self.build = Some(build);
        (moves, count)
    }
}
