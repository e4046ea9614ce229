//! LU factorisation with partial pivoting.

use t4a_linalg::vocabulary::Region;
use t4a_linalg::{Op, Result};

use super::matrices::{ComplexMatrix, Entries, RealMatrix};
use super::matrix::Matrix;
use super::ops::LinalgOps;
use super::value::Value;

/// `A[p] = L U` of a batch of `m × n` matrices, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Lu<M: Matrix> {
    /// Unit lower trapezoidal, `[…, m, k]`.
    pub l: M,
    /// Upper trapezoidal, `[…, k, n]`.
    pub u: M,
    /// Row `i` of `L U` is row `pᵢ` of `A`, `[…, m]`; a constant on the tape.
    pub rows: M::Indices,
}

/// `A[p] = L U`. A singular matrix has such factors, too; its `U` has a zero on the diagonal and no
/// derivative.
///
/// # Errors
/// `NonFinite` with the batch index.
pub fn lu<M: Matrix>(a: M) -> Result<Lu<M>> {
    let a = a.into_value();
    let device = a.device();
    let mut out = <M::Backend as LinalgOps>::linalg_forward(&Op::LuFactor, &[a], false)?;
    let packed = out.parts.swap_remove(0);
    let Some(rows) = &out.rows else { unreachable!("a factorisation has a permutation") };
    let (l, u) = match packed {
        Value::Real(_) => split::<_, RealMatrix<_>>(&packed)?,
        Value::Complex { .. } => split::<_, ComplexMatrix<_>>(&packed)?,
    };
    let rows = M::indices(rows.index(), &device)?;
    Ok(Lu { l: M::from_value(l), u: M::from_value(u), rows })
}

fn split<B: LinalgOps, A: Entries<B>>(packed: &Value<B>) -> Result<(Value<B>, Value<B>)> {
    let packed = A::from_value(packed);
    let (m, n) = (packed.rows(), packed.cols());
    let k = m.min(n);
    let unit = packed.constant(m, k, 1.0).mask(Region::Diagonal);
    let l = packed.slice(0..m, 0..k).mask(Region::Lower(-1)).add(&unit);
    let u = packed.slice(0..k, 0..n).mask(Region::Upper(0));
    Ok((l.into_value()?, u.into_value()?))
}
