//! A body of the caller's own, run step by step over arrays of any kind, with a carry. Consts, carries, xs and ys are
//! flat lists of [`Value`](t4a_diff::Value)s: floats, integers and truth values, of which floats have derivatives.
//! Callers with nested arguments keep their [`Structure`](t4a_diff::tree::Structure).
//!
//! ```text
//! options   memory, direction, length, which paths are accepted
//! steps     one step, all of them, elements of xs, stacks of ys
//! tape      a scan as one node of a tape, with bounded memory
//! below     such a node whose passes are scans of a backend that has a way of its own to run them
//! level     a scan with tangents or a hidden batch as a scan without
//! elements  steps that a tape records one by one
//! repeat    loops that end when a test fails, and branches
//! fixed     solutions of x = f(θ, x), by steps of one body
//! associative  running compositions by an associative function
//! broyden   their method where f is no contraction
//! span      the derivative of a span of steps, in the reverse pass of that node
//! ```
//!
//! ```
//! use t4a_diff::tree::Structure;
//! use t4a_diff::{Array, Eager, Value, check};
//! use t4a_scan::body::{Options, Steps};
//!
//! // The sum of xs as the carry, without ys.
//! type Flat = Vec<Value<Eager>>;
//! let add = |_: Flat, carry: Flat, x: Flat| {
//!     Ok((vec![Value::Float(carry[0].float().add(x[0].float()))], vec![]))
//! };
//! let of = |shape: &[usize], f: fn(usize) -> f64| Value::Float(check::array(shape, f));
//! let (leaf, xs) = (Structure::Leaf, [of(&[3], |i| (i + 1) as f64)]);
//! let steps = Steps::new(add, (&xs, &leaf), &leaf, &Options::default())?;
//! let [sum, _] = steps.run(&[], vec![of(&[1], |_| 0.0)], &xs)?;
//! assert_eq!(check::elements(sum[0].float()), [6.0]);
//! # Ok::<(), t4a_scan::ScanError>(())
//! ```

mod associative;
mod below;
mod broyden;
mod elements;
mod fixed;
mod level;
mod options;
mod repeat;
mod span;
mod steps;
mod tape;

pub use associative::associative;
pub use below::{ScanBelow, scan_below_tape};
pub use fixed::{FixedPoint, Method, SolveBelow, fixed_point, fixed_point_below_tape};
pub use level::{Level, iterate_below_level, scan_below_level, switch_below_level};
pub use options::{Memory, Options, ScanReport};
pub use repeat::{
    IterateBelow, Repeated, SwitchBelow, holds, iterate, iterate_below_tape, iterate_on_tape,
    same_results, switch, switch_below_tape, taken,
};
pub use span::{Cotangents, Slot, Span, Told};
pub use steps::{Flat, Stack, Steps, at, same};
pub use tape::{Tape, scan_on_tape};
