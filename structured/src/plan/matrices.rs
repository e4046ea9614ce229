//! Consecutive matrices in a flat buffer, and the orders of the results of operations on them.

use serde::{Deserialize, Serialize};

use crate::error::{Result, StructuredError};
use crate::leg::MOST_ELEMENTS;

/// Consecutive row-major matrices of these sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "MatricesData", into = "MatricesData")]
pub struct MatrixList {
    sizes: Vec<[usize; 2]>,
    orders: Vec<Vec<u32>>,
    len: usize,
}

#[derive(Serialize, Deserialize)]
struct MatricesData {
    sizes: Vec<[usize; 2]>,
    orders: Vec<Vec<u32>>,
}

impl From<MatrixList> for MatricesData {
    fn from(MatrixList { sizes, orders, .. }: MatrixList) -> Self {
        Self { sizes, orders }
    }
}

impl TryFrom<MatricesData> for MatrixList {
    type Error = StructuredError;

    fn try_from(MatricesData { sizes, orders }: MatricesData) -> Result<Self> {
        Self::new(sizes, orders)
    }
}

impl MatrixList {
    /// Matrices of these sizes. For each result of an operation on every matrix, `orders` gives the order in which
    /// the results of the matrices are stored.
    ///
    /// # Errors
    /// `Corrupt` for orders that are not permutations; `TooLarge`.
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

    /// Rows and columns of each matrix.
    pub fn sizes(&self) -> &[[usize; 2]] {
        &self.sizes
    }

    /// For each result, the indices of the matrices in storage order.
    pub fn orders(&self) -> &[Vec<u32>] {
        &self.orders
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
