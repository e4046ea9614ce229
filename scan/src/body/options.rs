//! Options of a scan: memory, direction, length, accepted paths.

use std::sync::Arc;

use crate::error::{Result, ScanError, ScanPath};
use crate::schedule::Policy;

/// The values that a tape keeps of a scan for its reverse pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Everything: the operations of all steps are recorded as they are. Differentiable again.
    StoreAll,
    /// Carries by a policy; spans of steps run again in the reverse pass, as [`Tape::back`](super::Tape::back)
    /// says of a tape.
    Bounded(Policy),
}

impl Default for Memory {
    /// About √N carries.
    fn default() -> Self {
        Self::Bounded(Policy::Sqrt)
    }
}

/// The path of a scan, and why it takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScanReport {
    /// Its path.
    pub path: ScanPath,
    /// Why not in a better way.
    pub reason: &'static str,
    /// Its number of steps.
    pub length: usize,
}

/// A function that is called with every path.
#[derive(Clone)]
struct Listener(Arc<dyn Fn(&ScanReport) + Send + Sync>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

/// Options of a scan. The default is forwards, over the leading axis of xs, with √N carries on a tape, and everything of
/// scans of up to 4 steps.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(super) length: Option<usize>,
    pub(super) reverse: bool,
    pub(super) memory: Option<Memory>,
    limit: Option<usize>,
    accept: Option<Vec<ScanPath>>,
    listener: Option<Listener>,
}

impl Options {
    /// As many steps; required without xs.
    #[must_use]
    pub fn length(mut self, length: usize) -> Self {
        self.length = Some(length);
        self
    }

    /// From the last element to the first. Every y lies where its x does.
    #[must_use]
    pub fn reverse(mut self, reverse: bool) -> Self {
        self.reverse = reverse;
        self
    }

    /// The values that a tape keeps.
    ///
    /// The default is [`Memory::StoreAll`] for up to 4 steps, of which √N carries would save less than half, and
    /// `Memory::default()` beyond. With bounded memory the reverse pass of a scan runs passes for spans of its
    /// steps. Each of them ends by copying Burn's table of all nodes and locking the graph of every one; in Burn 0.21
    /// they wait for that on threads until the outer pass ends. So S spans in one graph take time in S². In Burn
    /// 0.21, while S ≥ 256 spans of earlier scans are pending, further scans have spans of at least S steps, and those
    /// of up to S/4 steps are recorded directly: the time is linear in the number of all steps.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// At most so many steps of a loop that ends by a test; 2²⁰ by default.
    #[must_use]
    pub fn limit(mut self, steps: usize) -> Self {
        self.limit = Some(steps);
        self
    }

    /// Most steps of a loop that ends by a test.
    pub fn most_steps(&self) -> usize {
        self.limit.unwrap_or(1 << 20)
    }

    /// Accepts these paths only; any other one is an error before the first step. An empty list rejects all, and
    /// the error says which path it would have been.
    #[must_use]
    pub fn accept(mut self, paths: &[ScanPath]) -> Self {
        self.accept = Some(paths.to_vec());
        self
    }

    /// Is told the path of each scan, before its first step.
    #[must_use]
    pub fn report(mut self, listener: impl Fn(&ScanReport) + Send + Sync + 'static) -> Self {
        self.listener = Some(Listener(Arc::new(listener)));
        self
    }

    /// Of the paths that are accepted this one only.
    pub(super) fn only(&self, path: ScanPath) -> Self {
        let accepts = self.accept.as_ref().is_none_or(|paths| paths.contains(&path));
        let accept = Some(if accepts { vec![path] } else { Vec::new() });
        Self { accept, ..self.clone() }
    }

    /// Reports a path before its first step, if it is accepted.
    ///
    /// # Errors
    /// [`ScanError::PathRejected`].
    pub fn take_path(&self, report: ScanReport) -> Result<()> {
        if let Some(accepted) = self.accept.as_ref().filter(|paths| !paths.contains(&report.path)) {
            let (chosen, reason, accepted) = (report.path, report.reason, accepted.clone());
            return Err(ScanError::PathRejected { chosen, reason, accepted });
        }
        if let Some(Listener(listener)) = &self.listener {
            listener(&report);
        }
        Ok(())
    }
}

impl ScanReport {
    /// The report of a body that is not recorded.
    pub fn step_by_step(length: usize) -> Self {
        Self { path: ScanPath::Fallback, reason: "body_not_traced", length }
    }
}
