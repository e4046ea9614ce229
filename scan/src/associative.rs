//! Scans over monoids.

use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Meta, OnBatch, Operation, Outcome, Reverse, Value,
};
use t4a_tensor::TensorError;

use crate::cumulative::Cumulative;
use crate::error::{Result, ScanError};
use crate::monoid::{FloatMonoid, Monoid};
use crate::operand;
use crate::recurrence::LinearRecurrence;
use crate::running::Running;

/// Elements of a chunk. The constant fixes the bracketing, so results depend bit for bit only on the number of
/// elements.
const CHUNK: usize = 8;

/// `y_t = x_0 ∘ x_1 ∘ … ∘ x_t` along an axis, for an associative operation.
///
/// Operands and results are the arrays that an element of the monoid consists of, all with the same size
/// along the axis. With `reverse` the scan runs from the end, `y_t = x_{n−1} ∘ … ∘ x_t`; with
/// `exclusive` `y_t` lacks the last element `x_t`, and the first is the identity.
///
/// Chunks of 8 elements are combined elementwise, the chunk totals are scanned recursively at one eighth of the length,
/// and a last pass combines both: about `2 n` operations in `O(log n)` calls of [`Monoid::combine`], each on many
/// elements. If combine is not associative, the result depends on this bracketing; no error is returned.
///
/// On the engine sums, products, extrema and log-sum-exp are [`Cumulative`], affine maps a
/// [`LinearRecurrence`].
///
/// Reference: Blelloch 1990, *Prefix sums and their applications*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AssociativeScan<M = FloatMonoid> {
    /// The associative operation.
    pub monoid: M,
    /// The axis of the scan in every array.
    pub axis: usize,
    /// Scan from the end of the axis.
    pub reverse: bool,
    /// Exclude element t from result t.
    pub exclusive: bool,
}

/// Elements `from .. from + len` of all arrays.
fn part<A: Array>(x: &[A], from: usize, len: usize) -> Vec<A> {
    x.iter().map(|x| x.narrow(0, from, len)).collect()
}

/// Concatenates elements along the first axis.
fn join<A: Array>(parts: &[Vec<A>]) -> Vec<A> {
    let all = |k: usize| A::cat(&parts.iter().map(|x| x[k].clone()).collect::<Vec<A>>(), 0);
    (0..parts[0].len()).map(all).collect()
}

fn plus<A: Array>(x: &[A], y: &[A]) -> Vec<A> {
    x.iter().zip(y).map(|(x, y)| x.add(y)).collect()
}

fn len<A: Array>(x: &[A]) -> usize {
    x[0].shape()[0]
}

/// Elements `i, i + CHUNK, …` for every i: element i of every chunk.
fn columns<A: Array>(x: &[A]) -> Vec<Vec<A>> {
    let chunks = len(x) / CHUNK;
    (0..CHUNK).map(|i| x.iter().map(|x| x.slice(0, i, chunks, CHUNK)).collect()).collect()
}

/// The inverse of [`columns`].
fn interleave<A: Array>(columns: &[Vec<A>]) -> Vec<A> {
    let one = |k: usize| {
        let spread = |x: &Vec<A>| {
            let shape = x[k].shape();
            x[k].reshape(&[&[shape[0], 1], &shape[1..]].concat())
        };
        let together = A::cat(&columns.iter().map(spread).collect::<Vec<A>>(), 1);
        let shape = together.shape();
        together.reshape(&[&[shape[0] * shape[1]], &shape[2..]].concat())
    };
    (0..columns[0].len()).map(one).collect()
}

impl<M: Monoid> AssociativeScan<M> {
    /// An inclusive forward scan.
    pub fn new(monoid: M, axis: usize) -> Self {
        Self { monoid, axis, reverse: false, exclusive: false }
    }

    /// The equivalent [`Cumulative`], if there is one.
    fn running(&self) -> Option<Cumulative> {
        let kind = self.monoid.running().filter(|_| !self.exclusive)?;
        Some(Cumulative { reverse: self.reverse, ..Cumulative::new(kind, self.axis) })
    }

    /// Affine maps as recurrences: `A_t = Π a`, `B_t = a_t B_{t−1} + b_t`.
    fn affine(&self, inputs: &[Value<Eager>]) -> Result<Outcome<Eager>> {
        let &Self { axis, reverse, .. } = self;
        let product = Cumulative { reverse, ..Cumulative::new(Running::Product, axis) };
        let mut out = product.forward(&inputs[..1], &[false])?;
        let recurrence = LinearRecurrence { reverse, ..LinearRecurrence::new(axis) };
        out.results.extend(recurrence.forward(inputs, &[false; 2])?.results);
        Ok(out)
    }

    /// Moves the scan axis to the front; reversed arrays are flipped to forward time.
    fn enter<A: Array>(&self, x: &A) -> A {
        let mut axes: Vec<usize> = (0..x.shape().len()).collect();
        axes.remove(self.axis);
        axes.insert(0, self.axis);
        let x = x.permute(&axes);
        if self.reverse { x.flip(&[0]) } else { x }
    }

    /// The inverse of [`AssociativeScan::enter`].
    fn leave<A: Array>(&self, x: &A) -> A {
        let x = if self.reverse { x.flip(&[0]) } else { x.clone() };
        let mut axes: Vec<usize> = (1..x.shape().len()).collect();
        axes.insert(self.axis, 0);
        x.permute(&axes)
    }

    /// Sequential scan.
    fn sequential<A: Array>(&self, x: &[Vec<A>]) -> Result<Vec<Vec<A>>> {
        let mut all = vec![x[0].clone()];
        for x in &x[1..] {
            let next = self.monoid.combine(&all[all.len() - 1], x)?;
            all.push(next);
        }
        Ok(all)
    }

    /// Cotangents of x in [`AssociativeScan::sequential`], given its result y.
    fn sequential_vjp<A: Array>(
        &self,
        x: &[Vec<A>],
        y: &[Vec<A>],
        cotangents: &[Vec<A>],
    ) -> Result<Vec<Vec<A>>> {
        let mut all = x.to_vec();
        let last = x.len() - 1;
        let mut g = cotangents[last].clone();
        for t in (1..=last).rev() {
            let [before, own] = self.monoid.vjp(&y[t - 1], &x[t], &g)?;
            all[t] = own;
            g = plus(&cotangents[t - 1], &before);
        }
        all[0] = g;
        Ok(all)
    }

    fn scan<A: Array>(&self, x: &[A]) -> Result<Vec<A>> {
        let n = len(x);
        if n < 2 {
            return Ok(x.to_vec());
        }
        if n <= CHUNK {
            let single: Vec<Vec<A>> = (0..n).map(|t| part(x, t, 1)).collect();
            return Ok(join(&self.sequential(&single)?));
        }
        let chunks = n / CHUNK;
        let mut local = self.sequential(&columns(&part(x, 0, chunks * CHUNK)))?;
        let totals = self.scan(&local[CHUNK - 1])?;
        let entering = part(&totals, 0, chunks - 1);
        for local in &mut local[..CHUNK - 1] {
            let later = self.monoid.combine(&entering, &part(local, 1, chunks - 1))?;
            *local = join(&[part(local, 0, 1), later]);
        }
        local[CHUNK - 1] = totals.clone();
        let mut done = vec![interleave(&local)];
        if n > chunks * CHUNK {
            let mut rest = vec![part(&totals, chunks - 1, 1)];
            rest.extend((chunks * CHUNK..n).map(|t| part(x, t, 1)));
            done.extend(self.sequential(&rest)?.split_off(1));
        }
        Ok(join(&done))
    }

    /// Cotangents of x given those of y, propagated through the chunks.
    fn scan_vjp<A: Array>(&self, x: &[A], cotangents: &[A]) -> Result<Vec<A>> {
        let n = len(x);
        if n < 2 {
            return Ok(cotangents.to_vec());
        }
        let singles = |x: &[A], from: usize, to: usize| -> Vec<Vec<A>> {
            (from..to).map(|t| part(x, t, 1)).collect()
        };
        if n <= CHUNK {
            let x = singles(x, 0, n);
            let y = self.sequential(&x)?;
            return Ok(join(&self.sequential_vjp(&x, &y, &singles(cotangents, 0, n))?));
        }
        let chunks = n / CHUNK;
        let whole = chunks * CHUNK;
        let x_columns = columns(&part(x, 0, whole));
        let mut g = columns(&part(cotangents, 0, whole));
        let local = self.sequential(&x_columns)?;
        let totals = self.scan(&local[CHUNK - 1])?;

        // The remainder after the last full chunk.
        let mut of_totals = g.swap_remove(CHUNK - 1);
        let mut done = Vec::new();
        if n > whole {
            let mut rest = vec![part(&totals, chunks - 1, 1)];
            rest.extend(singles(x, whole, n));
            let y = self.sequential(&rest)?;
            let mut of_rest = vec![part(&of_totals, chunks - 1, 1)];
            of_rest.extend(singles(cotangents, whole, n));
            let mut of_rest = self.sequential_vjp(&rest, &y, &of_rest)?;
            done = of_rest.split_off(1);
            of_totals = join(&[part(&of_totals, 0, chunks - 1), of_rest.remove(0)]);
        }
        // Reverse of the pass that combines chunk totals with the elements of the next chunk.
        let entering = part(&totals, 0, chunks - 1);
        let mut of_entering = part(&of_totals, 0, chunks - 1);
        for (local, g) in local.iter().zip(&mut g) {
            let later = part(g, 1, chunks - 1);
            let [before, own] = self.monoid.vjp(&entering, &part(local, 1, chunks - 1), &later)?;
            of_entering = plus(&of_entering, &before);
            *g = join(&[part(g, 0, 1), own]);
        }
        let of_totals = join(&[of_entering, part(&of_totals, chunks - 1, 1)]);
        g.push(self.scan_vjp(&local[CHUNK - 1], &of_totals)?);
        let of_x = interleave(&self.sequential_vjp(&x_columns, &local, &g)?);
        done.insert(0, of_x);
        Ok(join(&done))
    }

    /// Exclusive results: results shifted by one element.
    fn shifted<A: Array>(&self, y: Vec<A>) -> Vec<A> {
        match len(&y) {
            0 => y,
            n => join(&[self.monoid.identity(&part(&y, 0, 1)), part(&y, 0, n - 1)]),
        }
    }
}

impl<M: Monoid> Operation for AssociativeScan<M> {
    type Error = ScanError;

    fn name(&self) -> &'static str {
        "associative_scan"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([self.monoid.arrays(); 2])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        operand::count(op, inputs, self.monoid.arrays())?;
        operand::floats(op, inputs)?;
        for x in inputs {
            operand::axis(op, self.axis, &x.shape)?;
        }
        let n = inputs[0].shape[self.axis];
        if let Some(x) = inputs.iter().find(|x| x.shape[self.axis] != n) {
            let required = "equal sizes along the axis of the scan";
            return Err(TensorError::shapes(op, &inputs[0].shape, &x.shape, required).into());
        }
        let element = |x: &Meta| {
            let mut x = x.clone();
            x.shape.remove(self.axis);
            x
        };
        self.monoid.check(&inputs.iter().map(element).collect::<Vec<_>>())?;
        Ok(inputs.to_vec())
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        match self.running() {
            Some(op) => op.keep(tracked),
            None => Keep::default().all_inputs(),
        }
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let x: Vec<A> = inputs.iter().map(|x| self.enter(x.float())).collect();
        let y = self.scan(&x)?;
        let y = if self.exclusive { self.shifted(y) } else { y };
        Ok(Outcome::new(y.iter().map(|y| self.leave(y)).collect()))
    }

    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<Outcome<Eager>> {
        match self.running() {
            Some(op) => Ok(op.forward(inputs, tracked)?),
            None => match self.monoid.affine() && !self.exclusive {
                true => self.affine(inputs),
                false => self.portable(inputs, tracked),
            },
        }
    }

    /// The batch becomes a leading axis if the scan runs as [`Cumulative`] or [`LinearRecurrence`]. The portable
    /// definition is batched operation by operation.
    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let entrywise = self.running().is_some() || self.monoid.affine();
        let op = Self { axis: self.axis + 1, ..self.clone() };
        (entrywise && !differ.contains(&false)).then_some(OnBatch::front(op))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        if let Some(op) = self.running() {
            return Ok(op.vjp(reverse)?);
        }
        let count = reverse.wanted.len();
        let x: Vec<A> = (0..count).map(|k| self.enter(reverse.kept.float(k))).collect();
        let zeros = |x: &A| x.full(&x.shape(), 0.0);
        let of = |(g, x): (&Option<A>, &A)| g.as_ref().map_or_else(|| zeros(x), |g| self.enter(g));
        let mut g: Vec<A> = reverse.cotangents.iter().zip(&x).map(of).collect();
        let n = len(&x);
        if self.exclusive && n > 0 {
            let nothing = part(&g, 0, 1).iter().map(zeros).collect();
            g = join(&[part(&g, 1, n - 1), nothing]);
        }
        let all = self.scan_vjp(&x, &g)?;
        Ok(all.iter().map(|g| Some(self.leave(g))).collect())
    }

    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>> {
        match self.running() {
            Some(op) => Ok(op.jvp(inputs, tracked)?),
            None => self.portable(inputs, tracked),
        }
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        match self.running() {
            Some(op) => Ok(op.fused_vjp(reverse)?),
            None => self.vjp(reverse),
        }
    }
}
