//! Factorisations of diagonal matrices: sorted diagonal entries and permutation matrices.
//!
//! Singular vectors and eigenvectors are unit vectors up to signs and do not depend on the values of the diagonal.
//! Only the values have derivatives; each is a linear map of the diagonal, recorded as one node.

use std::cmp::Ordering;
use std::sync::Arc;

use t4a_diff::Array;
use t4a_linalg::LinalgError;
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::{DiagTensor, invalid};
use crate::error::Result;
use crate::operation::{Rearrange, one};
use crate::plan::{MoveAxis, RearrangementBuilder};

/// Singular value decomposition `D = U S Vᴴ` of a diagonal matrix.
#[derive(Clone, Debug)]
pub struct DiagSvd<A> {
    /// Permutation matrix times the signs of the diagonal; dense.
    pub u: DiagTensor<A>,
    /// Absolute values of the diagonal, nonincreasing; a diagonal matrix.
    pub s: DiagTensor<A>,
    /// Permutation matrix; dense.
    pub vh: DiagTensor<A>,
}

/// Eigendecomposition `D V = V W` of a diagonal matrix.
#[derive(Clone, Debug)]
pub struct DiagEigh<A> {
    /// Diagonal entries, nondecreasing; a diagonal matrix.
    pub w: DiagTensor<A>,
    /// Permutation matrix; dense.
    pub v: DiagTensor<A>,
}

impl<A: Array> DiagTensor<A> {
    /// Singular value decomposition of a diagonal matrix. The sort is stable; the sign of 0 is +, so that `U dS Vᴴ =
    /// dD` holds there too.
    ///
    /// Cost: one sort of n numbers; U and Vᴴ have n² elements.
    ///
    /// # Errors
    /// `Invalid` for a tensor that is not a diagonal matrix; `Linalg` for NaN and ∞ on the diagonal.
    pub fn svd(&self) -> Result<DiagSvd<A>> {
        let x = self.numbers("svd")?;
        let order = sorted(&x, |a, b| b.abs().total_cmp(&a.abs()));
        let u = self.permutation(&order, |i| if x[i] < 0.0 { -1.0 } else { 1.0 })?;
        let vh = self.permutation(&order, |_| 1.0)?.permute(&[1, 0])?;
        Ok(DiagSvd { u, s: self.values(&order, |i| x[i] < 0.0)?, vh })
    }

    /// Eigenvalues and eigenvectors of a diagonal matrix. The sort is stable.
    ///
    /// Cost: one sort of n numbers; V has n² elements.
    ///
    /// # Errors
    /// As [`DiagTensor::svd`].
    pub fn eigh(&self) -> Result<DiagEigh<A>> {
        let x = self.numbers("eigh")?;
        let order = sorted(&x, f64::total_cmp);
        let v = self.permutation(&order, |_| 1.0)?;
        Ok(DiagEigh { w: self.values(&order, |_| false)?, v })
    }

    /// Diagonal entries as f64; checks that the tensor is a diagonal matrix of finite numbers.
    fn numbers(&self, op: &'static str) -> Result<Vec<f64>> {
        if self.classes != [0, 0] {
            return Err(invalid(format!("{op} of classes {:?}: [0, 0] is required", self.classes)));
        }
        let x = self.elements.elements()?.cast(DType::F64)?.to_contiguous()?;
        let x = x.typed::<f64>()?.to_vec()?;
        match x.iter().all(|x| x.is_finite()) {
            true => Ok(x),
            false => Err(LinalgError::NonFinite { op, batch: 0 }.into()),
        }
    }

    /// Diagonal matrix with `±x[order[j]]` at position j; the sign is − where `negative(order[j])`.
    fn values(&self, order: &[usize], negative: impl Fn(usize) -> bool) -> Result<Self> {
        let mut build = RearrangementBuilder::new(order.len(), order.len());
        for (to, &from) in order.iter().enumerate() {
            build.push(from, to, negative(from), std::iter::empty::<MoveAxis>());
        }
        let op = Rearrange { plan: Arc::new(build.finish(true, true)) };
        Self::from_diag(one(&op, &[&self.flat()])?, 2)
    }

    /// Constant matrix whose column j is `number(order[j])` times the unit vector `order[j]`.
    fn permutation(&self, order: &[usize], number: impl Fn(usize) -> f64) -> Result<Self> {
        let n = order.len();
        let mut matrix = vec![0.0f64; n * n];
        for (j, &i) in order.iter().enumerate() {
            matrix[i * n + j] = number(i);
        }
        let matrix = AnyTensor::from(Tensor::from_vec(matrix, &[n, n])?);
        Ok(Self::dense(self.elements.constant(matrix.cast(self.elements.dtype())?)))
    }
}

/// Indices that sort `x`; stable.
fn sorted(x: &[f64], order: impl Fn(&f64, &f64) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..x.len()).collect();
    places.sort_by(|&i, &j| order(&x[i], &x[j]));
    places
}
