//! Structured tensors on Burn's tape: graded by quantum numbers, block-sparse, diagonal.
//!
//! | task | |
//! |---|---|
//! | symmetries, legs, structures | [`U1`], [`Z2`], [`Zn`], [`FermionNumber`], [`Product`], …; [`Leg`], [`Spec`] |
//! | tensors graded by charges, and their operations | [`GradedTensor`], [`einsum`] |
//! | known nonzero blocks; equal indices | [`BlockSparseTensor`] of a [`Pattern`]; [`DiagTensor`], [`diag_einsum`] |
//! | conversion from and to Burn tensors, gradients, tangents | [`Structured`] |
//! | singular values as Burn tensors, entropies | [`BurnBond`] |
//! | truncation over all sectors | [`BondTruncation`] |
//! | parameter of a Burn module | [`Weights`], feature `module` |
//!
//! The types are those of [`t4a_structured`] over float tensors of a backend: all elements are in one tensor of
//! rank 1, the structure is host data and not on the tape. Operations are values: the engine runs kernels, other
//! backends run portable definitions, and a tape records one node per operation.
//!
//! Examples (`cargo run --release --example NAME`): `fermions_2d`.
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::structured};")]
#![cfg_attr(burn_line = "0.21", doc = "type Tensor<const D: usize> =")]
#![cfg_attr(
    burn_line = "0.21",
    doc = "    burn::tensor::Tensor<burn::backend::Autodiff<BurnT4a>, D>;"
)]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::structured;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn::tensor::{Device, Tensor};")]
//! use structured::{Direction, GradedTensor, Leg, Spec, Structured, U1};
//!
//! // A map on two spins that keeps the magnetisation: 1 + 4 + 1 entries of 16.
//! let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
//! let legs = [spin.clone(), spin.clone(), spin.dual(), spin.dual()];
//! let spec = Spec::new(legs.to_vec(), U1(0), 2)?;
//! assert_eq!(spec.len(), 6);
//!
#![cfg_attr(burn_line = "0.21", doc = "let device = T4aDevice;")]
#![cfg_attr(burn_line = "0.22", doc = "let device = Device::flex().autodiff();")]
//! let data = Tensor::<1>::from_floats([1.0, -1.0, 2.0, 2.0, -1.0, 1.0], &device);
//! let h = GradedTensor::from_flat(&spec, data)?.require_grad();
//! let square = h.contract(&h, &[2, 3], &[0, 1])?;
//! let trace: Tensor<1> = square.trace(&[(0, 2), (1, 3)])?.flat();
//! // tr h² has the gradient 2 hᵀ, on the same structure.
//! let gradient = h.grad(&trace.backward()).unwrap();
//! gradient.flat().into_data().assert_eq(&[2.0f32, -2.0, 4.0, 4.0, -2.0, 2.0].into(), true);
//! # Ok::<(), structured::StructuredError>(())
//! ```
//!
#![cfg_attr(
    all(not(feature = "module"), burn_line = "0.21"),
    doc = "[`Weights`]: https://docs.rs/burn-t4a/latest/burn_t4a/ext/structured/struct.Weights.html"
)]
#![cfg_attr(
    all(not(feature = "module"), burn_line = "0.22"),
    doc = "[`Weights`]: https://docs.rs/burn-t4a-022-ext/latest/burn_t4a_022_ext/structured/struct.Weights.html"
)]

mod parts;
mod tensor;
#[cfg(feature = "module")]
mod weights;

pub use t4a_diff::Dual;
pub use t4a_einsum::FloatSemiring;
pub use t4a_linalg::svd::Truncation;
pub use t4a_structured::{
    Bond, BondTruncation, Classes, DiagEigh, DiagSvd, Direction, Eig, Eigh, FermionNumber,
    FermionParity, FluxOn, Forbidden, Layout, Leg, Lq, Named, Pattern, Polar, Product, Qr, Result,
    Sector, Spec, Stacked, StructuredError, Svd, Trivial, Truncated, U1, Z2, Zn, clear_plans,
    diag_einsum, einsum,
};
pub use tensor::{BlockSparseTensor, BurnBond, DiagTensor, DualTensor, GradedTensor, Structured};
#[cfg(feature = "module")]
pub use weights::Weights;
