//! Movement of elements.

use burn_backend::{Shape, Slice};

use super::ExportError;
use super::instruction::InstructionParts;
use super::text::{ModuleText, Ssa, Type, array, list};
use crate::words::read;

pub(super) fn write(
    text: &mut ModuleText,
    given: &InstructionParts<'_>,
) -> Result<Option<Vec<Ssa>>, ExportError> {
    Ok(moved(text, given).map(|value| vec![value]))
}

impl ModuleText {
    pub(super) fn transpose(&mut self, x: &Ssa, axes: &[usize]) -> Ssa {
        let shape: Vec<usize> = axes.iter().map(|&axis| x.shape[axis]).collect();
        let more = format!("{{permutation = {}}}", array(axes));
        self.op("stablehlo.transpose", &[x], &more, &shape, x.of)
    }

    pub(super) fn reverse(&mut self, x: &Ssa, axes: &[usize]) -> Ssa {
        let more = format!("{{dimensions = {}}}", array(axes));
        self.op("stablehlo.reverse", &[x], &more, &x.shape, x.of)
    }

    /// Elements `start, start + step, …` below `end` of each axis.
    pub(super) fn slice(&mut self, x: &Ssa, ranges: &[[usize; 3]]) -> Ssa {
        let part = |k: usize| array(ranges.iter().map(move |range| range[k]));
        let more = format!(
            "{{start_indices = {}, limit_indices = {}, strides = {}}}",
            part(0),
            part(1),
            part(2)
        );
        let shape: Vec<usize> =
            ranges.iter().map(|[start, end, step]| (end - start).div_ceil(*step)).collect();
        self.op("stablehlo.slice", &[x], &more, &shape, x.of)
    }

    pub(super) fn concatenate(&mut self, all: &[&Ssa], axis: usize) -> Ssa {
        let mut shape = all[0].shape.clone();
        shape[axis] = all.iter().map(|x| x.shape[axis]).sum();
        let more = format!("{{dimension = {axis} : i64}}");
        self.op("stablehlo.concatenate", all, &more, &shape, all[0].of)
    }

    /// Indices along an axis.
    pub(super) fn iota(&mut self, axis: usize, shape: &[usize], of: Type) -> Ssa {
        self.op("stablehlo.iota", &[], &format!("{{iota_dimension = {axis} : i64}}"), shape, of)
    }

    /// Coordinates of all elements of `index`, with the index as that of one axis: `[…, rank]`.
    fn coordinates(&mut self, index: &Ssa, axis: usize) -> Ssa {
        let column = [&index.shape[..], &[1]].concat();
        let all: Vec<Ssa> = (0..index.rank())
            .map(|other| {
                let one = if other == axis {
                    self.convert(index, Type::INDEX)
                } else {
                    self.iota(other, &index.shape, Type::INDEX)
                };
                self.reshape(&one, &column)
            })
            .collect();
        self.concatenate(&all.iter().collect::<Vec<_>>(), index.rank())
    }

    /// `y[…, i, …] = x[…, index[…, i, …], …]`.
    fn gather(&mut self, x: &Ssa, axis: usize, index: &Ssa) -> Ssa {
        let coordinates = self.coordinates(index, axis);
        let (all, ones) = (list(0..x.rank()), array(vec![1; x.rank()]));
        let more = format!(
            "{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [{all}], start_index_map = [{all}], \
             index_vector_dim = {}>, slice_sizes = {ones}, indices_are_sorted = false}}",
            x.rank()
        );
        self.op("stablehlo.gather", &[x, &coordinates], &more, &index.shape, x.of)
    }

    /// Combines x at the places of an index with values: `x[…, index[…, i, …], …] ∘= y[…, i, …]`.
    fn scatter(&mut self, x: &Ssa, axis: usize, index: &Ssa, y: &Ssa, by: &str) -> Ssa {
        let coordinates = self.coordinates(index, axis);
        let all = list(0..x.rank());
        let more = format!(
            "{} {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [{all}], \
             scatter_dims_to_operand_dims = [{all}], index_vector_dim = {}>, indices_are_sorted = false, \
             unique_indices = false}}",
            Self::region(by, x.of),
            x.rank()
        );
        self.op("stablehlo.scatter", &[x, &coordinates, y], &more, &x.shape, x.of)
    }

    /// An index of one axis as that of all elements of a shape.
    fn along(&mut self, index: &Ssa, axis: usize, shape: &[usize]) -> Ssa {
        let more = format!("{{broadcast_dimensions = {}}}", array([axis]));
        self.op("stablehlo.broadcast_in_dim", &[index], &more, shape, index.of)
    }
}

/// Start, end and step with a positive step, and true if the elements are taken from the end.
fn range(slice: &Slice, size: usize) -> ([usize; 3], bool) {
    let size = size as isize;
    let from_end = |at: isize| if at < 0 { at + size } else { at };
    let start = from_end(slice.start).clamp(0, size);
    let end = slice.end.map_or(size, from_end).clamp(start, size);
    let step = slice.step.unsigned_abs().max(1);
    if slice.step > 0 {
        return ([start as usize, end as usize, step], false);
    }
    let count = (end as usize - start as usize).div_ceil(step);
    let first = (end as usize).saturating_sub(1 + count.saturating_sub(1) * step);
    ([if count == 0 { end as usize } else { first }, end as usize, step], true)
}

fn moved(text: &mut ModuleText, given: &InstructionParts<'_>) -> Option<Ssa> {
    let x = given.operands.first()?;
    let shape = given.shape();
    Some(match given.name {
        "reshape" => text.reshape(x, shape),
        "expand" => {
            let (_, shape) = read::<(usize, Shape)>(given.words)?;
            text.broadcast(x, &shape.to_vec())
        }
        "transpose" => swapped(text, x, x.rank() - 2, x.rank() - 1),
        "swap_dims" => {
            let (_, a, b) = read::<(usize, usize, usize)>(given.words)?;
            swapped(text, x, a, b)
        }
        "permute" => {
            let (_, axes) = read::<(usize, Vec<usize>)>(given.words)?;
            text.transpose(x, &axes)
        }
        "flip" => {
            let (_, axes) = read::<(usize, Vec<usize>)>(given.words)?;
            text.reverse(x, &axes)
        }
        "slice" => {
            let (_, slices) = read::<(usize, Vec<Slice>)>(given.words)?;
            sliced(text, x, &slices)
        }
        "slice_assign" => {
            let (_, slices, _) = read::<(usize, Vec<Slice>, usize)>(given.words)?;
            assigned(text, x, &slices, &given.operands[1])?
        }
        "cat" => {
            let (_, axis) = read::<(Vec<usize>, usize)>(given.words)?;
            text.concatenate(&given.operands.iter().collect::<Vec<_>>(), axis)
        }
        "repeat_dim" => {
            let (_, axis, times) = read::<(usize, usize, usize)>(given.words)?;
            if times == 0 {
                return None;
            }
            text.concatenate(&vec![x; times], axis)
        }
        "gather" => {
            let (axis, _, _) = read::<(usize, usize, usize)>(given.words)?;
            // Other axes of the index may be shorter.
            let index = &given.operands[1];
            let ranges = (0..x.rank()).map(|other| match other == axis {
                true => [0, x.shape[other], 1],
                false => [0, index.shape[other], 1],
            });
            let x = text.slice(x, &ranges.collect::<Vec<_>>());
            text.gather(&x, axis, index)
        }
        "select" => {
            let (_, axis, _) = read::<(usize, usize, usize)>(given.words)?;
            let index = text.along(&given.operands[1], axis, shape);
            text.gather(x, axis, &index)
        }
        "embedding" => {
            let index = &given.operands[1];
            let (count, width) = (index.shape.iter().product(), x.shape[1]);
            let index = text.reshape(index, &[count]);
            let index = text.along(&index, 0, &[count, width]);
            text.gather(x, 0, &index)
        }
        "embedding_backward" => {
            let [weights, y, index] = [0, 1, 2].map(|at| &given.operands[at]);
            let shape = [index.shape.iter().product(), weights.shape[1]];
            let (index, y) = (text.reshape(index, &shape[..1]), text.reshape(y, &shape));
            let index = text.along(&index, 0, &shape);
            let zeros = text.full(0.0, &weights.shape, weights.of);
            text.scatter(&zeros, 0, &index, &y, "add")
        }
        "scatter_add" | "scatter_or" => {
            let (axis, ..) = read::<(usize, usize, usize, usize)>(given.words)?;
            let by = if given.name == "scatter_or" { "or" } else { "add" };
            text.scatter(x, axis, &given.operands[1], &given.operands[2], by)
        }
        "select_add" | "select_or" => {
            let (_, axis, ..) = read::<(usize, usize, usize, usize)>(given.words)?;
            let y = &given.operands[2];
            let by = if given.name == "select_or" { "or" } else { "add" };
            let index = text.along(&given.operands[1], axis, &y.shape);
            text.scatter(x, axis, &index, y, by)
        }
        _ => return None,
    })
}

fn swapped(text: &mut ModuleText, x: &Ssa, a: usize, b: usize) -> Ssa {
    let mut axes: Vec<usize> = (0..x.rank()).collect();
    axes.swap(a, b);
    text.transpose(x, &axes)
}

fn sliced(text: &mut ModuleText, x: &Ssa, slices: &[Slice]) -> Ssa {
    let ranges = x.shape.iter().enumerate().map(|(axis, &size)| {
        slices.get(axis).map_or(([0, size, 1], false), |slice| range(slice, size))
    });
    let (ranges, backward): (Vec<_>, Vec<_>) = ranges.unzip();
    let y = text.slice(x, &ranges);
    let axes: Vec<usize> = (0..x.rank()).filter(|&axis| backward[axis]).collect();
    if axes.is_empty() { y } else { text.reverse(&y, &axes) }
}

/// None for slices with steps.
fn assigned(text: &mut ModuleText, x: &Ssa, slices: &[Slice], y: &Ssa) -> Option<Ssa> {
    let starts = x.shape.iter().enumerate().map(|(axis, &size)| match slices.get(axis) {
        None => Some(0),
        Some(slice) if slice.step == 1 => Some(range(slice, size).0[0]),
        Some(_) => None,
    });
    let starts: Option<Vec<usize>> = starts.collect();
    let starts: Vec<Ssa> =
        starts?.into_iter().map(|at| text.full(at as f64, &[], Type::INDEX)).collect();
    let operands: Vec<&Ssa> = [x, y].into_iter().chain(&starts).collect();
    Some(text.op("stablehlo.dynamic_update_slice", &operands, "", &x.shape, x.of))
}
