//! `jvp` and `linearize` on trees.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, TensorMetadata};
use burn_t4a::ext::level::LevelGuard;
use burn_t4a::ext::tree::{Leaf, Structure, Tree, build, build_floats, flatten, flatten_floats};

use crate::backend::Jvp;
use crate::error::{JvpError, LeafMismatch, Mismatches, Result};
use crate::primitive::{JvpTensor, zeros_like};

/// `f(x)` and its derivative along `tangents`.
///
/// Arguments and results are trees of float tensors; a tangent has the structure, shapes and dtypes of its primal.
/// Captured tensors are constants: tensors of `B` are converted by [`constant`]. Every nesting level has a type of its
/// own, which keeps nested derivatives apart; nesting two of the same type is an error.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::jvp::jvp;
///
/// let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
/// let (x, v) = ((of([2.0, 3.0]), of([0.0, 0.0])), (of([1.0, 0.0]), of([0.0, 1.0])));
/// let (y, dy) = jvp(|(a, b)| a * b.exp(), x, v)?;
/// y.into_data().assert_eq(&[2.0f32, 3.0].into(), false);
/// dy.into_data().assert_eq(&[1.0f32, 3.0].into(), false);
/// # Ok::<(), burn_t4a_transforms::jvp::JvpError>(())
/// ```
///
/// Cost: about one additional evaluation of the operations whose operands have tangents.
///
/// # Errors
/// [`JvpError::Structure`], [`JvpError::Leaves`] with every mismatched leaf, and [`JvpError::Nested`], before f runs.
pub fn jvp<B, P, R>(
    f: impl FnOnce(P::On<Jvp<B>>) -> R,
    primals: P,
    tangents: P,
) -> Result<(OnInner<B, R>, OnInner<B, R>)>
where
    B: Backend,
    P: Tree<B>,
    R: Tree<Jvp<B>>,
{
    let duals = dual(primals, tangents)?;
    let _level = LevelGuard::enter::<Jvp<B>>().ok_or(JvpError::Nested)?;
    unzip(f(duals))
}

/// Result type of a function on `Jvp<B>`, converted to `B`.
type OnInner<B, R> = <R as Tree<Jvp<B>>>::On<B>;

/// `f(x)`, and the linear map from tangents of x to tangents of f(x).
///
/// The map keeps the primals and evaluates f again in every call, since an eager backend records no program.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::jvp::linearize;
///
/// let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
/// let (y, push) = linearize(|x| x.clone() * x, of([2.0, 3.0]))?;
/// y.into_data().assert_eq(&[4.0f32, 9.0].into(), false);
/// push(of([1.0, 0.0]))?.into_data().assert_eq(&[4.0f32, 0.0].into(), false);
/// push(of([0.0, 1.0]))?.into_data().assert_eq(&[0.0f32, 6.0].into(), false);
/// # Ok::<(), burn_t4a_transforms::jvp::JvpError>(())
/// ```
///
/// # Errors
/// [`JvpError::Nested`]; the map returns the errors of [`jvp`].
#[allow(clippy::type_complexity)]
pub fn linearize<B, P, R>(
    f: impl Fn(P::On<Jvp<B>>) -> R,
    primals: P,
) -> Result<(OnInner<B, R>, impl Fn(P) -> Result<OnInner<B, R>>)>
where
    B: Backend,
    P: Tree<B>,
    R: Tree<Jvp<B>>,
{
    let (structure, primals) = flatten_floats(primals)?;
    let still = primals.iter().cloned().map(JvpTensor::constant).collect();
    let level = LevelGuard::enter::<Jvp<B>>().ok_or(JvpError::Nested)?;
    let (value, _) = unzip::<B, R, OnInner<B, R>>(f(build_floats(&structure, still)?))?;
    drop(level);
    let map = move |tangents: P| {
        let (of_tangents, tangents) = flatten_floats(tangents)?;
        let duals = duals::<B>(&structure, primals.clone(), &of_tangents, tangents)?;
        let _level = LevelGuard::enter::<Jvp<B>>().ok_or(JvpError::Nested)?;
        Ok(unzip::<B, R, OnInner<B, R>>(f(build_floats(&structure, duals)?))?.1)
    };
    Ok((value, map))
}

/// A tree with tangents: the argument that [`jvp`] passes to its function.
///
/// # Errors
/// As [`jvp`].
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::jvp::{constant, dual, unzip};
///
/// // The derivative of a x along the tangent of x, where a is a constant.
/// let x = dual(Tensor::<BurnT4a, 1>::from_floats([2.0], &T4aDevice), Tensor::<BurnT4a, 1>::from_floats([10.0], &T4aDevice))?;
/// let a = constant(Tensor::<BurnT4a, 1>::from_floats([3.0], &T4aDevice))?;
/// let (y, dy): (Tensor<BurnT4a, 1>, _) = unzip(x * a)?;
/// y.into_data().assert_eq(&[6.0f32].into(), false);
/// dy.into_data().assert_eq(&[30.0f32].into(), false);
/// # Ok::<(), burn_t4a_transforms::jvp::JvpError>(())
/// ```
pub fn dual<B: Backend, P: Tree<B>>(primals: P, tangents: P) -> Result<P::On<Jvp<B>>> {
    let (structure, primals) = flatten_floats(primals)?;
    let (of_tangents, tangents) = flatten_floats(tangents)?;
    Ok(build_floats(&structure, duals::<B>(&structure, primals, &of_tangents, tangents)?)?)
}

/// Primals and tangents of a tree, with explicit zeros: the conversion that [`jvp`] applies to the result of its
/// function.
///
/// # Errors
/// [`JvpError::Tree`] for integers and booleans, and if `S` is not the corresponding tree on `B`.
pub fn unzip<B: Backend, R: Tree<Jvp<B>>, S: Tree<B>>(tree: R) -> Result<(S, S)> {
    let (structure, leaves) = flatten_floats(tree)?;
    let parts = leaves.into_iter().map(|x: JvpTensor<B>| {
        let (x, t) = x.into_parts();
        let t = t.unwrap_or_else(|| zeros_like::<B>(&x));
        (x, t)
    });
    let (values, tangents) = parts.unzip();
    Ok((build_floats(&structure, values)?, build_floats(&structure, tangents)?))
}

/// Converts a tree of the inner backend to constants on `Jvp`. Integers and booleans are accepted.
///
/// # Errors
/// [`JvpError::Tree`] for an inconsistent implementation of [`Tree`].
pub fn constant<B: Backend, T: Tree<B>>(tree: T) -> Result<T::On<Jvp<B>>> {
    let (structure, leaves) = flatten(tree);
    let constant = |leaf: Leaf<B>| match leaf {
        Leaf::Float(x) => Leaf::Float(JvpTensor::constant(x)),
        Leaf::Int(x) => Leaf::Int(x),
        Leaf::Bool(x) => Leaf::Bool(x),
    };
    Ok(build(&structure, leaves.into_iter().map(constant).collect())?)
}

fn duals<B: Backend>(
    structure: &Structure,
    primals: Vec<FloatTensor<B>>,
    of_tangents: &Structure,
    tangents: Vec<FloatTensor<B>>,
) -> Result<Vec<JvpTensor<B>>> {
    check::<B>(structure, &primals, of_tangents, &tangents)?;
    Ok(primals.into_iter().zip(tangents).map(|(x, t)| JvpTensor::new(x, t)).collect())
}

fn check<B: Backend>(
    structure: &Structure,
    primals: &[FloatTensor<B>],
    of_tangents: &Structure,
    tangents: &[FloatTensor<B>],
) -> Result<()> {
    if structure != of_tangents {
        let [primals, tangents] = [structure, of_tangents].map(ToString::to_string);
        return Err(JvpError::Structure { primals, tangents });
    }
    let meta = |x: &FloatTensor<B>| (x.shape(), x.dtype());
    let both = primals.iter().zip(tangents).zip(structure.paths());
    let wrong: Vec<LeafMismatch> = both
        .map(|((x, t), path)| LeafMismatch { path, primal: meta(x), tangent: meta(t) })
        .filter(|leaf| leaf.primal != leaf.tangent)
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(JvpError::Leaves(Mismatches(wrong))) }
}
