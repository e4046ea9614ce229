//! Steps of a two-site effective Hamiltonian on complex tensors with U(1) charges: time of the complex contraction
//! chosen by the engine against four products of real arrays, in alternating runs.
//!
//! `cargo bench -p t4a-structured --bench complex -- THREADS`

use std::hint::black_box;
use std::time::Instant;

use t4a_diff::{Eager, Operation, Pairs, Value, check};
use t4a_structured::{Contract, Direction, Leg, Spec, U1};
use t4a_tensor::{AnyTensor, DType, loops::parallel};

fn microseconds<R>(run: impl FnOnce() -> R) -> f64 {
    let begin = Instant::now();
    black_box(run());
    begin.elapsed().as_secs_f64() * 1e6
}

/// First decile of the run times; excludes runs that other processes disturbed.
fn typical(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 10]
}

fn leg(states: impl IntoIterator<Item = (i32, usize)>) -> Leg<U1> {
    Leg::new(states.into_iter().filter(|&(_, n)| n > 0).map(|(q, n)| (U1(q), n)), Direction::Out)
        .expect("a leg")
}

fn row(name: &str, plan: &Contract, dtype: DType) {
    let [a, b, _] = plan.plan.lens();
    let part = |len: usize, seed| {
        let x = check::noise(&check::array(&[len], |_| 0.0), seed);
        let x: AnyTensor = x.into_tensor().expect("numbers");
        Value::Float(Eager::from(x.cast(dtype).expect("memory")))
    };
    let inputs = [part(a, 1), part(a, 2), part(b, 3), part(b, 4)];
    let op = Pairs::new(plan.clone());
    let (mut own, mut four) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while own.len() < 10 || (start.elapsed().as_secs_f64() < 0.3 && own.len() < 3000) {
        own.push(microseconds(|| op.forward(&inputs, &[false; 4]).expect("a contraction")));
        four.push(microseconds(|| op.portable(&inputs, &[false; 4]).expect("a contraction")));
    }
    let steps: usize = plan.plan.products().steps();
    let (own, four) = (typical(own), typical(four));
    let per = steps / (a + b);
    println!("{name:<22} {dtype:>4} {own:>10.1} {four:>10.1} {:>6.2} {per:>6}", own / four);
}

/// Name of a step, and the tensor that the intermediate result is contracted with, with the contracted axes of both.
type Step<'a> = (&'a str, &'a Spec<U1>, &'a [usize], &'a [usize]);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    parallel::set_threads(args.first().and_then(|x| x.parse().ok()).unwrap_or(1));
    println!("microseconds\n{:<22} {:>4} {:>10} {:>10} {:>6}", "", "", "own", "four", "ratio");
    for d in [8, 64, 256, 1024] {
        let weight = |k: i32| (-f64::from(k * k) / 4.5).exp();
        let sum: f64 = (-4..=4).map(weight).sum();
        let bond =
            leg((-4..=4).map(|k| (2 * k, (f64::from(d) * weight(k) / sum).round() as usize)));
        let spin = leg([(-1, 1), (1, 1)]);
        let wire = leg([(-2, 1), (0, 3), (2, 1)]);
        let spec = |legs: Vec<Leg<U1>>, rows| Spec::new(legs, U1(0), rows).expect("a spec");
        let theta = spec(vec![bond.clone(), spin.clone(), spin.clone(), bond.dual()], 1);
        let left = spec(vec![bond.clone(), wire.clone(), bond.dual()], 2);
        let middle = spec(vec![wire.dual(), wire.clone(), spin.clone(), spin.dual()], 2);
        let right = spec(vec![bond.clone(), wire.dual(), bond.dual()], 2);
        let steps: [Step<'_>; 4] = [
            ("left", &theta, &[2], &[0]),
            ("operator", &middle, &[1, 2], &[0, 3]),
            ("operator again", &middle, &[3, 1], &[0, 3]),
            ("right", &right, &[1, 3], &[0, 1]),
        ];
        let mut now = left;
        for (name, other, i, j) in steps {
            let (next, plan) = now.contract(other, i, j).expect("legs that fit");
            let name = format!("{name} D={d}");
            row(&name, &plan, DType::F64);
            row(&name, &plan, DType::F32);
            now = next;
        }
    }
}
