//! Routes of operations beyond Burn's, and the policy that rejects fallbacks. One test, because the policy is
//! global to the process.

// A source file is included for several tapes and backends.
#![allow(clippy::duplicate_mod, dead_code)]

use burn_t4a::route::{Policy, Reason, set_policy};

#[allow(unused)]
#[path = "../lines/line.rs"]
mod line;

#[path = "../lines/plain"]
mod plain {
    pub(crate) use crate::line::plain::*;

    pub(crate) mod native;
}

#[path = "../lines/eager"]
mod eager {
    pub(crate) use crate::line::eager::*;

    pub(crate) mod native;
}

#[path = "../lines/flex"]
mod flex {
    pub(crate) use crate::line::flex::*;

    pub(crate) mod native;
}

#[path = "../lines/eager_flex"]
mod eager_flex {
    pub(crate) use crate::line::eager_flex::*;

    pub(crate) mod native;
}

use eager::native as engine;
use plain::native as tape;

#[test]
fn routes_are_said_by_the_kernel_and_fallbacks_ask_the_policy() {
    engine::are_native(engine::routes(engine::matrix()));
    // On a tape several results are one node and keep the route of the operation.
    tape::are_native(tape::routes(tape::matrix()));
    tape::are_native(tape::routes(tape::matrix().require_grad()));
    let elsewhere = eager_flex::native::routes(eager_flex::native::matrix());
    assert!(elsewhere.iter().all(|(_, route)| route.is_none()));
    assert_eq!(engine::filter().unwrap().unwrap().reason, Reason::OpUnsupported);

    set_policy(Policy::RejectFallback);
    tape::are_native(tape::routes(tape::matrix().require_grad()));
    let wanted =
        "kalman_filter: route loop_contiguous (op_unsupported) is rejected by the route policy";
    assert_eq!(engine::filter().unwrap_err(), wanted);
    eager_flex::native::is_rejected();
    flex::native::is_rejected();
    set_policy(Policy::Allow);
}
