//! Contractions of complex numbers as pairs: the engine's choice against four products of real arrays, in alternating
//! runs. `cargo bench -p t4a-einsum --bench complex -- THREADS PART-OF-A-NAME`

use std::hint::black_box;
use std::time::Instant;

use t4a_diff::{Eager, Operation, Pairs, Value};
use t4a_einsum::{Contraction, Einsum, FloatSemiring};
use t4a_tensor::{AnyTensor, DType, Tensor, loops::parallel};

const ROWS: [(&str, &str, &[&[usize]]); 20] = [
    ("matmul_4", "ij,jk->ik", &[&[4, 4], &[4, 4]]),
    ("matmul_16", "ij,jk->ik", &[&[16, 16], &[16, 16]]),
    ("matmul_64", "ij,jk->ik", &[&[64, 64], &[64, 64]]),
    ("matmul_128", "ij,jk->ik", &[&[128, 128], &[128, 128]]),
    ("matmul_512", "ij,jk->ik", &[&[512, 512], &[512, 512]]),
    ("matmul_1024", "ij,jk->ik", &[&[1024, 1024], &[1024, 1024]]),
    ("batched_32_64", "bij,bjk->bik", &[&[32, 64, 64], &[32, 64, 64]]),
    ("batched_1000_8", "bij,bjk->bik", &[&[1000, 8, 8], &[1000, 8, 8]]),
    ("matvec_100", "ij,j->i", &[&[100, 100], &[100]]),
    ("matvec_1024", "ij,j->i", &[&[1024, 1024], &[1024]]),
    ("columns_8", "ij,jk->ik", &[&[1024, 1024], &[1024, 8]]),
    ("columns_32", "ij,jk->ik", &[&[1024, 1024], &[1024, 32]]),
    ("short_sum_4", "ij,jk->ik", &[&[1024, 4], &[4, 1024]]),
    ("two_qubit_gate_20", "abcd,xcdy->xaby", &[&[2, 2, 2, 2], &[64, 2, 2, 4096]]),
    ("inner_100000", "i,i->", &[&[100_000], &[100_000]]),
    ("elementwise_512", "ij,ij->ij", &[&[512, 512], &[512, 512]]),
    ("outer_1024", "i,j->ij", &[&[1024], &[1024]]),
    ("mps_gate", "apb,bqc,pqst->astc", &[&[64, 2, 64], &[64, 2, 64], &[2, 2, 2, 2]]),
    ("rearranged", "iajb,kbla->ikjl", &[&[16, 16, 16, 16], &[16, 16, 16, 16]]),
    ("diagonal", "iij,jk->ik", &[&[64, 64, 64], &[64, 64]]),
];

fn microseconds<R>(run: impl FnOnce() -> R) -> f64 {
    let begin = Instant::now();
    black_box(run());
    begin.elapsed().as_secs_f64() * 1e6
}

/// The first decile of the times, which excludes interference from other processes.
fn typical(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 10]
}

fn row(name: &str, text: &str, shapes: &[&[usize]], dtype: DType) {
    let plan = Einsum::new(text).and_then(|x| x.plan(shapes, 2 * dtype.size())).expect("a plan");
    let op = Pairs::new(Contraction { plan, semiring: FloatSemiring::Standard });
    let part = |i: usize| {
        let value = |at| ((at * 7919 + i * 31) % 101) as f64 / 101.0 - 0.5;
        let x = AnyTensor::from(Tensor::from_fn(shapes[i / 2], value).expect("memory"));
        Value::Float(Eager::from(x.cast(dtype).expect("memory")))
    };
    let inputs: Vec<Value<Eager>> = (0..2 * shapes.len()).map(part).collect();
    let tracked = vec![false; inputs.len()];
    let (mut own, mut real) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while own.len() < 10 || (start.elapsed().as_secs_f64() < 0.5 && own.len() < 3000) {
        own.push(microseconds(|| op.forward(&inputs, &tracked).expect("a contraction")));
        real.push(microseconds(|| op.portable(&inputs, &tracked).expect("a contraction")));
    }
    let (own, real) = (typical(own), typical(real));
    println!("{name:<20} {dtype:>4} {own:>10.1} {real:>10.1} {:>6.2}", own / real);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if let Some(threads) = args.first().and_then(|x| x.parse().ok()) {
        parallel::set_threads(threads);
    }
    println!("microseconds\n{:<20} {:>4} {:>10} {:>10} {:>6}", "", "", "own", "four", "ratio");
    for (name, text, shapes) in ROWS {
        if args.get(1).is_none_or(|part| name.contains(part.as_str())) {
            row(name, text, shapes, DType::F64);
            row(name, text, shapes, DType::F32);
        }
    }
}
