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
mod list;
mod tape;

use burn_backend::{DType, Shape};
use t4a_algebra::message::{cut, differing, first, short};
use thiserror::Error;

use crate::ext::tree::{Tree, TreeError};

pub use backend::{CustomBackend, tangents_by_transposition};
pub use list::{JvpRule, OperandList, Paired, Pulled, VjpRule, WithTangents};

/// Result of a function with a user-defined rule.
pub type Result<T, E = CustomError> = std::result::Result<T, E>;

/// Error of a rule: the required tree and the one that a method of the rule has returned.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CustomError {
    /// A tree of another structure, kind or rank than required.
    #[error("{rule}: {what}: {error}", rule = short(.rule), error = cut(.error, 300))]
    Tree {
        /// Type of the rule.
        rule: &'static str,
        /// Role of the tree.
        what: &'static str,
        /// The mismatch.
        error: TreeError,
    },
    /// Two trees that should be alike have different structures.
    #[error(
        "{rule}: {what} have the structure {given}, required is {required}",
        rule = short(.rule), given = differing(.given, .required), required = differing(.required, .given)
    )]
    Structure {
        /// Type of the rule.
        rule: &'static str,
        /// Role of the tree.
        what: &'static str,
        /// Structure of the tree.
        given: String,
        /// Structure of its counterpart.
        required: String,
    },
    /// Tensors of another shape or dtype than their counterparts.
    #[error("{rule}: {what} do not fit: {}", list(.tensors), rule = cut(.rule, 64))]
    Tensors {
        /// Type of the rule.
        rule: &'static str,
        /// Role of the tree.
        what: &'static str,
        /// Every tensor that differs.
        tensors: Vec<TensorMismatch>,
    },
    /// The tangent of a [`CustomVjp`] was requested inside a reverse pass of Burn 0.21, where no other reverse pass can run.
    #[error(
        "{rule}: the tangent of a function with a rule for cotangents needs a reverse pass, and one is active on this \
         thread: give the function a CustomJvp rule",
        rule = short(.rule)
    )]
    InsidePass {
        /// Type of the rule.
        rule: &'static str,
    },
}

/// A tensor that a rule has returned with a wrong shape or dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMismatch {
    /// Path of the tensor in its tree.
    pub path: String,
    /// Its shape and dtype.
    pub given: (Shape, DType),
    /// The required shape and dtype.
    pub required: (Shape, DType),
}

fn list(tensors: &[TensorMismatch]) -> String {
    first(tensors, ", ", |TensorMismatch { path, given, required }| {
        let [given, required] =
            [given, required].map(|(shape, dtype)| format!("{}{:?}", dtype.name(), shape.to_vec()));
        format!("{path} is {given} instead of {required}")
    })
}

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
