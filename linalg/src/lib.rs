//! Matrix factorisations, solvers and matrix functions with derivatives, for f32, f64, c32 and c64. The factorisation
//! algorithms are those of faer; this crate adds batches of any strides, the status of each matrix, threads, and
//! derivative rules of any order, including degenerate spectra. The interface for Burn is `burn_t4a::ext::linalg`.
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
//! | linear systems, determinants | [`solve`], [`lu`], [`triangular`], [`inverse`], [`det`], [`systems`] |
//! | least squares | [`lstsq`] |
//! | exponential, root, logarithm, powers | [`expm`], [`sqrtm`], [`logm`], [`power`], [`hermitian`] |
//! | Schur form | [`schur`] |
//! | norms, condition numbers | [`mod@norm`] |
//! | Sylvester and Lyapunov equations, `A X + X B = C` | [`sylvester`], [`lyapunov`] |
//! | tensors as matrices: some axes form the rows | [`user::svd_left_dims`] |
//! | operators given as functions: Lanczos, Arnoldi, GMRES, exponentials | [`krylov`] |
//! | user interface of all of them, over any arrays | [`user`] |
//!
//! # Conventions
//! A batch of matrices is a tensor `[…, m, n]`; all other axes are batch axes. For a real loss `L` the cotangent is
//! `Ā = ∂L/∂Re A + i ∂L/∂Im A`, the convention of PyTorch. Operations on Hermitian matrices use `(A + Aᴴ)/2` and
//! return Hermitian cotangents.
//!
//! # Errors
//! A matrix that is singular, not positive definite, not finite or does not converge does not affect the others of
//! its batch. The `_ex` functions report it in an info tensor of the batch's shape and fill its results with NaN; the
//! plain functions return an error with its index in the batch.
//!
//! # Derivative rules
//! A rule is a function generic over [`vocabulary::Matrices`], a small set of operations on batches of matrices:
//! elementwise arithmetic, products, blocks, masks, triangular and other systems. It runs on engine tensors of one
//! type ([`vocabulary::Batched`]) and on any arrays of `t4a-diff` ([`vocabulary::RealMatrix`],
//! [`vocabulary::ComplexMatrix`]): dual numbers, primitives of a Burn backend. The derivative of each operation of
//! the vocabulary is expressed in the vocabulary, so a rule can be differentiated again, by dual numbers or by
//! recording it on a tape. Non-differentiable quantities, such as tolerances, masks, permutations and norms for
//! checks, are constants.
//!
//! `expm` is a program in the vocabulary and needs no rule: its derivative is the program on dual numbers. The
//! derivatives of `sqrtm` and `logm`, which use the Schur form, are functions of a block matrix.
//!
//! # Supported derivatives
//! The second derivative is that of the gradient, by dual numbers or on a tape. Symmetric functions of `svdvals` and
//! `eigvalsh` have it at ties as well ([`spectrum`]); where another rule divides by gaps, a direction that splits a
//! tie is an error. `hermitian_function` has no third derivative for close eigenvalues.
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
//! `svd_truncated`, `ql`, `rq`, `lu`, `lu_solve`, `lyapunov`, `matrix_power`, `matrix_norm`, `norm`, `trace`, `diag`,
//! `cond` and `householder_product` are slices, flips and programs composed of these rows. They have the same
//! derivatives, of every order, on dual numbers and on a tape.

// kernels (separate crate)       faer's algorithms, compiled once per element type
// batch                          views of matrices, results, threads, status of each matrix
// svd qr lu cholesky …           one module per operation: check · forward · jvp · vjp · tests
// vocabulary                     operations in which derivative rules are written
// degeneracy                     policy of rules at ties; gauge check
// spectrum                       second derivatives of functions of values, including ties
// operation                      trait of operations
// table                          all operations as one value; execution on arrays
// call program                   operations with and without statuses; functions written in the vocabulary
// left_dims                      axes of N-dimensional tensors as matrices
// krylov                         operators given as functions: eigenvalues, exponentials, linear systems
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
mod left_dims;
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
pub use threads::undivided;
