//! Function transformations for Burn 0.21: derivatives of any order, functions of one example on a batch,
//! functions compiled or run on a mesh of devices. A transformation is a backend around a backend, as Burn's
//! `Autodiff<B>` is, so unmodified modules run on it, and transformations compose by nesting:
//! `Autodiff<Vmap<B>>` has a gradient per example, `Autodiff<Jvp<B>>` second derivatives. Each is a crate of its
//! own; this one has them all, and what is composed of them: gradients, Hessians, Jacobians, modules lifted and
//! stacked.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::{derivatives::grad, vmap::{Vmap, vmap}};
//!
//! type V = Vmap<BurnT4a>;
//! let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
//! // The gradient of Σ x³, for every row.
//! let slope = |x: Tensor<V, 1>| grad(|x: Tensor<_, 1>| x.powi_scalar(3).sum(), x).unwrap();
//! let slopes: Tensor<BurnT4a, 2> = vmap(slope).call(x)?;
//! slopes.into_data().assert_eq(&[[3.0f32, 12.0], [27.0, 48.0]].into(), false);
//! # Ok::<(), burn_t4a_transforms::vmap::VmapError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a gradient, with its value, with auxiliary results | [`derivatives::grad`], [`derivatives::value_and_grad`], [`derivatives::value_and_grad_with`] |
//! | along a tangent, along a cotangent | [`jvp::jvp`], [`jvp::linearize`], [`derivatives::vjp`] |
//! | the Hessian times a vector, all of it, Jacobians | [`derivatives::hvp`], [`derivatives::hessian`], [`derivatives::jacfwd`], [`derivatives::jacrev`], [`derivatives::Jacobian`] of trees |
//! | a minimum | [`minimise::lbfgs`], [`minimise::newton_cg`] |
//! | a function of one example, on a batch | [`vmap::vmap`] |
//! | a function recorded once per shape, optimised, run again | [`compile::compile`] |
//! | a function of whole tensors on a mesh of devices | [`shard::shard_map`] |
//! | a module there; an ensemble of modules and one of its members | [`module::lift`], [`module::stack`], [`module::member`] |

pub mod derivatives;
pub mod minimise;
pub mod module;

pub use burn_t4a_compile as compile;
pub use burn_t4a_jvp as jvp;
pub use burn_t4a_shard as shard;
pub use burn_t4a_vmap as vmap;
