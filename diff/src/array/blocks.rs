//! Products and copies of parts of flat arrays, described for devices that compute all of them in one launch.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A matrix in a flat array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatMatrix {
    /// Offset of the first element.
    pub offset: usize,
    /// Strides of rows and columns.
    pub strides: [usize; 2],
}

/// A product `A B` of parts of two arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTerm {
    /// A and B.
    pub factors: [FlatMatrix; 2],
    /// Columns of A and rows of B.
    pub steps: usize,
}

/// A matrix of the result: the sum of its terms, 0 without terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSum {
    /// Its elements.
    pub to: FlatMatrix,
    /// Rows and columns.
    pub sizes: [usize; 2],
    /// The terms.
    pub terms: Vec<BlockTerm>,
}

/// `C[c] = Σ A[a] B[b]` for the matrices of a flat array, which contain each of its elements once.
#[derive(Debug, Default)]
pub struct BlockProducts {
    /// Number of elements of the result.
    pub len: usize,
    /// Matrices of the result.
    pub sums: Vec<BlockSum>,
    /// Tables for devices.
    pub tables: DeviceTables,
}

/// A strided block that is copied, or negated: `y[o′ + Σ i s′] = ± x[o + Σ i s]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// Offsets of the first element in x and in y.
    pub offsets: [usize; 2],
    /// The copy has the opposite sign.
    pub negative: bool,
    /// Size, stride in x and stride in y of each axis, the fastest of y last.
    pub axes: Vec<[usize; 3]>,
}

/// Copies into a flat array, which write no element twice.
#[derive(Debug, Default)]
pub struct BlockCopies {
    /// Number of elements of the result.
    pub len: usize,
    /// True if the copies write every element; the others are 0.
    pub is_full: bool,
    /// The copies.
    pub copies: Vec<BlockCopy>,
    /// Tables for devices.
    pub tables: DeviceTables,
}

/// Tables made from a description, one for each device that has used it.
#[derive(Default)]
pub struct DeviceTables(Mutex<Vec<Box<dyn Any + Send + Sync>>>);

impl fmt::Debug for DeviceTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceTables")
    }
}

impl DeviceTables {
    /// The table of type T that serves a device, made by `make` at the first use.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make<T: Any + Clone + Send + Sync, E>(
        &self,
        serves: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = all.iter().filter_map(|table| table.downcast_ref::<T>());
        if let Some(table) = known.find(|table| serves(table)) {
            return Ok(table.clone());
        }
        let table = make()?;
        all.push(Box::new(table.clone()));
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_made_once_for_each_device() {
        let tables = DeviceTables::default();
        let table = |device: usize, made: &mut usize| {
            let make = || {
                *made += 1;
                Ok::<_, ()>((device, *made))
            };
            tables.get_or_make(|&(own, _): &(usize, usize)| own == device, make).unwrap()
        };
        let mut made = 0;
        assert_eq!(table(0, &mut made), (0, 1));
        assert_eq!(table(1, &mut made), (1, 2));
        assert_eq!(table(0, &mut made), (0, 1));
        let other: Result<u8, ()> = tables.get_or_make(|_| true, || Err(()));
        assert_eq!((other, made), (Err(()), 2));
    }
}
