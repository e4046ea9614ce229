//! Table of factorisations: one signature per function, passed to a macro that generates traits or functions from it.

/// Calls `$callback! { $e; rows }`, or `$callback! { $e, $krate; rows }`, with the functions of this
/// crate for the element type `$e`.
#[macro_export]
macro_rules! for_each_kernel {
    ($callback:ident, $e:ty $(, $krate:ident)?) => {
        $callback! { $e $(, $krate)?;
            /// Scratch of `svd`.
            fn svd_scratch(m: usize, n: usize, extent: ComputeVectors, par: Par) -> MemBuffer;
            /// Singular values, `U` and `V`; `false` without convergence.
            fn svd(
                a: MatRef<'_, $e>,
                s: &mut [$e],
                uv: Option<(MatMut<'_, $e>, MatMut<'_, $e>)>,
                par: Par,
                memory: &mut MemBuffer,
            ) -> bool;
            /// Scratch of `eigh`.
            fn eigh_scratch(n: usize, vectors: bool, par: Par) -> MemBuffer;
            /// Eigenvalues and vectors from the lower triangle; `false` without convergence.
            fn eigh(
                a: MatRef<'_, $e>,
                values: &mut [$e],
                vectors: Option<MatMut<'_, $e>>,
                par: Par,
                memory: &mut MemBuffer,
            ) -> bool;
            /// Scratch of `cholesky`.
            fn cholesky_scratch(n: usize, par: Par) -> MemBuffer;
            /// `L` over the lower triangle; the index of the pivot that is not positive.
            fn cholesky(a: MatMut<'_, $e>, par: Par, memory: &mut MemBuffer) -> Result<(), usize>;
            /// Householder block size for `qr`.
            fn qr_block(m: usize, n: usize) -> usize;
            /// Scratch of `qr` and `apply_q`.
            fn qr_scratch(m: usize, n: usize, block: usize, width: usize, par: Par) -> MemBuffer;
            /// Householder QR over `a`, with column orders if pivoted; `false` if a column that is numerically
            /// dependent was dropped.
            fn qr(
                a: MatMut<'_, $e>,
                coefficients: MatMut<'_, $e>,
                columns: Option<[&mut [usize]; 2]>,
                par: Par,
                memory: &mut MemBuffer,
            ) -> bool;
            /// Householder QR over `a` without dropping columns.
            fn qr_every_column(a: MatMut<'_, $e>, coefficients: MatMut<'_, $e>, par: Par);
            /// `X ← Q X`.
            fn apply_q(
                basis: MatRef<'_, $e>,
                coefficients: MatRef<'_, $e>,
                x: MatMut<'_, $e>,
                par: Par,
                memory: &mut MemBuffer,
            );
            /// Scratch of `lu`.
            fn lu_scratch(m: usize, n: usize, par: Par) -> MemBuffer;
            /// Packed `L` and `U` over `a`, the row order and its inverse, partial pivoting.
            fn lu(a: MatMut<'_, $e>, rows: [&mut [usize]; 2], par: Par, memory: &mut MemBuffer);
            /// `X ← T⁻¹ X`, or `T̄⁻¹ X`.
            fn solve_triangular(
                t: MatRef<'_, $e>,
                conj: bool,
                upper: bool,
                unit: bool,
                x: MatMut<'_, $e>,
                par: Par,
            );
            /// `C ← A B`.
            fn matmul(c: MatMut<'_, $e>, a: MatRef<'_, $e>, b: MatRef<'_, $e>, par: Par);
        }
    };
}

/// All functions of the table as functions of one element type.
#[macro_export]
macro_rules! concrete {
    ($e:ty; $(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)?;
    )*) => {$(
        $(#[$doc])*
        pub fn $name($($arg: $ty),*) $(-> $out)? {
            $crate::$name::<$e>($($arg),*)
        }
    )*};
}
