//! Plans by structure: the same subscripts on the same shapes are planned once.

use std::sync::{Arc, LazyLock, Mutex};

use hashbrown::HashMap;

use crate::error::Result;
use crate::path::Path;
use crate::plan::Plan;
use crate::search::Optimizer;
use crate::subscripts::{Label, Subscripts};

/// Plans that are kept.
const CAPACITY: usize = 256;

/// Everything that a plan depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) subscripts: Subscripts,
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) sizes: Vec<(Label, usize)>,
    pub(crate) path: Option<Path>,
    pub(crate) optimizer: Optimizer,
    /// Bytes, element size and whether they were given; none if it does not bind.
    pub(crate) budget: Option<(usize, usize, bool)>,
}

#[derive(Default)]
struct Plans {
    of: HashMap<Key, (Arc<Plan>, u64)>,
    clock: u64,
}

static PLANS: LazyLock<Mutex<Plans>> = LazyLock::new(Mutex::default);

/// The plan for a key, made by `make` if it is not known. The least recently used one makes room.
pub(crate) fn plan(key: Key, make: impl FnOnce(&Key) -> Result<Plan>) -> Result<Arc<Plan>> {
    // A poisoned lock guards nothing but complete entries.
    let lock = || PLANS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    {
        let mut plans = lock();
        plans.clock += 1;
        let now = plans.clock;
        if let Some((plan, used)) = plans.of.get_mut(&key) {
            *used = now;
            return Ok(plan.clone());
        }
    }
    let plan = Arc::new(make(&key)?);
    let mut plans = lock();
    if plans.of.len() >= CAPACITY {
        let oldest = plans.of.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            plans.of.remove(&oldest);
        }
    }
    let now = plans.clock;
    plans.of.insert(key, (plan.clone(), now));
    Ok(plan)
}

/// Number of plans kept at the moment.
pub fn cached_plans() -> usize {
    PLANS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).of.len()
}

/// Forgets all plans.
pub fn clear_plans() {
    PLANS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).of.clear();
}
