//! Settings of the engine. They are process-wide, not per thread, so the behaviour of a call does not depend on its
//! thread.

use t4a_algebra::environment::{Invalid, Variable, bytes};
use t4a_algebra::parallel;
use thiserror::Error;

use crate::pool;
use crate::route::{self, Policy};
use crate::setting::ByteSetting;

/// A setting that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No operation runs without a thread.
    #[error("threads: 0 given, at least 1 is needed")]
    NoThreads,
    /// A factorisation has at least one part.
    #[error("parts: 0 given, at least 1 is needed")]
    NoParts,
    /// A variable of the environment.
    #[error(transparent)]
    Environment(#[from] Invalid),
}

/// Settings of the engine; unset options keep their current values.
///
/// | setting | variable | unless set |
/// |---|---|---|
/// | [`threads`](Self::threads) | `T4A_NUM_THREADS` | one per core |
/// | [`parts`](Self::parts) | `T4A_PARTS` | 4 |
/// | [`cache_limit`](Self::cache_limit) | `T4A_CACHE_LIMIT` | 128 MiB, or the recent peak of the tensors |
/// | [`memory_limit`](Self::memory_limit) | `T4A_MEMORY_LIMIT` | none |
/// | [`einsum_memory`](Self::einsum_memory) | `T4A_EINSUM_MEMORY` | half of the free memory |
/// | [`fallback`](Self::fallback) | `T4A_FALLBACK`: `allow`, `reject` | `allow` |
///
/// Variables are read at the first use; sizes are bytes, optionally with the unit `KiB`, `MiB` or `GiB`. An invalid
/// variable is ignored with a line on the standard error output; [`from_environment`](Self::from_environment) returns
/// it as an error. `T4A_ISA` (`baseline`, `avx2`, `avx512`) is a variable only: loops are chosen once. Of these
/// settings only the parts affect results: the rounding of large factorisations.
///
/// ```
/// use t4a_tensor::config::BackendConfig;
/// use t4a_tensor::route::Policy;
///
/// BackendConfig::new().threads(1).cache_limit(256 << 20).fallback(Policy::Allow).set()?;
/// assert_eq!(BackendConfig::current().get_threads(), Some(1));
/// # Ok::<(), t4a_tensor::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing changes before `set`"]
pub struct BackendConfig {
    threads: Option<usize>,
    parts: Option<usize>,
    cache_limit: Option<usize>,
    memory_limit: Option<usize>,
    einsum_memory: Option<usize>,
    fallback: Option<Policy>,
}

impl BackendConfig {
    /// No options set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maximum number of threads of an operation, including the caller's; at least 1.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// Number of partial sums in a large factorisation, at least 1. At most as many threads compute them. One part is
    /// the fastest on one thread; more than 4 pay on many cores.
    pub fn parts(self, parts: usize) -> Self {
        Self { parts: Some(parts), ..self }
    }

    /// Maximum number of unused bytes cached for reuse; 0 disables the cache.
    pub fn cache_limit(self, bytes: usize) -> Self {
        Self { cache_limit: Some(bytes), ..self }
    }

    /// Maximum number of bytes of all tensors, including cached blocks: allocations above it fail with
    /// [`OutOfMemory`](crate::TensorError::OutOfMemory). Tensors below 4 KiB are not counted.
    pub fn memory_limit(self, bytes: usize) -> Self {
        Self { memory_limit: Some(bytes), ..self }
    }

    /// Maximum number of bytes of the intermediates of a contraction: labels are sliced to fit. A limit set on the
    /// contraction (`Einsum::memory`) takes precedence.
    pub fn einsum_memory(self, bytes: usize) -> Self {
        Self { einsum_memory: Some(bytes), ..self }
    }

    /// Sets the policy for operations without a native path.
    pub fn fallback(self, policy: Policy) -> Self {
        Self { fallback: Some(policy), ..self }
    }

    /// The number of threads, if set.
    pub fn get_threads(&self) -> Option<usize> {
        self.threads
    }

    /// The number of parts, if set.
    pub fn get_parts(&self) -> Option<usize> {
        self.parts
    }

    /// The cache limit in bytes, if set.
    pub fn get_cache_limit(&self) -> Option<usize> {
        self.cache_limit
    }

    /// The memory limit in bytes, if set.
    pub fn get_memory_limit(&self) -> Option<usize> {
        self.memory_limit
    }

    /// The limit for intermediates in bytes, if set.
    pub fn get_einsum_memory(&self) -> Option<usize> {
        self.einsum_memory
    }

    /// The policy for operations without a native path, if set.
    pub fn get_fallback(&self) -> Option<Policy> {
        self.fallback
    }

    /// The settings of the environment variables.
    ///
    /// # Errors
    /// The error of the first invalid variable.
    pub fn from_environment() -> Result<Self, ConfigError> {
        Ok(Self {
            threads: parallel::VARIABLE.read()?,
            parts: parallel::PARTS_VARIABLE.read()?,
            cache_limit: pool::CACHE_VARIABLE.read()?,
            memory_limit: pool::MEMORY_VARIABLE.read()?,
            einsum_memory: EINSUM_VARIABLE.read()?,
            fallback: route::VARIABLE.read()?,
        })
    }

    /// The current settings; `None` for a number of bytes without a limit.
    pub fn current() -> Self {
        Self {
            threads: Some(parallel::threads()),
            parts: Some(parallel::parts()),
            cache_limit: pool::cache_limit(),
            memory_limit: pool::memory_limit(),
            einsum_memory: einsum_memory(),
            fallback: Some(route::policy()),
        }
    }

    /// Applies the settings to all subsequent operations of the process.
    ///
    /// # Errors
    /// [`ConfigError::NoThreads`], [`ConfigError::NoParts`]; no setting is changed then.
    pub fn set(&self) -> Result<(), ConfigError> {
        if self.threads == Some(0) {
            return Err(ConfigError::NoThreads);
        }
        if self.parts == Some(0) {
            return Err(ConfigError::NoParts);
        }
        if let Some(parts) = self.parts {
            parallel::set_parts(parts);
        }
        if let Some(threads) = self.threads {
            parallel::set_threads(threads);
        }
        if let Some(bytes) = self.cache_limit {
            pool::set_cache_limit(bytes);
        }
        if let Some(bytes) = self.memory_limit {
            pool::set_memory_limit(bytes);
        }
        if let Some(bytes) = self.einsum_memory {
            EINSUM_MEMORY.set(bytes);
        }
        if let Some(policy) = self.fallback {
            route::set_policy(policy);
        }
        Ok(())
    }
}

const EINSUM_VARIABLE: Variable<usize> =
    Variable::new("T4A_EINSUM_MEMORY", "a number of bytes", bytes);
static EINSUM_MEMORY: ByteSetting = ByteSetting::new(EINSUM_VARIABLE, usize::MAX);

/// The memory for intermediates of a contraction that has been set.
pub fn einsum_memory() -> Option<usize> {
    Some(EINSUM_MEMORY.get()).filter(|&bytes| bytes != usize::MAX)
}
