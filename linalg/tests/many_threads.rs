//! A factorisation has no more threads than there are cores, however many are asked for: more would wait for each other
//! at every step.

#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use t4a_algebra::parallel::{cores, set_threads};
use t4a_linalg::qr::{Columns, qr};
use t4a_linalg::svd::svdvals;
use t4a_tensor::Tensor;

/// Number of threads of this process whose name begins with this one.
fn named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

#[test]
fn hundreds_of_threads_do_not_slow_a_factorisation() {
    let n = 330;
    let a = Tensor::from_fn(&[n, n], |i| ((i * 7919) % 1009) as f64 - 500.0).unwrap();
    let compute = || {
        let start = Instant::now();
        let mut results = qr(&a, Columns::Thin).unwrap().r.to_vec().unwrap();
        results.extend(svdvals(&a).unwrap().to_vec().unwrap());
        (results, start.elapsed())
    };
    set_threads(cores());
    let (wanted, alone) = compute();
    set_threads(400);
    let (found, together) = compute();
    assert_eq!(found, wanted);
    // Pools of several threads and of one.
    assert!(named("t4a-linalg") <= cores() + 1, "{} threads", named("t4a-linalg"));
    assert!(together < 10 * alone + Duration::from_secs(2), "{together:?} after {alone:?}");
}
