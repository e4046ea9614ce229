//! One network, three semirings: the most likely path of a hidden Markov model, the probability of its observations,
//! and the posteriors of its states.
//!
//! ```text
//! cargo run --release --example viterbi
//! ```
//!
//! A patient reports "normal, cold, dizzy" on three days; the hidden state of each day is healthy or fever. The joint
//! log-probability is a chain `a,ab,b,bc,c->` of logarithms:
//!
//! ```text
//! (max, +)          probability of the best path;     gradient: the path itself (Viterbi)
//! (log-sum-exp, +)  probability of the observations;  gradient: posteriors (forward-backward)
//! ```
//!
//! The program is generic over the backend; the tests in `gpu` run it on `Wgpu`.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{
    ArraySemiring, LogSumExp, MaxPlus, Operand, Subscripts, semiring_einsum,
};
use burn_t4a::ext::operation::Operations;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const STATES: [&str; 2] = ["Healthy", "Fever"];
const SYMPTOMS: [&str; 3] = ["normal", "cold", "dizzy"];
const START: [f64; 2] = [0.6, 0.4];
const MOVE: [[f64; 2]; 2] = [[0.7, 0.3], [0.4, 0.6]];
const SHOW: [[f64; 3]; 2] = [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]];
const OBSERVED: [usize; 3] = [0, 1, 2];

fn logs<B: Operations, const D: usize>(
    p: impl IntoIterator<Item = f64>,
    shape: [usize; D],
    dtype: DType,
) -> Tensor<Autodiff<B>, D> {
    let values: Vec<f64> = p.into_iter().map(f64::ln).collect();
    let data = TensorData::new(values, shape).convert_dtype(dtype);
    Tensor::from_data(data, (&B::Device::default(), dtype))
}

/// The log-probability over a semiring, and its gradient by day and state.
fn chain<S: ArraySemiring, B: Operations>(dtype: DType) -> Result<(f64, Vec<Vec<f64>>)> {
    let days = OBSERVED.len();
    let moves = logs::<B, 2>(MOVE.concat(), [2, 2], dtype);
    let evidence: Vec<Tensor<Autodiff<B>, 1>> = (0..days)
        .map(|day| {
            let start = |s: usize| if day == 0 { START[s] } else { 1.0 };
            let p = (0..2).map(|s| start(s) * SHOW[s][OBSERVED[day]]);
            logs(p, [2], dtype).require_grad()
        })
        .collect();
    // Day d is label d, with one vector per day and one matrix per pair of consecutive days.
    let mut labels: Vec<Vec<usize>> = (0..days).map(|day| vec![day]).collect();
    let mut operands: Vec<Operand<Autodiff<B>>> = evidence.iter().map(Operand::from).collect();
    for day in 1..days {
        labels.push(vec![day - 1, day]);
        operands.push((&moves).into());
    }
    let subscripts = Subscripts::new(labels, []);
    let value: Tensor<Autodiff<B>, 1> = semiring_einsum::<S, _, _>(subscripts, operands)?;
    let grads = value.backward();
    let by_day = evidence.iter().map(|x| {
        let g = x.grad(&grads).ok_or("no gradient")?;
        Ok(g.into_data().iter::<f64>().collect())
    });
    Ok((value.into_data().iter::<f64>().sum(), by_day.collect::<Result<_>>()?))
}

/// Joint probability of a path and the observations, computed directly.
fn joint(path: [usize; 3]) -> f64 {
    let first = START[path[0]] * SHOW[path[0]][OBSERVED[0]];
    (1..3).fold(first, |p, d| p * MOVE[path[d - 1]][path[d]] * SHOW[path[d]][OBSERVED[d]])
}

/// The example on a backend, in a dtype with errors of at most `tolerance`.
pub(crate) fn run<B: Operations>(dtype: DType, tolerance: f64) -> Result<()> {
    let (best, path) = chain::<MaxPlus, B>(dtype)?;
    let (total, posterior) = chain::<LogSumExp, B>(dtype)?;

    let path: Vec<usize> =
        path.iter().map(|g| g.iter().position(|&x| x == 1.0).unwrap_or(2)).collect();
    println!("observed      {}", SYMPTOMS.map(|s| format!("{s:<9}")).concat());
    let names: String = path.iter().map(|&s| format!("{:<9}", STATES[s])).collect();
    println!("best path     {names}   p = {:.5}", best.exp());
    for (s, state) in STATES.iter().enumerate() {
        let row: String = posterior.iter().map(|p| format!("{:<9.4}", p[s])).collect();
        println!("P({state:<7})    {row}");
    }
    let bars: String = posterior
        .iter()
        .map(|p| format!("{:<9}", "▇".repeat((8.0 * p[1]).round() as usize)))
        .collect();
    println!("fever         {bars}");
    println!("observations                               p = {:.5}", total.exp());

    assert_eq!(path, [0, 0, 1]);
    assert!((best.exp() - 0.01512).abs() < tolerance);
    assert!((total.exp() - 0.03628).abs() < tolerance);
    for (day, p) in posterior.iter().enumerate() {
        for (s, p) in p.iter().enumerate() {
            let paths = (0..8).map(|b| [b >> 2, (b >> 1) & 1, b & 1]);
            let through: f64 = paths.filter(|path| path[day] == s).map(joint).sum();
            assert!((p - through / 0.03628).abs() < tolerance, "posterior of day {day}");
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    run::<BurnT4a>(DType::F64, 1e-12)
}
