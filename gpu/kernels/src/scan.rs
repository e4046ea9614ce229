//! Linear recurrences and cumulative operations along an axis.

use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::kernels::scan::{carries_kernel, chunks_kernel, states_kernel};
use crate::kernels::steps::{
    AffineSteps, ComplexSteps, LogSumSteps, MaximumSteps, MinimumSteps, ScanSteps, SumSteps,
};
use crate::launch::{Operand, elements, grid};

const KERNEL: &str = "scan";

/// Kind of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanKind {
    /// `h_t = a_t h_{t−1} + b_t`.
    Recurrence,
    /// `h_t = a_t h_{t−1} + b_t` of complex numbers.
    ComplexRecurrence,
    /// `h_t = h_{t−1} + b_t`.
    Sum,
    /// `h_t = max(h_{t−1}, b_t)`; NaN from the first NaN on.
    Max,
    /// `h_t = min(h_{t−1}, b_t)`; NaN from the first NaN on.
    Min,
    /// `h_t = ln(e^(h_{t−1}) + e^(b_t))`. Sums are relative to the maximum so far.
    LogSumExp,
}

impl ScanKind {
    /// Parts of a number: 2 for complex ones.
    fn parts(self) -> usize {
        if self == Self::ComplexRecurrence { 2 } else { 1 }
    }
}

/// Operands of a scan, contiguous and of one element type. Each is a list of one tensor, or of the real and the
/// imaginary part.
#[derive(Clone, Debug)]
pub struct LaneScan {
    /// The kind.
    pub kind: ScanKind,
    /// Factors a of recurrences, in the shape of `b`; empty for other scans.
    pub a: Vec<Operand>,
    /// Terms b.
    pub b: Vec<Operand>,
    /// State before the first step of recurrences and sums, in the shape of `b` with size 1 along the axis; empty if
    /// there are no earlier terms.
    pub first: Vec<Operand>,
    /// Axis of time.
    pub axis: usize,
    /// True if time runs from the end of the axis.
    pub reverse: bool,
}

/// Computes all states; the parts of the result are contiguous.
///
/// Chunks of a lane are processed in parallel, and their composed factors are computed first. So factors that
/// overflow within a chunk overflow here, even if a step by step evaluation would not.
///
/// # Errors
/// `Unsupported`, `Sizes`, `DType`, `TooLarge`.
pub fn scan<R: Runtime>(client: &ComputeClient<R>, over: LaneScan) -> Result<Vec<Operand>> {
    let (kind, parts) = (over.kind, over.kind.parts());
    let recurrence = matches!(kind, ScanKind::Recurrence | ScanKind::ComplexRecurrence);
    let of_a = if recurrence { parts } else { 0 };
    let starts = recurrence || kind == ScanKind::Sum;
    let firsts = over.first.len();
    if over.b.len() != parts
        || over.a.len() != of_a
        || (firsts != 0 && (firsts != parts || !starts))
    {
        let requested = format!("{kind:?} with such operands");
        return Err(CubeError::Unsupported { kernel: KERNEL, requested });
    }
    match kind {
        ScanKind::Recurrence => run::<R, AffineSteps>(client, over),
        ScanKind::ComplexRecurrence => run::<R, ComplexSteps>(client, over),
        ScanKind::Sum => run::<R, SumSteps>(client, over),
        ScanKind::Max => run::<R, MaximumSteps>(client, over),
        ScanKind::Min => run::<R, MinimumSteps>(client, over),
        ScanKind::LogSumExp => run::<R, LogSumSteps>(client, over),
    }
}

/// The scan with as many operands as its kind requires.
fn run<R: Runtime, S: ScanSteps>(
    client: &ComputeClient<R>,
    over: LaneScan,
) -> Result<Vec<Operand>> {
    let LaneScan { kind, a, b, first, axis, reverse } = over;
    let shape = b[0].shape.clone();
    let mut start = shape.clone();
    start[axis] = 1;
    let required =
        ["terms of one shape", "factors in the shape of terms", "a first state of size 1"];
    for ((list, required), shape) in
        [&b, &a, &first].into_iter().zip(required).zip([&shape, &shape, &start])
    {
        if let Some(x) = list.iter().find(|x| x.shape != *shape) {
            let given = [b[0].shape.clone(), x.shape.clone()];
            return Err(CubeError::Sizes { kernel: KERNEL, required, given });
        }
    }
    let dtype = b[0].dtype;
    let same = [&a, &b, &first].into_iter().flatten().all(|x| x.dtype == dtype);
    let computed = match dtype {
        StorageType::Scalar(ElemType::Float(kind)) if same => match kind {
            FloatKind::F16 | FloatKind::BF16 => ElemType::Float(FloatKind::F32).into(),
            _ => dtype,
        },
        _ => return Err(CubeError::DType { kernel: KERNEL, dtype: dtype.to_string() }),
    };
    elements(KERNEL, &shape)?;
    let parts = kind.parts();
    let h: Vec<Operand> = (0..parts).map(|_| Operand::empty(client, &shape, dtype)).collect();
    let n = shape[axis];
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let lanes = outer * inner;
    if lanes * n == 0 {
        return Ok(h);
    }
    // Enough units to fill a device, and at least 8 steps per chunk.
    let chunks = (131_072 / lanes).clamp(1, n.div_ceil(8));
    let len = n.div_ceil(chunks);
    let chunks = n.div_ceil(len);
    let units = if chunks <= 32 { 1 } else { 256 };

    let (scaled, initial) = (!a.is_empty(), !first.is_empty());
    let exponents = kind == ScanKind::LogSumExp;
    let paired = scaled || exponents;
    let number = |x: f64| InputScalar::new(x, computed);
    let least = f64::NEG_INFINITY;
    // The composition of no steps.
    let (p0, q0) = match kind {
        ScanKind::Max => (number(1.0), number(least)),
        ScanKind::Min => (number(1.0), number(f64::INFINITY)),
        ScanKind::LogSumExp => (number(least), number(0.0)),
        _ => (number(1.0), number(0.0)),
    };
    let low = number(least);
    let none = Operand::empty(client, &[1], dtype);
    let part = |list: &[Operand], i: usize| list.get(i).unwrap_or(&none).clone().arg();
    let sizes = [parts, outer, chunks, inner];
    let factors = Operand::empty(client, if paired { &sizes[..] } else { &[1] }, computed);
    let terms = Operand::empty(client, &sizes, computed);
    let all = lanes * chunks;
    let dim = CubeDim::new_1d(64);
    let dtypes = [dtype, computed];
    // SAFETY: sizes were checked; units after the last chunk or lane return.
    unsafe {
        chunks_kernel::launch_unchecked::<S, R>(
            client,
            grid(all.div_ceil(64)),
            dim,
            part(&a, 0),
            part(&a, 1),
            part(&b, 0),
            part(&b, 1),
            factors.clone().arg(),
            terms.clone().arg(),
            all,
            n,
            inner,
            chunks,
            len,
            p0,
            q0,
            low,
            parts,
            scaled,
            exponents,
            reverse,
            dtypes,
        );
        carries_kernel::launch_unchecked::<S, R>(
            client,
            grid(lanes),
            CubeDim::new_1d(units as u32),
            part(&first, 0),
            part(&first, 1),
            factors.clone().arg(),
            terms.clone().arg(),
            lanes,
            inner,
            chunks,
            p0,
            q0,
            low,
            units,
            parts,
            paired,
            initial,
            dtypes,
        );
        states_kernel::launch_unchecked::<S, R>(
            client,
            grid(all.div_ceil(64)),
            dim,
            part(&a, 0),
            part(&a, 1),
            part(&b, 0),
            part(&b, 1),
            factors.arg(),
            terms.arg(),
            part(&h, 0),
            h.get(1).cloned().unwrap_or_else(|| Operand::empty(client, &[1], dtype)).arg(),
            all,
            n,
            inner,
            chunks,
            len,
            p0,
            q0,
            low,
            parts,
            scaled,
            exponents,
            reverse,
            dtypes,
        );
    }
    Ok(h)
}
