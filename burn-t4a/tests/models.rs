//! Models built of the operations, against enumeration and dense formulas.

use burn_autodiff::Autodiff;
use burn_backend::{DType, TensorData};
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_t4a::models::{GaussianProcess, LinearChain, ScoredTags};
use burn_tensor::Tensor;

const BATCH: usize = 3;
const LENGTH: usize = 4;
const TAGS: usize = 3;
const LENGTHS: [usize; BATCH] = [4, 1, 3];

fn tensor<B: Operations, const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (&B::Device::default(), DType::F64))
}

fn numbers<B: Operations, const D: usize>(x: &Tensor<B, D>) -> Vec<f64> {
    x.to_data().iter::<f64>().collect()
}

fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() < 1e-11 || a == b, "{got:?}\n{want:?}");
    }
}

/// Scores without pattern.
fn scores(n: usize, seed: u64) -> Vec<f64> {
    (0..n as u64)
        .map(|i| (((i + 1) * (seed + 7919)) as f64 * 0.618_034).fract() * 4.0 - 2.0)
        .collect()
}

struct Case {
    emissions: Vec<f64>,
    transitions: Vec<f64>,
    start: Vec<f64>,
    end: Vec<f64>,
    lengths: [usize; BATCH],
}

impl Case {
    fn new(lengths: [usize; BATCH]) -> Self {
        let mut transitions = scores(TAGS * TAGS, 2);
        transitions[TAGS + 2] = f64::NEG_INFINITY;
        let emissions = scores(BATCH * LENGTH * TAGS, 1);
        Self { emissions, transitions, start: scores(TAGS, 3), end: scores(TAGS, 4), lengths }
    }

    fn chain<B: Operations>(&self, emissions: &Tensor<B, 3>) -> LinearChain<B> {
        let lengths = (self.lengths != [LENGTH; BATCH]).then_some(&self.lengths[..]);
        LinearChain::new(emissions.clone(), tensor(&self.transitions, [TAGS, TAGS]), lengths)
            .and_then(|chain| chain.start(tensor(&self.start, [TAGS])))
            .and_then(|chain| chain.end(tensor(&self.end, [TAGS])))
            .unwrap()
    }

    fn emissions<B: Operations>(&self) -> Tensor<B, 3> {
        tensor(&self.emissions, [BATCH, LENGTH, TAGS])
    }

    /// Every sequence of tags of chain `b`, best first.
    fn all(&self, b: usize) -> Vec<ScoredTags> {
        let n = self.lengths[b];
        let mut all: Vec<ScoredTags> = (0..TAGS.pow(n as u32))
            .map(|code| {
                let tags: Vec<usize> = (0..n).map(|t| code / TAGS.pow(t as u32) % TAGS).collect();
                let emitted: f64 =
                    (0..n).map(|t| self.emissions[(b * LENGTH + t) * TAGS + tags[t]]).sum();
                let moved: f64 =
                    (1..n).map(|t| self.transitions[tags[t - 1] * TAGS + tags[t]]).sum();
                let score = emitted + moved + self.start[tags[0]] + self.end[tags[n - 1]];
                ScoredTags { tags, score }
            })
            .filter(|x| x.score > f64::NEG_INFINITY)
            .collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        all
    }
}

fn equals_enumeration<B: Operations>(lengths: [usize; BATCH]) {
    let case = Case::new(lengths);
    let chain = case.chain::<B>(&case.emissions());
    let all: Vec<_> = (0..BATCH).map(|b| case.all(b)).collect();
    let log_z: Vec<f64> =
        all.iter().map(|paths| paths.iter().map(|x| x.score.exp()).sum::<f64>().ln()).collect();
    close(&numbers(&chain.log_partition().unwrap()), &log_z);

    let mut marginals = vec![0.0; BATCH * LENGTH * TAGS];
    for (b, paths) in all.iter().enumerate() {
        for path in paths {
            for (t, tag) in path.tags.iter().enumerate() {
                marginals[(b * LENGTH + t) * TAGS + tag] += (path.score - log_z[b]).exp();
            }
        }
    }
    close(&numbers(&chain.marginals().unwrap()), &marginals);

    let (tags, best) = chain.viterbi().unwrap();
    let want: Vec<i64> = all
        .iter()
        .flat_map(|paths| (0..LENGTH).map(|t| paths[0].tags.get(t).map_or(0, |&tag| tag as i64)))
        .collect();
    assert_eq!(tags.to_data().iter::<i64>().collect::<Vec<_>>(), want);
    close(&numbers(&best), &all.iter().map(|paths| paths[0].score).collect::<Vec<_>>());

    for (got, want) in chain.k_best(5).unwrap().iter().zip(&all) {
        assert_eq!(got.len(), want.len().min(5));
        for (got, want) in got.iter().zip(want) {
            assert_eq!(got.tags, want.tags);
            close(&[got.score], &[want.score]);
        }
    }

    let some: Vec<Vec<usize>> =
        all.iter().map(|paths| paths[paths.len() / 2].tags.clone()).collect();
    let want: Vec<f64> =
        all.iter().zip(&log_z).map(|(paths, z)| paths[paths.len() / 2].score - z).collect();
    close(&numbers(&chain.log_likelihood(&some).unwrap()), &want);
}

#[test]
fn chains_equal_enumeration() {
    equals_enumeration::<BurnT4a>([LENGTH; BATCH]);
    equals_enumeration::<BurnT4a>(LENGTHS);
    equals_enumeration::<Flex>(LENGTHS);
}

#[test]
fn gradients_of_chains_are_marginals_and_paths() {
    type AD = Autodiff<BurnT4a>;
    let case = Case::new(LENGTHS);
    let x = case.emissions::<AD>().require_grad();
    let marginals = numbers(&case.chain(&x).marginals().unwrap());
    // A backward pass takes its tape along, so each loss has a chain of its own.
    let gradient = |loss: &dyn Fn(LinearChain<AD>) -> Tensor<AD, 1>| {
        let gradients = loss(case.chain(&x)).sum().backward();
        numbers(&x.grad(&gradients).unwrap())
    };
    close(&gradient(&|chain| chain.log_partition().unwrap()), &marginals);

    let (tags, _) = case.chain(&x).viterbi().unwrap();
    let tags: Vec<i64> = tags.to_data().iter().collect();
    let mut marked = vec![0.0; BATCH * LENGTH * TAGS];
    for (b, n) in LENGTHS.into_iter().enumerate() {
        (0..n).for_each(|t| marked[(b * LENGTH + t) * TAGS + tags[b * LENGTH + t] as usize] = 1.0);
    }
    close(&gradient(&|chain| chain.viterbi().unwrap().1), &marked);

    let paths: Vec<Vec<usize>> = (0..BATCH).map(|b| case.all(b)[0].tags.clone()).collect();
    let want: Vec<f64> = marked.iter().zip(&marginals).map(|(a, b)| a - b).collect();
    close(&gradient(&|chain| chain.log_likelihood(&paths).unwrap()), &want);
}

#[test]
fn chains_reject_what_does_not_fit() {
    let case = Case::new([LENGTH; BATCH]);
    let x = case.emissions::<BurnT4a>();
    let square = || tensor::<BurnT4a, 2>(&case.transitions, [TAGS, TAGS]);
    let message = |lengths: &[usize]| {
        LinearChain::new(x.clone(), square(), Some(lengths)).unwrap_err().to_string()
    };
    for lengths in [&[1, 2][..], &[0, 1, 1], &[5, 1, 1]] {
        assert!(message(lengths).contains("a length between 1 and 4"), "{}", message(lengths));
    }
    let wide = tensor::<BurnT4a, 2>(&[0.0; 12], [TAGS, 4]);
    assert!(LinearChain::new(x.clone(), wide, None).unwrap_err().to_string().contains("[3, 4]"));
    let single = square().cast(DType::F32);
    assert!(LinearChain::new(x.clone(), single, None).unwrap_err().to_string().contains("f32"));
    let chain = || LinearChain::new(x.clone(), square(), None).unwrap();
    assert!(chain().start(tensor(&[0.0], [1])).is_err());
    assert!(chain().score(&[vec![0; 4], vec![0; 4], vec![0, 0, 3, 0]]).is_err());
    assert!(chain().score(&[vec![0; 4], vec![0; 4], vec![0; 3]]).is_err());
    assert!(chain().score(&[vec![0; 4]]).is_err());
    assert!(chain().k_best(0).is_err());
}

#[test]
fn gaussian_processes_equal_their_formulas() {
    let kernel = |x: f64, y: f64| (-0.5 * (x - y) * (x - y)).exp();
    let at = [0.0, 0.7, 1.9];
    let covariance = |noise: f64| -> Vec<f64> {
        let entry =
            |(i, j): (usize, usize)| kernel(at[i], at[j]) + if i == j { noise } else { 0.0 };
        (0..9).map(|k| entry((k / 3, k % 3))).collect()
    };
    let y = tensor::<BurnT4a, 1>(&[0.3, -0.2, 0.5], [3]);
    let with = |noise| {
        GaussianProcess::new(tensor::<BurnT4a, 2>(&covariance(noise), [3, 3]), y.clone()).unwrap()
    };
    // Without noise the process passes through what was observed, with certainty.
    let k = tensor::<BurnT4a, 2>(&covariance(0.0), [3, 3]);
    let (mean, left) = with(0.0).posterior(k.clone(), k.clone()).unwrap();
    close(&numbers(&mean), &numbers(&y));
    close(&numbers(&left), &[0.0; 9]);
    // The likelihood is a product of those of each observation given the earlier ones.
    let noisy = covariance(0.1);
    let mut chain = 0.0;
    for n in 0..3 {
        let (mean, variance) = if n == 0 {
            (0.0, noisy[0])
        } else {
            let part: Vec<f64> = (0..n).flat_map(|i| noisy[3 * i..3 * i + n].to_vec()).collect();
            let across: Vec<f64> = (0..n).map(|i| noisy[3 * i + n]).collect();
            let earlier = y.clone().narrow(0, 0, n);
            let process =
                GaussianProcess::new(tensor::<BurnT4a, 2>(&part, [n, n]), earlier).unwrap();
            let prior = tensor(&[noisy[4 * n]], [1, 1]);
            let (mean, left) = process.posterior(tensor(&across, [n, 1]), prior).unwrap();
            (numbers(&mean)[0], numbers(&left)[0])
        };
        let rest = numbers(&y)[n] - mean;
        chain -= 0.5 * (rest * rest / variance + (std::f64::consts::TAU * variance).ln());
    }
    close(&numbers(&with(0.1).log_likelihood()), &[chain]);
    assert!(with(0.1).posterior(k.clone(), tensor(&[1.0], [1, 1])).is_err());
    assert!(GaussianProcess::new(k * -1.0, y).is_err());
}

#[cfg(feature = "module")]
mod layers {
    use burn_core::module::Module;
    use burn_t4a::T4aDevice;
    use burn_t4a::models::{Crf, LowRankLinear};

    use super::*;

    type AD = Autodiff<BurnT4a>;

    #[test]
    fn a_field_learns_what_only_transitions_tell() {
        let crf = Crf::<AD>::new(2, &T4aDevice);
        assert_eq!(crf.num_params(), 8);
        // Scores of the net say nothing; tags alternate.
        let chain = |crf: &Crf<AD>| crf.chain(Tensor::zeros([1, 6, 2], &T4aDevice), None).unwrap();
        let truth = [vec![0usize, 1, 0, 1, 0, 1]];
        let mut crf = crf;
        for _ in 0..60 {
            let gradients = chain(&crf).log_likelihood(&truth).unwrap().sum().backward();
            crf.transitions = crf.transitions.map(|x| {
                let step = Tensor::from_inner(x.grad(&gradients).unwrap());
                (x + step * 0.2).detach().require_grad()
            });
            crf.start = crf.start.map(|x| {
                let step = Tensor::from_inner(x.grad(&gradients).unwrap());
                (x + step * 0.2).detach().require_grad()
            });
        }
        let (tags, _) = chain(&crf).viterbi().unwrap();
        assert_eq!(tags.to_data().iter::<i64>().collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1]);
        assert!(chain(&crf).log_likelihood(&truth).unwrap().into_scalar() > -0.5);
    }

    #[test]
    fn low_rank_layers_approximate_a_weight() {
        let weight = tensor::<BurnT4a, 2>(&scores(20, 5), [4, 5]);
        let bias = tensor::<BurnT4a, 1>(&scores(5, 6), [5]);
        let x = tensor::<BurnT4a, 3>(&scores(24, 7), [2, 3, 4]);
        let dense = x.clone().matmul(weight.clone().unsqueeze()) + bias.clone().unsqueeze();
        let full = LowRankLinear::from_weight(weight.clone(), Some(bias), 4).unwrap();
        close(&numbers(&full.forward(x.clone())), &numbers(&dense));
        let thin = LowRankLinear::from_weight(weight.clone(), None, 1).unwrap();
        assert_eq!(
            (thin.down.val().dims(), thin.up.val().dims(), thin.num_params()),
            ([4, 1], [1, 5], 9)
        );
        // ‖W − A B‖² is the sum of the squares of the singular values left out (Eckart and Young 1936).
        let rest = weight.clone() - thin.down.val().matmul(thin.up.val());
        let s = numbers(&burn_t4a::ext::linalg::svdvals(weight.clone()).unwrap());
        close(&numbers(&(rest.clone() * rest).sum()), &[s[1..].iter().map(|x| x * x).sum()]);
        assert!(LowRankLinear::from_weight(weight, None, 0).is_err());
        let drawn = LowRankLinear::<BurnT4a>::new(4, 5, 2, &T4aDevice);
        assert_eq!(drawn.forward(x.cast(DType::F32)).dims(), [2, 3, 5]);
    }
}
