//! Operands, index checks and grids of all launches.

use cubecl::prelude::*;
use cubecl::server::Handle;

use crate::error::{CubeError, Result};

/// A tensor in device memory.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Handle of the device memory.
    pub handle: Handle,
    /// Sizes of the axes.
    pub shape: Vec<usize>,
    /// Strides of the axes, in elements.
    pub strides: Vec<usize>,
    /// The element type.
    pub dtype: StorageType,
}

impl Operand {
    /// Allocates a contiguous tensor without initialising it.
    pub fn empty<R: Runtime>(
        client: &ComputeClient<R>,
        shape: &[usize],
        dtype: StorageType,
    ) -> Self {
        let bytes = shape.iter().product::<usize>().max(1) * dtype.size();
        Self::contiguous(client.empty(bytes), shape, dtype)
    }

    /// A contiguous tensor of this memory.
    pub(crate) fn contiguous(handle: Handle, shape: &[usize], dtype: StorageType) -> Self {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Self { handle, shape: shape.to_vec(), strides, dtype }
    }

    pub(crate) fn arg<R: Runtime>(self) -> TensorArg<R> {
        let (strides, shape) = (self.strides.into(), self.shape.into());
        // SAFETY: kernels compute indices within the bounds that launches have checked.
        unsafe { TensorArg::from_raw_parts(self.handle, strides, shape) }
    }
}

/// Arguments of a kernel for the parts of numbers.
pub(crate) fn arguments<R: Runtime, T>(parts: &[Operand]) -> SequenceArg<R, T>
where
    T: LaunchArg<RuntimeArg<R> = TensorArg<R>>,
{
    parts.iter().map(|x| x.clone().arg()).collect()
}

/// Returns false if the device reports that it lacks this element type. CUDA does not list `f64`, which it
/// supports.
pub fn supports<R: Runtime>(client: &ComputeClient<R>, dtype: StorageType) -> bool {
    !client.properties().type_usage(dtype).is_empty() || !R::name(client).contains("wgpu")
}

/// Returns the number of elements if it fits in the index range of kernels.
pub(crate) fn elements(kernel: &'static str, sizes: &[usize]) -> Result<usize> {
    let product = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    let elements = product.unwrap_or(usize::MAX);
    if elements > i32::MAX as usize {
        return Err(CubeError::TooLarge { kernel, elements });
    }
    Ok(elements)
}

/// Checks that the largest index of a layout fits in the index range of kernels.
pub(crate) fn reach(kernel: &'static str, sizes: &[usize], strides: &[usize]) -> Result<()> {
    let last = sizes.iter().zip(strides).map(|(&n, &s)| n.saturating_sub(1).saturating_mul(s));
    elements(kernel, &[last.fold(0, usize::saturating_add)]).map(|_| ())
}

/// A grid of at least `cubes` cubes within the limits of all runtimes; kernels ignore surplus cubes.
pub(crate) fn grid(cubes: usize) -> CubeCount {
    let x = cubes.clamp(1, 65535);
    CubeCount::Static(x as u32, cubes.div_ceil(x).max(1) as u32, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_the_indices_are_refused() {
        assert_eq!(elements("k", &[1 << 15, 1 << 15]), Ok(1 << 30));
        let error = Err(CubeError::TooLarge { kernel: "k", elements: 1 << 31 });
        assert_eq!(elements("k", &[1 << 15, 1 << 16]), error);
        let overflow = Err(CubeError::TooLarge { kernel: "k", elements: usize::MAX });
        assert_eq!(elements("k", &[1 << 40, 1 << 40]), overflow);
        assert_eq!(reach("k", &[2, 3], &[3, 1]), Ok(()));
        assert!(reach("k", &[2, 1], &[1 << 31, 1]).is_err());
    }

    #[test]
    fn grids_cover_what_they_are_for() {
        for cubes in [0, 1, 65535, 65536, 1 << 24, i32::MAX as usize] {
            let CubeCount::Static(x, y, z) = grid(cubes) else { panic!("sizes are known") };
            assert!([x, y, z].iter().all(|&n| (1..=65535).contains(&n)), "{cubes}: {x} {y} {z}");
            assert!(x as usize * y as usize >= cubes);
        }
    }
}
