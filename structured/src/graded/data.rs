//! Tensors as data: legs, charge, rows, and the elements. What is read is checked as what is given.

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

/// A leg as data.
#[derive(Serialize, Deserialize)]
struct LegData<S> {
    direction: Direction,
    sectors: Vec<(S, usize)>,
    /// What it was fused of.
    #[serde(skip_serializing_if = "Option::is_none")]
    fused: Option<Vec<LegData<S>>>,
}

/// The elements of an array.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Elements {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

#[derive(Serialize, Deserialize)]
struct TensorData<S> {
    legs: Vec<LegData<S>>,
    flux: S,
    rows: usize,
    re: Elements,
    #[serde(skip_serializing_if = "Option::is_none")]
    im: Option<Elements>,
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

impl Elements {
    fn new<A: Array>(x: &A) -> Result<Self> {
        let x = x.elements()?.to_contiguous()?;
        match x.dtype() {
            DType::F32 => Ok(Self::F32(x.typed::<f32>()?.to_vec()?)),
            DType::F64 => Ok(Self::F64(x.typed::<f64>()?.to_vec()?)),
            dtype => Err(crate::kernels::unsupported("serialize", dtype)),
        }
    }

    fn read(self) -> Result<AnyTensor> {
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
        let im = self.im.as_ref().map(Elements::new).transpose().map_err(error)?;
        let data = TensorData {
            legs: spec.legs().iter().map(LegData::new).collect(),
            flux: spec.flux(),
            rows: spec.rows(),
            re: Elements::new(&self.re).map_err(error)?,
            im,
        };
        data.serialize(serializer)
    }
}

impl<'de, S: Sector + DeserializeOwned> Deserialize<'de> for GradedTensor<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = TensorData::<S>::deserialize(deserializer)?;
        let read = || {
            let legs = data.legs.into_iter().map(LegData::read).collect::<Result<_>>()?;
            let spec = Spec::new(legs, data.flux, data.rows)?;
            let im = data.im.map(Elements::read).transpose()?;
            Self::new(spec, data.re.read()?.into(), im.map(Into::into))
        };
        read().map_err(D::Error::custom)
    }
}
