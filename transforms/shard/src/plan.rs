//! What every device does: the instructions of a recording, and between them what moves.

use std::fmt::{self, Write};

use burn_backend::Backend;
use burn_t4a_compile::graph::{Graph, Instruction, Meta, Word};

use crate::error::Result;
use crate::mesh::Mesh;
use crate::rules::{Reduce, Rule, Site, rule};
use crate::spec::{Move, Spec, Split, moves};

/// Instructions by this name are no operations: their words say how their operand is to be split.
pub(crate) const RESHARD: &str = "reshard";

/// An operand and how it gets to be what is needed.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) value: usize,
    pub(crate) moves: Vec<Move>,
}

/// How a line runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// On every device, on its part.
    Parts,
    /// On every device the same, as there is no rule.
    Everywhere,
    /// On the first device, which shares its results: random numbers.
    Once,
    /// The operand is the result.
    Pass,
}

pub(crate) struct Line<B: Backend> {
    pub(crate) instruction: Instruction<B>,
    pub(crate) how: How,
    pub(crate) operands: Vec<Operand>,
    pub(crate) reduce: Option<(Reduce, Vec<usize>)>,
    /// Values that are not used later.
    pub(crate) ended: Vec<usize>,
}

/// A function spread over a mesh: printed, it shows per operation how its results are split and what moves,
/// with the bytes that each device sends (rings: `(d − 1)/d` of the whole for a gather, twice that for a
/// sum).
pub struct Plan<B: Backend> {
    pub(crate) mesh: Mesh,
    pub(crate) graph: Graph<B>,
    pub(crate) inputs: Vec<Split>,
    pub(crate) lines: Vec<Line<B>>,
    pub(crate) outputs: Vec<(Operand, Split)>,
    text: String,
    bytes: usize,
}

struct Planner<'a> {
    mesh: &'a Mesh,
    metas: &'a [Meta],
    splits: Vec<Split>,
    text: String,
    bytes: usize,
}

fn bytes_of(meta: &Meta, split: &Split, mesh: &Mesh) -> usize {
    split.local(mesh, &meta.shape).iter().product::<usize>() * meta.dtype.size()
}

impl Planner<'_> {
    /// Moves that make another split of a value, told in the text.
    fn reshard(&mut self, value: usize, to: &Split) -> Operand {
        let mut split = self.splits[value].clone();
        let all = moves(&split, to);
        for one in &all {
            match *one {
                Move::Gather { axis, over } => {
                    split.0[axis].pop();
                    let parts = self.mesh.size(over);
                    let sent =
                        bytes_of(&self.metas[value], &split, self.mesh) / parts * (parts - 1);
                    self.bytes += sent;
                    let name = self.mesh.name(over);
                    let _ = writeln!(
                        self.text,
                        "    all-gather %{value} along axis {axis} over {name}: {sent} bytes"
                    );
                }
                Move::Slice { axis, over } => split.0[axis].push(over),
                Move::First { .. } => {}
            }
        }
        Operand { value, moves: all }
    }

    fn reduced(&mut self, value: usize, split: &Split, reduce: Reduce, over: &[usize]) {
        for &axis in over {
            let parts = self.mesh.size(axis);
            let whole = bytes_of(&self.metas[value], split, self.mesh);
            let sent = 2 * whole / parts * (parts - 1);
            self.bytes += sent;
            let (what, name) = (format!("{reduce:?}").to_lowercase(), self.mesh.name(axis));
            let _ =
                writeln!(self.text, "    all-reduce ({what}) %{value} over {name}: {sent} bytes");
        }
    }
}

/// The split that a reshard asks for; what does not fit is an error.
fn asked(mesh: &Mesh, words: &[Word], value: usize, meta: &Meta) -> Result<Split> {
    let names: Vec<&str> = words
        .iter()
        .filter_map(|word| if let Word::Text(names) = word { Some(&names[..]) } else { None })
        .collect();
    Spec::split(names).on(mesh, &format!("%{value}, which is resharded,"), meta)
}

impl<B: Backend> Plan<B> {
    pub(crate) fn new(
        mesh: &Mesh,
        graph: Graph<B>,
        inputs: Vec<Split>,
        results: &[Split],
    ) -> Result<Self> {
        let metas = graph.metas().to_vec();
        let mut splits: Vec<Split> =
            metas.iter().map(|meta| Split::whole(meta.shape.len())).collect();
        splits[..inputs.len()].clone_from_slice(&inputs);
        let mut p = Planner { mesh, metas: &metas, splits, text: String::new(), bytes: 0 };
        let axes: Vec<String> =
            mesh.axes().iter().map(|(name, size)| format!("{name} {size}")).collect();
        let _ = writeln!(p.text, "mesh: {}", axes.join(" × "));
        for (id, split) in inputs.iter().enumerate() {
            let _ = writeln!(p.text, "%{id} {} {} = input", metas[id], split.show(mesh));
        }
        let mut lines = Vec::new();
        for instruction in graph.instructions() {
            lines.push(Self::line(&mut p, instruction)?);
        }
        let mut outputs = Vec::new();
        for (&value, split) in graph.outputs().iter().zip(results) {
            outputs.push((p.reshard(value, split), split.clone()));
            let _ = writeln!(p.text, "output %{value} {} {}", metas[value], split.show(mesh));
        }
        Self::ends(&mut lines, graph.outputs(), metas.len());
        let Planner { mut text, bytes, .. } = p;
        let _ = writeln!(text, "each device sends {bytes} bytes");
        Ok(Self { mesh: mesh.clone(), graph, inputs, lines, outputs, text, bytes })
    }

    fn line(p: &mut Planner<'_>, instruction: &Instruction<B>) -> Result<Line<B>> {
        let (mesh, metas) = (p.mesh, p.metas);
        let (operands, results) = (instruction.operands(), instruction.results());
        let words = instruction.words();
        let site = Site {
            mesh,
            name: instruction.name(),
            elementwise: instruction.is_elementwise(),
            words: words.as_deref(),
            operands: operands.iter().map(|&v| &metas[v]).collect(),
            results: results.clone().map(|v| &metas[v]).collect(),
            splits: operands.iter().map(|&v| &p.splits[v]).collect(),
        };
        let mut how = How::Parts;
        let mut rule = if instruction.is_random() {
            how = How::Once;
            site.whole()
        } else if instruction.name() == RESHARD {
            how = How::Pass;
            let split =
                asked(mesh, words.as_deref().unwrap_or(&[]), operands[0], &metas[operands[0]])?;
            Rule::new(vec![split.clone()], vec![split])
        } else {
            rule(&site)
        };
        let mut local = instruction.clone();
        if let Some(words) = &rule.words {
            match instruction.with(words) {
                Some(changed) => local = changed,
                None => rule = Rule { known: false, ..site.whole() },
            }
        }
        if !rule.known {
            how = How::Everywhere;
        }
        drop(site);
        let mut all: Vec<Operand> = operands
            .iter()
            .zip(&rule.operands)
            .map(|(&value, split)| p.reshard(value, split))
            .collect();
        if let (Some(k), Some((_, over))) = (rule.once, &rule.reduce) {
            all[k].moves.extend(over.iter().map(|&over| Move::First { over }));
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
        if let Some((reduce, over)) = &rule.reduce {
            for (value, split) in results.zip(&rule.results) {
                p.reduced(value, split, *reduce, over);
            }
        }
        let reduce = rule.reduce;
        Ok(Line { instruction: local, how, operands: all, reduce, ended: Vec::new() })
    }

    /// Marks the last use of every value.
    fn ends(lines: &mut [Line<B>], outputs: &[usize], values: usize) {
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

    /// How many bytes each device sends.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<B: Backend> fmt::Display for Plan<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
