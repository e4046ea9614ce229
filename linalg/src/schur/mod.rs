//! Complex Schur decomposition `A = Q T Qᴴ`, `T` upper triangular, and matrix functions `f(A) = Q f(T) Qᴴ`.
//!
//! Triangular matrices are not changed, Hermitian ones have a diagonal `T`, and a block matrix `[[B, E], [0, B]]`, by
//! which derivatives are computed (module `frechet`), uses the form of `B` twice. All others are reduced to
//! Hessenberg form and iterated. Computations are in double precision complex arithmetic, also for real and single
//! precision matrices.
//!
//! ```text
//! square       column-major matrices
//! hessenberg   A = Q H Qᴴ
//! iteration    H = Q T Qᴴ
//! multishift   H = Q T Qᴴ for large matrices
//! divided      first superdiagonal of a function of T
//! ```
//!
//! Reference: G. Golub, C. Van Loan, *Matrix Computations*, chapter 7.

pub(crate) mod divided;
mod hessenberg;
mod iteration;
mod multishift;
pub(crate) mod square;
#[cfg(test)]
mod tests;

use faer::Par;
use t4a_algebra::c64;
use t4a_linalg_kernels::Kernels;
use t4a_tensor::Tensor;

use crate::batch::{
    BatchShape, MatrixStatus, PerMatrix, ResultBuffer, ResultSlot, Views, filled, flops, load, run,
};
use crate::degeneracy::rounding;
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::scale::{PowerOfTwo, largest};
use crate::threads::Work;

use square::{ONE, SquareMatrix, ZERO, store, widened};

/// Schur decomposition `A = Q T Qᴴ` of a batch of square matrices.
#[derive(Clone, Debug)]
pub struct Schur<T: LinalgScalar> {
    /// Unitary, `[…, n, n]`.
    pub q: Tensor<T::Complex>,
    /// Upper triangular, `[…, n, n]`; the eigenvalues are its diagonal.
    pub t: Tensor<T::Complex>,
}

/// Schur decomposition `A = Q T Qᴴ`; not differentiable.
///
/// Shapes `[…, n, n]` → `[…, n, n]`, `[…, n, n]`, both complex. Cost about 25·n³ complex products.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `NoConvergence`, `Overflow` with the batch index.
pub fn schur<T: LinalgScalar>(a: &Tensor<T>) -> Result<Schur<T>> {
    let (out, info) = schur_ex(a)?;
    check("schur", &info, SINGULAR)?;
    Ok(out)
}

/// As [`schur`], with an info tensor of the batch's shape instead of an error; the factors of a matrix that
/// failed are NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn schur_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Schur<T>, Tensor<i32>)> {
    let shape = BatchShape::square("schur", a)?;
    let n = shape.n;
    let mut q = ResultBuffer::<T::Complex>::new(shape.batch, n, n)?;
    let mut t = ResultBuffer::<T::Complex>::new(shape.batch, n, n)?;
    let slots = q.mats()?.into_iter().zip(t.mats()?).collect();
    let info = each("schur", a, slots, moderate, |form, scale, (q, t)| {
        let mut whole = form.t.clone();
        scale.restore(whole.data_mut());
        store(form.unitary().data(), q.as_mut());
        if store(whole.data(), t.as_mut()) { MatrixStatus::Done } else { MatrixStatus::Overflow }
    })?;
    let route = info.route();
    Ok((Schur { q: q.matrices(route)?, t: t.matrices(route)? }, info))
}

/// Schur decomposition `A = Q T Qᴴ` of one matrix, with `Q = I ⊗ q`.
#[derive(Clone, Debug)]
pub(crate) struct SchurForm {
    /// Upper triangular.
    pub(crate) t: SquareMatrix,
    /// `m × m`, `m` a divisor of `n`; `None` is the unit matrix.
    q: Option<SquareMatrix>,
    /// True if the eigenvalues are elements of the input, without rounding errors.
    pub(crate) exact: bool,
    /// True for a Hermitian matrix; `T` is then diagonal and real.
    pub(crate) hermitian: bool,
}

impl SchurForm {
    /// `None` without convergence. The largest element must be far from both ends of the range.
    pub(crate) fn of(mut a: SquareMatrix) -> Option<Self> {
        let n = a.n();
        if a.is_upper() {
            return Some(Self { t: a, q: None, exact: true, hermitian: false });
        }
        if let Some(form) = Self::of_twice(&a) {
            return form;
        }
        if a.is_lower() {
            let flip = |i: usize| n - 1 - i;
            let t = SquareMatrix::from_fn(n, |i, j| a[(flip(i), flip(j))]);
            let q = SquareMatrix::from_fn(n, |i, j| if i == flip(j) { ONE } else { ZERO });
            return Some(Self { t, q: Some(q), exact: true, hermitian: false });
        }
        if a.is_hermitian() {
            let (mut values, mut q) = (vec![ZERO; n], SquareMatrix::zeros(n));
            let mut memory = <c64 as Kernels>::eigh_scratch(n, true, Par::Seq);
            let vectors = Some(q.as_mut());
            if !<c64 as Kernels>::eigh(a.as_ref(), &mut values, vectors, Par::Seq, &mut memory) {
                return None;
            }
            let value = |i: usize| c64::new(values[i].re, 0.0);
            let t = SquareMatrix::from_fn(n, |i, j| if i == j { value(i) } else { ZERO });
            return Some(Self { t, q: Some(q), exact: false, hermitian: true });
        }
        let mut q = hessenberg::reduce(&mut a);
        let done = match n > multishift::LARGE {
            true => multishift::triangularise(&mut a, &mut q),
            false => iteration::triangularise(&mut a, &mut q),
        };
        done.then_some(Self { t: a, q: Some(q), exact: false, hermitian: false })
    }

    /// Form of `[[B, E], [0, B]]`: `[[T, qᴴ E q], [0, T]]`; the outer option is `None` for other matrices.
    fn of_twice(a: &SquareMatrix) -> Option<Option<Self>> {
        let (n, half) = (a.n(), a.n() / 2);
        let same = |j: usize| {
            let (left, right) = (a.col(j), a.col(half + j));
            left[half..].iter().all(|x| *x == ZERO) && left[..half] == right[half..]
        };
        if !n.is_multiple_of(2) || !(0..half).all(same) {
            return None;
        }
        let Some(form) = Self::of(a.block(half, 0, 0)) else { return Some(None) };
        let mut t = SquareMatrix::zeros(n);
        t.set_block(0, 0, &form.t);
        t.set_block(1, 1, &form.t);
        t.set_block(0, 1, &form.turned(&a.block(half, 0, 1), true));
        Some(Some(Self { t, hermitian: false, ..form }))
    }

    /// `Qᴴ X Q`, or `Q X Qᴴ` if `inverse`.
    fn turned(&self, x: &SquareMatrix, inverse: bool) -> SquareMatrix {
        let Some(q) = &self.q else { return x.clone() };
        let (m, qh) = (q.n(), q.adjoint());
        let (left, right) = if inverse { (&qh, q) } else { (q, &qh) };
        let mut out = SquareMatrix::zeros(x.n());
        for (i, j) in (0..x.n() / m).flat_map(|i| (0..x.n() / m).map(move |j| (i, j))) {
            out.set_block(i, j, &left.times(&x.block(m, i, j)).times(right));
        }
        out
    }

    /// `Q X Qᴴ`.
    pub(crate) fn back(&self, x: &SquareMatrix) -> SquareMatrix {
        self.turned(x, false)
    }

    /// `Q`.
    pub(crate) fn unitary(&self) -> SquareMatrix {
        let n = self.t.n();
        let Some(q) = &self.q else { return SquareMatrix::identity(n) };
        let m = q.n();
        SquareMatrix::from_fn(n, |i, j| if i / m == j / m { q[(i % m, j % m)] } else { ZERO })
    }

    /// Form of `Aᴴ`, with the diagonal in reverse order.
    pub(crate) fn adjoint(&self) -> Self {
        let (n, q) = (self.t.n(), self.unitary());
        let flip = |i: usize| n - 1 - i;
        Self {
            t: SquareMatrix::from_fn(n, |i, j| self.t[(flip(j), flip(i))].conj()),
            q: Some(SquareMatrix::from_fn(n, |i, j| q[(i, flip(j))])),
            exact: self.exact,
            hermitian: self.hermitian,
        }
    }

    /// Eigenvalue `i`.
    pub(crate) fn value(&self, i: usize) -> c64 {
        self.t[(i, i)]
    }

    /// Bound on the rounding error of an eigenvalue.
    pub(crate) fn uncertainty(&self) -> f64 {
        if self.exact {
            return 0.0;
        }
        let largest = (0..self.t.n()).map(|i| self.value(i).norm()).fold(0.0, f64::max);
        f64::EPSILON * rounding(self.t.n()) * largest
    }

    /// True if an eigenvalue is negative up to rounding.
    pub(crate) fn on_negative_axis(&self) -> bool {
        let limit = self.uncertainty();
        (0..self.t.n()).map(|i| self.value(i)).any(|z| z.re < -limit && z.im.abs() <= limit)
    }
}

/// Scales matrices away from both ends of the range.
pub(crate) fn moderate(data: &mut [c64]) -> PowerOfTwo {
    PowerOfTwo::apply(data, largest)
}

/// Calls `body` with the Schur form of each scaled matrix.
pub(crate) fn each<T: LinalgScalar, J: ResultSlot>(
    op: &'static str,
    a: &Tensor<T>,
    slots: PerMatrix<J>,
    scale: fn(&mut [c64]) -> PowerOfTwo,
    body: impl Fn(&SchurForm, PowerOfTwo, &mut J) -> MatrixStatus + Sync + Send,
) -> Result<Tensor<i32>> {
    let shape = BatchShape::square(op, a)?;
    let n = shape.n;
    let views = Views::of(op, a)?;
    run(
        shape.batch,
        slots,
        Work::whole(flops(&[25, n, n, n])),
        |_| filled(T::ZERO, n * n),
        |copy, index, slot, _| {
            if !load(views.get(index), copy) {
                return MatrixStatus::NonFinite;
            }
            let mut a = SquareMatrix::from_columns(n, widened(copy));
            let scale = scale(a.data_mut());
            match SchurForm::of(a) {
                Some(form) => body(&form, scale, slot),
                None => MatrixStatus::NoConvergence,
            }
        },
    )
}

/// `f(A) = Q f(T) Qᴴ` of each matrix, and an info tensor.
pub(crate) fn function<T: LinalgScalar>(
    op: &'static str,
    a: &Tensor<T>,
    scale: fn(&mut [c64]) -> PowerOfTwo,
    f: impl Fn(&SchurForm, PowerOfTwo) -> Result<SquareMatrix, MatrixStatus> + Sync + Send,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let shape = BatchShape::square(op, a)?;
    let mut out = ResultBuffer::<T>::new(shape.batch, shape.n, shape.n)?;
    let info = each(op, a, out.mats()?, scale, |form, scale, slot| match f(form, scale) {
        Ok(x) if store(form.back(&x).data(), slot.as_mut()) => MatrixStatus::Done,
        Ok(_) => MatrixStatus::Overflow,
        Err(status) => status,
    })?;
    Ok((out.matrices(info.route())?, info))
}
