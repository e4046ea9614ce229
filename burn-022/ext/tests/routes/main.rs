//! Routes of operations beyond Burn's, and the policy that rejects fallbacks. One test, because the policy is
//! global to the process.

// A source file is included for several tapes.
#![allow(clippy::duplicate_mod, dead_code)]

use burn_t4a_022_ext::route::{Policy, Reason, set_policy};

#[allow(unused)]
#[path = "../all/line.rs"]
mod line;

#[path = "../all/plain"]
mod plain {
    pub(crate) use crate::line::plain::*;

    pub(crate) mod native;
}

#[path = "../all/eager"]
mod eager {
    pub(crate) use crate::line::eager::*;

    pub(crate) mod native;
}

#[cfg(feature = "ndarray")]
#[path = "../all/ndarray"]
mod ndarray {
    pub(crate) use crate::line::ndarray::*;

    pub(crate) mod native;
}

#[cfg(feature = "ndarray")]
#[path = "../all/eager_ndarray"]
mod eager_ndarray {
    pub(crate) use crate::line::eager_ndarray::*;

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
    assert_eq!(engine::filter().unwrap().unwrap().reason, Reason::OpUnsupported);

    set_policy(Policy::RejectFallback);
    tape::are_native(tape::routes(tape::matrix().require_grad()));
    let wanted =
        "kalman_filter: route loop_contiguous (op_unsupported) is rejected by the route policy";
    assert_eq!(engine::filter().unwrap_err(), wanted);
    #[cfg(feature = "ndarray")]
    {
        eager_ndarray::native::is_rejected();
        ndarray::native::is_rejected();
    }
    set_policy(Policy::Allow);
}
