//! Function transformations for Burn 0.21: derivatives of any order, vectorisation, compilation, and sharding over a
//! mesh of devices. A transformation is a backend that wraps another backend, like Burn's `Autodiff<B>`, so unmodified
//! modules run on it, and transformations compose by nesting: `Autodiff<Vmap<B>>` computes per-example gradients,
//! `Autodiff<Jvp<B>>` second derivatives. Each transformation is a separate crate; this one re-exports all of them, and
//! adds gradients, Hessians, Jacobians, minimisation, and the lifting and stacking of modules.
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
//! Examples (`cargo run --release --example NAME`): `per_example_gradients`, `ensemble`, `hessian_spectrum`,
//! `compiled_training`, `compiled_kalman`, `sharded_transformer`.
//!
//! | task | |
//! |---|---|
//! | gradient; with the value; with auxiliary results | [`derivatives::grad`], [`derivatives::value_and_grad`], [`derivatives::value_and_grad_with`] |
//! | derivative along a tangent, along a cotangent | [`jvp::jvp`], [`jvp::linearize`], [`derivatives::vjp`] |
//! | Hessian-vector products, Hessians, Jacobians | [`derivatives::hvp`], [`derivatives::hessian`], [`derivatives::jacfwd`], [`derivatives::jacrev`], [`derivatives::Jacobian`] of trees |
//! | minimisation | [`minimise::lbfgs`], [`minimise::newton_cg`] |
//! | optimisers as functions, for compiled training steps | [`optim::Adam`], [`optim::Sgd`], [`optim::clip_by_global_norm`] |
//! | random numbers as functions of keys | [`random::key`], [`random::split`], [`random::normal`] |
//! | map a function of one example over a batch | [`vmap::vmap`] |
//! | record a function once per shape, optimise and replay it | [`compile::compile`] |
//! | evaluate a function of full tensors on a mesh of devices | [`shard::shard_map`] |
//! | convert a module to such a backend; ensembles of modules and their members | [`module::lift`], [`module::stack`], [`module::member`] |

#![forbid(unsafe_code)]

pub mod derivatives;
pub mod minimise;
pub mod module;
pub mod optim;
pub mod random;

pub use burn_t4a_compile as compile;
pub use burn_t4a_jvp as jvp;
pub use burn_t4a_shard as shard;
pub use burn_t4a_vmap as vmap;
