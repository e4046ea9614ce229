//! faer's kernels, compiled once per element type.
//!
//! faer's algorithms are generic and large: their code for four element types takes minutes to compile. Each type
//! therefore has its own crate without dependencies that change often. These crates compile in parallel; this crate
//! combines them in two traits.
//!
//! ```text
//! generic           the functions, generic, and their table
//! f32 f64 c32 c64   the functions of the table for one element type
//! ```
#![forbid(unsafe_code)]

use faer::dyn_stack::MemBuffer;
use faer::traits::ComplexField;
use faer::{MatMut, MatRef, Par};
use num_complex::Complex;
use t4a_linalg_generic::for_each_kernel;

pub use t4a_linalg_generic::ComputeVectors;

macro_rules! declare {
    ($e:ty; $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)?;)*) => {
        /// Factorisation kernels of one element type. Scratch memory is allocated by the `_scratch` function of the
        /// same sizes.
        pub trait Kernels: ComplexField {
            $($(#[$doc])* #[doc(hidden)] fn $name($($arg: $ty),*) $(-> $out)?;)*
        }
    };
}

for_each_kernel!(declare, Self);

macro_rules! implement {
    ($e:ty, $krate:ident; $(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)?;
    )*) => {
        impl Kernels for $e {
            $(fn $name($($arg: $ty),*) $(-> $out)? {
                $krate::$name($($arg),*)
            })*
        }
    };
}

for_each_kernel!(implement, f32, t4a_linalg_f32);
for_each_kernel!(implement, f64, t4a_linalg_f64);
for_each_kernel!(implement, Complex<f32>, t4a_linalg_c32);
for_each_kernel!(implement, Complex<f64>, t4a_linalg_c64);

/// General eigendecomposition; real and complex matrices differ in the type of the results.
pub trait Eigen: ComplexField {
    /// The complex type of eigenvalues.
    type Value: ComplexField;

    /// Eigenvalues and right eigenvectors, the latter not normalised; `false` without
    /// convergence.
    #[doc(hidden)]
    fn eigen(
        a: MatRef<'_, Self>,
        values: &mut [Self::Value],
        vectors: Option<MatMut<'_, Self::Value>>,
        par: Par,
    ) -> bool;
}

macro_rules! eigen {
    ($($t:ty, $value:ty, $krate:ident;)*) => {$(
        impl Eigen for $t {
            type Value = $value;

            fn eigen(
                a: MatRef<'_, $t>,
                values: &mut [$value],
                vectors: Option<MatMut<'_, $value>>,
                par: Par,
            ) -> bool {
                $krate::eigen(a, values, vectors, par)
            }
        }
    )*};
}

eigen! {
    f32, Complex<f32>, t4a_linalg_f32;
    f64, Complex<f64>, t4a_linalg_f64;
    Complex<f32>, Complex<f32>, t4a_linalg_c32;
    Complex<f64>, Complex<f64>, t4a_linalg_c64;
}
