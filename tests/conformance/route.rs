//! Execution path of a result, and the effect of a strict policy on a fallback.

use burn_backend::ops::{ActivationOps, ConvOptions, FloatTensorOps, ModuleOps, QTensorOps};
use burn_backend::tensor::QuantizedTensor;
use burn_backend::{DType, FloatDType, QTensorPrimitive, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::route::{Path, Policy, Reason, set_policy};

use crate::material::{Lay, Operand, Values, float};

fn make(shape: &[usize]) -> burn_t4a::T4aTensor {
    float::<BurnT4a>(&Operand::new(shape, DType::F32, Values::Plain, Lay::RowMajor, 0))
}

#[test]
fn nothing_of_burn_falls_back() {
    // The policy is global, so this test runs alone in a child process.
    const CHILD: &str = "BURN_T4A_ROUTE_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "route::nothing_of_burn_falls_back", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    set_policy(Policy::RejectFallback);
    let data = TensorData::from([1.0f32, -0.5, 0.25]);
    let scheme = <QuantizedTensor<BurnT4a> as QTensorPrimitive>::default_scheme();
    let x = BurnT4a::float_from_data(data, &Default::default());
    let y = BurnT4a::dequantize(BurnT4a::quantize_dynamic(x, &scheme), FloatDType::F32);
    assert_eq!(y.route().reason, Reason::Native);
}

#[test]
fn networks_run_natively() {
    let x = || make(&[2, 4, 6, 6]);
    let conv = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    let max = BurnT4a::max_pool2d_with_indices(x(), [2, 2], [2, 2], [0, 0], [1, 1], false);
    for (name, y) in [
        ("conv2d", BurnT4a::conv2d(x(), make(&[3, 4, 3, 3]), None, conv())),
        ("conv2d_x", BurnT4a::conv2d_x_backward(x(), make(&[4, 4, 3, 3]), x(), conv())),
        ("conv2d_weight", BurnT4a::conv2d_weight_backward(x(), make(&[4, 4, 3, 3]), x(), conv())),
        ("max_pool2d", max.output),
        ("avg_pool2d", BurnT4a::avg_pool2d(x(), [2, 2], [2, 2], [0, 0], true, false)),
        ("adaptive_avg_pool2d", BurnT4a::adaptive_avg_pool2d(x(), [2, 3])),
        ("attention", BurnT4a::attention(x(), x(), x(), None, None, Default::default())),
        ("layer_norm", BurnT4a::layer_norm(x(), make(&[6]), None, 1e-5)),
        ("softmax", BurnT4a::softmax(x(), 3)),
        ("log_softmax", BurnT4a::log_softmax(x(), 1)),
    ] {
        assert_eq!((y.route().path, y.route().reason), (Path::Fused, Reason::Native), "{name}");
    }
}
