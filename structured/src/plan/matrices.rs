//! Matrices one behind the other in a flat buffer, and in which order results of them lie.

use serde::{Deserialize, Serialize};

use crate::error::{Result, StructuredError};
use crate::leg::MOST_ELEMENTS;

/// Row-major matrices of these sizes one behind the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Data", into = "Data")]
pub struct MatrixList {
    sizes: Vec<[usize; 2]>,
    orders: Vec<Vec<u32>>,
    len: usize,
}

#[derive(Serialize, Deserialize)]
struct Data {
    sizes: Vec<[usize; 2]>,
    orders: Vec<Vec<u32>>,
}

impl From<MatrixList> for Data {
    fn from(MatrixList { sizes, orders, .. }: MatrixList) -> Self {
        Self { sizes, orders }
    }
}

impl TryFrom<Data> for MatrixList {
    type Error = StructuredError;

    fn try_from(Data { sizes, orders }: Data) -> Result<Self> {
        Self::new(sizes, orders)
    }
}

impl MatrixList {
    /// Matrices of these sizes; for each result of an operation on each of them the order in which those of
    /// the matrices lie.
    ///
    /// # Errors
    /// `Corrupt` for orders that are no permutations; `TooLarge`.
    pub fn new(sizes: Vec<[usize; 2]>, orders: Vec<Vec<u32>>) -> Result<Self> {
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..sizes.len() as u32) {
                return Err(StructuredError::Corrupt { what: "an order that is no permutation" });
            }
        }
        let mut len = 0usize;
        for [m, n] in &sizes {
            let end = m.checked_mul(*n).and_then(|size| len.checked_add(size));
            let limit = MOST_ELEMENTS;
            let too_large = StructuredError::TooLarge { op: "matrices", what: "elements", limit };
            len = end.filter(|&n| n <= limit).ok_or(too_large)?;
        }
        Ok(Self { sizes, orders, len })
    }

    /// Rows and columns of each.
    pub fn sizes(&self) -> &[[usize; 2]] {
        &self.sizes
    }

    /// By result, which matrix comes first, second, ….
    pub fn orders(&self) -> &[Vec<u32>] {
        &self.orders
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
