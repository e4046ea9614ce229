//! Graded tensors with named legs.

use std::fmt;

use t4a_diff::Array;

use super::{GradedTensor, einsum};
use crate::error::{Result, StructuredError};
use crate::sector::Sector;

/// Graded tensor with a name for each leg. Legs with equal names are contracted.
///
/// ```
/// use t4a_structured::{Direction, GradedTensor, Leg, Named, U1};
/// use t4a_tensor::DType;
/// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
/// let one = GradedTensor::identity(&[spin], DType::F64)?;
/// let a = Named::new(one.clone(), ["i", "j"])?;
/// let b = Named::new(one, ["j", "k"])?;
/// let c = Named::contract(&[&a, &b], &["k", "i"])?;
/// assert_eq!(c.names(), ["k", "i"]);
/// assert!(c.to_string().starts_with("k: in {-1: 1, 1: 1}\ni: out {-1: 1, 1: 1}"));
/// # Ok::<(), t4a_structured::StructuredError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Named<S, A> {
    tensor: GradedTensor<S, A>,
    names: Vec<String>,
}

impl<S: Sector, A: Array> Named<S, A> {
    /// Tensor with the names of its legs.
    ///
    /// # Errors
    /// `Rank`; `Invalid` for a repeated name.
    pub fn new(
        tensor: GradedTensor<S, A>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self> {
        let op = "names of legs";
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let (required, given) = (tensor.spec().legs().len(), names.len());
        if required != given {
            return Err(StructuredError::Rank { op, required, given });
        }
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                let message = format!("the name {name} is repeated");
                return Err(StructuredError::Invalid { op, message });
            }
        }
        Ok(Self { tensor, names })
    }

    /// Names in the order of the legs.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Tensor without names.
    pub fn tensor(&self) -> &GradedTensor<S, A> {
        &self.tensor
    }

    /// Tensor without names.
    pub fn into_tensor(self) -> GradedTensor<S, A> {
        self.tensor
    }

    /// Axis of the leg with this name.
    ///
    /// # Errors
    /// `Invalid` if no leg has this name.
    pub fn axis(&self, name: &str) -> Result<usize> {
        let unknown = || {
            let message = format!("no leg is named {name}; names are {}", self.names.join(", "));
            StructuredError::Invalid { op: "names of legs", message }
        };
        self.names.iter().position(|own| own == name).ok_or_else(unknown)
    }

    /// Renames a leg.
    ///
    /// # Errors
    /// As [`Named::axis`] and [`Named::new`].
    pub fn rename(mut self, from: &str, to: impl Into<String>) -> Result<Self> {
        let axis = self.axis(from)?;
        self.names[axis] = to.into();
        Self::new(self.tensor, self.names)
    }

    /// Permutes the legs into this order; the first `rows` of them become rows.
    ///
    /// # Errors
    /// As [`Named::axis`]; as [`GradedTensor::permute`].
    pub fn permute(&self, names: &[&str], rows: usize) -> Result<Self> {
        let axes = names.iter().map(|name| self.axis(name)).collect::<Result<Vec<_>>>()?;
        Self::new(self.tensor.permute(&axes, rows)?, names.iter().copied())
    }

    /// Contracts the network in which legs with equal names are summed; the free legs are in the order of `output`.
    ///
    /// # Errors
    /// As [`einsum`], including names of `output` that no leg has.
    pub fn contract(tensors: &[&Self], output: &[&str]) -> Result<Self> {
        let mut all: Vec<&str> = Vec::new();
        for tensor in tensors {
            for name in &tensor.names {
                if !all.contains(&name.as_str()) {
                    all.push(name);
                }
            }
        }
        let mut terms = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            terms.push(labels(&all, tensor.names.iter().map(String::as_str))?);
        }
        let text = format!("{}->{}", terms.join(","), labels(&all, output.iter().copied())?);
        let operands: Vec<&GradedTensor<S, A>> = tensors.iter().map(|x| &x.tensor).collect();
        Self::new(einsum(&text, &operands)?, output.iter().copied())
    }
}

/// Labels of an einsum for these names: printable characters beyond ASCII.
fn labels<'a>(all: &[&str], names: impl Iterator<Item = &'a str>) -> Result<String> {
    let label = |name: &str| {
        let unknown = || {
            let message = format!("no leg is named {name}; names are {}", all.join(", "));
            StructuredError::Invalid { op: "names of legs", message }
        };
        let place = all.iter().position(|other| *other == name).ok_or_else(unknown)?;
        // Hangul syllables: 11172 consecutive letters.
        let limit = 11_172;
        let too_large = StructuredError::TooLarge { op: "names of legs", what: "names", limit };
        char::from_u32(0xac00 + place as u32).filter(|_| place < limit).ok_or(too_large)
    };
    names.map(label).collect()
}

impl<S: Sector, A: Array> fmt::Display for Named<S, A> {
    /// Prints each leg with its name on one line, then the tensor.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, leg) in self.names.iter().zip(self.tensor.spec().legs()) {
            writeln!(f, "{name}: {leg}")?;
        }
        write!(f, "{}", self.tensor)
    }
}
