//! Device memory for calls of the library.

use core::any::Any;
use core::ffi::c_int;

use cubecl::cuda::CudaRuntime;
use cubecl::prelude::*;
use cubecl::server::Handle;

use super::calls::Real;
use super::library::Failure;
use crate::error::{CubeError, Result};
use crate::factor::INDEX;
use crate::kernels::factor::large::stage_kernel;
use crate::launch::{Operand, grid};

pub(super) type Client = ComputeClient<CudaRuntime>;

/// Number of units of a cube of elementwise kernels.
const UNITS: usize = 256;

/// The client, if its runtime is CUDA.
pub(super) fn cuda<'a, R: Runtime>(
    kernel: &'static str,
    client: &'a ComputeClient<R>,
) -> Result<&'a Client> {
    let requested = || format!("{} by cuSOLVER", R::name(client));
    let client: Option<&Client> = (client as &dyn Any).downcast_ref();
    client.ok_or_else(|| CubeError::Unsupported { kernel, requested: requested() })
}

/// Launch sizes of an elementwise kernel.
pub(super) fn elementwise(len: usize) -> (CubeCount, CubeDim) {
    (grid(len.div_ceil(UNITS)), CubeDim::new_1d(UNITS as u32))
}

/// A size as an argument of the library.
pub(super) fn int(size: usize) -> std::result::Result<c_int, Failure> {
    c_int::try_from(size).map_err(|_| format!("{size} exceeds the sizes of the library"))
}

/// A batch of matrices on the device.
pub(super) struct Batch<'a> {
    pub(super) client: &'a Client,
    pub(super) device: usize,
    /// `[β, m, n]`.
    pub(super) sizes: [usize; 3],
    pub(super) strides: [usize; 3],
    pub(super) a: Operand,
}

impl Batch<'_> {
    /// An array of the element type, not initialised.
    pub(super) fn empty(&self, shape: &[usize]) -> Operand {
        Operand::empty(self.client, shape, self.a.dtype)
    }

    /// An array of integers, not initialised.
    pub(super) fn integers(&self, shape: &[usize]) -> Operand {
        Operand::empty(self.client, shape, INDEX)
    }

    /// A contiguous copy, row-major or column-major, of A or of (A + Aᵀ)/2, and three flags per matrix:
    /// [`stage_kernel`].
    pub(super) fn staged<T: Real>(&self, columns: bool, symmetric: bool) -> [Operand; 2] {
        let ([batch, m, n], [stride, row, column]) = (self.sizes, self.strides);
        let (len, dtype) = (batch * m * n, self.a.dtype);
        let (staged, [small, large]) = (self.empty(&[batch, m, n]), T::RANGE);
        let flags = constants(self.client, &vec![0; 3 * batch], &[batch, 3]);
        let (cubes, dim) = elementwise(len);
        // SAFETY: sizes and strides were checked; units after the last element return.
        unsafe {
            stage_kernel::launch_unchecked::<CudaRuntime>(
                self.client,
                cubes,
                dim,
                self.a.clone().arg(),
                staged.clone().arg(),
                flags.clone().arg(),
                len,
                m,
                n,
                stride,
                row,
                column,
                InputScalar::new(large, dtype),
                InputScalar::new(small, dtype),
                columns,
                symmetric,
                dtype,
            );
        }
        [staged, flags]
    }

    /// Waits for the work before on the stream of this thread. Returns the status of the batch if the library must
    /// not be called: −2 for a matrix with entries that are not finite, or outside of the range.
    pub(super) fn rejected(
        &self,
        flags: &Operand,
    ) -> std::result::Result<Option<Operand>, Failure> {
        let flags = integers(self.client, flags)?;
        let code = |flags: &[i32]| match flags {
            [0, 1, _] | [0, _, 0] => 0,
            _ => -2,
        };
        let codes: Vec<i32> = flags.chunks_exact(3).map(code).collect();
        let failed = codes.iter().any(|&code| code != 0);
        Ok(failed.then(|| constants(self.client, &codes, &[codes.len()])))
    }
}

/// Copies a contiguous operand to the host, which waits for all work before it on the stream of this thread.
fn bytes(client: &Client, handle: Handle) -> std::result::Result<Vec<u8>, Failure> {
    let bytes = client.read_one(handle).map_err(|error| format!("{error:?}"))?;
    Ok(bytes.to_vec())
}

/// Reads the elements of a contiguous operand.
pub(super) fn reals<T: Real>(
    client: &Client,
    of: &Operand,
) -> std::result::Result<Vec<T>, Failure> {
    let bytes = bytes(client, of.handle.clone())?;
    Ok(bytes.chunks_exact(size_of::<T>()).map(T::from_bytes).collect())
}

/// Reads integers.
pub(super) fn integers(client: &Client, of: &Operand) -> std::result::Result<Vec<i32>, Failure> {
    let bytes = bytes(client, of.handle.clone())?;
    let integer = |x: &[u8]| x.try_into().map_or(0, i32::from_ne_bytes);
    Ok(bytes.chunks_exact(4).map(integer).collect())
}

/// Writes integers.
pub(super) fn constants(client: &Client, values: &[i32], shape: &[usize]) -> Operand {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
    Operand::contiguous(client.create_from_slice(&bytes), shape, INDEX)
}
