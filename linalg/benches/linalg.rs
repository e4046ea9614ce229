//! Factorisations in double precision against direct calls of faer and against nalgebra, and the cost of a gradient:
//! `cargo bench -p t4a-linalg`, on one thread and on all.
//!
//! Microseconds per matrix, minimum of several rounds. `over` is forward/faer − 1; `bwd` is the time of the reverse
//! pass alone as a multiple of the forward pass. A batch is one call of this crate and a loop over faer. Every result
//! is checked before the measurement.
//!
//! Arguments filter by name: `cargo bench -p t4a-linalg -- svd 256`.

use std::hint::black_box;
use std::time::Instant;

use faer::linalg::solvers::Solve;
use faer::{Mat, Par, Side};
use nalgebra::DMatrix;
use t4a_linalg::cholesky::CholeskyOp;
use t4a_linalg::eigh::EighOp;
use t4a_linalg::lu::{LuFactorOp, Pivoting};
use t4a_linalg::operation::Outcome;
use t4a_linalg::qr::{Columns, QrOp};
use t4a_linalg::schur::schur;
use t4a_linalg::solve::SolveOp;
use t4a_linalg::sqrtm::sqrtm;
use t4a_linalg::svd::{SvdOp, SvdvalsOp, Vectors};
use t4a_linalg::vocabulary::{Batched, Matrices};
use t4a_linalg::{Degeneracy, MatrixOp};
use t4a_tensor::{Tensor, loops::parallel};

/// Minimum time of one call, in µs.
fn time(mut call: impl FnMut()) -> f64 {
    call();
    let begin = Instant::now();
    call();
    let once = begin.elapsed().as_secs_f64().max(1e-9);
    let rounds = if once > 0.05 { 3 } else { 9 };
    let repeat = (0.004 / once).ceil() as usize;
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let begin = Instant::now();
        (0..repeat).for_each(|_| call());
        best = best.min(begin.elapsed().as_secs_f64() / repeat as f64);
    }
    best * 1e6
}

fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

struct Case {
    op: MatrixOp,
    name: &'static str,
}

const CASES: [Case; 8] = [
    Case { op: MatrixOp::Svd(SvdOp { vectors: Vectors::Thin, degeneracy: POLICY }), name: "svd" },
    Case { op: MatrixOp::Svdvals(SvdvalsOp), name: "svdvals" },
    Case { op: MatrixOp::Qr(QrOp { columns: Columns::Thin }), name: "qr" },
    Case { op: MatrixOp::Eigh(EighOp { degeneracy: POLICY }), name: "eigh" },
    Case { op: MatrixOp::Cholesky(CholeskyOp), name: "cholesky" },
    Case { op: MatrixOp::Solve(SolveOp), name: "solve" },
    Case { op: MatrixOp::LuFactor(LuFactorOp { pivoting: Pivoting::Partial }), name: "lu" },
    Case { op: MatrixOp::LuFactor(LuFactorOp { pivoting: Pivoting::Full }), name: "lu_full" },
];
const POLICY: Degeneracy = Degeneracy::DEFAULT;

fn inputs(op: &MatrixOp, batch: &[usize], n: usize) -> Vec<Tensor<f64>> {
    let shape: Vec<usize> = batch.iter().copied().chain([n, n]).collect();
    let a = Tensor::from_vec(numbers(1, shape.iter().product()), &shape).expect("memory");
    let a = match op {
        MatrixOp::Cholesky(_) => {
            let a = Batched::new(&a);
            let square = a.matmul(&a.adjoint()).scale(1.0 / n as f64);
            square.add(&a.identity(n)).into_tensor().expect("a product")
        }
        MatrixOp::Eigh(_) => Batched::new(&a).herm().into_tensor().expect("a sum"),
        // Well-conditioned matrix.
        MatrixOp::Solve(_) | MatrixOp::LuFactor(_) => {
            let a = Batched::new(&a);
            a.add(&a.identity(n).scale(2.0)).into_tensor().expect("a sum")
        }
        _ => a,
    };
    match op {
        MatrixOp::Solve(_) => vec![a.clone(), a.clone()],
        _ => vec![a],
    }
}

fn faer_call(op: &MatrixOp, a: &Mat<f64>) {
    const CONVERGED: &str = "regular matrices";
    match op {
        MatrixOp::Svd(_) => drop(black_box(a.thin_svd().expect(CONVERGED))),
        MatrixOp::Svdvals(_) => drop(black_box(a.singular_values().expect(CONVERGED))),
        MatrixOp::Qr(_) => {
            let qr = a.qr();
            black_box((qr.compute_thin_Q(), qr.thin_R().to_owned()));
        }
        MatrixOp::Eigh(_) => drop(black_box(a.self_adjoint_eigen(Side::Lower).expect(CONVERGED))),
        MatrixOp::Cholesky(_) => drop(black_box(a.llt(Side::Lower).expect(CONVERGED))),
        MatrixOp::Solve(_) => drop(black_box(a.partial_piv_lu().solve(a))),
        MatrixOp::LuFactor(LuFactorOp { pivoting: Pivoting::Full }) => {
            drop(black_box(a.full_piv_lu()))
        }
        _ => drop(black_box(a.partial_piv_lu())),
    }
}

fn nalgebra_call(op: &MatrixOp, a: &DMatrix<f64>) {
    let a = a.clone();
    match op {
        MatrixOp::Svd(_) => drop(black_box(a.svd(true, true))),
        MatrixOp::Svdvals(_) => drop(black_box(a.svd(false, false))),
        MatrixOp::Qr(_) => {
            let qr = a.qr();
            black_box((qr.q(), qr.r()));
        }
        MatrixOp::Eigh(_) => drop(black_box(a.symmetric_eigen())),
        MatrixOp::Cholesky(_) => drop(black_box(a.cholesky())),
        MatrixOp::Solve(_) => {
            let rhs = a.clone();
            drop(black_box(a.lu().solve(&rhs)))
        }
        MatrixOp::LuFactor(LuFactorOp { pivoting: Pivoting::Full }) => {
            drop(black_box(nalgebra::FullPivLU::new(a)))
        }
        _ => drop(black_box(a.lu())),
    }
}

/// Checks that the product of the factors is the matrix.
fn check(op: &MatrixOp, inputs: &[Tensor<f64>], out: &Outcome<Batched<f64>>) {
    let a = Batched::new(&inputs[0]);
    let full = |i: usize| out.results[i].full();
    let product = match op {
        MatrixOp::Svd(_) => full(0).mul_real(out.results[1].real()).matmul(full(2)),
        MatrixOp::Eigh(_) => full(1).mul_real(out.results[0].real()).matmul(&full(1).adjoint()),
        MatrixOp::Qr(_) => full(0).matmul(full(1)),
        MatrixOp::Cholesky(_) => full(0).matmul(&full(0).adjoint()),
        MatrixOp::Solve(_) => a.matmul(full(0)),
        MatrixOp::LuFactor(_) => {
            let n = a.rows();
            let lower = full(0).mask(t4a_linalg::vocabulary::Region::Lower(-1));
            let upper = full(0).mask(t4a_linalg::vocabulary::Region::Upper(0));
            let product = lower.add(&a.identity(n)).matmul(&upper);
            let rows = out.permutations[0].inverse().expect("memory");
            let product = product.permute_rows(&rows);
            match out.permutations.get(1) {
                Some(cols) => product.permute_cols(&cols.inverse().expect("memory")),
                None => product,
            }
        }
        _ => {
            // ‖A‖² = Σ s².
            let (s, whole) = (out.results[0].real().norms(), a.norms());
            let (s, whole) = (s.expect("values"), whole.expect("values"));
            assert!(s.iter().zip(&whole).all(|(s, a)| (s - a).abs() < 1e-10 * a));
            return;
        }
    };
    let off = product.sub(&a).norms().expect("values");
    let size = a.norms().expect("values");
    assert!(off.iter().zip(&size).all(|(off, size)| *off < 1e-11 * size), "{op:?}: {off:?}");
}

fn main() {
    let filters: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let cores = parallel::threads();
    let sizes =
        [(2, 16), (2, 64), (4, 16), (4, 64), (8, 16), (8, 64), (8, 1), (64, 1), (256, 1), (512, 1)];
    for threads in [cores, 1] {
        // The thread pool persists; setting 1 thread disables it permanently, so one thread is measured last.
        parallel::set_threads(threads);
        faer::set_global_parallelism(if threads == 1 { Par::Seq } else { Par::rayon(0) });
        println!("\nthreads {threads}: µs per matrix");
        println!(
            "{:<9} {:>4} {:>6} {:>10} {:>10} {:>10} {:>8} {:>10} {:>6}",
            "op", "n", "batch", "forward", "faer", "nalgebra", "over", "gradient", "bwd"
        );
        for Case { op, name } in &CASES {
            for (n, count) in sizes {
                let wanted = |f: &String| name == f || n.to_string() == *f;
                let (names, numbers): (Vec<_>, Vec<_>) =
                    filters.iter().cloned().partition(|f| f.parse::<usize>().is_err());
                if !(names.is_empty() || names.iter().any(wanted))
                    || !(numbers.is_empty() || numbers.iter().any(wanted))
                {
                    continue;
                }
                row(op, name, n, count);
            }
        }
        for n in [32, 64, 128, 256, 512] {
            let name = |f: &String| f == "schur" || *f == n.to_string();
            if filters.is_empty() || filters.iter().all(name) {
                schur_row(n);
            }
        }
        if cores == 1 {
            break;
        }
    }
}

/// The Schur form, which faer does not export, compared with eigenvectors; and a square root computed from it.
fn schur_row(n: usize) {
    let a = Tensor::from_vec(numbers(1, n * n), &[n, n]).expect("memory");
    let shifted = Batched::new(&a).add(&Batched::new(&a).identity(n).scale(n as f64));
    let shifted = shifted.into_tensor().expect("a sum");
    let values = a.to_vec().expect("memory");
    let direct = Mat::from_fn(n, n, |i, j| values[i * n + j]);
    let root = Batched::new(&sqrtm(&shifted).expect("regular matrices"));
    let off = root.matmul(&root).sub(&Batched::new(&shifted)).norms().expect("values");
    assert!(off[0] < 1e-11 * (n * n) as f64, "sqrtm: {off:?}");
    let own = time(|| drop(black_box(schur(&a).expect("regular matrices"))));
    let faer = time(|| drop(black_box(direct.eigen().expect("regular matrices"))));
    let nalgebra =
        time(|| drop(black_box(DMatrix::from_fn(n, n, |i, j| values[i * n + j]).schur())));
    let root = time(|| drop(black_box(sqrtm(&shifted).expect("regular matrices"))));
    println!(
        "{:<9} {n:>4} {:>6} {own:>10.2} {faer:>10.2} {nalgebra:>10.2}   sqrtm {root:>10.2}",
        "schur", 1
    );
}

fn row(op: &MatrixOp, name: &str, n: usize, count: usize) {
    let batch: &[usize] = if count == 1 { &[] } else { &[count] };
    let inputs = inputs(op, batch, n);
    let refs: Vec<&Tensor<f64>> = inputs.iter().collect();
    let views: Vec<_> = inputs.iter().map(Batched::new).collect();
    let values = inputs[0].to_vec().expect("memory");
    let entry = |b: usize| {
        let values = &values;
        move |i: usize, j: usize| values[(b * n + i) * n + j]
    };
    let direct: Vec<Mat<f64>> = (0..count).map(|b| Mat::from_fn(n, n, entry(b))).collect();
    let other: Vec<_> = (0..count).map(|b| DMatrix::from_fn(n, n, entry(b))).collect();

    check(op, &inputs, &op.forward(&refs, true).expect("regular matrices"));
    let run = || op.forward(&refs, false).expect("regular matrices");
    let gradient = || {
        let out = op.forward(&refs, true).expect("regular matrices");
        // Cotangents of the loss Σ x²/2 over all results.
        let cotangents: Vec<_> = out.results.iter().cloned().map(Some).collect();
        black_box(op.pullback(&views, &out, &cotangents, &[]).expect("a loss without gauge"));
    };
    let per = |us: f64| us / count as f64;
    let forward = per(time(|| drop(black_box(run()))));
    let with_vjp = per(time(gradient));
    let faer = per(time(|| direct.iter().for_each(|a| faer_call(op, a))));
    let nalgebra = match n > 256 {
        true => f64::NAN,
        false => per(time(|| other.iter().for_each(|a| nalgebra_call(op, a)))),
    };
    println!(
        "{name:<9} {n:>4} {count:>6} {forward:>10.2} {faer:>10.2} {nalgebra:>10.2} {:>7.0}% {with_vjp:>10.2} {:>6.2}",
        100.0 * (forward / faer - 1.0),
        (with_vjp - forward) / forward,
    );
}
