//! Matrix factorisations, solvers and functions of matrices with derivatives, for f32, f64, c32 and c64.
//! Algorithms are faer's; batches of any strides, the status of each matrix, threads and derivative rules of
//! any order, at degenerate spectra too, are ours. Burn users call `burn_t4a::ext::linalg`.
//!
//! ```
//! use t4a_linalg::svd::{Vectors, svd};
//! use t4a_tensor::Tensor;
//!
//! let a = Tensor::from_vec(vec![3.0, 0.0, 0.0, -4.0, 0.0, 0.0], &[3, 2])?;
//! assert_eq!(svd(&a, Vectors::Thin)?.s.to_vec()?, [4.0, 3.0]);
//! # Ok::<(), t4a_linalg::LinalgError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | singular values, low rank | [`svd`], [`svd::Truncation`], [`polar`], [`pinv`] |
//! | orthogonal bases | [`qr`], [`householder`] |
//! | eigenvalues, Hermitian or not | [`eigh`], [`eig`] |
//! | positive definite matrices | [`cholesky`] |
//! | systems of equations, determinants | [`solve`], [`lu`], [`triangular`], [`inverse`], [`det`], [`systems`] |
//! | least squares | [`lstsq`] |
//! | exponential, root, logarithm, powers | [`expm`], [`sqrtm`], [`logm`], [`power`], [`hermitian`] |
//! | triangular form | [`schur`] |
//! | norms, condition numbers | [`mod@norm`] |
//! | Sylvester and Lyapunov equations, `A X + X B = C` | [`sylvester`], [`lyapunov`] |
//! | tensors some of whose axes form the rows | [`mod@left_dims`] |
//! | maps given as functions: Lanczos, Arnoldi, GMRES, exponentials | [`krylov`] |
//! | all of them over any arrays, as users call them | [`user`] |
//!
//! # Conventions
//! A batch of matrices is a tensor `[…, m, n]`; all other axes are batch axes. For a real loss `L`
//! the cotangent is `Ā = ∂L/∂Re A + i ∂L/∂Im A`, PyTorch's convention. Operations on Hermitian
//! matrices read `(A + Aᴴ)/2` and return Hermitian cotangents.
//!
//! # Errors
//! A matrix that is singular, not positive, not finite or does not converge fails alone. The `_ex`
//! functions report it in an info tensor of the batch's shape and fill its results with NaN; the
//! plain functions return an error that names its place in the batch.
//!
//! # Derivative rules, written once
//! A rule is a function over [`vocabulary::Matrices`], a small set of operations on batches of
//! matrices: elementwise arithmetic, products, blocks, masks, triangular and other systems. It runs on
//! engine tensors of one type ([`vocabulary::Batched`]) and on any arrays of `t4a-diff`
//! ([`vocabulary::RealMatrix`], [`vocabulary::ComplexMatrix`]): duals, primitives of a Burn backend.
//! Each operation of the vocabulary has a derivative within the vocabulary, so a rule can be
//! differentiated again: by duals, or by recording it on a tape. Everything that is not differentiable, such as
//! tolerances, masks, permutations and norms for checks, enters as constants.
//!
//! `expm` is a program in the vocabulary and needs no rule: its derivative is the program on duals. That of
//! `sqrtm` and `logm`, which use the Schur form, is the function of a block matrix.
//!
//! # What has which derivative
//! The second derivative is that of the gradient, by duals or on a tape. Symmetric functions of
//! `svdvals` and `eigvalsh` have it at ties as well ([`spectrum`]); where another rule divides by
//! gaps, a direction that splits a tie is an error. `hermitian_function` has no third derivative where
//! eigenvalues are close.
//!
//! | operation | values | VJP | JVP | second order |
//! |---|---|---|---|---|
//! | `svd` | ✓ | ✓ | ✓ | ✓ |
//! | `low_rank` | ✓ | ✓ | ✓ | ✓ |
//! | `svdvals` | ✓ | ✓ | ✓ | ✓ |
//! | `qr` | ✓ | ✓ | ✓ | ✓ |
//! | `qr_pivoted` | ✓ | ✓ | ✓ | ✓ |
//! | `lq` | ✓ | ✓ | ✓ | ✓ |
//! | `lu_factor` | ✓ | ✓ | ✓ | ✓ |
//! | `cholesky` | ✓ | ✓ | ✓ | ✓ |
//! | `eigh` | ✓ | ✓ | ✓ | ✓ |
//! | `eigvalsh` | ✓ | ✓ | ✓ | ✓ |
//! | `eig` | ✓ | ✓ | ✓ | ✓ |
//! | `eigvals` | ✓ | ✓ | ✓ | ✓ |
//! | `polar` | ✓ | ✓ | ✓ | ✓ |
//! | `expm` | ✓ | ✓ | ✓ | ✓ |
//! | `sqrtm` | ✓ | ✓ | ✓ | ✓ |
//! | `logm` | ✓ | ✓ | ✓ | ✓ |
//! | `hermitian_function` | ✓ | ✓ | ✓ | ✓ |
//! | `svd_function` | ✓ | ✓ | ✓ | ✓ |
//! | `solve` | ✓ | ✓ | ✓ | ✓ |
//! | `solve_triangular` | ✓ | ✓ | ✓ | ✓ |
//! | `lstsq` | ✓ | ✓ | ✓ | ✓ |
//! | `lstsq_min_norm` | ✓ | ✓ | ✓ | ✓ |
//! | `sylvester` | ✓ | ✓ | ✓ | ✓ |
//! | `lyapunov_positive` | ✓ | ✓ | ✓ | ✓ |
//! | `inv` | ✓ | ✓ | ✓ | ✓ |
//! | `pinv` | ✓ | ✓ | ✓ | ✓ |
//! | `det` | ✓ | ✓ | ✓ | ✓ |
//! | `slogdet` | ✓ | ✓ | ✓ | ✓ |
//!
//! `svd_truncated`, `ql`, `rq`, `lu`, `lu_solve`, `lyapunov`, `matrix_power`, `matrix_norm`, `norm`,
//! `trace`, `diag`, `cond` and `householder_product` are slices, flips and programs composed of these rows: they have the derivatives
//! of what they consist of, of every order, on duals and on a tape.

// kernels (a crate of its own)   faer's algorithms, compiled once per element type
// batch                          views of matrices, results, threads, status of each matrix
// svd qr lu cholesky …           one room per operation: check · forward · jvp · vjp · tests
// vocabulary                     the operations that derivative rules are written in
// degeneracy                     what rules do at ties; the gauge check
// spectrum                       second derivatives of functions of values, at ties as well
// operation                      what an operation is: one trait
// table                          all operations as one value; on arrays
// call program                   the forms that faces offer; functions written in the vocabulary
// left_dims                      N-dimensional tensors as matrices
// krylov                         maps that are functions: eigenvalues, exponentials, systems
// gaussian_process               likelihood and posterior by a factorisation

#![deny(unsafe_code)]

mod batch;
pub mod call;
pub mod cholesky;
pub mod degeneracy;
pub mod det;
pub mod eig;
pub mod eigh;
pub mod error;
pub mod expm;
mod frechet;
pub mod gaussian_process;
pub mod hermitian;
pub mod householder;
mod idle;
pub mod inverse;
pub mod krylov;
pub mod left_dims;
pub mod logm;
pub mod lstsq;
pub mod lu;
pub mod lyapunov;
pub mod norm;
pub mod operation;
pub mod permutation;
pub mod pinv;
pub mod polar;
pub mod power;
pub mod program;
pub mod qr;
pub mod scalar;
mod scale;
pub mod schur;
pub mod solve;
pub mod spectrum;
pub mod sqrtm;
pub mod svd;
pub mod sylvester;
pub mod systems;
pub mod table;
#[cfg(test)]
mod testing;
mod threads;
pub mod triangular;
pub mod user;
pub mod vocabulary;

pub use degeneracy::Degeneracy;
pub use error::{LinalgError, Result};
pub use permutation::Permutation;
pub use scalar::LinalgScalar;
pub use table::{Linalg, MatrixOp};
