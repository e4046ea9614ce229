//! Functions with user-defined derivative rules, written in Burn's tensors: `jax.custom_vjp` and `jax.custom_jvp`.
//!
//! ```text
//! CustomVjp   forward: x → y, residuals     backward: residuals, ȳ → x̄       for reverse mode
//! CustomJvp   jvp: x, ẋ → y, ẏ                                               for both modes
//! ```
//!
//! A rule is a type whose methods are generic over the backend, so that it holds at every level: on `Autodiff<B>` the
//! methods run on `B`; under `vmap` they run on a batch; a compiled function contains what they do. Second derivatives are
//! derivatives of the rules. Arguments, results and residuals are [trees](crate::ext::tree::Tree).
//!
//! Each mode is derived from the other one where a rule has only one. The tangent of a [`CustomVjp`] is the transpose of
//! `backward`, which is linear in ȳ: one more reverse pass. The cotangent of a [`CustomJvp`] is the transpose of `jvp`,
//! which is linear in ẋ: Burn's tape records its operations on ẋ.
//!
//! ```
//! use burn::backend::Autodiff;
//! use burn::tensor::Tensor;
//! use burn_t4a::ext::custom::{CustomBackend, CustomVjp, custom_vjp};
//! use burn_t4a::{BurnT4a, T4aDevice};
//!
//! /// The identity, with a gradient that is clipped to [−1, 1].
//! #[derive(Clone)]
//! struct ClipGradient;
//!
//! impl CustomVjp for ClipGradient {
//!     type Arguments<B: CustomBackend> = Tensor<B, 1>;
//!     type Results<B: CustomBackend> = Tensor<B, 1>;
//!     type Residuals<B: CustomBackend> = ();
//!
//!     fn forward<B: CustomBackend>(&self, x: Tensor<B, 1>) -> (Tensor<B, 1>, ()) {
//!         (x, ())
//!     }
//!     fn backward<B: CustomBackend>(&self, (): (), y: Tensor<B, 1>) -> Tensor<B, 1> {
//!         y.clamp(-1.0, 1.0)
//!     }
//! }
//!
//! type A = Autodiff<BurnT4a>;
//! let x = Tensor::<A, 1>::from_floats([0.1, 10.0], &T4aDevice).require_grad();
//! let y: Tensor<A, 1> = custom_vjp(ClipGradient, x.clone())?;
//! let gradient = x.grad(&(y.clone() * y).sum().backward()).unwrap();
//! gradient.into_data().assert_eq(&[0.2f32, 1.0].into(), false);
//! # Ok::<(), burn_t4a::ext::custom::CustomError>(())
//! ```

mod backend;
mod error;
mod list;
mod signature;
mod tape;

use crate::ext::tree::Tree;

pub use backend::{CustomBackend, tangents_by_transposition};
pub use error::{CustomError, Result, TensorMismatch};
pub use list::{JvpRule, OperandList, Paired, Pulled, VjpRule, WithTangents};

/// A function whose derivative in reverse mode is written by hand.
pub trait CustomVjp: Clone + Send + Sync + 'static {
    /// The arguments.
    type Arguments<B: CustomBackend>: Tree<B>;
    /// The results.
    type Results<B: CustomBackend>: Tree<B>;
    /// Values that `backward` needs.
    type Residuals<B: CustomBackend>: Tree<B>;

    /// The results, and values for the reverse pass.
    fn forward<B: CustomBackend>(
        &self,
        x: Self::Arguments<B>,
    ) -> (Self::Results<B>, Self::Residuals<B>);

    /// Cotangents of the arguments, in the shapes of the arguments. Linear in `cotangents`, which are zeros for results that
    /// the loss does not use. Integer and boolean leaves have no derivative:
    /// their values are ignored, in the cotangents and in the result.
    fn backward<B: CustomBackend>(
        &self,
        residuals: Self::Residuals<B>,
        cotangents: Self::Results<B>,
    ) -> Self::Arguments<B>;
}

/// A function whose derivative in forward mode is written by hand.
pub trait CustomJvp: Clone + Send + Sync + 'static {
    /// The arguments.
    type Arguments<B: CustomBackend>: Tree<B>;
    /// The results.
    type Results<B: CustomBackend>: Tree<B>;

    /// The results, and their tangents in the shapes of the results. The latter are linear in `tangents`, which are zeros
    /// for arguments without a tangent. Integer and boolean leaves have no tangent: their values
    /// are ignored.
    fn jvp<B: CustomBackend>(
        &self,
        x: Self::Arguments<B>,
        tangents: Self::Arguments<B>,
    ) -> (Self::Results<B>, Self::Results<B>);
}

/// `f(x)` of a function with a rule for reverse mode.
///
/// Cost: `forward`, and `backward` in a reverse pass. Where derivatives are nested, `forward` runs once for each level.
///
/// # Errors
/// [`CustomError`] if a tree that `forward` returns does not fit its type. A tree of cotangents that does not fit the
/// arguments panics in the reverse pass, with the text of the error.
pub fn custom_vjp<B: CustomBackend, R: CustomVjp>(
    rule: R,
    x: R::Arguments<B>,
) -> Result<R::Results<B>> {
    let (rule, x) = list::TypedRule::new::<B, _>(rule, x);
    let results = B::custom_vjp(rule.clone(), x)?;
    rule.results(results)
}

/// `f(x)` of a function with a rule for forward mode.
///
/// Cost: `jvp` once for each level with a derivative; without one it runs on tangents of zeros.
///
/// # Errors
/// [`CustomError`] if a tree that `jvp` returns does not fit its type or the results.
///
/// ```
/// use burn::backend::Autodiff;
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::custom::{CustomBackend, CustomJvp, custom_jvp};
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// /// `ln(1 + eˣ)`, whose derivative `1/(1 + e⁻ˣ)` does not overflow.
/// #[derive(Clone)]
/// struct Softplus;
///
/// impl CustomJvp for Softplus {
///     type Arguments<B: CustomBackend> = Tensor<B, 1>;
///     type Results<B: CustomBackend> = Tensor<B, 1>;
///
///     fn jvp<B: CustomBackend>(
///         &self,
///         x: Tensor<B, 1>,
///         v: Tensor<B, 1>,
///     ) -> (Tensor<B, 1>, Tensor<B, 1>) {
///         let y = x.clone().clamp_min(0.0) + (x.clone().abs() * -1.0).exp().log1p();
///         (y, v / ((x * -1.0).exp() + 1.0))
///     }
/// }
///
/// type A = Autodiff<BurnT4a>;
/// let x = Tensor::<A, 1>::from_floats([0.0, 100.0], &T4aDevice).require_grad();
/// let y: Tensor<A, 1> = custom_jvp(Softplus, x.clone())?;
/// let slope = x.grad(&y.sum().backward()).unwrap();
/// slope.into_data().assert_eq(&[0.5f32, 1.0].into(), false);
/// # Ok::<(), burn_t4a::ext::custom::CustomError>(())
/// ```
pub fn custom_jvp<B: CustomBackend, R: CustomJvp>(
    rule: R,
    x: R::Arguments<B>,
) -> Result<R::Results<B>> {
    let (rule, x) = list::TypedRule::new::<B, _>(rule, x);
    let results = B::custom_jvp(rule.clone(), x)?;
    rule.results(results)
}
