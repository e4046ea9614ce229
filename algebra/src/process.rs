//! State of the running process.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value of which each process makes its own. A process that was forked has none of the threads of its
/// parent, and locks that were held at that moment stay held: it must not use the parent's.
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
    /// A value that is made when a process asks for it first.
    pub const fn new(new: fn() -> T) -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()), new }
    }

    /// The value of this process, which lives as long as the process. One of a parent is never freed.
    pub fn get(&self) -> &'static T {
        let process = process::id();
        loop {
            let known = self.current.load(Ordering::Acquire);
            // SAFETY: what has been stored is never freed.
            if let Some(owned) = unsafe { known.as_ref::<'static>() }
                && owned.process == process
            {
                return &owned.value;
            }
            let new = Box::into_raw(Box::new(Owned { process, value: (self.new)() }));
            let stored =
                self.current.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire);
            if stored.is_err() {
                // SAFETY: it comes from a box, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// The last value that was made, if any: perhaps of the parent.
    #[inline]
    pub fn last(&self) -> Option<&'static T> {
        // SAFETY: what has been stored is never freed.
        unsafe { self.current.load(Ordering::Acquire).as_ref::<'static>() }
            .map(|owned| &owned.value)
    }
}
