//! A setting with a variable of the environment and a default.

use std::sync::atomic::{AtomicUsize, Ordering};

use t4a_algebra::environment::Variable;

/// A number of bytes that is set, or from the environment, or a default.
pub(crate) struct ByteSetting {
    now: AtomicUsize,
    variable: Variable<usize>,
    otherwise: usize,
}

impl ByteSetting {
    /// Marks a value that has not been read from the environment.
    const UNREAD: usize = usize::MAX - 1;

    pub(crate) const fn new(variable: Variable<usize>, otherwise: usize) -> Self {
        Self { now: AtomicUsize::new(Self::UNREAD), variable, otherwise }
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        match self.now.load(Ordering::Relaxed) {
            Self::UNREAD => self.read(),
            bytes => bytes,
        }
    }

    #[cold]
    fn read(&self) -> usize {
        let bytes = self.variable.get().unwrap_or(self.otherwise);
        // A value set concurrently is kept.
        match self.now.compare_exchange(Self::UNREAD, bytes, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => bytes,
            Err(set) => set,
        }
    }

    pub(crate) fn set(&self, bytes: usize) {
        self.now.store(if bytes == Self::UNREAD { usize::MAX } else { bytes }, Ordering::Relaxed);
    }
}
