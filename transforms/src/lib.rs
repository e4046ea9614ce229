//! Function transformations: derivatives of any order, vectorisation, compilation.
//!
//! ```text
//! jvp           Jvp<B>: forward-mode derivatives
//! vmap          Vmap<B>: a function of one example, for a batch
//! compile       Traced<B>: programs recorded, optimised, run again
//! derivatives   gradients, pullbacks, Hessians, Jacobians
//! module        modules on the backend of a transformation, and ensembles
//! ```
//!
//! A transformation is a backend around a backend, as Burn's `Autodiff<B>` is: unmodified modules run on
//! it, and transformations compose by nesting.

pub mod derivatives;
pub mod module;

pub use burn_t4a_compile as compile;
pub use burn_t4a_jvp as jvp;
pub use burn_t4a_vmap as vmap;
