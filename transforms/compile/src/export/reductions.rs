//! Sums, extrema, their positions, running operations, sort.

use super::ExportError;
use super::instruction::InstructionParts;
use super::text::{ModuleText, Ssa, Type, array, list, tensor};
use crate::words::read;

pub(super) fn write(
    text: &mut ModuleText,
    given: &InstructionParts<'_>,
) -> Result<Option<Vec<Ssa>>, ExportError> {
    let Some(x) = given.operands.first() else { return Ok(None) };
    let all: Vec<usize> = (0..x.rank()).collect();
    let (name, axes) = match given.name.strip_suffix("_dim") {
        Some(name) => match axis(given) {
            Some(axis) => (name, vec![axis]),
            None => return Ok(None),
        },
        None => (given.name, all),
    };
    let of = given.of()?;
    let reduced = match name {
        "sum" => Some(text.reduce(x, &axes, "add", 0.0)),
        "prod" => Some(text.reduce(x, &axes, "multiply", 1.0)),
        "mean" => Some(text.mean(x, &axes)),
        "max" => Some(text.extreme(x, &axes, true)),
        "min" => Some(text.extreme(x, &axes, false)),
        "max_abs" => {
            let size = text.map("abs", &[x]);
            Some(text.extreme(&size, &axes, true))
        }
        "all" | "any" => {
            let zero = text.full(0.0, &x.shape, x.of);
            let holds = if x.of == Type::BOOL { x.clone() } else { text.compare("NE", x, &zero) };
            let (by, first) = if name == "all" { ("and", 1.0) } else { ("or", 0.0) };
            Some(text.reduce(&holds, &axes, by, first))
        }
        _ => None,
    };
    if let Some(value) = reduced {
        return Ok(Some(vec![value]));
    }
    let Some(axis) = axis(given) else { return Ok(None) };
    Ok(Some(match given.name {
        "argmax" | "argmin" => vec![text.place(x, axis, given.name == "argmax", of).1],
        "max_dim_with_indices" | "min_dim_with_indices" => {
            let index = Type::of(&given.results[1])?;
            let (value, place) = text.place(x, axis, given.name.starts_with("max"), index);
            vec![value, place]
        }
        "cumsum" => vec![text.running(x, axis, "add", 0.0)],
        "cumprod" => vec![text.running(x, axis, "multiply", 1.0)],
        "cummax" => vec![text.running_extreme(x, axis, true)],
        "cummin" => vec![text.running_extreme(x, axis, false)],
        "softmax" => vec![text.softmax(x, axis)],
        "softmin" => {
            let x = text.map("negate", &[x]);
            vec![text.softmax(&x, axis)]
        }
        "log_softmax" => {
            let (shifted, sum) = text.exponentials(x, axis);
            let log = text.map("log", &[&sum]);
            let log = text.spread(&log, &[axis], &x.shape);
            vec![text.map("subtract", &[&shifted, &log])]
        }
        "sort" | "argsort" | "sort_with_indices" => {
            let Some(descending) = descending(given) else { return Ok(None) };
            let index = Type::of(&given.results[given.results.len() - 1])?;
            let index = if given.name == "sort" { Type::INDEX } else { index };
            let [sorted, places] = text.sort(x, axis, descending, index);
            match given.name {
                "sort" => vec![sorted],
                "argsort" => vec![places],
                _ => vec![sorted, places],
            }
        }
        "topk" | "argtopk" => {
            let index = if given.name == "topk" { Type::INDEX } else { of };
            let sorted = text.sort(x, axis, true, index);
            let ranges = x.shape.iter().zip(given.shape()).map(|(_, &size)| [0, size, 1]);
            let ranges: Vec<_> = ranges.collect();
            vec![text.slice(&sorted[usize::from(given.name == "argtopk")], &ranges)]
        }
        _ => return Ok(None),
    }))
}

/// The axis of a method whose words begin with the tensor and the axis.
fn axis(given: &InstructionParts<'_>) -> Option<usize> {
    read::<(usize, usize)>(given.words.get(..2)?).map(|(_, axis)| axis)
}

fn descending(given: &InstructionParts<'_>) -> Option<bool> {
    read::<(usize, usize, bool)>(given.words.get(..3)?).map(|(.., descending)| descending)
}

impl ModuleText {
    /// Combines the elements of axes, which are removed.
    pub(super) fn reduce(&mut self, x: &Ssa, axes: &[usize], by: &str, first: f64) -> Ssa {
        let first = self.full(first, &[], x.of);
        let more = format!("{} {{dimensions = {}}}", Self::region(by, x.of), array(axes));
        let kept = (0..x.rank()).filter(|axis| !axes.contains(axis)).map(|axis| x.shape[axis]);
        self.op("stablehlo.reduce", &[x, &first], &more, &kept.collect::<Vec<_>>(), x.of)
    }

    /// A value without some axes, the same along these.
    pub(super) fn spread(&mut self, x: &Ssa, axes: &[usize], shape: &[usize]) -> Ssa {
        let kept = (0..shape.len()).filter(|axis| !axes.contains(axis));
        let more = format!("{{broadcast_dimensions = {}}}", array(kept));
        self.op("stablehlo.broadcast_in_dim", &[x], &more, shape, x.of)
    }

    pub(super) fn mean(&mut self, x: &Ssa, axes: &[usize]) -> Ssa {
        let count: usize = axes.iter().map(|&axis| x.shape[axis]).product();
        let sum = self.reduce(x, axes, "add", 0.0);
        self.with("divide", &sum, count as f64)
    }

    pub(super) fn extreme(&mut self, x: &Ssa, axes: &[usize], largest: bool) -> Ssa {
        let by = if largest { "maximum" } else { "minimum" };
        self.reduce(x, axes, by, x.of.bound(largest))
    }

    /// The extreme of an axis, and the index of its first position; NaN is the largest and the least element.
    fn place(&mut self, x: &Ssa, axis: usize, largest: bool, index: Type) -> (Ssa, Ssa) {
        let places = self.iota(axis, &x.shape, index);
        let (first, zero) = (self.full(x.of.bound(largest), &[], x.of), self.full(0.0, &[], index));
        let (t, i) = (tensor(&[], x.of), tensor(&[], index));
        let flag = tensor(&[], Type::BOOL);
        let compare = |name: &str, direction: &str, [a, b]: [&str; 2], of: &str| {
            format!(
                "      %{name} = \"stablehlo.compare\"(%{a}, %{b}) {{comparison_direction = \
                 #stablehlo<comparison_direction {direction}>}} : ({of}, {of}) -> {flag}\n"
            )
        };
        let logic = |name: &str, op: &str, a: &str, b: &str| {
            format!("      %{name} = \"stablehlo.{op}\"(%{a}, %{b}) : ({flag}, {flag}) -> {flag}\n")
        };
        let choose = |name: &str, a: &str, b: &str, of: &str| {
            format!(
                "      %{name} = \"stablehlo.select\"(%keep, %{a}, %{b}) : ({flag}, {of}, {of}) -> {of}\n"
            )
        };
        let better = if largest { "GT" } else { "LT" };
        // The first one of two NaNs, of a NaN and a number, of equal numbers.
        let body = [
            compare("more", better, ["a", "b"], &t),
            compare("nan", "NE", ["a", "a"], &t),
            compare("other", "NE", ["b", "b"], &t),
            compare("same", "EQ", ["a", "b"], &t),
            compare("before", "LE", ["i", "j"], &i),
            logic("nans", "and", "nan", "other"),
            logic("tie", "or", "same", "nans"),
            logic("early", "and", "tie", "before"),
            "      %number = \"stablehlo.not\"(%other) : (".to_owned()
                + &format!("{flag}) -> {flag}\n"),
            logic("only", "and", "nan", "number"),
            logic("first", "or", "early", "only"),
            logic("keep", "or", "more", "first"),
            choose("x", "a", "b", &t),
            choose("k", "i", "j", &i),
        ]
        .concat();
        let more = format!(
            "({{\n    ^bb0(%a: {t}, %i: {i}, %b: {t}, %j: {i}):\n{body}      \"stablehlo.return\"(%x, %k) : ({t}, {i}) \
             -> ()\n    }}) {{dimensions = {}}}",
            array([axis])
        );
        let mut shape = x.shape.clone();
        shape.remove(axis);
        let results = vec![(shape.clone(), x.of), (shape, index)];
        let mut both = self.ops("stablehlo.reduce", &[x, &places, &first, &zero], &more, results);
        let place = both.swap_remove(1);
        (both.swap_remove(0), place)
    }

    fn running(&mut self, x: &Ssa, axis: usize, by: &str, first: f64) -> Ssa {
        let size = x.shape[axis];
        let first = self.full(first, &[], x.of);
        let ones = (0..x.rank()).map(|other| if other == axis { size } else { 1 });
        let pads = (0..x.rank()).map(|other| match other == axis {
            true => format!("[{}, 0]", size - 1),
            false => "[0, 0]".to_owned(),
        });
        let more = format!(
            "{} {{window_dimensions = {}, padding = dense<[{}]> : tensor<{}x2xi64>}}",
            Self::region(by, x.of),
            array(ones),
            list(pads),
            x.rank()
        );
        self.op("stablehlo.reduce_window", &[x, &first], &more, &x.shape, x.of)
    }

    fn running_extreme(&mut self, x: &Ssa, axis: usize, largest: bool) -> Ssa {
        let by = if largest { "maximum" } else { "minimum" };
        self.running(x, axis, by, x.of.bound(largest))
    }

    /// `x − max` and the sum of the exponentials of that along an axis.
    fn exponentials(&mut self, x: &Ssa, axis: usize) -> (Ssa, Ssa) {
        let largest = self.extreme(x, &[axis], true);
        let largest = self.spread(&largest, &[axis], &x.shape);
        let shifted = self.map("subtract", &[x, &largest]);
        let all = self.map("exponential", &[&shifted]);
        let sum = self.reduce(&all, &[axis], "add", 0.0);
        (shifted, sum)
    }

    fn softmax(&mut self, x: &Ssa, axis: usize) -> Ssa {
        let (shifted, sum) = self.exponentials(x, axis);
        let all = self.map("exponential", &[&shifted]);
        let sum = self.spread(&sum, &[axis], &x.shape);
        self.map("divide", &[&all, &sum])
    }

    /// Sorted elements and their indices; stable, with NaN as the largest element.
    fn sort(&mut self, x: &Ssa, axis: usize, descending: bool, index: Type) -> [Ssa; 2] {
        let places = self.iota(axis, &x.shape, index);
        let (t, i, flag) = (tensor(&[], x.of), tensor(&[], index), tensor(&[], Type::BOOL));
        let direction = if descending { "GT" } else { "LT" };
        // NaN is the largest element: last in ascending order, first in descending order.
        let [nan, number] = if descending { ["a", "b"] } else { ["b", "a"] };
        let compare = |name: &str, direction: &str, a: &str, b: &str| {
            format!(
                "      %{name} = \"stablehlo.compare\"(%{a}, %{b}) {{comparison_direction = \
                 #stablehlo<comparison_direction {direction}>}} : ({t}, {t}) -> {flag}\n"
            )
        };
        let body = [
            compare("less", direction, "a", "b"),
            compare("nan", "NE", nan, nan),
            compare("number", "EQ", number, number),
        ]
        .concat();
        let more = format!(
            "({{\n    ^bb0(%a: {t}, %b: {t}, %i: {i}, %j: {i}):\n{body}      %both = \"stablehlo.and\"(%nan, %number) : \
             ({flag}, {flag}) -> {flag}\n      %c = \"stablehlo.or\"(%less, %both) : ({flag}, {flag}) -> {flag}\n      \
             \"stablehlo.return\"(%c) : ({flag}) -> ()\n    }}) {{dimension = {axis} : i64, is_stable = true}}"
        );
        let results = vec![(x.shape.clone(), x.of), (x.shape.clone(), index)];
        let mut both = self.ops("stablehlo.sort", &[x, &places], &more, results).into_iter();
        std::array::from_fn(|_| both.next().unwrap_or_else(|| unreachable!("two results")))
    }
}
