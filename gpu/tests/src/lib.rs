//! The GPU backend of the tests and of the bench: `Wgpu`, or `Cuda` with the feature `cuda`.

#[cfg(feature = "cuda")]
pub use burn::backend::{Cuda as Fused, cuda::CudaDevice as CardDevice};
#[cfg(not(feature = "cuda"))]
pub use burn::backend::{Wgpu as Fused, wgpu::WgpuDevice as CardDevice};

/// The backend within [`Fused`].
#[cfg(feature = "cuda")]
pub type Card = burn_cubecl::CubeBackend<cubecl::cuda::CudaRuntime, f32, i32, u8>;
/// The backend within [`Fused`].
#[cfg(not(feature = "cuda"))]
pub type Card = burn_cubecl::CubeBackend<burn::backend::wgpu::WgpuRuntime, f32, i32, u32>;
