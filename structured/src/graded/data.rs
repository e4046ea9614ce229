//! Serialisation of legs, structures and tensors: symmetry, legs, flux, number of row legs, and elements.
//! Deserialised data passes the same checks as constructor arguments.
//!
//! A structure enumerates the combinations of sectors of its legs, and few bytes can describe very many combinations
//! (42 legs of two sectors and one element). The number of combinations is therefore bounded by the number of
//! elements; a tensor beyond the bound is neither written nor read.

use std::cell::Cell;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use t4a_diff::Array;
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::leg::{Direction, Leg};
use crate::sector::Sector;
use crate::spec::Spec;

/// Number of sector entries that any tensor may enumerate, regardless of its number of elements.
const FREE_ENTRIES: usize = 1 << 20;
/// Additional sector entries per element and leg.
const ENTRIES_PER_ELEMENT: usize = 8;
/// Maximum depth of nested fusions; deserialisation recurses to this depth.
const DEEPEST: usize = 100;

/// Name of a symmetry in serialised data; deserialising another name is an error.
struct Symmetry<S>(PhantomData<fn() -> S>);

impl<S> Default for Symmetry<S> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<S: Sector> Serialize for Symmetry<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        S::symmetry().serialize(serializer)
    }
}

impl<'de, S: Sector> Deserialize<'de> for Symmetry<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (given, required) = (String::deserialize(deserializer)?, S::symmetry());
        match given == required {
            true => Ok(Self::default()),
            false => Err(D::Error::custom(StructuredError::Symmetry { given, required })),
        }
    }
}

/// Serialised form of a leg with its symmetry.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "S: Sector + Serialize", deserialize = "S: Sector + Deserialize<'de>"))]
struct NamedLeg<S> {
    symmetry: Symmetry<S>,
    leg: LegData<S>,
}

/// Serialised form of a structure.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "S: Sector + Serialize", deserialize = "S: Sector + Deserialize<'de>"))]
struct SpecData<S> {
    symmetry: Symmetry<S>,
    legs: Vec<LegData<S>>,
    flux: S,
    rows: usize,
}

/// Serialised form of a leg without its symmetry.
#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "S: Deserialize<'de>"))]
struct LegData<S> {
    direction: Direction,
    sectors: Vec<(S, usize)>,
    /// Legs that a fused leg was made from.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "nested")]
    fused: Option<Vec<LegData<S>>>,
}

/// Deserialises the legs of a fused leg, up to the maximum depth.
fn nested<'de, S, D>(deserializer: D) -> Result<Option<Vec<LegData<S>>>, D::Error>
where
    S: Deserialize<'de>,
    D: Deserializer<'de>,
{
    thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });
    let depth = DEPTH.get();
    if depth > DEEPEST {
        return Err(D::Error::custom(TOO_DEEP));
    }
    DEPTH.set(depth + 1);
    let legs = Option::deserialize(deserializer);
    DEPTH.set(depth);
    legs
}

const TOO_DEEP: StructuredError =
    StructuredError::TooLarge { op: "stored tensor", what: "levels of fused legs", limit: DEEPEST };

/// Number of sector entries needed to enumerate the sector combinations of these legs and of the legs they were fused
/// from.
fn entries<S>(legs: &[LegData<S>], depth: usize) -> Result<usize> {
    if depth > DEEPEST {
        return Err(TOO_DEEP);
    }
    let rows = legs.iter().fold(1usize, |n, leg| n.saturating_mul(leg.sectors.len()));
    let own = rows.saturating_mul(1 + legs.len());
    legs.iter()
        .filter_map(|leg| leg.fused.as_deref())
        .try_fold(own, |sum, parts| Ok(sum.saturating_add(entries(parts, depth + 1)?)))
}

/// Elements of an array.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ElementData {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "S: Sector + Serialize", deserialize = "S: Sector + Deserialize<'de>"))]
struct GradedData<S> {
    /// Missing in data of earlier versions.
    #[serde(default)]
    symmetry: Symmetry<S>,
    legs: Vec<LegData<S>>,
    flux: S,
    rows: usize,
    re: ElementData,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    im: Option<ElementData>,
}

impl<S: Sector> LegData<S> {
    fn new(leg: &Leg<S>) -> Self {
        let fused = leg.fusion().map(|legs| legs.iter().map(Self::new).collect());
        Self { direction: leg.direction(), sectors: leg.sectors().to_vec(), fused }
    }

    fn read(self) -> Result<Leg<S>> {
        let Some(parts) = self.fused else { return Leg::sorted(self.sectors, self.direction) };
        let parts: Vec<Leg<S>> = parts.into_iter().map(Self::read).collect::<Result<_>>()?;
        let leg = Leg::fused(&parts, self.direction)?;
        match leg.sectors() == self.sectors {
            true => Ok(leg),
            false => Err(StructuredError::Corrupt { what: "a fused leg with sectors of its own" }),
        }
    }
}

/// Checks the bound on the number of sector combinations.
///
/// # Errors
/// `Rows`; `TooLarge`.
fn check<S>(legs: &[LegData<S>], rows: usize, elements: usize) -> Result<()> {
    let (op, rank) = ("stored tensor", legs.len());
    let (above, below) =
        legs.split_at_checked(rows).ok_or(StructuredError::Rows { op, rows, rank })?;
    let given = entries(above, 0)?.saturating_add(entries(below, 0)?);
    let per_element = ENTRIES_PER_ELEMENT.saturating_mul(1 + rank);
    let limit = elements.saturating_mul(per_element).saturating_add(FREE_ENTRIES);
    if given > limit {
        let what = "combinations of sectors, times legs,";
        return Err(StructuredError::TooLarge { op, what, limit });
    }
    Ok(())
}

impl<S: Sector> SpecData<S> {
    fn read(self) -> Result<Spec<S>> {
        let legs = self.legs.into_iter().map(LegData::read).collect::<Result<_>>()?;
        Spec::new(legs, self.flux, self.rows)
    }
}

/// Legs in serialised form.
fn legs_of<S: Sector>(spec: &Spec<S>) -> Vec<LegData<S>> {
    spec.legs().iter().map(LegData::new).collect()
}

/// Serialised as symmetry, direction, sectors with dimensions, and the legs it was fused from.
impl<S: Sector + Serialize> Serialize for Leg<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let data = NamedLeg { symmetry: Symmetry::default(), leg: LegData::new(self) };
        check(std::slice::from_ref(&data.leg), 1, 0).map_err(W::Error::custom)?;
        data.serialize(serializer)
    }
}

impl<'de, S: Sector + Deserialize<'de>> Deserialize<'de> for Leg<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let leg = NamedLeg::<S>::deserialize(deserializer)?.leg;
        let read = || {
            check(std::slice::from_ref(&leg), 1, 0)?;
            leg.read()
        };
        read().map_err(D::Error::custom)
    }
}

/// Serialised as symmetry, legs, flux and number of row legs. The number of sector combinations is bounded as for a
/// tensor without elements.
impl<S: Sector + Serialize> Serialize for Spec<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let (legs, flux, rows) = (legs_of(self), self.flux(), self.rows());
        check(&legs, rows, 0).map_err(W::Error::custom)?;
        SpecData { symmetry: Symmetry::default(), legs, flux, rows }.serialize(serializer)
    }
}

impl<'de, S: Sector + Deserialize<'de>> Deserialize<'de> for Spec<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = SpecData::<S>::deserialize(deserializer)?;
        let read = || {
            check(&data.legs, data.rows, 0)?;
            data.read()
        };
        read().map_err(D::Error::custom)
    }
}

impl ElementData {
    fn len(&self) -> usize {
        match self {
            Self::F32(x) => x.len(),
            Self::F64(x) => x.len(),
        }
    }

    pub(crate) fn new<A: Array>(x: &A) -> Result<Self> {
        let x = x.elements()?.to_contiguous()?;
        match x.dtype() {
            DType::F32 => Ok(Self::F32(x.typed::<f32>()?.to_vec()?)),
            DType::F64 => Ok(Self::F64(x.typed::<f64>()?.to_vec()?)),
            dtype => Err(crate::kernels::unsupported("serialize", dtype)),
        }
    }

    pub(crate) fn read(self) -> Result<AnyTensor> {
        Ok(match self {
            Self::F32(x) => {
                let len = x.len();
                Tensor::from_vec(x, &[len])?.into()
            }
            Self::F64(x) => {
                let len = x.len();
                Tensor::from_vec(x, &[len])?.into()
            }
        })
    }
}

impl<S: Sector + Serialize, A: Array> Serialize for GradedTensor<S, A> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let (spec, error) = (&self.spec, W::Error::custom::<StructuredError>);
        let im = self.im.as_ref().map(ElementData::new).transpose().map_err(error)?;
        let data = GradedData {
            symmetry: Symmetry::default(),
            legs: legs_of(spec),
            flux: spec.flux(),
            rows: spec.rows(),
            re: ElementData::new(&self.re).map_err(error)?,
            im,
        };
        check(&data.legs, data.rows, data.re.len()).map_err(error)?;
        data.serialize(serializer)
    }
}

impl<'de, S: Sector + DeserializeOwned> Deserialize<'de> for GradedTensor<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = GradedData::<S>::deserialize(deserializer)?;
        let read = || {
            check(&data.legs, data.rows, data.re.len())?;
            let (symmetry, legs, flux, rows) = (data.symmetry, data.legs, data.flux, data.rows);
            let spec = SpecData { symmetry, legs, flux, rows }.read()?;
            let im = data.im.map(ElementData::read).transpose()?;
            Self::new(spec, data.re.read()?.into(), im.map(Into::into))
        };
        read().map_err(D::Error::custom)
    }
}
