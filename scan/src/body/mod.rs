//! A body of the caller's own, run step by step over arrays of any kind, with a carry. What callers take and
//! give are trees of arrays; below them steps work on flat lists.
//!
//! ```text
//! options   memory, direction, length, which paths are accepted
//! tree      what carries, xs and ys consist of
//! steps     flat lists: one step, all of them, elements of xs, stacks of ys
//! prepared  a body over trees as steps
//! tape      a scan as one node of a tape, with bounded memory
//! below     such a node whose passes are scans of a backend that has a way of its own to run them
//! elements  steps that a tape records one by one
//! span      the derivative of a span of steps, in the reverse pass of that node
//! ```
//!
//! Faces say what a leaf is in their tensors ([`Tree`]), and what their tape is ([`Tape`]):
//!
//! ```
//! use t4a_diff::{Array, Eager, check};
//! use t4a_scan::body::{Leaves, Options, Prepared, Structure, Tree, leaf};
//!
//! struct Vector(Eager);
//! impl Tree<Eager> for Vector {
//!     fn structure(&self) -> Structure {
//!         Structure::Leaf
//!     }
//!     fn leaves(self, all: &mut Vec<Eager>) {
//!         all.push(self.0);
//!     }
//!     fn build(structure: &Structure, leaves: &mut Leaves<Eager>) -> t4a_scan::Result<Self> {
//!         Ok(Self(leaf(structure, leaves, 1, Array::shape)?))
//!     }
//! }
//!
//! let step = |(): (), sum: Vector, x: Vector| (Vector(sum.0.add(&x.0)), ());
//! let of = |data: &[f64]| Vector(check::array(&[data.len()], |i| data[i]));
//! let scan = Prepared::new(step, (), of(&[0.0]), of(&[1.0, 2.0, 3.0]), &Options::default())?;
//! let results = scan.steps.run(&scan.consts, scan.init.clone(), &scan.xs)?;
//! let (sum, ()): (Vector, ()) = scan.build(results)?;
//! assert_eq!(check::elements(&sum.0), [6.0]);
//! # Ok::<(), t4a_scan::ScanError>(())
//! ```

mod below;
mod elements;
mod options;
mod prepared;
mod span;
mod steps;
mod tape;
mod tree;

pub use below::{ScanBelow, scan_below_tape};
pub use options::{Memory, Options, ScanReport};
pub use prepared::{Prepared, same};
pub use span::{Cotangents, Slot, Span, Told};
pub use steps::{Stack, Steps, at};
pub use tape::{Tape, scan_on_tape};
pub use tree::{Leaves, Structure, Tree, flatten, leaf};
