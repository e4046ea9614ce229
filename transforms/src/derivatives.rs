//! Derivatives of functions on trees: gradients, pullbacks, Hessians, Jacobians.
//!
//! ```text
//! grad, value_and_grad, value_and_grad_with   of a number, by a tape
//! vjp                                         of anything, along a cotangent
//! hvp                                         of a gradient, along a tangent: a tape over tangents
//! jacfwd, jacrev, hessian                     all of it, in a loop over unit tensors: of a tensor, or of trees as a matrix
//! ```
//!
//! A function takes its tree on the backend of the derivative, `Autodiff<B>` or [`Jvp<B>`](Jvp), whose type
//! is the level of that derivative: nested ones cannot be confused, and two of one level in each other are refused
//! ([`DerivativeError::Nested`]). A tensor of the level below enters by
//! `Tensor::from_inner` or [`constant`](burn_t4a_jvp::constant):
//!
//! ```
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::derivatives::grad;
//! use burn_tensor::Tensor;
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

mod jacobian;

use std::marker::PhantomData;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, DType, Shape, TensorMetadata};
use burn_t4a::ext::level::Level;
use burn_t4a::ext::tape::is_tracked;
use burn_t4a::ext::tree::{
    Leaf, Structure, Tree, TreeError, build, build_floats, flatten, flatten_floats,
};
use burn_t4a_jvp::{Jvp, JvpError, LeafMismatch, dual, unzip};
use burn_tensor::{Tensor, TensorPrimitive};
use thiserror::Error;

pub use jacobian::{Jacobian, hessian, hessian_tree, jacfwd, jacfwd_tree, jacrev, jacrev_tree};

/// Result of a derivative.
pub type Result<T, E = DerivativeError> = std::result::Result<T, E>;

/// A rejected derivative: what was required and what was given.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DerivativeError {
    /// Trees and tangents that do not fit.
    #[error(transparent)]
    Jvp(#[from] JvpError),
    /// A tree with integers or booleans where only floats are accepted, or of another type than required.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A reverse pass inside of another one of the same type.
    #[error(
        "a reverse pass inside of another one on the same backend, whose tensors could not be told apart: take \
         it on the outer one's backend, Autodiff<Autodiff<B>>, or before it"
    )]
    Nested,
    /// A gradient of something else than a number.
    #[error("grad: a loss of one element is required, its shape is {shape:?}")]
    Loss {
        /// Of the loss.
        shape: Shape,
    },
    /// Cotangents that branch in another way than the results.
    #[error("vjp: cotangents have the structure {cotangents}, results have {results}")]
    Structure {
        /// Of the results.
        results: String,
        /// Of the cotangents.
        cotangents: String,
    },
    /// Cotangents of other shapes or dtypes than the results: every such leaf, with the result as its primal.
    #[error("vjp: cotangents do not fit the results: {leaves:?}")]
    Cotangents {
        /// The leaves that do not fit.
        leaves: Vec<LeafMismatch>,
    },
    /// Leaves of several dtypes in one matrix of derivatives.
    #[error(
        "{function}: arguments of one dtype and results of one dtype are required, given {dtypes:?}"
    )]
    DTypes {
        /// The function.
        function: &'static str,
        /// Those given.
        dtypes: Vec<DType>,
    },
    /// A block of a matrix of derivatives that there is not.
    #[error("there is no leaf {path}; the leaves are {leaves:?}")]
    NoLeaf {
        /// The path asked for.
        path: String,
        /// All paths.
        leaves: Vec<String>,
    },
    /// A matrix of derivatives asked for with another rank than it has.
    #[error("{function}: the result has rank {required}, asked for with rank {given}")]
    Rank {
        /// The function.
        function: &'static str,
        /// Ranks of result and argument together.
        required: usize,
        /// The rank asked for.
        given: usize,
    },
}

/// Arguments on the tape of a call. Integers and truth values of them are not tracked.
struct Arguments<B: Backend> {
    structure: Structure,
    leaves: Vec<Leaf<Autodiff<B>>>,
}

impl<B: Backend> Arguments<B> {
    /// The tree on the tape, tracked.
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

    /// The cotangents of the arguments for one of the root, zeros where it does not depend on them.
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

/// A tree below the tape.
fn inner<B: Backend, R: Tree<Autodiff<B>>>(tree: R) -> Result<R::On<B>> {
    let (structure, leaves) = flatten(tree);
    let inner = |leaf: Leaf<Autodiff<B>>| match leaf {
        Leaf::Float(x) => Leaf::Float(Autodiff::<B>::inner(x)),
        Leaf::Int(x) => Leaf::Int(x),
        Leaf::Bool(x) => Leaf::Bool(x),
    };
    Ok(build(&structure, leaves.into_iter().map(inner).collect())?)
}

/// A function on the tape begins.
fn level<B: Backend>() -> Result<Level> {
    Level::enter::<Autodiff<B>>().ok_or(DerivativeError::Nested)
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

/// The gradient of a number in every leaf of `x`, which is a tree of tensors; zeros or `false` for integers and truth values,
/// which have no derivative.
///
/// ```
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::grad;
/// use burn_tensor::Tensor;
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

/// A number and its [`grad`].
///
/// # Errors
/// As there.
pub fn value_and_grad<B: Backend, P: Tree<B>>(
    f: impl FnOnce(P::On<Autodiff<B>>) -> Tensor<Autodiff<B>, 1>,
    x: P,
) -> Result<(Tensor<B, 1>, P)> {
    let (value, (), gradient) = value_and_grad_with(|x| (f(x), ()), x)?;
    Ok((value, gradient))
}

/// A number, whatever else f returns beside it (which gets no gradient), and its [`grad`].
///
/// # Errors
/// As there.
pub fn value_and_grad_with<B: Backend, P: Tree<B>, A: Tree<Autodiff<B>>>(
    f: impl FnOnce(P::On<Autodiff<B>>) -> (Tensor<Autodiff<B>, 1>, A),
    x: P,
) -> Result<(Tensor<B, 1>, A::On<B>, P)> {
    let (x, arguments) = Arguments::enter(x)?;
    let _level = level::<B>()?;
    let (loss, more) = f(x);
    let loss = number(loss)?;
    let value = tensor(Autodiff::<B>::inner(loss.clone()));
    Ok((value, inner(more)?, arguments.pull(Some(loss))?))
}

/// The linear map from cotangents of results to cotangents of arguments. Burn's tapes are consumed by a
/// reverse pass, so it runs once.
pub struct Pullback<B: Backend, P, S> {
    arguments: Arguments<B>,
    structure: Structure,
    results: Vec<FloatTensor<Autodiff<B>>>,
    types: PhantomData<fn(S) -> P>,
}

impl<B: Backend, P: Tree<B>, S: Tree<B>> Pullback<B, P, S> {
    /// The cotangents of the arguments.
    ///
    /// # Errors
    /// [`DerivativeError::Structure`], [`DerivativeError::Cotangents`] with every leaf that does not fit.
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
        // ⟨y, u⟩: its reverse pass begins with u.
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

/// A result of a function on `Autodiff<B>`, on `B`.
type Below<B, R> = <R as Tree<Autodiff<B>>>::On<B>;

/// `f(x)`, and the map that takes its cotangents to those of x.
///
/// ```
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::vjp;
/// use burn_tensor::Tensor;
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
/// [`DerivativeError::Jvp`] for trees that contradict themselves.
#[allow(clippy::type_complexity)]
pub fn vjp<B: Backend, P: Tree<B>, R: Tree<Autodiff<B>>>(
    f: impl FnOnce(P::On<Autodiff<B>>) -> R,
    x: P,
) -> Result<(Below<B, R>, Pullback<B, P, Below<B, R>>)> {
    let (x, arguments) = Arguments::enter(x)?;
    let _level = level::<B>()?;
    let y = f(x);
    let (structure, results) = flatten_floats(y)?;
    let values = results.iter().cloned().map(Autodiff::<B>::inner).collect();
    let value = build_floats(&structure, values)?;
    Ok((value, Pullback { arguments, structure, results, types: PhantomData }))
}

/// A tree on a tape over tangents.
pub type Twice<B, P> = <<P as Tree<B>>::On<Jvp<B>> as Tree<Jvp<B>>>::On<Autodiff<Jvp<B>>>;

/// The gradient of a number and its derivative along `v`, the Hessian times v: a tape whose tensors carry
/// tangents. About twice the cost of the gradient.
///
/// ```
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::hvp;
/// use burn_tensor::Tensor;
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
/// [`DerivativeError::Loss`]; [`DerivativeError::Jvp`] with every leaf of v that does not fit.
pub fn hvp<B: Backend, P: Tree<B>>(
    f: impl FnOnce(Twice<B, P>) -> Tensor<Autodiff<Jvp<B>>, 1>,
    x: P,
    v: P,
) -> Result<(P, P)> {
    let duals = dual(x, v)?;
    let _level = Level::enter::<Jvp<B>>().ok_or(JvpError::Nested)?;
    Ok(unzip(grad(f, duals)?)?)
}
