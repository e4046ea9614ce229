//! Which way a result was computed, and what a strict policy does to a fallback.

use burn_backend::DType;
use burn_backend::ops::ModuleOps;
use burn_t4a::BurnT4a;
use burn_t4a::route::{Path, Policy, Reason, set_policy};

use crate::material::{Lay, Operand, Side, Values, caught};

fn make(shape: &[usize]) -> burn_t4a::T4aTensor {
    <BurnT4a as Side>::make(&Operand::new(shape, DType::F32, Values::Plain, Lay::RowMajor, 0))
}

#[test]
fn a_fallback_names_its_reason_and_a_strict_policy_rejects_it() {
    let pool = || BurnT4a::adaptive_avg_pool2d(make(&[1, 2, 4, 4]), [2, 2]);
    let route = pool().route();
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
    let text = caught(pool).unwrap_err();
    assert_eq!(
        text,
        "adaptive_avg_pool2d: route flex (op_unsupported) is rejected by the route policy"
    );
}
