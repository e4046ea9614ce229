//! Which backends around a backend are at work on a thread.
//!
//! A function on `Autodiff<B>`, `Jvp<B>` or `Vmap<B>` may capture tensors of a function of the same type that
//! is around it. Nothing tells them apart: derivatives would be taken in both, batches be matched example by
//! example. So a type is entered once at a time.

use std::any::TypeId;
use std::cell::RefCell;
use std::marker::PhantomData;

thread_local! {
    static ENTERED: RefCell<Vec<TypeId>> = const { RefCell::new(Vec::new()) };
}

/// A function on a backend is at work on this thread, as long as this lives.
#[derive(Debug)]
pub struct Level {
    backend: TypeId,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl Level {
    /// Begins a function on the backend `L`; `None` inside of another one on it.
    pub fn enter<L: 'static>() -> Option<Self> {
        let backend = TypeId::of::<L>();
        ENTERED.with_borrow_mut(|all| {
            let is_new = !all.contains(&backend);
            is_new.then(|| {
                all.push(backend);
                Self { backend, thread: PhantomData }
            })
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(|all| all.retain(|backend| *backend != self.backend));
    }
}
