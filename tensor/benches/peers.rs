//! Rows in which PyTorch is close, for `benches/peers/rows.py`, which runs them beside PyTorch and compares results.
//!
//! `cargo bench -p t4a-tensor --bench peers -- ROW SECONDS` prints the shortest time in nanoseconds, the sum of the
//! results weighted by other inputs, and the sum of their magnitudes; `--list` prints the names of the rows.

use std::hint::black_box;
use std::time::Instant;

use t4a_tensor::kernels::compare::Logic;
use t4a_tensor::nn::conv::ConvOptions;
use t4a_tensor::random::{Distribution, Generator};
use t4a_tensor::{AnyTensor, DType, Tensor};

/// Number `i` of input `seed`: multiples of the golden ratio, modulo 2 (the script has the same).
fn input(seed: u32, i: usize) -> f64 {
    let word = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(974_711));
    f64::from(word) / f64::from(1u32 << 31) - 1.0
}

fn floats(seed: u32, shape: &[usize]) -> AnyTensor {
    Tensor::from_fn(shape, |i| input(seed, i) as f32).expect("memory").into()
}

fn indices(seed: u32, shape: &[usize], below: usize) -> AnyTensor {
    let index = |i| ((input(seed, i) + 1.0) / 2.0 * below as f64) as i64;
    Tensor::from_fn(shape, index).expect("memory").into()
}

type Run = Box<dyn Fn() -> AnyTensor>;

fn convolution(x: [usize; 4], w: [usize; 4], groups: usize, of: &str) -> Run {
    let mut options = ConvOptions::new(2).padded(&[1, 1]);
    options.groups = groups;
    let (x, w) = (floats(1, &x), floats(2, &w));
    let dy = floats(3, x.conv(&w, None, &options).expect("operands that fit").shape());
    match of {
        "x" => Box::new(move || dy.conv_x(x.shape(), &w, &options).expect("fits")),
        "weight" => Box::new(move || dy.conv_weight(&x, w.shape(), &options).expect("fits")),
        _ => Box::new(move || x.conv(&w, None, &options).expect("fits")),
    }
}

fn transpose_copy(n: usize) -> Run {
    let t = floats(1, &[n, n]).swap_axes(0, 1).expect("two axes");
    Box::new(move || t.to_contiguous().expect("memory"))
}

const ROWS: &[&str] = &[
    "sum 1024²",
    "sum 1024² rows",
    "sum 1024² columns",
    "sum 32×512×4096 axis 0",
    "mean 64×128×128 axis 1",
    "layer norm 1024²",
    "max 1024² rows",
    "matmul 512² transposed",
    "matmul 64×512 by 512² transposed",
    "normal 1024²",
    "gelu 1024²",
    "gelu gradient 1024²",
    "sigmoid 1024²",
    "exp 1024²",
    "tanh 1024²",
    "add 1024²",
    "add 1024² by a row",
    "add 1024² by a column",
    "mul 1024² by a row",
    "mul 1024² by a column",
    "add scalar 1024²",
    "add 1024² transposed",
    "softmax 1024² rows",
    "gather 1024² axis 0",
    "gather 1024² axis 1",
    "select bool 1024² axis 0",
    "select bool 1024² axis 1",
    "select 1024² axis 0",
    "select 1024² axis 1",
    "depthwise 8×64×56² 3×3",
    "depthwise 8×64×56² 3×3: x",
    "depthwise 8×64×56² 3×3: weight",
    "depthwise 8×64×28² 3×3",
    "depthwise 8×64×28² 3×3: x",
    "depthwise 8×64×28² 3×3: weight",
    "conv 8×32×56² → 64",
    "conv 8×32×56² → 64: x",
    "conv 8×32×56² → 64: weight",
    "uniform 1024²",
    "bool to i32 1024²",
    "bool and 1024²",
    "transpose copy 1024²",
    "transpose copy 1000²",
    "transpose copy 300²",
    "add 16",
    "sum 4×4",
];

fn row(name: &str) -> Run {
    let square = [1024, 1024];
    let (a, b) = (floats(1, &square), floats(2, &square));
    let (line, column) = (floats(3, &[1, 1024]), floats(3, &[1024, 1]));
    let at = indices(4, &square, 1024);
    let places = indices(5, &[1024], 1024);
    let bools = || a.clone().cast(DType::I32).expect("fits").cast(DType::U8).expect("fits");
    let g = Generator::new(1);
    let random = move |law| AnyTensor::random(&g, &square, law, DType::F32).expect("fits");
    let each = [64, 1, 3, 3];
    let (images, filters) = ([8, 32, 56, 56], [64, 32, 3, 3]);
    macro_rules! run {
        ($e:expr) => {
            Box::new(move || $e.expect("operands that fit"))
        };
    }
    match name {
        "sum 1024²" => run!(a.sum(&[0, 1])),
        "sum 1024² rows" => run!(a.sum(&[1])),
        "sum 1024² columns" => run!(a.sum(&[0])),
        "sum 32×512×4096 axis 0" => {
            let x = floats(1, &[32, 512, 4096]);
            run!(x.sum(&[0]))
        }
        "mean 64×128×128 axis 1" => {
            let x = floats(1, &[64, 128, 128]);
            run!(x.mean(&[1]))
        }
        "layer norm 1024²" => {
            let (gamma, beta) = (floats(2, &[1024]), floats(3, &[1024]));
            run!(a.layer_norm(&gamma, Some(&beta), 1e-5))
        }
        "matmul 512² transposed" | "matmul 64×512 by 512² transposed" => {
            let x = floats(1, &[if name.starts_with("matmul 64") { 64 } else { 512 }, 512]);
            let w = floats(2, &[512, 512]).swap_axes(0, 1).expect("two axes");
            run!(x.matmul(&w))
        }
        "max 1024² rows" => run!(a.max(&[1])),
        "normal 1024²" => Box::new(move || random(Distribution::Normal(0.0, 1.0))),
        "uniform 1024²" => Box::new(move || random(Distribution::Standard)),
        "gelu 1024²" => run!(a.clone().gelu()),
        "gelu gradient 1024²" => run!(a.clone().gelu_backward(b.clone())),
        "sigmoid 1024²" => run!(a.clone().sigmoid()),
        "exp 1024²" => run!(a.clone().exp()),
        "tanh 1024²" => run!(a.clone().tanh()),
        "add 1024²" => run!(a.clone().add(b.clone())),
        "add 1024² by a row" => run!(a.clone().add(line.clone())),
        "add 1024² by a column" => run!(a.clone().add(column.clone())),
        "mul 1024² by a row" => run!(a.clone().mul(line.clone())),
        "mul 1024² by a column" => run!(a.clone().mul(column.clone())),
        "add scalar 1024²" => run!(a.clone().add_scalar(1.5f64.into())),
        "add 1024² transposed" => {
            let t = b.swap_axes(0, 1).expect("two axes");
            run!(a.clone().add(t.clone()))
        }
        "softmax 1024² rows" => run!(a.softmax(1)),
        "gather 1024² axis 0" => run!(a.gather(0, &at)),
        "gather 1024² axis 1" => run!(a.gather(1, &at)),
        "bool to i32 1024²" => {
            let x = a.greater_scalar(0.0f64.into()).expect("real numbers");
            run!(x.clone().cast(DType::I32))
        }
        "bool and 1024²" => {
            let x = a.greater_scalar(0.0f64.into()).expect("real numbers");
            let y = b.greater_scalar(0.0f64.into()).expect("real numbers");
            run!(x.clone().logical(Logic::AND, y.clone()))
        }
        "select bool 1024² axis 0" => {
            let x = bools();
            run!(x.index_select(0, &places))
        }
        "select bool 1024² axis 1" => {
            let x = bools();
            run!(x.index_select(1, &places))
        }
        "select 1024² axis 0" => run!(a.index_select(0, &places)),
        "select 1024² axis 1" => run!(a.index_select(1, &places)),
        "transpose copy 1024²" => transpose_copy(1024),
        "transpose copy 1000²" => transpose_copy(1000),
        "transpose copy 300²" => transpose_copy(300),
        "sum 4×4" => {
            let a = floats(1, &[4, 4]);
            run!(a.sum(&[0, 1]))
        }
        "add 16" => {
            let (a, b) = (floats(1, &[16]), floats(2, &[16]));
            run!(a.clone().add(b.clone()))
        }
        _ => {
            let (name, of) = name.split_once(": ").unwrap_or((name, ""));
            match name.starts_with("depthwise") {
                true => {
                    let side = if name.contains("28²") { 28 } else { 56 };
                    convolution([8, 64, side, side], each, 64, of)
                }
                false => convolution(images, filters, 1, of),
            }
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let Some(name) = args.next().filter(|name| name != "--list") else {
        ROWS.iter().for_each(|name| println!("{name}"));
        return;
    };
    let seconds: f64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(0.25);
    let run = row(&name);
    let y = run().cast(DType::F64).expect("numbers");
    let y = y.typed::<f64>().and_then(|y| y.to_vec()).expect("numbers");
    let weighted: f64 = y.iter().enumerate().map(|(i, y)| y * input(7, i)).sum();
    let size: f64 = y.iter().map(|y| y.abs()).sum();
    // Batches of about 20 µs, so that the clock does not count.
    let batch = |count: usize| {
        let start = Instant::now();
        for _ in 0..count {
            black_box(run());
        }
        start.elapsed().as_secs_f64()
    };
    let count = (20e-6 / batch(3) * 3.0).ceil() as usize;
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    while start.elapsed().as_secs_f64() < seconds {
        best = best.min(batch(count) / count as f64);
    }
    println!("{:.1} {weighted:e} {size:e}", best * 1e9);
}
