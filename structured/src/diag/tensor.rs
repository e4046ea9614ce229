//! Operations on generalised diagonal tensors other than einsum.

use std::fmt;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use t4a_diff::{Array, Eager};
use t4a_einsum::{FloatSemiring, contract_arrays};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::{DiagTensor, diag_einsum, invalid, letter};
use crate::entries::{check_stored, mapped};
use crate::error::{Result, StructuredError};
use crate::graded::data::ElementData;
use crate::operation::{FrobeniusNorm, InnerProduct, one};
use crate::picture::picture;

impl<A: Array> DiagTensor<A> {
    /// Tensor with `axes` axes of size `n` whose entries with all indices equal are `number`, an array of one
    /// element. The gradient with respect to the number is a sum.
    ///
    /// # Errors
    /// `Invalid` for no axes; `Shape` for an array of more than one element.
    pub fn delta(number: &A, n: usize, axes: usize) -> Result<Self> {
        if number.shape() != [1] {
            let (required, given) = (vec![1], number.shape());
            return Err(StructuredError::Shape { op: "delta", required, given });
        }
        Self::from_diag(number.expand(&[n]), axes)
    }

    /// Extracts the payload of a dense array: its entries where the indices of each class are equal.
    ///
    /// # Errors
    /// As [`DiagTensor::new`]; `Invalid` for axes of one class with different sizes.
    pub fn diag_of(dense: &A, classes: Vec<usize>) -> Result<Self> {
        let shape = dense.shape();
        if classes.len() != shape.len() {
            return Err(invalid(format!("{} classes of {} axes", classes.len(), shape.len())));
        }
        let all: String = classes.iter().map(|&class| letter(class)).collect();
        let count = classes.iter().max().map_or(0, |most| most + 1);
        let payload: String = (0..count).map(letter).collect();
        for (axis, class) in classes.iter().enumerate() {
            let first = classes.iter().position(|other| other == class).unwrap_or(axis);
            if shape[first] != shape[axis] {
                return Err(invalid(format!("axes of one class of sizes {shape:?}")));
            }
        }
        let text = format!("{all}->{payload}");
        Self::new(contract_arrays(FloatSemiring::Standard, &text, &[dense])?, classes)
    }

    /// [`DiagTensor::diag_of`] of an array that is zero off the diagonals.
    ///
    /// # Errors
    /// As [`DiagTensor::diag_of`]; `NotStored` with the first entry off the diagonals that exceeds the tolerance.
    pub fn try_from_dense(dense: &A, classes: Vec<usize>, tolerance: f64) -> Result<Self> {
        let diag = Self::diag_of(dense, classes)?;
        let shape = dense.shape();
        let stored: Vec<bool> =
            (0..shape.iter().product()).map(|at| diag.stores(&shape, at)).collect();
        check_stored("try_from_dense", dense, &stored, tolerance)?;
        Ok(diag)
    }

    /// True if the entry at this index of the flat dense array is stored.
    fn stores(&self, shape: &[usize], mut at: usize) -> bool {
        let mut index = vec![None; self.sizes.len()];
        for (&class, &size) in self.classes.iter().zip(shape).rev() {
            let own = at % size;
            at /= size;
            if *index[class].get_or_insert(own) != own {
                return false;
            }
        }
        true
    }

    fn check_same(&self, op: &'static str, other: &Self) -> Result<()> {
        if self.classes != other.classes {
            let (lhs, rhs) = (format!("{:?}", self.classes), format!("{:?}", other.classes));
            return Err(StructuredError::SpecMismatch { op, lhs, rhs });
        }
        if self.sizes != other.sizes {
            let (required, given) = (self.sizes.clone(), other.sizes.clone());
            return Err(StructuredError::Shape { op, required, given });
        }
        Ok(())
    }

    /// `a + b` of tensors with equal classes.
    ///
    /// # Errors
    /// `SpecMismatch`, `Shape`.
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.check_same("add", other)?;
        Self::new(self.payload().add(&other.payload()), self.classes.clone())
    }

    /// `a − b` of tensors with equal classes.
    ///
    /// # Errors
    /// As [`DiagTensor::add`].
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.check_same("sub", other)?;
        Self::new(self.payload().sub(&other.payload()), self.classes.clone())
    }

    /// `a ∘ b` (elementwise); axes are in one class if they are so in `a` or `b`.
    ///
    /// # Errors
    /// `Invalid` for different shapes.
    pub fn mul(&self, other: &Self) -> Result<Self> {
        let axes: String = (0..self.classes.len()).map(letter).collect();
        let text = format!("{axes},{axes}->{axes}");
        diag_einsum(FloatSemiring::Standard, &text, &[self, other])
    }

    /// `c a`.
    pub fn scale(&self, c: f64) -> Self {
        Self { elements: self.elements.scale(c), ..self.clone() }
    }

    pub(super) fn flat(&self) -> A {
        self.elements.reshape(&[self.sizes.iter().product()])
    }

    /// `Σ a b` over the stored entries of tensors with equal classes; an array of one element.
    ///
    /// # Errors
    /// As [`DiagTensor::add`].
    pub fn inner(&self, other: &Self) -> Result<A> {
        self.check_same("inner", other)?;
        one(&InnerProduct { complex: false }, &[&self.flat(), &other.flat()])
    }

    /// `√Σ a²`, an array of one element. The derivative at 0 is 0.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn norm(&self) -> Result<A> {
        one(&FrobeniusNorm { complex: false }, &[&self.flat()])
    }

    /// Applies a function with `f(0) = 0` to each entry.
    ///
    /// # Errors
    /// `Invalid` if `f(0)` is not 0.
    pub fn map_entries(&self, f: impl Fn(&A) -> A) -> Result<Self> {
        Self::new(mapped("map_entries", &self.payload(), f)?, self.classes.clone())
    }

    /// Function of a diagonal matrix, such as its exponential or inverse: `f` applied to the diagonal.
    ///
    /// # Errors
    /// `Invalid` for a tensor that is not a diagonal matrix.
    pub fn map_matrix(&self, f: impl Fn(&A) -> A) -> Result<Self> {
        if self.classes != [0, 0] {
            return Err(invalid(format!(
                "a diagonal matrix (classes [0, 0]) is required, given classes {:?}",
                self.classes
            )));
        }
        Self::new(f(&self.payload()), self.classes.clone())
    }
}

impl DiagTensor {
    /// Identity matrix on the engine.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn identity(n: usize, dtype: DType) -> Result<Self> {
        let one = Tensor::from_vec(vec![1.0f64], &[1])?;
        Self::delta(&Eager::from(AnyTensor::from(one).cast(dtype)?), n, 2)
    }
}

#[derive(Serialize, Deserialize)]
struct DiagData {
    classes: Vec<usize>,
    shape: Vec<usize>,
    payload: ElementData,
}

impl<A: Array> Serialize for DiagTensor<A> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let payload = ElementData::new(&self.elements).map_err(W::Error::custom)?;
        let (classes, shape) = (self.classes.clone(), self.sizes.clone());
        DiagData { classes, shape, payload }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DiagTensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let DiagData { classes, shape, payload } = DiagData::deserialize(deserializer)?;
        let read = || -> Result<Self, StructuredError> {
            Self::new(payload.read()?.reshape(&shape)?.into(), classes)
        };
        read().map_err(D::Error::custom)
    }
}

impl<A: Array> fmt::Display for DiagTensor<A> {
    /// Prints shape, classes, the stored entries of the matrix (first half of the axes by the rest), and the fill.
    ///
    /// ```text
    /// [3, 3] of classes [0, 0]  f64
    /// │█··│
    /// │·█·│
    /// │··█│
    /// 3 of 9 entries, 33.3 %
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, classes) = (self.shape(), &self.classes);
        writeln!(f, "{shape:?} of classes {classes:?}  {}", self.elements.dtype())?;
        let payload = &self.sizes;
        let len: usize = payload.iter().product();
        let rows = shape.len().div_ceil(2);
        let size = |shape: &[usize]| shape.iter().product::<usize>();
        let stored = (0..len).map(|at| {
            let (mut rest, mut index) = (at, vec![0; payload.len()]);
            for axis in (0..payload.len()).rev() {
                index[axis] = rest % payload[axis];
                rest /= payload[axis];
            }
            let place = |axes: std::ops::Range<usize>| {
                axes.fold(0, |at, axis| at * shape[axis] + index[classes[axis]])
            };
            (place(0..rows), place(rows..shape.len()))
        });
        picture(f, size(&shape[..rows]), size(&shape[rows..]), stored)?;
        let dense: f64 = shape.iter().map(|&n| n as f64).product();
        let fill = if dense > 0.0 { 100.0 * len as f64 / dense } else { 0.0 };
        write!(f, "{len} of {dense} entries, {fill:.1} %")
    }
}
