//! Dense strided CPU tensors.
//!
//! ```text
//! storage · pool     shared, aligned, copy-on-write memory
//! layout             shape, signed strides, offset; views as arithmetic
//! tensor · any       Tensor<T> (typed) and AnyTensor (dtype-tagged)
//! output · view      results written and strided tensors read without pointers
//! movement           zero-copy view operations on both
//! loops              the only element loops
//! map · copy         broadcast, allocate or reuse, run the loop
//! nn                 fused operations of neural networks
//! index              gather, scatter, masks, regions
//! sort · cumulative  along an axis
//! fft                Fourier transforms along an axis
//! create · random    regular and random values
//! config · route     settings of the process, and how results were computed
//! ```

pub mod any;
pub mod arg_reduce;
pub mod config;
pub mod copy;
pub mod create;
pub mod cumulative;
pub mod dtype;
pub mod error;
pub mod fft;
pub mod index;
pub mod kernels;
pub mod layout;
pub mod loops;
pub mod map;
pub mod matmul;
mod movement;
pub mod nn;
pub(crate) mod number;
pub(crate) mod output;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod route;
pub mod sort;
pub mod storage;
pub mod tensor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub(crate) mod view;

pub use any::{AnyTensor, Number};
pub use dtype::{DType, Element, scalars};
pub use error::{Result, TensorError};
pub use layout::Layout;
pub use movement::Slice;
pub use route::Route;
pub use storage::Buffer;
pub use tensor::Tensor;
