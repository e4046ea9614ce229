//! Results are bit-identical for any number of threads. A single test per file: the number of threads is process-wide.

#[path = "all/oracle/mod.rs"]
mod oracle;

use oracle::Tropical;
use t4a_algebra::Standard;
use t4a_einsum::{Einsum, Plan};
use t4a_tensor::Tensor;
use t4a_tensor::loops::parallel;

/// Subscripts and shapes just large enough for four threads, because the products of a semiring of this file are not
/// optimised: products, batches, sums, outer and elementwise products, a copy before a product, a slice.
const CASES: [(&str, &[&[usize]]); 8] = [
    ("ij,jk->ik", &[&[120, 130], &[130, 110]]),
    ("ij,jk->ik", &[&[600, 1200], &[1200, 3]]),
    ("bij,bjk->bik", &[&[40, 30, 30], &[40, 30, 40]]),
    ("ij->j", &[&[700, 900]]),
    ("i,j->ij", &[&[900], &[700]]),
    ("ij,ij->ij", &[&[600, 700], &[600, 700]]),
    ("aibj,cjdi->acbd", &[&[10, 16, 12, 12], &[8, 12, 10, 16]]),
    ("ab,bc,cd,da->", &[&[80, 90], &[90, 110], &[110, 130], &[130, 80]]),
];

fn data(shapes: &[&[usize]]) -> Vec<Tensor<f64>> {
    let value = |i: usize| ((i * 7919 + 31) % 1009) as f64 / 1009.0 - 0.4;
    shapes.iter().map(|shape| Tensor::from_fn(shape, value).unwrap()).collect()
}

fn plans() -> Vec<(usize, std::sync::Arc<Plan>)> {
    let mut plans = Vec::new();
    for (i, (text, shapes)) in CASES.iter().enumerate() {
        let whole = Einsum::new(text).unwrap();
        let plan = whole.plan(shapes, 8).unwrap();
        let budget = plan.cost().bytes(8) * 0.7;
        plans.push((i, plan));
        if let Ok(sliced) = whole.memory(budget as usize).plan(shapes, 8) {
            plans.push((i, sliced));
        }
    }
    assert!(plans.iter().any(|(_, plan)| !plan.sliced().is_empty()));
    plans
}

fn results() -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    for (case, plan) in plans() {
        let data = data(CASES[case].1);
        let operands: Vec<&Tensor<f64>> = data.iter().collect();
        let sum = plan.contract::<Standard, f64>(&operands).unwrap();
        let best = plan.contract::<Tropical, f64>(&operands).unwrap();
        for x in [sum, best] {
            all.push(x.to_vec().unwrap().into_iter().map(f64::to_bits).collect());
        }
    }
    all
}

#[test]
fn threads_do_not_change_a_bit() {
    parallel::set_threads(4);
    let four = results();
    parallel::set_threads(1);
    for (i, (four, one)) in four.iter().zip(&results()).enumerate() {
        assert!(four == one, "result {i}: {:?}", plans()[i / 2].1.to_string());
    }
}
