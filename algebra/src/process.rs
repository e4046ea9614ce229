//! State of the running process.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value with one instance per process. A forked process has none of the threads of its parent, and locks held during
/// the fork stay locked: it must not use the instance of its parent.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    current: AtomicPtr<Owned<T>>,
    new: fn() -> T,
}

#[derive(Debug)]
struct Owned<T> {
    process: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// A value that is created at its first use in a process.
    pub const fn new(new: fn() -> T) -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()), new }
    }

    /// The instance of this process, which is never freed. Instances of parent processes are never freed either.
    pub fn get(&self) -> &'static T {
        let process = process::id();
        loop {
            let known = self.current.load(Ordering::Acquire);
            // SAFETY: stored instances are never freed.
            if let Some(owned) = unsafe { known.as_ref::<'static>() }
                && owned.process == process
            {
                return &owned.value;
            }
            let new = Box::into_raw(Box::new(Owned { process, value: (self.new)() }));
            let stored =
                self.current.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire);
            if stored.is_err() {
                // SAFETY: the pointer is from a box, and no other thread has read it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// The most recent instance, if any; after a fork it may be that of the parent.
    #[inline]
    pub fn last(&self) -> Option<&'static T> {
        // SAFETY: stored instances are never freed.
        unsafe { self.current.load(Ordering::Acquire).as_ref::<'static>() }
            .map(|owned| &owned.value)
    }
}
