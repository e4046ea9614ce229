//! The GPU backend of the tests and of the bench: `Wgpu`, or `Cuda` with the feature `cuda`.

#[cfg(feature = "cuda")]
pub use burn::backend::{Cuda as Fused, cuda::CudaDevice as CardDevice};
#[cfg(not(feature = "cuda"))]
pub use burn::backend::{
    Wgpu as Fused,
    wgpu::{WgpuDevice as CardDevice, WgpuRuntime as Runtime},
};
#[cfg(feature = "cuda")]
pub use cubecl::cuda::CudaRuntime as Runtime;

#[cfg(feature = "cuda")]
type Bool = u8;
#[cfg(not(feature = "cuda"))]
type Bool = u32;

/// The backend within [`Fused`].
pub type Card = burn_cubecl::CubeBackend<Runtime, f32, i32, Bool>;
