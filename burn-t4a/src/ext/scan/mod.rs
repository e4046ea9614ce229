//! Scans: a loop body with a carry, run step by step, and recurrences as fused operations.
//!
//! ```text
//! scan      any body; one node on a tape, with bounded memory
//! loops     while_loop, fori_loop, cond, switch, checkpoint, fixed_point, root
//! jvp       tangents of such a scan
//! fused     cumulative operations, recurrences, associative scans, layers, the Kalman filter: one kernel each
//! ```
//!
//! Examples (`cargo run --release --example NAME`): `kalman`, `ssm`, `hmm_em`.
//!
//! Consts, carries, xs and ys are [trees](Tree) of tensors of any kind; float leaves have derivatives.
//!
//! On a tape spans of steps run again in the reverse pass, each on its own thread, so there are at most 512 spans.
//! This bounds the memory of tensors and, with [`Policy::Sqrt`], that of Burn's records of operations; about 0.3
//! KiB per step remain in lists of Burn's nodes until the surrounding pass ends. `Revolve` repeats steps inside of
//! that pass, where Burn keeps about 2 KiB per operation: use it for large carries.
//!
//! ```
//! use burn::backend::Autodiff;
//! use burn::tensor::Tensor;
//! use burn_t4a::ext::scan::{Options, scan};
//! use burn_t4a::{BurnT4a, T4aDevice};
//!
//! type B = Autodiff<BurnT4a>;
//! // c ← a c + x, and y = c.
//! let step = |(a,): (Tensor<B, 1>,), c: Tensor<B, 1>, x: Tensor<B, 1>| {
//!     let c = a * c + x;
//!     (c.clone(), c)
//! };
//! let a = Tensor::<B, 1>::from_floats([0.5], &T4aDevice).require_grad();
//! let c = Tensor::<B, 1>::from_floats([0.0], &T4aDevice);
//! let xs = Tensor::<B, 2>::from_floats([[1.0], [1.0], [1.0]], &T4aDevice);
//! let (last, ys): (Tensor<B, 1>, Tensor<B, 2>) =
//!     scan(step, (a.clone(),), c, xs, &Options::default())?;
//! ys.into_data().assert_eq(&[[1.0f32], [1.5], [1.75]].into(), false);
//! // d(1 + a + a²)/da = 1 + 2a
//! a.grad(&last.sum().backward()).unwrap().into_data().assert_eq(&[2.0f32].into(), false);
//! # Ok::<(), burn_t4a::ext::scan::ScanError>(())
//! ```

mod backend;
mod control;
pub mod fused;
mod jvp;
mod loops;
mod prepared;
pub(crate) mod records;
mod saveable;

use prepared::Prepared;

use crate::ext::primitive::Floats;
use crate::ext::tree::Tree;

pub use backend::{
    ScanBackend, fixed_point_at_level, iterate_at_level, scan_at_level, switch_at_level,
};
pub use control::Branch;
pub use jvp::{Pushed, scan_jvp};
pub use loops::{
    associative_scan_with, checkpoint, checkpoint_with, cond, fixed_point, fori_loop, root, switch,
    while_loop,
};
pub use saveable::{CheckpointOptions, Saveable};
pub use t4a_scan::body::{
    FixedPoint, Flat, Level, Memory, Method, Options, Repeated, ScanReport, Steps,
};
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
/// that are not its arguments, and must be deterministic. Body and nodes run on several threads, but never at the
/// same time.
///
/// A body may compute gradients itself, by `backward` on its thread, for example of a learned learning rate.
/// Reverse passes of Burn 0.21 do not nest; the first steps detect such a body, and all of its steps are then
/// recorded, as with [`Memory::StoreAll`].
///
/// # Errors
/// Different lengths, a carry that changes structure, shape or dtype (all such leaves are listed), and the other
/// cases of [`ScanError`].
pub fn scan<B, F, K, S, XS, X, Y, YS>(
    body: F,
    consts: K,
    init: S,
    xs: XS,
    options: &Options,
) -> Result<(S, YS)>
where
    B: ScanBackend,
    F: Fn(K, S, X) -> (S, Y) + Send + Sync + 'static,
    K: Tree<B>,
    S: Tree<B>,
    XS: Tree<B>,
    X: Tree<B>,
    Y: Tree<B>,
    YS: Tree<B>,
{
    let mut prepared = Prepared::<B>::new(body, consts, init, xs, options)?;
    let results = run(&mut prepared, options)?;
    prepared.build(results)
}

fn run<B: ScanBackend>(
    prepared: &mut Prepared<B>,
    options: &Options,
) -> Result<[Flat<Floats<B>>; 2]> {
    if !B::chooses_path() {
        options.take_path(ScanReport::step_by_step(prepared.steps.length()))?;
    }
    let [consts, init, xs] =
        [&mut prepared.consts, &mut prepared.init, &mut prepared.xs].map(std::mem::take);
    B::scan(prepared.steps.clone(), consts, init, xs, options)
}
