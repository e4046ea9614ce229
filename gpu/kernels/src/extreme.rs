//! Greatest and least elements along an axis, their places, and the first NaN.

use cubecl::ir::{ElemType, IntKind};
use cubecl::prelude::*;

use crate::error::Result;
use crate::kernels::extreme::{extreme_kernel, first_nan_kernel};
use crate::launch::{Operand, elements, grid, reach};

/// The result of a reduction of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The greatest element, NaN if there is one.
    Greatest,
    /// The least element, NaN if there is one.
    Least,
    /// The place of the first of the greatest; of the first NaN if there is one. 32-bit integers.
    PlaceOfGreatest,
    /// The place of the first of the least; of the first NaN if there is one. 32-bit integers.
    PlaceOfLeast,
}

/// Lanes of a tensor: `outer` × `inner` of them with `n` elements each.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Sizes: outer, along the lane, inner.
    pub sizes: [usize; 3],
    /// Strides of these, in elements.
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

/// The type of places.
const INDEX: StorageType = StorageType::Scalar(ElemType::Int(IntKind::I32));

/// One element per lane, as a contiguous tensor of this shape. Lanes are not empty.
///
/// # Errors
/// `TooLarge`.
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
    // Many lanes: a unit for each. Few long ones: a cube for a few of them.
    let (per_cube, width) = match (all, n) {
        (_, 0..32) | (16384.., _) => (64, 1),
        _ if inner < 8 => (1, 64),
        _ => (8, 16),
    };
    // SAFETY: lanes were checked against the indices; cubes beyond the last lane read lane 0 and write nothing.
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

/// The place of the first NaN of each lane, its length if there is none.
pub(crate) fn first_nan<R: Runtime>(
    client: &ComputeClient<R>,
    x: Operand,
    lanes: Lanes,
) -> Result<Operand> {
    let all = lanes.check("first_nan")?;
    let ([_, n, inner], [outer_stride, stride, inner_stride]) = (lanes.sizes, lanes.strides);
    let places = Operand::empty(client, &[all], INDEX);
    let dtype = x.dtype;
    // SAFETY: lanes were checked against the indices; units beyond the last lane end.
    unsafe {
        first_nan_kernel::launch_unchecked::<R>(
            client,
            grid(all.div_ceil(64)),
            CubeDim::new_1d(64),
            x.arg(),
            places.clone().arg(),
            all,
            inner,
            n,
            outer_stride,
            inner_stride,
            stride,
            dtype,
        );
    }
    Ok(places)
}
