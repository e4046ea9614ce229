//! Execution plan of one device: the recorded instructions interleaved with communication steps.

use std::fmt::{self, Write};
use std::sync::Arc;

use burn_backend::Backend;
use burn_t4a_compile::graph::{Graph, Instruction, Key, TensorType, Word};

use crate::error::Result;
use crate::identity::CallIdentity;
use crate::mesh::Mesh;
use crate::processes::{DIGESTS, HEADER};
use crate::rules::{PlacedInstruction, Reduce, ShardingRule, place};
use crate::spec::{Move, PartitionSpec, Split, moves};
use crate::traffic::{
    CommunicationStep, DeviceAssignment, Gathering, Traffic, bytes_of, gatherings, local, messages,
    reduced,
};

/// Name of the pseudo-instruction whose static arguments give the required split of its operand.
pub(crate) const RESHARD: &str = "reshard";

/// Operand of an instruction and the moves that convert it to the required split.
#[derive(Clone, Debug)]
pub(crate) struct ShardedOperand {
    pub(crate) value: usize,
    pub(crate) moves: Vec<Move>,
}

/// Placement of an instruction on the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Every device computes its own shard.
    Parts,
    /// Every device computes the full result; there is no sharding rule.
    Everywhere,
    /// The first device computes and broadcasts the results: random number generation.
    Once,
    /// The result is the operand.
    Pass,
}

pub(crate) struct PlannedInstruction<B: Backend> {
    pub(crate) instruction: Instruction<B>,
    pub(crate) how: How,
    pub(crate) operands: Vec<ShardedOperand>,
    /// Reduction of partial results, with the mesh axes for each result.
    pub(crate) reduce: Option<(Reduce, Vec<Vec<usize>>)>,
    /// Values whose last use is this instruction.
    pub(crate) ended: Vec<usize>,
}

/// Execution plan of a sharded function.
///
/// The text form shows for each operation the split of its results and its communication, with the bytes that each
/// device sends (ring algorithm: `(d − 1)/d` of the full tensor for an all-gather, twice that for an all-reduce). For a
/// mesh across processes it also shows the bytes sent between processes, summed over all processes and with message
/// headers; this figure is exact.
pub struct ExecutionPlan<B: Backend> {
    pub(crate) mesh: Mesh,
    pub(crate) graph: Graph<B>,
    pub(crate) inputs: Vec<Split>,
    pub(crate) lines: Vec<PlannedInstruction<B>>,
    pub(crate) outputs: Vec<(ShardedOperand, Split)>,
    /// Number of outputs, the first ones, whose parts stay on the devices.
    pub(crate) kept: usize,
    pub(crate) meetings: Vec<CommunicationStep>,
    /// Number of communication steps that move operands; the remaining ones complete results.
    pub(crate) moving: usize,
    pub(crate) across: Option<(Arc<Traffic>, CallIdentity)>,
    text: String,
    bytes: usize,
}

struct Planner<'a> {
    mesh: &'a Mesh,
    metas: &'a [TensorType],
    splits: Vec<Split>,
    text: String,
    bytes: usize,
    meetings: Vec<CommunicationStep>,
    /// Messages between processes and the assignment of devices to processes.
    traffic: Option<(DeviceAssignment, Traffic)>,
}

impl Planner<'_> {
    /// Appends a communication step in which each device sends `each` bytes.
    fn meet(&mut self, what: &str, each: Option<usize>, meeting: CommunicationStep) {
        let mut told: Vec<String> = each.iter().map(|bytes| format!("{bytes} bytes")).collect();
        self.bytes += each.unwrap_or(0);
        if let Some((layout, traffic)) = &mut self.traffic {
            let all = messages(self.meetings.len(), &meeting, self.mesh, *layout);
            told.push(format!("{} between processes", traffic.add(&all, *layout)));
        }
        if !told.is_empty() {
            let _ = writeln!(self.text, "    {what}: {}", told.join(", "));
        }
        self.meetings.push(meeting);
    }

    /// Moves that convert a value to the split `to`; communication is appended to the plan.
    fn reshard(&mut self, value: usize, to: &Split) -> ShardedOperand {
        let (mesh, meta) = (self.mesh, &self.metas[value]);
        let all = moves(&self.splits[value], to);
        for Gathering { axis, over, bytes, sent } in
            gatherings(meta, &self.splits[value], &all, mesh)
        {
            let what = format!("all-gather %{value} along axis {axis} over {}", mesh.name(over));
            self.meet(&what, Some(sent), CommunicationStep::Gather { over, bytes });
        }
        ShardedOperand { value, moves: all }
    }

    fn reduced(&mut self, value: usize, split: &Split, reduce: Reduce, over: &[usize]) {
        for &axis in over {
            let own = local(&self.metas[value], split, self.mesh);
            let (elements, size) = (own.shape.iter().product(), own.dtype.size());
            let (what, name) = (format!("{reduce:?}").to_lowercase(), self.mesh.name(axis));
            let what = format!("all-reduce ({what}) %{value} over {name}");
            let sent = reduced(&own, self.mesh.size(axis));
            self.meet(&what, Some(sent), CommunicationStep::Reduce { over: axis, elements, size });
        }
    }
}

/// Split required by a reshard instruction; an error if it does not fit the mesh or the shape.
fn asked(mesh: &Mesh, words: &[Word], value: usize, meta: &TensorType) -> Result<Split> {
    let names: Vec<&str> = words
        .iter()
        .filter_map(|word| if let Word::Text(names) = word { Some(&names[..]) } else { None })
        .collect();
    PartitionSpec::split(names).on(mesh, &format!("%{value}, which is resharded,"), meta)
}

impl<B: Backend> ExecutionPlan<B> {
    pub(crate) fn new(
        mesh: &Mesh,
        graph: Graph<B>,
        inputs: Vec<Split>,
        results: &[Split],
        kept: usize,
        processes: Option<(DeviceAssignment, usize, &Key)>,
    ) -> Result<Self> {
        let metas = graph.metas().to_vec();
        let mut splits: Vec<Split> =
            metas.iter().map(|meta| Split::whole(meta.shape.len())).collect();
        splits[..inputs.len()].clone_from_slice(&inputs);
        let traffic = processes.map(|(layout, rank, _)| (layout, Traffic::new(layout, rank)));
        let (text, bytes, meetings) = (String::new(), 0, Vec::new());
        let mut p = Planner { mesh, metas: &metas, splits, text, bytes, meetings, traffic };
        let _ = writeln!(p.text, "mesh: {mesh}");
        for (id, split) in inputs.iter().enumerate() {
            let _ = writeln!(p.text, "%{id} {} {} = input", metas[id], split.show(mesh));
        }
        let mut lines = Vec::new();
        for instruction in graph.instructions() {
            lines.push(Self::line(&mut p, instruction)?);
        }
        let mut outputs = Vec::new();
        for (k, (&value, split)) in graph.outputs().iter().zip(results).enumerate() {
            outputs.push((p.reshard(value, split), split.clone()));
            let (meta, split, note) =
                (&metas[value], split.show(mesh), if k < kept { " (stays)" } else { "" });
            let _ = writeln!(p.text, "output %{value} {meta} {split}{note}");
        }
        let moving = p.meetings.len();
        for (&value, split) in graph.outputs().iter().zip(results).skip(kept) {
            let bytes = bytes_of(&local(&metas[value], split, mesh));
            let what = format!("all parts of %{value} to every process");
            p.meet(&what, None, CommunicationStep::Complete { split: split.clone(), bytes });
        }
        Self::ends(&mut lines, graph.outputs(), metas.len());
        let Planner { mut text, bytes, meetings, traffic, .. } = p;
        let _ = writeln!(text, "each device sends {bytes} bytes");
        let mut across = None;
        if let (Some((layout, mut traffic)), Some((.., key))) = (traffic, processes) {
            let count = layout.processes;
            let identity = CallIdentity::new(format!("{mesh}"), key, &graph, &text)?;
            let ends = (count - 1) * (2 * HEADER + DIGESTS);
            traffic.sent.iter_mut().for_each(|sent| *sent += ends);
            let all: usize = traffic.sent.iter().sum();
            let ends = ends * count;
            let _ = writeln!(
                text,
                "{count} processes send {all} bytes, {ends} of them to begin and to end the call"
            );
            across = Some((Arc::new(traffic), identity));
        }
        let mesh = mesh.clone();
        Ok(Self {
            mesh,
            graph,
            inputs,
            lines,
            outputs,
            kept,
            meetings,
            moving,
            across,
            text,
            bytes,
        })
    }

    fn line(p: &mut Planner<'_>, instruction: &Instruction<B>) -> Result<PlannedInstruction<B>> {
        let (mesh, metas) = (p.mesh, p.metas);
        let (operands, results) = (instruction.operands(), instruction.results());
        let replicated = || PlacedInstruction::replicated(metas, instruction);
        let (how, placed) = if instruction.is_random() {
            (How::Once, replicated())
        } else if instruction.name() == RESHARD {
            let (value, words) = (operands[0], instruction.words().unwrap_or_default());
            let split = asked(mesh, &words, value, &metas[value])?;
            let rule = ShardingRule::new(vec![split.clone()], vec![split]);
            (How::Pass, PlacedInstruction { rule, local: instruction.clone() })
        } else {
            match place(mesh, metas, &p.splits, instruction) {
                Some(placed) => (How::Parts, placed),
                None => (How::Everywhere, replicated()),
            }
        };
        let PlacedInstruction { rule, local } = placed;
        let mut all: Vec<ShardedOperand> = operands
            .iter()
            .zip(&rule.operands)
            .map(|(&value, split)| p.reshard(value, split))
            .collect();
        for (k, over) in &rule.once {
            all[*k].moves.extend(over.iter().map(|&over| Move::First { over }));
        }
        for (value, split) in results.clone().zip(&rule.results) {
            p.splits[value] = split.clone();
        }
        let shown: Vec<String> = results
            .clone()
            .zip(&rule.results)
            .map(|(v, split)| format!("%{v} {} {}", metas[v], split.show(mesh)))
            .collect();
        let of: Vec<String> = operands.iter().map(|v| format!("%{v}")).collect();
        let note = match how {
            How::Everywhere if rule.operands.iter().any(|x| !x.0.is_empty()) => {
                " (no rule: everywhere)"
            }
            How::Once => " (once, and shared)",
            _ => "",
        };
        let name = instruction.name();
        let _ = writeln!(p.text, "{} = {name} of {}{note}", shown.join(", "), of.join(", "));
        if how == How::Once {
            let metas: Vec<TensorType> = results.clone().map(|v| metas[v].clone()).collect();
            let bytes = metas.iter().map(bytes_of).sum();
            p.meet(
                "broadcast from the first device",
                Some(bytes),
                CommunicationStep::Share { metas },
            );
        }
        if let Some((reduce, over)) = &rule.reduce {
            for ((value, split), over) in results.zip(&rule.results).zip(over) {
                p.reduced(value, split, *reduce, over);
            }
        }
        let reduce = rule.reduce;
        Ok(PlannedInstruction { instruction: local, how, operands: all, reduce, ended: Vec::new() })
    }

    /// Records the last use of every value.
    fn ends(lines: &mut [PlannedInstruction<B>], outputs: &[usize], values: usize) {
        let mut seen = vec![false; values];
        outputs.iter().for_each(|&v| seen[v] = true);
        for line in lines.iter_mut().rev() {
            let own = line.instruction.results().chain(line.operands.iter().map(|x| x.value));
            for value in own.collect::<Vec<_>>() {
                if !std::mem::replace(&mut seen[value], true) {
                    line.ended.push(value);
                }
            }
        }
    }

    /// Bytes that each device sends per call, independent of the process of the receiver.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that a process sends to other processes per call; 0 for a mesh in one process.
    pub fn sent_by(&self, process: usize) -> usize {
        self.across.as_ref().and_then(|x| x.0.sent.get(process).copied()).unwrap_or(0)
    }
}

impl<B: Backend> fmt::Display for ExecutionPlan<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
