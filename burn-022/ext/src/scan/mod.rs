//! Scans: a loop body with a carry, run step by step, and recurrences as fused operations.
//!
//! ```text
//! scan      any body; one node on a tape, with bounded memory
//! loops     while_loop, fori_loop, cond, switch, checkpoint, fixed_point, root
//! fused     cumulative operations, recurrences, associative scans, layers, the Kalman filter: one kernel each
//! ```
//!
//! Consts, carries, xs and ys are [trees](Tree) of tensors of any kind; float leaves have derivatives. On a tape
//! spans of steps run again in the reverse pass, each with its own `backward`.
//!
//! ```
//! use burn_t4a_022_ext::scan::{Options, scan};
//! use burn::tensor::{Device, Tensor};
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

mod control;
pub mod fused;
mod loops;
mod prepared;
mod saveable;
mod tape;

use burn_dispatch::Dispatch;
use prepared::Prepared;
use t4a_diff::Value;
use t4a_scan::body::{Flat, scan_on_tape};

use crate::dispatch;
use crate::primitive::Floats;
use crate::tree::Tree;

pub use control::Branch;
pub use loops::{
    associative_scan_with, checkpoint, checkpoint_with, cond, fixed_point, fori_loop, root, switch,
    while_loop,
};
pub use saveable::{CheckpointOptions, Saveable};
pub use t4a_scan::body::{FixedPoint, Memory, Method, Options, ScanReport};
pub use t4a_scan::schedule::Policy;
pub use t4a_scan::{CarryLeaf, Result, ScanError, ScanPath};

/// Runs `(carry, y_t) = body(consts, carry, x_t)` for every element of the leading axis of xs; returns the final
/// carry, and all ys stacked along a leading axis, as `jax.lax.scan`.
///
/// Without xs, pass `xs = ()` and a length; without ys, return `y = ()`. An element of a tensor of rank 1 has shape
/// `[1]`. With zero steps the carry is `init`, and the body runs once on zeros to find the shapes of ys. The body
/// may return tensors unchanged, xs may be any view, and scans may be nested.
///
/// On a tape the whole scan is one node, unless [`Memory::StoreAll`] is chosen or it has at most 4 steps. Gradients
/// of consts, init and xs are summed in the same order under every policy. The body must not use tracked tensors
/// that are not its arguments, and must be deterministic; it may compute gradients itself. On backends that are not
/// listed in [the crate's documentation](crate) every step is recorded, as with `StoreAll`.
///
/// # Errors
/// Different lengths, a carry that changes structure, shape or dtype (all such leaves are listed), and the other
/// cases of [`ScanError`].
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

fn run(
    prepared: &mut Prepared<Dispatch>,
    options: &Options,
) -> Result<[Flat<Floats<Dispatch>>; 2]> {
    options.take_path(ScanReport::step_by_step(prepared.steps.length()))?;
    let [consts, init, xs] =
        [&mut prepared.consts, &mut prepared.init, &mut prepared.xs].map(std::mem::take);
    let steps = prepared.steps.clone();
    let all = consts.iter().chain(&init).chain(&xs).filter_map(Value::as_float).map(|x| &x.0);
    if dispatch::records(all) {
        scan_on_tape(steps, consts, init, xs, options)
    } else {
        steps.run(&consts, init, &xs)
    }
}
