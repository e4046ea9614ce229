//! Cholesky, LU, QR, eigenvalues and singular values.

use core::ffi::c_schar;
use core::ptr::{null, null_mut};

use cubecl::cuda::CudaRuntime;
use cubecl::prelude::*;
use cudarc::cusolver::sys::{cublasFillMode_t, cusolverEigMode_t};

use super::calls::Real;
use super::library::{Failure, solved, with_library};
use super::memory::{Batch, constants, cuda, elementwise, int, integers, reals};
use crate::error::{CubeError, Result};
use crate::factor::{Factorisation, Factors, double, matrices};
use crate::kernels::factor::large::{lower_kernel, sign_kernel, upper_kernel};
use crate::launch::Operand;

type Outcome = std::result::Result<Factors, Failure>;

/// The upper triangle of a column-major matrix is the lower one of the row-major matrix.
const UPPER: cublasFillMode_t = cublasFillMode_t::CUBLAS_FILL_MODE_UPPER;
const VECTORS: cusolverEigMode_t = cusolverEigMode_t::CUSOLVER_EIG_MODE_VECTOR;

/// Factorises each matrix of a nonempty batch, with any sizes and strides, on the CUDA device of this number. The
/// results are those of [`factor`](crate::factor()), with any strides; the status is −2 also for matrices whose
/// greatest entry is outside of the range in which squares neither overflow nor underflow.
///
/// # Errors
/// `Unsupported` for other runtimes; `Sizes` for empty matrices, and for matrices that must be square and are not;
/// `DType`, `TooLarge`; `Library` if a library or the driver fails.
pub fn factor_large<R: Runtime>(
    client: &ComputeClient<R>,
    device: usize,
    of: Factorisation,
    a: Operand,
) -> Result<Factors> {
    let kernel = of.name();
    let client = cuda(kernel, client)?;
    let (sizes, strides) = matrices(kernel, &a)?;
    let square = matches!(of, Factorisation::Cholesky | Factorisation::Eigh);
    if sizes.contains(&0) || (square && sizes[1] != sizes[2]) {
        let required = if square { "nonempty square matrices" } else { "nonempty matrices" };
        return Err(CubeError::Sizes { kernel, required, given: [a.shape, Vec::new()] });
    }
    let wide = double(a.dtype);
    let batch = Batch { client, device, sizes, strides, a };
    let outcome = if wide { run::<f64>(&batch, of) } else { run::<f32>(&batch, of) };
    outcome.map_err(|message| CubeError::Library { kernel, message })
}

fn run<T: Real>(batch: &Batch, of: Factorisation) -> Outcome {
    match of {
        Factorisation::Cholesky => cholesky::<T>(batch),
        Factorisation::Lu => lu::<T>(batch),
        Factorisation::Qr => qr::<T>(batch),
        Factorisation::Eigh => eigh::<T>(batch),
        Factorisation::Svd => match svd_jacobi::<T>(batch)? {
            Some(factors) => Ok(factors),
            None => svd::<T>(batch),
        },
    }
}

/// `memory` as matrices `[β, m, n]` in column-major order, without gaps.
fn by_columns(memory: &Operand, [batch, m, n]: [usize; 3]) -> Operand {
    Operand { shape: vec![batch, m, n], strides: vec![m * n, 1, m], ..memory.clone() }
}

/// The status of an iterative method: −1 if it did not converge.
fn converged(batch: &Batch, info: &Operand) -> std::result::Result<Operand, Failure> {
    let codes: Vec<i32> =
        integers(batch.client, info)?.iter().map(|&x| -i32::from(x != 0)).collect();
    Ok(constants(batch.client, &codes, &info.shape))
}

fn cholesky<T: Real>(batch: &Batch) -> Outcome {
    let ([count, n, _], order) = (batch.sizes, int(batch.sizes[1])?);
    let [l, flags] = batch.staged::<T>(false, true);
    let info = batch.integers(&[count]);
    let status = with_library(batch.device, |library| {
        let (solver, mut len) = (library.solver, 0);
        // SAFETY: a query without access to the matrix.
        solved(unsafe {
            (T::CALLS.potrf_size)(solver, UPPER, order, null_mut(), order, &mut len)
        })?;
        let work = batch.empty(&[len.max(1) as usize]);
        if let Some(status) = batch.rejected(&flags)? {
            return Ok(status);
        }
        let a = library.address::<T>(batch.client, &l)?;
        let work = library.address::<T>(batch.client, &work)?;
        let codes = library.address::<i32>(batch.client, &info)?;
        for i in 0..count {
            let (a, code) = (a.wrapping_add(i * n * n), codes.wrapping_add(i));
            // SAFETY: matrix and status i of arrays of these sizes, work space of the size that the library requires.
            solved(unsafe { (T::CALLS.potrf)(solver, UPPER, order, a, order, work, len, code) })?;
        }
        Ok(info)
    })?;
    let (cubes, dim) = elementwise(count * n * n);
    // SAFETY: units after the last element return.
    unsafe {
        lower_kernel::launch_unchecked::<CudaRuntime>(
            batch.client,
            cubes,
            dim,
            l.clone().arg(),
            count * n * n,
            n,
            batch.a.dtype,
        );
    }
    Ok(Factors { factors: vec![l], rows: None, status })
}

fn lu<T: Real>(batch: &Batch) -> Outcome {
    let [count, m, n] = batch.sizes;
    let (k, height, width) = (m.min(n), int(m)?, int(n)?);
    let [packed, flags] = batch.staged::<T>(true, false);
    let (info, pivots) = (batch.integers(&[count]), batch.integers(&[count, k]));
    let (status, done) = with_library(batch.device, |library| {
        let (solver, mut len) = (library.solver, 0);
        // SAFETY: a query without access to the matrix.
        solved(unsafe {
            (T::CALLS.getrf_size)(solver, height, width, null_mut(), height, &mut len)
        })?;
        let work = batch.empty(&[len.max(1) as usize]);
        if let Some(status) = batch.rejected(&flags)? {
            return Ok((status, false));
        }
        let a = library.address::<T>(batch.client, &packed)?;
        let work = library.address::<T>(batch.client, &work)?;
        let codes = library.address::<i32>(batch.client, &info)?;
        let interchanges = library.address::<i32>(batch.client, &pivots)?;
        for i in 0..count {
            let (a, code) = (a.wrapping_add(i * m * n), codes.wrapping_add(i));
            let interchanges = interchanges.wrapping_add(i * k);
            // SAFETY: matrix, interchanges and status i of arrays of these sizes, work space of the size that the
            // library requires.
            solved(unsafe {
                (T::CALLS.getrf)(solver, height, width, a, height, work, interchanges, code)
            })?;
        }
        Ok((info, true))
    })?;
    // Interchanges of rows, counted from 1, as a permutation.
    let pivots = if done { integers(batch.client, &pivots)? } else { Vec::new() };
    let mut rows: Vec<i32> = (0..count).flat_map(|_| 0..height).collect();
    for (rows, pivots) in rows.chunks_exact_mut(m).zip(pivots.chunks_exact(k)) {
        for (i, &pivot) in pivots.iter().enumerate() {
            let at = usize::try_from(pivot - 1).ok().filter(|&at| at < m);
            rows.swap(i, at.ok_or_else(|| format!("row {pivot} of {m} as a pivot"))?);
        }
    }
    let rows = Some(constants(batch.client, &rows, &[count, m]));
    Ok(Factors { factors: vec![by_columns(&packed, batch.sizes)], rows, status })
}

fn qr<T: Real>(batch: &Batch) -> Outcome {
    let ([count, m, n], dtype) = (batch.sizes, batch.a.dtype);
    let k = m.min(n);
    let (height, width, rank) = (int(m)?, int(n)?, int(k)?);
    let [packed, flags] = batch.staged::<T>(true, false);
    let (q, r) = (batch.empty(&[count, k, m]), batch.empty(&[count, k, n]));
    let (tau, info) = (batch.empty(&[count, k]), batch.integers(&[count]));
    let status = with_library(batch.device, |library| {
        let (solver, mut len, mut second) = (library.solver, 0, 0);
        // SAFETY: queries without access to the matrices.
        unsafe {
            let status = (T::CALLS.geqrf_size)(solver, height, width, null_mut(), height, &mut len);
            solved(status)?;
            let (a, tau) = (null(), null());
            let status =
                (T::CALLS.orgqr_size)(solver, height, rank, rank, a, height, tau, &mut second);
            solved(status)?;
        }
        let len = len.max(second);
        let work = batch.empty(&[len.max(1) as usize]);
        if let Some(status) = batch.rejected(&flags)? {
            return Ok(status);
        }
        let a = library.address::<T>(batch.client, &packed)?;
        let columns = library.address::<T>(batch.client, &q)?;
        let tau = library.address::<T>(batch.client, &tau)?;
        let work = library.address::<T>(batch.client, &work)?;
        let codes = library.address::<i32>(batch.client, &info)?;
        for i in 0..count {
            let (a, q) = (a.wrapping_add(i * m * n), columns.wrapping_add(i * m * k));
            let (tau, code) = (tau.wrapping_add(i * k), codes.wrapping_add(i));
            // SAFETY: matrices, scalars and status i of arrays of these sizes, work space of the size that the
            // library requires for both functions; the first k of n columns are copied.
            unsafe {
                solved((T::CALLS.geqrf)(solver, height, width, a, height, tau, work, len, code))?;
                library.copy(q, a, m * k)?;
                solved((T::CALLS.orgqr)(
                    solver, height, rank, rank, q, height, tau, work, len, code,
                ))?;
            }
        }
        Ok(info)
    })?;
    let (cubes, dim) = elementwise(count * k * n);
    // SAFETY: units after the last element return.
    unsafe {
        upper_kernel::launch_unchecked::<CudaRuntime>(
            batch.client,
            cubes,
            dim,
            packed.clone().arg(),
            r.clone().arg(),
            count * k * n,
            m,
            n,
            k,
            dtype,
        );
        let (cubes, dim) = elementwise(count * m * k);
        sign_kernel::launch_unchecked::<CudaRuntime>(
            batch.client,
            cubes,
            dim,
            packed.arg(),
            q.clone().arg(),
            count * m * k,
            m,
            n,
            k,
            dtype,
        );
    }
    Ok(Factors { factors: vec![by_columns(&q, [count, m, k]), r], rows: None, status })
}

fn eigh<T: Real>(batch: &Batch) -> Outcome {
    let ([count, n, _], order) = (batch.sizes, int(batch.sizes[1])?);
    let [vectors, flags] = batch.staged::<T>(false, true);
    let (values, info) = (batch.empty(&[count, 1, n]), batch.integers(&[count]));
    let rejected = with_library(batch.device, |library| {
        let (solver, mut len) = (library.solver, 0);
        // SAFETY: a query without access to the matrix.
        solved(unsafe {
            let (a, w) = (null(), null());
            (T::CALLS.syevd_size)(solver, VECTORS, UPPER, order, a, order, w, &mut len)
        })?;
        let work = batch.empty(&[len.max(1) as usize]);
        if let Some(status) = batch.rejected(&flags)? {
            return Ok(Some(status));
        }
        let a = library.address::<T>(batch.client, &vectors)?;
        let w = library.address::<T>(batch.client, &values)?;
        let work = library.address::<T>(batch.client, &work)?;
        let codes = library.address::<i32>(batch.client, &info)?;
        for i in 0..count {
            let (a, w) = (a.wrapping_add(i * n * n), w.wrapping_add(i * n));
            let code = codes.wrapping_add(i);
            // SAFETY: matrix, values and status i of arrays of these sizes, work space of the size that the library
            // requires.
            solved(unsafe {
                (T::CALLS.syevd)(solver, VECTORS, UPPER, order, a, order, w, work, len, code)
            })?;
        }
        Ok(None)
    })?;
    let status = match rejected {
        Some(status) => status,
        None => converged(batch, &info)?,
    };
    Ok(Factors { factors: vec![values, by_columns(&vectors, batch.sizes)], rows: None, status })
}

/// Singular values by Jacobi rotations. `None` if they do not converge, or if A is singular to working precision,
/// because the singular vectors of zero need not be orthogonal then.
///
/// `Aᵀ = V S Uᵀ`: the row-major matrix A is a column-major `n × m` matrix. The library writes V, `n × k`, and U,
/// `m × k`, in column-major order.
fn svd_jacobi<T: Real>(batch: &Batch) -> std::result::Result<Option<Factors>, Failure> {
    let [count, m, n] = batch.sizes;
    let k = m.min(n);
    let (height, width) = (int(n)?, int(m)?);
    let [staged, flags] = batch.staged::<T>(false, false);
    let (u, vh) = (batch.empty(&[count, k, m]), batch.empty(&[count, k, n]));
    let (values, info) = (batch.empty(&[count, 1, k]), batch.integers(&[count]));
    let rejected = with_library(batch.device, |library| {
        let (solver, jacobi, mut len) = (library.solver, library.jacobi, 0);
        // SAFETY: a query without access to the matrices.
        solved(unsafe {
            let (a, s, v, u) = (null(), null(), null(), null());
            (T::CALLS.gesvdj_size)(
                solver, VECTORS, 1, height, width, a, height, s, v, height, u, width, &mut len,
                jacobi,
            )
        })?;
        let work = batch.empty(&[len.max(1) as usize]);
        if let Some(status) = batch.rejected(&flags)? {
            return Ok(Some(status));
        }
        let a = library.address::<T>(batch.client, &staged)?;
        let s = library.address::<T>(batch.client, &values)?;
        let [u, vh] = [&u, &vh].map(|x| library.address::<T>(batch.client, x));
        let (u, vh) = (u?, vh?);
        let work = library.address::<T>(batch.client, &work)?;
        let codes = library.address::<i32>(batch.client, &info)?;
        for i in 0..count {
            let (a, s) = (a.wrapping_add(i * m * n), s.wrapping_add(i * k));
            let (u, v) = (u.wrapping_add(i * m * k), vh.wrapping_add(i * k * n));
            let code = codes.wrapping_add(i);
            // SAFETY: matrices, values and status i of arrays of these sizes, work space of the size that the
            // library requires.
            solved(unsafe {
                (T::CALLS.gesvdj)(
                    solver, VECTORS, 1, height, width, a, height, s, v, height, u, width, work,
                    len, code, jacobi,
                )
            })?;
        }
        Ok(None)
    })?;
    let status = match rejected {
        Some(status) => status,
        None => {
            let status = converged(batch, &info)?;
            if integers(batch.client, &info)?.iter().any(|&code| code != 0) {
                return Ok(None);
            }
            let negligible = T::EPSILON * m.max(n) as f64;
            let full = |s: &[T]| -> bool {
                let [least, greatest]: [f64; 2] = [s[k - 1].into(), s[0].into()];
                least > negligible * greatest
            };
            if !reals::<T>(batch.client, &values)?.chunks_exact(k).all(full) {
                return Ok(None);
            }
            status
        }
    };
    let factors = vec![by_columns(&u, [count, m, k]), values, vh];
    Ok(Some(Factors { factors, rows: None, status }))
}

/// Singular values by the QR method, which requires a column-major matrix with at least as many rows as columns: that
/// of A if `m > n`, otherwise the row-major one as its transpose.
fn svd<T: Real>(batch: &Batch) -> Outcome {
    let [count, m, n] = batch.sizes;
    let (tall, k) = (m > n, m.min(n));
    let (height, width) = (int(m.max(n))?, int(k)?);
    let [staged, flags] = batch.staged::<T>(tall, false);
    // Factors of the column-major matrix: `p × k` and, transposed, `k × k`.
    let (left, right) = (batch.empty(&[count, k, m.max(n)]), batch.empty(&[count, k, k]));
    let (values, info) = (batch.empty(&[count, 1, k]), batch.integers(&[count]));
    let rejected = with_library(batch.device, |library| {
        let (solver, mut len) = (library.solver, 0);
        // SAFETY: a query.
        solved(unsafe { (T::CALLS.gesvd_size)(solver, height, width, &mut len) })?;
        let work = batch.empty(&[len.max(1) as usize]);
        if let Some(status) = batch.rejected(&flags)? {
            return Ok(Some(status));
        }
        let a = library.address::<T>(batch.client, &staged)?;
        let s = library.address::<T>(batch.client, &values)?;
        let left = library.address::<T>(batch.client, &left)?;
        let right = library.address::<T>(batch.client, &right)?;
        let work = library.address::<T>(batch.client, &work)?;
        let codes = library.address::<i32>(batch.client, &info)?;
        let thin = b'S' as c_schar;
        for i in 0..count {
            let (a, s) = (a.wrapping_add(i * m * n), s.wrapping_add(i * k));
            let left = left.wrapping_add(i * k * m.max(n));
            let right = right.wrapping_add(i * k * k);
            let code = codes.wrapping_add(i);
            // SAFETY: matrices, values and status i of arrays of these sizes, work space of the size that the
            // library requires; the array of values that did not converge is optional.
            solved(unsafe {
                (T::CALLS.gesvd)(
                    solver,
                    thin,
                    thin,
                    height,
                    width,
                    a,
                    height,
                    s,
                    left,
                    height,
                    right,
                    width,
                    work,
                    len,
                    null_mut(),
                    code,
                )
            })?;
        }
        Ok(None)
    })?;
    let status = match rejected {
        Some(status) => status,
        None => converged(batch, &info)?,
    };
    // The transpose of a column-major matrix is row-major.
    let factors = match tall {
        true => [by_columns(&left, [count, m, k]), by_columns(&right, [count, k, k])],
        false => [right, left],
    };
    let [u, vh] = factors;
    Ok(Factors { factors: vec![u, values, vh], rows: None, status })
}
