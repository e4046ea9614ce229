//! Levels: the transforming backends that are active on a thread.
//!
//! A function on `Autodiff<B>`, `Jvp<B>` or `Vmap<B>` may capture tensors of an enclosing function on the same
//! backend type. The two levels cannot be distinguished: derivatives would be taken in both, and batches would be
//! matched element by element (perturbation confusion). So each type can be entered only once at a time.

use std::any::TypeId;
use std::cell::RefCell;
use std::marker::PhantomData;

thread_local! {
    static ENTERED: RefCell<Vec<TypeId>> = const { RefCell::new(Vec::new()) };
}

/// Marks a function on a backend as active on this thread during its lifetime.
///
/// ```
/// use burn_t4a::BurnT4a;
/// use burn_t4a::ext::level::LevelGuard;
///
/// let outer = LevelGuard::enter::<BurnT4a>();
/// assert!(outer.is_some() && LevelGuard::enter::<BurnT4a>().is_none());
/// drop(outer);
/// assert!(LevelGuard::enter::<BurnT4a>().is_some());
/// ```
#[derive(Debug)]
pub struct LevelGuard {
    backend: TypeId,
    /// Makes the type neither `Send` nor `Sync`.
    thread: PhantomData<*const ()>,
}

impl LevelGuard {
    /// Enters a function on the backend `L`; `None` if one is active on this thread.
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

impl Drop for LevelGuard {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(|all| all.retain(|backend| *backend != self.backend));
    }
}
