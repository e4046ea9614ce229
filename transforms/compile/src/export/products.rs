//! Products of matrices, layers, convolutions, pooling.

use burn_backend::ops::ConvOptions;

use super::ExportError;
use super::instruction::InstructionParts;
use super::text::{ModuleText, Ssa, array, list};
use crate::words::read;

pub(super) fn write(
    text: &mut ModuleText,
    given: &InstructionParts<'_>,
) -> Result<Option<Vec<Ssa>>, ExportError> {
    Ok(product(text, given).map(|value| vec![value]))
}

fn product(text: &mut ModuleText, given: &InstructionParts<'_>) -> Option<Ssa> {
    let operands = given.operands;
    Some(match given.name {
        "matmul" => text.matmul(&operands[0], &operands[1]),
        "linear" => {
            let y = text.linear(&operands[0], &operands[1]);
            operands.get(2).map_or(y.clone(), |bias| text.plus_last(&y, bias))
        }
        "linear_x_backward" => {
            let weight = text.transpose(&operands[0], &[1, 0]);
            text.linear(&operands[1], &weight)
        }
        "linear_weight_backward" => {
            let [x, y] = [0, 1].map(|at| flat(text, &operands[at]));
            let x = text.transpose(&x, &[1, 0]);
            text.matmul(&x, &y)
        }
        "linear_bias_backward" => {
            let leading: Vec<usize> = (0..operands[0].rank() - 1).collect();
            text.reduce(&operands[0], &leading, "add", 0.0)
        }
        "layer_norm" => {
            let (.., epsilon) = read::<(usize, usize, Option<usize>, f64)>(given.words)?;
            let x = &operands[0];
            let last = [x.rank() - 1];
            let mean = text.mean(x, &last);
            let mean = text.spread(&mean, &last, &x.shape);
            let centred = text.map("subtract", &[x, &mean]);
            let square = text.map("multiply", &[&centred, &centred]);
            let variance = text.mean(&square, &last);
            let variance = text.with("add", &variance, epsilon);
            let scale = text.map("rsqrt", &[&variance]);
            let scale = text.spread(&scale, &last, &x.shape);
            let y = text.map("multiply", &[&centred, &scale]);
            let gamma = text.broadcast(&operands[1], &x.shape);
            let y = text.map("multiply", &[&y, &gamma]);
            operands.get(2).map_or(y.clone(), |beta| text.plus_last(&y, beta))
        }
        "conv1d" => convolution::<1>(text, given)?,
        "conv2d" => convolution::<2>(text, given)?,
        "conv3d" => convolution::<3>(text, given)?,
        "conv1d_x_backward" => of_input::<1>(text, given)?,
        "conv2d_x_backward" => of_input::<2>(text, given)?,
        "conv3d_x_backward" => of_input::<3>(text, given)?,
        "conv1d_weight_backward" => of_weight::<1>(text, given)?,
        "conv2d_weight_backward" => of_weight::<2>(text, given)?,
        "conv3d_weight_backward" => of_weight::<3>(text, given)?,
        "conv1d_bias_backward" | "conv2d_bias_backward" | "conv3d_bias_backward" => {
            let y = &operands[2];
            let axes: Vec<usize> = (0..y.rank()).filter(|&axis| axis != 1).collect();
            text.reduce(y, &axes, "add", 0.0)
        }
        "max_pool2d" => {
            type Words = (usize, [usize; 2], [usize; 2], [usize; 2], [usize; 2], bool);
            let (_, size, stride, padding, dilation, ceil) = read::<Words>(given.words)?;
            if ceil {
                return None;
            }
            let x = &operands[0];
            text.window(
                x,
                given.shape(),
                "maximum",
                x.of.bound(true),
                [size, stride, padding, dilation],
            )
        }
        "avg_pool2d" => {
            type Words = (usize, [usize; 2], [usize; 2], [usize; 2], bool, bool);
            let (_, size, stride, padding, with_padding, ceil) = read::<Words>(given.words)?;
            if ceil {
                return None;
            }
            let window = [size, stride, padding, [1, 1]];
            let x = &operands[0];
            let sum = text.window(x, given.shape(), "add", 0.0, window);
            let count = if with_padding {
                text.full((size[0] * size[1]) as f64, &sum.shape, x.of)
            } else {
                let ones = text.full(1.0, &x.shape, x.of);
                text.window(&ones, given.shape(), "add", 0.0, window)
            };
            text.map("divide", &[&sum, &count])
        }
        _ => return None,
    })
}

/// All axes but the last one joined.
fn flat(text: &mut ModuleText, x: &Ssa) -> Ssa {
    let last = x.shape[x.rank() - 1];
    let leading = x.shape[..x.rank() - 1].iter().product();
    text.reshape(x, &[leading, last])
}

impl ModuleText {
    /// Products of matrices in the last two axes, with equal sizes or 1 in the others.
    fn matmul(&mut self, a: &Ssa, b: &Ssa) -> Ssa {
        let batch = a.rank() - 2;
        let sizes = a.shape[..batch].iter().zip(&b.shape[..batch]);
        let sizes: Vec<usize> = sizes.map(|(&m, &n)| if m == 1 { n } else { m }).collect();
        let [a, b] = [a, b].map(|x| {
            let shape = [&sizes[..], &x.shape[batch..]].concat();
            self.broadcast(x, &shape)
        });
        let shape = [&sizes[..], &[a.shape[batch], b.shape[batch + 1]]].concat();
        self.dot(&a, &b, batch, batch + 1, batch, &shape)
    }

    /// `x w` over the last axis of x.
    fn linear(&mut self, x: &Ssa, w: &Ssa) -> Ssa {
        let last = x.rank() - 1;
        let shape = [&x.shape[..last], &w.shape[1..]].concat();
        self.dot(x, w, 0, last, 0, &shape)
    }

    /// The sum of products over one axis of each, with leading batch axes.
    fn dot(
        &mut self,
        a: &Ssa,
        b: &Ssa,
        batch: usize,
        of_a: usize,
        of_b: usize,
        shape: &[usize],
    ) -> Ssa {
        let leading = list(0..batch);
        let exact = "#stablehlo<precision HIGHEST>";
        let more = format!(
            "{{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{leading}], rhs_batching_dimensions = \
             [{leading}], lhs_contracting_dimensions = [{of_a}], rhs_contracting_dimensions = [{of_b}]>, \
             precision_config = [{exact}, {exact}]}}"
        );
        self.op("stablehlo.dot_general", &[a, b], &more, shape, a.of)
    }

    fn plus_last(&mut self, x: &Ssa, bias: &Ssa) -> Ssa {
        let bias = self.broadcast(bias, &x.shape);
        self.map("add", &[x, &bias])
    }

    /// Combines windows of images `[batch, channels, height, width]`: size, stride, padding, dilation.
    fn window(
        &mut self,
        x: &Ssa,
        shape: &[usize],
        by: &str,
        first: f64,
        [size, stride, padding, dilation]: [[usize; 2]; 4],
    ) -> Ssa {
        let first = self.full(first, &[], x.of);
        let four = |x: [usize; 2]| array([1, 1, x[0], x[1]]);
        let [low, high] = padding;
        let more = format!(
            "{} {{window_dimensions = {}, window_strides = {}, window_dilations = {}, padding = dense<[[0, 0], [0, 0], \
             [{low}, {low}], [{high}, {high}]]> : tensor<4x2xi64>}}",
            Self::region(by, x.of),
            four(size),
            four(stride),
            four(dilation)
        );
        self.op("stablehlo.reduce_window", &[x, &first], &more, shape, x.of)
    }
}

/// Sizes of a convolution by axis.
struct Window {
    stride: Vec<usize>,
    padding: Vec<[isize; 2]>,
    of_input: Vec<usize>,
    of_kernel: Vec<usize>,
    groups: usize,
}

impl ModuleText {
    /// A convolution of `[batch, features, …]` with `[out, in, …]`.
    fn convolution(&mut self, x: &Ssa, w: &Ssa, window: &Window, shape: &[usize]) -> Ssa {
        let axes = list(0..window.stride.len());
        let pads = list(window.padding.iter().map(|[low, high]| format!("[{low}, {high}]")));
        let more = format!(
            "{{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, {axes}]x[o, i, {axes}]->[b, f, \
             {axes}]>, feature_group_count = {} : i64, window_strides = {}, padding = dense<[{pads}]> : tensor<{}x2xi64>, \
             lhs_dilation = {}, rhs_dilation = {}, precision_config = [#stablehlo<precision HIGHEST>, \
             #stablehlo<precision HIGHEST>]}}",
            window.groups,
            array(&window.stride),
            window.stride.len(),
            array(&window.of_input),
            array(&window.of_kernel),
        );
        self.op("stablehlo.convolution", &[x, w], &more, shape, x.of)
    }
}

fn convolution<const N: usize>(text: &mut ModuleText, given: &InstructionParts<'_>) -> Option<Ssa>
where
    ConvOptions<N>: crate::words::StaticArgument,
{
    let (.., options) = read::<(usize, usize, Option<usize>, ConvOptions<N>)>(given.words)?;
    let padding = options.padding.map(|pad| [pad as isize, pad as isize]);
    let window = Window {
        stride: options.stride.to_vec(),
        padding: padding.to_vec(),
        of_input: vec![1; N],
        of_kernel: options.dilation.to_vec(),
        groups: options.groups,
    };
    let [x, w] = [&given.operands[0], &given.operands[1]];
    let y = text.convolution(x, w, &window, given.shape());
    Some(match given.operands.get(2) {
        None => y,
        Some(bias) => {
            let others: Vec<usize> = (0..y.rank()).filter(|&axis| axis != 1).collect();
            let bias = text.spread(bias, &others, &y.shape);
            text.map("add", &[&y, &bias])
        }
    })
}

/// Cotangent of the input, of one group: `x̄[t] = Σ ȳ[y] w[k]` over `t = y s + k d − p`, a convolution of ȳ with s − 1 zeros
/// between its elements by the reversed kernel.
fn of_input<const N: usize>(text: &mut ModuleText, given: &InstructionParts<'_>) -> Option<Ssa>
where
    ConvOptions<N>: crate::words::StaticArgument,
{
    let (.., options) = read::<(usize, usize, usize, ConvOptions<N>)>(given.words)?;
    if options.groups != 1 {
        return None;
    }
    let [x, w, y] = [0, 1, 2].map(|at| &given.operands[at]);
    let padding = (0..N).map(|axis| {
        let reach = options.dilation[axis] * (w.shape[axis + 2] - 1);
        let low = reach as isize - options.padding[axis] as isize;
        let spread = options.stride[axis] * (y.shape[axis + 2] - 1) + 1;
        [low, x.shape[axis + 2] as isize - spread as isize - low + reach as isize]
    });
    let window = Window {
        stride: vec![1; N],
        padding: padding.collect(),
        of_input: options.stride.to_vec(),
        of_kernel: options.dilation.to_vec(),
        groups: 1,
    };
    let axes: Vec<usize> = (0..N + 2).collect();
    let w = text.reverse(w, &axes[2..]);
    let w = text.transpose(&w, &[&[1, 0], &axes[2..]].concat());
    Some(text.convolution(y, &w, &window, &x.shape))
}

/// Cotangent of the weight, of one group: `w̄[k] = Σ ȳ[y] x[y s + k d − p]`, a convolution of x by ȳ with s − 1 zeros between its
/// elements, over the batch.
fn of_weight<const N: usize>(text: &mut ModuleText, given: &InstructionParts<'_>) -> Option<Ssa>
where
    ConvOptions<N>: crate::words::StaticArgument,
{
    let (.., options) = read::<(usize, usize, usize, ConvOptions<N>)>(given.words)?;
    if options.groups != 1 {
        return None;
    }
    let [x, w, y] = [0, 1, 2].map(|at| &given.operands[at]);
    let padding = (0..N).map(|axis| {
        let low = options.padding[axis] as isize;
        let reach = options.dilation[axis] * (w.shape[axis + 2] - 1);
        let spread = options.stride[axis] * (y.shape[axis + 2] - 1) + 1;
        [low, (reach + spread) as isize - x.shape[axis + 2] as isize - low]
    });
    let window = Window {
        stride: options.dilation.to_vec(),
        padding: padding.collect(),
        of_input: vec![1; N],
        of_kernel: options.stride.to_vec(),
        groups: 1,
    };
    let swapped: Vec<usize> = [1, 0].into_iter().chain(2..N + 2).collect();
    let (x, y) = (text.transpose(x, &swapped), text.transpose(y, &swapped));
    let shape: Vec<usize> = swapped.iter().map(|&axis| w.shape[axis]).collect();
    let found = text.convolution(&x, &y, &window, &shape);
    Some(text.transpose(&found, &swapped))
}
