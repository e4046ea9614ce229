//! Scans: a body that is run step by step, with a carry, and recurrences as fused operations.
//!
//! ```text
//! scan      any body; on a tape one node, with bounded memory
//! fused     cumulative operations, recurrences, associative scans, layers, the Kalman filter: one kernel each
//! ```
//!
//! Consts, carries, xs and ys are [trees](Tree) of float tensors. On a tape spans of steps run
//! again in the reverse pass, each in a `backward` of its own.
//!
//! ```
//! use burn_t4a_022_ext::scan::{Options, scan};
//! use burn_tensor::{Device, Tensor};
//!
//! let device = Device::flex().autodiff();
//! // c ← a c + x, and y = c.
//! let step = |(a,): (Tensor<1>,), c: Tensor<1>, x: Tensor<1>| {
//!     let c = a * c + x;
//!     (c.clone(), c)
//! };
//! let a = Tensor::<1>::from_floats([0.5], &device).require_grad();
//! let c = Tensor::<1>::from_floats([0.0], &device);
//! let xs = Tensor::<2>::from_floats([[1.0], [1.0], [1.0]], &device);
//! let (last, ys): (Tensor<1>, Tensor<2>) = scan(step, (a.clone(),), c, xs, &Options::default())?;
//! ys.into_data().assert_eq(&[[1.0f32], [1.5], [1.75]].into(), false);
//! // d(1 + a + a²)/da = 1 + 2a
//! a.grad(&last.sum().backward()).unwrap().into_data().assert_eq(&[2.0f32].into(), false);
//! # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
//! ```

pub mod fused;
mod prepared;
mod tape;

use burn_dispatch::Dispatch;
use prepared::Prepared;
use t4a_diff::Array;
use t4a_scan::body::{self, Steps, Tape, fixed_point_below_tape, scan_on_tape};

use crate::dispatch;
use crate::primitive::Floats;
use crate::tree::Tree;

pub use t4a_scan::body::{FixedPoint, Memory, Options, ScanReport};
pub use t4a_scan::schedule::Policy;
pub use t4a_scan::{CarryLeaf, Result, ScanError, ScanPath};

/// `(carry, y_t) = body(consts, carry, x_t)` for every element of the leading axis of xs; the last carry
/// and all ys along a leading axis.
///
/// Without xs, `xs = ()` and a length; without ys, `y = ()`. An element of a tensor of rank 1 has
/// shape `[1]`. With no steps the carry is `init`, and the body runs once on zeros for the shapes of ys.
/// A passed-through tensor, any view as xs, and scans in scans are fine.
///
/// On a tape the whole scan is one node unless [`Memory::StoreAll`] is asked for or it has up to 4 steps: gradients of
/// consts, init and xs, in the same order of sums under every policy. The body must not use tracked tensors that it
/// was not given, and gives the same result each time; it may compute gradients itself. On backends that are not listed in
/// [the crate's documentation](crate) every step is recorded, as with `StoreAll`.
///
/// # Errors
/// Lengths that disagree, a carry that changes structure, shape or dtype (every leaf that does), and what
/// [`ScanError`] lists.
pub fn scan<F, K, S, XS, X, Y, YS>(
    body: F,
    consts: K,
    init: S,
    xs: XS,
    options: &Options,
) -> Result<(S, YS)>
where
    F: Fn(K, S, X) -> (S, Y) + Send + Sync + 'static,
    K: Tree,
    S: Tree,
    XS: Tree,
    X: Tree,
    Y: Tree,
    YS: Tree,
{
    let mut prepared = Prepared::<Dispatch>::new(body, consts, init, xs, options)?;
    let results = run(&mut prepared, options)?;
    prepared.build(results)
}

fn run(prepared: &mut Prepared<Dispatch>, options: &Options) -> Result<[Vec<Floats<Dispatch>>; 2]> {
    options.take_path(ScanReport::step_by_step(prepared.steps.length()))?;
    let [consts, init, xs] =
        [&mut prepared.consts, &mut prepared.init, &mut prepared.xs].map(std::mem::take);
    let steps = prepared.steps.clone();
    let all = consts.iter().chain(&init).chain(&xs).map(|x| &x.0);
    if dispatch::records(all) {
        scan_on_tape(steps, consts, init, xs, options)
    } else {
        steps.run(&consts, init, &xs)
    }
}

/// `f(x)`, of which a tape keeps x only: the reverse pass runs f once more. `jax.checkpoint`, and
/// `torch.utils.checkpoint`.
///
/// Memory of the records of f so lasts as long as its own part of the reverse pass; the cost is one more run of f.
/// Functions of the model in sequence, each in a checkpoint, keep their arguments and the records of one of them.
/// Of a loop, [`scan`] keeps √N carries in the same way. f must not use tracked tensors that are not in x, and
/// gives the same result each time: no dropout inside.
///
/// ```
/// use burn_t4a_022_ext::scan::checkpoint;
/// use burn_tensor::{Device, Tensor};
///
/// let device = Device::flex().autodiff();
/// let x = Tensor::<1>::from_floats([0.5, 1.0], &device).require_grad();
/// let y: Tensor<1> = checkpoint(|x: Tensor<1>| x.clone() * x.sin(), x.clone())?;
/// let want = x.clone().inner().sin() + x.clone().inner() * x.clone().inner().cos();
/// let got = x.grad(&y.sum().backward()).unwrap();
/// got.into_data().assert_approx_eq::<f32>(&want.into_data(), Default::default());
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// [`ScanError::Captured`] for such a tracked tensor; [`ScanError::Tree`] for integers and booleans in x or
/// in the result; [`ScanError::DTypes`].
pub fn checkpoint<F, K, Y>(f: F, x: K) -> Result<Y>
where
    F: Fn(K) -> Y + Send + Sync + 'static,
    K: Tree,
    Y: Tree,
{
    let (mut prepared, options) = Prepared::<Dispatch>::once(f, x)?;
    let results = run(&mut prepared, &options)?;
    prepared.build_only(results)
}

/// The x for which `x = f(θ, x)`, by iteration from `init`: layers in equilibrium, implicit steps, self-consistent fields,
/// value iteration. `optimistix.fixed_point`.
///
/// On a tape it is one node, whose rule solves `u = x̄ + (∂f/∂x)ᵀ u` in the same way: nothing of the iteration is kept, and the
/// result does not depend on `init`, which gets no gradient. Under `jvp` tangents are iterated along, under `vmap` all examples
/// as long as one of them changes. f must be a contraction near the solution; then both converge, and an error of
/// [`FixedPoint::tolerance`] is left times 1/(1 − ρ), for the spectral radius ρ of ∂f/∂x. f must not use tracked tensors
/// that are not in θ. The largest change is read on the host after each step, so a compiled function that contains it runs as it is.
///
/// ```
/// use burn_t4a_022_ext::scan::{FixedPoint, fixed_point};
/// use burn_tensor::{Device, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex().autodiff();
/// // x = (x + a/x)/2 is the root of a, whose derivative is 1/(2 x).
/// let a = T::from_floats([4.0, 9.0], &device).require_grad();
/// let mean = |a: T, x: T| (x.clone() + a / x) * 0.5;
/// let x = fixed_point(mean, a.clone(), T::ones([2], &device), &FixedPoint::default())?;
/// let gradient = a.grad(&x.sum().backward()).unwrap();
/// gradient.into_data().assert_approx_eq::<f32>(&[0.25f32, 1.0 / 6.0].into(), Default::default());
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// [`ScanError::NotConverged`] after [`FixedPoint::steps`] steps or at NaN, also of the cotangents, which have at most
/// 511 steps in Burn 0.21; [`ScanError::Captured`], [`ScanError::DTypes`]; [`ScanError::Carry`] if f changes a shape or dtype.
pub fn fixed_point<F, K, S>(f: F, consts: K, init: S, settings: &FixedPoint) -> Result<S>
where
    F: Fn(K, S) -> S + Send + Sync + 'static,
    K: Tree,
    S: Tree,
{
    let mut prepared = Prepared::<Dispatch>::step(f, consts, init)?;
    let [consts, init] = [&mut prepared.consts, &mut prepared.init].map(std::mem::take);
    let x = solve(prepared.steps.clone(), consts, init, settings)?;
    Ok(prepared.build::<S, ()>([x, Vec::new()])?.0)
}

fn solve(
    steps: Steps<Floats<Dispatch>>,
    consts: Vec<Floats<Dispatch>>,
    init: Vec<Floats<Dispatch>>,
    settings: &FixedPoint,
) -> Result<Vec<Floats<Dispatch>>> {
    if consts.iter().any(Tape::is_tracked) {
        fixed_point_below_tape(steps, consts, init, *settings, solve)
    } else {
        body::fixed_point(&steps, &consts, init.iter().map(Array::detach).collect(), settings)
    }
}
