//! Chains of tags, Gaussian processes and layers: the face of what `t4a-scan` and `t4a-linalg` compute.

use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams};
use burn_t4a_022_ext::models::{Crf, GaussianProcess, LinearChain, LowRankLinear, ScoredTags};
use burn_t4a_022_ext::structured::{
    Classes, DiagTensor, Direction, Leg, Spec, Structured, U1, Weights,
};
use burn_t4a_022_ext::{ExtError, MismatchError};
use burn_tensor::{DType, Device, Distribution, Tensor, TensorData};

use crate::devices;

const LENGTHS: [usize; 2] = [3, 2];

fn tensor<const D: usize>(values: &[f64], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (device, DType::F64))
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().try_to_vec::<f64>().unwrap()
}

#[track_caller]
fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-11), "{got:?}\n{want:?}");
}

/// Scores without pattern.
fn scores(n: u64, seed: u64) -> Vec<f64> {
    (0..n).map(|i| (((i + 1) * (seed + 7919)) as f64 * 0.618_034).fract() * 4.0 - 2.0).collect()
}

/// All sequences of two tags of chain `b`, best first.
fn all(b: usize) -> Vec<ScoredTags> {
    let (x, w, end) = (scores(12, 1), scores(4, 2), scores(2, 3));
    let n = LENGTHS[b];
    let path = |code: usize| {
        let tags: Vec<usize> = (0..n).map(|t| (code >> t) & 1).collect();
        let emitted: f64 = (0..n).map(|t| x[(b * 3 + t) * 2 + tags[t]]).sum();
        let moved: f64 = (1..n).map(|t| w[2 * tags[t - 1] + tags[t]]).sum();
        ScoredTags { score: emitted + moved + end[tags[n - 1]], tags }
    };
    let mut all: Vec<_> = (0..1 << n).map(path).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all
}

fn chain(x: Tensor<3>, device: &Device) -> LinearChain {
    LinearChain::new(x, tensor(&scores(4, 2), [2, 2], device), Some(&LENGTHS))
        .and_then(|chain| chain.end(tensor(&scores(2, 3), [2], device)))
        .unwrap()
}

#[test]
fn chains_are_their_enumeration() {
    for device in devices() {
        let device = device.autodiff();
        let x = tensor(&scores(12, 1), [2, 3, 2], &device).require_grad();
        let chain = || chain(x.clone(), &device);
        let paths = [0, 1].map(all);
        let log_z = [0, 1].map(|b| paths[b].iter().map(|x| x.score.exp()).sum::<f64>().ln());
        let partition = chain().log_partition().unwrap();
        close(&numbers(partition.clone()), &log_z);
        // The gradient of ln Z are the marginals.
        let marginals = numbers(chain().marginals().unwrap());
        close(&numbers(x.grad(&partition.sum().backward()).unwrap()), &marginals);
        close(&marginals[10..], &[0.0; 2]);

        let (tags, best) = chain().viterbi().unwrap();
        close(&numbers(best), &[0, 1].map(|b| paths[b][0].score));
        let padded = |b: usize| (0..3).map(move |t| (b, t));
        let want = padded(0).chain(padded(1)).map(|(b, t)| paths[b][0].tags.get(t).copied());
        let want: Vec<i64> = want.map(|tag| tag.unwrap_or(0) as i64).collect();
        assert_eq!(tags.into_data().iter::<i64>().collect::<Vec<_>>(), want);
        for (got, want) in chain().k_best(3).unwrap().iter().zip(&paths) {
            assert_eq!(got.len(), 3);
            for (got, want) in got.iter().zip(want) {
                assert_eq!(got.tags, want.tags);
                close(&[got.score], &[want.score]);
            }
        }
        let second = [0, 1].map(|b| paths[b][1].tags.clone());
        let want = [0, 1].map(|b| paths[b][1].score - log_z[b]);
        close(&numbers(chain().log_likelihood(&second).unwrap()), &want);
    }
    let device = &Device::flex();
    let x = || tensor(&scores(12, 1), [2, 3, 2], device);
    let single = tensor(&[0.0; 4], [2, 2], device).cast(DType::F32);
    let error = LinearChain::new(x(), single, None).unwrap_err();
    let wanted = matches!(error, ExtError::Mismatch(MismatchError::DType { argument: 1, .. }));
    assert!(wanted, "{error}");
    let error = LinearChain::new(x(), tensor(&[0.0; 6], [2, 3], device), None).unwrap_err();
    assert!(error.to_string().contains("[2, 3]"), "{error}");
}

#[test]
fn a_gaussian_process_passes_through_what_it_was_told() {
    for device in devices() {
        let at = [0.0, 0.7, 1.9];
        let entry = |k: usize| (-0.5 * f64::powi(at[k / 3] - at[k % 3], 2)).exp();
        let entries: Vec<f64> = (0..9).map(entry).collect();
        let k = tensor(&entries, [3, 3], &device);
        let y = tensor(&[0.3, -0.2, 0.5], [3], &device);
        let process = GaussianProcess::new(k.clone(), y.clone()).unwrap();
        let (mean, left) = process.posterior(k.clone(), k.clone()).unwrap();
        close(&numbers(mean), &[0.3, -0.2, 0.5]);
        close(&numbers(left), &[0.0; 9]);
        assert!(process.posterior(k.clone(), tensor(&[1.0], [1, 1], &device)).is_err());
        // Of independent observations it is a sum.
        let diagonal = tensor(&[4.0, 0.0, 0.0, 1.0], [2, 2], &device);
        let process = GaussianProcess::new(diagonal, tensor(&[2.0, 1.0], [2], &device)).unwrap();
        let want = -1.0 - 2f64.ln() - std::f64::consts::TAU.ln();
        close(&numbers(process.log_likelihood()), &[want]);
        assert!(GaussianProcess::new(k * -1.0, y).is_err());
    }
}

#[test]
fn a_field_learns_what_only_transitions_tell() {
    let device = Device::flex().autodiff();
    let mut crf = Crf::new(2, &device);
    assert_eq!(crf.num_params(), 8);
    let truth = [vec![0usize, 1, 0, 1, 0, 1]];
    let chain = |crf: &Crf| crf.chain(Tensor::zeros([1, 6, 2], &device), None).unwrap();
    let mut optimizer = AdamConfig::new().init();
    for _ in 0..60 {
        let loss = chain(&crf).log_likelihood(&truth).unwrap().neg().sum();
        let gradients = GradientsParams::from_grads(loss.backward(), &crf);
        crf = optimizer.step(0.1, crf, gradients);
    }
    let (tags, _) = chain(&crf).viterbi().unwrap();
    assert_eq!(tags.into_data().iter::<i64>().collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn a_layer_of_low_rank_is_its_weight() {
    let device = Device::flex();
    let weight = Tensor::<2>::random([4, 3], Distribution::Default, &device);
    let bias = Tensor::<1>::ones([3], &device);
    let layer = LowRankLinear::from_weight(weight.clone(), Some(bias.clone()), 3).unwrap();
    let x = Tensor::<3>::random([2, 5, 4], Distribution::Default, &device);
    let want = x.clone().matmul(weight.unsqueeze()) + bias.unsqueeze();
    let error = (layer.forward(x.clone()) - want).abs().max().into_scalar::<f32>();
    assert!(error < 1e-5, "{error}");
    let thin = LowRankLinear::new(4, 3, 1, &device);
    assert_eq!((thin.num_params(), thin.forward(x).dims()), (4 + 3 + 3, [2, 5, 3]));
}

/// Structured tensors as parameters: counted, trained, written and read.
#[test]
fn weights_are_parameters() {
    #[derive(Module, Debug)]
    struct Net {
        graded: Weights<Spec<U1>>,
        scale: Weights<Classes>,
    }
    let device = Device::flex().autodiff();
    let leg = Leg::new([(U1(0), 2), (U1(1), 1)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    let classes = Classes { payload: vec![3, 2], classes: vec![0, 0, 1] };
    let new = || {
        let scale = DiagTensor::from_flat(&classes, Tensor::ones([6], &device)).unwrap();
        Net { graded: Weights::normal(&spec, &device).unwrap(), scale: Weights::new(&scale) }
    };
    let net = new();
    assert_eq!(net.num_params(), 5 + 6);
    let loss = |net: &Net| {
        let graded = net.graded.tensor().unwrap().flat().powi_scalar(2).sum();
        graded + net.scale.tensor().unwrap().to_tensor::<3>().unwrap().powi_scalar(2).sum()
    };
    let before = loss(&net);
    let gradients = GradientsParams::from_grads(before.backward(), &net);
    let trained = AdamConfig::new().init().step(0.05, net, gradients);
    assert!(loss(&trained).into_scalar::<f32>() < before.into_scalar::<f32>());
    let read = new().load_record(trained.clone().into_record());
    assert_eq!(loss(&read).into_scalar::<f32>(), loss(&trained).into_scalar::<f32>());
    assert!(trained.to_string().contains("classes [0, 0, 1]"), "{trained}");
}
