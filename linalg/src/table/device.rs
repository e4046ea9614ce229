//! Operations on small real matrices by kernels of their device.
//!
//! A batch with a matrix that the kernel does not support (not finite, singular, overflow) is computed on the host
//! instead, so that errors are the same.

use t4a_diff::array::MatrixKernel;
use t4a_diff::{Array, Integers, Outcome, Value};
use t4a_tensor::DType;

use super::{Linalg, MatrixOp};
use crate::error::Result;
use crate::lu::Pivoting;
use crate::qr::Columns;
use crate::svd::Vectors;
use crate::vocabulary::{Triangle, TriangleOp};

/// Factors of `[β, m, n]` and the row permutation, if the kernel succeeded for all matrices.
type DeviceFactors<A> = (Vec<A>, Option<<A as Array>::Integers>);

fn run<A: Array>(a: &A, kernel: MatrixKernel, b: Option<&A>) -> Result<Option<DeviceFactors<A>>> {
    let Some(found) = a.matrix_kernel(kernel, b) else { return Ok(None) };
    let status = found.status.elements()?.cast(DType::I64)?;
    let failed = status.typed::<i64>()?.to_vec()?.iter().any(|&code| code != 0);
    Ok((!failed).then_some((found.factors, found.rows)))
}

fn triangular(triangle: Triangle) -> MatrixKernel {
    let transposed = triangle.op != TriangleOp::None;
    MatrixKernel::Triangular { upper: triangle.upper, unit: triangle.unit, transposed }
}

/// Reshapes a nonempty batch to `[β, m, n]`.
fn flat<A: Array>(x: &A) -> A {
    let shape = x.shape();
    let [batch @ .., m, n] = &shape[..] else { unreachable!("a batch of matrices") };
    x.reshape(&[batch.iter().product(), *m, *n])
}

impl Linalg {
    /// Device kernel that the operation starts with, for matrices of this size.
    pub(super) fn kernel(&self, size: [usize; 2]) -> Option<MatrixKernel> {
        let [m, n] = size;
        match self.op {
            _ if self.complex => None,
            MatrixOp::Cholesky(_) => Some(MatrixKernel::Cholesky),
            MatrixOp::Eigh(_) | MatrixOp::Eigvalsh(_) => Some(MatrixKernel::Eigh),
            MatrixOp::Qr(op) if op.columns == Columns::Thin || m <= n => Some(MatrixKernel::Qr),
            MatrixOp::Svd(op) if op.vectors == Vectors::Thin || m == n => Some(MatrixKernel::Svd),
            MatrixOp::Svdvals(_) => Some(MatrixKernel::Svd),
            MatrixOp::LuFactor(op) if op.pivoting == Pivoting::Partial => Some(MatrixKernel::Lu),
            MatrixOp::Solve(_) => Some(MatrixKernel::Lu),
            MatrixOp::SolveTriangular(op) => Some(triangular(op.triangle)),
            _ => None,
        }
    }

    /// Results by kernels of the device; `None` if it has none for these matrices, or a matrix fails.
    ///
    /// # Errors
    /// A failed transfer of the status.
    pub(super) fn on_device<A: Array>(
        &self,
        inputs: &[Value<A>],
        tracked: bool,
    ) -> Result<Option<Outcome<A>>> {
        let a = inputs[0].float();
        let shape = a.shape();
        let [batch @ .., m, n] = &shape[..] else { unreachable!("operands are matrices") };
        let Some(kernel) = self.kernel([*m, *n]).filter(|_| !shape.contains(&0)) else {
            return Ok(None);
        };
        let b = inputs.get(1).map(|b| flat(b.float()));
        if b.as_ref().is_some_and(|b| b.shape().contains(&0)) {
            return Ok(None);
        }
        let solves = matches!(self.op, MatrixOp::Solve(_));
        let given = if solves { None } else { b.as_ref() };
        let Some((factors, rows)) = run(&flat(a), kernel, given)? else { return Ok(None) };
        let mut results = factors.clone();
        let mut hidden = Vec::new();
        let mut extra = rows.clone();
        match (self.op, b, rows) {
            (MatrixOp::Solve(_), Some(b), Some(rows)) => {
                let index = rows.reshape(&[b.shape()[0], *n, 1]).expand(&b.shape());
                let mut x = b.gather(1, &index);
                for triangle in [Triangle::LOWER.unit(), Triangle::UPPER] {
                    let Some((solved, _)) = run(&factors[0], triangular(triangle), Some(&x))?
                    else {
                        return Ok(None);
                    };
                    x = solved[0].clone();
                }
                results = vec![x];
                hidden = factors;
                extra = extra.filter(|_| tracked);
            }
            (MatrixOp::Eigvalsh(_), ..) => {
                results.truncate(1);
                hidden = vec![flat(a), results[0].full(&results[0].shape(), 0.0)];
                hidden.extend(factors);
            }
            (MatrixOp::Svdvals(_), ..) => {
                results = vec![factors[1].clone()];
                hidden = vec![flat(a), results[0].full(&results[0].shape(), 0.0)];
                hidden.extend(factors);
            }
            _ => {}
        }
        if !tracked {
            hidden.clear();
        }
        let whole = |tail: &[usize]| [batch, tail].concat();
        let unflat = |x: A| x.reshape(&whole(&x.shape()[1..]));
        let index = |x: A::Integers| Value::Integers(x.reshape(&whole(&x.shape()[1..])));
        Ok(Some(Outcome {
            results: results.into_iter().map(unflat).collect(),
            hidden: hidden.into_iter().map(unflat).collect(),
            extra: extra.map(index).into_iter().collect(),
        }))
    }
}
