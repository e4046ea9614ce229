//! The CPU backend of `burn-t4a` under the names of `burn-flex`, the CPU backend of Burn 0.22.1.
//!
//! A program uses it by three lines in its `Cargo.toml`, without further changes:
//!
//! ```toml
//! [patch.crates-io]
//! burn-flex = { git = "…", package = "burn-flex" }
//! ```
//!
//! `Device::flex()` then computes on the engine, and `Device::flex().autodiff()` differentiates on it.

#![forbid(unsafe_code)]

pub use burn_t4a_022::{
    BurnT4a as Flex, Layout, T4aDevice as FlexDevice, T4aQTensor as FlexQTensor,
    T4aTensor as FlexTensor,
};

/// Items that other crates of Burn use by path.
#[doc(hidden)]
pub mod ops {
    /// Fourier transforms of real signals, for `burn-signal`.
    pub mod fft {
        use burn_t4a_022::T4aTensor;

        macro_rules! transforms {
            ($($rfft:ident $irfft:ident)*) => {$(
                /// Fourier transform of a real signal of `n` samples along an axis: real and imaginary parts.
                /// Longer signals are truncated, shorter ones padded with zeros.
                #[track_caller]
                pub fn $rfft(x: T4aTensor, dim: usize, n: Option<usize>) -> (T4aTensor, T4aTensor) {
                    burn_t4a_022::rfft(x, dim, n)
                }

                /// Inverse transform: the real signal of `n` samples with this spectrum.
                #[track_caller]
                pub fn $irfft(re: T4aTensor, im: T4aTensor, dim: usize, n: Option<usize>) -> T4aTensor {
                    burn_t4a_022::irfft(re, im, dim, n)
                }
            )*};
        }
        transforms! { rfft_f32 irfft_f32 rfft_f64 irfft_f64 rfft_f16 irfft_f16 rfft_bf16 irfft_bf16 }
    }
}
