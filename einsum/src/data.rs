//! Serialised form of plans: the inputs that determine a plan; everything else is recomputed.

use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{EinsumError, Result};
use crate::label::Label;
use crate::network::{Ids, Network};
use crate::path::{self, Path};
use crate::plan::Plan;
use crate::subscripts::Subscripts;

/// Labels and sizes of axes.
type LabelledAxes = Vec<(Label, usize)>;

#[derive(Serialize, Deserialize)]
struct Data {
    operands: Vec<LabelledAxes>,
    result: LabelledAxes,
    /// In the order that numbers the terms.
    labels: Vec<Label>,
    path: Path,
    sliced: Vec<Label>,
    budget: Option<usize>,
    /// True if a summed label has size 0.
    empty: bool,
}

fn zipped(labels: &[Label], shape: &[usize]) -> LabelledAxes {
    labels.iter().copied().zip(shape.iter().copied()).collect()
}

impl From<&Plan> for Data {
    fn from(plan: &Plan) -> Self {
        let network = &plan.network;
        let operands = network.terms.iter().zip(&network.shapes);
        Self {
            operands: operands.map(|(labels, shape)| zipped(labels, shape)).collect(),
            result: zipped(&network.output_term, &network.result_shape()),
            labels: network.names.clone(),
            path: plan.path().clone(),
            sliced: plan.sliced(),
            budget: plan.budget(),
            empty: plan.is_empty(),
        }
    }
}

impl TryFrom<Data> for Plan {
    type Error = EinsumError;

    fn try_from(data: Data) -> Result<Self> {
        let (terms, shapes): (Vec<Vec<Label>>, Vec<Vec<usize>>) =
            data.operands.into_iter().map(|axes| axes.into_iter().unzip()).unzip();
        let output: Vec<Label> = data.result.iter().map(|(label, _)| *label).collect();
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let subscripts = Subscripts::new(terms, output);
        let mut network = Network::ordered(&subscripts, &shapes, &data.result, &data.labels)?;
        network.is_empty |= data.empty;
        let found = path::resolve(&data.path, &network.inputs, &network.output, &network.sizes)?;
        let id = |label: &Label| {
            let place = network.names.iter().position(|known| known == label);
            place.map(|id| id as u32).ok_or(EinsumError::UnknownOutputLabel { label: *label })
        };
        let sliced: Ids = data.sliced.iter().map(id).collect::<Result<_>>()?;
        let plan = Plan::new(network, found).with_slices(sliced, data.budget)?;
        plan.check_sizes()?;
        Ok(plan)
    }
}

pub(crate) fn serialize<S: Serializer>(plan: &Arc<Plan>, to: S) -> Result<S::Ok, S::Error> {
    Data::from(&**plan).serialize(to)
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Arc<Plan>, D::Error> {
    Plan::try_from(Data::deserialize(from)?).map(Arc::new).map_err(D::Error::custom)
}
