//! Plan cache: the same subscripts on the same shapes are planned once.

use std::sync::{Arc, LazyLock, Mutex};

use hashbrown::{Equivalent, HashMap};

use crate::error::Result;
use crate::label::Label;
use crate::path::Path;
use crate::plan::Plan;
use crate::search::Optimizer;
use crate::subscripts::Subscripts;

/// Maximum number of cached plans.
const CAPACITY: usize = 256;

/// Budget in bytes, element size, and true if the caller set the budget.
type Budget = (usize, usize, bool);

/// All inputs of a plan, borrowed, so that a lookup does not copy.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct PlanKey<'a> {
    pub(crate) subscripts: &'a Subscripts,
    pub(crate) shapes: &'a [&'a [usize]],
    pub(crate) sizes: &'a [(Label, usize)],
    pub(crate) path: Option<&'a Path>,
    pub(crate) optimizer: Optimizer,
    /// `None` if the budget does not bind.
    pub(crate) budget: Option<Budget>,
}

/// An owned [`PlanKey`]: the same fields in the same order, so that both have the same hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnedKey {
    subscripts: Subscripts,
    shapes: Vec<Vec<usize>>,
    sizes: Vec<(Label, usize)>,
    path: Option<Path>,
    optimizer: Optimizer,
    budget: Option<Budget>,
}

impl PlanKey<'_> {
    fn to_kept(self) -> OwnedKey {
        OwnedKey {
            subscripts: self.subscripts.clone(),
            shapes: self.shapes.iter().map(|shape| shape.to_vec()).collect(),
            sizes: self.sizes.to_vec(),
            path: self.path.cloned(),
            optimizer: self.optimizer,
            budget: self.budget,
        }
    }
}

impl Equivalent<OwnedKey> for PlanKey<'_> {
    fn equivalent(&self, kept: &OwnedKey) -> bool {
        *self.subscripts == kept.subscripts
            && self.shapes == kept.shapes
            && self.sizes == kept.sizes
            && self.path == kept.path.as_ref()
            && self.optimizer == kept.optimizer
            && self.budget == kept.budget
    }
}

#[derive(Default)]
struct PlanCache {
    of: HashMap<OwnedKey, (Arc<Plan>, u64)>,
    clock: u64,
}

static PLANS: LazyLock<Mutex<PlanCache>> = LazyLock::new(Mutex::default);

/// The plan for a key, from the cache or from `make`. A full cache evicts the least recently used plan.
pub(crate) fn plan(key: PlanKey<'_>, make: impl FnOnce() -> Result<Plan>) -> Result<Arc<Plan>> {
    // A poisoned lock is valid: entries are inserted complete.
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
    let plan = Arc::new(make()?);
    let mut plans = lock();
    if plans.of.len() >= CAPACITY {
        let oldest = plans.of.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            plans.of.remove(&oldest);
        }
    }
    let now = plans.clock;
    plans.of.insert(key.to_kept(), (plan.clone(), now));
    Ok(plan)
}

/// Number of cached plans.
pub fn cached_plans() -> usize {
    PLANS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).of.len()
}

/// Clears the plan cache.
pub fn clear_plans() {
    PLANS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).of.clear();
}
