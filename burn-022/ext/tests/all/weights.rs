//! Structured tensors as module parameters with Burn's optimisers and records.

use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams};
use burn_t4a_022_ext::models::Crf;
use burn_t4a_022_ext::structured::{
    Classes, DiagTensor, Direction, Leg, Spec, Structured, U1, Weights,
};
use burn_tensor::{Device, Tensor};

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

/// Parameters are counted, trained, saved and loaded.
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
