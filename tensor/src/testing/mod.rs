//! Test helpers: every layout of a shape, deterministic elements of every dtype, index-by-index references and
//! tolerances. The references are slow and simple on purpose.
//!
//! ```text
//! layouts     one shape in eight memory layouts
//! values      deterministic elements of any dtype
//! reference   results computed one index at a time
//! close       relative and absolute tolerance
//! ```

mod close;
mod layouts;
mod reference;
mod values;

pub use close::{Close, assert_close, tolerance};
pub use layouts::{SHAPES, any_layouts, layouts, layouts_of};
pub use reference::{elements, indices, naive};
pub use values::{Mix, value};
