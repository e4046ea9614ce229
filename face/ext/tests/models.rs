//! Gradients of chains, Gaussian processes and layers, against enumeration and dense formulas.

use super::chains::{BATCH, Case, LENGTH, LENGTHS, TAGS, close, scores, tensor};
use super::{GaussianProcess, LinearChain, Tensor, numbers};

#[test]
fn gradients_of_chains_are_marginals_and_paths() {
    let case = Case::new(LENGTHS);
    let x = case.emissions().require_grad();
    let marginals = numbers(case.chain(&x).marginals().unwrap());
    // `backward` consumes the tape, so each loss builds its own chain.
    let gradient = |loss: &dyn Fn(LinearChain) -> Tensor<1>| {
        let gradients = loss(case.chain(&x)).sum().backward();
        numbers(x.grad(&gradients).unwrap())
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
fn gaussian_processes_equal_their_formulas() {
    let kernel = |x: f64, y: f64| (-0.5 * (x - y) * (x - y)).exp();
    let at = [0.0, 0.7, 1.9];
    let covariance = |noise: f64| -> Vec<f64> {
        let entry =
            |(i, j): (usize, usize)| kernel(at[i], at[j]) + if i == j { noise } else { 0.0 };
        (0..9).map(|k| entry((k / 3, k % 3))).collect()
    };
    let y = tensor(&[0.3, -0.2, 0.5], [3]);
    let with = |noise| GaussianProcess::new(tensor(&covariance(noise), [3, 3]), y.clone()).unwrap();
    // Without noise the posterior interpolates the observations with variance 0.
    let k = tensor(&covariance(0.0), [3, 3]);
    let (mean, left) = with(0.0).posterior(k.clone(), k.clone()).unwrap();
    close(&numbers(mean), &numbers(y.clone()));
    close(&numbers(left), &[0.0; 9]);
    // The likelihood is the product of the conditional likelihoods of each observation given the earlier ones.
    let noisy = covariance(0.1);
    let mut chain = 0.0;
    for n in 0..3 {
        let (mean, variance) = if n == 0 {
            (0.0, noisy[0])
        } else {
            let part: Vec<f64> = (0..n).flat_map(|i| noisy[3 * i..3 * i + n].to_vec()).collect();
            let across: Vec<f64> = (0..n).map(|i| noisy[3 * i + n]).collect();
            let earlier = y.clone().narrow(0, 0, n);
            let process = GaussianProcess::new(tensor(&part, [n, n]), earlier).unwrap();
            let prior = tensor(&[noisy[4 * n]], [1, 1]);
            let (mean, left) = process.posterior(tensor(&across, [n, 1]), prior).unwrap();
            (numbers(mean)[0], numbers(left)[0])
        };
        let rest = numbers(y.clone())[n] - mean;
        chain -= 0.5 * (rest * rest / variance + (std::f64::consts::TAU * variance).ln());
    }
    close(&numbers(with(0.1).log_likelihood()), &[chain]);
    assert!(with(0.1).posterior(k.clone(), tensor(&[1.0], [1, 1])).is_err());
    assert!(GaussianProcess::new(k * -1.0, y).is_err());
}

#[cfg(feature = "module")]
mod layers {
    use burn_core::module::Module;
    use burn_tensor::DType;

    use super::super::ext::linalg;
    use super::super::ext::module::ModuleError;
    use super::super::ext::scan::{Options, checkpoint, scan};
    use super::super::{Crf, CrfConfig, LowRankLinear, Parameters, device};
    use super::*;

    #[test]
    fn a_field_learns_what_only_transitions_tell() {
        let crf = Crf::new(2, &device());
        assert_eq!(crf.num_params(), 8);
        // The emission scores are zero; transitions make tags alternate.
        let chain = |crf: &Crf| crf.chain(Tensor::zeros([1, 6, 2], &device()), None).unwrap();
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
        assert!(numbers(chain(&crf).log_likelihood(&truth).unwrap())[0] > -0.5);
    }

    /// The loss and the prediction of masked tensors are those of each sentence alone.
    #[test]
    fn masked_batches_are_their_sequences() {
        let crf: Crf = CrfConfig::new(3).with_range(1.0).init(&device());
        let x = tensor(&scores(24, 11), [2, 4, 3]).cast(DType::F32);
        let tags = Tensor::from_ints([[2, 0, 1, 1], [1, 2, -5, 9]], &device());
        let mask = |rows: [[bool; 4]; 2]| Tensor::from_data(rows, &device());
        let padded = mask([[true; 4], [true, true, false, false]]);
        let alone = |from: Tensor<3>, tags: &[usize]| {
            let chain = crf.chain(from, None).unwrap();
            let (best, _) = chain.viterbi().unwrap();
            let best: Vec<i64> = best.into_data().iter::<i64>().collect();
            (numbers(chain.log_likelihood(&[tags.to_vec()]).unwrap())[0], best)
        };
        let (long, first) = alone(x.clone().narrow(0, 0, 1), &[2, 0, 1, 1]);
        let (short, second) = alone(x.clone().narrow(0, 1, 1).narrow(1, 0, 2), &[1, 2]);
        let loss = crf.forward(x.clone(), tags.clone(), Some(padded.clone())).unwrap();
        let (given, required) = (numbers(loss)[0], -(long + short) / 2.0);
        assert!((given - required).abs() < 1e-5, "{given} and {required}");
        let best = crf.decode(x.clone(), Some(padded)).unwrap().into_data();
        let best: Vec<i64> = best.iter::<i64>().collect();
        assert_eq!((&best[..4], &best[4..6], &best[6..]), (&first[..], &second[..], &[0, 0][..]));
        // Without a mask the padding of the second sequence counts as tags.
        let text = crf.forward(x.clone(), tags.clone(), None).unwrap_err().to_string();
        assert!(text.contains("sequence 1, step 2: tag -5"), "{text}");
        let hole = mask([[true; 4], [true, false, true, false]]);
        let text = crf.forward(x.clone(), tags.clone(), Some(hole)).unwrap_err().to_string();
        assert!(text.contains("sequence 1"), "{text}");
        let short = Tensor::from_data([[true; 3]; 2], &device());
        assert!(crf.forward(x, tags, Some(short)).is_err());
    }

    fn layer() -> LowRankLinear {
        LowRankLinear::new(3, 3, 2, &device())
    }

    fn gradients(layer: &LowRankLinear, y: Tensor<2>) -> Vec<Vec<f64>> {
        let all = (y.clone() * y).sum().backward();
        let factors = [&layer.down, &layer.up].map(|x| numbers(x.val().grad(&all).unwrap()));
        let bias = layer.bias.as_ref().unwrap().val().grad(&all).unwrap();
        factors.into_iter().chain([numbers(bias)]).collect()
    }

    /// Layers within `checkpoint` and within the body of a scan have their values and gradients outside of it.
    #[test]
    fn parameters_of_modules_are_trees() {
        let (own, template) = (layer(), layer());
        let x = tensor(&scores(6, 8), [2, 3]).cast(DType::F32);
        let step = {
            let template = template.clone();
            move |parameters: Parameters, x: Tensor<2>| {
                parameters.onto(template.clone()).unwrap().forward(x).tanh()
            }
        };
        let plain = own.forward(x.clone()).tanh();
        let required = gradients(&own, plain.clone());
        let f = step.clone();
        let again: Tensor<2> =
            checkpoint(move |(p, x)| f(p, x), (Parameters::of(&own), x.clone())).unwrap();
        assert_eq!(numbers(again.clone()), numbers(plain));
        assert_eq!(gradients(&own, again), required);

        let mut looped = x.clone();
        for _ in 0..3 {
            looped = own.forward(looped).tanh();
        }
        let required = gradients(&own, looped.clone());
        let body = move |p: Parameters, h: Tensor<2>, (): ()| (step(p, h), ());
        let length = Options::default().length(3);
        let (h, ()) = scan(body, Parameters::of(&own), x, (), &length).unwrap();
        close(&numbers(h.clone()), &numbers(looped));
        for (given, required) in gradients(&own, h).iter().zip(&required) {
            close(given, required);
        }
        // As leaves of a tape.
        let loaded = Parameters::of(&own).load_into(template.no_grad()).unwrap();
        assert_eq!(numbers(loaded.up.val()), numbers(own.up.val()));
        assert_eq!((loaded.down.id, loaded.up.id), (own.down.id, own.up.id));
        let loaded = Parameters::of(&own.clone().no_grad()).load_into(layer()).unwrap();
        assert!(loaded.up.is_require_grad());
    }

    #[test]
    fn templates_have_the_same_parameters() {
        let wide = LowRankLinear::new(3, 4, 2, &device());
        let error = Parameters::of(&layer()).onto(wide).unwrap_err();
        assert!(matches!(error, ModuleError::Parameter { index: 1, .. }), "{error}");
        assert_eq!(error.to_string(), "parameter 1: required floats [2, 4], given floats [2, 3]");
        let bare = LowRankLinear { bias: None, ..layer() };
        let error = Parameters::of(&layer()).onto(bare).unwrap_err();
        assert_eq!(error, ModuleError::Count { required: 2, given: 3 });
    }

    #[test]
    fn low_rank_layers_approximate_a_weight() {
        let weight = tensor(&scores(20, 5), [4, 5]);
        let bias = tensor(&scores(5, 6), [5]);
        let x = tensor(&scores(24, 7), [2, 3, 4]);
        let dense = x.clone().matmul(weight.clone().unsqueeze()) + bias.clone().unsqueeze();
        let full = LowRankLinear::from_weight(weight.clone(), Some(bias), 4).unwrap();
        close(&numbers(full.forward(x.clone())), &numbers(dense));
        let thin = LowRankLinear::from_weight(weight.clone(), None, 1).unwrap();
        assert_eq!(
            (thin.down.val().dims(), thin.up.val().dims(), thin.num_params()),
            ([4, 1], [1, 5], 9)
        );
        // ‖W − A B‖² is the sum of the squares of the discarded singular values (Eckart and Young 1936).
        let rest = weight.clone() - thin.down.val().matmul(thin.up.val());
        let s = numbers(linalg::svdvals(weight.clone()).unwrap());
        close(&numbers((rest.clone() * rest).sum()), &[s[1..].iter().map(|x| x * x).sum()]);
        assert!(LowRankLinear::from_weight(weight, None, 0).is_err());
        let drawn = LowRankLinear::new(4, 5, 2, &device());
        assert_eq!(drawn.forward(x.cast(DType::F32)).dims(), [2, 3, 5]);
    }
}
