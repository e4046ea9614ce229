//! Contraction of structures: choice of rows and columns, rearrangements, and signs.
//!
//! ```text
//! A [free, x…]   B [x…, free]        the order of the contracted legs x is chosen to move the fewest elements
//! matrices       one product per coupled sector of the free legs of A
//! signs          permutations in A and in B; nesting of odd pairs; −1 per odd pair whose leg of A is outgoing
//! ```

use std::sync::Arc;

use super::signs::{Parities, reverses};
use super::{PlanArguments, check_axes, permuted};
use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::leg::{Direction, Leg, inverse, product};
use crate::operation::Contract;
use crate::plan::{ContractionPlan, MatrixView, Products, Rearrangement};
use crate::sector::Sector;
use crate::spec::Spec;

const OP: &str = "contract";

impl<S: Sector> Spec<S> {
    /// Contraction over pairs of axes. The free legs of `self` become the rows of the result, those of `other` the
    /// columns.
    ///
    /// # Errors
    /// `MoveAxis`, `Rank`, `LegMismatch`, `ChargeOverflow`, `OddParity`, `TooLarge`.
    pub fn contract(
        &self,
        other: &Self,
        axes: &[usize],
        other_axes: &[usize],
    ) -> Result<(Self, Contract)> {
        if axes.len() != other_axes.len() {
            let (required, given) = (axes.len(), other_axes.len());
            return Err(StructuredError::Rank { op: OP, required, given });
        }
        check_axes(OP, self.legs().len(), axes)?;
        check_axes(OP, other.legs().len(), other_axes)?;
        let all = axes.iter().chain(other_axes).map(|&axis| axis as u32);
        let arguments: PlanArguments = all.collect();
        let weight = |planned: &(Self, Arc<ContractionPlan>)| planned.1.bytes();
        let planned = cached((OP, self.id(), other.id(), arguments), weight, |_| {
            check_legs(self, other, axes, other_axes)?;
            plan(self, other, axes, other_axes)
        })?;
        Ok((planned.0.clone(), Contract { plan: planned.1.clone() }))
    }
}

fn check_legs<S: Sector>(a: &Spec<S>, b: &Spec<S>, i: &[usize], j: &[usize]) -> Result<()> {
    for (&axis, &other) in i.iter().zip(j) {
        let (lhs, rhs) = (&a.legs()[axis], &b.legs()[other]);
        if !lhs.contracts_with(rhs) {
            return Err(StructuredError::LegMismatch {
                op: OP,
                axis,
                lhs: lhs.to_string(),
                other,
                rhs: rhs.to_string(),
                required: match lhs.direction() == rhs.direction() {
                    true => "opposite directions",
                    false => "the same sectors, fused from the same legs",
                },
            });
        }
    }
    Ok(())
}

/// Operand as matrices.
struct OperandMatrices<S> {
    /// Row axes, then column axes.
    order: Vec<usize>,
    rows: usize,
    /// `Some(transposed)` if the stored matrices are those of the product, or their transposes; `None` if they are
    /// rearranged.
    native: Option<bool>,
    spec: Spec<S>,
}

impl<S: Sector> OperandMatrices<S> {
    fn new(spec: &Spec<S>, order: Vec<usize>, rows: usize) -> Self {
        let counts = |order: &[usize]| order.iter().copied().eq(0..order.len());
        let turned = [&order[rows..], &order[..rows]].concat();
        let native = if counts(&order) && spec.rows() == rows {
            Some(false)
        } else if counts(&turned) && spec.rows() == order.len() - rows {
            Some(true)
        } else {
            None
        };
        Self { order, rows, native, spec: spec.clone() }
    }

    /// Number of moved elements.
    fn cost(&self) -> usize {
        if self.native.is_some() { 0 } else { self.spec.len() }
    }

    /// Structure of the matrices, true if they are transposed, and the rearrangement that makes them.
    fn enter(
        &self,
        negative: impl Fn(&[u32]) -> bool,
    ) -> Result<(Spec<S>, bool, Option<Arc<Rearrangement>>)> {
        let moves = |to: &Spec<S>| {
            let plan = permuted(&self.spec, to, &self.order, &negative);
            Some(Arc::new(plan))
        };
        let signed =
            S::FERMIONIC && self.spec.blocks().iter().any(|block| negative(block.places()));
        match self.native {
            Some(transposed) if !signed => Ok((self.spec.clone(), transposed, None)),
            _ => {
                let legs = self.order.iter().map(|&axis| self.spec.legs()[axis].clone()).collect();
                let to = Spec::new(legs, self.spec.flux(), self.rows)?;
                let plan = moves(&to);
                Ok((to, false, plan))
            }
        }
    }
}

fn plan<S: Sector>(
    a: &Spec<S>,
    b: &Spec<S>,
    i: &[usize],
    j: &[usize],
) -> Result<(Spec<S>, Arc<ContractionPlan>)> {
    let free = |spec: &Spec<S>, summed: &[usize]| -> Vec<usize> {
        (0..spec.legs().len()).filter(|axis| !summed.contains(axis)).collect()
    };
    let (free_a, free_b) = (free(a, i), free(b, j));
    let legs: Vec<Leg<S>> = free_a
        .iter()
        .map(|&axis| a.legs()[axis].clone())
        .chain(free_b.iter().map(|&axis| b.legs()[axis].clone()))
        .collect();
    let c = Spec::new(legs, product(a.flux(), b.flux(), OP)?, free_a.len())?;

    // The contracted legs are in the order of A or of B, whichever moves fewer elements.
    let sides = |key: &[usize]| {
        let mut pairs: Vec<usize> = (0..i.len()).collect();
        pairs.sort_unstable_by_key(|&k| key[k]);
        let order_a = free_a.iter().copied().chain(pairs.iter().map(|&k| i[k])).collect();
        let order_b = pairs.iter().map(|&k| j[k]).chain(free_b.iter().copied()).collect();
        (OperandMatrices::new(a, order_a, free_a.len()), OperandMatrices::new(b, order_b, j.len()))
    };
    let (by_a, by_b) = (sides(i), sides(j));
    let cost = |(a, b): &(OperandMatrices<S>, OperandMatrices<S>)| a.cost() + b.cost();
    let (side_a, side_b) = if cost(&by_a) <= cost(&by_b) { by_a } else { by_b };

    let (odd_a, odd_b) = (Parities::new(a), Parities::new(b));
    let out: Vec<usize> =
        i.iter().copied().filter(|&k| a.legs()[k].direction() == Direction::Out).collect();
    // The bond signs may be applied to either operand: to one that is rearranged anyway, or to the smaller one.
    let bonds_on_b = match (side_a.cost(), side_b.cost()) {
        (0, 0) => a.len() > b.len(),
        (0, _) => true,
        _ => false,
    };
    let bond = |odd: usize, out: usize| reverses(odd) != (out % 2 == 1);
    let out_b: Vec<usize> = (0..i.len())
        .filter(|&k| a.legs()[i[k]].direction() == Direction::Out)
        .map(|k| j[k])
        .collect();
    let negative_a = |block: &[u32]| {
        let bond = !bonds_on_b
            && bond(odd_a.count(block, i.iter().copied()), odd_a.count(block, out.iter().copied()));
        odd_a.inverts(block, &side_a.order) != bond
    };
    let negative_b = |block: &[u32]| {
        let bond = bonds_on_b
            && bond(
                odd_b.count(block, j.iter().copied()),
                odd_b.count(block, out_b.iter().copied()),
            );
        odd_b.inverts(block, &side_b.order) != bond
    };
    let (spec_a, turned_a, moves_a) = side_a.enter(negative_a)?;
    let (spec_b, turned_b, moves_b) = side_b.enter(negative_b)?;
    let terms = terms(&spec_a, turned_a, &spec_b, turned_b, &c)?;
    let lens = [spec_a.len(), spec_b.len(), c.len()];
    let products = Products::new(
        lens,
        views(&spec_a, turned_a),
        views(&spec_b, turned_b),
        views(&c, false),
        terms,
    )?;
    Ok((c, Arc::new(ContractionPlan::new(moves_a, moves_b, products, None)?)))
}

fn views<S: Sector>(spec: &Spec<S>, transposed: bool) -> Vec<MatrixView> {
    let view = |matrix: &crate::spec::SectorMatrix<S>| {
        let &crate::spec::SectorMatrix { offset, rows, cols, .. } = matrix;
        match transposed {
            false => MatrixView { offset, rows, cols, transposed },
            true => MatrixView { offset, rows: cols, cols: rows, transposed },
        }
    };
    spec.matrices().iter().map(view).collect()
}

/// Terms of the products, by coupled sector of the free legs of A. A matrix of C without a term is zero.
fn terms<S: Sector>(
    a: &Spec<S>,
    turned_a: bool,
    b: &Spec<S>,
    turned_b: bool,
    c: &Spec<S>,
) -> Result<Vec<[u32; 3]>> {
    let mut terms = Vec::with_capacity(c.matrices().len());
    for (k, matrix) in c.matrices().iter().enumerate() {
        let charge = matrix.charge;
        // Total charge of the contracted legs of A; it is the inverse of that of B's.
        let rest = product(a.flux(), inverse(charge, OP)?, OP)?;
        let rows_a = if turned_a { rest } else { charge };
        let rows_b = match turned_b {
            false => inverse(rest, OP)?,
            true => product(c.flux(), inverse(charge, OP)?, OP)?,
        };
        if let (Some(i), Some(j)) = (a.matrix_index(rows_a), b.matrix_index(rows_b)) {
            terms.push([i as u32, j as u32, k as u32]);
        }
    }
    Ok(terms)
}
