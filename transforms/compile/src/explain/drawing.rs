//! Drawing of a program as SVG: boxes in layers from the inputs at the top to the outputs at the bottom. Layers are
//! longest paths from the inputs; the order within a layer is by barycenters, as in Sugiyama, Tagawa, Toda, "Methods for
//! visual understanding of hierarchical system structures", IEEE Transactions on Systems, Man, and Cybernetics 11 (1981).

use std::collections::HashMap;
use std::fmt::Write;

use burn_backend::Backend;

use super::cost::cost;
use super::values;
use crate::program::Program;

const WIDTH: f64 = 190.0;
const HEIGHT: f64 = 42.0;
const GAP: f64 = 18.0;
const RISE: f64 = 46.0;
/// Number of sweeps that order the boxes of a layer.
const SWEEPS: usize = 8;
/// Characters in a line of a box.
const LETTERS: usize = 28;

const STYLE: &str = "\
text { font: 11px ui-monospace, monospace; fill: #1a1a1a; text-anchor: middle }
.second { fill: #555 }
rect { stroke: #888; rx: 5 }
path { fill: none; stroke: #999 }
.input, .output { fill: #e8e8e8 } .fused { fill: #cfe8cf } .product { fill: #cfdcf5 } .loop { fill: #f3d9c0 }
.other { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #eee } .second { fill: #bbb } .input, .output { fill: #333 } .fused { fill: #245024 }
  .product { fill: #23386b } .loop { fill: #6b4423 } .other { fill: #222 }
}";

/// A box of the drawing.
struct DrawnBox {
    class: &'static str,
    lines: [String; 2],
    /// Text shown when the pointer rests on the box.
    title: String,
    layer: usize,
    /// Position within the layer.
    column: f64,
    /// Boxes that compute its operands.
    from: Vec<usize>,
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn class(name: &str) -> &'static str {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match name {
        "fused" => "fused",
        _ if has(&["matmul", "conv", "linear", "attention", "einsum"]) => "product",
        _ if has(&["scan", "loop", "fixed_point", "root"]) => "loop",
        _ => "other",
    }
}

/// The boxes of a program with their layers.
fn blocks<B: Backend>(program: &Program<B>) -> Vec<DrawnBox> {
    let metas = program.metas();
    let mut all: Vec<DrawnBox> = Vec::new();
    // Box that computes each value.
    let mut maker: HashMap<usize, usize> = HashMap::new();
    for value in 0..program.inputs() {
        let lines = [format!("input {value}"), metas[value].to_string()];
        let title = values(&[value], metas);
        maker.insert(value, all.len());
        all.push(DrawnBox {
            class: "input",
            lines,
            title,
            layer: 0,
            column: 0.0,
            from: Vec::new(),
        });
    }
    for unit in program.units() {
        let mut from: Vec<usize> =
            unit.operands.iter().filter_map(|value| maker.get(value).copied()).collect();
        from.sort_unstable();
        from.dedup();
        let layer = 1 + from.iter().map(|&at| all[at].layer).max().unwrap_or(0);
        let name = match unit.parts().as_slice() {
            [] => unit.name.to_owned(),
            parts => format!("{} fused: {}", parts.len(), parts.join(" ")),
        };
        let shapes: Vec<_> = unit.results.iter().map(|&value| metas[value].to_string()).collect();
        let title = format!(
            "{} = {} of {}\n{}",
            values(&unit.results, metas),
            name,
            values(&unit.operands, metas),
            cost(unit, metas)
        );
        maker.extend(unit.results.iter().map(|&value| (value, all.len())));
        let lines = [name, shapes.join(", ")];
        all.push(DrawnBox { class: class(unit.name), lines, title, layer, column: 0.0, from });
    }
    // An input is drawn just above its first user.
    for at in 0..program.inputs() {
        let users = all.iter().filter(|block| block.from.contains(&at)).map(|block| block.layer);
        all[at].layer = users.min().map_or(0, |layer| layer - 1);
    }
    for (k, &value) in program.outputs().iter().enumerate() {
        let from: Vec<usize> = maker.get(&value).copied().into_iter().collect();
        let layer = 1 + from.iter().map(|&at| all[at].layer).max().unwrap_or(0);
        let lines = [format!("output {k}"), metas[value].to_string()];
        let title = values(&[value], metas);
        all.push(DrawnBox { class: "output", lines, title, layer, column: 0.0, from });
    }
    all
}

/// Places the boxes of each layer side by side, near the mean position of their neighbours.
fn arrange(all: &mut [DrawnBox]) {
    let depth = all.iter().map(|block| block.layer + 1).max().unwrap_or(0);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); depth];
    all.iter().enumerate().for_each(|(at, block)| layers[block.layer].push(at));
    let mut neighbours: [Vec<Vec<usize>>; 2] = [(); 2].map(|()| vec![Vec::new(); all.len()]);
    for (at, block) in all.iter().enumerate() {
        for &from in &block.from {
            neighbours[0][at].push(from);
            neighbours[1][from].push(at);
        }
    }
    for sweep in 0..=SWEEPS {
        let of = &neighbours[sweep % 2];
        for layer in &mut layers {
            let mean = |at: usize| match of[at].as_slice() {
                [] => all[at].column,
                near => near.iter().map(|&x| all[x].column).sum::<f64>() / near.len() as f64,
            };
            let mut placed: Vec<(f64, usize)> = layer.iter().map(|&at| (mean(at), at)).collect();
            placed.sort_by(|x, y| x.0.total_cmp(&y.0));
            // Centred around zero.
            let half = (placed.len() as f64 - 1.0) / 2.0;
            for (k, (_, at)) in placed.iter().enumerate() {
                all[*at].column = k as f64 - half;
            }
            *layer = placed.into_iter().map(|(_, at)| at).collect();
        }
    }
}

/// The program as an SVG document.
pub(crate) fn draw<B: Backend>(program: &Program<B>) -> String {
    let mut all = blocks(program);
    arrange(&mut all);
    let edge = all.iter().map(|block| block.column).fold(0.0, f64::max);
    let depth = all.iter().map(|block| block.layer + 1).max().unwrap_or(0) as f64;
    let (width, height) = ((2.0 * edge + 1.0) * (WIDTH + GAP) + GAP, depth * (HEIGHT + RISE));
    let x = |block: &DrawnBox| (block.column + edge) * (WIDTH + GAP) + GAP;
    let y = |block: &DrawnBox| block.layer as f64 * (HEIGHT + RISE) + RISE / 2.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\">\n<style>\n{STYLE}\n</style>\n"
    );
    for block in &all {
        for from in block.from.iter().map(|&at| &all[at]) {
            let (x0, y0) = (x(from) + WIDTH / 2.0, y(from) + HEIGHT);
            let (x1, y1) = (x(block) + WIDTH / 2.0, y(block));
            let middle = (y0 + y1) / 2.0;
            let _ =
                writeln!(text, "<path d=\"M{x0} {y0} C{x0} {middle} {x1} {middle} {x1} {y1}\"/>");
        }
    }
    for block in &all {
        let (left, top, middle) = (x(block), y(block), x(block) + WIDTH / 2.0);
        let [first, second] = block.lines.each_ref().map(|line| escaped(&cut(line)));
        let _ = writeln!(
            text,
            "<g><title>{title}</title><rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\"/><text x=\"{middle}\" y=\"{y1}\">{first}</text><text class=\"second\" \
             x=\"{middle}\" y=\"{y2}\">{second}</text></g>",
            title = escaped(&block.title),
            class = block.class,
            y1 = top + 17.0,
            y2 = top + 33.0,
        );
    }
    text + "</svg>\n"
}
