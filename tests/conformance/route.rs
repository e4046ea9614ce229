//! Which way a result was computed, and what a strict policy does to a fallback.

use burn_backend::DType;
use burn_backend::ops::{
    ActivationOps, ConvOptions, InterpolateMode, InterpolateOptions, ModuleOps,
};
use burn_t4a::BurnT4a;
use burn_t4a::route::{Path, Policy, Reason, set_policy};

use crate::material::{Lay, Operand, Side, Values, caught};

fn make(shape: &[usize]) -> burn_t4a::T4aTensor {
    <BurnT4a as Side>::make(&Operand::new(shape, DType::F32, Values::Plain, Lay::RowMajor, 0))
}

#[test]
fn a_fallback_names_its_reason_and_a_strict_policy_rejects_it() {
    let options = || InterpolateOptions::new(InterpolateMode::Nearest);
    let resized = || BurnT4a::interpolate(make(&[1, 2, 4, 4]), [2, 2], options());
    let route = resized().route();
    assert_eq!((route.path, route.reason), (Path::Flex, Reason::OpUnsupported));
    // The policy is global: this test runs alone, in a process of its own.
    const CHILD: &str = "BURN_T4A_ROUTE_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let name = "route::a_fallback_names_its_reason_and_a_strict_policy_rejects_it";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    set_policy(Policy::RejectFallback);
    let text = caught(resized).unwrap_err();
    assert_eq!(text, "interpolate: route flex (op_unsupported) is rejected by the route policy");
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
