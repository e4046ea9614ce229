//! Derivatives of functions on trees: gradients, pullbacks, Hessians, Jacobians.
//!
//! ```text
//! grad, value_and_grad, value_and_grad_with   gradient of a scalar function, by a tape
//! vjp                                         vector-Jacobian product with a cotangent
//! hvp                                         Hessian-vector product: a tape on tensors with tangents
//! jacfwd, jacrev, hessian                     full matrices by a loop over unit tensors: of a tensor, or of trees
//! batched::{jacfwd, jacrev, hessian}          the same by one evaluation for all unit tensors, under `vmap`
//! ```
//!
//! A function receives its tree on the backend of the derivative, `Autodiff<B>` or [`Jvp<B>`](Jvp). The backend type is
//! the nesting level of the derivative, so nested derivatives cannot be confused; nesting two of the same level is an
//! error ([`DerivativeError::Nested`]). A tensor of the outer level is converted to a constant by `Tensor::from_inner`
//! or [`constant`](burn_t4a_jvp::constant):
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::derivatives::grad;
//!
//! let x = Tensor::<BurnT4a, 1>::from_floats([3.0], &T4aDevice);
//! // d/dx (x · d/dy (x + y)) = 1
//! let slope = grad(
//!     |x| {
//!         let inner = grad(|y| Tensor::from_inner(x.clone()) + y, x.clone());
//!         x * inner.unwrap()
//!     },
//!     x,
//! )?;
//! slope.into_data().assert_eq(&[1.0f32].into(), true);
//! # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
//! ```
//!
//! `detach` on `Autodiff<B>` ends the tape of this level only, as in Burn: in a second derivative the tensor is a constant
//! for one of the two levels. `Tensor::from_inner(x.inner().detach())` is a constant for both, as `jax.lax.stop_gradient`.

pub mod batched;
mod jacobian;

use std::marker::PhantomData;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, DType, Shape, TensorMetadata};
use burn_t4a::ext::level::LevelGuard;
use burn_t4a::ext::tape::is_tracked;
use burn_t4a::ext::tree::{
    Leaf, Structure, Tree, TreeError, build, build_floats, flatten, flatten_floats,
};
use burn_t4a_jvp::{Jvp, JvpError, LeafMismatch, dual, unzip};
use burn_t4a_vmap::VmapError;
use burn_tensor::{Tensor, TensorPrimitive};
use t4a_algebra::message::{differing, first, short};
use thiserror::Error;

pub use jacobian::{Jacobian, hessian, hessian_tree, jacfwd, jacfwd_tree, jacrev, jacrev_tree};

/// Result of a derivative.
pub type Result<T, E = DerivativeError> = std::result::Result<T, E>;

/// Error of a derivative: the requirement and the given arguments.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DerivativeError {
    /// Primals and tangents do not match.
    #[error(transparent)]
    Jvp(#[from] JvpError),
    /// A matrix of derivatives for all unit vectors at once failed under `vmap`.
    #[error(transparent)]
    Vmap(#[from] VmapError),
    /// A tree with integers or booleans where only floats are accepted, or of another type than required.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A reverse pass was taken inside another one of the same type.
    #[error(
        "a reverse pass inside of another one on the same backend, whose tensors could not be told apart: take \
         it on the outer one's backend, Autodiff<Autodiff<B>>, or before it"
    )]
    Nested,
    /// The loss does not have exactly one element.
    #[error(
        "grad: a loss of one element is required, its shape is {shape:?}",
        shape = short(.shape)
    )]
    Loss {
        /// Shape of the loss.
        shape: Shape,
    },
    /// The tree structures of cotangents and results differ.
    #[error(
        "vjp: cotangents have the structure {cotangents}, results have {results}",
        cotangents = differing(.cotangents, .results), results = differing(.results, .cotangents)
    )]
    Structure {
        /// Structure of the results.
        results: String,
        /// Structure of the cotangents.
        cotangents: String,
    },
    /// Shapes or dtypes of cotangents and results differ; lists every such leaf, with the result as its primal.
    #[error(
        "vjp: cotangents do not fit the results: {}",
        first(.leaves, "; ", |leaf| leaf.text("cotangent"))
    )]
    Cotangents {
        /// The mismatched leaves.
        leaves: Vec<LeafMismatch>,
    },
    /// The leaves of a matrix of derivatives have several dtypes.
    #[error(
        "{function}: arguments of one dtype and results of one dtype are required, given {dtypes:?}",
        dtypes = short(.dtypes)
    )]
    DTypes {
        /// Name of the function.
        function: &'static str,
        /// Dtypes of the leaves.
        dtypes: Vec<DType>,
    },
    /// A block of a matrix of derivatives was requested for a leaf that does not exist.
    #[error(
        "there is no leaf {path}; the leaves are {leaves:?}",
        path = short(.path), leaves = short(.leaves)
    )]
    NoLeaf {
        /// Requested path.
        path: String,
        /// Paths of all leaves.
        leaves: Vec<String>,
    },
    /// A matrix of derivatives was requested with a wrong rank.
    #[error("{function}: the result has rank {required}, asked for with rank {given}")]
    Rank {
        /// Name of the function.
        function: &'static str,
        /// Sum of the ranks of result and argument.
        required: usize,
        /// Requested rank.
        given: usize,
    },
}

/// Arguments of a call on the tape. Integer and boolean leaves are not tracked.
struct TapeArguments<B: Backend> {
    structure: Structure,
    leaves: Vec<Leaf<Autodiff<B>>>,
}

impl<B: Backend> TapeArguments<B> {
    /// Wraps a tree for the tape, with tracked float leaves.
    fn enter<P: Tree<B>>(tree: P) -> Result<(P::On<Autodiff<B>>, Self)> {
        let (structure, leaves) = flatten(tree);
        let track = |x| Autodiff::<B>::float_set_require_grad(Autodiff::<B>::from_inner(x), true);
        let leaf = |leaf| match leaf {
            Leaf::Float(x) => Leaf::Float(track(x)),
            Leaf::Int(x) => Leaf::Int(x),
            Leaf::Bool(x) => Leaf::Bool(x),
        };
        let leaves: Vec<_> = leaves.into_iter().map(leaf).collect();
        Ok((build(&structure, leaves.clone())?, Self { structure, leaves }))
    }

    /// Cotangents of the arguments from a reverse pass at `root`; zeros for arguments that it does not depend on.
    fn pull<P: Tree<B>>(self, root: Option<FloatTensor<Autodiff<B>>>) -> Result<P> {
        let tracked = root.filter(is_tracked::<B, NoCheckpointing>);
        let gradients = tracked.map(Autodiff::<B>::backward);
        let of = |leaf: &Leaf<Autodiff<B>>| match leaf {
            Leaf::Float(x) => {
                let found = gradients.as_ref().and_then(|all| Autodiff::<B>::grad(x, all));
                Leaf::Float(found.unwrap_or_else(|| {
                    B::float_zeros(x.shape(), &Autodiff::<B>::float_device(x), x.dtype().into())
                }))
            }
            Leaf::Int(x) => Leaf::Int(B::int_zeros(x.shape(), &B::int_device(x), x.dtype().into())),
            Leaf::Bool(x) => {
                Leaf::Bool(B::bool_zeros(x.shape(), &B::bool_device(x), x.dtype().into()))
            }
        };
        Ok(build(&self.structure, self.leaves.iter().map(of).collect())?)
    }
}

/// Unwraps a tree to the inner backend.
fn inner<B: Backend, R: Tree<Autodiff<B>>>(tree: R) -> Result<R::On<B>> {
    let (structure, leaves) = flatten(tree);
    let inner = |leaf: Leaf<Autodiff<B>>| match leaf {
        Leaf::Float(x) => Leaf::Float(Autodiff::<B>::inner(x)),
        Leaf::Int(x) => Leaf::Int(x),
        Leaf::Bool(x) => Leaf::Bool(x),
    };
    Ok(build(&structure, leaves.into_iter().map(inner).collect())?)
}

/// Enters the nesting level of the tape; an error if it is active already.
fn level<B: Backend>() -> Result<LevelGuard> {
    LevelGuard::enter::<Autodiff<B>>().ok_or(DerivativeError::Nested)
}

fn number<B: Backend>(loss: Tensor<Autodiff<B>, 1>) -> Result<FloatTensor<Autodiff<B>>> {
    let loss = loss.into_primitive().tensor();
    match loss.shape().num_elements() {
        1 => Ok(loss),
        _ => Err(DerivativeError::Loss { shape: loss.shape() }),
    }
}

fn tensor<B: Backend, const D: usize>(x: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

/// Gradient of a scalar function with respect to every leaf of the tree `x`. Integer and boolean leaves have no
/// derivative; their gradients are zeros or `false`.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::grad;
///
/// let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
/// let (a, b) = grad(|(a, b)| (a * b).sum(), (of([1.0, 2.0]), of([3.0, 4.0])))?;
/// a.into_data().assert_eq(&[3.0f32, 4.0].into(), true);
/// b.into_data().assert_eq(&[1.0f32, 2.0].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError::Loss`] unless f returns one element.
pub fn grad<B: Backend, P: Tree<B>>(
    f: impl FnOnce(P::On<Autodiff<B>>) -> Tensor<Autodiff<B>, 1>,
    x: P,
) -> Result<P> {
    Ok(value_and_grad(f, x)?.1)
}

/// Value of a scalar function and its gradient, see [`grad`].
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::value_and_grad;
///
/// let x = Tensor::<BurnT4a, 1>::from_floats([1.0, 2.0], &T4aDevice);
/// let (value, gradient) = value_and_grad(|x: Tensor<_, 1>| x.powi_scalar(3).sum(), x)?;
/// assert_eq!(value.into_scalar(), 9.0);
/// gradient.into_data().assert_eq(&[3.0f32, 12.0].into(), false);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// As [`grad`].
pub fn value_and_grad<B: Backend, P: Tree<B>>(
    f: impl FnOnce(P::On<Autodiff<B>>) -> Tensor<Autodiff<B>, 1>,
    x: P,
) -> Result<(Tensor<B, 1>, P)> {
    let (value, (), gradient) = value_and_grad_with(|x| (f(x), ()), x)?;
    Ok((value, gradient))
}

/// Value of a scalar function, auxiliary results (which are not differentiated), and the gradient, see [`grad`].
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::value_and_grad_with;
///
/// let x = Tensor::<BurnT4a, 1>::from_floats([1.0, 2.0], &T4aDevice);
/// let f = |x: Tensor<_, 1>| (x.clone().powi_scalar(3).sum(), x.max());
/// let (value, largest, gradient) = value_and_grad_with(f, x)?;
/// assert_eq!((value.into_scalar(), largest.into_scalar()), (9.0, 2.0));
/// gradient.into_data().assert_eq(&[3.0f32, 12.0].into(), false);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// As [`grad`].
pub fn value_and_grad_with<B: Backend, P: Tree<B>, A: Tree<Autodiff<B>>>(
    f: impl FnOnce(P::On<Autodiff<B>>) -> (Tensor<Autodiff<B>, 1>, A),
    x: P,
) -> Result<(Tensor<B, 1>, A::On<B>, P)> {
    let (x, arguments) = TapeArguments::enter(x)?;
    let _level = level::<B>()?;
    let (loss, more) = f(x);
    let loss = number(loss)?;
    let value = tensor(Autodiff::<B>::inner(loss.clone()));
    Ok((value, inner(more)?, arguments.pull(Some(loss))?))
}

/// Linear map from cotangents of results to cotangents of arguments. It can be evaluated once, since a reverse pass
/// consumes Burn's tape.
pub struct Pullback<B: Backend, P, S> {
    arguments: TapeArguments<B>,
    structure: Structure,
    results: Vec<FloatTensor<Autodiff<B>>>,
    types: PhantomData<fn(S) -> P>,
}

impl<B: Backend, P: Tree<B>, S: Tree<B>> Pullback<B, P, S> {
    /// Evaluates the map: cotangents of the arguments.
    ///
    /// # Errors
    /// [`DerivativeError::Structure`]; [`DerivativeError::Cotangents`] with every mismatched leaf.
    pub fn call(self, cotangents: S) -> Result<P> {
        let (given, cotangents) = flatten_floats(cotangents)?;
        if given != self.structure {
            let [results, cotangents] = [&self.structure, &given].map(ToString::to_string);
            return Err(DerivativeError::Structure { results, cotangents });
        }
        let both = self.results.iter().zip(&cotangents).zip(self.structure.paths());
        let mismatch = |((y, u), path): ((&FloatTensor<Autodiff<B>>, &FloatTensor<B>), String)| {
            LeafMismatch { path, primal: (y.shape(), y.dtype()), tangent: (u.shape(), u.dtype()) }
        };
        let wrong: Vec<_> = both.map(mismatch).filter(|x| x.primal != x.tangent).collect();
        if !wrong.is_empty() {
            return Err(DerivativeError::Cotangents { leaves: wrong });
        }
        // The reverse pass of ⟨y, u⟩ starts with the cotangent u.
        let product = |(y, u)| {
            let u = Autodiff::<B>::from_inner(u);
            Autodiff::<B>::float_sum(Autodiff::<B>::float_mul(y, u))
        };
        let tracked = self.results.into_iter().zip(cotangents);
        let tracked = tracked.filter(|(y, _)| is_tracked::<B, NoCheckpointing>(y));
        let root = tracked.map(product).reduce(Autodiff::<B>::float_add);
        self.arguments.pull(root)
    }
}

/// Result type of a function on `Autodiff<B>`, converted to `B`.
type Below<B, R> = <R as Tree<Autodiff<B>>>::On<B>;

/// `f(x)`, and the linear map from its cotangents to cotangents of x.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::vjp;
///
/// let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
/// let (y, pullback) = vjp(|x| x.clone() * x, of([1.0, 2.0]))?;
/// y.into_data().assert_eq(&[1.0f32, 4.0].into(), true);
/// let x = pullback.call(of([1.0, 10.0]))?;
/// x.into_data().assert_eq(&[2.0f32, 40.0].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError::Jvp`] for inconsistent trees.
#[allow(clippy::type_complexity)]
pub fn vjp<B: Backend, P: Tree<B>, R: Tree<Autodiff<B>>>(
    f: impl FnOnce(P::On<Autodiff<B>>) -> R,
    x: P,
) -> Result<(Below<B, R>, Pullback<B, P, Below<B, R>>)> {
    let (x, arguments) = TapeArguments::enter(x)?;
    let _level = level::<B>()?;
    let y = f(x);
    let (structure, results) = flatten_floats(y)?;
    let values = results.iter().cloned().map(Autodiff::<B>::inner).collect();
    let value = build_floats(&structure, values)?;
    Ok((value, Pullback { arguments, structure, results, types: PhantomData }))
}

/// A tree on a tape on tensors with tangents.
pub type Twice<B, P> = <<P as Tree<B>>::On<Jvp<B>> as Tree<Jvp<B>>>::On<Autodiff<Jvp<B>>>;

/// Gradient of a scalar function and its directional derivative along `v`, the Hessian-vector product, by forward over
/// reverse mode. Cost: about twice that of the gradient.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::hvp;
///
/// let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
/// // Σ x³ has the gradient 3 x² and the Hessian diag(6 x).
/// let (g, hv) = hvp(|x: Tensor<_, 1>| x.powi_scalar(3).sum(), of([1.0, 2.0]), of([1.0, -1.0]))?;
/// g.into_data().assert_eq(&[3.0f32, 12.0].into(), true);
/// hv.into_data().assert_eq(&[6.0f32, -12.0].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError::Loss`]; [`DerivativeError::Jvp`] with every mismatched leaf of v.
pub fn hvp<B: Backend, P: Tree<B>>(
    f: impl FnOnce(Twice<B, P>) -> Tensor<Autodiff<Jvp<B>>, 1>,
    x: P,
    v: P,
) -> Result<(P, P)> {
    let duals = dual(x, v)?;
    let _level = LevelGuard::enter::<Jvp<B>>().ok_or(JvpError::Nested)?;
    Ok(unzip(grad(f, duals)?)?)
}
