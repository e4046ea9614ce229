//! Serialisation and display of block-sparse tensors.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use t4a_diff::Array;

use super::{BlockSparseTensor, Pattern};
use crate::error::{Result, StructuredError};
use crate::graded::data::ElementData;
use crate::picture::picture;

#[derive(Serialize, Deserialize)]
struct PatternData {
    legs: Vec<Vec<usize>>,
    blocks: Vec<Vec<u32>>,
}

#[derive(Serialize, Deserialize)]
struct BlockSparseData {
    pattern: PatternData,
    data: ElementData,
}

impl From<&Pattern> for PatternData {
    fn from(pattern: &Pattern) -> Self {
        Self { legs: pattern.legs.clone(), blocks: pattern.blocks.clone() }
    }
}

impl Serialize for Pattern {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        PatternData::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PatternData { legs, blocks } = PatternData::deserialize(deserializer)?;
        Pattern::new(legs, blocks).map_err(D::Error::custom)
    }
}

impl<A: Array> Serialize for BlockSparseTensor<A> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let data = ElementData::new(&self.data).map_err(W::Error::custom)?;
        BlockSparseData { pattern: PatternData::from(&*self.pattern), data }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlockSparseTensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let BlockSparseData { pattern, data } = BlockSparseData::deserialize(deserializer)?;
        let read = || -> Result<Self, StructuredError> {
            let pattern = Pattern::new(pattern.legs, pattern.blocks)?;
            Self::new(Arc::new(pattern), data.read()?.into())
        };
        read().map_err(D::Error::custom)
    }
}

impl<A: Array> fmt::Display for BlockSparseTensor<A> {
    /// Prints the block sizes of the axes, the stored blocks of the matrix (first half of the axes by the rest), and
    /// the fill.
    ///
    /// ```text
    /// [1, 2] × [2, 1]  f64
    /// │██·│
    /// │··█│
    /// │··█│
    /// 4 of 9 entries, 44.4 %
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &*self.pattern;
        let legs: Vec<String> = p.legs.iter().map(|leg| format!("{leg:?}")).collect();
        writeln!(f, "{}  {}", legs.join(" × "), self.data.dtype())?;
        let rows = p.legs.len().div_ceil(2);
        let plan = p.to_dense().plan;
        let shape = p.shape();
        let size = |shape: &[usize]| shape.iter().product::<usize>();
        let (m, n) = (size(&shape[..rows]), size(&shape[rows..]));
        let stored = plan.pairs().map(|(_, to, _)| (to / n, to % n));
        picture(f, m, n, stored)?;
        let dense: f64 = shape.iter().map(|&n| n as f64).product();
        let fill = if dense > 0.0 { 100.0 * p.len as f64 / dense } else { 0.0 };
        write!(f, "{} of {dense} entries, {fill:.1} %", p.len)
    }
}
