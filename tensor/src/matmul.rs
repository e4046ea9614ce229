//! Batched matrix products over any semiring, on strided operands without copies. The result carries
//! the route that the kernel reports.

use smallvec::SmallVec;
use t4a_algebra::gemm::{
    Algorithm, BatchAxis, GemmError, Interleaved, MatMut, MatRef, Parallelism, Product, Report,
    interleaved,
};
use t4a_algebra::{Scalar, Selective, Semiring};

use crate::error::{Result, TensorError};
use crate::layout::{Dims, broadcast_shapes};
use crate::loops::fuse::Fused;
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Multiplications of a chunk of interleaved products.
const CHUNK_STEPS: usize = 1 << 19;

/// `out[β] = a[β] ⊗ b[β]`: `[…, m, k] · […, k, n] → […, m, n]`, batch axes broadcast.
///
/// Cost: batch·m·n·k multiply-adds, no copy of an operand.
///
/// # Errors
/// [`TensorError::ShapeMismatch`] if ranks are below 2, inner sizes differ or batch axes do not
/// broadcast; `SizeOverflow`, `OutOfMemory`.
///
/// ```
/// use t4a_algebra::{MaxPlus, Standard};
/// use t4a_tensor::Tensor;
/// use t4a_tensor::matmul::matmul;
///
/// let a = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(matmul::<Standard, f64>(&a, &a)?.to_vec()?, [7.0, 10.0, 15.0, 22.0]);
/// // Longest paths of two steps.
/// assert_eq!(matmul::<MaxPlus, f64>(&a, &a)?.to_vec()?, [5.0, 6.0, 7.0, 8.0]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn matmul<S: Semiring<T>, T: Scalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    Ok(run(a, b, false, |product| product.run::<S>())?.0)
}

/// [`matmul`] with the argmax of every sum: the smallest index of the summed axis whose term equals the sum, or
/// [`NO_ARGMAX`](t4a_algebra::gemm::NO_ARGMAX) where the sum is the zero of the semiring.
///
/// # Errors
/// As [`matmul`]; [`TensorError::Value`] if the summed axis exceeds the range of `u32`.
///
/// ```
/// use t4a_algebra::MaxPlus;
/// use t4a_tensor::Tensor;
/// use t4a_tensor::matmul::matmul_argmax;
///
/// // max(0 + 1, 5 + 0) at k = 1.
/// let a = Tensor::from_vec(vec![0.0, 5.0], &[1, 2])?;
/// let b = Tensor::from_vec(vec![1.0, 0.0], &[2, 1])?;
/// let (best, at) = matmul_argmax::<MaxPlus, f64>(&a, &b)?;
/// assert_eq!((best.to_vec()?, at.to_vec()?), (vec![5.0], vec![1]));
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn matmul_argmax<S: Selective<T>, T: Scalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<(Tensor<T>, Tensor<u32>)> {
    let (out, argmax) = run(a, b, true, |product| product.run_argmax::<S>())?;
    let argmax = match argmax {
        Some(argmax) => argmax,
        None => Tensor::zeros(out.shape())?,
    };
    Ok((out, argmax))
}

/// `c[i, j, β] = ⊕ₖ a[i, k, β] ⊗ b[k, j, β]`: the product of interleaved matrices.
///
/// Shapes: `[m, k, batch]` and `[k, n, batch]` to `[m, n, batch]`; the batch is contiguous in the result, and an
/// operand with a strided batch is copied.
///
/// Cost: batch·m·n·k steps, multithreaded.
///
/// # Errors
/// [`TensorError::ShapeMismatch`], [`TensorError::OutOfMemory`].
pub fn matmul_interleaved<S: Semiring<T>, T: Scalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<Tensor<T>> {
    let op = "matmul";
    let (&[m, k, batch], &[k_b, n, batch_b]) = (a.shape(), b.shape()) else {
        return Err(TensorError::shapes(op, a.shape(), b.shape(), "two of rank 3"));
    };
    if (k, batch) != (k_b, batch_b) {
        let required = "[m, k, batch] and [k, n, batch]";
        return Err(TensorError::shapes(op, a.shape(), b.shape(), required));
    }
    let dense = |x: &Tensor<T>| {
        let along = x.layout().strides()[2] == 1 || batch < 2;
        if along { Ok(x.clone()) } else { crate::copy::to_contiguous(x) }
    };
    let (a, b) = (dense(a)?, dense(b)?);
    let mut out = Output::<T>::new(op, &[m, n, batch])?;
    let mut path = Path::Empty;
    if m > 0 && n > 0 && batch > 0 {
        path = Path::GemmInterleaved;
        let place = |at: *mut T, row_stride, col_stride| (SendPtr(at), row_stride, col_stride);
        let operand = |x: &Tensor<T>| {
            let strides = x.layout().strides();
            place(x.as_ptr().cast_mut(), strides[0], strides[1])
        };
        let (x, y) = (operand(&a), operand(&b));
        let z = place(out.as_mut_ptr(), (n * batch) as isize, batch as isize);
        let steps = (m * n).saturating_mul(k.max(1));
        let chunk = (CHUNK_STEPS / steps).next_multiple_of(64).max(64);
        let parallel = parallel::worthwhile_steps(steps.saturating_mul(batch));
        parallel::for_each(batch.div_ceil(chunk), parallel, &|part| {
            let first = part * chunk;
            let at = |(at, row_stride, col_stride): (SendPtr<T>, isize, isize)| Interleaved {
                at: at.get().wrapping_add(first),
                row_stride,
                col_stride,
            };
            let read = |x| {
                let Interleaved { at, row_stride, col_stride } = at(x);
                Interleaved { at: at.cast_const(), row_stride, col_stride }
            };
            let len = (batch - first).min(chunk);
            // SAFETY: the parts of the batch are disjoint, and the layouts are valid for their tensors; `out` is
            // exclusively owned.
            unsafe { interleaved::<S, T>((m, k, n), len, read(x), read(y), at(z)) }
        });
    }
    // SAFETY: the product wrote every element.
    Ok(unsafe { out.assume_init() }.with_route(Route::native(path)))
}

/// Allocates, and calls `gemm` on the product of the operands.
#[inline]
fn run<T: Scalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    argmax: bool,
    gemm: Gemm<T>,
) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
    let op = "matmul";
    let mismatch =
        || TensorError::shapes(op, a.shape(), b.shape(), "[…, m, k] and […, k, n] with equal k");
    let ([a_batch @ .., m, k], [b_batch @ .., k2, n]) = (a.shape(), b.shape()) else {
        return Err(mismatch());
    };
    if k != k2 {
        return Err(mismatch());
    }
    let (m, k, n) = (*m, *k, *n);
    if a_batch.is_empty() && b_batch.is_empty() {
        let mut out = Outputs::<T>::new(&[m, n], argmax)?;
        let strides = |x: &Tensor<T>| (x.layout().strides()[0], x.layout().strides()[1]);
        let dst = out.places();
        // SAFETY: the layouts are valid for their tensors; `out` is exclusively owned and row-major. The product writes
        // every element.
        return Ok(unsafe {
            let report = product(a, b, dst, (m, k, n), (strides(a), strides(b)), &[], gemm)?;
            out.assume_init(report)
        });
    }
    let batch = broadcast_shapes(op, a_batch, b_batch).map_err(|_| mismatch())?;
    let mut shape: Dims = batch.clone();
    shape.extend([m, n]);
    let mut out = Outputs::<T>::new(&shape, argmax)?;
    let report = if shape.contains(&0) {
        Report::new(Algorithm::Nothing)
    } else {
        let dst = out.places();
        // SAFETY: `out` takes the row-major result.
        unsafe { multiply(a, b, dst, &batch, (m, k, n), gemm)? }
    };
    // SAFETY: the product wrote every element.
    Ok(unsafe { out.assume_init(report) })
}

/// Runs a product, with or without argmax.
type Gemm<T> = fn(&mut Product<'_, T>) -> Report;

/// Output pointers for the elements and for the argmax.
type OutputPointers<T> = (*mut T, Option<*mut u32>);

/// The result and its argmax, row-major.
struct Outputs<T: Scalar> {
    values: Output<T>,
    argmax: Option<Output<u32>>,
}

impl<T: Scalar> Outputs<T> {
    #[inline]
    fn new(shape: &[usize], argmax: bool) -> Result<Self> {
        let argmax = if argmax { Some(Output::new("matmul", shape)?) } else { None };
        Ok(Self { values: Output::new("matmul", shape)?, argmax })
    }

    #[inline]
    fn places(&mut self) -> OutputPointers<T> {
        (self.values.as_mut_ptr(), self.argmax.as_mut().map(Output::as_mut_ptr))
    }

    /// # Safety
    /// All elements have been written, as reported.
    #[inline]
    unsafe fn assume_init(self, report: Report) -> (Tensor<T>, Option<Tensor<u32>>) {
        let route = Route::from(report);
        // SAFETY: by contract.
        unsafe {
            let argmax = self.argmax.map(|argmax| argmax.assume_init().with_route(route));
            (self.values.assume_init().with_route(route), argmax)
        }
    }
}

/// # Safety
/// `out` is writable for `batch × m × n` elements in row-major order; no size except k is 0.
unsafe fn multiply<T: Scalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    out: OutputPointers<T>,
    batch: &[usize],
    (m, k, n): (usize, usize, usize),
    gemm: Gemm<T>,
) -> Result<Report> {
    let expanded = |x: &Tensor<T>| -> Result<_> {
        let mut shape: Dims = batch.into();
        shape.extend_from_slice(&x.shape()[x.rank() - 2..]);
        x.layout().expand(&shape)
    };
    let (a_layout, b_layout) = (expanded(a)?, expanded(b)?);
    let rank = batch.len();
    let (a_strides, b_strides) = (a_layout.strides(), b_layout.strides());
    let mut out_strides = crate::layout::contiguous_strides(batch);
    out_strides.iter_mut().for_each(|s| *s *= (m * n) as isize);
    let fused = Fused::by_first(batch, [&out_strides, &a_strides[..rank], &b_strides[..rank]]);

    let mut axes: SmallVec<[BatchAxis; 4]> = (0..fused.rank())
        .map(|i| BatchAxis {
            size: fused.shape[i],
            a: fused.strides[1][i],
            b: fused.strides[2][i],
            c: fused.strides[0][i],
        })
        .collect();
    // A batch of rows under one B is one matrix with more rows.
    let mut rows = m;
    let row_stride = if m == 1 { None } else { Some(a_strides[rank]) };
    let mut a_row = row_stride.unwrap_or(0);
    if let Some(last) = axes.last().copied()
        && last.b == 0
        && row_stride.is_none_or(|stride| last.a == m as isize * stride)
    {
        if row_stride.is_none() {
            a_row = last.a;
        }
        rows *= last.size;
        axes.pop();
    }

    let b_matrix = (b_strides[rank], b_strides[rank + 1]);
    // SAFETY: the caller's contract.
    unsafe {
        let strides = ((a_row, a_strides[rank + 1]), b_matrix);
        product(a, b, out, (rows, k, n), strides, &axes, gemm)
    }
}

/// # Safety
/// The matrices of every batch entry are inside their tensors; `out` has room for row-major ones.
unsafe fn product<T: Scalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    (out, argmax): OutputPointers<T>,
    (m, k, n): (usize, usize, usize),
    (a_strides, b_strides): ((isize, isize), (isize, isize)),
    axes: &[BatchAxis],
    gemm: Gemm<T>,
) -> Result<Report> {
    let work = axes.iter().map(|axis| axis.size).product::<usize>().saturating_mul(m);
    let work = work.saturating_mul(n).saturating_mul(k);
    let threads =
        if parallel::worthwhile_steps(work) { Parallelism::Threads(0) } else { Parallelism::Seq };
    // SAFETY: the caller's contract.
    let mut product = unsafe {
        let a = MatRef::from_raw_parts(a.as_ptr(), (m, k), a_strides);
        let b = MatRef::from_raw_parts(b.as_ptr(), (k, n), b_strides);
        let c = MatMut::from_raw_parts(out, (m, n), (n as isize, 1));
        let error = |error: GemmError| TensorError::value("matmul", error.to_string());
        let mut product = Product::new(a, b, c).map_err(error)?;
        if let Some(argmax) = argmax {
            let argmax = MatMut::from_raw_parts(argmax, (m, n), (n as isize, 1));
            product = product.argmax(argmax, 0).map_err(error)?;
        }
        product.parallelism(threads).batch(axes)
    };
    Ok(gemm(&mut product))
}

#[cfg(test)]
mod tests {
    use super::*;
    use t4a_algebra::Standard;

    fn naive(a: &Tensor<f64>, b: &Tensor<f64>) -> Vec<f64> {
        let (m, k, n) = (a.shape()[1], a.shape()[2], b.shape()[2]);
        let batch = a.shape()[0].max(b.shape()[0]);
        let at = |x: &Tensor<f64>, i: usize, r, c| x.get(&[i % x.shape()[0], r, c]).unwrap();
        let mut out = Vec::new();
        for i in 0..batch {
            for r in 0..m {
                for c in 0..n {
                    out.push((0..k).map(|j| at(a, i, r, j) * at(b, i, j, c)).sum());
                }
            }
        }
        out
    }

    fn ints(shape: &[usize]) -> Tensor<f64> {
        Tensor::from_fn(shape, |i| ((i * 7919) % 17) as f64 - 8.0).unwrap()
    }

    #[test]
    fn batches_broadcast_and_any_strides_are_taken() {
        for (batch_a, batch_b, m, k, n) in [
            (1, 1, 3, 4, 5),
            (6, 1, 2, 3, 4),
            (1, 6, 2, 3, 4),
            (4, 4, 1, 5, 1),
            (3, 3, 2, 0, 2),
            (5, 1, 1, 4, 3),
        ] {
            let a = ints(&[batch_a, m, k]);
            let b = ints(&[batch_b, k, n]);
            let at = ints(&[batch_a, k, m]).swap_axes(1, 2).unwrap();
            let bf = ints(&[batch_b, k, n]).flip(&[0, 1, 2]).unwrap();
            let wide = ints(&[k, batch_a, 2 * m]).permute(&[1, 2, 0]).unwrap();
            let wide = wide.slice_axis(1, 0, m, 2).unwrap();
            for a in [&a, &at, &wide] {
                for b in [&b, &bf] {
                    let out = matmul::<Standard, f64>(a, b).unwrap();
                    assert_eq!(out.shape(), [batch_a.max(batch_b), m, n]);
                    assert_eq!(
                        out.to_vec().unwrap(),
                        naive(a, b),
                        "{:?} {:?}",
                        a.layout(),
                        b.layout()
                    );
                }
            }
        }
    }

    #[test]
    fn mismatched_shapes_are_errors() {
        for (a, b) in [([2, 3, 4], [2, 3, 4]), ([2, 3, 4], [3, 4, 5])] {
            let error = matmul::<Standard, f64>(&ints(&a), &ints(&b)).unwrap_err();
            assert!(matches!(error, TensorError::ShapeMismatch { op: "matmul", .. }), "{error}");
        }
        assert!(matmul::<Standard, f64>(&ints(&[3]), &ints(&[3, 2])).is_err());
    }

    /// Every kernel reports its route; for floats the kernel depends on the size only.
    #[test]
    fn the_kernel_reports_the_route() {
        use t4a_algebra::simd::Isa;
        use t4a_algebra::{Boolean, LogSumExp, MaxPlus, f16};

        fn square<S: Semiring<T>, T: Scalar>(n: usize, value: T) -> Route {
            let x = Tensor::full(&[n, n], value).unwrap();
            matmul::<S, T>(&x, &x).unwrap().route()
        }
        let native = Route::native;
        assert_eq!(square::<Standard, f32>(8, 1.0), native(Path::GemmSmall));
        assert_eq!(square::<Standard, f64>(100, 1.0), native(Path::GemmLibrary));
        let large = match Isa::detect() {
            Isa::Avx2 => Path::GemmSemiring,
            _ => Path::GemmLibrary,
        };
        assert_eq!(square::<Standard, f32>(520, 1.0), native(large));
        assert_eq!(square::<Standard, i32>(8, 1), native(Path::GemmSemiring));
        assert_eq!(square::<Standard, u8>(100, 1), native(Path::GemmSemiring));
        assert_eq!(square::<MaxPlus, f32>(100, 1.0), native(Path::GemmSemiring));
        assert_eq!(square::<Boolean, bool>(9, true), native(Path::GemmSemiring));
        assert_eq!(square::<LogSumExp, f64>(30, 1.0), native(Path::GemmExponentials));
        for (n, path) in [(8, Path::GemmSmall), (300, Path::GemmLibrary)] {
            assert_eq!(square::<Standard, f16>(n, f16::ONE), Route::promoted(path, true));
        }
        assert_eq!(square::<Standard, f32>(0, 1.0), native(Path::Empty));
        let (a, b) = (ints(&[3, 2, 0]), ints(&[3, 0, 5]));
        // A sum without a term is computed; a result without elements is not.
        assert_eq!(matmul::<Standard, f64>(&a, &b).unwrap().route(), native(Path::GemmSmall));
        let (a, b) = (ints(&[0, 2, 4]), ints(&[0, 4, 5]));
        assert_eq!(matmul::<Standard, f64>(&a, &b).unwrap().route(), native(Path::Empty));
        let (a, b) = (ints(&[2, 3, 70]), ints(&[3, 2, 70]));
        let c = matmul_interleaved::<Standard, f64>(&a, &b).unwrap();
        assert_eq!(c.route(), native(Path::GemmInterleaved));
        let x = Tensor::full(&[20, 20], 1.0f32).unwrap();
        let (c, k) = matmul_argmax::<MaxPlus, f32>(&x, &x).unwrap();
        assert_eq!([c.route(), k.route()], [native(Path::GemmSemiring); 2]);
    }
}
