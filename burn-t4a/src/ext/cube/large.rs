//! Factorisations of matrices of any size on CUDA by cuSOLVER; without the feature `cusolver`, none.

use burn_cubecl::CubeRuntime;
use burn_cubecl::tensor::CubeTensor;
use t4a_cube::Factors;

use crate::ext::operation::MatrixKernel;

/// Returns true if matrices of any size are factorised on devices of this runtime.
#[cfg(feature = "cusolver")]
pub(super) fn has_kernel<R: CubeRuntime>(of: MatrixKernel) -> bool {
    let known = super::factorisation(of).is_some() || super::triangle(of).is_some();
    known && t4a_cube::has_library::<R>()
}

#[cfg(not(feature = "cusolver"))]
#[allow(clippy::extra_unused_type_parameters, reason = "the signature with the feature")]
pub(super) fn has_kernel<R: CubeRuntime>(_of: MatrixKernel) -> bool {
    false
}

/// Factors of `a`; `None` if [`has_kernel`] is false, or the library fails.
#[cfg(feature = "cusolver")]
pub(super) fn factors<R: CubeRuntime>(
    a: &CubeTensor<R>,
    of: MatrixKernel,
    b: Option<&CubeTensor<R>>,
) -> Option<Factors> {
    use burn_backend::DeviceOps;

    if !has_kernel::<R>(of) {
        return None;
    }
    let device = usize::from(a.device.id().index_id);
    let operand = super::memory(a);
    if let Some(of) = super::factorisation(of) {
        return t4a_cube::factor_large(&a.client, device, of, operand).ok();
    }
    let (triangle, operands) = (super::triangle(of)?, [operand, super::memory(b?)]);
    let solved = t4a_cube::solve_triangular_large(&a.client, device, operands, triangle);
    let (x, status) = solved.ok()?;
    Some(Factors { factors: vec![x], rows: None, status })
}

#[cfg(not(feature = "cusolver"))]
pub(super) fn factors<R: CubeRuntime>(
    _a: &CubeTensor<R>,
    _of: MatrixKernel,
    _b: Option<&CubeTensor<R>>,
) -> Option<Factors> {
    None
}
