//! Environments as data of serde: their tensors, which pass the same checks as arguments.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector};

use super::cell::CellEnvironment;
use super::symmetric::Symmetric;

impl<S: Sector + Serialize, A: Array> Serialize for Symmetric<S, A> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        (self.corner(), self.edge()).serialize(serializer)
    }
}

impl<'de, S: Sector + DeserializeOwned> Deserialize<'de> for Symmetric<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type Pair<S> = (GradedTensor<S>, GradedTensor<S>);
        let (corner, edge) = Pair::<S>::deserialize(deserializer)?;
        Self::new(corner, edge).map_err(D::Error::custom)
    }
}

impl<S: Sector + Serialize, A: Array> Serialize for CellEnvironment<S, A> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        (self.corners(), self.edges()).serialize(serializer)
    }
}

impl<'de, S: Sector + DeserializeOwned> Deserialize<'de> for CellEnvironment<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type Sides<S> = [Vec<GradedTensor<S>>; 4];
        let (corners, edges) = <(Sides<S>, Sides<S>)>::deserialize(deserializer)?;
        Self::new(corners, edges).map_err(D::Error::custom)
    }
}
