//! Strided tensors on a CPU: views share memory, operations reuse unique memory, loops use wide vectors and all cores.
//! The element type is static in [`Tensor<T>`](Tensor) and dynamic in [`AnyTensor`]; every function checks its operands
//! first and returns a typed error. This library is the engine of all crates of `burn-t4a` and is usable on its own.
//!
//! ```
//! use t4a_tensor::{Tensor, reduce, kernels, matmul::matmul, sort::sort};
//! use t4a_algebra::Standard;
//!
//! let m = Tensor::from_vec(vec![3.0, 1.0, 2.0, 6.0, 5.0, 4.0], &[2, 3])?;
//! let t = m.permute(&[1, 0])?;                                // shares memory
//! assert_eq!(matmul::<Standard, f64>(&m, &t)?.to_vec()?, [14.0, 31.0, 31.0, 77.0]);
//! assert_eq!(sort(m, 1, false)?.to_vec()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! # Ok::<(), t4a_tensor::TensorError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a tensor from data | [`Tensor::from_vec`], [`create`], [`random`] |
//! | permute, slice, reshape, expand, flip, without a copy | methods of [`Tensor`] and [`AnyTensor`] |
//! | elementwise functions, broadcast | [`map`] with a kernel of [`kernels`] |
//! | sums, extrema, their indices | [`mod@reduce`], [`arg_reduce`], [`cumulative`] |
//! | products of matrices over any semiring | [`mod@matmul`] |
//! | gather, scatter, masks, regions | [`index`] |
//! | sorting, the largest k | [`mod@sort`] |
//! | Fourier transforms | [`mod@fft`] |
//! | eight-bit integers with scales | [`quantized`] |
//! | convolution, pooling, attention, norms, images | [`nn`] |
//! | threads and memory | [`config`], [`pool`] |
//! | the execution path of a result | [`route`] |

// storage · pool     shared, aligned, copy-on-write memory
// layout             shape, signed strides, offset; views as arithmetic
// tensor · any       Tensor<T> (typed) and AnyTensor (dtype-tagged)
// output · view      safe writing of results and safe reading of strided tensors
// movement           zero-copy view operations on both
// loops              all element loops
// map · copy         broadcast, allocate or reuse, run the loop
// nn                 fused operations of neural networks
// index              gather, scatter, masks, regions
// sort · cumulative  along an axis
// fft                Fourier transforms along an axis
// create · random    regular and random values
// config · setting   settings of the process
// route              execution paths of results

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
pub mod quantized;
pub mod random;
pub mod reduce;
pub mod route;
mod setting;
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
