//! Linear systems `A X = B` with broadcast batches, vectors as right-hand sides, and systems of tensors.
//!
//! Along a batch axis in which `A` has size 1, the right-hand sides of all matrices become columns of one system: `A`
//! is factored once.
//!
//! ```text
//! A [3, 1, n, n], B [1, 5, n, r]   →   A [3, 1, n, n], B [3, 1, n, 5·r]   →   X [3, 5, n, r]
//! ```
//!
//! [`Systems`] uses shapes only, so it serves engine tensors and those of a Burn backend.

#[cfg(test)]
mod tests;

use t4a_algebra::Scalar;
use t4a_tensor::layout::Dims;
use t4a_tensor::{Tensor, TensorError};

use crate::error::{LinalgError, Result};
use crate::scalar::LinalgScalar;

/// Movement operations of a tensor type: views, or nodes of a tape.
pub trait Movable: Sized {
    /// Reshape in row-major order.
    ///
    /// # Errors
    /// `Tensor`.
    fn reshaped(self, shape: &[usize]) -> Result<Self>;
    /// Expands axes of size 1.
    ///
    /// # Errors
    /// `Tensor`.
    fn expanded(self, shape: &[usize]) -> Result<Self>;
    /// Axis `i` of the result is axis `axes[i]`.
    ///
    /// # Errors
    /// `Tensor`.
    fn permuted(self, axes: &[usize]) -> Result<Self>;
}

impl<T: Scalar> Movable for Tensor<T> {
    fn reshaped(self, shape: &[usize]) -> Result<Self> {
        Ok(self.reshape(shape)?)
    }
    fn expanded(self, shape: &[usize]) -> Result<Self> {
        Ok(self.expand(shape)?)
    }
    fn permuted(self, axes: &[usize]) -> Result<Self> {
        Ok(self.permute(axes)?)
    }
}

/// Plan that converts a broadcast system to a system with equal batches.
#[derive(Clone, Debug)]
pub struct Systems {
    /// True if the batches are equal and nothing is converted.
    equal: bool,
    /// Batch axes of `A` and `B`, padded to equal numbers.
    a: Dims,
    b: Dims,
    /// Batch axes of the solution.
    batch: Dims,
    /// Batch axes that become columns.
    folded: Dims,
    /// Sizes of one matrix of `A` and of `B`.
    matrix: [usize; 2],
    rhs: [usize; 2],
}

impl Systems {
    /// Plan for matrices `[…, m, n]` with right-hand sides `[…, m, r]`; batch axes of size 1 and missing ones
    /// broadcast. With `fold`, axes in which only `A` has size 1 become columns; otherwise `A` is repeated.
    ///
    /// # Errors
    /// `NotMatrix`; `BatchMismatch` if the batches do not broadcast.
    pub fn new(op: &'static str, a: &[usize], b: &[usize], fold: bool) -> Result<Self> {
        let not_matrix = |shape: &[usize]| LinalgError::NotMatrix { op, shape: shape.to_vec() };
        let &[ref batch_a @ .., m, n] = a else { return Err(not_matrix(a)) };
        let &[ref batch_b @ .., rows, r] = b else { return Err(not_matrix(b)) };
        let (matrix, rhs) = ([m, n], [rows, r]);
        let rank = batch_a.len().max(batch_b.len());
        let pad = |batch: &[usize]| -> Dims {
            (0..rank - batch.len()).map(|_| 1).chain(batch.iter().copied()).collect()
        };
        let equal = batch_a == batch_b;
        let (a_sizes, b_sizes) = (pad(batch_a), pad(batch_b));
        let (mut batch, mut folded) = (Dims::new(), Dims::new());
        for (axis, (&x, &y)) in a_sizes.iter().zip(&b_sizes).enumerate() {
            if x != y && x != 1 && y != 1 {
                let (lhs, rhs, required) = (a.to_vec(), b.to_vec(), "batches that broadcast");
                let axis = axis as isize - (rank + 2) as isize;
                return Err(LinalgError::BatchMismatch { op, lhs, rhs, axis, required });
            }
            if fold && x == 1 && y != 1 {
                folded.push(axis);
            }
            batch.push(if x == 1 { y } else { x });
        }
        Ok(Self { equal, a: a_sizes, b: b_sizes, batch, folded, matrix, rhs })
    }

    /// Batch axes of the factored matrices.
    pub fn factored(&self) -> Dims {
        let size = |(axis, &size)| if self.folded.contains(&axis) { 1 } else { size };
        self.batch.iter().enumerate().map(size).collect()
    }

    /// `A` of the converted system.
    ///
    /// # Errors
    /// `Tensor`.
    pub fn matrices<V: Movable>(&self, a: V) -> Result<V> {
        if self.equal {
            return Ok(a);
        }
        let [m, n] = self.matrix;
        a.reshaped(&with(&self.a, &[m, n]))?.expanded(&with(&self.factored(), &[m, n]))
    }

    /// `B` of the converted system.
    ///
    /// # Errors
    /// `Tensor`.
    pub fn columns<V: Movable>(&self, b: V) -> Result<V> {
        if self.equal {
            return Ok(b);
        }
        let [m, r] = self.rhs;
        let b = b.reshaped(&with(&self.b, &[m, r]))?.expanded(&with(&self.batch, &[m, r]))?;
        let count: usize = self.folded.iter().map(|&axis| self.batch[axis]).product();
        b.permuted(&self.axes())?.reshaped(&with(&self.factored(), &[m, count * r]))
    }

    /// Solution of the original system from that of the converted one, which has `n` rows.
    ///
    /// # Errors
    /// `Tensor`.
    pub fn solution<V: Movable>(&self, x: V) -> Result<V> {
        if self.equal {
            return Ok(x);
        }
        let sizes = with(&self.batch, &[self.matrix[1], self.rhs[1]]);
        let axes = self.axes();
        let permuted: Dims = axes.iter().map(|&axis| sizes[axis]).collect();
        let mut back = vec![0; axes.len()];
        axes.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        x.reshaped(&permuted)?.permuted(&back)
    }

    /// Axis order: remaining batch axes, rows, batch axes that become columns, columns.
    fn axes(&self) -> Dims {
        let rank = self.batch.len();
        let kept = (0..rank).filter(|axis| !self.folded.contains(axis));
        kept.chain([rank]).chain(self.folded.iter().copied()).chain([rank + 1]).collect()
    }
}

fn with(batch: &[usize], matrix: &[usize]) -> Dims {
    batch.iter().chain(matrix).copied().collect()
}

/// Solves with broadcasting, with one plan if the batches differ; a right-hand side of rank 1 is a vector.
pub(crate) fn broadcast<T: LinalgScalar>(
    op: &'static str,
    a: &Tensor<T>,
    b: &Tensor<T>,
    f: impl FnOnce(&Tensor<T>, &Tensor<T>, Option<&Systems>) -> Result<Tensor<T>>,
) -> Result<Tensor<T>> {
    if let ([batch @ .., _, _], [other @ .., _, _]) = (a.shape(), b.shape())
        && batch == other
    {
        return f(a, b, None);
    }
    let vector = b.rank() == 1;
    let b = if vector { b.unsqueeze(1)? } else { b.clone() };
    let systems = Systems::new(op, a.shape(), b.shape(), true)?;
    let x = f(&systems.matrices(a.clone())?, &systems.columns(b)?, Some(&systems))?;
    let x = systems.solution(x)?;
    match vector {
        true => Ok(x.squeeze(x.rank() - 1)?),
        false => Ok(x),
    }
}

/// Number of unknowns of [`tensorsolve`](crate::solve::tensorsolve), and the shape of the solution.
///
/// # Errors
/// `Tensor`.
pub fn tensor_system<'a>(a: &'a [usize], b: &[usize]) -> Result<(usize, &'a [usize])> {
    let n = b.iter().product();
    match a.split_at_checked(b.len()) {
        Some((left, right)) if left == b && right.iter().product::<usize>() == n => Ok((n, right)),
        _ => {
            let required = "[i…, j…] and [i…], as many elements in i… as in j…";
            Err(TensorError::shapes("tensorsolve", a, b, required).into())
        }
    }
}

/// Size of the matrix of [`tensorinv`](crate::inverse::tensorinv), and the shape of the result.
///
/// # Errors
/// `Tensor`.
pub fn tensor_inverse(a: &[usize], left: usize) -> Result<(usize, Vec<usize>)> {
    match a.split_at_checked(left) {
        Some((left, right))
            if left.iter().product::<usize>() == right.iter().product::<usize>() =>
        {
            Ok((left.iter().product(), [right, left].concat()))
        }
        _ => {
            let required = "as many elements in the first axes as in the others";
            Err(TensorError::shape("tensorinv", a, required).into())
        }
    }
}
