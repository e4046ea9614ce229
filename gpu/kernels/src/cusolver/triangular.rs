//! Triangular systems.

use cubecl::cuda::CudaRuntime;
use cubecl::prelude::*;
use cudarc::cublas::sys as blas;

use super::calls::Real;
use super::library::{Failure, multiplied, with_library};
use super::memory::{Batch, constants, cuda, elementwise, int, integers};
use crate::error::{CubeError, Result};
use crate::factor::{Triangle, double, matrices};
use crate::kernels::factor::large::{finite_kernel, inspect_kernel};
use crate::launch::Operand;

/// Solves `op(T) X = B` for nonempty batches `[β, n, n]` and `[β, n, r]` with any sizes and strides, on the CUDA
/// device of this number. The status has one element per matrix: the number (from 1) of a zero on the diagonal, −2 if
/// T, B or the solution is not finite.
///
/// # Errors
/// `Unsupported` for other runtimes; `Sizes` for empty matrices and sizes that do not match; `DType`, `TooLarge`;
/// `Library` if a library or the driver fails.
pub fn solve_triangular_large<R: Runtime>(
    client: &ComputeClient<R>,
    device: usize,
    [t, b]: [Operand; 2],
    triangle: Triangle,
) -> Result<(Operand, Operand)> {
    const KERNEL: &str = "solve_triangular";
    let client = cuda(KERNEL, client)?;
    let (t_sizes, t_strides) = matrices(KERNEL, &t)?;
    let (b_sizes, b_strides) = matrices(KERNEL, &b)?;
    let ([batch, m, n], [batches, rows, _]) = (t_sizes, b_sizes);
    let empty = t_sizes.contains(&0) || b_sizes.contains(&0);
    if empty || batch != batches || m != n || rows != n || t.dtype != b.dtype {
        let required = "nonempty [β, n, n] and [β, n, r] of one type";
        return Err(CubeError::Sizes { kernel: KERNEL, required, given: [t.shape, b.shape] });
    }
    let wide = double(t.dtype);
    let t = Batch { client, device, sizes: t_sizes, strides: t_strides, a: t };
    let b = Batch { client, device, sizes: b_sizes, strides: b_strides, a: b };
    let run = if wide { run::<f64> } else { run::<f32> };
    run(&t, &b, triangle).map_err(|message| CubeError::Library { kernel: KERNEL, message })
}

/// The number of the first zero on each diagonal, −2 for triangles that are not finite; waits for the check.
fn singular(t: &Batch, triangle: Triangle) -> std::result::Result<Vec<i32>, Failure> {
    let ([count, n, _], [stride, row, column]) = (t.sizes, t.strides);
    let flags = constants(t.client, &vec![0; count], &[count]);
    let (zeros, dtype, len) = (t.integers(&[count, n]), t.a.dtype, count * n * n);
    let (cubes, dim) = elementwise(len);
    // SAFETY: sizes and strides were checked; units after the last element return.
    unsafe {
        inspect_kernel::launch_unchecked::<CudaRuntime>(
            t.client,
            cubes,
            dim,
            t.a.clone().arg(),
            flags.clone().arg(),
            zeros.clone().arg(),
            len,
            n,
            stride,
            row,
            column,
            InputScalar::new(f64::INFINITY, dtype),
            triangle.upper,
            triangle.unit,
            dtype,
        );
    }
    let (flags, zeros) = (integers(t.client, &flags)?, integers(t.client, &zeros)?);
    let code = |(&flag, zeros): (&i32, &[i32])| match zeros.iter().position(|&zero| zero != 0) {
        _ if flag != 0 => -2,
        first => first.map_or(0, |i| i as i32 + 1),
    };
    Ok(flags.iter().zip(zeros.chunks_exact(n)).map(code).collect())
}

/// `Xᵀ op(T)ᵀ = Bᵀ`: the row-major matrix X is a column-major `r × n` matrix.
fn run<T: Real>(
    t: &Batch,
    b: &Batch,
    triangle: Triangle,
) -> std::result::Result<(Operand, Operand), Failure> {
    let [count, n, r] = b.sizes;
    let (order, height) = (int(n)?, int(r)?);
    let [stride, row, column] = t.strides;
    // The library reads T in place if the entries of its rows, or of its columns, are adjacent.
    let (a, stride, leading, by_rows) = match (row, column) {
        (leading, 1) if leading >= n => (t.a.clone(), stride, leading, true),
        (1, leading) if leading >= n => (t.a.clone(), stride, leading, false),
        _ => (t.staged::<T>(false, false)[0].clone(), n * n, n, true),
    };
    let leading = int(leading)?;
    // NaN and ∞ in B are found in the solution.
    let [x, _] = b.staged::<T>(false, false);
    let uplo = match triangle.upper == by_rows {
        // The transpose of an upper triangle is a lower one.
        true => blas::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER,
        false => blas::cublasFillMode_t::CUBLAS_FILL_MODE_UPPER,
    };
    let op = match triangle.transposed == by_rows {
        true => blas::cublasOperation_t::CUBLAS_OP_T,
        false => blas::cublasOperation_t::CUBLAS_OP_N,
    };
    let diagonal = match triangle.unit {
        true => blas::cublasDiagType_t::CUBLAS_DIAG_UNIT,
        false => blas::cublasDiagType_t::CUBLAS_DIAG_NON_UNIT,
    };
    let codes = singular(t, triangle)?;
    let failed = codes.iter().any(|&code| code != 0);
    let status = constants(t.client, &codes, &[count]);
    if failed {
        return Ok((x, status));
    }
    with_library(t.device, |library| {
        let a = library.address::<T>(t.client, &a)?;
        let solution = library.address::<T>(t.client, &x)?;
        for i in 0..count {
            let (a, x) = (a.wrapping_add(i * stride), solution.wrapping_add(i * n * r));
            // SAFETY: triangle i has n rows (or columns) at the distance `leading`; solution i is contiguous.
            multiplied(unsafe {
                (T::CALLS.trsm)(
                    library.blas,
                    blas::cublasSideMode_t::CUBLAS_SIDE_RIGHT,
                    uplo,
                    op,
                    diagonal,
                    height,
                    order,
                    &T::ONE,
                    a,
                    leading,
                    x,
                    height,
                )
            })?;
        }
        Ok(())
    })?;
    let (cubes, dim) = elementwise(count * n * r);
    // SAFETY: units after the last element return.
    unsafe {
        finite_kernel::launch_unchecked::<CudaRuntime>(
            t.client,
            cubes,
            dim,
            x.clone().arg(),
            status.clone().arg(),
            count * n * r,
            n * r,
            InputScalar::new(f64::INFINITY, t.a.dtype),
            t.a.dtype,
        );
    }
    Ok((x, status))
}
