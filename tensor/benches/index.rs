//! Throughput of indexing, sorting, cumulative sums and random numbers, next to memcpy (and to the standard library's
//! sort) in the same run.
//!
//! `cargo bench -p t4a-tensor --bench index`; `T4A_NUM_THREADS=1` for one thread.

use std::hint::black_box;
use std::time::Instant;

use t4a_tensor::index;
use t4a_tensor::kernels::arithmetic::Add;
use t4a_tensor::random::{Generator, normal, uniform, uniform_int};
use t4a_tensor::{Tensor, cumulative, loops::parallel, sort};

const N: usize = 1024;

/// Best of several runs, in seconds.
fn best<R>(mut f: impl FnMut() -> R) -> f64 {
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 5 || (start.elapsed().as_secs_f64() < 0.25 && runs < 1000) {
        let start = Instant::now();
        black_box(f());
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}

/// Prints time, elements per second and bytes moved per second.
fn row(name: &str, elements: usize, bytes: usize, seconds: f64) {
    println!(
        "{name:<44} {:>10.3} ms {:>9.0} M/s {:>8.2} GB/s",
        seconds * 1e3,
        elements as f64 / seconds / 1e6,
        bytes as f64 / seconds / 1e9
    );
}

fn main() {
    let g = Generator::new(1);
    let n = N * N;
    println!("f32, 1024 × 1024 unless said otherwise, {} threads", parallel::threads());
    let x = uniform::<f32>(&g, &[N, N], -1.0, 1.0).unwrap();
    let data = x.to_vec().unwrap();
    let mut copy = vec![0.0f32; n];
    row("memcpy", n, 8 * n, best(|| copy.copy_from_slice(&data)));
    row("full", n, 4 * n, best(|| Tensor::full(&[N, N], 1.0f32)));

    let i32s = uniform_int::<i32>(&g, &[N, N], 0, N as i32).unwrap();
    let i64s = uniform_int::<i64>(&g, &[N, N], 0, N as i64).unwrap();
    for axis in 0..2 {
        row(
            &format!("gather axis {axis}, i32"),
            n,
            12 * n,
            best(|| index::gather(&x, axis, &i32s)),
        );
    }
    row("gather axis 1, i64", n, 16 * n, best(|| index::gather(&x, 1, &i64s)));
    let column = i64s.slice_axis(1, 0, 1, 1).unwrap();
    row("gather axis 1, one per row", N, 16 * N, best(|| index::gather(&x, 1, &column)));
    let zeros = Tensor::<f32>::zeros(&[N, N]).unwrap();
    for axis in 0..2 {
        let name = format!("scatter add axis {axis}, i32");
        let f = || index::scatter(Add, zeros.clone(), axis, &i32s, &x);
        row(&name, n, 20 * n, best(f));
    }
    let table = uniform::<f32>(&g, &[50_000, 128], -1.0, 1.0).unwrap();
    let tokens = uniform_int::<i64>(&g, &[8192], 0, 50_000).unwrap();
    let m = 8192 * 128;
    row(
        "index_select rows of 128, 8192 of 50000",
        m,
        8 * m,
        best(|| index::index_select(&table, 0, &tokens)),
    );
    let gradient = index::index_select(&table, 0, &tokens).unwrap();
    let mut target = Some(Tensor::<f32>::zeros(&[50_000, 128]).unwrap());
    row(
        "index_scatter add, same, in place",
        m,
        12 * m,
        best(|| {
            let taken = target.take().unwrap();
            target = Some(index::index_scatter(Add, taken, 0, &tokens, &gradient).unwrap());
        }),
    );
    let cols = uniform_int::<i32>(&g, &[N], 0, N as i32).unwrap();
    row("index_select columns", n, 8 * n, best(|| index::index_select(&x, 1, &cols)));

    let mask = uniform_int::<u8>(&g, &[N, N], 0, 2).unwrap();
    row("mask_fill, shared", n, 9 * n, best(|| index::mask_fill(x.clone(), mask.clone(), 0.0)));
    row(
        "mask_where, shared",
        n,
        13 * n,
        best(|| index::mask_where(x.clone(), mask.clone(), zeros.clone())),
    );
    row("nonzero, half", n, n + 8 * n, best(|| index::nonzero::<_, i64>(&mask)));
    row("cat of two, axis 1", 2 * n, 16 * n, best(|| index::cat(&[x.clone(), zeros.clone()], 1)));
    row("repeat 4, axis 0", 4 * n, 20 * n, best(|| index::repeat(&x, 0, 4)));
    let part = x.slice_axis(0, 0, 512, 1).unwrap();
    let spans = [index::Span { start: 0, len: 512, step: 2 }];
    let mut target = Some(Tensor::<f32>::zeros(&[N, N]).unwrap());
    row(
        "slice_assign every second row, in place",
        n / 2,
        4 * n,
        best(|| {
            target = Some(index::slice_assign(target.take().unwrap(), &spans, &part).unwrap());
        }),
    );

    for axis in 0..2 {
        row(&format!("cumsum axis {axis}"), n, 8 * n, best(|| cumulative::cumsum(&x, axis)));
    }
    row("cummax axis 1", n, 8 * n, best(|| cumulative::cummax(&x, 1)));
    let line = x.reshape(&[n]).unwrap();
    row("cumsum of one row of 2²⁰", n, 8 * n, best(|| cumulative::cumsum(&line, 0)));

    for len in [16, 128, 1024, 4096, n] {
        let rows = x.reshape(&[n / len, len]).unwrap();
        let std = best(|| {
            copy.copy_from_slice(&data);
            copy.chunks_exact_mut(len).for_each(|row| row.sort_unstable_by(f32::total_cmp));
        });
        row(&format!("std sort_unstable, rows of {len}"), n, 8 * n, std);
        row(&format!("sort, rows of {len}"), n, 8 * n, best(|| sort::sort(rows.clone(), 1, false)));
        row(
            &format!("argsort, rows of {len}"),
            n,
            12 * n,
            best(|| sort::argsort::<f32, i64>(&rows, 1, false)),
        );
    }
    row("sort axis 0", n, 8 * n, best(|| sort::sort(x.clone(), 0, false)));
    let wide = uniform::<f64>(&g, &[n], -1.0, 1.0).unwrap();
    row("sort, one row of 2²⁰ f64", n, 16 * n, best(|| sort::sort(wide.clone(), 0, false)));
    row("topk 10, rows of 1024", n, 4 * n, best(|| sort::topk::<f32, i64>(&x, 1, 10, true)));
    row("topk 10, one row of 2²⁰", n, 4 * n, best(|| sort::topk::<f32, i64>(&line, 0, 10, true)));

    row("uniform", n, 4 * n, best(|| uniform::<f32>(&g, &[n], 0.0, 1.0)));
    row("normal", n, 4 * n, best(|| normal::<f32>(&g, &[n], 0.0, 1.0)));
    row("normal f64", n, 8 * n, best(|| normal::<f64>(&g, &[n], 0.0, 1.0)));
    row("uniform_int i64", n, 8 * n, best(|| uniform_int::<i64>(&g, &[n], 0, 1000)));
}
