//! Factorisations of N-dimensional tensors as matrices: some axes form the rows, the others the columns.

#[cfg(test)]
mod tests;

use t4a_algebra::Scalar;
use t4a_tensor::{Tensor, TensorError};

use crate::eigh::{Eigh, eigh};
use crate::error::Result;
use crate::polar::{Polar, Side, polar};
use crate::qr::{Columns, Qr, qr};
use crate::scalar::LinalgScalar;
use crate::svd::{Svd, Truncation, Vectors, svd, svd_truncated};

/// Partition of the axes of a tensor into rows and columns of a matrix, with the inverse map.
#[derive(Clone, Debug)]
pub struct AxisSplit {
    left: Vec<usize>,
    right: Vec<usize>,
    axes: Vec<usize>,
}

impl AxisSplit {
    /// Partition in which the axes `left`, in this order, become rows; the others, in their order, columns.
    ///
    /// # Errors
    /// `Tensor` for axes out of range or repeated.
    pub fn new(shape: &[usize], left: &[usize]) -> Result<Self> {
        let rank = shape.len();
        for (at, &axis) in left.iter().enumerate() {
            if axis >= rank || left[..at].contains(&axis) {
                return Err(TensorError::Axis { op: "left_dims", axis, rank }.into());
            }
        }
        let rest = (0..rank).filter(|axis| !left.contains(axis));
        let axes: Vec<usize> = left.iter().copied().chain(rest).collect();
        let sizes: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
        let (left, right) = sizes.split_at(left.len());
        Ok(Self { left: left.to_vec(), right: right.to_vec(), axes })
    }

    /// All axes, those of the rows first.
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Sizes of the row axes.
    pub fn rows(&self) -> &[usize] {
        &self.left
    }

    /// Sizes of the column axes.
    pub fn cols(&self) -> &[usize] {
        &self.right
    }

    /// Inverse of the permutation [`axes`](Self::axes).
    pub fn inverse(&self) -> Vec<usize> {
        let mut inverse = vec![0; self.axes.len()];
        self.axes.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
        inverse
    }

    /// The matrix of a tensor of the shape given to [`AxisSplit::new`].
    ///
    /// # Errors
    /// `Tensor`.
    pub fn matrix<T: Scalar>(&self, a: &Tensor<T>) -> Result<Tensor<T>> {
        let shape = [self.left.iter().product(), self.right.iter().product()];
        Ok(a.permute(&self.axes)?.reshape(&shape)?)
    }

    /// The tensor of a matrix: the inverse and the adjoint of [`AxisSplit::matrix`].
    ///
    /// # Errors
    /// `Tensor`.
    pub fn tensor<T: Scalar>(&self, matrix: &Tensor<T>) -> Result<Tensor<T>> {
        let sizes: Vec<usize> = self.left.iter().chain(&self.right).copied().collect();
        Ok(matrix.reshape(&sizes)?.permute(&self.inverse())?)
    }

    /// `[rows, k]` → `[left…, k]`.
    ///
    /// # Errors
    /// `Tensor`.
    pub fn left<T: Scalar>(&self, factor: &Tensor<T>) -> Result<Tensor<T>> {
        let k = factor.shape()[factor.rank() - 1];
        let shape: Vec<usize> = self.left.iter().copied().chain([k]).collect();
        Ok(factor.reshape(&shape)?)
    }

    /// `[k, columns]` → `[k, right…]`.
    ///
    /// # Errors
    /// `Tensor`.
    pub fn right<T: Scalar>(&self, factor: &Tensor<T>) -> Result<Tensor<T>> {
        let shape: Vec<usize> = [factor.shape()[0]].into_iter().chain(self.right.clone()).collect();
        Ok(factor.reshape(&shape)?)
    }
}

/// Singular value decomposition with the axes `left` as rows: `[left…, k]`, `[k]`, `[k, right…]`.
///
/// # Errors
/// As [`svd`] and [`svd_truncated`]; `Tensor` for axes that are out of range or repeated.
///
/// ```
/// use t4a_linalg::left_dims::svd_left_dims;
/// use t4a_tensor::Tensor;
///
/// // aᵢⱼₖ = 1 as a matrix with rows (j, i) and columns k: one singular value √24.
/// let a = Tensor::<f64>::full(&[2, 3, 4], 1.0)?;
/// let svd = svd_left_dims(&a, &[1, 0], None)?;
/// assert_eq!((svd.u.shape(), svd.vh.shape()), (&[3, 2, 4][..], &[4, 4][..]));
/// assert!((svd.s.get(&[0]).unwrap() - 24f64.sqrt()).abs() < 1e-14);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn svd_left_dims<T: LinalgScalar>(
    a: &Tensor<T>,
    left: &[usize],
    truncation: Option<&Truncation>,
) -> Result<Svd<T>> {
    let split = AxisSplit::new(a.shape(), left)?;
    let matrix = split.matrix(a)?;
    let Svd { u, s, vh } = match truncation {
        Some(truncation) => svd_truncated(&matrix, truncation)?.kept,
        None => svd(&matrix, Vectors::Thin)?,
    };
    Ok(Svd { u: split.left(&u)?, s, vh: split.right(&vh)? })
}

/// QR factorisation with the axes `left` as rows: `[left…, k]`, `[k, right…]`.
///
/// # Errors
/// As [`qr`]; `Tensor` for axes that are out of range or repeated.
pub fn qr_left_dims<T: LinalgScalar>(a: &Tensor<T>, left: &[usize]) -> Result<Qr<T>> {
    let split = AxisSplit::new(a.shape(), left)?;
    let Qr { q, r } = qr(&split.matrix(a)?, Columns::Thin)?;
    Ok(Qr { q: split.left(&q)?, r: split.right(&r)? })
}

/// Hermitian eigendecomposition with the axes `left` as rows: `[n]`, `[left…, n]`.
///
/// # Errors
/// As [`eigh`]; `Tensor` for axes that are out of range or repeated.
pub fn eigh_left_dims<T: LinalgScalar>(a: &Tensor<T>, left: &[usize]) -> Result<Eigh<T>> {
    let split = AxisSplit::new(a.shape(), left)?;
    let Eigh { values, vectors } = eigh(&split.matrix(a)?)?;
    Ok(Eigh { values, vectors: split.left(&vectors)? })
}

/// Polar decomposition with the axes `left` as rows: `U` has the axes of `a`, `P` has
/// `[right…, right…]` or `[left…, left…]`.
///
/// # Errors
/// As [`polar`]; `Tensor` for axes that are out of range or repeated.
pub fn polar_left_dims<T: LinalgScalar>(
    a: &Tensor<T>,
    left: &[usize],
    side: Side,
) -> Result<Polar<T>> {
    let split = AxisSplit::new(a.shape(), left)?;
    let Polar { u, p, side } = polar(&split.matrix(a)?, side)?;
    let half = match side {
        Side::Right => &split.right,
        Side::Left => &split.left,
    };
    let p = p.reshape(&[half.as_slice(), half.as_slice()].concat())?;
    Ok(Polar { u: split.tensor(&u)?, p, side })
}
