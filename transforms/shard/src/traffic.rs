//! Message schedule between processes, complete before any call: senders look up the receivers of each message,
//! receivers reject any other message, and the plan sums the bytes.
//!
//! ```text
//! gather     each device sends its shard to every other process of its group
//! reduce     device j receives chunk j of all, adds in mesh order, and sends the sum as in a gather
//! share      the first device sends to every other process
//! complete   the first device that holds a shard sends it to the processes that do not hold it
//! ```
//!
//! For a group of devices in d processes the volume is that of ring algorithms, in two steps instead of 2(d − 1), and
//! the summation order is that of one process.

use std::collections::HashMap;
use std::ops::Range;

use burn_t4a_compile::graph::TensorType;

use crate::mesh::Mesh;
use crate::processes::HEADER;
use crate::spec::{Move, Split};

/// Assignment of devices to processes: equally many per process, in mesh order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceAssignment {
    pub(crate) processes: usize,
    /// Devices per process.
    pub(crate) each: usize,
}

impl DeviceAssignment {
    pub(crate) fn process(self, device: usize) -> usize {
        device / self.each
    }

    pub(crate) fn devices(self, process: usize) -> Range<usize> {
        process * self.each..(process + 1) * self.each
    }

    /// True if these devices belong to more than one process.
    pub(crate) fn crosses(self, devices: &[usize]) -> bool {
        devices.iter().any(|&device| self.process(device) != self.process(devices[0]))
    }
}

/// A communication step; all devices execute the steps in the same order.
#[derive(Clone, Debug)]
pub(crate) enum CommunicationStep {
    /// All-gather of shards of `bytes` bytes along mesh axis `over`.
    Gather { over: usize, bytes: usize },
    /// All-reduce of `elements` elements of `size` bytes each along mesh axis `over`.
    Reduce { over: usize, elements: usize, size: usize },
    /// Broadcast of tensors from the first device to all.
    Share { metas: Vec<TensorType> },
    /// Gather of the shards of a result, `bytes` bytes each, in every process.
    Complete { split: Split, bytes: usize },
}

/// Identifier of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageTag {
    pub(crate) meeting: u32,
    pub(crate) phase: u32,
    /// Sending device.
    pub(crate) from: u32,
    /// Receiving device, or [`ALL`] for every device that needs the message.
    pub(crate) to: u32,
}

pub(crate) const ALL: u32 = u32::MAX;

impl MessageTag {
    pub(crate) fn new(meeting: usize, phase: usize, from: usize) -> Self {
        Self { meeting: meeting as u32, phase: phase as u32, from: from as u32, to: ALL }
    }

    pub(crate) fn to(self, device: usize) -> Self {
        Self { to: device as u32, ..self }
    }
}

pub(crate) fn bytes_of(meta: &TensorType) -> usize {
    meta.shape.iter().product::<usize>() * meta.dtype.size()
}

/// Shape and dtype of the local shard of a tensor.
pub(crate) fn local(meta: &TensorType, split: &Split, mesh: &Mesh) -> TensorType {
    TensorType { shape: split.local(mesh, &meta.shape), dtype: meta.dtype }
}

/// An all-gather along tensor axis `axis` over mesh axis `over`, of parts of `bytes` bytes.
pub(crate) struct Gathering {
    pub(crate) axis: usize,
    pub(crate) over: usize,
    pub(crate) bytes: usize,
    /// Bytes that each device sends.
    pub(crate) sent: usize,
}

/// All-gathers among the moves from a split.
pub(crate) fn gatherings(
    meta: &TensorType,
    from: &Split,
    moves: &[Move],
    mesh: &Mesh,
) -> Vec<Gathering> {
    let mut split = from.clone();
    let one = |step: &Move| {
        let Move::Gather { axis, over } = *step else { return None };
        split.0[axis].pop();
        let parts = mesh.size(over);
        let bytes = bytes_of(&local(meta, &split, mesh)) / parts;
        Some(Gathering { axis, over, bytes, sent: bytes * (parts - 1) })
    };
    moves.iter().filter_map(one).collect()
}

/// Bytes that each device sends in an all-reduce of a shard over `parts` devices.
pub(crate) fn reduced(shard: &TensorType, parts: usize) -> usize {
    2 * bytes_of(shard) / parts * (parts - 1)
}

/// A message to one process.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) tag: MessageTag,
    pub(crate) process: usize,
    /// Number of devices of the process that read the message.
    pub(crate) takers: usize,
    pub(crate) bytes: usize,
}

/// Range of chunk `at` of `n` elements divided into `parts` nearly equal chunks.
pub(crate) fn chunk(n: usize, parts: usize, at: usize) -> Range<usize> {
    n * at / parts..n * (at + 1) / parts
}

/// All messages of a communication step. Messages within a process are included if the group spans several processes.
pub(crate) fn messages(
    at: usize,
    of: &CommunicationStep,
    mesh: &Mesh,
    layout: DeviceAssignment,
) -> Vec<Message> {
    let mut all = Vec::new();
    // Broadcast to these devices: one message per process.
    let broadcast = |all: &mut Vec<Message>, tag: MessageTag, bytes: usize, devices: &[usize]| {
        for process in 0..layout.processes {
            let own = layout.devices(process);
            let takers =
                devices.iter().filter(|&&d| own.contains(&d) && d != tag.from as usize).count();
            if takers > 0 && bytes > 0 {
                all.push(Message { tag, process, takers, bytes });
            }
        }
    };
    match *of {
        CommunicationStep::Gather { over, bytes } => {
            for device in 0..mesh.devices() {
                let row: Vec<usize> = mesh.row(device, over).collect();
                if layout.crosses(&row) {
                    broadcast(&mut all, MessageTag::new(at, 0, device), bytes, &row);
                }
            }
        }
        CommunicationStep::Reduce { over, elements, size } => {
            for device in 0..mesh.devices() {
                let row: Vec<usize> = mesh.row(device, over).collect();
                if !layout.crosses(&row) {
                    continue;
                }
                for (rank, &other) in row.iter().enumerate() {
                    let bytes = chunk(elements, row.len(), rank).len() * size;
                    if other == device {
                        broadcast(&mut all, MessageTag::new(at, 1, device), bytes, &row);
                    } else {
                        broadcast(
                            &mut all,
                            MessageTag::new(at, 0, device).to(other),
                            bytes,
                            &[other],
                        );
                    }
                }
            }
        }
        CommunicationStep::Share { ref metas } => {
            for process in 1..layout.processes {
                for (k, bytes) in metas.iter().map(bytes_of).enumerate() {
                    let tag = MessageTag::new(at, k, 0);
                    all.push(Message { tag, process, takers: 1, bytes });
                }
            }
            all.retain(|x| x.bytes > 0);
        }
        CommunicationStep::Complete { ref split, bytes } => {
            for device in (0..mesh.devices()).filter(|&d| mesh.first(d, split) == d) {
                for process in 0..layout.processes {
                    let has = layout.devices(process).any(|d| mesh.first(d, split) == device);
                    if !has && bytes > 0 {
                        let tag = MessageTag::new(at, 0, device);
                        all.push(Message { tag, process, takers: 1, bytes });
                    }
                }
            }
        }
    }
    all
}

/// A message that this process expects to receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// Rank of the sending process.
    pub(crate) process: usize,
    pub(crate) takers: usize,
    pub(crate) bytes: usize,
}

/// Message schedule of a call for one process.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Receiving processes of each message that this process sends.
    pub(crate) sends: HashMap<MessageTag, Vec<usize>>,
    pub(crate) awaited: HashMap<MessageTag, Awaited>,
    /// Bytes that each process sends to others.
    pub(crate) sent: Vec<usize>,
    rank: usize,
}

impl Traffic {
    pub(crate) fn new(layout: DeviceAssignment, rank: usize) -> Self {
        let sent = vec![0; layout.processes];
        Self { sends: HashMap::new(), awaited: HashMap::new(), sent, rank }
    }

    /// Adds messages; returns the bytes sent between processes, headers included.
    pub(crate) fn add(&mut self, all: &[Message], layout: DeviceAssignment) -> usize {
        let mut total = 0;
        for &Message { tag, process, takers, bytes } in all {
            let from = layout.process(tag.from as usize);
            if from != process {
                total += HEADER + bytes;
                self.sent[from] += HEADER + bytes;
                if from == self.rank {
                    self.sends.entry(tag).or_default().push(process);
                }
            }
            if process == self.rank {
                self.awaited.insert(tag, Awaited { process: from, takers, bytes });
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use burn_backend::DType;

    use super::*;

    /// Ring algorithms send the same volume: `(d − 1)/d` of the full tensor per device for a gather, twice that for a
    /// sum.
    #[test]
    fn rows_of_single_devices_send_what_rings_send() {
        let (mesh, layout) =
            (Mesh::new([("a", 4)]).unwrap(), DeviceAssignment { processes: 4, each: 1 });
        for (meeting, each, frames) in [
            (CommunicationStep::Gather { over: 0, bytes: 24 }, 3 * 24, 3),
            (CommunicationStep::Reduce { over: 0, elements: 8, size: 8 }, 2 * 3 * 16, 6),
        ] {
            let mut traffic = Traffic::new(layout, 1);
            let all = messages(0, &meeting, &mesh, layout);
            let total = traffic.add(&all, layout);
            assert_eq!(traffic.sent, [each + frames * HEADER; 4]);
            assert_eq!(total, 4 * (each + frames * HEADER));
            assert_eq!(traffic.awaited.len(), frames);
        }
        // For sizes that are not divisible, the total volume is the same.
        let uneven = CommunicationStep::Reduce { over: 0, elements: 7, size: 4 };
        let bytes = |x: &Message| if x.process == x.tag.from as usize { 0 } else { x.bytes };
        let all = messages(0, &uneven, &mesh, layout);
        assert_eq!(all.iter().map(bytes).sum::<usize>(), 2 * 3 * 28);
    }

    #[test]
    fn what_stays_in_a_process_is_not_sent() {
        let mesh = Mesh::new([("a", 2), ("b", 2)]).unwrap();
        let layout = DeviceAssignment { processes: 2, each: 2 };
        assert!(
            messages(0, &CommunicationStep::Gather { over: 1, bytes: 8 }, &mesh, layout).is_empty()
        );
        assert_eq!(
            messages(0, &CommunicationStep::Gather { over: 0, bytes: 8 }, &mesh, layout).len(),
            4
        );
        // Each process holds all shards along `b`, and one of two along `a`.
        let parts = |axes: &[usize]| CommunicationStep::Complete {
            split: Split(vec![axes.to_vec()]),
            bytes: 8,
        };
        assert!(messages(0, &parts(&[1]), &mesh, layout).is_empty());
        assert_eq!(messages(0, &parts(&[0]), &mesh, layout).len(), 2);
        assert_eq!(messages(0, &parts(&[0, 1]), &mesh, layout).len(), 4);
        let metas = [8, 16].map(|n| TensorType { shape: vec![n], dtype: DType::U8 }).to_vec();
        let shared = messages(0, &CommunicationStep::Share { metas }, &mesh, layout);
        assert_eq!(Traffic::new(layout, 0).add(&shared, layout), 24 + 2 * HEADER);
    }
}
