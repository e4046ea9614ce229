//! Which way a result was computed, and why not the native one.
//!
//! Every tensor carries a [`Route`]: two bytes, one store. A fallback without a reason does not
//! exist: [`Route::fallback`] takes one. Under [`Policy::RejectFallback`] an operation that would
//! fall back fails before it computes.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Result, TensorError};

/// The path that computed a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum Path {
    /// Data that came from outside.
    #[default]
    Source,
    /// Elementwise over contiguous memory.
    LoopContiguous,
    /// Elementwise with at least one operand gathered from strided memory.
    LoopStrided,
    /// Reduction, cumulative or sorting loop.
    LoopReduce,
    /// Gather, scatter, select or copy.
    LoopIndex,
    /// Matrix product by the GEMM library.
    GemmLibrary,
    /// Matrix product by the semiring driver.
    GemmSemiring,
    /// A fused or dedicated neural-network kernel.
    Fused,
    /// Matrix factorisation.
    Factorization,
    /// Elementwise contraction without a matrix product.
    ContractElementwise,
    /// Batched matrix product supplied by the user.
    BgemmUser,
    /// Contraction supplied by the user.
    TensordotUser,
    /// Burn's own CPU backend on shared memory.
    Flex,
    /// Host data through another library.
    HostData,
}

/// Why a path other than the native one was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// The native path.
    #[default]
    Native,
    /// 16-bit floats computed in `f32`.
    DtypePromoted,
    /// No kernel for this dtype.
    DtypeUnsupported,
    /// Integers have no GEMM library.
    IntegerNoGemm,
    /// A downstream element type without its own GEMM.
    CustomScalarNoGemm,
    /// The operation has no native kernel.
    OpUnsupported,
    /// The options given are not covered by the native kernel.
    OptionsUnsupported,
}

impl Path {
    /// Stable name.
    pub const fn label(self) -> &'static str {
        match self {
            Path::Source => "source",
            Path::LoopContiguous => "loop_contiguous",
            Path::LoopStrided => "loop_strided",
            Path::LoopReduce => "loop_reduce",
            Path::LoopIndex => "loop_index",
            Path::GemmLibrary => "gemm_library",
            Path::GemmSemiring => "gemm_semiring",
            Path::Fused => "fused",
            Path::Factorization => "factorization",
            Path::ContractElementwise => "contract_elementwise",
            Path::BgemmUser => "bgemm_user",
            Path::TensordotUser => "tensordot_user",
            Path::Flex => "flex",
            Path::HostData => "host_data",
        }
    }
}

impl Reason {
    /// Stable name.
    pub const fn label(self) -> &'static str {
        match self {
            Reason::Native => "native",
            Reason::DtypePromoted => "dtype_promoted",
            Reason::DtypeUnsupported => "dtype_unsupported",
            Reason::IntegerNoGemm => "integer_no_gemm",
            Reason::CustomScalarNoGemm => "custom_scalar_no_gemm",
            Reason::OpUnsupported => "op_unsupported",
            Reason::OptionsUnsupported => "options_unsupported",
        }
    }
}

/// How a tensor was computed: the path and, for a fallback, the reason. Views keep the route of
/// their parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Route {
    /// The path taken.
    pub path: Path,
    /// Why it is not the native one.
    pub reason: Reason,
}

impl Route {
    /// The native path of an operation.
    #[inline]
    pub const fn native(path: Path) -> Self {
        Self { path, reason: Reason::Native }
    }

    /// A path taken for want of a native one.
    #[inline]
    pub const fn because(path: Path, reason: Reason) -> Self {
        Self { path, reason }
    }

    /// Asks the policy whether an operation may leave its native path, before it computes.
    ///
    /// # Errors
    /// [`TensorError::RouteRejected`] under [`Policy::RejectFallback`].
    #[inline]
    pub fn fallback(op: &'static str, path: Path, reason: Reason) -> Result<Self> {
        if policy() == Policy::RejectFallback {
            return Err(TensorError::RouteRejected {
                op,
                route: path.label(),
                reason: reason.label(),
            });
        }
        Ok(Self::because(path, reason))
    }
}

/// What to do when an operation has no native path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Policy {
    /// Compute through the fallback.
    #[default]
    Allow = 0,
    /// Fail before computing.
    RejectFallback = 1,
}

static POLICY: AtomicU8 = AtomicU8::new(0);

/// Sets the process-wide policy.
pub fn set_policy(policy: Policy) {
    POLICY.store(policy as u8, Ordering::Relaxed);
}

/// The process-wide policy.
#[inline]
pub fn policy() -> Policy {
    if POLICY.load(Ordering::Relaxed) == 0 { Policy::Allow } else { Policy::RejectFallback }
}
