//! `while_loop`, `fori_loop`, `cond`, `switch`, `checkpoint`, `fixed_point` and `root`.

use std::ops::Range;

use burn_dispatch::Dispatch;
use burn_tensor::{Bool, Int, Tensor};
use t4a_diff::{Array, Value};
use t4a_scan::body::{self, Flat, Repeated, Steps, Tape, fixed_point_below_tape, iterate_on_tape};

#[cfg(doc)]
use super::ScanError;
use super::control::{Branch, Choice, Looped, composed, counter};
use super::prepared::{Prepared, build, flatten};
use super::saveable::{CheckpointOptions, Saveable};
use super::{FixedPoint, Options, Result, run, scan};
use crate::dispatch;
use crate::line::SavedProducts;
use crate::operation::integers;
use crate::primitive::Floats;
use crate::tree::Tree;

/// The carry after steps `c ← body(consts, c)` while `test(consts, c)` is true, as `jax.lax.while_loop`.
///
/// The test returns one boolean of shape `[1]`, which is read on the host before each step. On a tape the loop is
/// one node: it runs without a tape first to count its steps and then is a [`scan`] of that length, with the memory
/// policy of the options. Test and body must not use tracked tensors that are not in consts, and must be
/// deterministic.
///
/// ```
/// use burn_t4a_022_ext::scan::{Options, while_loop};
/// use burn::tensor::{Device, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex().autodiff();
/// // a, a², a⁴, … until the value exceeds 100.
/// let a = T::from_floats([3.0], &device).require_grad();
/// let last = while_loop(
///     |(), x: T| x.lower_equal_elem(100.0),
///     |(), x: T| x.clone() * x,
///     (),
///     a.clone(),
///     &Options::default(),
/// )?;
/// last.to_data().assert_eq(&[6561.0f32].into(), false);
/// // 8 a⁷
/// a.grad(&last.backward()).unwrap().into_data().assert_eq(&[17496.0f32].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// [`ScanError::Endless`] after more steps than [`Options::limit`]; [`ScanError::NotOne`] if the test has another
/// shape; a carry that changes structure, shape or dtype; [`ScanError::Captured`], [`ScanError::DTypes`].
pub fn while_loop<T, F, K, S>(test: T, body: F, consts: K, init: S, options: &Options) -> Result<S>
where
    T: Fn(K, S) -> Tensor<1, Bool> + Send + Sync + 'static,
    F: Fn(K, S) -> S + Send + Sync + 'static,
    K: Tree,
    S: Tree,
{
    let mut looped = Looped::<Dispatch>::new(test, body, consts, init, options)?;
    let [consts, init] = [&mut looped.consts, &mut looped.init].map(std::mem::take);
    let repeated = looped.repeated.clone();
    let floats = consts.iter().chain(&init).filter_map(Value::as_float).map(|x| &x.0);
    let last = if dispatch::records(floats) {
        iterate_on_tape(repeated, consts, init, options, iterate)?
    } else {
        body::iterate(&repeated, &consts, init, Vec::new())?
    };
    looped.build(last)
}

fn iterate(
    repeated: Repeated<Floats<Dispatch>>,
    [consts, init, given]: [Flat<Floats<Dispatch>>; 3],
) -> Result<Flat<Floats<Dispatch>>> {
    body::iterate(&repeated, &consts, init, given)
}

/// The carry after `c ← body(consts, c, i)` for every i of a range, as `jax.lax.fori_loop`: a [`scan`] over
/// integers.
///
/// ```
/// use burn_t4a_022_ext::scan::{Options, fori_loop};
/// use burn::tensor::{Device, Int, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex();
/// let step = |(), c: T, i: Tensor<1, Int>| c * i.float();
/// let one = T::from_floats([1.0], &device);
/// let factorial = fori_loop(1..6, step, (), one, &Options::default())?;
/// factorial.into_data().assert_eq(&[120.0f32].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// As [`scan`]; [`ScanError::LengthRequired`] if consts and init have no tensor, so that the device is unknown.
pub fn fori_loop<F, K, S>(
    range: Range<i64>,
    body: F,
    consts: K,
    init: S,
    options: &Options,
) -> Result<S>
where
    F: Fn(K, S, Tensor<1, Int>) -> S + Send + Sync + 'static,
    K: Tree,
    S: Tree,
{
    let (k, consts) = flatten::<Dispatch, K>(consts);
    let (s, init) = flatten::<Dispatch, S>(init);
    let xs = counter::<Dispatch>(range, consts.first().or(init.first()))?;
    let xs = Tensor::<1, Int>::from_dispatch(xs);
    let (consts, init) = (build("consts", &k, consts)?, build("init", &s, init)?);
    let step = move |consts: K, carry: S, i: Tensor<1, Int>| (body(consts, carry, i), ());
    let (last, ()) = scan(step, consts, init, xs, options)?;
    Ok(last)
}

/// `then(x)` if the condition is true, otherwise `otherwise(x)`, as `jax.lax.cond`: [`switch`] with two branches.
///
/// ```
/// use burn_t4a_022_ext::scan::cond;
/// use burn::tensor::{Device, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex();
/// let x = T::from_floats([-2.0], &device);
/// let y: T = cond(x.clone().greater_elem(0.0), |x: T| x.sqrt(), |x: T| x * -1.0, x)?;
/// y.into_data().assert_eq(&[2.0f32].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// As [`switch`].
pub fn cond<F, G, K, Y>(condition: Tensor<1, Bool>, then: F, otherwise: G, operands: K) -> Result<Y>
where
    F: Fn(K) -> Y + Send + Sync + 'static,
    G: Fn(K) -> Y + Send + Sync + 'static,
    K: Tree + 'static,
    Y: Tree + 'static,
{
    switch(condition.int(), vec![Box::new(otherwise), Box::new(then)], operands)
}

/// The result of the branch with this index, clamped to the range of branches, as `jax.lax.switch`.
///
/// The index has shape `[1]` and is read on the host. Only the selected branch runs; on a tape that branch is
/// recorded.
///
/// ```
/// use burn_t4a_022_ext::scan::{Branch, switch};
/// use burn::tensor::{Device, Int, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex();
/// let branches: Vec<Branch<T, T>> =
///     vec![Box::new(|x: T| x), Box::new(|x: T| x.exp()), Box::new(|x: T| x.clone() * x)];
/// let index = Tensor::<1, Int>::from_ints([2], &device);
/// let y: T = switch(index, branches, T::from_floats([3.0], &device))?;
/// y.into_data().assert_eq(&[9.0f32].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// [`ScanError::NoBranch`]; [`ScanError::NotOne`] if the index has another shape.
pub fn switch<K, Y>(index: Tensor<1, Int>, branches: Vec<Branch<K, Y>>, operands: K) -> Result<Y>
where
    K: Tree + 'static,
    Y: Tree + 'static,
{
    let mut choice = Choice::<Dispatch>::new(branches, operands)?;
    let operands = std::mem::take(&mut choice.operands);
    let results = body::switch(&integers(index), &choice.branches, &operands)?;
    choice.build(results)
}

/// `f(x)`, of which a tape keeps only x: the reverse pass runs f once more, as `jax.checkpoint` and
/// `torch.utils.checkpoint`.
///
/// The records of f exist only during its own part of the reverse pass; the cost is one more run of f. Functions in
/// sequence, each in a checkpoint, keep their arguments and the records of one of them. For loops, [`scan`] keeps
/// √N carries by the same method. f must not use tracked tensors that are not in x, and must be deterministic: no
/// dropout.
///
/// The policies of `jax.checkpoint` are those of [`checkpoint_with`] and nestings: `checkpoint(g, checkpoint(f, x)?)?` saves the
/// value between f and g, as `save_only_these_names`. Each part runs twice, however it is divided.
///
/// ```
/// use burn_t4a_022_ext::scan::checkpoint;
/// use burn::tensor::{Device, Tensor};
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
/// [`ScanError::Captured`] for a tracked tensor that is not in x; [`ScanError::DTypes`].
pub fn checkpoint<F, K, Y>(f: F, x: K) -> Result<Y>
where
    F: Fn(K) -> Y + Send + Sync + 'static,
    K: Tree,
    Y: Tree,
{
    checkpoint_with(f, x, &CheckpointOptions::default())
}

/// As [`checkpoint`], with the values that a tape keeps besides x: `jax.checkpoint(f, policy=…)`.
///
/// With [`Saveable::Products`] the reverse pass recomputes elementwise functions, reductions and movements, whose results are
/// most of the memory and little of the work, and takes the results of products from the forward pass. A product is recognised
/// by a hash of the elements of its operands, for which they are read once more, in both passes. Results are kept until the
/// reverse pass has ended, without a tape until f has. Of checkpoints in checkpoints the inner one decides on its products.
/// Products of backends other than the engine are computed again, as are contractions of more than two tensors, and products
/// inside of fused operations such as attention.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::scan::{CheckpointOptions, Saveable, checkpoint_with};
///
/// type T = Tensor<2>;
/// let device = Device::flex().autodiff();
/// let x = T::from_floats([[0.5, 1.0], [2.0, 0.1]], &device).require_grad();
/// let options = CheckpointOptions::default().save(Saveable::Products);
/// let y: T = checkpoint_with(|x: T| x.clone().matmul(x).tanh(), x.clone(), &options)?;
/// let gradient = x.grad(&y.sum().backward()).unwrap();
/// assert_eq!(gradient.dims(), [2, 2]);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// As [`checkpoint`]; with [`Saveable::Everything`] none.
pub fn checkpoint_with<F, K, Y>(f: F, x: K, options: &CheckpointOptions) -> Result<Y>
where
    F: Fn(K) -> Y + Send + Sync + 'static,
    K: Tree,
    Y: Tree,
{
    if options.saveable == Saveable::Everything {
        return Ok(f(x));
    }
    let saved = (options.saveable == Saveable::Products).then(|| options.saved());
    let f = move |x: K| match &saved {
        Some(saved) => saved.during(|| f(x)),
        None => SavedProducts::without(|| f(x)),
    };
    let (mut prepared, options) = Prepared::<Dispatch>::once(f, x)?;
    let results = run(&mut prepared, &options)?;
    prepared.build_only(results)
}

/// The solution of `x = f(θ, x)` by iteration from `init`, as `optimistix.fixed_point`: equilibrium layers,
/// implicit steps, self-consistent fields, value iteration.
///
/// On a tape it is one node, whose rule solves `u = x̄ + (∂f/∂x)ᵀ u` by the same iteration: no steps are kept, and
/// the result does not depend on `init`, which has no gradient. Under `jvp` tangents are iterated along with
/// values; under `vmap` all examples are iterated while one of them changes. f must be a contraction near the
/// solution; then both iterations converge, with an error of [`FixedPoint::tolerance`] times 1/(1 − ρ), where ρ is
/// the spectral radius of ∂f/∂x. f must not use tracked tensors that are not in θ. The largest change is read on
/// the host after each step.
///
/// ```
/// use burn_t4a_022_ext::scan::{FixedPoint, fixed_point};
/// use burn::tensor::{Device, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex().autodiff();
/// // x = (x + a/x)/2 is the square root of a, whose derivative is 1/(2 x).
/// let a = T::from_floats([4.0, 9.0], &device).require_grad();
/// let mean = |a: T, x: T| (x.clone() + a / x) * 0.5;
/// let x = fixed_point(mean, a.clone(), T::ones([2], &device), &FixedPoint::default())?;
/// let gradient = a.grad(&x.sum().backward()).unwrap();
/// gradient.into_data().assert_approx_eq::<f32>(&[0.25f32, 1.0 / 6.0].into(), Default::default());
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// [`ScanError::Tree`] for integers and booleans in `init`; [`ScanError::NotConverged`] after [`FixedPoint::steps`]
/// steps or at NaN, also for the cotangents, which have at most 511 steps in Burn 0.21; [`ScanError::Captured`],
/// [`ScanError::DTypes`]; [`ScanError::Carry`] if f changes a shape or dtype.
pub fn fixed_point<F, K, S>(f: F, consts: K, init: S, settings: &FixedPoint) -> Result<S>
where
    F: Fn(K, S) -> S + Send + Sync + 'static,
    K: Tree,
    S: Tree,
{
    let prepared = Prepared::<Dispatch>::step(f, consts, init)?;
    let steps = prepared.steps.clone();
    solution(prepared, steps, settings)
}

/// The solution of `f(θ, x) = 0` by Broyden's method from `init`, as `optimistix.root_find`. f returns as many
/// elements as x has.
///
/// It is the [`fixed_point`] of x − f(θ, x) by Broyden's method, independent of the method in the settings, with 30
/// corrections unless the settings have more. Derivatives use the implicit function theorem, without records of the
/// steps. There is no line search: f should be scaled so that its derivative is near 1, or `init` should be near
/// the root. On return |f(θ, x)| is below the tolerance times one plus the largest |x|.
///
/// ```
/// use burn_t4a_022_ext::scan::{FixedPoint, root};
/// use burn::tensor::{Device, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex().autodiff();
/// // x³ + x = a, whose derivative is 1/(3 x² + 1).
/// let a = T::from_floats([2.0, 10.0], &device).require_grad();
/// let f = |a: T, x: T| x.clone().powi_scalar(3) + x - a;
/// let x = root(f, a.clone(), T::ones([2], &device), &FixedPoint::default())?;
/// let gradient = a.grad(&x.sum().backward()).unwrap();
/// gradient.into_data().assert_approx_eq::<f32>(&[0.25f32, 1.0 / 13.0].into(), Default::default());
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// As [`fixed_point`].
pub fn root<F, K, S>(f: F, consts: K, init: S, settings: &FixedPoint) -> Result<S>
where
    F: Fn(K, S) -> S + Send + Sync + 'static,
    K: Tree,
    S: Tree,
{
    let prepared = Prepared::<Dispatch>::step(f, consts, init)?;
    let steps = prepared.steps.with_residual();
    solution(prepared, steps, &settings.for_root())
}

/// The fixed point of these steps as a tree.
fn solution<S: Tree>(
    mut prepared: Prepared<Dispatch>,
    steps: Steps<Floats<Dispatch>>,
    settings: &FixedPoint,
) -> Result<S> {
    let [consts, init] = [&mut prepared.consts, &mut prepared.init].map(std::mem::take);
    let x = solve(steps, consts, init, settings)?;
    Ok(prepared.build::<S, ()>([x, Vec::new()])?.0)
}

fn solve(
    steps: Steps<Floats<Dispatch>>,
    consts: Flat<Floats<Dispatch>>,
    init: Flat<Floats<Dispatch>>,
    settings: &FixedPoint,
) -> Result<Flat<Floats<Dispatch>>> {
    if consts.iter().filter_map(Value::as_float).any(Tape::is_tracked) {
        fixed_point_below_tape(steps, consts, init, *settings, solve)
    } else {
        let constant = |x: Value<Floats<Dispatch>>| x.map(|x| x.detach(), |x| x, |x| x);
        body::fixed_point(&steps, &consts, init.into_iter().map(constant).collect(), settings)
    }
}

/// `y_t = x_0 ∘ x_1 ∘ … ∘ x_t` along an axis, for an associative `combine(a, b) = a ∘ b` of trees that works elementwise along
/// that axis. `jax.lax.associative_scan`.
///
/// With `reverse`, `y_t = x_{n−1} ∘ … ∘ x_t`. All tensors have the axis, of one size, and `combine` gets any number of
/// elements at once, which it composes one by one; where their order matters, `a` comes before `b`. Derivatives are those of the
/// calls, which a tape records. Compositions with kernels of their own are in [`fused`](super::fused).
///
/// Cost: about 2 log₂ n calls of `combine`, on at most 2 n elements in all.
///
/// ```
/// use burn_t4a_022_ext::scan::associative_scan_with;
/// use burn::tensor::{Device, Tensor};
///
/// type T = Tensor<1>;
/// let device = Device::flex();
/// // Maps z ↦ a z + b, the earlier one first.
/// let compose = |(a, b): (T, T), (c, d): (T, T)| (a * c.clone(), c * b + d);
/// let of = |x: [f32; 3]| T::from_floats(x, &device);
/// let (a, b) = associative_scan_with(compose, (of([2.0, 3.0, 5.0]), of([1.0, 4.0, 2.0])), 0, false)?;
/// a.into_data().assert_eq(&[2.0f32, 6.0, 30.0].into(), false);
/// b.into_data().assert_eq(&[1.0f32, 7.0, 37.0].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
///
/// # Errors
/// [`ScanError::LengthMismatch`] for tensors of different sizes; an axis that a tensor does not have; a composition of another
/// structure, shape or dtype than its operands.
pub fn associative_scan_with<F, X>(combine: F, xs: X, axis: usize, reverse: bool) -> Result<X>
where
    F: FnMut(X, X) -> X,
    X: Tree,
{
    composed(combine, xs, axis, reverse)
}
