//! Vectorisation: [`vmap`] maps a function of one example over a batch by running it once on [`Vmap<B>`](Vmap), a Burn
//! backend with a hidden leading batch axis. Inside the function, shapes are those of one example, and every mapped
//! operation is one operation of `B`, so functions and unmodified modules written for one example run on a batch at the
//! speed of batched code. Maps nest: `Vmap<Vmap<B>>` has two hidden axes, and `Autodiff<Vmap<B>>` computes per-example
//! gradients.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::vmap::{Vmap, vmap};
//!
//! type V = Vmap<BurnT4a>;
//! let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
//! let w = Tensor::<BurnT4a, 1>::from_floats([10.0, 1.0], &T4aDevice);
//! // Examples differ in x and share w.
//! let dot = |(x, w): (Tensor<V, 1>, Tensor<V, 1>)| (x * w).sum();
//! let y: Tensor<BurnT4a, 1> = vmap(dot).in_axes((0, None)).call((x, w))?;
//! y.into_data().assert_eq(&[12.0f32, 34.0].into(), false);
//! # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a function mapped over the first axes | [`vmap`] |
//! | other axes, operands shared by all examples | [`Vectorized::in_axes`], [`Vectorized::out_axes`], [`Axes`] |
//! | bounded memory: examples in chunks | [`Vectorized::chunk`] |
//! | random numbers, per example or shared | [`Vectorized::random`], [`Random`] |
//! | sums, means and exchanges between examples | [`collective`] |
//! | structs as arguments and results | `#[derive(Tree)]` of [`burn_t4a::ext::tree`] |
//! | an ensemble of modules | `burn_t4a_transforms::module::stack` |
//!
//! A tensor of `Vmap<B>` is a tensor of `B` whose first axis is the batch, or one without a batch axis that all
//! examples share.

// Batching rules: `rows` for methods with a common pattern, `movement` for all kinds of tensors, `module` for networks,
// `operations` for operations outside of Burn's traits, `custom` for functions with user-defined derivative rules,
// `random` for random numbers.

#![forbid(unsafe_code)]

mod activation;
mod active;
mod axes;
mod backend;
mod bool;
mod call;
pub mod collective;
mod custom;
mod error;
mod float;
mod int;
mod kind;
mod module;
mod movement;
mod operations;
mod quantized;
mod random;
mod rows;
mod tensor;

pub use axes::Axes;
pub use backend::Vmap;
pub use call::{Vectorized, vmap};
pub use error::{Mapped, VmapError};
pub use random::Random;
pub use tensor::VmapTensor;
