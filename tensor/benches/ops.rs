//! Elementwise operations, sums and matrix products through [`AnyTensor`], small and large, to measure both the kernels
//! and the overhead per operation.
//!
//! `cargo bench -p t4a-tensor --bench ops`; `T4A_NUM_THREADS=1` for one thread. An argument selects the rows whose
//! names contain it.

use std::hint::black_box;
use std::time::Instant;

use t4a_tensor::loops::parallel;
use t4a_tensor::random::{Distribution, Generator};
use t4a_tensor::{AnyTensor, DType, Number};

/// Seconds per call, the median of several batches that take a millisecond or one call each.
fn median<R>(mut f: impl FnMut() -> R) -> f64 {
    let mut batch = 1;
    let mut time = |batch: usize| {
        let start = Instant::now();
        for _ in 0..batch {
            black_box(f());
        }
        start.elapsed().as_secs_f64()
    };
    while batch < 1 << 20 && time(batch) < 1e-3 {
        batch *= 2;
    }
    let mut runs: Vec<f64> = (0..41).map(|_| time(batch) / batch as f64).collect();
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn random(shape: &[usize], dtype: DType) -> AnyTensor {
    let law = Distribution::Uniform(Number::Int(-4), Number::Int(4));
    AnyTensor::random(&Generator::new(1), shape, law, dtype).unwrap()
}

fn main() {
    let pick = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let row = |name: String, work: usize, f: &dyn Fn() -> AnyTensor| {
        if name.contains(&pick) {
            let seconds = median(f);
            let rate = work as f64 / seconds / 1e9;
            println!("{name:<28} {:>12.4} µs {rate:>8.2} G/s", seconds * 1e6);
        }
    };
    println!("{} threads; elements or multiply-adds per second", parallel::threads());
    for dtype in [DType::F32, DType::F16, DType::I32] {
        for n in [8, 64, 256, 1024] {
            if dtype != DType::F32 && n == 1024 {
                continue;
            }
            let (a, b) = (random(&[n, n], dtype), random(&[n, n], dtype));
            row(format!("matmul {n} {dtype}"), n * n * n, &|| a.matmul(&b).unwrap());
        }
    }
    for (name, shape) in [("16", &[16][..]), ("1024²", &[1024, 1024])] {
        let n = shape.iter().product();
        for dtype in [DType::F32, DType::F16] {
            let (a, b) = (random(shape, dtype), random(shape, dtype));
            let axes: Vec<usize> = (0..shape.len()).collect();
            row(format!("add {name} {dtype}"), n, &|| a.clone().add(b.clone()).unwrap());
            row(format!("exp {name} {dtype}"), n, &|| a.clone().exp().unwrap());
            row(format!("sum {name} {dtype}"), n, &|| a.sum(&axes).unwrap());
            row(format!("gelu {name} {dtype}"), n, &|| a.clone().gelu().unwrap());
        }
    }
    let x = random(&[1024, 1024], DType::F32);
    let t = x.swap_axes(0, 1).unwrap();
    let n = 1 << 20;
    row("sum 1024² rows f32".into(), n, &|| x.sum(&[1]).unwrap());
    row("sum 1024² columns f32".into(), n, &|| x.sum(&[0]).unwrap());
    let volume = random(&[64, 128, 128], DType::F32);
    row("mean 64×128×128 middle f32".into(), n, &|| volume.mean(&[1]).unwrap());
    row("max 1024² rows f32".into(), n, &|| x.max(&[1]).unwrap());
    row("copy 1024² transposed f32".into(), n, &|| t.to_contiguous().unwrap());
    row("add 1024² transposed f32".into(), n, &|| x.clone().add(t.clone()).unwrap());
    row("cast 1024² i32 f32".into(), n, &|| {
        x.clone().cast(DType::I32).unwrap().cast(DType::F32).unwrap()
    });
    row("cast 1024² f16 f32".into(), n, &|| {
        x.clone().cast(DType::F16).unwrap().cast(DType::F32).unwrap()
    });
    row("argsort 1024² f32".into(), n, &|| x.argsort(1, false, DType::I32).unwrap());
    row("uniform 1024² f32".into(), n, &|| random(&[1024, 1024], DType::F32));
    let index = random(&[1024], DType::I64).abs().unwrap();
    row("index_select 1024² f32".into(), n, &|| x.index_select(0, &index).unwrap());
}
