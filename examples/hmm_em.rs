//! Parameters of a hidden Markov model learned from its output: expectation-maximisation by one gradient.
//!
//! ```text
//! cargo run --release --example hmm_em
//! ```
//!
//! A dealer switches between a fair and a loaded die. The probability of the rolls is a product of matrices `M_t[i, j]
//! = A[i, j] B[j, o_t]` over (+, ×); for their logarithms it is an associative scan over (log-sum-exp, +), which does
//! not underflow for any number of rolls. The gradient of its logarithm is the expectation step: with respect to `ln
//! M_t[i, j]` it is the probability, given all rolls, of a transition from i to j at step t. Their normalised counts
//! are the maximisation step (Baum and Welch 1970). The picture has the log-likelihood per roll after each round.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::einsum::FloatSemiring;
use burn_t4a::ext::scan::fused::{AssociativeScan, FloatMonoid, associative_scan};
use burn_t4a::{BurnT4a, T4aDevice};
use indicatif::ProgressBar;

#[path = "picture/lines.rs"]
mod picture;

type B = Autodiff<BurnT4a>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const FACES: usize = 6;

/// Two states: initial, transition and emission probabilities.
#[derive(Clone, Debug)]
struct Model {
    start: [f64; 2],
    change: [[f64; 2]; 2],
    show: [[f64; FACES]; 2],
}

/// The fair die, and one with probability 1/2 for a six.
const TRUTH: Model = Model {
    start: [0.5, 0.5],
    change: [[0.95, 0.05], [0.10, 0.90]],
    show: [[1.0 / 6.0; FACES], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]],
};

impl Model {
    /// Rolls of the dice, from a fixed generator.
    fn rolls(&self, count: usize) -> Vec<usize> {
        let mut state = 1u64;
        let mut draw = |p: &[f64]| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mut rest = (state >> 11) as f64 / (1u64 << 53) as f64;
            p.iter()
                .position(|p| {
                    rest -= p;
                    rest < 0.0
                })
                .unwrap_or(p.len() - 1)
        };
        let mut die = draw(&self.start);
        let mut roll = |t: usize| {
            if t > 0 {
                die = draw(&self.change[die]);
            }
            draw(&self.show[die])
        };
        (0..count).map(&mut roll).collect()
    }

    /// `ln M_t`, `[n, 2, 2]`. The first step is a transition from state 0 with the initial probabilities.
    fn steps(&self, rolls: &[usize]) -> Tensor<B, 3> {
        let entry = |t: usize, i: usize, j: usize| {
            let p = match (t, i) {
                (0, 0) => self.start[j],
                (0, _) => 0.0,
                _ => self.change[i][j],
            };
            (p * self.show[j][rolls[t]]).ln()
        };
        let all = (0..rolls.len() * 4).map(|k| entry(k / 4, k / 2 % 2, k % 2));
        let data = TensorData::new(all.collect::<Vec<f64>>(), [rolls.len(), 2, 2]);
        Tensor::from_data(data, (&T4aDevice, DType::F64)).require_grad()
    }

    /// Log-probability of the rolls, and the probability of each transition at each step.
    fn expectation(&self, rolls: &[usize]) -> Result<(f64, Vec<[[f64; 2]; 2]>)> {
        let steps = self.steps(rolls);
        let products = AssociativeScan::new(FloatMonoid::Matrix(FloatSemiring::LogSumExp), 0);
        let all = associative_scan(&products, vec![steps.clone()])?.swap_remove(0);
        let last: Tensor<B, 1> = all.narrow(0, rolls.len() - 1, 1).narrow(1, 0, 1).reshape([2]);
        let top = last.clone().detach().max();
        let log = (last - top.clone()).exp().sum().log() + top;
        let gradient = steps.grad(&log.backward()).ok_or("no gradient")?;
        let gradient: Vec<f64> = gradient.into_data().iter::<f64>().collect();
        let marginals = gradient.chunks(4).map(|g| [[g[0], g[1]], [g[2], g[3]]]);
        Ok((log.into_data().iter::<f64>().sum(), marginals.collect()))
    }

    /// Model that maximises the likelihood of those transitions.
    fn maximisation(rolls: &[usize], marginals: &[[[f64; 2]; 2]]) -> Self {
        let normalised = |counts: &[f64]| -> Vec<f64> {
            let sum: f64 = counts.iter().sum();
            counts.iter().map(|x| x / sum).collect()
        };
        let mut new = Self { start: [0.0; 2], change: [[0.0; 2]; 2], show: [[0.0; FACES]; 2] };
        for (t, (m, &roll)) in marginals.iter().zip(rolls).enumerate() {
            for j in 0..2 {
                new.show[j][roll] += m[0][j] + m[1][j];
                if t == 0 {
                    new.start[j] = m[0][j];
                } else {
                    new.change[0][j] += m[0][j];
                    new.change[1][j] += m[1][j];
                }
            }
        }
        for j in 0..2 {
            let (change, show) = (normalised(&new.change[j]), normalised(&new.show[j]));
            new.change[j].copy_from_slice(&change);
            new.show[j].copy_from_slice(&show);
        }
        new
    }

    /// Probability of the rolls and unnormalised probability of each state at each step, by enumeration of all paths.
    fn by_hand(&self, rolls: &[usize]) -> (f64, Vec<[f64; 2]>) {
        let (mut total, mut states) = (0.0, vec![[0.0; 2]; rolls.len()]);
        for path in 0..1usize << rolls.len() {
            let at = |t: usize| path >> t & 1;
            let mut p = 1.0;
            for t in 0..rolls.len() {
                p *= if t == 0 { self.start[at(0)] } else { self.change[at(t - 1)][at(t)] };
                p *= self.show[at(t)][rolls[t]];
            }
            total += p;
            (0..rolls.len()).for_each(|t| states[t][at(t)] += p);
        }
        (total, states)
    }
}

/// Ten rolls: 1024 paths, enumerated.
fn check_by_hand() -> Result<()> {
    let rolls = TRUTH.rolls(10);
    let (log, marginals) = TRUTH.expectation(&rolls)?;
    let (total, states) = TRUTH.by_hand(&rolls);
    assert!((log - total.ln()).abs() < 1e-12);
    for (m, state) in marginals.iter().zip(&states) {
        for j in 0..2 {
            assert!((m[0][j] + m[1][j] - state[j] / total).abs() < 1e-12);
        }
    }
    println!(
        "10 rolls: probability {total:.6e} and all marginals agree with the sum over 1024 paths"
    );
    Ok(())
}

fn main() -> Result<()> {
    check_by_hand()?;
    let rolls = TRUTH.rolls(20_000);
    let (truth, _) = TRUTH.expectation(&rolls)?;
    // Initial model: nearly fair dice that differ slightly.
    let mut model = Model {
        start: [0.5, 0.5],
        change: [[0.8, 0.2], [0.2, 0.8]],
        show: [[1.0 / 6.0; FACES], [0.15, 0.15, 0.15, 0.15, 0.15, 0.25]],
    };
    let (mut before, mut curve) = (f64::NEG_INFINITY, Vec::new());
    let bar = ProgressBar::new(60);
    for round in 0..60 {
        let (log, marginals) = model.expectation(&rolls)?;
        if round % 10 == 0 {
            let [stay, six] =
                [model.change.map(|row| row[0]), model.show.map(|row| row[FACES - 1])];
            let row =
                format!("log-likelihood {log:.3}   to the fair die {stay:.3?}   six {six:.3?}");
            bar.suspend(|| println!("{round:>3}   {row}"));
        }
        // The likelihood never decreases, and the state probabilities of each roll sum to 1.
        assert!(log >= before - 1e-9);
        assert!(marginals.iter().all(|m| (m.concat().iter().sum::<f64>() - 1.0).abs() < 1e-9));
        (before, model) = (log, Model::maximisation(&rolls, &marginals));
        curve.push((f64::from(round), log / rolls.len() as f64));
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("learnt        {before:.3}\ntruth         {truth:.3}");
    println!("change {:.3?}\nshow   {:.3?}", model.change, model.show);
    assert!(before > truth && before - truth < 20.0);
    for i in 0..2 {
        assert!((model.change[i][i] - TRUTH.change[i][i]).abs() < 0.02);
        for face in 0..FACES {
            assert!((model.show[i][face] - TRUTH.show[i][face]).abs() < 0.03);
        }
    }
    picture::lines("hmm_em", "round", &[curve])
}
