//! Execution route of a result, with the reason for a fallback.
//!
//! Every tensor carries a [`Route`]: two bytes, one store. It is set by the kernel that computed the tensor. Every
//! fallback has a reason: [`Route::fallback`] requires one. Under [`Policy::RejectFallback`] an operation that would
//! fall back fails before it computes.

use std::sync::atomic::{AtomicU8, Ordering};

use t4a_algebra::environment::Variable;
use t4a_algebra::gemm::{Algorithm, Report};

use crate::error::{Result, TensorError};

/// The path that computed a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum Path {
    /// Data that came from outside.
    #[default]
    Source,
    /// No computation: the result has no elements.
    Empty,
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
    /// Matrix product by the blocked driver, generic over semirings.
    GemmSemiring,
    /// Matrix product by loops without packing.
    GemmSmall,
    /// Matrix product of exponentials, for log-sum-exp.
    GemmExponentials,
    /// Matrix products of an interleaved batch, with matrices in the lanes of vectors.
    GemmInterleaved,
    /// Matrix product by a kernel of the element type or semiring's own.
    GemmCustom,
    /// A fused or dedicated neural-network kernel.
    Fused,
    /// Elementwise contraction without a matrix product.
    ContractElementwise,
    /// Batched matrix product supplied by the user.
    BgemmUser,
    /// Contraction supplied by the user.
    TensordotUser,
    /// Factorisations or solves, each matrix by one thread.
    LinalgSequential,
    /// Factorisations or solves, matrix by matrix, each multithreaded.
    LinalgParallel,
    /// Kernels of the device that the tensor is on, outside of the engine.
    Device,
    /// The definition of an operation, in operations of the backend that it runs on.
    Portable,
    /// In the engine for another backend, through host data.
    HostData,
}

/// Reason for a path other than the native one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// The native path.
    #[default]
    Native,
    /// Sums and steps of 16-bit floats were kept in `f32`, and the result was rounded once.
    DtypePromoted,
    /// The operation has no native kernel.
    OpUnsupported,
}

impl Path {
    /// Stable name.
    pub const fn label(self) -> &'static str {
        match self {
            Path::Source => "source",
            Path::Empty => "empty",
            Path::LoopContiguous => "loop_contiguous",
            Path::LoopStrided => "loop_strided",
            Path::LoopReduce => "loop_reduce",
            Path::LoopIndex => "loop_index",
            Path::GemmLibrary => "gemm_library",
            Path::GemmSemiring => "gemm_semiring",
            Path::GemmSmall => "gemm_small",
            Path::GemmExponentials => "gemm_exponentials",
            Path::GemmInterleaved => "gemm_interleaved",
            Path::GemmCustom => "gemm_custom",
            Path::Fused => "fused",
            Path::ContractElementwise => "contract_elementwise",
            Path::BgemmUser => "bgemm_user",
            Path::TensordotUser => "tensordot_user",
            Path::LinalgSequential => "linalg_sequential",
            Path::LinalgParallel => "linalg_parallel",
            Path::Device => "device",
            Path::Portable => "portable",
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
            Reason::OpUnsupported => "op_unsupported",
        }
    }
}

/// Route of a tensor: the path and, for a fallback, the reason. Views keep the route of their parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Route {
    /// The path taken.
    pub path: Path,
    /// Reason for a path other than the native one.
    pub reason: Reason,
}

impl Route {
    /// The native path of an operation.
    #[inline]
    pub const fn native(path: Path) -> Self {
        Self { path, reason: Reason::Native }
    }

    /// A native path; intermediate results may have a wider type.
    #[inline]
    pub const fn promoted(path: Path, promoted: bool) -> Self {
        Self { path, reason: if promoted { Reason::DtypePromoted } else { Reason::Native } }
    }

    /// A fallback path.
    #[inline]
    pub const fn because(path: Path, reason: Reason) -> Self {
        Self { path, reason }
    }

    /// Checks under the policy that an operation may leave its native path, before it computes.
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

impl From<Report> for Route {
    #[inline]
    fn from(report: Report) -> Self {
        let path = match report.algorithm {
            Algorithm::Nothing => Path::Empty,
            Algorithm::Library => Path::GemmLibrary,
            Algorithm::Blocked => Path::GemmSemiring,
            Algorithm::Small => Path::GemmSmall,
            Algorithm::Exponentials => Path::GemmExponentials,
            _ => Path::GemmCustom,
        };
        Self::promoted(path, report.promoted)
    }
}

/// Policy for operations without a native path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Policy {
    /// Use the fallback.
    #[default]
    Allow = 0,
    /// Fail before computing.
    RejectFallback = 1,
}

/// The policy has not been set or read.
const UNREAD: u8 = u8::MAX;
static POLICY: AtomicU8 = AtomicU8::new(UNREAD);

/// The policy in the environment.
pub(crate) const VARIABLE: Variable<Policy> =
    Variable::new("T4A_FALLBACK", "allow or reject", |text| match text {
        "allow" => Some(Policy::Allow),
        "reject" => Some(Policy::RejectFallback),
        _ => None,
    });

/// Sets the process-wide policy.
pub fn set_policy(policy: Policy) {
    POLICY.store(policy as u8, Ordering::Relaxed);
}

/// The process-wide policy.
#[inline]
pub fn policy() -> Policy {
    match POLICY.load(Ordering::Relaxed) {
        0 => Policy::Allow,
        UNREAD => from_environment(),
        _ => Policy::RejectFallback,
    }
}

#[cold]
fn from_environment() -> Policy {
    let policy = VARIABLE.get().unwrap_or_default();
    // A policy set concurrently is kept.
    match POLICY.compare_exchange(UNREAD, policy as u8, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) | Err(UNREAD) => policy,
        Err(0) => Policy::Allow,
        Err(_) => Policy::RejectFallback,
    }
}
