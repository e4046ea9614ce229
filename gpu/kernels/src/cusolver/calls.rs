//! Functions of cuSOLVER and cuBLAS per element type.

use core::ffi::{c_int, c_schar};

use cudarc::cublas::sys as blas;
use cudarc::cusolver::sys::{
    self as solver, cublasFillMode_t as Fill, cusolverDnHandle_t as Handle,
    cusolverEigMode_t as Vectors, cusolverStatus_t as Status, gesvdjInfo_t as Jacobi,
};

/// Functions for one element type. Matrices are column-major; sizes of work space are numbers of elements.
#[expect(clippy::type_complexity, reason = "signatures of the libraries")]
pub(super) struct Calls<T> {
    pub(super) potrf_size: unsafe fn(Handle, Fill, c_int, *mut T, c_int, *mut c_int) -> Status,
    pub(super) potrf:
        unsafe fn(Handle, Fill, c_int, *mut T, c_int, *mut T, c_int, *mut c_int) -> Status,
    pub(super) getrf_size: unsafe fn(Handle, c_int, c_int, *mut T, c_int, *mut c_int) -> Status,
    pub(super) getrf:
        unsafe fn(Handle, c_int, c_int, *mut T, c_int, *mut T, *mut c_int, *mut c_int) -> Status,
    pub(super) geqrf_size: unsafe fn(Handle, c_int, c_int, *mut T, c_int, *mut c_int) -> Status,
    pub(super) geqrf:
        unsafe fn(Handle, c_int, c_int, *mut T, c_int, *mut T, *mut T, c_int, *mut c_int) -> Status,
    pub(super) orgqr_size:
        unsafe fn(Handle, c_int, c_int, c_int, *const T, c_int, *const T, *mut c_int) -> Status,
    pub(super) orgqr: unsafe fn(
        Handle,
        c_int,
        c_int,
        c_int,
        *mut T,
        c_int,
        *const T,
        *mut T,
        c_int,
        *mut c_int,
    ) -> Status,
    pub(super) syevd_size:
        unsafe fn(Handle, Vectors, Fill, c_int, *const T, c_int, *const T, *mut c_int) -> Status,
    pub(super) syevd: unsafe fn(
        Handle,
        Vectors,
        Fill,
        c_int,
        *mut T,
        c_int,
        *mut T,
        *mut T,
        c_int,
        *mut c_int,
    ) -> Status,
    pub(super) gesvdj_size: unsafe fn(
        Handle,
        Vectors,
        c_int,
        c_int,
        c_int,
        *const T,
        c_int,
        *const T,
        *const T,
        c_int,
        *const T,
        c_int,
        *mut c_int,
        Jacobi,
    ) -> Status,
    pub(super) gesvdj: unsafe fn(
        Handle,
        Vectors,
        c_int,
        c_int,
        c_int,
        *mut T,
        c_int,
        *mut T,
        *mut T,
        c_int,
        *mut T,
        c_int,
        *mut T,
        c_int,
        *mut c_int,
        Jacobi,
    ) -> Status,
    pub(super) gesvd_size: unsafe fn(Handle, c_int, c_int, *mut c_int) -> Status,
    pub(super) gesvd: unsafe fn(
        Handle,
        c_schar,
        c_schar,
        c_int,
        c_int,
        *mut T,
        c_int,
        *mut T,
        *mut T,
        c_int,
        *mut T,
        c_int,
        *mut T,
        c_int,
        *mut T,
        *mut c_int,
    ) -> Status,
    pub(super) trsm: unsafe fn(
        blas::cublasHandle_t,
        blas::cublasSideMode_t,
        blas::cublasFillMode_t,
        blas::cublasOperation_t,
        blas::cublasDiagType_t,
        c_int,
        c_int,
        *const T,
        *const T,
        c_int,
        *mut T,
        c_int,
    ) -> blas::cublasStatus_t,
}

/// An element type of cuSOLVER.
pub(super) trait Real: Copy + PartialOrd + Into<f64> + 'static {
    const ONE: Self;
    /// Distance of 1 from the next larger number.
    const EPSILON: f64;
    /// Moduli of entries outside of this range are left to the engine: their squares may overflow or underflow.
    const RANGE: [f64; 2];
    const CALLS: Calls<Self>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

impl Real for f32 {
    const ONE: Self = 1.0;
    const EPSILON: f64 = 1.2e-7;
    const RANGE: [f64; 2] = [1e-14, 1e14];
    const CALLS: Calls<Self> = Calls {
        potrf_size: solver::cusolverDnSpotrf_bufferSize,
        potrf: solver::cusolverDnSpotrf,
        getrf_size: solver::cusolverDnSgetrf_bufferSize,
        getrf: solver::cusolverDnSgetrf,
        geqrf_size: solver::cusolverDnSgeqrf_bufferSize,
        geqrf: solver::cusolverDnSgeqrf,
        orgqr_size: solver::cusolverDnSorgqr_bufferSize,
        orgqr: solver::cusolverDnSorgqr,
        syevd_size: solver::cusolverDnSsyevd_bufferSize,
        syevd: solver::cusolverDnSsyevd,
        gesvdj_size: solver::cusolverDnSgesvdj_bufferSize,
        gesvdj: solver::cusolverDnSgesvdj,
        gesvd_size: solver::cusolverDnSgesvd_bufferSize,
        gesvd: solver::cusolverDnSgesvd,
        trsm: blas::cublasStrsm_v2,
    };
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(f32::NAN, f32::from_ne_bytes)
    }
}

impl Real for f64 {
    const ONE: Self = 1.0;
    const EPSILON: f64 = f64::EPSILON;
    const RANGE: [f64; 2] = [1e-140, 1e140];
    const CALLS: Calls<Self> = Calls {
        potrf_size: solver::cusolverDnDpotrf_bufferSize,
        potrf: solver::cusolverDnDpotrf,
        getrf_size: solver::cusolverDnDgetrf_bufferSize,
        getrf: solver::cusolverDnDgetrf,
        geqrf_size: solver::cusolverDnDgeqrf_bufferSize,
        geqrf: solver::cusolverDnDgeqrf,
        orgqr_size: solver::cusolverDnDorgqr_bufferSize,
        orgqr: solver::cusolverDnDorgqr,
        syevd_size: solver::cusolverDnDsyevd_bufferSize,
        syevd: solver::cusolverDnDsyevd,
        gesvdj_size: solver::cusolverDnDgesvdj_bufferSize,
        gesvdj: solver::cusolverDnDgesvdj,
        gesvd_size: solver::cusolverDnDgesvd_bufferSize,
        gesvd: solver::cusolverDnDgesvd,
        trsm: blas::cublasDtrsm_v2,
    };
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes.try_into().map_or(f64::NAN, f64::from_ne_bytes)
    }
}
