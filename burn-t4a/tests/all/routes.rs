//! Routes of operations beyond Burn's, and the policy that rejects fallbacks. One test, because the policy is
//! global to the process.

use burn_t4a::route::{Policy, Reason, set_policy};

use crate::eager::native as engine;
use crate::plain::native as tape;

#[test]
fn routes_are_said_by_the_kernel_and_fallbacks_ask_the_policy() {
    // The policy is global, so this test runs alone in a child process.
    const CHILD: &str = "BURN_T4A_ROUTE_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "routes::routes_are_said_by_the_kernel_and_fallbacks_ask_the_policy",
                "--nocapture",
            ])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    engine::are_native(engine::routes(engine::matrix()));
    // On a tape several results are one node and keep the route of the operation.
    tape::are_native(tape::routes(tape::matrix()));
    tape::are_native(tape::routes(tape::matrix().require_grad()));
    let elsewhere = crate::eager_flex::native::routes(crate::eager_flex::native::matrix());
    assert!(elsewhere.iter().all(|(_, route)| route.is_none()));
    assert_eq!(engine::filter().unwrap().unwrap().reason, Reason::OpUnsupported);

    set_policy(Policy::RejectFallback);
    tape::are_native(tape::routes(tape::matrix().require_grad()));
    let wanted =
        "kalman_filter: route loop_contiguous (op_unsupported) is rejected by the route policy";
    assert_eq!(engine::filter().unwrap_err(), wanted);
    crate::eager_flex::native::is_rejected();
    crate::flex::native::is_rejected();
    set_policy(Policy::Allow);
}
