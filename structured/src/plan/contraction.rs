//! Contraction of two flat buffers: rearrange the operands into matrices, multiply, rearrange the result.
//!
//! The adjoint with respect to either operand is a contraction of the cotangent with the other operand, so
//! derivatives of every order are contractions.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use t4a_diff::array::BlockProducts;

use super::{ContractionPanels, Products, Rearrangement};
use crate::error::{Result, StructuredError};

/// `z = Q · products(P x, P′ y)`; an absent rearrangement is the identity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "ContractionData", into = "ContractionData")]
pub struct ContractionPlan {
    a: Option<Arc<Rearrangement>>,
    b: Option<Arc<Rearrangement>>,
    products: Products,
    c: Option<Arc<Rearrangement>>,
    cotangents: [OnceLock<Arc<ContractionPlan>>; 2],
    panels: OnceLock<Option<Box<ContractionPanels>>>,
    blocks: OnceLock<Arc<BlockProducts>>,
}

#[derive(Serialize, Deserialize)]
struct ContractionData {
    a: Option<Rearrangement>,
    b: Option<Rearrangement>,
    products: Products,
    c: Option<Rearrangement>,
}

impl From<ContractionPlan> for ContractionData {
    fn from(ContractionPlan { a, b, products, c, .. }: ContractionPlan) -> Self {
        let own = |plan: Option<Arc<Rearrangement>>| plan.map(Arc::unwrap_or_clone);
        Self { a: own(a), b: own(b), products, c: own(c) }
    }
}

impl TryFrom<ContractionData> for ContractionPlan {
    type Error = StructuredError;

    fn try_from(ContractionData { a, b, products, c }: ContractionData) -> Result<Self> {
        Self::new(a.map(Arc::new), b.map(Arc::new), products, c.map(Arc::new))
    }
}

impl PartialEq for ContractionPlan {
    fn eq(&self, other: &Self) -> bool {
        (&self.a, &self.b, &self.products, &self.c)
            == (&other.a, &other.b, &other.products, &other.c)
    }
}

impl Eq for ContractionPlan {}

impl Hash for ContractionPlan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.a, &self.b, &self.products, &self.c).hash(state);
    }
}

impl ContractionPlan {
    /// Contraction of these parts.
    ///
    /// # Errors
    /// `Corrupt` if the lengths of consecutive buffers differ.
    pub fn new(
        a: Option<Arc<Rearrangement>>,
        b: Option<Arc<Rearrangement>>,
        products: Products,
        c: Option<Arc<Rearrangement>>,
    ) -> Result<Self> {
        let [la, lb, lc] = products.lens();
        let enters = |plan: &Option<Arc<Rearrangement>>, len| {
            plan.as_ref().is_none_or(|plan| plan.to_len() == len && plan.is_disjoint())
        };
        let leaves = c.as_ref().is_none_or(|plan| plan.from_len() == lc);
        if !enters(&a, la) || !enters(&b, lb) || !leaves {
            return Err(StructuredError::Corrupt {
                what: "a contraction of parts that do not fit",
            });
        }
        Ok(Self::of_parts(a, b, products, c))
    }

    fn of_parts(
        a: Option<Arc<Rearrangement>>,
        b: Option<Arc<Rearrangement>>,
        products: Products,
        c: Option<Arc<Rearrangement>>,
    ) -> Self {
        let (cotangents, panels, blocks) = Default::default();
        Self { a, b, products, c, cotangents, panels, blocks }
    }

    /// Division into panels, `None` if the contraction does not use panels.
    pub(crate) fn panels(&self) -> Option<&ContractionPanels> {
        self.panels.get_or_init(|| ContractionPanels::new(self).map(Box::new)).as_deref()
    }

    /// Rearrangements of the operands; `None` for the identity.
    pub fn operands(&self) -> [Option<&Rearrangement>; 2] {
        [self.a.as_deref(), self.b.as_deref()]
    }

    /// Matrix products.
    pub fn products(&self) -> &Products {
        &self.products
    }

    /// Matrix products as a description for devices.
    pub(crate) fn blocks(&self) -> &BlockProducts {
        self.blocks.get_or_init(|| Arc::new(self.products.blocks()))
    }

    /// Rearrangement of the result; `None` for the identity.
    pub fn result(&self) -> Option<&Rearrangement> {
        self.c.as_deref()
    }

    pub(crate) fn shared(&self) -> [Option<&Arc<Rearrangement>>; 3] {
        [self.a.as_ref(), self.b.as_ref(), self.c.as_ref()]
    }

    /// Numbers of elements of the two operands and of the result.
    pub fn lens(&self) -> [usize; 3] {
        let [a, b, c] = self.products.lens();
        let enters = |plan: &Option<Arc<Rearrangement>>, len| {
            plan.as_ref().map_or(len, |plan| plan.from_len())
        };
        let c = self.c.as_ref().map_or(c, |plan| plan.to_len());
        [enters(&self.a, a), enters(&self.b, b), c]
    }

    pub(crate) fn bytes(&self) -> usize {
        let parts = self.shared().into_iter().flatten().map(|plan| plan.bytes());
        // Includes the adjoints, which are cached with the plan.
        4 * (self.products.bytes() + parts.sum::<usize>())
    }

    /// Contraction of `(C̄, B)` (i = 0) or of `(A, C̄)` (i = 1) that gives the cotangent of operand `i`.
    pub fn cotangent(&self, i: usize) -> Arc<Self> {
        let make = || {
            let adjoint =
                |plan: &Option<Arc<Rearrangement>>| plan.as_ref().map(|plan| plan.adjoint());
            let products = self.products.cotangent(i);
            let (a, b, c) = match i {
                0 => (adjoint(&self.c), self.b.clone(), adjoint(&self.a)),
                _ => (self.a.clone(), adjoint(&self.c), adjoint(&self.b)),
            };
            Arc::new(Self::of_parts(a, b, products, c))
        };
        self.cotangents[i].get_or_init(make).clone()
    }
}
