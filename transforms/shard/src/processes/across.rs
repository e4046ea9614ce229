//! Collectives of devices in several processes: messages for groups that span several processes, tensor handles as in
//! one process for the others. Chunks are added in mesh order, so results are bitwise those of one process.

use burn_backend::Backend;
use burn_t4a_compile::graph::{TensorType, Value};

use super::board::Board;
use crate::collectives::{Collectives, DeviceGroup, Local};
use crate::error::{Result, ShardError};
use crate::mesh::Mesh;
use crate::parts::{cat, decode, encode, reduce};
use crate::plan::ExecutionPlan;
use crate::rules::Reduce;
use crate::spec::Split;
use crate::traffic::{CommunicationStep, DeviceAssignment, MessageTag, bytes_of, chunk};

pub(crate) struct Across<'a, B: Backend> {
    pub(crate) board: &'a Board,
    pub(crate) layout: DeviceAssignment,
    pub(crate) plan: &'a ExecutionPlan<B>,
    pub(crate) local: &'a Local<B>,
    /// Backend device of received tensors.
    pub(crate) device: B::Device,
}

fn failed(device: usize, message: String) -> ShardError {
    ShardError::Device { device, operation: "a collective".to_owned(), message }
}

impl<B: Backend> Across<'_, B> {
    fn decoded(&self, device: usize, meta: &TensorType, bytes: Vec<u8>) -> Result<Value<B>> {
        decode(&self.device, meta, bytes).map_err(|message| failed(device, message))
    }

    /// Receives the tensor with this tag.
    fn taken(&self, device: usize, tag: MessageTag, meta: &TensorType) -> Result<Value<B>> {
        self.decoded(device, meta, self.board.take(tag)?)
    }
}

fn encoded<B: Backend>(device: usize, x: Value<B>) -> Result<Vec<u8>> {
    encode(x).map_err(|message| failed(device, message))
}

impl<B: Backend> Collectives<B> for Across<'_, B> {
    fn gather(&self, row: DeviceGroup<'_>, x: Value<B>, axis: usize) -> Result<Value<B>> {
        let devices = row.devices();
        if !self.layout.crosses(&devices) {
            return self.local.gather(row, x, axis);
        }
        let (device, meta) = (row.device, x.meta());
        let tag = |device| MessageTag::new(row.meeting, 0, device);
        let bytes = encoded(device, x.clone())?;
        let empty = bytes.is_empty();
        self.board.post(tag(device), bytes)?;
        let one = |&other: &usize| {
            if other == device || empty {
                return Ok(x.clone());
            }
            self.taken(device, tag(other), &meta)
        };
        Ok(cat(devices.iter().map(one).collect::<Result<_>>()?, axis))
    }

    fn reduce(&self, row: DeviceGroup<'_>, x: Value<B>, how: Reduce) -> Result<Value<B>> {
        let devices = row.devices();
        if !self.layout.crosses(&devices) {
            return self.local.reduce(row, x, how);
        }
        let (device, meta, d) = (row.device, x.meta(), row.members());
        let n: usize = meta.shape.iter().product();
        let size = meta.dtype.size();
        let bytes = encoded(device, x.clone())?;
        let part = |rank: usize| {
            let part = chunk(n, d, rank);
            part.start * size..part.end * size
        };
        let tag = |phase, device| MessageTag::new(row.meeting, phase, device);
        for (rank, &other) in devices.iter().enumerate() {
            let part = part(rank);
            if other != device && !part.is_empty() {
                self.board.post(tag(0, device).to(other), bytes[part].to_vec())?;
            }
        }
        let own = chunk(n, d, row.rank());
        let mut sums = bytes;
        if !own.is_empty() {
            let meta = TensorType { shape: vec![own.len()], dtype: meta.dtype };
            let one = |&other: &usize| {
                if other == device {
                    return self.decoded(device, &meta, sums[part(row.rank())].to_vec());
                }
                self.taken(device, tag(0, other).to(device), &meta)
            };
            let all = devices.iter().map(one).collect::<Result<_>>()?;
            let sum = encoded(device, reduce(all, how))?;
            sums[part(row.rank())].copy_from_slice(&sum);
            self.board.post(tag(1, device), sum)?;
        }
        for (rank, &other) in devices.iter().enumerate() {
            let part = part(rank);
            if other != device && !part.is_empty() {
                sums[part].copy_from_slice(&self.board.take(tag(1, other))?);
            }
        }
        self.decoded(device, &meta, sums)
    }

    fn share(&self, device: usize, meeting: usize, own: Vec<Value<B>>) -> Result<Vec<Value<B>>> {
        // One device per process receives the tensors and shares them within the process.
        let first = self.layout.devices(self.board.rank).start;
        let all = if device == 0 {
            for (k, x) in own.iter().enumerate() {
                let bytes = encoded(device, x.clone())?;
                self.board.post(MessageTag::new(meeting, k, 0), bytes)?;
            }
            own
        } else if device == first {
            let CommunicationStep::Share { metas } = &self.plan.meetings[meeting] else {
                return Ok(own);
            };
            let one = |(k, meta): (usize, &TensorType)| match bytes_of(meta) {
                0 => self.decoded(device, meta, Vec::new()),
                _ => self.taken(device, MessageTag::new(meeting, k, 0), meta),
            };
            metas.iter().enumerate().map(one).collect::<Result<_>>()?
        } else {
            Vec::new()
        };
        self.local.share(device - first, meeting, all)
    }

    fn complete(
        &self,
        meeting: usize,
        split: &Split,
        parts: &mut [Option<Value<B>>],
    ) -> Result<()> {
        let mesh: &Mesh = &self.plan.mesh;
        let own = self.layout.devices(self.board.rank);
        let Some(like) = parts[own.start].clone() else { return Ok(()) };
        let meta = like.meta();
        let CommunicationStep::Complete { bytes, .. } = self.plan.meetings[meeting] else {
            return Ok(());
        };
        for device in (0..parts.len()).filter(|&device| mesh.first(device, split) == device) {
            if own.contains(&device) && bytes > 0 {
                let x = parts[device].clone();
                let x = x.unwrap_or_else(|| unreachable!("devices have their parts"));
                let bytes = encoded(device, x)?;
                self.board.post(MessageTag::new(meeting, 0, device), bytes)?;
            }
        }
        for device in (0..parts.len()).filter(|&device| mesh.first(device, split) == device) {
            let replica = own.clone().find(|&other| mesh.first(other, split) == device);
            parts[device] = match replica {
                Some(other) => parts[other].clone(),
                None if bytes == 0 => Some(like.clone()),
                None => Some(self.taken(own.start, MessageTag::new(meeting, 0, device), &meta)?),
            };
        }
        Ok(())
    }

    fn fail(&self, failure: ShardError) {
        self.board.fail(failure);
    }

    fn failure(&self) -> Option<ShardError> {
        self.board.failure()
    }
}
