//! A forked process, which has none of the threads of its parent, can compute.

#![cfg(unix)]

use std::time::{Duration, Instant};

use t4a_algebra::parallel::set_threads;
use t4a_linalg::qr::{Columns, qr};
use t4a_linalg::svd::svdvals;
use t4a_tensor::{AnyTensor, Tensor};

/// Longer than the child needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Factorisations and loops that use several threads.
fn compute() -> Vec<f64> {
    // Large enough to be divided into parts.
    let n = 330;
    let a = Tensor::from_fn(&[n, n], |i| ((i * 7919) % 1009) as f64 - 500.0).unwrap();
    let mut results = qr(&a, Columns::Thin).unwrap().r.to_vec().unwrap();
    results.extend(svdvals(&a).unwrap().to_vec().unwrap());
    let long: AnyTensor = Tensor::full(&[1 << 22], 0.5f64).unwrap().into();
    let exps = long.exp().unwrap().sum(&[0]).unwrap();
    results.extend(exps.into_typed::<f64>().unwrap().to_vec().unwrap());
    results
}

#[test]
fn forked_processes_compute_as_their_parents() {
    set_threads(2);
    let wanted = compute();
    // SAFETY: the child only computes and exits by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let same = std::panic::catch_unwind(compute).is_ok_and(|found| found == wanted);
        // SAFETY: `_exit` takes an integer.
        unsafe { libc::_exit(i32::from(!same)) };
    }
    assert!(child > 0, "no fork");
    let start = Instant::now();
    let mut status = 0;
    // SAFETY: the process is a child of this one, and `status` is a valid pointer.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > PATIENCE {
            // SAFETY: the process is a child of this one.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    // The parent still uses its own threads.
    assert_eq!(compute(), wanted);
}
