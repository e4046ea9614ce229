//! Maximum, minimum, argmax and argmin along an axis.

use cubecl::ir::{ElemType, IntKind};
use cubecl::prelude::*;

use crate::error::Result;
use crate::kernels::extreme::extreme_kernel;
use crate::launch::{Operand, elements, grid, reach};

/// Kind of reduction of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// Maximum; NaN if the lane contains NaN.
    Greatest,
    /// Minimum; NaN if the lane contains NaN.
    Least,
    /// Argmax, `i32`: index of the first maximum, or of the first NaN if there is one.
    PlaceOfGreatest,
    /// Argmin, `i32`: index of the first minimum, or of the first NaN if there is one.
    PlaceOfLeast,
}

/// Lanes of a tensor: `outer × inner` lanes with `n` elements each.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Sizes `[outer, n, inner]`.
    pub sizes: [usize; 3],
    /// Strides of these axes, in elements.
    pub strides: [usize; 3],
}

impl Lanes {
    /// Lanes along an axis of a contiguous tensor.
    pub fn along(shape: &[usize], axis: usize) -> Self {
        let inner: usize = shape[axis + 1..].iter().product();
        let outer = shape[..axis].iter().product();
        let n = shape[axis];
        Self { sizes: [outer, n, inner], strides: [n * inner, inner, 1] }
    }

    fn check(&self, kernel: &'static str) -> Result<usize> {
        reach(kernel, &self.sizes, &self.strides)?;
        elements(kernel, &self.sizes)?;
        Ok(self.sizes[0] * self.sizes[2])
    }
}

/// Element type of indices.
const INDEX: StorageType = StorageType::Scalar(ElemType::Int(IntKind::I32));

/// Reduces each lane to one element; the result is contiguous with the given shape. Lanes must not be empty.
///
/// # Errors
/// `TooLarge` if an index exceeds 31 bits.
pub fn extreme<R: Runtime>(
    client: &ComputeClient<R>,
    x: Operand,
    lanes: Lanes,
    kind: Extreme,
    shape: &[usize],
) -> Result<Operand> {
    let all = lanes.check("extreme")?;
    let ([_, n, inner], [outer_stride, stride, inner_stride]) = (lanes.sizes, lanes.strides);
    let by_place = matches!(kind, Extreme::PlaceOfGreatest | Extreme::PlaceOfLeast);
    let least = matches!(kind, Extreme::Least | Extreme::PlaceOfLeast);
    let dtype = x.dtype;
    let none = |dtype| Operand::empty(client, &[1], dtype);
    let (values, places) = match by_place {
        true => (none(dtype), Operand::empty(client, shape, INDEX)),
        false => (Operand::empty(client, shape, dtype), none(INDEX)),
    };
    let result = if by_place { places.clone() } else { values.clone() };
    if all == 0 || n == 0 {
        return Ok(result);
    }
    // Many lanes: one unit per lane. Few long lanes: one cube for several of them.
    let (per_cube, width) = match (all, n) {
        (_, 0..32) | (16384.., _) => (64, 1),
        _ if inner < 8 => (1, 64),
        _ => (8, 16),
    };
    // SAFETY: lanes were checked against the index range; cubes after the last lane read lane 0 and write nothing.
    unsafe {
        extreme_kernel::launch_unchecked::<R>(
            client,
            grid(all.div_ceil(per_cube)),
            CubeDim::new_2d(per_cube as u32, width as u32),
            x.arg(),
            values.arg(),
            places.arg(),
            all,
            inner,
            n,
            outer_stride,
            inner_stride,
            stride,
            per_cube,
            width,
            least,
            by_place,
            dtype,
        );
    }
    Ok(result)
}
