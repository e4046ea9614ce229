//! States as data of serde: their tensors, which pass the same checks as arguments.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector};

use super::Mps;

impl<S: Sector + Serialize, A: Array> Serialize for Mps<S, A> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        self.tensors.serialize(serializer)
    }
}

/// The orthogonality centre is not stored.
impl<'de, S: Sector + DeserializeOwned> Deserialize<'de> for Mps<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::<GradedTensor<S>>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
