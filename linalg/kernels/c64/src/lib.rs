//! faer's dense factorisations compiled for c64.
#![forbid(unsafe_code)]

use faer::dyn_stack::MemBuffer;
use faer::{MatMut, MatRef, Par};
use num_complex::Complex;
use t4a_linalg_generic::{ComputeVectors, concrete, for_each_kernel};

for_each_kernel!(concrete, Complex<f64>);

/// Eigenvalues and right eigenvectors, the latter not normalised; `false` without convergence.
pub fn eigen(
    a: MatRef<'_, Complex<f64>>,
    values: &mut [Complex<f64>],
    vectors: Option<MatMut<'_, Complex<f64>>>,
    par: Par,
) -> bool {
    t4a_linalg_generic::eigen_complex(a, values, vectors, par)
}
