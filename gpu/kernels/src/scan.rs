//! Linear recurrences and cumulative sums along an axis.

use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::kernels::scan::{carries_kernel, chunks_kernel, states_kernel};
use crate::launch::{Operand, elements, grid};

const KERNEL: &str = "recurrence";

/// Operands of `h_t = a_t h_{t−1} + b_t`, contiguous and of one element type.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// Factors a, in the shape of `b`; `None` means 1.
    pub a: Option<Operand>,
    /// Terms b.
    pub b: Operand,
    /// State before the first step, in the shape of `b` with size 1 along the axis; `None` means 0.
    pub first: Option<Operand>,
    /// Axis of time.
    pub axis: usize,
    /// True if time runs from the end of the axis.
    pub reverse: bool,
}

/// Computes all states; the result is contiguous.
///
/// Chunks of a lane are processed in parallel, and their composed factors are computed first. So factors that
/// overflow within a chunk overflow here, even if a step by step evaluation would not.
///
/// # Errors
/// `Sizes`, `DType`, `TooLarge`.
pub fn recurrence<R: Runtime>(client: &ComputeClient<R>, over: Recurrence) -> Result<Operand> {
    let Recurrence { a, b, first, axis, reverse } = over;
    let shape = b.shape.clone();
    let mut start = shape.clone();
    start[axis] = 1;
    for (x, required, shape) in [
        (&a, "factors and terms of one shape", &shape),
        (&first, "a first state with size 1 along the axis", &start),
    ] {
        if let Some(x) = x.as_ref().filter(|x| x.shape != *shape) {
            let given = [b.shape.clone(), x.shape.clone()];
            return Err(CubeError::Sizes { kernel: KERNEL, required, given });
        }
    }
    let dtype = b.dtype;
    let same = [&a, &first].iter().all(|x| x.as_ref().is_none_or(|x| x.dtype == dtype));
    let computed = match dtype {
        StorageType::Scalar(ElemType::Float(kind)) if same => match kind {
            FloatKind::F16 | FloatKind::BF16 => ElemType::Float(FloatKind::F32).into(),
            _ => dtype,
        },
        _ => return Err(CubeError::DType { kernel: KERNEL, dtype: dtype.to_string() }),
    };
    elements(KERNEL, &shape)?;
    let h = Operand::empty(client, &shape, dtype);
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

    let (scaled, initial) = (a.is_some(), first.is_some());
    let none = || Operand::empty(client, &[1], dtype);
    let (a, first) = (a.unwrap_or_else(none), first.unwrap_or_else(none));
    let sizes = [outer, chunks, inner];
    let factors = Operand::empty(client, if scaled { &sizes[..] } else { &[1] }, computed);
    let terms = Operand::empty(client, &sizes, computed);
    let all = lanes * chunks;
    let dim = CubeDim::new_1d(64);
    let dtypes = [dtype, computed];
    // SAFETY: sizes were checked; units after the last chunk or lane return.
    unsafe {
        chunks_kernel::launch_unchecked::<R>(
            client,
            grid(all.div_ceil(64)),
            dim,
            a.clone().arg(),
            b.clone().arg(),
            factors.clone().arg(),
            terms.clone().arg(),
            all,
            n,
            inner,
            chunks,
            len,
            scaled,
            reverse,
            dtypes,
        );
        carries_kernel::launch_unchecked::<R>(
            client,
            grid(lanes),
            CubeDim::new_1d(units as u32),
            first.arg(),
            factors.arg(),
            terms.clone().arg(),
            lanes,
            inner,
            chunks,
            units,
            scaled,
            initial,
            dtypes,
        );
        states_kernel::launch_unchecked::<R>(
            client,
            grid(all.div_ceil(64)),
            dim,
            a.arg(),
            b.arg(),
            terms.arg(),
            h.clone().arg(),
            all,
            n,
            inner,
            chunks,
            len,
            scaled,
            reverse,
            dtypes,
        );
    }
    Ok(h)
}
