//! Operations on Burn's CubeCL backends (`Wgpu`, `Vulkan`, `Metal`, `Cuda`, `Rocm`).
//!
//! Operations run by their portable definitions on the device. `t4a-cube` provides kernels where Burn's own are
//! wrong or slow: maxima and argmax of lanes with −∞ or NaN, matrix products in full precision, semiring products
//! without memory for their terms, recurrences and cumulative sums with linear work, factorisations of small
//! matrices. With the feature `cusolver`, factorisations of larger matrices on `Cuda` call cuSOLVER.

mod complex;
mod elements;
mod large;
mod scans;

use std::sync::atomic::{AtomicBool, Ordering};

use burn_backend::ops::{FloatTensorOps, IntTensorOps};
use burn_backend::{DType, IntDType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement};
use burn_std::Metadata;
use t4a_cube::{
    CopyTable, Extreme, Factorisation, Factors, Lanes, Operand as Memory, ProductTable, ScanKind,
    Triangle, block_copies, block_products, extreme, factor, fits_triangular, log_sum_cotangents,
    product, solve_triangular, supports,
};
use t4a_einsum::EinsumError;
use t4a_tensor::TensorError;

use super::operation::{
    BlockCopies, BlockProducts, Cumulation, DeviceTables, Kernel, MatrixFactors, MatrixKernel,
    Meta, Operand, Operation, Operations, Outcome, PairParts, Semiring, Value, by_definition, meta,
};
use super::primitive::{Floats, Indices, SemiringArray};
use scans::{scanned, scanned_real};

/// Precision of `f32` matrix products in contractions and derivative rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Full precision of the elements.
    #[default]
    Full,
    /// Burn's own products: on CUDA they round operands to a mantissa of 10 bits for tensor cores (relative error
    /// about 2e-4), and autotune kernels at the first use of each shape.
    Tf32,
}

static TF32: AtomicBool = AtomicBool::new(false);

/// Sets the precision of all subsequent products, on all threads.
///
/// ```
/// use burn_t4a::ext::cube::{Precision, set_precision};
///
/// set_precision(Precision::Tf32);
/// ```
pub fn set_precision(precision: Precision) {
    TF32.store(precision == Precision::Tf32, Ordering::Relaxed);
}

fn memory<R: CubeRuntime>(x: &CubeTensor<R>) -> Memory {
    Memory {
        handle: x.handle.clone(),
        shape: x.meta.shape().to_vec(),
        strides: x.meta.strides().to_vec(),
        dtype: x.dtype.into(),
    }
}

/// Wraps memory as a row-major tensor on the device of `beside`.
fn tensor<R: CubeRuntime>(
    beside: &CubeTensor<R>,
    memory: Memory,
    shape: &[usize],
    dtype: DType,
) -> CubeTensor<R> {
    let (client, device) = (beside.client.clone(), beside.device.clone());
    CubeTensor::new_contiguous(
        client,
        device,
        shape.iter().copied().collect(),
        memory.handle,
        dtype,
    )
}

/// Wraps memory as a tensor with its shape and strides on the device of `beside`.
fn strided<R: CubeRuntime>(beside: &CubeTensor<R>, memory: Memory, dtype: DType) -> CubeTensor<R> {
    let (client, device) = (beside.client.clone(), beside.device.clone());
    let shape: Shape = memory.shape.into_iter().collect();
    let metadata = Metadata::new(shape, memory.strides);
    CubeTensor::new(client, memory.handle, metadata, device, dtype)
}

/// A flat array on the device of `beside`, without initialising it.
fn empty<R: CubeRuntime>(beside: &CubeTensor<R>, len: usize) -> CubeTensor<R> {
    let memory = Memory::empty(&beside.client, &[len], beside.dtype.into());
    tensor(beside, memory, &[len], beside.dtype)
}

/// The table of a description on the device of `beside`.
fn table<R: CubeRuntime, T: Clone + Send + Sync + 'static>(
    beside: &CubeTensor<R>,
    tables: &DeviceTables,
    make: impl FnOnce() -> t4a_cube::Result<T>,
) -> T {
    let device = &beside.device;
    let made = tables.get_or_make::<(R::CubeDevice, T), _>(
        |(own, _)| own == device,
        || Ok((device.clone(), make()?)),
    );
    launched(made).1
}

/// Unwraps the result of a launch; [`Operations::run`] has already rejected invalid operands.
fn launched<T>(result: t4a_cube::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("burn-t4a: {error}"))
}

fn extremes<R: CubeRuntime>(x: &CubeTensor<R>, axis: usize, kind: Extreme) -> (Memory, Vec<usize>) {
    let x = into_contiguous(x.clone());
    let lanes = Lanes::along(x.meta.shape(), axis);
    let mut shape = x.meta.shape().to_vec();
    shape[axis] = 1;
    (launched(extreme(&x.client, memory(&x), lanes, kind, &shape)), shape)
}

/// Views `[…, m, k]`, broadcast to these batch sizes, as `[β, m, k]`; copies if the batch axes have no common
/// stride.
fn matrices<R: CubeRuntime>(x: &CubeTensor<R>, batches: &[usize]) -> Memory {
    let (shape, strides) = (x.meta.shape(), x.meta.strides());
    let rank = shape.len();
    let [rows, columns] = [shape[rank - 2], shape[rank - 1]];
    // Missing axes and axes of size 1 are broadcast with stride 0.
    let missing = batches.len() + 2 - rank;
    let stride = |axis: usize| match axis.checked_sub(missing) {
        Some(own) if shape[own] != 1 => strides[own],
        _ => 0,
    };
    let mut outer: Option<(usize, usize)> = None;
    for (axis, &size) in batches.iter().enumerate().filter(|(_, size)| **size != 1) {
        outer = match outer {
            None => Some((size, stride(axis))),
            Some((n, step)) if step == stride(axis) * size => Some((n * size, stride(axis))),
            Some(_) => {
                let steps =
                    (0..batches.len()).map(stride).chain(strides[rank - 2..].iter().copied());
                let steps: Vec<usize> = steps.collect();
                let sizes: Shape = batches.iter().copied().chain([rows, columns]).collect();
                let mut full = x.clone();
                *full.meta = Metadata::new(sizes, steps);
                return matrices(&into_contiguous(full), batches);
            }
        };
    }
    Memory {
        shape: vec![batches.iter().product(), rows, columns],
        strides: vec![outer.map_or(0, |(_, step)| step), strides[rank - 2], strides[rank - 1]],
        ..memory(x)
    }
}

/// Returns true if semiring products have kernels for this dtype.
fn has_products(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// Returns true if products over (+, ×) of this dtype are computed by kernels of `t4a-cube`, not by Burn's own.
fn has_own_products(dtype: DType) -> bool {
    match dtype {
        DType::F32 => !TF32.load(Ordering::Relaxed),
        dtype => dtype == DType::F64,
    }
}

/// Tensors of the parts of complex numbers.
fn primitives<R, F, I, BT>(
    parts: PairParts<'_, Floats<CubeBackend<R, F, I, BT>>>,
) -> PairParts<'_, CubeTensor<R>>
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    parts.map(|x| x.map(|x| &x.0))
}

/// Factorisation kernel for a batch of matrices; `None` for triangular systems.
fn factorisation(of: MatrixKernel) -> Option<Factorisation> {
    Some(match of {
        MatrixKernel::Cholesky => Factorisation::Cholesky,
        MatrixKernel::Lu => Factorisation::Lu,
        MatrixKernel::Qr => Factorisation::Qr,
        MatrixKernel::Eigh => Factorisation::Eigh,
        MatrixKernel::Svd => Factorisation::Svd,
        _ => return None,
    })
}

/// Returns true if a kernel exists for matrices of this size that fit in shared memory.
fn has_small_kernel(of: MatrixKernel, [m, n]: [usize; 2]) -> bool {
    match (of, factorisation(of)) {
        (MatrixKernel::Triangular { .. }, _) => fits_triangular(n),
        (_, of) => of.is_some_and(|of| of.fits(m, n)),
    }
}

/// Factors by a kernel for matrices that fit in shared memory.
fn small_factors<R: CubeRuntime>(
    a: &CubeTensor<R>,
    of: MatrixKernel,
    b: Option<&CubeTensor<R>>,
) -> Option<Factors> {
    if let Some(of) = factorisation(of) {
        return Some(launched(factor(&a.client, of, memory(a))));
    }
    let operands = [memory(a), memory(b?)];
    let (x, status) = launched(solve_triangular(&a.client, operands, triangle(of)?));
    Some(Factors { factors: vec![x], rows: None, status })
}

/// The triangle of a triangular system; `None` for factorisations.
fn triangle(of: MatrixKernel) -> Option<Triangle> {
    match of {
        MatrixKernel::Triangular { upper, unit, transposed } => {
            Some(Triangle { upper, unit, transposed })
        }
        _ => None,
    }
}

fn places<R, F, I, BT>(x: CubeTensor<R>) -> Indices<CubeBackend<R, F, I, BT>>
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    let ints: IntDType = I::dtype().into();
    Indices(match ints {
        IntDType::I32 => x,
        ints => CubeBackend::<R, F, I, BT>::int_cast(x, ints),
    })
}

impl<R, F, I, BT> Operations for CubeBackend<R, F, I, BT>
where
    R: CubeRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    /// # Errors
    /// Errors of the operation; `ValueOutOfRange` for operands beyond the index range of kernels;
    /// `DTypeUnsupported` for dtypes that the device lacks.
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        for input in inputs {
            let elements = meta(input).shape.iter().fold(1usize, |n, &size| n.saturating_mul(size));
            if elements > i32::MAX as usize {
                let message = format!("{elements} elements, and indices of kernels have 31 bits");
                return Err(TensorError::value(op.name(), message).into());
            }
            let Value::Float(x) = input else { continue };
            if !supports(&x.0.client, x.0.dtype.into()) {
                let (op, dtype) = (op.name(), meta(input).dtype);
                let expected = "elements that the device has";
                return Err(TensorError::DTypeUnsupported { op, dtype, expected }.into());
            }
        }
        by_definition(op, inputs, tracked)
    }

    /// Products of `f32` and `f64` by a kernel of `t4a-cube`, since those of CUDA round `f32`.
    fn array_matmul(a: &Floats<Self>, b: &Floats<Self>) -> Floats<Self> {
        let (a, b) = (&a.0, &b.0);
        if !has_own_products(a.dtype) {
            return Floats(Self::float_matmul(a.clone(), b.clone()));
        }
        let (x, y) = (a.meta.shape(), b.meta.shape());
        let rank = x.len().max(y.len());
        let size = |shape: &[usize], axis: usize| match (axis + shape.len()).checked_sub(rank) {
            Some(own) => shape[own],
            None => 1,
        };
        let joint = |axis| match (size(x, axis), size(y, axis)) {
            (1, n) | (n, _) => n,
        };
        let mut shape: Vec<usize> = (0..rank - 2).map(joint).collect();
        let operands = [matrices(a, &shape), matrices(b, &shape)];
        let of = t4a_cube::Semiring::Standard;
        let product = launched(product(&a.client, of, operands, false, None));
        shape.extend([x[x.len() - 2], y[y.len() - 1]]);
        Floats(tensor(a, product.values, &shape, a.dtype))
    }

    fn array_extreme(x: &Floats<Self>, axis: usize, least: bool) -> Floats<Self> {
        let kind = if least { Extreme::Least } else { Extreme::Greatest };
        let (memory, shape) = extremes(&x.0, axis, kind);
        Floats(tensor(&x.0, memory, &shape, x.0.dtype))
    }

    fn array_place(x: &Floats<Self>, axis: usize, least: bool) -> Indices<Self> {
        let kind = if least { Extreme::PlaceOfLeast } else { Extreme::PlaceOfGreatest };
        let (memory, shape) = extremes(&x.0, axis, kind);
        places(tensor(&x.0, memory, &shape, DType::I32))
    }

    /// Work linear in the number of elements.
    fn array_cumsum(x: &Floats<Self>, axis: usize) -> Floats<Self> {
        Floats(scanned_real(ScanKind::Sum, [&[], &[&x.0], &[]], axis, false))
    }

    fn array_recurrence(
        a: &Floats<Self>,
        b: &Floats<Self>,
        first: Option<&Floats<Self>>,
        axis: usize,
        reverse: bool,
    ) -> Option<Floats<Self>> {
        let first: Vec<_> = first.map(|x| &x.0).into_iter().collect();
        let operands: [&[_]; 3] = [&[&a.0], &[&b.0], &first];
        Some(Floats(scanned_real(ScanKind::Recurrence, operands, axis, reverse)))
    }

    fn array_complex_recurrence(
        a: [&Floats<Self>; 2],
        b: [&Floats<Self>; 2],
        first: Option<[&Floats<Self>; 2]>,
        axis: usize,
        reverse: bool,
    ) -> Option<[Floats<Self>; 2]> {
        let [a, b] = [a, b].map(|x| x.map(|x| &x.0));
        let first: Vec<_> = first.into_iter().flatten().map(|x| &x.0).collect();
        let h = scanned(ScanKind::ComplexRecurrence, [&a, &b, &first], axis, reverse);
        let parts: Vec<Floats<Self>> = h.into_iter().map(Floats).collect();
        parts.try_into().ok()
    }

    fn array_cumulative(
        x: &Floats<Self>,
        of: Cumulation,
        axis: usize,
        reverse: bool,
    ) -> Option<Floats<Self>> {
        let kind = match of {
            Cumulation::Max => ScanKind::Max,
            Cumulation::Min => ScanKind::Min,
            Cumulation::LogSumExp => ScanKind::LogSumExp,
            _ => return None,
        };
        Some(Floats(scanned_real(kind, [&[], &[&x.0], &[]], axis, reverse)))
    }

    fn array_semiring_matmul(
        a: &Floats<Self>,
        b: &Floats<Self>,
        over: Semiring,
        wanted: bool,
    ) -> Option<(Floats<Self>, Option<Indices<Self>>)> {
        let (a, b) = (&a.0, &b.0);
        if !has_products(a.dtype) {
            return None;
        }
        let of = match over {
            Semiring::MaxPlus => t4a_cube::Semiring::MaxPlus,
            Semiring::MinPlus => t4a_cube::Semiring::MinPlus,
            Semiring::MaxMul => t4a_cube::Semiring::MaxMul,
            Semiring::MinMul => t4a_cube::Semiring::MinMul,
            Semiring::MaxMin => t4a_cube::Semiring::MaxMin,
            Semiring::LogSumExp => t4a_cube::Semiring::LogSumExp,
            _ => return None,
        };
        let operands = [memory(a), memory(b)];
        let shape = [a.meta.shape()[0], a.meta.shape()[1], b.meta.shape()[2]];
        let product = launched(product(&a.client, of, operands, wanted, None));
        let kept = product.places.map(|kept| places(tensor(a, kept, &shape, DType::I32)));
        Some((Floats(tensor(a, product.values, &shape, a.dtype)), kept))
    }

    fn array_semiring_cotangents(
        a: &Floats<Self>,
        b: &Floats<Self>,
        over: Semiring,
        g: &Floats<Self>,
    ) -> Option<[Floats<Self>; 2]> {
        let (a, b, g) = (&a.0, &b.0, &g.0);
        if over != Semiring::LogSumExp || !has_products(a.dtype) {
            return None;
        }
        let cotangents = log_sum_cotangents(&a.client, [memory(a), memory(b)], memory(g));
        let [x, y] = launched(cotangents);
        let of = |of: &CubeTensor<R>, x| Floats(tensor(of, x, of.meta.shape(), of.dtype));
        Some([of(a, x), of(b, y)])
    }

    fn array_block_products(
        a: &Floats<Self>,
        b: &Floats<Self>,
        of: &BlockProducts,
    ) -> Option<Floats<Self>> {
        let (a, b) = (into_contiguous(a.0.clone()), into_contiguous(b.0.clone()));
        if !has_products(a.dtype) {
            return None;
        }
        let c = empty(&a, of.len);
        let table = table(&a, &of.tables, || ProductTable::new(&a.client, of));
        let operands = [memory(&a), memory(&b)];
        launched(block_products(&a.client, operands, &table, memory(&c)));
        Some(Floats(c))
    }

    /// True where [`Operations::array_matmul`] has a kernel.
    fn has_complex_products(x: &Floats<Self>) -> bool {
        has_own_products(x.0.dtype)
    }

    fn array_complex_matmul(
        a: PairParts<'_, Floats<Self>>,
        b: PairParts<'_, Floats<Self>>,
        conj: [bool; 2],
    ) -> Option<[Floats<Self>; 2]> {
        complex::matmul([a, b].map(primitives), conj).map(|c| c.map(Floats))
    }

    fn array_complex_block_products(
        a: PairParts<'_, Floats<Self>>,
        b: PairParts<'_, Floats<Self>>,
        conj: [bool; 2],
        of: &BlockProducts,
    ) -> Option<[Floats<Self>; 2]> {
        complex::block_products([a, b].map(primitives), conj, of).map(|c| c.map(Floats))
    }

    fn array_block_copies(x: &Floats<Self>, of: &BlockCopies) -> Option<Floats<Self>> {
        let x = into_contiguous(x.0.clone());
        let y = match of.is_full || of.len == 0 {
            true => empty(&x, of.len),
            false => Self::float_zeros(Shape::new([of.len]), &x.device, x.dtype.into()),
        };
        let table = table(&x, &of.tables, || CopyTable::new(&x.client, &of.copies));
        launched(block_copies(&x.client, memory(&x), &table, memory(&y)));
        Some(Floats(y))
    }

    fn has_element_product(a: &SemiringArray<Self>) -> bool {
        elements::has_product(a)
    }

    fn element_product(
        a: &SemiringArray<Self>,
        b: &SemiringArray<Self>,
    ) -> Result<SemiringArray<Self>, EinsumError> {
        elements::product(a, b)
    }

    fn has_kernel(kernel: Kernel, inputs: &[Meta]) -> bool {
        use t4a_tensor::DType;
        let dtype = inputs.first().map_or(DType::F32, |x| x.dtype);
        let wide = matches!(dtype, DType::F32 | DType::F64);
        match kernel {
            Kernel::Matrix(of, size) => {
                wide && (has_small_kernel(of, size) || large::has_kernel::<R>(of))
            }
            Kernel::Reduction | Kernel::Matmul | Kernel::Semiring(_) => dtype.is_float(),
            Kernel::Recurrence | Kernel::ComplexRecurrence => dtype.is_float(),
            Kernel::Blocks => dtype.is_float(),
            Kernel::RunningSum | Kernel::Cumulative(_) => dtype.is_float(),
            _ => false,
        }
    }

    /// Dtypes `f32` and `f64`.
    fn array_matrix_kernel(
        a: &Floats<Self>,
        of: MatrixKernel,
        b: Option<&Floats<Self>>,
    ) -> Option<MatrixFactors<Floats<Self>>> {
        let a = &a.0;
        let [_, m, n] = a.meta.shape().dims();
        if !matches!(a.dtype, DType::F32 | DType::F64) {
            return None;
        }
        let integers = |x: Memory| {
            let shape = x.shape.clone();
            places(tensor(a, x, &shape, DType::I32))
        };
        let b = b.map(|b| &b.0);
        let found = match has_small_kernel(of, [m, n]) {
            true => small_factors(a, of, b),
            false => large::factors(a, of, b),
        }?;
        Some(MatrixFactors {
            factors: found.factors.into_iter().map(|x| Floats(strided(a, x, a.dtype))).collect(),
            rows: found.rows.map(integers),
            status: integers(found.status),
        })
    }
}
